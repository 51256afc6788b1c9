//! A plan over a trace.

use larder_locality::{BankError, TooManyBlocks};
use larder_policy::belady::TooLong;
use larder_policy::spec::PolicySpec;

use crate::batch::Batch;
use crate::block::TooManySegments;
use crate::clock::{Clock, Start};
use crate::feed::{Feed, Summary};
use crate::foresight::{Foreseer, Foresight, Futures};
use crate::plan::{CACHE_BLOCKS_MAX, Plan, RUNS_MAX};
use crate::pool::Fill;
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
    /// More runs than [`RUNS_MAX`].
    #[error("{runs} runs are too many for one pass: at most {RUNS_MAX}")]
    TooManyRuns {
        /// The runs.
        runs: usize,
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
    /// An analysis that looks at each block meets too many.
    #[error("there are {0}, too many to look at each: sample them, or choose larger blocks")]
    TooManyBlocks(#[from] TooManyBlocks),
    /// The bank of an analysis cannot be.
    #[error(transparent)]
    Bank(#[from] BankError),
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
    /// Bytes of memory that the caches and the footprint took.
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
    if plan.runs.len() > RUNS_MAX {
        return Err(SimError::TooManyRuns { runs: plan.runs.len() });
    }
    let mut runs = plan.runs.iter().map(|spec| start(spec, plan, survey)).collect::<Result<Vec<_>, _>>()?;
    if matches!(plan.every, Some(Span::Requests(0) | Span::TimeNs(0))) {
        return Err(SimError::EmptyInterval);
    }
    let clock = Clock::new(plan.warmup, plan.every);
    let mut feed =
        Feed::new(source, plan.block, plan.limit, clock).with_intervals_max(intervals_max(runs.len()));
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

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use larder_trace::{Request, RequestKind};

    use super::*;
    use crate::{Requests, WritePolicy};

    fn plan(policy: &str, write: WritePolicy, blocks: u64) -> Plan {
        Plan::new(vec![RunSpec { caching: policy.parse().unwrap(), write, blocks }])
    }

    /// `R1 W2 D3 F`: reads, writes and discards of one block each, and flushes.
    fn trace(text: &str) -> Vec<Request> {
        let request = |(at, word): (usize, &str)| {
            let kind = match &word[..1] {
                "R" => RequestKind::Read,
                "W" => RequestKind::Write,
                "D" => RequestKind::Discard,
                _ => RequestKind::Flush,
            };
            let (offset, len) = word[1..].parse().map_or((0, 0), |block: u64| (block * 4096, 4096));
            Request { time_ns: at as u64, volume: 0, kind, offset, len }
        };
        text.split_whitespace().enumerate().map(request).collect()
    }

    #[test]
    fn small_caches_computed_by_hand() {
        let same = Counters {
            requests: 7,
            read_requests: 4,
            block_reads: 4,
            block_writes: 3,
            discards: 1,
            flushes: 1,
            ..Counters::default()
        };
        let back = Counters {
            request_hits: 3,
            read_hits: 1,
            write_hits: 2,
            read_request_hits: 1,
            fills: 3,
            backing_reads: 3,
            ..same
        };
        let wb = Counters {
            guest_writes: 3,
            evictions: 2,
            dirty_evictions: 2,
            backing_writes: 2,
            discarded: 1,
            ..back
        };
        let wt = Counters { dirty_evictions: 0, backing_writes: 3, ..wb };
        let noalloc = Counters { guest_writes: 2, evictions: 1, ..wt };
        let ro = Counters { request_hits: 1, write_hits: 0, invalidations: 2, backing_writes: 3, ..back };
        let wo = Counters {
            guest_writes: 3,
            evictions: 1,
            dirty_evictions: 1,
            backing_reads: 4,
            backing_writes: 1,
            discarded: 1,
            ..same
        };
        for (write, counters, resident, dirty) in [
            (WritePolicy::WriteBack, wb, 1, 0),
            (WritePolicy::WriteThrough, wt, 1, 0),
            (WritePolicy::WriteThroughNoAllocate, noalloc, 1, 0),
            (WritePolicy::ReadOnly, ro, 1, 0),
            (WritePolicy::WriteOnly, wo, 1, 1),
        ] {
            let requests = trace("R1 R1 W2 W1 R3 W3 R2 D3 F");
            let result =
                simulate(Requests(requests.into_iter()), &plan("lru", write, 2), None, |_| {}).unwrap();
            let run = &result.runs[0];
            assert_eq!(run.totals, Totals::from(counters), "{write}");
            assert_eq!((run.resident_blocks, run.dirty_blocks), (resident, dirty), "{write}");
            assert_eq!((run.footprint_blocks, run.cache_bytes), (3, 8192));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |plan: &Plan, requests: &str| {
            simulate(Requests(trace(requests).into_iter()), plan, None, |_| {}).unwrap_err()
        };
        let lru = |blocks| plan("lru", WritePolicy::WriteBack, blocks);
        for blocks in [0, CACHE_BLOCKS_MAX + 1, u64::MAX] {
            assert!(matches!(error(&lru(blocks), ""), SimError::CacheSize { .. }));
        }
        assert!(matches!(error(&plan("belady", WritePolicy::WriteBack, 1), ""), SimError::NoForesight(_)));
        for span in [Span::Requests(0), Span::TimeNs(0)] {
            assert!(matches!(error(&Plan { every: Some(span), ..lru(1) }, ""), SimError::EmptyInterval));
        }
        let many = Plan { every: Some(Span::Requests(1)), ..lru(1) };
        let runs = |count: usize| Plan { runs: many.runs.repeat(count), ..many.clone() };
        let too_many = error(&runs(1 << 13), &"R1 ".repeat(129));
        assert!(matches!(too_many, SimError::TooManyIntervals { most: 128 }), "{too_many}");
        assert!(matches!(error(&runs(RUNS_MAX + 1), ""), SimError::TooManyRuns { .. }));
    }

    /// Gives requests for ever, or fails or panics after some.
    struct Troubled {
        left: usize,
        panics: bool,
    }

    impl Source for Troubled {
        type Error = &'static str;

        fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, &'static str> {
            assert!(self.left > 0 || !self.panics, "the source panics");
            self.left = self.left.checked_sub(1).ok_or("line 5: rubbish")?;
            out.extend(std::iter::repeat_n(trace("R7")[0], max));
            Ok(true)
        }
    }

    fn on_threads(threads: usize, source: Troubled) -> Result<Simulated, SimError<&'static str>> {
        let plan = plan("lru", WritePolicy::WriteBack, 3);
        let plan = Plan { runs: plan.runs.repeat(5), threads: NonZero::new(threads).unwrap(), ..plan };
        simulate(source, &plan, None, |_| {})
    }

    #[test]
    fn an_error_of_the_trace_is_the_result() {
        for threads in [1, 3] {
            for left in [0, 1, 100] {
                let error = on_threads(threads, Troubled { left, panics: false }).unwrap_err();
                assert_eq!(error.to_string(), "line 5: rubbish");
            }
        }
        let error =
            survey(Troubled { left: 9, panics: false }, BlockSize::DEFAULT, None, Futures::default(), |_| {});
        assert!(matches!(error, Err(SimError::Source(_))));
    }

    #[test]
    fn a_panic_ends_all_threads() {
        for threads in [1, 3] {
            let outcome =
                std::panic::catch_unwind(|| on_threads(threads, Troubled { left: 50, panics: true }).is_ok());
            assert!(outcome.is_err());
        }
    }

    #[test]
    fn a_limit_is_kept_to_the_request() {
        let limited = Plan { limit: Some(3), ..plan("lru", WritePolicy::WriteBack, 9) };
        let requests = trace("R1 F W2 D5 R3 F R4");
        let result = simulate(Requests(requests.into_iter()), &limited, None, |_| {}).unwrap();
        let Summary {
            reads,
            writes,
            flushes,
            discards,
            block_accesses,
            footprint_blocks,
            elapsed_ns,
            first_ns,
        } = result.summary;
        assert_eq!(
            [reads, writes, flushes, discards, block_accesses, footprint_blocks, elapsed_ns],
            [2, 1, 1, 1, 3, 3, 4]
        );
        assert!(first_ns.is_some());
    }
}
