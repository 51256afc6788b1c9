//! The options of `larder simulate`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use larder_policy::spec::{AdmissionSpec, PolicySpec};
use larder_sim::{BlockSize, WritePolicy};
use larder_trace::Format;

use super::matrix::PolicyChoice;
use super::size::SizeChoice;
use super::tenants::{Arrivals, Asked, Division, Machine, OF_LIKE, TENANTS, where_it_fits};
use crate::amount::{Interval, Warmup};
use crate::block;
use crate::input::TraceName;

/// Sizes where none are given.
const SIZES: &str = "1%,2%,5%,10%,20%,30%,50%";

/// Policies where none are given.
const POLICIES: [PolicyChoice; 4] = [
    PolicyChoice::Any(PolicySpec::Lru),
    PolicyChoice::Any(PolicySpec::Arc),
    PolicyChoice::Any(PolicySpec::Larc),
    PolicyChoice::Any(PolicySpec::S3Fifo),
];

/// Options of `larder simulate`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, mut_args = where_it_fits)]
pub struct Options {
    /// The trace: a file (compressed or not), `-` for stdin, or `gen:SPEC` for a generated one.
    #[arg(value_name = "TRACE")]
    pub trace: Option<TraceName>,
    /// The trace's format, where its content does not tell.
    #[arg(short, long)]
    pub format: Option<Format>,
    /// Replacement policies, or `all` (Belady's aside). `arc+nth:3` is ARC behind an admission policy [default:
    /// lru,arc,larc,s3-fifo]. With tenants: one, in place of what their
    /// allocators begin with; `larder` chooses by itself from its first decision on.
    #[arg(short, long, value_name = "P,…", value_delimiter = ',')]
    pub policy: Vec<PolicyChoice>,
    /// Admission policies to put in front of each: always, larc, larc:when-full, nth:N, bloom, prob:P.
    #[arg(short, long, value_name = "A,…", value_delimiter = ',', default_value = "always")]
    pub admission: Vec<AdmissionSpec>,
    /// Write policies: wb, wt, wt-noalloc, ro, wo [default: wb]. With tenants: the one at the start.
    #[arg(short, long, value_name = "W,…", value_delimiter = ',')]
    pub write_policy: Vec<WritePolicy>,
    /// Cache sizes: bytes (`10GiB`), shares of the footprint (`5%`), or a range of either (`1%..50%:10`: ten sizes).
    #[arg(short, long, value_name = "SIZE,…", value_delimiter = ',', default_value = SIZES)]
    pub size: Vec<SizeChoice>,
    /// The unit of caching, a power of two from 512 to 128KiB [default: 4KiB; with tenants the scenario's, or the allocator's own].
    #[arg(short, long, value_name = "SIZE", value_parser = block::size)]
    pub block: Option<BlockSize>,
    /// What to let pass before counting starts: requests (`100000`), a share of them (`20%`) or trace time (`10min`).
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    pub warmup: Warmup,
    /// Also count interval by interval: by requests (`100000`) or by trace time (`10min`).
    #[arg(long, value_name = "AMOUNT")]
    pub interval: Option<Interval>,
    /// Write the counts of the intervals to a CSV file.
    #[arg(long, value_name = "FILE", requires = "interval")]
    pub series: Option<PathBuf>,
    /// Print the runs as JSON instead of the table (a list; with tenants an object that has one); with `=FILE`, write it there beside the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Print the runs as CSV instead of the table; with `=FILE`, write it there beside the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub csv: Option<Option<PathBuf>>,
    /// Draw hit ratio and SSD writes over cache size: a file ending in .svg, .png or .html. With tenants, partitions over time and
    /// latencies: a folder, or a file whose name begins the names of all.
    #[arg(long, value_name = "FILE|DIR")]
    pub plot: Option<PathBuf>,
    /// Threads to work with [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Seed of the policies that draw lots.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Take only the first N reads and writes (of each tenant).
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Show no progress, and no table.
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten, next_help_heading = "Tenants that share a cache")]
    pub asked: Asked,
    /// As a daemon: by its larder.toml (then with a trace for each of its tenants), or, with what it measured, by what `larder record --account` wrote.
    #[arg(long, value_name = "FILE", group = TENANTS, conflicts_with_all = OF_LIKE, help_heading = "Tenants that share a cache")]
    pub like: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Tenants that share a cache")]
    pub division: Division,
    #[command(flatten, next_help_heading = "Tenants that share a cache")]
    pub arrivals: Arrivals,
    #[command(flatten, next_help_heading = "Tenants that share a cache")]
    pub machine: Machine,
}

impl Options {
    /// Replacement policies for one trace.
    pub fn policies(&self) -> &[PolicyChoice] {
        if self.policy.is_empty() { &POLICIES } else { &self.policy }
    }

    /// Write policies for one trace.
    pub fn write_policies(&self) -> &[WritePolicy] {
        if self.write_policy.is_empty() { &[WritePolicy::WriteBack] } else { &self.write_policy }
    }

    /// The unit of caching for one trace.
    pub fn block(&self) -> BlockSize {
        self.block.unwrap_or(BlockSize::DEFAULT)
    }
}

const AFTER_HELP: &str = "\
A request hits if all its blocks hit; reads and writes are requests. Shares of the footprint (the distinct blocks of the
trace) and of the requests take a first pass over the trace, so they cannot be had of stdin. So does the policy belady,
which looks ahead: it takes 8 bytes of memory per block access and run. larc keeps its own admission policy.

With --tenant or --scenario, tenants share one cache that an allocator divides, over devices that take time: latencies, IOPS,
hits and SSD writes for each allocator and each size. Shares of the joint footprint take a first pass over the traces.
--set says more about a tenant: rate (so many times as fast) or outstanding (closed loop); start, stop (times), loop=yes;
quota, max (sizes); weight, share (numbers); latency, iops (reservations); write (wb, wt, ro, auto).

Examples:
  larder simulate trace.csv.gz
  larder simulate trace.csv.gz --policy all --size 1%..50%:12 --plot curves.html
  larder simulate trace.csv.gz --policy lru,larc --write-policy wb,wt,ro --size 10GiB --json
  larder simulate gen:zipf:theta=1.0,blocks=100000,requests=1000000 --policy lru,belady --warmup 20%
  larder simulate --tenant web=web.csv.zst --tenant db=db.csv.zst --cache 1GiB,10% --allocator larder,eci,centaur
  larder simulate --tenant db=db.csv.zst --tenant backup=backup.csv.zst --set db.latency=2ms,backup.start=90s --cache 4GiB --dwpd 1
  larder simulate --scenario scenarios.toml#two-strong --allocator all --plot pictures --json=runs.json
  larder simulate --like host.json --allocator larder,eci        (after larder record --out host.parquet --account host.json)";
