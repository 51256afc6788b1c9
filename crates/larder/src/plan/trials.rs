//! The simulations behind a plan: the backing alone, every size without a limit of SSD writes, and again under each endurance that would not last, or not keep up with every day.

use larder_alloc::Goals;
use larder_alloc::control::WriteBudget;
use larder_sim::tenants::{Pace, TenantPlan, TenantsPlan, TenantsResult};

use super::advice::KEPT;
use super::offer::{BEYOND, Offer, Without};
use super::options::Options;
use crate::problem::Problem;
use crate::simulate::tenants::{Job, Length, Opener, bytes, run_all};

/// A size for some tenants.
pub struct Trial<'a> {
    /// Whose: the place of the workload.
    pub owner: usize,
    /// What to simulate, without a limit.
    pub plan: TenantsPlan,
    /// How long it is.
    pub length: Length,
    /// The traces.
    pub sources: &'a [Opener],
    /// Reads and writes that they hold.
    pub requests: u64,
}

impl<'a> Trial<'a> {
    fn job(&self, plan: TenantsPlan) -> Job<'a> {
        Job { plan, sources: self.sources }
    }

    /// With an endurance as a budget: what `larder simulate` runs with the same one (`--dwpd`, `--tbw`), so that it counts what is told here.
    fn held(&self, options: &Options, class: usize) -> TenantsPlan {
        let day = options.endurance[class].budget(self.plan.cache_bytes, options.years);
        self.length.under(day, self.plan.clone())
    }

    /// Some tenant's requests wait for those before.
    pub fn is_closed(&self) -> bool {
        self.plan.tenants.iter().any(|tenant| matches!(tenant.pace, Pace::Closed { .. }))
    }
}

/// For each trial an offer for each endurance.
pub fn offers(options: &Options, trials: &[Trial<'_>]) -> Result<Vec<Vec<Offer>>, Problem> {
    let free =
        simulate(options, trials, trials.iter().enumerate().map(|(at, trial)| (at, trial.plan.clone())))?;
    let of_trial = |(at, result)| {
        (0..options.endurance.len()).map(|class| offer(options, &trials[at], result, class)).collect()
    };
    let mut offers: Vec<Vec<Offer>> = free.iter().enumerate().map(of_trial).collect();
    let pairs = (0..free.len()).flat_map(|at| (0..options.endurance.len()).map(move |class| (at, class)));
    let needs_budget = |&(at, class): &(usize, usize)| {
        let day = options.endurance[class].budget(trials[at].plan.cache_bytes, options.years);
        offers[at][class].years.is_some_and(|years| years < options.years)
            || is_exceeded(day, &free[at], trials[at].length)
    };
    let held: Vec<_> = pairs.filter(needs_budget).collect();
    let plans = held.iter().map(|&(at, class)| (at, trials[at].held(options, class)));
    let results = simulate(options, trials, plans)?;
    for (&(at, class), result) in held.iter().zip(&results) {
        let day = options.endurance[class].budget(trials[at].plan.cache_bytes, options.years);
        let new = Offer { budget_per_day: Some(day.bytes), ..offer(options, &trials[at], result, class) };
        offers[at][class] = new.beside(&offers[at][class]);
    }
    Ok(offers)
}

/// Was more written on some day of a run than may be in one? Of the last one there is a part.
fn is_exceeded(day: WriteBudget, result: &TenantsResult, length: Length) -> bool {
    let days = length.seconds.unwrap_or(result.seconds) / day.period_seconds;
    result.ssd_writes_by_day.iter().any(|of| {
        let part = (days - of.day as f64).min(1.0);
        let written = bytes(result, of.blocks.saturating_sub(BEYOND.into())) as f64;
        // What comes just as a run of whole days ends is no day's.
        part > 0.0 && written > day.bytes * part / KEPT
    })
}

/// For each of so many workloads what it has without an SSD.
pub fn without(options: &Options, trials: &[Trial<'_>], workloads: usize) -> Result<Vec<Without>, Problem> {
    let largest = |owner| trials.iter().rposition(|trial| trial.owner == owner);
    let plans = (0..workloads).filter_map(largest).map(|at| (at, backing_alone(&trials[at].plan)));
    let results = simulate(options, trials, plans)?;
    if results.iter().any(|result| result.total.requests == 0) {
        let what = "no read or write comes before the run ends";
        return Err(Problem::new(what, "give a longer --duration, or tenants that come earlier"));
    }
    Ok(results.iter().map(Without::new).collect())
}

/// The same tenants with an SSD to which nothing may be written; nothing is promised to them that it would take one to keep.
fn backing_alone(plan: &TenantsPlan) -> TenantsPlan {
    let tenant =
        |tenant: &TenantPlan| TenantPlan { quota_bytes: None, goals: Goals::default(), ..tenant.clone() };
    TenantsPlan {
        tenants: plan.tenants.iter().map(tenant).collect(),
        budget: Some(WriteBudget::dwpd(0.0, plan.cache_bytes)),
        ..plan.clone()
    }
}

/// Run these plans, each with the place of the trial whose traces it takes.
fn simulate(
    options: &Options,
    trials: &[Trial<'_>],
    plans: impl Iterator<Item = (usize, TenantsPlan)>,
) -> Result<Vec<TenantsResult>, Problem> {
    let (places, jobs): (Vec<_>, Vec<_>) = plans.map(|(at, plan)| (at, trials[at].job(plan))).unzip();
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let requests = places.iter().map(|&at| trials[at].requests).sum();
    run_all(&jobs, options.threads, Some(requests), options.quiet)
}

fn offer(options: &Options, trial: &Trial<'_>, result: &TenantsResult, class: usize) -> Offer {
    let price = options.price.get(class).or(options.price.first()).copied();
    let offer = Offer::new(result, options.endurance[class], options.years, price);
    // At the times of the traces every SSD serves as many requests in a second: that says nothing about its price.
    Offer { price_per_iops: offer.price_per_iops.filter(|_| trial.is_closed()), ..offer }
}
