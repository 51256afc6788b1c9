//! Miniature simulation: what caches that obey no stack would do at many sizes, from scaled-down ones over a sample of
//! the blocks.
//!
//! Waldspurger, Saemundsson, Ahmad, Park: "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC
//! 2017. A cache of `C` blocks is stood for by one of `R · C` blocks that sees only the blocks whose hash is in the
//! lowest share `R`; what it counts is `R` of what the other would count. The small caches run the policies themselves
//! ([`Trial`](larder_policy::trial::Trial)), so any replacement, admission and write policy has its curve.
//!
//! [`Bank`] takes requests as they come, in one pass and in bounded memory ([`Reach`]), and gives a [`BankCurve`] for
//! each kind of cache at any time.
//!
//! # Sizes and rate
//!
//! The small caches have from `sample` blocks down to [`MINI_BLOCKS_MIN`], two sizes for each factor of two. Where the
//! sizes to be simulated are known, the rate follows from the largest of them and is fixed. Where the footprint sets
//! them, the rate begins at 1. Whenever more than `sample` blocks were seen, it falls by √2: the blocks that leave the
//! sample are forgotten by all caches, each cache shrinks by √2, and so goes on to stand for the size that it stood
//! for. The smallest then is too small and ends; a new largest begins as a copy of the one before, which held all
//! blocks of the sample and so never had to decide anything.
//!
//! # Corrections
//!
//! A hot block in the sample stands for `1 / R` hot blocks, and one outside of it for none. What is known exactly is the
//! number of accesses; so the difference between it and its estimate is attributed to what became of the blocks that
//! cause it: each outcome has the share that it has among the sample's accesses, each weighted with the number of
//! accesses to the same block so far (the regression estimator, a block's accesses being the known variable). Where
//! the sample has too few accesses by more than two of its own standard deviations, blocks that are hotter than any in it are
//! missing, and those are resident. SHARDS' correction (Waldspurger, Park, Garthwaite, Ahmad; FAST 2015, section 3.4)
//! counts all of the difference as hits; under `ro` hot blocks do not always hit.
//!
//! A request of `k` blocks is in the sample with probability `1 - (1 - R)^k`, and counts as its inverse; it hits if its
//! sampled blocks do. That takes requests to hit or miss as a whole: where only some blocks of a request miss, and few
//! are sampled, hits by request are estimated too high. Hits by block have no such bias.

mod batch;
mod estimate;
mod grid;
mod mini;
mod popular;
mod sample;
#[cfg(test)]
mod tests;

use larder_policy::WritePolicy;
use larder_policy::index::hash;
use larder_policy::spec::{CachingSpec, PolicySpec};
use larder_policy::trial::{Action, Counters};

use self::batch::{Batch, Request};
use self::estimate::Totals;
use self::mini::Mini;
use self::popular::Popular;
use self::sample::Sample;
use crate::Op;

/// Blocks of the smallest cache that is simulated in place of a larger one: below, chance and rounding have too much of
/// a say.
pub const MINI_BLOCKS_MIN: u32 = 256;

/// What sizes a bank is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Up to this many blocks: for a cache whose largest size is known, over a stream without end. Memory is bounded by
    /// the caches' own.
    Blocks(u64),
    /// Up to the footprint, whatever it turns out to be: for a trace that is read once.
    Footprint,
}

/// Why there can be no such bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BankError {
    /// The small caches would be too small to say anything.
    #[error("a sample of {0} blocks is too small: at least {MINI_BLOCKS_MIN} are needed, at most {max}", max = SAMPLE_BLOCKS_MAX)]
    Sample(u32),
    /// The policy has to know the future.
    #[error("{0} has to know all accesses beforehand, which a bank does not")]
    Future(PolicySpec),
}

/// A good size of a sample. On Zipf(1.0) workloads and most recorded applications, hit ratios by block were within 0.01 of
/// those of full simulation (0.015 on all), and SSD writes within 5 % where they were at least 5 % of the accesses. What
/// an admission policy lets through rarely, or what hangs on a few hot blocks, is less certain.
pub const SAMPLE_BLOCKS: u32 = 32_768;

