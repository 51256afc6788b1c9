//! `larder simulate --tenant …`: what allocators bring to tenants that share a cache.

mod accuracy;
mod beside;
mod found;
mod grid;
mod json;
mod length;
mod like;
mod options;
mod pause;
mod plot;
mod promises;
mod report;
mod runs;
mod scenario;
mod settings;
mod sources;
mod workload;

use std::path::Path;

use larder_daemon::units::HumanSize;
use larder_policy::spec::{AdmissionSpec, CachingSpec};
use larder_sim::BlockSize;
use larder_sim::tenants::{Backing, Caching, TenantsPlan, TenantsResult};

use super::{Options, matrix, size};
use crate::problem::Problem;
use crate::{output, table};
pub use found::{FOOTPRINT_BLOCK, bytes};
use found::{Found, Group};
pub use grid::table as grid;
pub use length::{Length, of_whole_run};
use like::Like;
pub use options::{Arrivals, Asked, DEFAULT_ALLOCATOR, Division, Machine, OF_LIKE, TENANTS, where_it_fits};
pub use pause::told as pause_told;
pub use report::busy;
pub use runs::{Job, all as run_all, in_hindsight};
pub use scenario::read as read_scenarios;
pub use sources::{Opener, openers};
pub use workload::{Surveyed, Workload, survey, workloads};

/// Simulate what the options ask for, and tell what was found.
pub fn run(options: &Options) -> Result<(), Problem> {
    let place = options.plot.as_deref().map(plot::Place::new).transpose()?;
    options.json.iter().flatten().map(AsRef::<Path>::as_ref).try_for_each(output::check)?;
    if let Some(path) = &options.like {
        return run_like(options, place.as_ref(), &Like::load(path)?);
    }
    let all = workloads(&options.asked, &options.arrivals, options.limit, &[])?;
    let openers = all
        .iter()
        .map(|workload| openers(workload, options.format, &options.arrivals))
        .collect::<Result<Vec<_>, _>>()?;
    let surveys = surveys(options, &all)?;
    let mut jobs = Vec::new();
    for (at, workload) in all.iter().enumerate() {
        let plans = plans(options, workload, surveys.get(at))?;
        jobs.extend(plans.into_iter().map(|plan| (at, Job { plan, sources: &openers[at] })));
    }
    let requests = (!surveys.is_empty()).then(|| jobs.iter().map(|(at, _)| surveys[*at].requests).sum());
    let (owners, jobs): (Vec<usize>, Vec<_>) = jobs.into_iter().unzip();
    let results = run_all(&jobs, options.threads, requests, options.quiet)?;
    let empty = results.iter().zip(&owners).find(|(result, _)| result.total.requests == 0);
    if let Some((_, &at)) = empty {
        let what = format!("no read or write came of {}", all[at].title());
        return Err(Problem::new(
            what,
            "`larder trace info` tells what a trace holds; a stop or a --duration may end the run too early",
        ));
    }
    tell(options, place.as_ref(), &found(&all, &surveys, &owners, &jobs, &results, options), None)
}

/// Simulate what a daemon does, or did.
fn run_like(options: &Options, place: Option<&plot::Place>, like: &Like) -> Result<(), Problem> {
    let all = [like.workload(options)?];
    let sources = match like.openers(options) {
        Some(openers) => openers,
        None => openers(&all[0], options.format, &options.arrivals)?,
    };
    let plans = like.plans(options)?;
    let jobs: Vec<_> = plans.into_iter().map(|plan| Job { plan, sources: &sources }).collect();
    let owners = vec![0; jobs.len()];
    let results = run_all(&jobs, options.threads, None, options.quiet)?;
    tell(options, place, &found(&all, &[], &owners, &jobs, &results, options), Some(like))
}

/// What the traces hold, where anything depends on it; else nothing.
fn surveys(options: &Options, all: &[Workload]) -> Result<Vec<Surveyed>, Problem> {
    let shares = all.iter().flat_map(|workload| sizes(options, workload)).any(|size| size.is_share());
    if !shares && !options.division.has_budget() {
        return Ok(Vec::new());
    }
    survey(all, options.format, |workload| footprint_block(options, workload), options.limit, options.quiet)
}

