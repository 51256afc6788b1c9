//! The analysis of a sample of the blocks: request by request, in bounded memory, with curves at any time.
//!
//! This is SHARDS (Waldspurger, Park, Garthwaite, Ahmad; FAST'15) for every policy of [`CurvePolicy`]: the stacks of the
//! exact analysis see the blocks of a sample only, and [`Scaled`] records what they stand for. All requests pass, so that
//! accesses in all are counted exactly.
//!
//! **A sample of bounded size** ([`Sampling::Blocks`]). Where SHARDS lets go of the block with the highest hash whenever one
//! too many is sampled, here an eighth of the sample goes at once, which takes constant time a block. Blocks that are no
//! longer sampled leave the stacks as if they had never been accessed.
//!
//! **Requests of several blocks** are hits where all their blocks are (Centaur's rule). Each block of a request of `k` blocks that is
//! in the sample stands for `1 / (k R)` of a request at rate `R`, which comes to one request in the mean; the largest size of the
//! sampled blocks counts for all of them. So the blocks of a request are taken to have been accessed together
//! before, as they mostly were; where they were not (a log whose last block is written again with each append) the hits
//! by request come out too high, by up to five in a hundred on most recorded disks, and by twelve at worst.

use std::ops::Range;

use crate::lane::Totals;
use crate::sampling::Filter;
use crate::{
    AccessKind, BlockId, Blocks, ClassCounts, CurvePolicy, EpochFindings, MAX_BLOCKS, Op, PolicyCurves,
    RequestClass, Sampling,
};
use classes::Classes;
use lanes::Lanes;
use sample::Sample;

pub use counts::{PoliciesDiffer, SampledCounts};

mod classes;
mod counts;
mod lanes;
mod sample;

/// What an analysis is to find, and from which blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalyzerConfig {
    /// The caches whose curves are wanted.
    pub policies: Vec<CurvePolicy>,
    /// Which blocks to look at. [`Sampling::Exact`] is a rate of 1; the sizes of its curves are exact up to 127 and at
    /// their ends, and up to 1.6 % too large between.
    pub sampling: Sampling,
    /// The most recently used blocks to be remembered at least, `u64::MAX` for all. When a sample is full, older ones are
    /// forgotten before the rate is lowered, and count as new if they come back: so a scan of a large disk does not
    /// lower it for good.
    pub history_blocks: u64,
    /// Chooses the sampled blocks.
    pub seed: u64,
}

/// A request for consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// What it does.
    pub op: Op,
    /// How many blocks.
    pub blocks: u32,
    /// The key of the first; the others follow it ([`crate::block_key`]).
    pub first: u64,
}

impl BlockRequest {
    fn keys(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.blocks.into())
    }
}

/// Analyzes a stream of requests from a sample of the blocks.
pub struct Analyzer {
    filter: Filter,
    policies: Vec<CurvePolicy>,
    /// Blocks sampled at most.
    most: u32,
    history_blocks: u64,
    blocks: Blocks,
    sample: Sample,
    lanes: Lanes,
    totals: Totals,
    classes: Classes,
    /// Blocks that were forgotten, scaled up.
    forgotten: f64,
    /// Blocks accessed since the last decay, scaled up.
    touched: f64,
}

/// Blocks that a sample has room for at least.
const SAMPLE_MIN: u32 = 16;

/// Requests that are looked at before those in the sample are taken.
const TOGETHER: usize = 256;

impl Analyzer {
    /// An analysis at its start. A rate that is out of range is brought to the nearest possible; a sample has room for 16
    /// blocks at least, and [`MAX_BLOCKS`] at most: then the rate falls, whatever was asked for.
    pub fn new(config: &AnalyzerConfig) -> Self {
        let (rate, most) = match config.sampling {
            Sampling::Exact => (1.0, MAX_BLOCKS),
            Sampling::Rate(rate) => (rate, MAX_BLOCKS),
            Sampling::Blocks(blocks) => (1.0, blocks.clamp(SAMPLE_MIN, MAX_BLOCKS)),
        };
        let filter = Filter::new(rate, config.seed);
        Self {
            filter,
            policies: config.policies.clone(),
            most,
            history_blocks: config.history_blocks,
            blocks: Blocks::new(config.seed),
            sample: Sample::default(),
            lanes: Lanes::new(&config.policies, filter.rate()),
            totals: Totals::default(),
            classes: Classes::default(),
            forgotten: 0.0,
            touched: 0.0,
        }
    }

