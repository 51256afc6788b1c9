//! The report for people: a table for each workload, the change of popularity, and the paper's claims beside what was found.

use std::fmt::Write;

use larder_daemon::units::HumanSize;
use larder_policy::spec::{AdmissionSpec, PolicySpec};

use super::change::{Change, Response};
use super::claims::{Claim, Finding};
use super::evidence::{HIT_RATIO_MIN, is_useful};
use super::percent::{digits, percent, short, signed};
use super::study::{BLOCK, Counted, Point, Study, Tally};
use crate::columns::Columns;
use crate::number::{compact, grouped};

/// The paper.
pub const PAPER: &str = "Huang, Wei, Chen, Chen, Feng: \"Improving Flash-based Disk Cache with Lazy Adaptive Replacement\", MSST 2013";

/// The policies whose SSD writes and intervals are shown.
const SHOWN: [PolicySpec; 3] = [PolicySpec::Lru, PolicySpec::Arc, PolicySpec::Larc];

/// All that was found.
pub struct Report<'a> {
    /// Over each workload.
    pub studies: &'a [Study],
    /// LARC's admission, by one or the other reading of the paper.
    pub larc: AdmissionSpec,
    /// What follows for the paper's claims.
    pub claims: Vec<Claim>,
}

impl Report<'_> {
    /// Everything, in lines of at most `width` columns where the words allow it.
    pub fn render(&self, width: u16) -> String {
        let mut text = format!("{PAPER}, sections IV-B and IV-C\n{}", self.legend());
        for study in self.studies {
            text.push_str(&self::study(study, width));
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\nThe paper's claims, and these {} workloads", self.studies.len());
        put(&mut text, &claims(&self.claims), width);
        text
    }

    fn legend(&self) -> String {
        let mut text = format!(
            "Write-back, blocks of {}. Hit ratios count blocks, read and written. W = write hits + replacements: blocks written to the SSD;\n\
             each block that enters is a replacement. LARC's gain in hit ratio is a share of the other's; what it saves, of LRU's W.\n\
             *: LARC hits less than {} of the accesses, so that its saving is no merit and not counted for the claims.\n",
            HumanSize(BLOCK.bytes().into()),
            short(HIT_RATIO_MIN)
        );
        text.push_str(match self.larc {
            AdmissionSpec::LarcWhenFull => "LARC asks its ghost while the cache is full, as the prose of section III-A has it; Algorithm 1 always asks it.\n",
            _ => "LARC asks its ghost from the start, as Algorithm 1 has it; --when-full: only while the cache is full (section III-A's prose).\n",
        });
        if self.studies.iter().any(|study| study.workload.is_generated()) {
            text.push_str("These workloads are GENERATED, not recorded: Zipf's law below a page cache. Give traces with --traces or --trace.\n");
        }
        text
    }
}

fn study(study: &Study, width: u16) -> String {
    let summary = &study.summary;
    let parts: Vec<_> = study.workload.parts.each().map(ToString::to_string).collect();
    let mut text = format!("\n{}: {}\n", study.workload.name, parts.join("\nthen "));
    let dominated = if study.is_read_dominated() { "reads dominate" } else { "writes dominate" };
    let _ = writeln!(
        text,
        "{dominated}: {} of {} block accesses are reads; footprint {}, {} of the accesses are to a block seen before",
        percent(study.read_share),
        grouped(summary.block_accesses),
        HumanSize(summary.footprint_blocks.saturating_mul(BLOCK.bytes().into())),
        percent(study.re_references())
    );
    for (counted, title) in
        [(Counted::Whole, "whole trace, caches empty at first"), (Counted::Half, "second half")]
    {
        let _ = writeln!(text, "\n{}, {title}:", study.workload.name);
        put(&mut text, &points(study.points(counted), summary.footprint_blocks), width);
    }
    if let Some(change) = &study.change {
        text.push_str(&self::change(change, width));
    }
    text
}

fn points(points: &[Point], footprint_blocks: u64) -> Columns {
    let policies: Vec<_> =
        points.first().into_iter().flat_map(|point| &point.outcomes).map(|o| title(o.policy)).collect();
    let mut headings = ["cache", "of foot-\nprint"].map(String::from).to_vec();
    headings.extend(group("hits, %", &policies));
    headings.extend(group("gain, %", &["vs LRU", "vs ARC"]));
    headings.extend(group("W, blocks", &["LRU", "ARC", "LARC"]));
    headings.push("saved\n%".into());
    let mut table = numbers(headings);
    for point in points {
        table.row(row(point, footprint_blocks));
    }
    table
}

