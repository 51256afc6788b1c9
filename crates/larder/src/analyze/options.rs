//! The options of `larder analyze`.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use larder_locality::Sampling;
use larder_sim::BlockSize;
use larder_trace::Format;

use super::choice::{PlotChoice, WriteChoice};
use super::sample::Sample;
use crate::amount::Interval;
use crate::block;
use crate::input::TraceName;
use crate::simulate::matrix::PolicyChoice;

/// Options of `larder analyze`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// Traces: files (compressed or not), `-` for stdin, or `gen:SPEC` for generated ones.
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<TraceName>,
    /// The format of the traces, where their content does not tell.
    #[arg(short, long)]
    pub format: Option<Format>,
    /// The unit of caching, a power of two from 512 to 128KiB.
    #[arg(short, long, value_name = "SIZE", default_value = "4KiB", value_parser = block::size)]
    pub block: BlockSize,
    /// Write policies to give the curves of: wb, wt, wt-noalloc, ro, batched (write-back, filled by a mover), or all.
    #[arg(short, long, value_name = "W,…", value_delimiter = ',', default_value = "all")]
    pub write_policy: Vec<WriteChoice>,
    /// When the mover of `batched` fills the cache: every so much trace time (`1min`) or so many requests (`100000`).
    #[arg(long, value_name = "AMOUNT", default_value = "1min")]
    pub mover_epoch: Interval,
    /// Also estimate other replacement policies, by scaled-down caches under each of --write-policy (under wb alone,
    /// where that is all): larc,arc,s3-fifo, arc+nth:3, or all.
    #[arg(short, long, value_name = "P,…", value_delimiter = ',')]
    pub policy: Vec<PolicyChoice>,
    /// Look at a sample of the blocks: a share (`1%`, `0.01`), or a number of them (`8192`), which bounds the memory.
    #[arg(short, long, value_name = "RATE|BLOCKS")]
    pub sample: Option<Sample>,
    /// Look at all blocks, to give exact curves: the default.
    #[arg(long, conflicts_with = "sample")]
    pub exact: bool,
    /// Write a report for people: one HTML file, with a section for each trace.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Draw pictures: `out.svg` gives `out-misses.svg` and so on; `misses=out.svg` gives that one alone. May be given again.
    #[arg(long, value_name = "[PICTURE=]FILE", value_parser = OsStringValueParser::new().try_map(|text: OsString| PlotChoice::new(&text)))]
    pub plot: Vec<PlotChoice>,
    /// Print JSON instead of the summary: an object, or a list of them for several traces; with `=FILE`, write it there beside the summary.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Threads to work with [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Chooses the sampled blocks, and what policies draw lots for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Take only the first N reads and writes of each trace.
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Show no progress, and no summary.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Options {
    /// Which blocks to look at.
    pub fn sampling(&self) -> Sampling {
        self.sample.map_or(Sampling::Exact, |sample| sample.0)
    }
}

const AFTER_HELP: &str = "\
Each trace is read once. The curves are those of LRU caches of every size, equal to what `larder simulate --policy lru`
counts at any of them. TRD is the reuse distance over all accesses; URD that of reads of blocks seen before. Exact curves
take some 250 bytes of memory for each distinct block; --sample 8192 takes a few MiB, whatever the trace. Each of --policy
takes up to some 150 MiB more under each write policy, or with such a sample 30, and most of the time.

Pictures: misses, policies, writes, backing, classes, distances, map, hot; in files ending in .svg, .png or .html. With
several traces, the name of the trace comes into the name of the file: `out-web-misses.svg`.

JSON: sizes, distances and counts of reads and writes in blocks, ratios between 0 and 1, times in seconds; the lists of a
curve belong together place by place.

Examples:
  larder analyze trace.csv.gz
  larder analyze web.csv.zst mail.csv.zst --html report.html
  larder analyze trace.csv.gz --policy larc,arc,s3-fifo --plot misses=misses.png
  larder analyze huge.parquet --sample 8192 --json | jq .urd.max";