    /// A request for blocks with consecutive keys. Takes time in their number.
    #[inline]
    pub fn observe(&mut self, op: Op, blocks: Range<u64>) {
        self.totals.count(op, blocks.end.saturating_sub(blocks.start));
        if self.is_seen(op, blocks.clone()) {
            self.take(op, blocks);
        }
    }

    /// Many requests, faster than one by one.
    pub fn observe_all(&mut self, requests: &[BlockRequest]) {
        for requests in requests.chunks(TOGETHER) {
            let (mut seen, mut count) = ([0u16; TOGETHER], 0);
            let mut totals = Totals::default();
            for (at, request) in (0..).zip(requests) {
                totals.count(request.op, request.blocks.into());
                // Kept if it is seen, overwritten by the next one if not: so there is no branch to be guessed.
                seen[count] = at;
                count += usize::from(self.is_seen(request.op, request.keys()));
            }
            self.totals.merge(&totals);
            for &at in &seen[..count] {
                let request = requests[usize::from(at)];
                self.take(request.op, request.keys());
            }
        }
    }

    /// The curves so far, in the order of the policies of the configuration.
    pub fn curves(&self) -> Vec<PolicyCurves> {
        self.counts().curves()
    }

    /// Block accesses by request class. Their sum is exact.
    pub fn classes(&self) -> ClassCounts {
        self.classes.counts(&self.totals)
    }

    /// All counts so far.
    pub fn counts(&self) -> SampledCounts {
        SampledCounts {
            totals: self.totals,
            classes: self.classes.clone(),
            lanes: self.lanes.settled(),
            policies: self.lanes.numbers(&self.policies),
        }
    }

    /// Multiply all counts: with a factor below 1 what was counted so far fades against what comes, with 0 it is gone. The
    /// blocks keep their history.
    pub fn decay(&mut self, factor: f64) {
        self.totals.decay(factor);
        self.classes.decay(factor);
        self.lanes.decay(factor);
        self.sample.decay(factor);
        self.touched = 0.0;
    }

    /// What was found since the last decay; then all counts start anew, and the blocks keep their history.
    pub fn finish_epoch(&mut self) -> EpochFindings {
        let findings = self.findings(&self.counts());
        self.decay(0.0);
        findings
    }

    /// What these counts ([`Self::counts`]) say. Distances
    /// are those of [`CurvePolicy::WriteThrough`], if it or [`CurvePolicy::WriteBack`] was asked for. The largest ones are
    /// exact at a rate of 1; below, they are one standard deviation of the sample's more than what was found.
    pub fn findings(&self, counts: &SampledCounts) -> EpochFindings {
        self.findings_with(counts, &counts.curves())
    }

    /// The same, where the counts' curves are at hand.
    pub fn findings_with(&self, counts: &SampledCounts, curves: &[PolicyCurves]) -> EpochFindings {
        let lru = |curves: &&PolicyCurves| {
            matches!(curves.policy(), CurvePolicy::WriteBack | CurvePolicy::WriteThrough)
        };
        let curves = curves.iter().find(lru);
        let useful = curves.map(PolicyCurves::useful_distances).unwrap_or_default();
        EpochFindings {
            requests: self.totals.requests,
            accesses: self.totals.reads + self.totals.writes,
            classes: counts.classes(),
            history_blocks: self.history_blocks,
            trd_max: curves
                .and_then(|curves| curves.full_blocks().checked_sub(1))
                .map(|max| self.at_least(max)),
            urd_max: useful.max().map(|max| self.at_least(max)),
            useful,
            footprint_blocks: self.touched.round() as u64,
        }
    }

    /// A distance that was found in the sample, and one standard deviation more: a partition that is a little too large
    /// costs little, one that is a little too small for a loop serves nothing of it.
    fn at_least(&self, distance: u64) -> u64 {
        let deviation = (distance as f64 * (1.0 - self.rate()) / self.rate()).sqrt();
        distance.saturating_add(deviation.ceil() as u64)
    }

