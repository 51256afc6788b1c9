//! The runs: every scenario and size under every allocator, then `larder` again under the two budgets.

use std::sync::Arc;

use larder_alloc::control::WriteBudget;
use larder_sim::tenants::{Caching, Hindsight, TenantsPlan, TenantsResult};

use crate::problem::Problem;
use crate::reproduce::bench::{Bench, Held, Trial, survey_all};
use crate::reproduce::common::Common;
use crate::simulate::size;
use crate::simulate::tenants::{Arrivals, Common as Plain, FOOTPRINT_BLOCK, Workload, of_whole_run, plan};

/// Chooses samples and lots.
const SEED: u64 = 1;

/// The share of Centaur's SSD writes that `larder` may use.
pub const SHARE_OF_CENTAUR: f64 = 0.35;

/// How everything is run.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Devices and limits.
    pub common: &'a Common,
    /// Who is compared.
    pub allocators: &'a [&'static str],
}

/// A scenario at a size of the cache.
#[derive(Clone, Debug)]
pub struct Row {
    /// The scenario's name.
    pub scenario: String,
    /// The cache as a share of the joint footprint, from 0 to 1.
    pub share: f64,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// A run for each allocator.
    pub runs: Vec<TenantsResult>,
    /// `larder` with what ECI-Cache wrote.
    pub as_eci: Budgeted,
    /// `larder` with a share of what Centaur wrote.
    pub below_centaur: Budgeted,
}

/// A run of `larder` under a budget.
#[derive(Clone, Debug)]
pub struct Budgeted {
    /// Bytes that may be written to the SSD during the run.
    pub budget_bytes: f64,
    /// The least mean latency that any cache could bring with it, in seconds.
    pub least_latency: f64,
    /// The run.
    pub run: TenantsResult,
}

impl Budgeted {
    /// SSD writes as a share of the budget; none where there was no budget at all.
    pub fn used(&self) -> Option<f64> {
        (self.budget_bytes > 0.0).then(|| written(&self.run) / self.budget_bytes)
    }
}

impl Row {
    /// The run of an allocator that is always compared.
    pub fn of(&self, allocator: &str) -> Option<&TenantsResult> {
        self.runs.iter().find(|run| run.allocator == allocator)
    }
}

/// Bytes written to the SSD.
pub fn written(run: &TenantsResult) -> f64 {
    run.total.ssd_writes.total as f64 * f64::from(run.block_bytes)
}

/// A place in the table, before anything has run there.
struct Place<'a> {
    workload: &'a Workload,
    traces: Vec<Held>,
    footprint_bytes: u64,
    cache_bytes: u64,
    /// When the last request comes, in seconds from the start, where that is known beforehand.
    last_comes: Option<f64>,
    hindsight: Arc<Hindsight>,
}

/// All rows, in the order of the scenarios and of the sizes.
pub fn find(
    bench: &mut Bench<'_>,
    setting: Setting<'_>,
    workloads: &[Workload],
) -> Result<Vec<Row>, Problem> {
    let mut places = Vec::new();
    for workload in workloads {
        places.extend(places_of(bench, setting, workload)?);
    }
    let trials = |place: &Place<'_>| {
        let trials = setting.allocators.iter().map(|allocator| place.trial(setting, allocator, None));
        trials.collect::<Vec<_>>()
    };
    let free = bench.run(places.iter().flat_map(trials).collect())?;
    let free: Vec<_> = free.chunks(setting.allocators.len()).collect();
    let budgets: Vec<_> =
        places.iter().zip(&free).flat_map(|(place, runs)| budgets(runs, place.last_comes)).collect();
    let held = budgets.iter().enumerate().map(|(at, &budget)| {
        // Two for each place.
        places[at / 2].trial(setting, larder_alloc::Larder::NAME, Some(budget))
    });
    let held = bench.run(held.collect())?;
    let mut held = held.into_iter().zip(budgets).enumerate().map(|(at, (run, budget))| Budgeted {
        budget_bytes: budget.bytes,
        least_latency: places[at / 2]
            .hindsight
            .mean_latency((budget.bytes / f64::from(run.block_bytes)) as u64),
        run,
    });
    let rows = places.iter().zip(free).map_while(|(place, runs)| {
        let (as_eci, below_centaur) = (held.next()?, held.next()?);
        Some(place.row(runs.to_vec(), as_eci, below_centaur))
    });
    Ok(rows.collect())
}

