//! What caches of every size would do under a write policy: the counts of a simulation, as functions of the size.

use std::fmt;

use larder_policy::WritePolicy;
use larder_policy::trial::Counters;

use crate::{DistanceHistogram, SizeCurve};

/// The caches that curves are drawn for: LRU, under each write policy, filled at every miss or by a mover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CurvePolicy {
    /// `wb`: a write goes to the cache, and is written back when its block is evicted.
    WriteBack,
    /// `wt`: a write goes to both; an absent block enters.
    WriteThrough,
    /// `wt-noalloc`: a write goes to both if its block is resident, else to the backing.
    WriteThroughNoAllocate,
    /// `ro`: a write goes to the backing, and its block leaves.
    ReadOnly,
    /// `batched`: Centaur's batched population (section IV and VII-C), write-back. The cache changes at the end of a
    /// mover epoch only: then it holds what an LRU cache filled at every access would hold.
    Batched,
}

impl CurvePolicy {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::WriteBack, Self::WriteThrough, Self::WriteThroughNoAllocate, Self::ReadOnly, Self::Batched];

    /// Its name: that of the write policy, or `batched`.
    pub fn as_str(self) -> &'static str {
        self.write_policy().map_or("batched", WritePolicy::as_str)
    }

    /// The write policy; none for batched population, which is none of the simulator's.
    pub fn write_policy(self) -> Option<WritePolicy> {
        match self {
            Self::WriteBack => Some(WritePolicy::WriteBack),
            Self::WriteThrough => Some(WritePolicy::WriteThrough),
            Self::WriteThroughNoAllocate => Some(WritePolicy::WriteThroughNoAllocate),
            Self::ReadOnly => Some(WritePolicy::ReadOnly),
            Self::Batched => None,
        }
    }
}

impl fmt::Display for CurvePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a lane counted. Accesses and requests in all, and how many of them had something happen over cache size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Blocks read.
    pub reads: u64,
    /// Blocks written.
    pub writes: u64,
    /// Reads and writes, as requests.
    pub requests: u64,
    /// Reads, as requests.
    pub read_requests: u64,
    /// Blocks read that were resident.
    pub read_hits: SizeCurve,
    /// Blocks written that were resident and took the write.
    pub write_hits: SizeCurve,
    /// Requests all of whose blocks were hits.
    pub request_hits: SizeCurve,
    /// Reads all of whose blocks were hits.
    pub read_request_hits: SizeCurve,
    /// Dirty blocks written back because they left.
    pub written_back: SizeCurve,
    /// Blocks that a mover brought in.
    pub moved_in: SizeCurve,
    /// Blocks that left because of a write.
    pub invalidations: SizeCurve,
}

/// The curves of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyCurves {
    policy: CurvePolicy,
    counted: Counted,
}

/// What a cache of one size did: the counts of `larder simulate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtSize {
    /// Blocks read that were resident.
    pub read_hits: u64,
    /// Blocks written that were resident and took the write.
    pub write_hits: u64,
    /// Requests all of whose blocks were hits.
    pub request_hits: u64,
    /// Reads all of whose blocks were hits.
    pub read_request_hits: u64,
    /// Blocks copied into the cache from the backing.
    pub fills: u64,
    /// Blocks of writes that went to the SSD.
    pub guest_writes: u64,
    /// Blocks that left because of a write.
    pub invalidations: u64,
    /// Blocks that requests read from the backing.
    pub backing_reads: u64,
    /// Blocks written to the backing.
    pub backing_writes: u64,
}

impl AtSize {
    /// Blocks written to the SSD.
    pub fn ssd_writes(&self) -> u64 {
        self.fills + self.guest_writes
    }
}

impl From<&Counters> for AtSize {
    fn from(counters: &Counters) -> Self {
        Self {
            read_hits: counters.read_hits,
            write_hits: counters.write_hits,
            request_hits: counters.request_hits,
            read_request_hits: counters.read_request_hits,
            fills: counters.fills,
            guest_writes: counters.guest_writes,
            invalidations: counters.invalidations,
            backing_reads: counters.backing_reads,
            backing_writes: counters.backing_writes,
        }
    }
}