fn footprint_block(options: &Options, workload: &Workload) -> BlockSize {
    options.block.or(workload.block).unwrap_or(FOOTPRINT_BLOCK)
}

/// Sizes of the cache: those of the command line go before those of the scenario.
fn sizes<'a>(options: &'a Options, workload: &'a Workload) -> &'a [size::SizeChoice] {
    if options.division.cache.is_empty() { &workload.sizes } else { &options.division.cache }
}

/// The runs over a workload: by size, then by allocator.
fn plans(
    options: &Options,
    workload: &Workload,
    surveyed: Option<&Surveyed>,
) -> Result<Vec<TenantsPlan>, Problem> {
    let (choices, block) = (sizes(options, workload), footprint_block(options, workload));
    if choices.is_empty() {
        let what = format!("nothing tells how large the cache is that {} share", workload.title());
        return Err(Problem::new(
            what,
            "give it as --cache 10GiB, or as a share of the footprint: --cache 10%",
        ));
    }
    let footprint = surveyed.map_or(0, |surveyed| surveyed.footprint_blocks);
    if choices.iter().any(size::SizeChoice::is_share) && footprint == 0 {
        let what = format!(
            "the traces of {} hold no reads or writes: a share of their footprint is no cache size",
            workload.title()
        );
        return Err(Problem::new(what, "give other traces, or sizes in bytes (--cache 1GiB)"));
    }
    let caching = Caching {
        caching: caching(options)?,
        write: write(options)?,
        block: options.block.or(workload.block),
        epoch_seconds: options.machine.epoch.or(workload.epoch),
        mover_seconds: options.machine.mover,
        partitioned: None,
    };
    let mut plans = Vec::new();
    for blocks in size::resolve(choices, block, footprint)? {
        let cache_bytes = blocks * u64::from(block.bytes());
        let length = workload.length(&options.arrivals, surveyed);
        for allocator in options::allocators(&options.division.allocator) {
            least_fits(workload, &options.machine, &allocator, cache_bytes, "--cache")?;
            let common = Common { limit: options.limit, seed: options.seed, caching };
            let plan = plan(workload, &options.arrivals, &options.machine, &allocator, cache_bytes, common);
            let plan = TenantsPlan { corrected: options.division.corrected, ..plan };
            plans.push(options.division.under(length, plan)?);
        }
    }
    Ok(plans)
}

/// A cache has room for the least of all tenants; or the part of it that is divided has, where there is one.
pub fn least_fits(
    workload: &Workload,
    machine: &Machine,
    allocator: &str,
    cache_bytes: u64,
    option: &str,
) -> Result<(), Problem> {
    let Some(min) = machine.min else { return Ok(()) };
    let together = workload.together();
    let least = min.saturating_mul(together as u64);
    let layout = larder_alloc::by_name(allocator).map(|allocator| allocator.profile().layout);
    let (divided, what) = match layout {
        Some(larder_alloc::Layout::Combined { partitioned }) => (
            (cache_bytes as f64 * partitioned) as u64,
            format!("the part of the cache that {allocator} divides"),
        ),
        _ => (cache_bytes, "the cache".into()),
    };
    if least <= divided {
        return Ok(());
    }
    let what = format!(
        "the least of {together} tenants (--min) is {} together, and {what} has {}",
        HumanSize(least),
        HumanSize(divided)
    );
    Err(Problem::new(what, format!("give a smaller --min, or a larger {option}")))
}

/// What is the same in all runs.
#[derive(Clone, Copy)]
pub struct Common {
    /// Reads and writes of each tenant, at most.
    pub limit: Option<u64>,
    /// Chooses samples and lots.
    pub seed: u64,
    /// What the cache is like.
    pub caching: Caching,
}

