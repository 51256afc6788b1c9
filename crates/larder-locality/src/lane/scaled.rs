//! Counts over cache size that a sample of the blocks stands for.
//!
//! A block of a sample taken at rate `R` stands for `1 / R` blocks: each of its accesses counts so often, and a cache of `s`
//! blocks of the sample is one of `(s - 1) / R + 1` blocks (SHARDS, FAST'15). What is recorded is scaled at once,
//! at the rate of its time, so that the rate may change. Sizes are counted in buckets: exact up to 127, at most 1/64 wide
//! above, so that memory is bounded: a few hundred kilobytes at most.
//!
//! How many accesses there are in all is known, and a sample seldom stands for just as many: a few hot blocks decide. SHARDS
//! ("SHARDS-adj") counts the difference as hits of the smallest cache, since hot blocks are
//! the ones that any cache serves. That fails where they are never served, as blocks are that are only written under `ro`.
//! So here the difference is taken to have gone as the accesses to the hottest blocks of the sample went: with every count
//! goes a second one, in which an access weighs as much as its block is hot.

use std::ops::Range;

use crate::curves::Counted;
use crate::{AccessKind, Op, SizeCurve};

use super::{NEVER, Record};
use buckets::{Buckets, Cell, size_of_bucket};

mod buckets;

/// Accesses in all, of the sample and of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blocks read.
    pub reads: u64,
    /// Blocks written.
    pub writes: u64,
    /// Reads and writes, as requests.
    pub requests: u64,
    /// Reads, as requests.
    pub read_requests: u64,
}

impl Totals {
    /// Count a request.
    #[inline]
    pub(crate) fn count(&mut self, op: Op, blocks: u64) {
        let (read, write) = (u64::from(op == Op::Read), u64::from(op == Op::Write));
        self.reads += read * blocks;
        self.writes += write * blocks;
        self.requests += read + write;
        self.read_requests += read;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.requests += other.requests;
        self.read_requests += other.read_requests;
    }

    pub(crate) fn decay(&mut self, factor: f64) {
        let counts = [&mut self.reads, &mut self.writes, &mut self.requests, &mut self.read_requests];
        counts.into_iter().for_each(|count| *count = (*count as f64 * factor).round() as u64);
    }
}

/// How hot the block is that is accessed next: any measure that rises steeply with the number of accesses to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heat {
    /// By its reads.
    pub reads: f64,
    /// By its writes.
    pub writes: f64,
}

/// Counts over cache size, scaled up from a sample: a [`Record`] that must be told the rate, and before every access the
/// heat of its block.
#[derive(Clone, Debug)]
pub struct Scaled {
    /// Blocks that one of the sample stands for: one over the rate.
    scale: f64,
    /// Requests that the one under way stands for.
    request: f64,
    heat: Heat,
    reads: Accesses,
    writes: Accesses,
    read_requests: Accesses,
    write_requests: Accesses,
    /// Changes from one size to the next, as those below.
    written_back: Buckets,
    moved_in: Buckets,
    invalidated: Buckets,
}

/// Accesses of one kind, by the size from which they are hits.
#[derive(Clone, Debug, Default)]
struct Accesses {
    from: Buckets,
    /// The largest size that any had.
    largest: u64,
}

impl Default for Scaled {
    fn default() -> Self {
        Self::new()
    }
}

impl Scaled {
    /// Nothing counted, at a rate of 1.
    pub fn new() -> Self {
        Self {
            scale: 1.0,
            request: 1.0,
            heat: Heat::default(),
            reads: Accesses::default(),
            writes: Accesses::default(),
            read_requests: Accesses::default(),
            write_requests: Accesses::default(),
            written_back: Buckets::default(),
            moved_in: Buckets::default(),
            invalidated: Buckets::default(),
        }
    }

    /// The share of the blocks that the sample has from now on, above 0 and up to 1.
    pub fn set_rate(&mut self, rate: f64) {
        self.scale = 1.0 / rate;
    }