impl PolicyCurves {
    /// The curves of `policy` from what a lane of its kind counted.
    pub fn new(policy: CurvePolicy, counted: Counted) -> Self {
        Self { policy, counted }
    }

    /// The policy.
    pub fn policy(&self) -> CurvePolicy {
        self.policy
    }

    /// What the lane counted.
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// Block accesses in all.
    pub fn accesses(&self) -> u64 {
        self.counted.reads + self.counted.writes
    }

    /// What a cache of `blocks` did. One of 0 blocks does nothing, and is no error.
    pub fn at(&self, blocks: u64) -> AtSize {
        let Counted { reads, writes, .. } = self.counted;
        let here = |curve: &SizeCurve| curve.at(blocks);
        let read_hits = here(&self.counted.read_hits);
        let write_hits = here(&self.counted.write_hits);
        // An estimate of the hits may pass the accesses by one.
        let read_misses = reads.saturating_sub(read_hits);
        let write_misses = writes.saturating_sub(write_hits);
        let written_back = here(&self.counted.written_back);
        let some = blocks > 0;
        let on_miss = if some { read_misses } else { 0 };
        let (fills, guest_writes, backing_writes) = match self.policy {
            CurvePolicy::WriteBack if some => (on_miss, writes, written_back),
            CurvePolicy::WriteThrough if some => (on_miss, writes, writes),
            CurvePolicy::WriteBack | CurvePolicy::WriteThrough => (0, 0, writes),
            CurvePolicy::WriteThroughNoAllocate => (on_miss, write_hits, writes),
            CurvePolicy::ReadOnly => (on_miss, 0, writes),
            CurvePolicy::Batched => (here(&self.counted.moved_in), write_hits, write_misses + written_back),
        };
        AtSize {
            read_hits,
            write_hits,
            request_hits: here(&self.counted.request_hits),
            read_request_hits: here(&self.counted.read_request_hits),
            fills,
            guest_writes,
            invalidations: here(&self.counted.invalidations),
            backing_reads: read_misses,
            backing_writes,
        }
    }

    /// Share of the block reads that a cache of `blocks` serves, from 0 to 1; 0 without reads.
    pub fn read_hit_ratio(&self, blocks: u64) -> f64 {
        ratio(self.counted.read_hits.at(blocks), self.counted.reads)
    }

    /// Share of the requests that a cache of `blocks` serves, from 0 to 1; 0 without requests.
    pub fn request_hit_ratio(&self, blocks: u64) -> f64 {
        ratio(self.counted.request_hits.at(blocks), self.counted.requests)
    }

    /// Share of all block accesses that a cache of `blocks` takes as hits, from 0 to 1; 0 without accesses.
    pub fn hit_ratio(&self, blocks: u64) -> f64 {
        let hits = self.counted.read_hits.at(blocks) + self.counted.write_hits.at(blocks);
        ratio(hits, self.accesses())
    }

    /// The smallest cache that brings all the hits that any brings, of reads and of writes: the working set. 0 where none brings any.
    pub fn full_blocks(&self) -> u64 {
        self.counted.read_hits.full_blocks().max(self.counted.write_hits.full_blocks())
    }

    /// Distances of the reads: useful reuse distances (URD) under `wb` and `wt`.
    pub fn useful_distances(&self) -> DistanceHistogram {
        distances(&self.counted.read_hits).collect()
    }

    /// Distances of all accesses: traditional reuse distances (TRD) under `wb` and `wt`.
    pub fn distances(&self) -> DistanceHistogram {
        distances(&self.counted.read_hits).chain(distances(&self.counted.write_hits)).collect()
    }
}

/// `(distance, count)` from hits over size.
fn distances(hits: &SizeCurve) -> impl Iterator<Item = (u64, u64)> {
    let mut before = 0;
    hits.steps()
        .iter()
        .map(move |&(blocks, hits)| (blocks.saturating_sub(1), hits - std::mem::replace(&mut before, hits)))
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
