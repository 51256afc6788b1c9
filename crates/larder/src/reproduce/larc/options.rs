//! The options of `larder reproduce larc`.

use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use larder_policy::spec::AdmissionSpec;

use crate::input::TraceName;
use crate::problem::Problem;
use crate::reproduce::common::Common;
use crate::simulate::size::SizeChoice;

/// Sizes where none are given: "cache size is smaller than the working set of the trace in all configurations".
const SIZES: &str = "1%,2%,5%,10%,20%,30%,50%";

/// Options of `larder reproduce larc`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// A trace to run on, and what to call it; may be given again.
    #[arg(long = "trace", value_name = "NAME=TRACE", value_parser = OsStringValueParser::new().try_map(|text: OsString| NamedTrace::new(&text)))]
    pub traces: Vec<NamedTrace>,
    /// A folder with traces: those known by name are taken, such as DIR/msr_web_1.csv.gz and DIR/recorded/web.csv.zst.
    #[arg(long = "traces", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Two traces, one after the other on the same disk: a sudden change of popularity (the paper's ws_con).
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"], value_parser = OsStringValueParser::new().map(TraceName::from))]
    pub change: Vec<TraceName>,
    /// Cache sizes: shares of the footprint (`5%`), bytes (`10GiB`), or a range of either (`1%..50%:10`: ten sizes).
    #[arg(long, alias = "size", value_name = "SIZE,…", value_delimiter = ',', default_value = SIZES)]
    pub sizes: Vec<SizeChoice>,
    /// Ask LARC's ghost only while the cache is full, as the prose of section III-A has it; Algorithm 1 always asks it.
    #[arg(long)]
    pub when_full: bool,
    /// Also run Belady's optimum, the paper's upper bound (FIF): it takes 8 bytes of memory per block access.
    #[arg(long)]
    pub belady: bool,
    /// Print JSON instead of the tables; with `=FILE`, write it there beside the tables.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Draw hit ratio and SSD writes over cache size: OUT ends in .svg, .png or .html, and `larc.svg` gives one `larc-NAME.svg` for each trace.
    #[arg(long, value_name = "OUT")]
    pub plot: Option<PathBuf>,
    /// Threads to work with [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Take only the first N reads and writes of each trace (of each part, where there are two): for a quick look.
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Options {
    /// The defaults, with what is common to all experiments.
    pub fn with(common: &Common) -> Result<Self, Problem> {
        let sizes = SIZES.split(',').map(str::parse).collect::<Result<_, String>>();
        let sizes = sizes.map_err(|why| Problem::new(why, "tell the authors: these sizes are built in"))?;
        Ok(Self {
            traces: Vec::new(),
            folder: common.folder.clone(),
            change: Vec::new(),
            sizes,
            when_full: false,
            belady: false,
            json: None,
            plot: None,
            threads: common.threads,
            limit: common.limit(),
            quiet: common.quiet,
        })
    }

    /// LARC's admission by the reading of the paper that was asked for.
    pub fn larc(&self) -> AdmissionSpec {
        if self.when_full { AdmissionSpec::LarcWhenFull } else { AdmissionSpec::Larc }
    }
}

const AFTER_HELP: &str = "\
Without --trace, --traces and --change, three workloads are generated; the report says so.
A TRACE is a file, or gen:SPEC for a generated one (see `larder trace --help`).

Examples:
  larder reproduce larc
  larder reproduce larc --traces traces --belady --plot larc.svg
  larder reproduce larc --trace web=web_1.csv.gz --change monday.csv tuesday.csv --sizes 1%..50%:12 --json";

/// A trace and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTrace {
    /// The name: letters, digits, `-`, `_` and `.`, so that it can be a part of the name of a file.
    pub name: String,
    /// The trace.
    pub trace: TraceName,
}

impl NamedTrace {
    fn new(text: &OsStr) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|&byte| byte == b'=').ok_or("a trace is given as NAME=TRACE")?;
        let (name, trace) = (&bytes[..at], &bytes[at + 1..]);
        let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        if name.is_empty() || trace.is_empty() || !name.iter().all(good) {
            return Err("a trace is given as NAME=TRACE, its name in letters, digits, -, _ and .".into());
        }
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(Self { name, trace: OsString::from_vec(trace.to_vec()).into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_a_name() {
        let named = NamedTrace::new(OsStr::new("web_1.a=gen:zipf:theta=1")).expect("good");
        assert_eq!(
            named,
            NamedTrace { name: "web_1.a".into(), trace: OsString::from("gen:zipf:theta=1").into() }
        );
        for text in ["", "web", "=x", "x=", "a/b=x", "a b=x"] {
            assert!(NamedTrace::new(OsStr::new(text)).is_err(), "{text}");
        }
    }
}
