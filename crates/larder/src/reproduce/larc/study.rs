//! The simulations over one workload, and what the paper counts in them.

use std::num::NonZero;
use std::thread;

use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec, SpecError};
use larder_sim::{
    BlockSize, Futures, IntervalResult, Plan, RunSpec, SimError, Span, Summary, Survey, Totals, WritePolicy,
};

use super::change::{self, Change};
use super::options::Options;
use super::stream::Stream;
use super::workload::{Parts, Workload};
use crate::problem::Problem;
use crate::progress::Bar;
use crate::simulate::size;

/// The unit of caching: the paper's in all traces but `ads`.
pub const BLOCK: BlockSize = BlockSize::DEFAULT;

/// A write allocates and is written back later, as in the paper's benchmarks; its data flow (figure 2) sends a write to one place.
pub const WRITE: WritePolicy = WritePolicy::WriteBack;

/// What the paper compares, in the order of its figure 4 from the oldest.
const POLICIES: [PolicySpec; 5] =
    [PolicySpec::Lru, PolicySpec::Lfu, PolicySpec::Mq, PolicySpec::Arc, PolicySpec::Larc];

/// What was found over one workload.
#[derive(Clone, Debug)]
pub struct Study {
    /// The workload.
    pub workload: Workload,
    /// What it holds.
    pub summary: Summary,
    /// Share of reads among the block accesses: the paper cuts requests into blocks before it counts.
    pub read_share: f64,
    /// One per size, from the smallest: counted from the start, with empty caches, as nothing in the paper says otherwise.
    pub whole: Vec<Point>,
    /// The same caches, counted in the second half alone: a trace may be so short that filling the caches is most of it.
    pub half: Vec<Point>,
    /// What happened around the change of popularity, where there is one.
    pub change: Option<Change>,
}

/// Which part of a trace is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All of it.
    Whole,
    /// The second half.
    Half,
}

/// What the policies did in a cache of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its size.
    pub cache_blocks: u64,
    /// LRU, LFU, MQ, ARC, LARC and, where it was asked for, Belady's, in this order.
    pub outcomes: Vec<Outcome>,
}

/// What one policy did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The policy.
    pub policy: PolicySpec,
    /// What was counted.
    pub tally: Tally,
}

/// The paper's counts, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reads and writes.
    pub accesses: u64,
    /// Those that hit.
    pub hits: u64,
    /// H_w: the writes among them.
    pub write_hits: u64,
    /// R: blocks that entered the cache, by a fill or by a write, also while it was not full yet. For policies that admit all, the paper has
    /// R = 1 - (H_w + H_r) as a share of the accesses: all misses. For LARC, these are the hits in its ghost.
    pub replacements: u64,
}

impl Tally {
    /// Hits / accesses; 0 without accesses.
    pub fn hit_ratio(&self) -> f64 {
        share(self.hits, self.accesses)
    }

    /// Replacements / accesses; 0 without accesses.
    pub fn replacement_rate(&self) -> f64 {
        share(self.replacements, self.accesses)
    }

    /// W = H_w + R: blocks written to the SSD.
    pub fn ssd_writes(&self) -> u64 {
        self.write_hits + self.replacements
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl From<&Totals> for Tally {
    fn from(totals: &Totals) -> Self {
        Self {
            accesses: totals.block_reads + totals.block_writes,
            hits: totals.read_hits + totals.write_hits,
            write_hits: totals.write_hits,
            // Under write-back every write hit is a write to the SSD; all others are blocks that enter.
            replacements: totals.ssd_writes.total - totals.write_hits,
        }
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |sum, tally| Self {
            accesses: sum.accesses + tally.accesses,
            hits: sum.hits + tally.hits,
            write_hits: sum.write_hits + tally.write_hits,
            replacements: sum.replacements + tally.replacements,
        })
    }
}

impl Point {
    /// What this policy did; nothing if it was not run.
    pub fn of(&self, policy: PolicySpec) -> Tally {
        self.outcomes
            .iter()
            .find(|outcome| outcome.policy == policy)
            .map_or_else(Tally::default, |outcome| outcome.tally)
    }