    /// Nothing counted, at the same rate.
    pub fn emptied(&self) -> Self {
        Self { scale: self.scale, ..Self::new() }
    }

    /// What is recorded next is about a block so hot.
    pub fn set_heat(&mut self, heat: Heat) {
        self.heat = heat;
    }

    /// The request that is recorded next stands for so many.
    pub fn set_request(&mut self, weight: f64) {
        self.request = weight;
    }

    /// Multiply all counts: with a factor below 1 what was counted so far fades against what comes.
    pub fn decay(&mut self, factor: f64) {
        for accesses in self.accesses_mut() {
            accesses.from.scale(factor);
            accesses.largest = if factor > 0.0 { accesses.largest } else { 0 };
        }
        let changes = [&mut self.written_back, &mut self.moved_in, &mut self.invalidated];
        changes.into_iter().for_each(|buckets| buckets.scale(factor));
    }

    /// Add the counts of another one: of another time, or of other accesses.
    pub fn merge(&mut self, other: &Self) {
        for (accesses, other) in self.accesses_mut().into_iter().zip(other.accesses()) {
            accesses.from.merge(&other.from);
            accesses.largest = accesses.largest.max(other.largest);
        }
        self.written_back.merge(&other.written_back);
        self.moved_in.merge(&other.moved_in);
        self.invalidated.merge(&other.invalidated);
    }

    /// The counts so far, where there were so many accesses in all. Counts are estimates; those of hits rise with the size,
    /// and none passes the accesses of its kind.
    pub fn counted_of(&self, totals: &Totals) -> Counted {
        let Totals { reads, writes, requests, read_requests } = *totals;
        let write_requests = requests.saturating_sub(read_requests);
        let (read_hits, write_hits) = (self.reads.hits(reads), self.writes.hits(writes));
        let read_request_hits = self.read_requests.hits(read_requests);
        let write_request_hits = self.write_requests.hits(write_requests);
        let by_writes = Correction::new(&self.writes.from, writes);
        let largest = self.reads.largest.max(self.writes.largest);
        let changing = |buckets: &Buckets, most: u64| {
            let values = buckets.sums().map(|sum| by_writes.of(sum).clamp(0.0, most as f64));
            // Blocks stay dirty in caches larger than any hit needs.
            curve(values, u64::MAX)
        };
        Counted {
            reads,
            writes,
            requests,
            read_requests,
            read_hits: curve(read_hits, self.reads.largest),
            write_hits: curve(write_hits, self.writes.largest),
            request_hits: curve(added(&read_request_hits, &write_request_hits), largest),
            read_request_hits: curve(read_request_hits, self.reads.largest),
            written_back: changing(&self.written_back, writes),
            moved_in: changing(&self.moved_in, u64::MAX),
            invalidations: changing(&self.invalidated, writes),
        }
    }

    /// The size of the cache that one of `from` blocks of the sample stands for.
    #[inline]
    fn size(&self, from: u32) -> Option<u64> {
        match from {
            NEVER => None,
            0 => Some(0),
            from => Some(((f64::from(from - 1) * self.scale) as u64).saturating_add(1)),
        }
    }

    fn accesses(&self) -> [&Accesses; 4] {
        [&self.reads, &self.writes, &self.read_requests, &self.write_requests]
    }

    fn accesses_mut(&mut self) -> [&mut Accesses; 4] {
        [&mut self.reads, &mut self.writes, &mut self.read_requests, &mut self.write_requests]
    }
}

impl Record for Scaled {
    #[inline]
    fn block(&mut self, kind: AccessKind, from: u32) {
        let size = self.size(from);
        let (accesses, heat) = match kind {
            AccessKind::Read => (&mut self.reads, self.heat.reads),
            AccessKind::Write => (&mut self.writes, self.heat.writes),
        };
        accesses.count(size, self.scale, heat);
    }

    #[inline]
    fn request(&mut self, kind: AccessKind, from: u32) {
        let size = self.size(from);
        let (accesses, heat) = match kind {
            AccessKind::Read => (&mut self.read_requests, self.heat.reads),
            AccessKind::Write => (&mut self.write_requests, self.heat.writes),
        };
        accesses.count(size, self.request, heat);
    }

