//! A plan over a trace.

use larder_policy::belady::TooLong;
use larder_policy::spec::PolicySpec;

use crate::batch::Batch;
use crate::block::TooManySegments;
use crate::clock::{Clock, Start};
use crate::feed::{Feed, Summary};
use crate::foresight::{Foreseer, Foresight, Futures};
use crate::plan::{CACHE_BLOCKS_MAX, Plan};
use crate::result::{IntervalResult, RunResult, Totals};
use crate::run::{Outcome, Run};
use crate::{BlockSize, Counters, RunSpec, Source, Span, build, pool};

/// Rows that all series of a simulation may have together: some 150 MB of them.
pub const SERIES_ROWS_MAX: usize = 1 << 20;

/// Why a simulation gives no results.
#[derive(Debug, thiserror::Error)]
pub enum SimError<E> {
    /// The trace cannot be read.
    #[error(transparent)]
    Source(E),
    /// A cache of no blocks, or of more than there may be.
    #[error("a cache of {blocks} blocks cannot be simulated: from 1 to {CACHE_BLOCKS_MAX} can")]
    CacheSize {
        /// The blocks.
        blocks: u64,
    },
    /// An interval of nothing.
    #[error("an interval must be longer than nothing")]
    EmptyInterval,
    /// The intervals are too short for this trace.
    #[error("there are more than {most} intervals, the most that are kept for so many runs")]
    TooManyIntervals {
        /// How many there may be.
        most: usize,
    },
    /// A policy is to know a future that no [`survey`] looked at.
    #[error("{0} has to know the trace beforehand")]
    NoForesight(PolicySpec),
    /// The trace is too long for Belady's policy.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The trace is too wide.
    #[error(transparent)]
    TooManySegments(#[from] TooManySegments),
}

/// What a simulation found.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The trace, the warm-up included.
    pub summary: Summary,
    /// The runs, in the order of the plan.
    pub runs: Vec<RunResult>,
    /// Bytes of memory that the caches and the footprint took, without what replacement policies keep of their own.
    pub memory_bytes: u64,
}

/// How far a pass over the trace has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Reads and writes so far.
    pub requests: u64,
}

/// What a first pass over a trace found, which a simulation of the same trace with the same block size and limit can use.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What the trace holds.
    pub summary: Summary,
    foresight: Foresight,
}

/// Simulate all runs of a plan in one pass over `source`. With a `survey` of the same trace the footprint need not be counted again; Belady's policy needs one.
/// `progress` is told after every batch.
///
/// What is found does not depend on the number of threads.
///
/// # Errors
/// Where the trace cannot be read to its end, and where the plan asks for what cannot be.
pub fn simulate<S: Source>(
    source: S,
    plan: &Plan,
    survey: Option<&Survey>,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<Simulated, SimError<S::Error>> {
    let mut runs = plan.runs.iter().map(|spec| start(spec, plan, survey)).collect::<Result<Vec<_>, _>>()?;
    if matches!(plan.every, Some(Span::Requests(0) | Span::TimeNs(0))) {
        return Err(SimError::EmptyInterval);
    }
    let clock = Clock::new(plan.warmup, plan.every);
    let mut feed = Feed::new(source, plan.block, plan.limit, clock).with_intervals_max(intervals_max(runs.len()));
    if let Some(survey) = survey {
        feed = feed.with_footprint(survey.summary.footprint_blocks);
    }
    let mut watch = |feed: &Feed<S>| progress(Progress { requests: feed.clock().requests() });
    pool::drive(&mut feed, &mut runs, plan.threads, &mut watch)?;
    Ok(gather(&feed, plan, &mut runs))
}

/// Look at a trace without simulating anything: what it holds, and the futures that are needed.
///
/// # Errors
/// Where the trace cannot be read to its end.
pub fn survey<S: Source>(
    source: S,
    block: BlockSize,
    limit: Option<u64>,
    futures: Futures,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<Survey, SimError<S::Error>> {
    let mut feed = Feed::new(source, block, limit, Clock::new(Span::Requests(0), None));
    let (mut batch, mut foreseer) = (Batch::default(), Foreseer::new(futures));
    while feed.fill(&mut batch)? {
        foreseer.take(&batch)?;
        progress(Progress { requests: feed.clock().requests() });
    }
    Ok(Survey { summary: feed.summary(), foresight: foreseer.finish() })
}

fn start<E>(spec: &RunSpec, plan: &Plan, survey: Option<&Survey>) -> Result<Box<dyn Run>, SimError<E>> {
    let capacity = u32::try_from(spec.blocks).ok().filter(|_| (1..=CACHE_BLOCKS_MAX).contains(&spec.blocks));
    let capacity = capacity.ok_or(SimError::CacheSize { blocks: spec.blocks })?;
    let nothing = Foresight::default();
    let foresight = survey.map_or(&nothing, |survey| &survey.foresight);
    build::run(spec, capacity, plan.seed, foresight).ok_or(SimError::NoForesight(spec.caching.policy()))
}

fn intervals_max(runs: usize) -> usize {
    SERIES_ROWS_MAX / runs.max(1)
}

fn gather<S: Source>(feed: &Feed<S>, plan: &Plan, runs: &mut [Box<dyn Run>]) -> Simulated {
    let summary = feed.summary();
    let mut memory_bytes = feed.memory_bytes();
    let finished = runs.iter_mut().zip(&plan.runs).map(|(run, spec)| {
        let outcome = run.finish();
        memory_bytes += outcome.memory_bytes;
        result(spec, plan, feed.clock(), summary, &outcome)
    });
    Simulated { runs: finished.collect(), summary, memory_bytes }
}

fn result(spec: &RunSpec, plan: &Plan, clock: &Clock, summary: Summary, outcome: &Outcome) -> RunResult {
    // Until the warm-up is over, what was counted is not wanted.
    let total = if clock.measuring() { outcome.total } else { Counters::default() };
    RunResult {
        policy: spec.caching.policy().to_string(),
        admission: spec.caching.admission().to_string(),
        write_policy: spec.write.to_string(),
        cache_bytes: spec.blocks * u64::from(plan.block.bytes()),
        block_bytes: plan.block.bytes(),
        totals: total.into(),
        footprint_blocks: summary.footprint_blocks,
        resident_blocks: outcome.resident_blocks,
        dirty_blocks: outcome.dirty_blocks,
        seconds: outcome.cpu.as_secs_f64(),
        series: if plan.every.is_some() { series(clock, outcome) } else { Vec::new() },
    }
}

fn series(clock: &Clock, outcome: &Outcome) -> Vec<IntervalResult> {
    let intervals = clock.intervals().iter().zip(&outcome.series);
    let result = |(start, &counters): (&Start, _)| IntervalResult {
        first_request: start.requests,
        start_seconds: start.ns as f64 / 1e9,
        totals: Totals::from(counters),
    };
    intervals.map(result).collect()
}