/// Blocks of the largest sample.
pub const SAMPLE_BLOCKS_MAX: u32 = 1 << 28;

/// Where the footprint sets the sizes, the largest small cache holds so many times the sample. What a cache decides
/// before it is full can depend on its capacity (LARC remembers more, S3-FIFO has a longer first queue), so one that is
/// to stand for a size later had better have it before the sample reaches it.
const HEADROOM: u32 = 4;

/// What scaled-down caches of one kind did, over the size of the caches that they stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct BankCurve {
    /// Replacement and admission.
    pub caching: CachingSpec,
    /// The write policy.
    pub write: WritePolicy,
    /// `(blocks, counts)` in rising order of size; counts are scaled up to the whole stream.
    pub points: Vec<(u64, Counters)>,
}

/// Scaled-down caches of several kinds and many sizes.
pub struct Bank {
    kinds: Vec<Kind>,
    /// Capacities of the small caches, the largest first.
    capacities: Vec<u32>,
    /// Blocks of the sample at most.
    most: u32,
    sample: Sample,
    popular: Popular,
    totals: Totals,
    /// The request under way.
    request: Request,
    batch: Batch,
}

/// The caches of one kind.
struct Kind {
    caching: CachingSpec,
    write: WritePolicy,
    /// One for each capacity.
    minis: Vec<Box<dyn Mini>>,
}

impl Bank {
    /// A bank of these kinds of caches, of at most `sample` blocks each. `seed` chooses the sampled blocks, and what
    /// policies draw lots for.
    ///
    /// # Errors
    /// For Belady's policy, and for samples below [`MINI_BLOCKS_MIN`] or above [`SAMPLE_BLOCKS_MAX`].
    pub fn new(
        caches: &[(CachingSpec, WritePolicy)],
        reach: Reach,
        sample: u32,
        seed: u64,
    ) -> Result<Self, BankError> {
        if !(MINI_BLOCKS_MIN..=SAMPLE_BLOCKS_MAX).contains(&sample) {
            return Err(BankError::Sample(sample));
        }
        let largest = match reach {
            Reach::Blocks(blocks) => blocks.min(sample.into()) as u32,
            Reach::Footprint => sample * HEADROOM,
        };
        let capacities = grid::capacities(largest);
        let kind = |&(caching, write): &(CachingSpec, WritePolicy)| {
            let mini = |&capacity: &u32| mini::build(caching, write, capacity, seed);
            let minis = capacities.iter().map(mini).collect::<Option<_>>();
            Ok(Kind { caching, write, minis: minis.ok_or(BankError::Future(caching.policy()))? })
        };
        Ok(Self {
            kinds: caches.iter().map(kind).collect::<Result<_, _>>()?,
            capacities,
            most: sample,
            sample: Sample::new(reach, sample, seed),
            popular: Popular::new(sample),
            totals: Totals::default(),
            request: Request::default(),
            batch: Batch::default(),
        })
    }

    /// Take a request, or a part of one that is not the last, with the keys of its blocks.
    #[inline]
    pub fn observe(&mut self, op: Op, keys: impl IntoIterator<Item = u64, IntoIter: Clone>, last: bool) {
        let action = match op {
            Op::Read => Action::Read,
            Op::Write => Action::Write,
            Op::Discard => Action::Discard,
            Op::Populate => return,
        };
        let keys = keys.into_iter();
        // Most requests have no block in the sample: all are asked for it without a branch to be guessed.
        let (mut blocks, mut sampled) = (0, false);
        for key in keys.clone() {
            blocks += 1;
            sampled |= self.sample.has(key);
        }
        self.request.blocks += blocks;
        self.totals.accesses(action, blocks);
        if last {
            self.totals.request(action);
        }
        if sampled || self.request.is_sampled() || self.request.blocks == 0 || !last {
            self.take_piece(action, keys, last);
        } else {
            self.request = Request::default();
        }
    }

