//! An analysis of a trace in one pass: what caches of every size would do under each write policy, and what the accesses are like.
//!
//! Blocks are numbered once, as the trace is read; then workers take the numbered batches: a lane for each kind of cache, one that counts request classes, one that
//! tells where accesses go. Each takes all batches in order, so what is found does not depend on the number of threads. Where blocks are sampled, one worker
//! that looks at few of them takes the place of the lanes.

use larder_locality::{Bank, Blocks, ClassCounts, CurvePolicy, Reach, Sampling};

use crate::clock::Clock;
use crate::feed::Feed;
use crate::{AddressMap, Analysis, AnalysisPlan, Progress, SimError, Source, Span, pool};
use classes::Classes;
use intake::Intake;
use jobs::Job;
use places::Places;
use sampled::Sampled;

mod axis;
mod classes;
mod hot;
mod intake;
mod jobs;
mod map;
mod parts;
mod places;
mod sampled;
mod stretches;
mod windows;

/// Analyze a trace. `progress` is told after every batch.
///
/// The curves are those of [`simulate`](crate::simulate()) with LRU and without an admission policy, for every size, to the last request; but where blocks
/// are sampled, they are estimates.
///
/// # Errors
/// Where the trace cannot be read to its end, where it has more blocks than can be told apart, and where the plan asks for what cannot be.
pub fn analyze<S: Source>(
    source: S,
    plan: &AnalysisPlan,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<Analysis, SimError<S::Error>> {
    let clock = Clock::new(Span::Requests(0), None);
    let feed = Feed::new(source, plan.block, plan.limit, clock).with_requests().with_footprint(0);
    let numbers = (plan.sampling == Sampling::Exact).then(|| Blocks::new(plan.seed));
    let mut intake = Intake::new(feed, numbers, mover_epoch(plan)?);
    let mut jobs = jobs(plan)?;
    let mut watch = |intake: &Intake<S>| progress(Progress { requests: intake.requests() });
    pool::drive(&mut intake, &mut jobs, plan.threads, &mut watch)?;
    Ok(gather(plan, &intake, jobs))
}

/// The length of a mover epoch, if one is asked for.
fn mover_epoch<E>(plan: &AnalysisPlan) -> Result<Option<Span>, SimError<E>> {
    match plan.mover_epoch {
        _ if !plan.policies.contains(&CurvePolicy::Batched) => Ok(None),
        Span::Requests(0) | Span::TimeNs(0) => Err(SimError::EmptyInterval),
        epoch => Ok(Some(epoch)),
    }
}

fn jobs<E>(plan: &AnalysisPlan) -> Result<Vec<Job>, SimError<E>> {
    let mut jobs = match plan.sampling {
        Sampling::Exact => lanes(&plan.policies),
        Sampling::Rate(_) | Sampling::Blocks(_) => vec![Job::Sampled(Box::new(Sampled::new(plan)))],
    };
    if !plan.bank.is_empty() {
        let bank = Bank::new(&plan.bank, Reach::Footprint, plan.bank_blocks, plan.seed)?;
        jobs.push(Job::Bank(Box::new(bank)));
    }
    jobs.push(Job::Places(Box::new(Places::new(plan.block))));
    // Each job and the reading can keep a thread busy.
    let idle = plan.threads.get().saturating_sub(jobs.len() + 1);
    if idle > 0 {
        jobs.iter_mut().for_each(|job| job.spread(idle + 1));
    }
    Ok(jobs)
}

/// What counts the curves of these policies exactly, and the request classes.
fn lanes(policies: &[CurvePolicy]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for &policy in policies {
        if !jobs.iter().any(|job| job.counts(policy)) {
            jobs.push(Job::of(policy));
        }
    }
    jobs.push(Job::Classes(Box::new(Classes::new())));
    jobs
}

fn gather<S: Source>(plan: &AnalysisPlan, intake: &Intake<S>, jobs: Vec<Job>) -> Analysis {
    let summary = intake.summary();
    let mut analysis = Analysis {
        summary,
        block: plan.block,
        rate: 1.0,
        sampled_blocks: summary.footprint_blocks,
        classes: ClassCounts::default(),
        curves: Vec::new(),
        bank: Vec::new(),
        windows: Vec::new(),
        map: AddressMap::default(),
        hot: Vec::new(),
        memory_bytes: intake.memory_bytes() + jobs.iter().map(Job::memory_bytes).sum::<u64>(),
    };
    jobs.into_iter().for_each(|job| job.finish(&mut analysis));
    analysis.curves.retain(|curves| plan.policies.contains(&curves.policy()));
    analysis.curves.sort_by_key(|curves| plan.policies.iter().position(|&policy| policy == curves.policy()));
    analysis
}