fn places_of<'a>(
    bench: &mut Bench<'_>,
    setting: Setting<'_>,
    workload: &'a Workload,
) -> Result<Vec<Place<'a>>, Problem> {
    let traces = workload.tenants.iter().map(|tenant| bench.trace(&tenant.trace));
    let traces = traces.collect::<Result<Vec<_>, _>>()?;
    let block = workload.block.unwrap_or(FOOTPRINT_BLOCK);
    let surveyed = survey_all(&traces, block)?;
    let footprint = surveyed.footprint_blocks;
    let bytes = u64::from(block.bytes());
    let plan = plan_of(setting, workload, larder_alloc::Larder::NAME, 0);
    let hindsight = Arc::new(bench.hindsight(Trial { plan, traces: traces.clone() })?);
    let last_comes = workload.length(&Arrivals::default(), Some(&surveyed)).seconds;
    let place = |blocks| Place {
        workload,
        traces: traces.clone(),
        footprint_bytes: footprint * bytes,
        cache_bytes: blocks * bytes,
        last_comes,
        hindsight: Arc::clone(&hindsight),
    };
    Ok(size::resolve(&workload.sizes, block, footprint)?.into_iter().map(place).collect())
}

fn plan_of(setting: Setting<'_>, workload: &Workload, allocator: &str, cache_bytes: u64) -> TenantsPlan {
    let caching = Caching { block: workload.block, epoch_seconds: workload.epoch, ..Caching::default() };
    let plain = Plain { limit: setting.common.limit(), seed: SEED, caching };
    let machine = setting.common.machine();
    plan(workload, &Arrivals::default(), &machine, allocator, cache_bytes, plain)
}

/// What ECI-Cache wrote, and a share of what Centaur wrote, each over its whole run.
fn budgets(runs: &[TenantsResult], last_comes: Option<f64>) -> [WriteBudget; 2] {
    [(larder_alloc::Eci::NAME, 1.0), (larder_alloc::Centaur::NAME, SHARE_OF_CENTAUR)].map(|(name, share)| {
        let run = runs.iter().find(|run| run.allocator == name);
        budget(share * run.map_or(0.0, written), last_comes, run.map_or(0.0, |run| run.seconds))
    })
}

/// So many bytes for a run: until its last request comes. Where a backing has more to do than it can the last one is done long after that, and what was saved up for then would be lost. As long as
/// another run lasted where that is not known.
fn budget(bytes: f64, last_comes: Option<f64>, lasted: f64) -> WriteBudget {
    match last_comes.filter(|&seconds| seconds > 0.0) {
        Some(seconds) => of_whole_run(bytes, seconds),
        None => WriteBudget { bytes, period_seconds: lasted },
    }
}

impl Place<'_> {
    fn trial(&self, setting: Setting<'_>, allocator: &str, budget: Option<WriteBudget>) -> Trial {
        let plan = plan_of(setting, self.workload, allocator, self.cache_bytes);
        Trial { plan: TenantsPlan { budget, ..plan }, traces: self.traces.clone() }
    }

    fn row(&self, runs: Vec<TenantsResult>, as_eci: Budgeted, below_centaur: Budgeted) -> Row {
        Row {
            scenario: self.workload.title(),
            share: self.cache_bytes as f64 / self.footprint_bytes.max(1) as f64,
            cache_bytes: self.cache_bytes,
            runs,
            as_eci,
            below_centaur,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_for_as_long_as_requests_come() {
        let of_ten_seconds = budget(77.0, Some(10.0), 500.0);
        assert!((10.0..10.1).contains(&of_ten_seconds.period_seconds), "{of_ten_seconds:?}");
        assert_eq!(of_ten_seconds.bytes, 77.0);
        for unknown in [None, Some(0.0)] {
            assert_eq!(budget(77.0, unknown, 500.0).period_seconds, 500.0);
        }
    }
}