    fn written_back(&mut self, sizes: Range<u32>) {
        let (start, end) = (self.size(sizes.start), self.size(sizes.end));
        add_range(&mut self.written_back, start, end, self.scale, self.heat.writes);
    }

    fn moved_in(&mut self, sizes: Range<u32>) {
        let (start, end) = (self.size(sizes.start), self.size(sizes.end));
        add_range(&mut self.moved_in, start, end, self.scale, 0.0);
    }

    fn invalidated(&mut self, from: u32) {
        let from = self.size(from);
        add_range(&mut self.invalidated, from, None, self.scale, self.heat.writes);
    }

    /// The counts of the sample alone, scaled up.
    fn counted(&self) -> Counted {
        let total = |accesses: &Accesses| accesses.from.total().weight.round() as u64;
        let read_requests = total(&self.read_requests);
        self.counted_of(&Totals {
            reads: total(&self.reads),
            writes: total(&self.writes),
            requests: read_requests + total(&self.write_requests),
            read_requests,
        })
    }

    fn memory_bytes(&self) -> usize {
        let changes = [&self.written_back, &self.moved_in, &self.invalidated];
        let buckets = self.accesses().into_iter().map(|accesses| &accesses.from).chain(changes);
        size_of::<Self>() + buckets.map(Buckets::memory_bytes).sum::<usize>()
    }
}

impl Accesses {
    #[inline]
    fn count(&mut self, size: Option<u64>, weight: f64, heat: f64) {
        self.from.add(size, Cell { weight, heat: weight * heat });
        self.largest = self.largest.max(size.unwrap_or(0));
    }

    /// Hits by bucket, of `total` accesses.
    ///
    /// Counts of small sizes are the least certain: where they pass those of larger ones, they are lowered.
    fn hits(&self, total: u64) -> Vec<f64> {
        let correction = Correction::new(&self.from, total);
        let mut hits: Vec<_> =
            self.from.sums().map(|sum| correction.of(sum).clamp(0.0, total as f64)).collect();
        let mut least = total as f64;
        for hits in hits.iter_mut().rev() {
            least = least.min(*hits);
            *hits = least;
        }
        hits
    }
}

/// How the difference between the accesses that a sample stands for, and those that there were, is shared out.
struct Correction {
    /// Accesses for one of heat.
    per_heat: f64,
}

impl Correction {
    fn new(accesses: &Buckets, total: u64) -> Self {
        let sampled = accesses.total();
        let lack = total as f64 - sampled.weight;
        Self { per_heat: if sampled.heat > 0.0 { lack / sampled.heat } else { 0.0 } }
    }

    fn of(&self, sum: Cell) -> f64 {
        sum.weight + self.per_heat * sum.heat
    }
}

/// Count at the sizes from `start` to before `end`.
fn add_range(buckets: &mut Buckets, start: Option<u64>, end: Option<u64>, weight: f64, heat: f64) {
    let cell = Cell { weight, heat: weight * heat };
    if start.is_some() {
        buckets.add(start, cell);
    }
    if end.is_some() {
        buckets.add(end, Cell { weight: -cell.weight, heat: -cell.heat });
    }
}

/// The sums of two lists, the shorter of which goes on as it ends.
fn added(a: &[f64], b: &[f64]) -> Vec<f64> {
    let at = |list: &[f64], bucket: usize| list.get(bucket).or(list.last()).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|bucket| at(a, bucket) + at(b, bucket)).collect()
}

/// A curve from its value at each bucket; no size is above `largest`.
fn curve(values: impl IntoIterator<Item = f64>, largest: u64) -> SizeCurve {
    let mut before = 0i64;
    let steps = values.into_iter().enumerate().map(|(bucket, value)| {
        let value = value.round() as i64;
        (size_of_bucket(bucket).min(largest), value - std::mem::replace(&mut before, value))
    });
    SizeCurve::changing(steps)
}

#[cfg(test)]
mod tests;
