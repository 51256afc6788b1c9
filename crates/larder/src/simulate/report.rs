//! What a simulation found, as tables for people, readable at 120 columns.

use std::fmt::Write;

use larder_daemon::units::HumanSize;
use larder_policy::spec::joined;
use larder_sim::RunResult;

use crate::columns::Columns;
use crate::head::Head;
use crate::number::{compact, percent};

const HEADINGS: [&str; 11] = [
    "size",
    "of foot-\nprint",
    "policy",
    "request\nhits",
    "read\nhits",
    "SSD\nfills",
    "SSD guest\nwrites",
    "SSD\nwritten",
    "backing\nreads",
    "backing\nwrites",
    "dirty\nevictions",
];

/// Columns of words, flush left.
const WORDS: [usize; 1] = [2];

/// Everything, in lines of at most `width` columns where the words allow it.
pub fn render(head: &Head<'_>, runs: &[RunResult], width: u16) -> String {
    let mut text = head.to_string();
    for runs in runs.chunk_by(|a, b| a.write_policy == b.write_policy) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\nwrite policy {}", runs[0].write_policy);
        text.push_str(&table(runs).text(width));
    }
    let size = HumanSize(head.block.bytes().into());
    let _ = writeln!(
        text,
        "\nIn blocks of {size}; at each size the most request hits come first, * has the fewest SSD writes."
    );
    text
}

/// How a run's policies are called together: `arc`, `arc+nth:3`.
pub fn caching(run: &RunResult) -> String {
    joined(&run.policy, &run.admission)
}

fn table(runs: &[RunResult]) -> Columns {
    let mut table = Columns::new(HEADINGS).words(WORDS).padded(0, 1);
    for runs in runs.chunk_by(|a, b| a.cache_bytes == b.cache_bytes) {
        of_one_size(runs).into_iter().for_each(|row| table.row(row));
    }
    table
}

/// The runs of one size, the one with the most hits first. Only the first names the size.
fn of_one_size(runs: &[RunResult]) -> Vec<[String; 11]> {
    let written = || runs.iter().map(|run| run.totals.ssd_writes.total);
    let fewest = written().min().filter(|&fewest| written().any(|total| total > fewest));
    let mut sorted: Vec<_> = runs.iter().collect();
    sorted.sort_by_key(|run| std::cmp::Reverse(run.totals.request_hits));
    let rows = sorted.iter().enumerate().map(|(at, run)| {
        let mut row = row(run, fewest == Some(run.totals.ssd_writes.total));
        if at > 0 {
            row[..2].fill_with(String::new);
        }
        row
    });
    rows.collect()
}

fn row(run: &RunResult, fewest: bool) -> [String; 11] {
    let totals = &run.totals;
    let footprint = run.footprint_blocks.saturating_mul(run.block_bytes.into());
    let written = HumanSize(totals.ssd_writes.total.saturating_mul(run.block_bytes.into()));
    [
        HumanSize(run.cache_bytes).to_string(),
        share(run.cache_bytes, footprint),
        caching(run),
        percent(totals.request_hit_ratio),
        percent(totals.read_hit_ratio),
        compact(totals.ssd_writes.fill),
        compact(totals.ssd_writes.guest_write),
        format!("{written}{}", if fewest { "*" } else { " " }),
        compact(totals.backing_reads),
        compact(totals.backing_writes),
        compact(totals.dirty_evictions),
    ]
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".into(),
        _ if part > whole => "> 100 %".into(),
        _ => {
            let percent = format!("{:.2}", part as f64 * 100.0 / whole as f64);
            format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}