    /// True if LARC hits at least as often as LRU.
    pub fn loses_no_hits(&self) -> bool {
        self.of(PolicySpec::Larc).hits >= self.of(PolicySpec::Lru).hits
    }

    /// By how much LARC's hit ratio is higher than that of `other`, as a share of the latter; none where that has no hits.
    pub fn gain_over(&self, other: PolicySpec) -> Option<f64> {
        let (larc, other) = (self.of(PolicySpec::Larc).hits, self.of(other).hits);
        (other > 0).then(|| larc as f64 / other as f64 - 1.0)
    }

    /// The share of LRU's SSD writes that LARC saves; none where there are none to save.
    pub fn saving(&self) -> Option<f64> {
        let (larc, lru) = (self.of(PolicySpec::Larc).ssd_writes(), self.of(PolicySpec::Lru).ssd_writes());
        (lru > 0).then(|| 1.0 - larc as f64 / lru as f64)
    }

    /// The best hit ratio of a policy that does not know the future.
    pub fn best_hit_ratio(&self) -> f64 {
        let online = self.outcomes.iter().filter(|outcome| outcome.policy.is_online());
        online.map(|outcome| outcome.tally.hit_ratio()).fold(0.0, f64::max)
    }
}

impl Study {
    /// The caches, from the smallest.
    pub fn points(&self, counted: Counted) -> &[Point] {
        match counted {
            Counted::Whole => &self.whole,
            Counted::Half => &self.half,
        }
    }

    /// True if more blocks are read than written.
    pub fn is_read_dominated(&self) -> bool {
        self.read_share > 0.5
    }

    /// The share of the accesses that are to a block seen before: no cache hits more.
    pub fn re_references(&self) -> f64 {
        1.0 - share(self.summary.footprint_blocks, self.summary.block_accesses)
    }
}

/// What all simulations have in common.
pub struct Lab<'a> {
    options: &'a Options,
    policies: Vec<PolicySpec>,
    threads: NonZero<usize>,
}

impl<'a> Lab<'a> {
    /// As the options say.
    pub fn new(options: &'a Options) -> Self {
        let threads = options.threads.or_else(|| thread::available_parallelism().ok());
        let belady = options.belady.then_some(PolicySpec::Belady);
        let policies = POLICIES.into_iter().chain(belady).collect();
        Self { options, policies, threads: threads.unwrap_or(NonZero::<usize>::MIN) }
    }

    /// Run all policies in caches of all sizes over a workload.
    pub fn study(&self, workload: Workload) -> Result<Study, Problem> {
        let survey = self.survey(&workload)?;
        let sizes = size::resolve(&self.options.sizes, BLOCK, survey.summary.footprint_blocks)?;
        let first = self.first_part(&workload)?;
        let caching =
            self.policies.iter().map(|&policy| self.caching(policy)).collect::<Result<Vec<_>, _>>()?;
        let of_size = |&blocks| caching.iter().map(move |&caching| RunSpec { caching, write: WRITE, blocks });
        let every = first.map_or(survey.summary.requests().div_ceil(2), change::interval);
        let runs = sizes.iter().flat_map(of_size).collect();
        let plan = Plan { every: Some(Span::Requests(every)), threads: self.threads, ..Plan::new(runs) };
        let found = self.simulate(&workload, &plan, &survey)?;
        Ok(Study {
            read_share: found.first().map_or(0.0, |found| found.read_share),
            whole: self.points(&sizes, &found, |found| found.total),
            half: self.points(&sizes, &found, Found::second_half),
            change: first
                .map(|accesses| self.change(accesses, survey.summary.footprint_blocks, &sizes, &found)),
            summary: survey.summary,
            workload,
        })
    }

    /// The policy as it is run: LARC by the one or the other reading of the paper.
    fn caching(&self, policy: PolicySpec) -> Result<CachingSpec, Problem> {
        let admission = match policy {
            PolicySpec::Larc => self.options.larc(),
            _ => AdmissionSpec::Always,
        };
        CachingSpec::new(policy, admission)
            .map_err(|error: SpecError| Problem::new(error, "tell the authors: these policies are built in"))
    }

