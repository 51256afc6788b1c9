//! The options of `larder trace` and its commands, with their help texts.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use larder_daemon::units::{parse_duration, parse_size};
use larder_sim::BlockSize;
use larder_trace::{Format, TraceWriter};

use crate::block;
use crate::input::TraceName;

const TRACES: &str = "\
A TRACE is a file, - for stdin, or gen:SPEC for a made-up workload. Format and compression (gzip, zstd, xz, bzip2)
are told from the content; where that goes wrong, --format names the format:
  msr, spc, fiu, blkparse, blktrace, vscsi, alibaba, tencent, systor, srt, disksim, ssdsim, mqsim, dtrs, heimdall,
  fio, oracle-general, libcachesim-csv, lis, lis-pages, parquet, plain

A SPEC is one or more phases joined by +, each a pattern with its fields:
  gen:zipf:theta=1.0,blocks=100000,requests=1000000,read=0.7,seed=1
  gen:loop:blocks=5000,requests=20000+uniform:blocks=100000,requests=20000
Patterns are zipf, ycsb, uniform, gaussian, sequential, loop and mix.";

const INFO_EXAMPLES: &str = "\
Examples:
  larder trace info web_1.csv.gz
  larder trace info --json *.csv.gz | jq '.[].footprint_bytes'";

const CONVERT_EXAMPLES: &str = "\
Examples:
  larder trace convert web_1.csv.gz web_1.parquet
  larder trace convert disk.vscsi - --to msr | gzip > disk.csv.gz";

const HEAD_EXAMPLES: &str = "\
Examples:
  larder trace head web_1.csv.gz
  larder trace head -n 1000 --json web_1.csv.gz | jq .len";

const SPLIT_EXAMPLES: &str = "\
Examples:
  larder trace split tencent.bz2 --by volume --out-dir volumes --to msr
  larder trace split week.srt.zst --by time --every 24h --out-dir days --to parquet";

const MERGE_EXAMPLES: &str = "\
Examples:
  larder trace merge web.csv.zst mail.csv.zst --out both.csv.zst
  larder trace merge --align monday.csv tuesday.csv --out overlaid.parquet";

const CUT_EXAMPLES: &str = "\
Examples:
  larder trace cut web_1.csv.gz --out hour.csv --from 1h --to 2h
  larder trace cut web_1.csv.gz --out small.csv --requests ..100000 --range 0..10GiB";

/// Options of `larder trace`.
#[derive(Debug, Args)]
#[command(after_help = TRACES, arg_required_else_help = true)]
pub struct TraceOptions {
    /// What to do.
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Tell what traces hold: requests, footprint, re-references, sizes, times, volumes.
    ///
    /// Blocks and footprints are of reads and writes, volumes kept apart. The memory it takes grows with the footprint, not with
    /// the length of the trace.
    #[command(after_help = INFO_EXAMPLES)]
    Info(Info),
    /// Write a trace in another format.
    ///
    /// The name of OUT tells its format: .csv (msr), .oracleGeneral, .parquet, .fio or .iolog; .gz or .zst after it compresses. OUT appears
    /// when it is whole. What its format cannot hold is told on stderr.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(Convert),
    /// Show the first requests of a trace.
    #[command(after_help = HEAD_EXAMPLES)]
    Head(Head),
    /// Cut a trace into one file per volume, tenant or interval.
    ///
    /// Files are called as the volume, the tenant, or the number of the interval (000000, 000001, …) is. A trace with many volumes is read several times: a
    /// limited number of files is written at a time. A request that is earlier than the one before it is in the same interval.
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(Split),
    /// Merge traces into one, by time.
    ///
    /// Volumes are kept apart: a tenant without a name, or with one that another trace has too, is called as the file is. The name of OUT tells
    /// its format, as in `larder trace convert`.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(Merge),
    /// Cut a part out of a trace: by time, requests, volume, tenant or place.
    ///
    /// What is kept meets all conditions. Times and places stay as they are. The name of OUT tells its format, as in `larder trace convert`.
    #[command(after_help = CUT_EXAMPLES)]
    Cut(Cut),
}

/// Options of `larder trace info`.
#[derive(Debug, Args)]
pub struct Info {
    /// What to read: files, - for stdin, gen:SPEC.
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<TraceName>,
    /// The format of the traces [default: told from the content].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The size of a block: a power of two from 512 to 128KiB.
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = block::size)]
    pub block: BlockSize,
    /// Print JSON: an object, or a list of them for several traces. Bytes, seconds, and shares from 0 to 1.
    #[arg(long)]
    pub json: bool,
}

/// Options of `larder trace convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// What to read: a file, - for stdin, gen:SPEC.
    #[arg(value_name = "IN")]
    pub input: TraceName,
    /// The file to write, - for stdout.
    #[arg(value_name = "OUT")]
    pub out: OsString,
    /// The format of IN [default: told from the content].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The format of OUT: msr, oracle-general, parquet or fio [default: what its name says].
    #[arg(long, value_name = "FORMAT", value_parser = written_format)]
    pub to: Option<Format>,
    /// How to write it.
    #[command(flatten)]
    pub care: Care,
}

/// What may happen to files and to what a format cannot hold.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Care {
    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,
    /// Fail where a request cannot be written as it is, rather than write what the format holds.
    #[arg(long)]
    pub strict: bool,
}

/// Options of `larder trace head`.
#[derive(Debug, Args)]
pub struct Head {
    /// What to read: a file, - for stdin, gen:SPEC.
    #[arg(value_name = "TRACE")]
    pub trace: TraceName,
    /// The format of the trace [default: told from the content].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// How many requests.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub requests: u64,
    /// Print a JSON object per line, in nanoseconds and bytes.
    #[arg(long)]
    pub json: bool,
}