    /// The share of the blocks that is sampled now.
    pub fn rate(&self) -> f64 {
        self.filter.rate()
    }

    /// Blocks in the sample now.
    pub fn sampled_blocks(&self) -> u32 {
        self.blocks.len()
    }

    /// Distinct blocks accessed so far: an estimate, unless the rate is 1. A block that was forgotten counts again.
    pub fn footprint_blocks(&self) -> u64 {
        (f64::from(self.blocks.len()) / self.rate() + self.forgotten).round() as u64
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.blocks.memory_bytes()
            + self.sample.memory_bytes()
            + self.lanes.memory_bytes()
    }

    /// True if something is to be done for a request, besides counting it.
    #[inline]
    fn is_seen(&self, op: Op, keys: Range<u64>) -> bool {
        let empty = keys.is_empty() & (op != Op::Discard);
        keys.fold(empty, |any, key| any | self.filter.takes(key))
    }

    /// Take the blocks of a request that are in the sample.
    fn take(&mut self, op: Op, keys: Range<u64>) {
        // What its sampled blocks stand for.
        let mut blocks = 0.0;
        for key in keys.clone() {
            // Asked again: the sample may have been thinned out by the block before.
            let hash = self.filter.hash(key);
            if self.filter.has(hash) && self.take_block(op, key, hash) {
                blocks += 1.0 / self.rate();
            }
        }
        match op {
            Op::Discard => {}
            Op::Populate => self.lanes.populate(),
            // Nothing of it could be sampled.
            Op::Read | Op::Write if keys.is_empty() => self.lanes.empty_request(op),
            Op::Read | Op::Write if blocks > 0.0 => {
                self.lanes.end_request(op, blocks / (keys.end - keys.start) as f64)
            }
            Op::Read | Op::Write => {}
        }
    }

    /// Take a block of a request; false if the sample turned out to have no place for it.
    fn take_block(&mut self, op: Op, key: u64, hash: u64) -> bool {
        let kind = match op {
            Op::Read => AccessKind::Read,
            Op::Write => AccessKind::Write,
            Op::Discard | Op::Populate => return self.discard(key),
        };
        let Some(block) = self.number(key, hash) else { return false };
        let seen = self.sample.access(block, hash, kind);
        let (scale, heat) =
            (1.0 / self.rate(), if kind == AccessKind::Read { seen.heat.reads } else { seen.heat.writes });
        self.classes.count(RequestClass::of(seen.last, kind), scale, heat);
        self.touched += if seen.new { scale } else { 0.0 };
        self.lanes.block(op, block, seen.heat);
        true
    }

    fn discard(&mut self, key: u64) -> bool {
        let known = self.blocks.find(key);
        if let Some(block) = known {
            self.lanes.block(Op::Discard, block, self.sample.heat(block));
        }
        known.is_some()
    }

    /// The number of a block; a new one may find no place any more once room was made for it.
    fn number(&mut self, key: u64, hash: u64) -> Option<BlockId> {
        if self.blocks.len() == self.most && self.blocks.find(key).is_none() {
            self.thin();
            if !self.filter.has(hash) {
                return None;
            }
        }
        self.blocks.number(key).ok()
    }

    /// Make room for an eighth of the sample: forget what lies beyond the history, and if that does not do, lower the rate.
    #[cold]
    fn thin(&mut self) {
        let before = self.blocks.len();
        let within = (self.history_blocks as f64 * self.rate()).ceil() as usize;
        let since = self.sample.first_access_of_newest(within);
        let stay = before - before / 8;
        if let Some(hash) = self.sample.hash_above(stay as usize, since) {
            self.filter.lower(hash);
        }
        let forgotten = self.sample.forgotten(since, &self.filter);
        self.forgotten += forgotten as f64 / self.rate();
        let renumbered = self.blocks.retain(|_, block| self.sample.stays(block, since, &self.filter));
        self.sample.retain(&renumbered);
        self.lanes.retain(&renumbered);
        self.lanes.set_rate(self.rate());
    }
}

#[cfg(test)]
mod tests;
