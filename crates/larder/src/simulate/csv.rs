//! Runs and series as CSV: a line of names, then a line per run or per interval of a run.

use std::fmt::Write;

use larder_sim::{RunResult, Totals};

/// A column of counts: its name, and what stands in it.
type Column = (&'static str, fn(&Totals) -> String);

const COUNTS: [Column; 22] = [
    ("requests", |t| t.requests.to_string()),
    ("request_hits", |t| t.request_hits.to_string()),
    ("request_hit_ratio", |t| ratio(t.request_hit_ratio)),
    ("read_requests", |t| t.read_requests.to_string()),
    ("read_request_hits", |t| t.read_request_hits.to_string()),
    ("flushes", |t| t.flushes.to_string()),
    ("discards", |t| t.discards.to_string()),
    ("block_reads", |t| t.block_reads.to_string()),
    ("block_writes", |t| t.block_writes.to_string()),
    ("read_hits", |t| t.read_hits.to_string()),
    ("read_hit_ratio", |t| ratio(t.read_hit_ratio)),
    ("write_hits", |t| t.write_hits.to_string()),
    ("fills", |t| t.fills.to_string()),
    ("evictions", |t| t.evictions.to_string()),
    ("dirty_evictions", |t| t.dirty_evictions.to_string()),
    ("invalidations", |t| t.invalidations.to_string()),
    ("discarded", |t| t.discarded.to_string()),
    ("ssd_writes_fill", |t| t.ssd_writes.fill.to_string()),
    ("ssd_writes_guest_write", |t| t.ssd_writes.guest_write.to_string()),
    ("ssd_writes_total", |t| t.ssd_writes.total.to_string()),
    ("backing_reads", |t| t.backing_reads.to_string()),
    ("backing_writes", |t| t.backing_writes.to_string()),
];

const RUN: &str = "policy,admission,write_policy,cache_bytes,block_bytes";

/// A line per run.
pub fn runs(runs: &[RunResult]) -> String {
    let mut text = format!("{RUN},{},footprint_blocks,resident_blocks,dirty_blocks,seconds\n", names());
    for run in runs {
        let RunResult { footprint_blocks, resident_blocks, dirty_blocks, seconds, .. } = run;
        let (start, counts) = (of_run(run), counts(&run.totals));
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{start},{counts},{footprint_blocks},{resident_blocks},{dirty_blocks},{seconds}");
    }
    text
}

/// A line per interval of each run.
pub fn series(runs: &[RunResult]) -> String {
    let mut text = format!("{RUN},first_request,start_seconds,{}\n", names());
    for run in runs {
        let start = of_run(run);
        for interval in &run.series {
            let (request, seconds) = (interval.first_request, interval.start_seconds);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{start},{request},{seconds},{}", counts(&interval.totals));
        }
    }
    text
}

/// No name of a policy holds a comma or a quote, so none needs quoting.
fn of_run(run: &RunResult) -> String {
    format!("{},{},{},{},{}", run.policy, run.admission, run.write_policy, run.cache_bytes, run.block_bytes)
}

fn names() -> String {
    COUNTS.map(|(name, _)| name).join(",")
}

fn counts(totals: &Totals) -> String {
    COUNTS.map(|(_, count)| count(totals)).join(",")
}

/// Nothing where there is no ratio.
fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| ratio.to_string())
}
