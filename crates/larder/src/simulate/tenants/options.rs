//! The options of a simulation of tenants that share a cache: whose requests, on what devices, divided how.

use std::num::NonZero;

use clap::{Arg, Args};
use larder_alloc::Objective;
use larder_alloc::control::WriteBudget;
use larder_daemon::units::parse_size;
use larder_sim::tenants::{DeviceSpec, TenantsPlan};

use super::length::{Length, of_whole_run};
use super::settings::{NamedTrace, Setting};
use crate::amount::{between_seconds, factor, positive, some_seconds};
use crate::analyze::Sample;
use crate::problem::Problem;
use crate::simulate::size::SizeChoice;

/// What all options need that mean nothing without tenants.
pub const TENANTS: &str = "asks_for_tenants";

/// Whose requests, and when.
#[derive(Debug, Default, Args)]
#[group(id = TENANTS, multiple = true)]
pub struct Asked {
    /// A tenant and its trace (all volumes of it): a file, or `gen:SPEC`; what follows the first `=` is the trace. Once for each tenant.
    #[arg(long = "tenant", value_name = "NAME=TRACE")]
    pub tenants: Vec<NamedTrace>,
    /// Tenants as a file of scenarios lists them (TOML), with the sizes of the cache: all scenarios, or the one named. May be given again.
    #[arg(long = "scenario", value_name = "FILE[#NAME]")]
    pub scenarios: Vec<String>,
}

/// What a daemon's configuration says.
pub const OF_LIKE: [&str; 14] = [
    "scenarios",
    "settings",
    "cache",
    "epoch",
    "min",
    "objective",
    "sample",
    "dwpd",
    "tbw",
    "years",
    "ssd_write_budget",
    "block",
    "policy",
    "write_policy",
];

/// How the tenants' requests come.
#[derive(Debug, Default, Args)]
pub struct Arrivals {
    /// What is wanted for a tenant: rate, start, stop, outstanding, loop, quota, max, weight, share, latency, iops, write.
    #[arg(long = "set", value_name = "NAME.KEY=VALUE,…", value_delimiter = ',')]
    pub settings: Vec<Setting>,
    /// Closed loop: every tenant keeps N requests outstanding, and the times of the traces say nothing.
    #[arg(long, value_name = "N", conflicts_with = "rate", value_parser = outstanding)]
    pub closed: Option<NonZero<u32>>,
    /// Open loop, so many times as fast as the traces.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub rate: Option<f64>,
    /// End after so much time.
    #[arg(long, value_name = "TIME", value_parser = some_seconds)]
    pub duration: Option<f64>,
    /// Keep the times at which the traces began beside each other, instead of letting all begin together.
    #[arg(long)]
    pub aligned: bool,
}

/// Devices, and how often is decided.
#[derive(Debug, Default, Args)]
pub struct Machine {
    /// The SSD: nvme, sata-ssd, or one of them with changes (`nvme:parallel=16,random-read=100us`) [default: nvme].
    #[arg(long, value_name = "DEVICE")]
    pub ssd: Option<DeviceSpec>,
    /// What lies behind the cache: san, hdd-10k, sata-ssd, or one of them with changes (`san:parallel=8`) [default: san].
    #[arg(long, value_name = "DEVICE")]
    pub backing: Option<DeviceSpec>,
    /// Every tenant has a backing device of its own.
    #[arg(long)]
    pub backing_each: bool,
    /// Time between decisions [default: the allocator's own].
    #[arg(long, value_name = "TIME", value_parser = between_seconds)]
    pub epoch: Option<f64>,
    /// Time between the batches of a mover, for allocators whose systems have one [default: a fifth of the epoch].
    #[arg(long, value_name = "TIME", value_parser = between_seconds)]
    pub mover: Option<f64>,
    /// The least that a tenant gets [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub min: Option<u64>,
    /// What `centaur` and `convex-hull` minimise: mean-latency, sum-of-latencies, total-misses or iops [default: mean-latency].
    #[arg(long, value_name = "WHAT", value_parser = objective)]
    pub objective: Option<Objective>,
    /// The blocks that the analyzers look at: a share (`1%`), or a number of them (`8192`) [default: 8192].
    #[arg(long, value_name = "RATE|BLOCKS")]
    pub sample: Option<Sample>,
}