/// Options of `larder trace split`.
#[derive(Debug, Args)]
pub struct Split {
    /// What to read: a file, - for stdin, gen:SPEC.
    #[arg(value_name = "TRACE")]
    pub trace: TraceName,
    /// The format of the trace [default: told from the content].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// What makes a file.
    #[arg(long, value_enum)]
    pub by: By,
    /// The length of an interval of --by time.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = interval)]
    pub every: Duration,
    /// The directory to write to; made where there is none.
    #[arg(long, value_name = "DIR")]
    pub out_dir: PathBuf,
    /// The format of the files: msr, oracle-general, parquet, fio.
    #[arg(long, value_name = "FORMAT", default_value = "msr", value_parser = written_format)]
    pub to: Format,
    /// Compress the files.
    #[arg(long, value_enum, value_name = "HOW")]
    pub compress: Option<Compression>,
    /// How to write them.
    #[command(flatten)]
    pub care: Care,
}

/// What makes a file of a split trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Each volume.
    Volume,
    /// Each tenant.
    Tenant,
    /// Each interval of --every that has requests, from the first request on.
    Time,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// By gzip, into `.gz`.
    #[value(name = "gz", alias = "gzip")]
    Gzip,
    /// By zstd, into `.zst`.
    #[value(name = "zst", alias = "zstd")]
    Zstd,
}

/// Options of `larder trace merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// What to read: files, - for stdin, gen:SPEC.
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<TraceName>,
    /// The file to write, - for stdout.
    #[arg(long, value_name = "OUT")]
    pub out: OsString,
    /// The format of the traces [default: told from the content].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The format of OUT: msr, oracle-general, parquet or fio [default: what its name says].
    #[arg(long, value_name = "FORMAT", value_parser = written_format)]
    pub to: Option<Format>,
    /// Let every trace start at time zero.
    #[arg(long)]
    pub align: bool,
    /// How to write it.
    #[command(flatten)]
    pub care: Care,
}

/// Options of `larder trace cut`.
#[derive(Debug, Args)]
pub struct Cut {
    /// What to read: a file, - for stdin, gen:SPEC.
    #[arg(value_name = "TRACE")]
    pub trace: TraceName,
    /// The file to write, - for stdout.
    #[arg(long, value_name = "OUT")]
    pub out: OsString,
    /// The format of the trace [default: told from the content].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The format of OUT: msr, oracle-general, parquet or fio [default: what its name says].
    #[arg(long, value_name = "FORMAT", value_parser = written_format)]
    pub out_format: Option<Format>,
    /// What is kept.
    #[command(flatten)]
    pub part: Part,
    /// How to write it.
    #[command(flatten)]
    pub care: Care,
}

/// The part of a trace that is kept: requests that meet all conditions.
#[derive(Clone, Debug, Default, Args)]
pub struct Part {
    /// Requests so long after the first one, or later: 90s, 10m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub from: Option<Duration>,
    /// Requests before that: 90s, 10m, 2h.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub to: Option<Duration>,
    /// Requests by their number in the trace, from 0: from A on, before B. One may be missing.
    #[arg(long, value_name = "A..B", value_parser = requests)]
    pub requests: Option<Range<u64>>,
    /// Requests for this volume, as `larder trace info` calls it; may be given several times.
    #[arg(long, value_name = "VOLUME")]
    pub volume: Vec<String>,
    /// Requests of this tenant; may be given several times.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Vec<String>,
    /// Bytes of a volume, from A on, before B: 0..10GiB. Requests are clipped; flushes are kept.
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub range: Option<Range<u64>>,
}

/// A format that traces are written in.
pub fn written_format(text: &str) -> Result<Format, String> {
    let written = TraceWriter::FORMATS;
    let found = text.parse().ok().filter(|format| written.contains(format));
    let names = || written.map(Format::as_str).join(", ");
    found.ok_or_else(|| format!("no format that is written; these are: {}", names()))
}

fn interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("an interval has a length".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

fn requests(text: &str) -> Result<Range<u64>, String> {
    let number =
        |text: &str| text.replace('_', "").parse().map_err(|_| format!("{text:?} is no whole number"));
    between(text, number)
}

fn range(text: &str) -> Result<Range<u64>, String> {
    between(text, |text| parse_size(text).map_err(|error| error.to_string()))
}

/// `A..B`, where a missing end is no limit.
fn between(text: &str, number: impl Fn(&str) -> Result<u64, String>) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("write A..B, A.. or ..B")?;
    let end = |text: &str, none| if text.trim().is_empty() { Ok(none) } else { number(text.trim()) };
    let range = end(from, 0)?..end(to, u64::MAX)?;
    if range.is_empty() { Err("there is nothing between the two".to_owned()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_two_ends_or_one() {
        assert_eq!(requests("5..10"), Ok(5..10));
        assert_eq!(requests("1_000.."), Ok(1000..u64::MAX));
        assert_eq!(range("..10GiB"), Ok(0..10 << 30));
        assert_eq!(range("4KiB..8192"), Ok(4096..8192));
        for text in ["5", "..0", "7..7", "9..3", "a..b", "1..-2", "1.5..2"] {
            assert!(requests(text).is_err() && range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_out_of_bounds_say_so() {
        assert_eq!(interval("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(interval("0s"), Err("an interval has a length".to_owned()));
        assert_eq!(block::size("64KiB").map(BlockSize::bytes), Ok(65536));
        assert!(block::size("5000").unwrap_err().contains("power of two"));
        assert_eq!(written_format("oracleGeneral"), Ok(Format::OracleGeneral));
        for text in ["spc", "xml"] {
            let names = "no format that is written; these are: msr, fio, oracle-general, parquet";
            assert_eq!(written_format(text), Err(names.to_owned()));
        }
    }
}
