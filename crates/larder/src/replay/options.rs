//! The options of `larder replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use larder_trace::Format;

use crate::amount::{positive, some_seconds};
use crate::input::TraceName;

/// Requests outstanding at a time, at most.
pub const OUTSTANDING_MAX: u32 = 1024;

/// Options of `larder replay`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// The trace: a file (compressed or not), `-` for stdin, or `gen:SPEC` for a generated one.
    #[arg(value_name = "TRACE")]
    pub trace: TraceName,
    /// The trace's format, where its content does not tell.
    #[arg(short, long)]
    pub format: Option<Format>,
    /// What is asked: a block device, a file, or the URI of an NBD export.
    #[arg(long, value_name = "DEVICE|FILE|URI")]
    pub to: String,
    /// Carry out writes and discards: what they fall on is lost.
    #[arg(long, conflicts_with = "reads_only")]
    pub destroy_data: bool,
    /// Leave out writes, discards and flushes.
    #[arg(long)]
    pub reads_only: bool,
    /// Open loop, so many times as fast as the trace: 2 or 2x [default: 1].
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub rate: Option<f64>,
    /// Closed loop: N requests (1 to 1024) are outstanding at any time, and the times of the trace say nothing.
    #[arg(long, visible_alias = "depth", value_name = "N", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..=i64::from(OUTSTANDING_MAX)))]
    pub closed: Option<u32>,
    /// End after so much time.
    #[arg(long, value_name = "TIME", value_parser = some_seconds)]
    pub duration: Option<f64>,
    /// Take only the first N reads and writes.
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Requests for this volume alone, as `larder trace info` calls it; may be given several times [default: all, side by side].
    #[arg(long, value_name = "VOLUME")]
    pub volume: Vec<String>,
    /// Fold what lies behind the end of the target into it (offset modulo size), instead of refusing the trace.
    #[arg(long)]
    pub wrap: bool,
    /// Flush after every N writes, beside the flushes of the trace.
    #[arg(long, value_name = "N", conflicts_with = "reads_only", value_parser = clap::value_parser!(u64).range(1..))]
    pub flush_every: Option<u64>,
    /// Check that reads find what this replay wrote last; with `all`, read all of it again at the end too [default: all].
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all", requires = "destroy_data")]
    pub verify: Option<Verify>,
    /// Seed of what is written [default: another one each time, so that nothing an earlier replay wrote is taken for this one's].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON instead of the table: bytes, seconds, and null for what there was none of; with `=FILE`, write it there beside the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Show no progress, and no table.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// The reads of the trace.
    Reads,
    /// These, and at the end everything that was written.
    All,
}

/// `2` or `2x`.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.trim();
    positive(number.strip_suffix(['x', '×']).unwrap_or(number)).map_err(|_| {
        format!("{text} is no factor above 0; write \"2\" or \"2x\" for twice as fast as the trace")
    })
}

const AFTER_HELP: &str = "\
Requests go past the page cache where the target can. They are made larger where they are no whole units (512 B or 4 KiB) of it. Latencies
count from the moment a request is sent; how late it was sent, after its time in the trace, is told beside them in open loop.

Writes destroy what is on the target, so they need --destroy-data. A block device that is mounted or otherwise in use is refused, and so is
a file that a daemon has. Every sector written says which write it is from; --verify looks for that. What fails, or is discarded, holds
anything until it is written again; of requests that overlap in time, either may come first. To check takes 8 bytes of memory a sector
written (16 MiB for each GiB).

Ctrl-C ends it: what is outstanding ends, and what was found so far is told.
Exit code: 0 when all was replayed, all requests ended well and all that was checked is right (or --duration was over), 1 otherwise.

Examples:
  larder replay web.csv.gz --to /dev/sdx --reads-only --rate 2x
  larder replay gen:zipf:theta=0.9,blocks=1000000,requests=500000,read=0.7 --to disk.img --destroy-data --closed 32
  larder replay db.csv.zst --to 'nbd+unix:///db?socket=/run/larder/db.sock' --destroy-data --wrap --verify --json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_that_people_write() {
        assert_eq!(["2", "2x", " 0.5 x", "10×"].map(factor), [Ok(2.0), Ok(2.0), Ok(0.5), Ok(10.0)]);
        assert!(["", "x", "0", "-1", "2xx", "nan", "inf"].iter().all(|text| factor(text).is_err()));
    }
}
