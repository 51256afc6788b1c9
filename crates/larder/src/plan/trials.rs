//! The simulations behind a plan: the backing alone, every size without a limit of SSD writes, and again under each endurance that would not last.

use larder_alloc::Goals;
use larder_alloc::control::WriteBudget;
use larder_sim::tenants::{Pace, TenantPlan, TenantsPlan, TenantsResult};

use super::advice::KEPT;
use super::offer::{Offer, Without};
use super::options::Options;
use crate::problem::Problem;
use crate::simulate::tenants::{Job, Opener, of_a_run, run_all};

/// Runs under one endurance, at most. How long a run takes, and so its part of a day's writes, is known only after it where requests wait
/// for each other (a closed loop, a backing that is overloaded).
const ROUNDS: usize = 5;

/// A run may be longer or shorter by this share than was thought.
const LENGTH_OFF: f64 = 0.02;

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

    /// Some tenant's requests wait for those before.
    pub fn is_closed(&self) -> bool {
        self.plan.tenants.iter().any(|tenant| matches!(tenant.pace, Pace::Closed { .. }))
    }
}

/// What an SSD is to be simulated under next.
struct Held {
    /// The places of trial and endurance.
    place: (usize, usize),
    /// The run takes so long, as far as is known.
    seconds: f64,
    /// The part of the budget that is given: less than all where that came to too much.
    part: f64,
    /// A run before kept to the endurance.
    was_kept: bool,
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
    let wears =
        |&(at, class): &(usize, usize)| offers[at][class].years.is_some_and(|years| years < options.years);
    let mut open: Vec<_> = pairs
        .filter(wears)
        .map(|place| Held { place, seconds: free[place.0].seconds, part: 1.0, was_kept: false })
        .collect();
    for round in 1..=ROUNDS {
        let plans = open.iter().map(|held| (held.place.0, held.plan(options, &trials[held.place.0])));
        let results = simulate(options, trials, plans)?;
        let mut again = Vec::new();
        for (held, result) in open.into_iter().zip(&results) {
            let (at, class) = held.place;
            let day = options.endurance[class].budget(trials[at].plan.cache_bytes, options.years);
            let new = offer(options, &trials[at], result, class);
            let over = new.over(day.bytes);
            let is_kept = over <= 1.0 / KEPT;
            let has_right_length = held.seconds >= day.period_seconds
                || (result.seconds / held.seconds - 1.0).abs() <= LENGTH_OFF;
            if is_kept || !held.was_kept {
                offers[at][class] = new.beside(&offers[at][class]);
            }
            if !is_kept || !has_right_length {
                // Where the length alone does not mend it, a smaller part does.
                let is_less = !is_kept && (has_right_length || round > 1);
                let part = if is_less { held.part / over } else { held.part };
                again.push(Held {
                    seconds: result.seconds,
                    part,
                    was_kept: held.was_kept || is_kept,
                    ..held
                });
            }
        }
        open = again;
    }
    Ok(offers)
}

impl Held {
    fn plan(&self, options: &Options, trial: &Trial<'_>) -> TenantsPlan {
        let day = options.endurance[self.place.1].budget(trial.plan.cache_bytes, options.years);
        let day = WriteBudget { bytes: day.bytes * self.part, ..day };
        TenantsPlan { budget: Some(of_a_run(day, Some(self.seconds))), ..trial.plan.clone() }
    }
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
