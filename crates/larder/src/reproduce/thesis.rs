//! `larder reproduce thesis`: one SSD cache for all containers against one divided among them.
//!
//! After section 4.2 of Rao: "Differentiated SSD Caching for Container-based Hosting", IIT Bombay 2017: tables 4.3 (one container's IOPS varied),
//! 4.4 (its standard deviation varied) and 4.5 (a web server beside three random readers).

mod claims;
mod gaussian;
mod real;

use serde_json::json;

use super::bench::Bench;
use super::common::Common;
use super::report::Report;
use super::sheet::Sheet;
use crate::problem::Problem;

/// Pages of a container's page cache: "256 MB cgroup memory limit".
const PAGE_CACHE_BLOCKS: u32 = 65_536;

/// Bytes of the SSD cache.
const CACHE_BYTES: u64 = 1 << 30;

/// Hit ratios (0 to 1) with a divided and with a common cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair {
    /// Each container has its own part.
    pub divided: f64,
    /// All have one cache.
    pub unified: f64,
}

/// Traces would not be used: who gives them is told before the work.
pub fn check(common: &Common) -> Result<(), Problem> {
    let Some(folder) = &common.folder else { return Ok(()) };
    let what =
        format!("--traces {}: the thesis's programs are generated, no trace is used", folder.display());
    Err(Problem::new(what, "leave --traces out"))
}

/// Run everything, and hold the thesis's tables against it.
pub fn find(common: &Common) -> Result<Report, Problem> {
    let mut bench = Bench::new(common);
    let by_rate = gaussian::find(&mut bench, common, &gaussian::BY_RATE)?;
    let by_sigma = gaussian::find(&mut bench, common, &gaussian::BY_SIGMA)?;
    let real = real::find(&mut bench, common)?;
    let captions = [
        "Table 4.3: container 1 reads with σ = 50,000 blocks at 358.16 IOPS; container 2 with σ = 500,000 at a rate that varies. Hit ratios in %, the \
         thesis's in brackets.",
        "Table 4.4: container 1 as before; container 2 at 607.53 IOPS with a σ that varies.",
    ];
    Ok(Report {
        title:
            "Rao: \"Differentiated SSD Caching for Container-based Hosting\", IIT Bombay 2017, section 4.2"
                .into(),
        notes: notes(common),
        sheets: vec![
            gaussian_sheet(captions[0], "IOPS of 2", &by_rate, |row| format!("{:.2}", row.paper.iops)),
            gaussian_sheet(captions[1], "σ of 2", &by_sigma, |row| crate::number::grouped(row.paper.sigma)),
            real_sheet(&real),
        ],
        claims: claims::judge(&by_rate, &by_sigma, &real),
        figures: json!({
            "table_4_3": by_rate.iter().map(gaussian::Row::json).collect::<Vec<_>>(),
            "table_4_4": by_sigma.iter().map(gaussian::Row::json).collect::<Vec<_>>(),
            "table_4_5": real.iter().map(real::Row::json).collect::<Vec<_>>(),
        }),
        ..Report::default()
    })
}

fn notes(common: &Common) -> Vec<String> {
    let notes = [
        Some(
            "GENERATED with the published characteristics, whatever traces are at hand: Gaussian reads of a file of 10 GB, σ in blocks of 4 KiB, at the thesis's rates; web server and \
             random readers by their file and request sizes, at the rates of table 4.6. Neither the programs' length is known, nor what the kernel read \
             ahead: no cache of 0.5 GB can hit more than 10.4 % of independent reads with σ = 500,000, and the thesis has 29.5 %, so that ratios can be held \
             against each other, not against the thesis's."
                .to_owned(),
        ),
        Some(
            "In front of each container's part of the SSD an LRU page cache of 256 MB is simulated, the thesis's cgroup limit (table 4.4 has reads that \
             are all \"in page cache\"): what it holds does not reach the SSD, and is in no hit ratio. Cold misses are counted. SSD cache of 1 GiB: one for all, or divided."
                .to_owned(),
        ),
        common.cut_short(),
    ];
    notes.into_iter().flatten().collect()
}

fn gaussian_sheet(
    caption: &str,
    varied: &str,
    rows: &[gaussian::Row],
    label: impl Fn(&gaussian::Row) -> String,
) -> Sheet {
    let headings =
        [varied, "divided\n1", "divided\n2", "unified\n1", "unified\n2", "all,\ndivided", "all,\nunified"];
    let mut sheet = Sheet::new(caption, 0, headings);
    for row in rows {
        let [first, second, all] = row.here;
        let paper = &row.paper;
        let cells = [
            beside(first.divided, paper.first.0),
            beside(second.divided, paper.second.0),
            beside(first.unified, paper.first.1),
            beside(second.unified, paper.second.1),
            beside(all.divided, paper.all.0),
            beside(all.unified, paper.all.1),
        ];
        sheet.row([label(row)].into_iter().chain(cells));
    }
    sheet
}

fn real_sheet(rows: &[real::Row]) -> Sheet {
    let caption = "Table 4.5: a web server with 0.5 GB of the divided cache, and three random readers with 0.16 GB each.";
    let mut sheet = Sheet::new(caption, 1, ["workload", "unified", "divided"]);
    for row in rows {
        sheet.row([
            row.name.to_owned(),
            beside(row.here.unified, row.paper.0),
            beside(row.here.divided, row.paper.1),
        ]);
    }
    sheet
}

/// A hit ratio in per cent, and the thesis's; it gives none where everything was in the page cache.
fn beside(here: f64, paper: f64) -> String {
    let paper = if paper.is_nan() { "page cache".into() } else { format!("{paper:.1}") };
    format!("{:.1} ({paper})", here * 100.0)
}