    /// What each kind of cache did so far, in the order of [`Self::new`].
    pub fn curves(&mut self) -> Vec<BankCurve> {
        self.settle();
        let sizes: Vec<_> = grid::sizes(&self.capacities, self.sample.rate()).collect();
        // What is larger than the sample holds all that there is.
        let beyond = self.capacities.iter().take_while(|&&capacity| capacity > self.most).count();
        let curve = |kind: &Kind| {
            let counters = kind.minis.iter().map(|mini| mini.tally().estimate(&self.totals, kind.write));
            let points = sizes.iter().copied().zip(counters).skip(beyond).rev().collect();
            BankCurve { caching: kind.caching, write: kind.write, points }
        };
        self.kinds.iter().map(curve).collect()
    }

    /// Let what was counted so far weigh `keep` times as much as before, from 0 (forget it) to 1. What the caches hold
    /// stays. For epochs.
    pub fn fade(&mut self, keep: f64) {
        self.settle();
        let keep = keep.clamp(0.0, 1.0);
        self.totals.fade(keep);
        self.minis().for_each(|mini| mini.fade(keep));
    }

    /// Share of the blocks that are in the sample now: from above 0 to 1.
    pub fn rate(&self) -> f64 {
        self.sample.rate()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let minis = self.kinds.iter().flat_map(|kind| &kind.minis).map(|mini| mini.memory_bytes());
        minis.sum::<usize>()
            + self.sample.memory_bytes()
            + self.popular.memory_bytes()
            + self.batch.memory_bytes()
    }

    /// A request, or a part of one, is not only counted.
    fn take_piece(&mut self, action: Action, keys: impl Iterator<Item = u64>, last: bool) {
        for key in keys {
            // Asked again: the sample may have been thinned out by the block before.
            if self.sample.has(key) {
                self.take(action, key);
            }
        }
        if last {
            let request = std::mem::take(&mut self.request);
            self.batch.end_request(action, request.end(self.sample.rate()));
        } else {
            self.batch.end_piece(action);
        }
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// A block of the sample is accessed.
    fn take(&mut self, action: Action, key: u64) {
        let hash = hash(key);
        let mut pull = 0;
        if action != Action::Discard {
            if self.sample.add(key, hash) {
                self.batch.end_piece(action);
                self.thin();
                if !self.sample.has(key) {
                    return;
                }
            }
            pull = self.popular.count(action, hash);
        }
        self.request.take(pull);
        self.batch.push(key, hash, pull);
        if self.batch.is_full() {
            self.batch.end_piece(action);
            self.flush();
        }
    }

    /// Make the sample smaller until it is small enough. Every cache goes on to stand for the size that it stood for.
    fn thin(&mut self) {
        while self.sample.is_too_large() {
            self.settle();
            let gone = self.sample.thin();
            for kind in &mut self.kinds {
                kind.shift(&self.capacities, &gone);
            }
        }
    }

    /// Let the caches take what was gathered.
    fn flush(&mut self) {
        let batch = &self.batch;
        self.kinds.iter_mut().flat_map(|kind| &mut kind.minis).for_each(|mini| mini.process(batch));
        self.batch.clear();
    }

    /// Scale what was counted up.
    fn settle(&mut self) {
        self.flush();
        let rate = self.sample.rate();
        self.minis().for_each(|mini| mini.settle(rate));
    }

    fn minis(&mut self) -> impl Iterator<Item = &mut Box<dyn Mini>> {
        self.kinds.iter_mut().flat_map(|kind| &mut kind.minis)
    }
}

impl Kind {
    /// Blocks leave the sample: each cache shrinks to the next capacity, and a new one becomes the largest.
    fn shift(&mut self, capacities: &[u32], gone: &[(u64, u32)]) {
        self.minis.pop();
        self.minis.iter_mut().for_each(|mini| mini.forget(gone));
        self.minis.iter_mut().zip(&capacities[1..]).for_each(|(mini, &capacity)| mini.scale(capacity));
        if let Some(mut largest) = self.minis.first().map(|mini| mini.copy()) {
            largest.resize(capacities[0]);
            self.minis.insert(0, largest);
        }
    }
}
