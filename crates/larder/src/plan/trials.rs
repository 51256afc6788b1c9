//! The simulations behind a plan: every size without a limit of SSD writes, and again under each endurance that would not last.

use larder_sim::tenants::{TenantsPlan, TenantsResult};

use super::offer::Offer;
use super::options::Options;
use crate::problem::Problem;
use crate::simulate::tenants::{Job, Opener, of_a_run, run_all};

/// A size for some tenants.
pub struct Trial<'a> {
    /// Whose: the place of the workload.
    pub owner: usize,
    /// What to simulate, without a limit.
    pub plan: TenantsPlan,
    /// The traces.
    pub sources: &'a [Opener],
    /// Reads and writes that they hold.
    pub requests: u64,
}

impl<'a> Trial<'a> {
    fn job(&self, plan: TenantsPlan) -> Job<'a> {
        Job { plan, sources: self.sources }
    }
}

/// For each trial an offer for each endurance.
pub fn offers(options: &Options, trials: &[Trial<'_>]) -> Result<Vec<Vec<Offer>>, Problem> {
    let all: Vec<_> = (0..trials.len()).collect();
    let free = simulate(options, trials, &all, |at| trials[at].plan.clone())?;
    let worn_out = worn_out(options, &free);
    let places: Vec<_> = worn_out.iter().map(|pair| pair.0).collect();
    let kept = simulate(options, trials, &places, |at| {
        kept_plan(options, &trials[worn_out[at].0], &free, worn_out[at])
    })?;
    let of_pair = |at: usize, class: usize| {
        let unlimited = offer(options, &free[at], class);
        let kept =
            worn_out.iter().position(|&pair| pair == (at, class)).map(|at| offer(options, &kept[at], class));
        kept.map_or(unlimited.clone(), |kept| kept.beside(&unlimited))
    };
    let of_trial = |at: usize| (0..options.endurance.len()).map(|class| of_pair(at, class)).collect();
    Ok((0..trials.len()).map(of_trial).collect())
}

/// Run the trials at these places, each with the plan for its place among them.
fn simulate(
    options: &Options,
    trials: &[Trial<'_>],
    places: &[usize],
    plan: impl Fn(usize) -> TenantsPlan,
) -> Result<Vec<TenantsResult>, Problem> {
    let jobs: Vec<_> = places.iter().enumerate().map(|(at, &place)| trials[place].job(plan(at))).collect();
    let requests = places.iter().map(|&place| trials[place].requests).sum();
    run_all(&jobs, options.threads, Some(requests), options.quiet)
}

/// Trial and endurance where an SSD that is written without a limit would not live long enough.
fn worn_out(options: &Options, free: &[TenantsResult]) -> Vec<(usize, usize)> {
    let pairs = (0..free.len()).flat_map(|at| (0..options.endurance.len()).map(move |class| (at, class)));
    let wears = |&(at, class): &(usize, usize)| {
        offer(options, &free[at], class).years.is_some_and(|years| years < options.years)
    };
    pairs.filter(wears).collect()
}

fn kept_plan(
    options: &Options,
    trial: &Trial<'_>,
    free: &[TenantsResult],
    (at, class): (usize, usize),
) -> TenantsPlan {
    let budget = options.endurance[class].budget(trial.plan.cache_bytes);
    TenantsPlan { budget: Some(of_a_run(budget, Some(free[at].seconds))), ..trial.plan.clone() }
}

fn offer(options: &Options, result: &TenantsResult, class: usize) -> Offer {
    let price = options.price.get(class).or(options.price.first()).copied();
    Offer::new(result, options.endurance[class], options.years, price)
}