/// The headings of neighbouring columns: what they are in common stands above the first.
fn group(common: &str, names: &[impl AsRef<str>]) -> Vec<String> {
    let above = |at| if at == 0 { common } else { "" };
    names.iter().enumerate().map(|(at, name)| format!("{}\n{}", above(at), name.as_ref())).collect()
}

fn row(point: &Point, footprint_blocks: u64) -> Vec<String> {
    let bytes = point.cache_blocks.saturating_mul(BLOCK.bytes().into());
    let share = point.cache_blocks as f64 / footprint_blocks.max(1) as f64;
    let mut row = vec![HumanSize(bytes).to_string(), short(share)];
    row.extend(point.outcomes.iter().map(|outcome| digits(outcome.tally.hit_ratio())));
    row.extend([PolicySpec::Lru, PolicySpec::Arc].map(|policy| signed(point.gain_over(policy))));
    row.extend(SHOWN.map(|policy| compact(point.of(policy).ssd_writes())));
    let mark = if is_useful(point, PolicySpec::Larc) { " " } else { "*" };
    row.push(point.saving().map_or("-".into(), |saving| format!("{}{mark}", digits(saving))));
    row
}

fn change(change: &Change, width: u16) -> String {
    let bytes = change.cache_blocks.saturating_mul(BLOCK.bytes().into());
    let mut text = format!(
        "\nThe change, in a cache of {}: hit ratio and replacement rate in intervals of {} block accesses\n",
        HumanSize(bytes),
        grouped(change.every)
    );
    put(&mut text, &intervals(change), width);
    text.push('\n');
    put(&mut text, &responses(change), width);
    text
}

fn intervals(change: &Change) -> Columns {
    let names = SHOWN.map(title);
    let mut headings = vec!["from access\n(change at 0)".to_owned()];
    headings.extend(group("hits, %", &names));
    headings.extend(group("replaced, %", &names));
    let mut table = numbers(headings);
    for at in change.around() {
        let tally = |policy| {
            change.series.iter().find(|(of, _)| *of == policy).and_then(|(_, series)| series.get(at))
        };
        let cells = |value: fn(&Tally) -> f64| {
            SHOWN.map(|policy| tally(policy).map_or("-".into(), |tally| digits(value(tally)))).to_vec()
        };
        let (from, sign) = if at < change.at { (change.at - at, "-") } else { (at - change.at, "") };
        let from = format!("{sign}{}", grouped(from as u64 * change.every));
        table.row([vec![from], cells(Tally::hit_ratio), cells(Tally::replacement_rate)].concat());
    }
    table
}

fn responses(change: &Change) -> Columns {
    let levels = ["before", "after", "end"].map(|level| format!("hits, %\n{level}"));
    let back = ["before", "the end"].map(|level| format!("accesses until at nine\ntenths of {level}"));
    let mut table = numbers([&["".to_owned()][..], &levels, &back].concat());
    for policy in SHOWN {
        let Response { before, after, end, back_after, settled_after, .. } = change.response(policy);
        let levels = [before, after, end].map(|tally| digits(tally.hit_ratio()));
        let back = [back_after, settled_after].map(|accesses| accesses.map_or("never".into(), grouped));
        table.row([&[title(policy)][..], &levels, &back].concat());
    }
    table
}

fn claims(claims: &[Claim]) -> Columns {
    let headings = ["claim", "paper", "counted", "here (workload, cache)", "verdict"];
    let mut table = Columns::new(headings).words(0..headings.len());
    for claim in claims {
        let told = |finding: &Finding| {
            [finding.here.clone(), format!("{}: {}", finding.verdict.as_str(), finding.because)]
        };
        let whole = [claim.text, claim.paper, "whole"].map(String::from);
        table.row([&whole[..], &told(&claim.whole)].concat());
        if let Some(half) = &claim.half {
            let blank = ["", "", "2nd half"].map(String::from);
            table.row([&blank[..], &told(half)].concat());
        }
    }
    table
}

/// How a policy is called in the paper.
pub fn title(policy: PolicySpec) -> String {
    match policy {
        PolicySpec::Belady => "FIF".into(),
        policy => policy.name().to_uppercase(),
    }
}

fn numbers(headings: Vec<String>) -> Columns {
    Columns::new(headings).padded(1, 0)
}

fn put(text: &mut String, table: &Columns, width: u16) {
    text.push_str(&table.text(width));
}
