//! Simulations side by side, one on each thread.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use larder_daemon::units::HumanSize;
use larder_sim::Progress;
use larder_sim::tenants::{Hindsight, TenantsError, TenantsPlan, TenantsResult, hindsight, simulate_tenants};
use larder_trace::TraceError;

use super::sources::Opener;
use crate::problem::Problem;
use crate::progress::Bar;

/// A simulation to be done.
pub struct Job<'a> {
    /// What to simulate.
    pub plan: TenantsPlan,
    /// The traces of its tenants.
    pub sources: &'a [Opener],
}

/// Do all of them, and give their results in the same order. `requests` are those of all jobs, where they are known.
pub fn all(
    jobs: &[Job<'_>],
    threads: Option<NonZero<usize>>,
    requests: Option<u64>,
    quiet: bool,
) -> Result<Vec<TenantsResult>, Problem> {
    let bar = Bar::new(&format!("simulating {} runs", jobs.len()), requests, None, quiet);
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let results: Mutex<Vec<Option<Result<TenantsResult, Problem>>>> =
        Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            let result = one(job, &done, &bar);
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            if let Ok(mut results) = results.lock() {
                results[at] = Some(result);
            }
        }
    };
    let threads =
        threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get).min(jobs.len());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    bar.finish();
    let results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Where one failed, others may never have begun; its failure is what is told.
    results.into_iter().flatten().collect()
}

fn one(job: &Job<'_>, done: &AtomicU64, bar: &Bar) -> Result<TenantsResult, Problem> {
    let sources: Vec<_> = job.sources.iter().map(|source| || source.open()).collect();
    let mut before = 0;
    let told = |progress: Progress| {
        let more = progress.requests.saturating_sub(before);
        before = progress.requests;
        bar.tell(Progress { requests: done.fetch_add(more, Ordering::Relaxed) + more });
    };
    simulate_tenants(&job.plan, &sources, told).map_err(|error| problem(error, &job.plan))
}

/// What any cache could bring at best.
pub fn in_hindsight(job: &Job<'_>) -> Result<Hindsight, Problem> {
    let sources: Vec<_> = job.sources.iter().map(|source| || source.open()).collect();
    hindsight(&job.plan, &sources).map_err(|error| problem(error, &job.plan))
}

fn problem(error: TenantsError<TraceError>, plan: &TenantsPlan) -> Problem {
    let help = match error {
        TenantsError::Source { tenant, error } => {
            return Problem::from(error).about(format_args!("tenant {tenant}"));
        }
        TenantsError::CacheSize { .. } => "give another size of the cache, or another --block",
        TenantsError::Block(_) => "give another --block: a power of two from 512 to 128KiB",
        TenantsError::TooManySegments(_) => "give a larger --block",
        TenantsError::Alloc(_) => {
            "ask for less, or give a larger cache; `larder simulate` can let another --allocator divide it"
        }
        TenantsError::EmptyEpoch => "give a longer --epoch",
        TenantsError::Tenant { .. } | TenantsError::SameName(_) => "mend what is said about that tenant",
        TenantsError::UnknownAllocator(_) => "name one of them",
        TenantsError::NoTenant | TenantsError::SourceCount { .. } => {
            "name tenants with their traces: --tenant NAME=TRACE"
        }
    };
    Problem::new(error, help).about(format_args!(
        "{}, cache of {}",
        plan.allocator,
        HumanSize(plan.cache_bytes)
    ))
}