/// The cache, and who divides it.
#[derive(Debug, Default, Args)]
pub struct Division {
    /// Sizes of the cache: bytes (`10GiB`), shares of the tenants' joint footprint (`10%`), or a range of either.
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    pub cache: Vec<SizeChoice>,
    /// Who divides it: names of allocators, or `all` (each but optimal, which is for few tenants) [default: larder].
    #[arg(long, value_name = "A,…", value_delimiter = ',', value_parser = allocator)]
    pub allocator: Vec<String>,
    /// Let the SSD be written so many times its size a day; a last day that is not a whole one, or a shorter run, has its part of that; it is spent evenly where nothing tells how long the run is (--closed).
    #[arg(long, value_name = "DRIVE WRITES", value_parser = positive, conflicts_with_all = ["tbw", "ssd_write_budget"])]
    pub dwpd: Option<f64>,
    /// Let the SSD be written so many terabytes over --years.
    #[arg(long, value_name = "TERABYTES", value_parser = positive, requires = "years", conflicts_with = "ssd_write_budget")]
    pub tbw: Option<f64>,
    /// The years of --tbw.
    #[arg(long, value_name = "N", value_parser = positive, requires = "tbw")]
    pub years: Option<f64>,
    /// Let the SSD be written so much in the whole run; the request with which it is used up is still written whole.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub ssd_write_budget: Option<u64>,
    /// Size a tenant by measurement while predictions for it are wrong by more than 10 %, as the daemon does, also where an allocator's paper does not (eci).
    #[arg(long)]
    pub corrected: bool,
    /// Tell the reasons of decisions in full, however many there are.
    #[arg(long)]
    pub reasons: bool,
}

impl Division {
    /// True if the SSD may not be written as much as anybody likes.
    pub fn has_budget(&self) -> bool {
        self.dwpd.is_some() || self.tbw.is_some() || self.ssd_write_budget.is_some()
    }

    /// A run under what the SSD may be written.
    pub fn under(&self, length: Length, plan: TenantsPlan) -> Result<TenantsPlan, Problem> {
        if self.has_budget() {
            length.check()?;
        }
        if let Some(drive_writes) = self.dwpd {
            return Ok(length.under(WriteBudget::dwpd(drive_writes, plan.cache_bytes), plan));
        }
        if let (Some(terabytes), Some(years)) = (self.tbw, self.years) {
            return Ok(length.under(WriteBudget::tbw(terabytes, years), plan));
        }
        let Some(bytes) = self.ssd_write_budget else { return Ok(plan) };
        let seconds = length.seconds.filter(|&seconds| seconds > 0.0).ok_or_else(|| {
            let what = "--ssd-write-budget is for the whole run, and nothing tells how long it is";
            Problem::new(what, "give a --duration, or the budget as --dwpd or --tbw")
        })?;
        Ok(TenantsPlan { budget: Some(of_whole_run(bytes as f64, seconds)), ..plan })
    }
}

/// Options that mean something only where tenants share the cache.
const WITH_TENANTS: [&str; 21] = [
    "settings",
    "closed",
    "rate",
    "duration",
    "aligned",
    "ssd",
    "backing",
    "backing_each",
    "epoch",
    "mover",
    "min",
    "objective",
    "sample",
    "cache",
    "allocator",
    "dwpd",
    "tbw",
    "years",
    "ssd_write_budget",
    "corrected",
    "reasons",
];

/// Options that mean something only for one trace.
const WITHOUT_TENANTS: [&str; 7] = ["trace", "admission", "size", "warmup", "interval", "series", "csv"];

/// The same argument of `larder simulate`, refused where it means nothing; what is for one trace alone has a heading that says so.
pub fn where_it_fits(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "tenants" | "scenarios" | "like" => arg,
        "trace" => arg.required_unless_present(TENANTS).conflicts_with(TENANTS),
        id if WITH_TENANTS.contains(&id) => arg.requires(TENANTS),
        id if WITHOUT_TENANTS.contains(&id) => arg.conflicts_with(TENANTS).help_heading("One trace alone"),
        _ => arg,
    }
}