    fn points(&self, sizes: &[u64], found: &[Found], tally: fn(&Found) -> Tally) -> Vec<Point> {
        let of_size = |(found, &cache_blocks): (&[Found], &u64)| {
            let outcomes = self
                .policies
                .iter()
                .zip(found)
                .map(|(&policy, found)| Outcome { policy, tally: tally(found) });
            Point { cache_blocks, outcomes: outcomes.collect() }
        };
        found.chunks(self.policies.len()).zip(sizes).map(of_size).collect()
    }

    /// What the workload holds.
    fn survey(&self, workload: &Workload) -> Result<Survey, Problem> {
        let mut futures = Futures::default();
        for &policy in &self.policies {
            futures.need(self.caching(policy)?, WRITE);
        }
        let survey =
            self.look(&format!("reading {}", workload.name), workload.open(self.options.limit)?, futures)?;
        match survey.summary.block_accesses {
            0 => Err(Problem::new(
                format_args!("{}: no block is read or written", workload.parts),
                "give another trace",
            )),
            _ => Ok(survey),
        }
    }

    /// Block accesses before the change of popularity, where there is one.
    fn first_part(&self, workload: &Workload) -> Result<Option<u64>, Problem> {
        let Parts::Two(first, _) = &workload.parts else { return Ok(None) };
        let what = format!("reading the first part of {}", workload.name);
        let survey = self.look(&what, first.open(self.options.limit)?, Futures::default())?;
        Ok(Some(survey.summary.block_accesses))
    }

    fn look(&self, what: &str, stream: Stream, futures: Futures) -> Result<Survey, Problem> {
        let bar = Bar::new(what, self.options.limit, None, self.options.quiet);
        let survey =
            larder_sim::survey(stream, BLOCK, None, futures, |progress| bar.tell(progress)).map_err(problem);
        bar.finish();
        survey
    }

    fn simulate(&self, workload: &Workload, plan: &Plan, survey: &Survey) -> Result<Vec<Found>, Problem> {
        let what = format!("{}: {} caches", workload.name, plan.runs.len());
        let bar = Bar::new(&what, Some(survey.summary.requests()), None, self.options.quiet);
        let stream = workload.open(self.options.limit)?;
        let simulated =
            larder_sim::simulate(stream, plan, Some(survey), |progress| bar.tell(progress)).map_err(problem);
        bar.finish();
        Ok(simulated?.runs.iter().map(|run| Found::new(&run.totals, &run.series)).collect())
    }

    /// The intervals of the cache that is nearest to the size at which the change is looked at.
    fn change(&self, first: u64, footprint: u64, sizes: &[u64], results: &[Found]) -> Change {
        let at = change::nearest_size(sizes, footprint);
        let found = results.chunks(self.policies.len()).nth(at).unwrap_or_default();
        let series = self.policies.iter().zip(found).map(|(&policy, found)| (policy, found.series.clone()));
        Change::new(sizes.get(at).copied().unwrap_or(0), first, series.collect())
    }
}

/// What is kept of a run.
struct Found {
    total: Tally,
    read_share: f64,
    series: Vec<Tally>,
}

impl Found {
    fn new(totals: &Totals, series: &[IntervalResult]) -> Self {
        let total = Tally::from(totals);
        let series = series.iter().map(|interval| Tally::from(&interval.totals)).collect();
        Self { total, read_share: share(totals.block_reads, total.accesses), series }
    }

    /// The later half of the intervals.
    fn second_half(&self) -> Tally {
        self.series[self.series.len() / 2..].iter().copied().sum()
    }
}

fn problem(error: SimError<Problem>) -> Problem {
    let help = match error {
        SimError::Source(problem) => return problem,
        SimError::CacheSize { .. } => "give smaller --sizes",
        SimError::EmptyInterval | SimError::TooManyIntervals { .. } | SimError::TooManyRuns { .. } => {
            "give fewer --sizes"
        }
        SimError::NoForesight(_) | SimError::TooLong(_) => {
            "leave --belady out, or take less of the trace (--limit)"
        }
        SimError::TooManySegments(_) | SimError::TooManyBlocks(_) | SimError::Bank(_) => {
            "leave this trace out: it touches too many volumes"
        }
    };
    Problem::new(error, help)
}

#[cfg(test)]
mod tests;
