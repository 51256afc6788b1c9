//! The report: a page with a section for each trace.

use larder_daemon::units::HumanSize;
use larder_plot::{Page, Section, Table};

use super::choice::Picture;
use super::distances::{Distances, PERCENTILES};
use super::found::Found;
use super::line::Line;
use super::pictures;
use super::rows::Rows;
use super::verdict::Verdict;
use crate::number::{grouped, percent};

/// Policies in one table.
const BESIDE: usize = 4;

/// The page as HTML.
pub fn html(all: &[Found]) -> String {
    let page = match all {
        [one] => Page::new(format!("What {} can use of a cache", one.asked.trace)),
        several => {
            Page::new(format!("What {} workloads can use of a cache", several.len())).table(overview(several))
        }
    };
    all.iter().fold(page, |page, found| page.section(section(found))).html()
}

/// A row for each trace, to compare them.
fn overview(all: &[Found]) -> Table {
    let headings = [
        "Trace",
        "Requests",
        "Reads",
        "Footprint",
        "Nine tenths of the hits",
        "All read hits (URD)",
        "All hits (TRD)",
    ];
    all.iter().fold(Table::new("Cache that brings what", headings), |table, found| {
        let size = |blocks: Option<u64>| {
            blocks.map_or_else(|| "-".into(), |blocks| HumanSize(found.bytes(blocks)).to_string())
        };
        let requests = found.summary.requests();
        table.row([
            found.asked.name.clone(),
            grouped(requests),
            percent((requests > 0).then(|| found.summary.reads as f64 / requests as f64)),
            HumanSize(found.bytes(found.summary.footprint_blocks)).to_string(),
            size(found.reach.knee),
            size(found.reach.useful),
            size(found.reach.all),
        ])
    })
}

fn section(found: &Found) -> Section {
    let verdict = Verdict::new(found);
    let sentences = verdict.sentences().into_iter().map(|(about, sentence)| format!("{about}: {sentence}"));
    let section =
        Section::new(&found.asked.name).paragraph(found.head().to_string().trim_end()).list(sentences);
    let section = found.sampling_note().into_iter().fold(section, Section::paragraph);
    if found.classes.total() == 0 {
        return section;
    }
    let section = sizes(found).into_iter().fold(section, Section::table).paragraph(Rows::new(found).legend());
    let section = section.table(classes(found));
    let section = percentiles(found).into_iter().fold(section, Section::table);
    let shown = Picture::ALL.into_iter().filter(|&picture| shows(picture, found));
    shown.fold(section, |section, picture| {
        section.chart(&pictures::chart(picture, found).subtitle(explained(picture)))
    })
}

/// False for a picture that would be empty.
fn shows(picture: Picture, found: &Found) -> bool {
    match picture {
        Picture::Distances => found.trd.count > 0,
        Picture::Backing => found.lru.writes > 0,
        Picture::Classes => !found.windows.is_empty(),
        Picture::Map => found.map.rows > 0,
        Picture::Hot => !found.hot.is_empty(),
        Picture::Misses | Picture::Policies | Picture::Writes => true,
    }
}

/// How the picture is to be read.
fn explained(picture: Picture) -> &'static str {
    match picture {
        Picture::Misses => {
            "Where a curve turns flat, more cache brings nothing. That of the reads tells what the guest waits for; a cache sized by all accesses may be larger than the reads need."
        }
        Picture::Policies => {
            "A request hits if all of its blocks hit. Policies whose curves are the same share one."
        }
        Picture::Writes => {
            "Fills after read misses, and the guest's writes that go to the SSD: what wears it."
        }
        Picture::Backing => {
            "Write-back (wb, batched) writes blocks back when they leave the cache; under the others every write goes to the backing at once."
        }
        Picture::Classes => {
            "Only RAR and RAW, reads of a block seen before, can be served by a cache. Writes (CW, WAR, WAW) only wear it, unless it writes back."
        }
        Picture::Distances => {
            "How many accesses need a cache of which size. Each bar reaches to twice the size where it begins."
        }
        Picture::Map => {
            "Dark is where the accesses are. Level lines are blocks used again and again, slanted ones are sequential runs."
        }
        Picture::Hot => "Stretches with the most accesses.",
    }
}

/// Hits and SSD writes at some sizes: in tables that paper is wide enough for.
fn sizes(found: &Found) -> Vec<Table> {
    let rows = Rows::new(found);
    rows.groups().chunks(BESIDE).map(|groups| sizes_of(&rows, groups)).collect()
}

fn sizes_of(rows: &Rows<'_>, groups: &[(String, &Line)]) -> Table {
    let kinds = rows.headings().map(|parts| parts.join(" "));
    let headings =
        groups.iter().flat_map(|(names, _)| kinds.each_ref().map(|kind| format!("{names}: {kind}")));
    let fixed = ["Cache size", "Of footprint", ""].map(str::to_owned);
    let table = Table::new("Hits and SSD writes", fixed.into_iter().chain(headings));
    rows.sizes.iter().fold(table, |table, &blocks| {
        let cells = groups.iter().flat_map(|(_, line): &(String, &Line)| rows.cells(line, blocks));
        table.row(rows.size(blocks).into_iter().chain(cells).map(unbroken))
    })
}

/// A number stays on the line of its unit.
fn unbroken(cell: String) -> String {
    cell.replace(' ', "\u{a0}")
}

/// Block accesses by request class.
fn classes(found: &Found) -> Table {
    let classes = &found.classes;
    let share = |count: u64| percent(Some(count as f64 / classes.total() as f64));
    let rows = [
        ("first read", "CR", classes.cr),
        ("first write", "CW", classes.cw),
        ("read after a read", "RAR", classes.rar),
        ("read after a write", "RAW", classes.raw),
        ("write after a read", "WAR", classes.war),
        ("write after a write", "WAW", classes.waw),
        ("all", "", classes.total()),
    ];
    let table = Table::new("Block accesses by request class", ["Class", "", "Accesses", "Share"]);
    rows.into_iter().fold(table, |table, (what, class, count)| {
        table.row([what.to_owned(), class.to_owned(), grouped(count), share(count)])
    })
}

/// Percentiles of both kinds of distances, and the largest, in bytes; none where there are no distances.
fn percentiles(found: &Found) -> Option<Table> {
    let names = PERCENTILES.iter().map(|(name, _)| format!("{name} % up to"));
    let fixed = ["Distance", "Accesses"].map(str::to_owned).into_iter();
    let table = Table::new("Reuse distances", fixed.chain(names).chain(["largest".to_owned()]));
    let size = |blocks| HumanSize(found.bytes(blocks)).to_string();
    let row =
        |table: Table, (name, distances): (&str, &Distances)| match (distances.percentiles, distances.max) {
            (Some(values), Some(max)) => {
                let fixed = [name.to_owned(), grouped(distances.count)].into_iter();
                table.row(fixed.chain(values.map(size)).chain([size(max)]))
            }
            _ => table.row([name, "0"]),
        };
    let kinds = [("of all accesses (TRD)", &found.trd), ("of reads (URD)", &found.urd)];
    (found.trd.count > 0).then(|| kinds.into_iter().fold(table, row))
}