/// More requests than any queue of a device takes would only fill memory.
const OUTSTANDING_MAX: u32 = 65_536;

/// Requests that a tenant keeps outstanding.
pub fn outstanding(text: &str) -> Result<NonZero<u32>, String> {
    let count = text.trim().parse::<NonZero<u32>>().ok().filter(|count| count.get() <= OUTSTANDING_MAX);
    count.ok_or_else(|| format!("{text} is no number of requests from 1 to {OUTSTANDING_MAX}"))
}

fn allocator(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text == ALL || larder_alloc::NAMES.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("{text} is no allocator; there are {}, or all", larder_alloc::NAMES.join(", ")))
}

/// Each allocator for any number of tenants.
const ALL: &str = "all";

/// The allocators asked for, each once.
pub fn allocators(asked: &[String]) -> Vec<String> {
    let all = || {
        larder_alloc::NAMES.into_iter().filter(|&name| name != larder_alloc::Optimal::NAME).map(str::to_owned)
    };
    let default = [DEFAULT_ALLOCATOR.to_owned()];
    let asked = if asked.is_empty() { &default[..] } else { asked };
    let mut names: Vec<String> = Vec::new();
    for name in asked {
        let named = if name == ALL { all().collect() } else { vec![name.clone()] };
        names.extend(named);
    }
    let mut distinct = Vec::new();
    names.into_iter().for_each(|name| {
        if !distinct.contains(&name) {
            distinct.push(name)
        }
    });
    distinct
}

/// Who divides the cache where nobody is asked for.
pub const DEFAULT_ALLOCATOR: &str = "larder";

fn objective(text: &str) -> Result<Objective, String> {
    match text.trim() {
        "mean-latency" => Ok(Objective::MeanLatency),
        "sum-of-latencies" => Ok(Objective::SumOfLatencies),
        "total-misses" => Ok(Objective::TotalMisses),
        "iops" => Ok(Objective::Iops),
        _ => Err("there are mean-latency, sum-of-latencies, total-misses, iops".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::length::AFTER_LAST;
    use super::*;

    #[test]
    fn budgets_of_short_runs_are_parts_of_a_day() {
        let division = Division { dwpd: Some(2.0), ..Division::default() };
        let under = |division: &Division, seconds| {
            let length = Length { seconds, may_end_early: false };
            division.under(length, TenantsPlan::new(Vec::new(), "larder", 1000))
        };
        let budget = |seconds| under(&division, seconds).expect("a budget").budget.expect("a budget");
        assert_eq!(budget(Some(864.0)), WriteBudget { bytes: 20.0, period_seconds: 864.0 + AFTER_LAST });
        for long in [None, Some(86_400.0), Some(1e6)] {
            assert_eq!(budget(long), WriteBudget { bytes: 2000.0, period_seconds: 86_400.0 });
        }
        // Whole days' writes would all go at once, or never.
        assert!(under(&division, Some(0.0)).is_err());
        let spends_evenly = |seconds| under(&division, seconds).expect("a budget").spends_evenly;
        assert_eq!([Some(864.0), Some(1e6), None].map(spends_evenly), [false, false, true]);
        // Of the last day there is a part.
        assert_eq!(under(&division, Some(1e6)).expect("a budget").ends_seconds, Some(1e6));
        let whole = Division { ssd_write_budget: Some(77), ..Division::default() };
        let known = under(&whole, Some(5.0)).expect("known");
        assert_eq!(known.budget, Some(WriteBudget { bytes: 77.0, period_seconds: 5.0 + AFTER_LAST }));
        assert!(under(&whole, None).is_err());
        assert_eq!(under(&Division::default(), None).expect("none").budget, None);
    }

    #[test]
    fn allocators_come_once() {
        let of = |names: &[&str]| allocators(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), ["larder"]);
        assert_eq!(of(&["eci", "static", "eci"]), ["eci", "static"]);
        let all = of(&["optimal", "all"]);
        assert_eq!(all.len(), larder_alloc::NAMES.len());
        assert!(!of(&["all"]).contains(&"optimal".to_owned()));
    }
}