/// A run over a workload without a budget.
pub fn plan(
    workload: &Workload,
    arrivals: &Arrivals,
    machine: &Machine,
    allocator: &str,
    cache_bytes: u64,
    common: Common,
) -> TenantsPlan {
    let own = || {
        larder_alloc::by_name(allocator)
            .map_or(FOOTPRINT_BLOCK.bytes(), |allocator| allocator.profile().block_bytes)
    };
    let block_bytes = common.caching.block.map_or_else(own, BlockSize::bytes);
    let pace = Workload::pace(arrivals);
    let tenants =
        workload.tenants.iter().map(|tenant| tenant.settings.plan(&tenant.name, pace, block_bytes)).collect();
    let default = TenantsPlan::new(tenants, allocator, cache_bytes);
    TenantsPlan {
        caching: common.caching,
        ssd: machine.ssd.unwrap_or(default.ssd),
        backing: machine.backing.unwrap_or(default.backing),
        backings: if machine.backing_each { Backing::Each } else { Backing::Shared },
        aligned: arrivals.aligned,
        duration_seconds: arrivals.duration,
        limit: common.limit,
        min_bytes: machine.min.unwrap_or(default.min_bytes),
        objective: machine.objective.unwrap_or_default(),
        sampling: machine.sample.map_or(default.sampling, |sample| sample.0),
        seed: common.seed,
        ..default
    }
}

/// Replacement and admission in place of the allocators' own.
fn caching(options: &Options) -> Result<Option<CachingSpec>, Problem> {
    let asked = matrix::caching(&options.policy, &[AdmissionSpec::Always]);
    let refused = |what: &str| {
        Err(Problem::new(what, "name one that a running cache can follow, as in --policy lru+nth:2, or none"))
    };
    match asked[..] {
        [] => Ok(None),
        [one] if one.policy() == larder_policy::spec::PolicySpec::Belady => {
            refused("belady has to know the trace beforehand, and tenants share the cache as it comes")
        }
        [one] => Ok(Some(one)),
        _ => refused("tenants that share a cache follow one replacement policy, and several are named"),
    }
}

/// The write policy at the start in place of the allocators' own.
fn write(options: &Options) -> Result<Option<larder_sim::WritePolicy>, Problem> {
    match options.write_policy[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Problem::new(
            "tenants that share a cache start under one write policy, and several are named",
            "name one, or none; --set NAME.write=ro is for one tenant",
        )),
    }
}

/// Results by workload and by size. Those of a workload stand together, and in them those of a size.
fn found<'a>(
    all: &'a [Workload],
    surveys: &[Surveyed],
    owners: &[usize],
    jobs: &[Job<'_>],
    results: &'a [TenantsResult],
    options: &Options,
) -> Vec<Found<'a>> {
    let of_workload = |(at, workload): (usize, &'a Workload)| {
        let from = owners.partition_point(|&owner| owner < at);
        let to = owners.partition_point(|&owner| owner <= at);
        let groups = results[from..to].chunk_by(|a, b| a.cache_bytes == b.cache_bytes);
        let block = u64::from(footprint_block(options, workload).bytes());
        Found {
            workload,
            goals: jobs[from].plan.tenants.iter().map(|tenant| tenant.goals).collect(),
            footprint_bytes: surveys.get(at).map(|surveyed| surveyed.footprint_blocks * block),
            groups: groups.map(|runs| Group { cache_bytes: runs[0].cache_bytes, runs }).collect(),
        }
    };
    all.iter().enumerate().map(of_workload).collect()
}

fn tell(
    options: &Options,
    place: Option<&plot::Place>,
    all: &[Found<'_>],
    like: Option<&Like>,
) -> Result<(), Problem> {
    if let Some(file) = &options.json {
        let json = json::render(all, like)?;
        file.as_deref().map_or_else(|| output::print(&json), |file| output::save(file, &json))?;
    }
    if let Some(place) = place {
        plot::save(place, all)?;
    }
    if options.json == Some(None) || options.quiet {
        return Ok(());
    }
    let width = table::terminal_width();
    let beside = like.map_or_else(String::new, |like| beside::table(all, like, width));
    output::print(&(report::render(all, options.division.reasons, width) + &beside))
}
