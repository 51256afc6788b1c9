//! The options of `larder plan`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use larder_sim::BlockSize;
use larder_trace::Format;

use super::endurance::{self, Endurance};
use crate::amount::positive;
use crate::block;
use crate::input::TraceName;
use crate::simulate::size::SizeChoice;
use crate::simulate::tenants::{Arrivals, Asked, Machine};

/// Options of `larder plan`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// Traces, each of one tenant: files (compressed or not), or `gen:SPEC` for generated ones.
    #[arg(value_name = "TRACE", required_unless_present = "asks_for_tenants")]
    pub traces: Vec<TraceName>,
    #[command(flatten)]
    pub asked: Asked,
    /// The format of the traces, where their content does not tell.
    #[arg(short, long)]
    pub format: Option<Format>,
    /// Sizes of the SSD: bytes (`480GB`, `1.92TB`), shares of the footprint (`10%`), or a range of either [default: those of the
    /// scenario, or 5, 10, 20, 40 and 80 % of the footprint, rounded up to powers of two].
    #[arg(short, long, value_name = "SIZE,…", value_delimiter = ',')]
    pub size: Vec<SizeChoice>,
    /// Endurances: drive writes per day over --years (`0.3`, `1DWPD`), or terabytes, to be written in no less than --years (`600TBW`; the years of a warranty may stand there, `600TB/5`, `600TBW/5y`, and change nothing).
    #[arg(short, long, value_name = "E,…", value_delimiter = ',', default_value = "0.3,1,3")]
    pub endurance: Vec<Endurance>,
    /// Years that the SSD is to live.
    #[arg(long, value_name = "N", value_parser = endurance::years, default_value = "5")]
    pub years: f64,
    /// What a GiB costs: one price for all, or one for each of --endurance. Any currency.
    #[arg(long, value_name = "PRICE,…", value_delimiter = ',', value_parser = price)]
    pub price: Vec<f64>,
    /// An SSD that costs 1 % more is worth it if the mean latency falls by at least so many per cent.
    #[arg(long, value_name = "PER CENT", value_parser = positive, default_value = "0.1")]
    pub worth: f64,
    /// The unit of caching, a power of two from 512 to 128KiB.
    #[arg(short, long, value_name = "SIZE", value_parser = block::size)]
    pub block: Option<BlockSize>,
    /// Print JSON instead of the table (an object, or a list of them for several scenarios); with `=FILE`, write it there beside the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Write a report for people: one HTML file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Threads to work with, each for a run [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Chooses the samples, and what policies draw lots for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Take only the first N reads and writes of each trace.
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Show no progress, and no table.
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten, next_help_heading = "How the requests come")]
    pub arrivals: Arrivals,
    #[command(flatten, next_help_heading = "The machine")]
    pub machine: Machine,
}

/// A price that somebody pays.
fn price(text: &str) -> Result<f64, String> {
    positive(text).map_err(|why| {
        format!("{why}; write what a GiB costs (\"0.10\"), or leave --price out: size then stands for it")
    })
}

const AFTER_HELP: &str = "\
Every size is simulated with the allocator `larder`, first without a limit of SSD writes. The traces are taken for what every
moment of the SSD's life is like: SSD writes per day are those of the run, scaled to a day, and an SSD lives as long as the
writes last that it is rated for (drive writes per day: over --years). Where an SSD would be worn out before --years, or written more
than its share on some day, it is simulated again with its endurance as a budget that is kept to, as `larder simulate` does with
--dwpd or --tbw; the columns `no limit` tell what it was before. An SSD that is written no more than its share on any day needs
no budget: its figures are for `write_budget = \"unlimited\"` (JSON: `budget_bytes_per_day` is null). With a budget, which is spent
over the day, it would be written less, and requests may take longer. The row `none` is what the tenants have without an SSD.

The recommended SSD: from none on, and then from the cheapest one, a dearer one is taken as long as it is worth its price
(--worth, and at least 1 % less latency), among those that live for --years. Without prices, size stands for price. What 1000
IOPS cost is told with --closed: at the times of the traces every SSD serves the same number of them.

Examples:
  larder plan web.csv.zst db.csv.zst
  larder plan db.csv.zst --size 240GB,480GB,960GB --endurance 1,3 --price 0.10,0.18 --html plan.html
  larder plan --tenant db=db.csv.zst --set db.rate=4 --endurance 600TBW --years 7 --backing hdd-10k --json
  larder plan --scenario scenarios.toml#two-strong --price 0.10";
