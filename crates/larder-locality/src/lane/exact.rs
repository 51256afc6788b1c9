//! Exact counts over cache size: one counter for every size.

use std::ops::Range;

use crate::curves::Counted;
use crate::{AccessKind, SizeCurve};

use super::Record;
use super::by_size::BySize;

/// A [`Record`] that keeps every size apart. Memory is proportional to the largest size counted: 16 bytes a block, and 16
/// more where requests have several blocks.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    /// Requests of one block; and write-backs, whose sizes end where the access that tells of them is served: the counters
    /// of a size lie on one cache line.
    alone: BySize<4>,
    /// Requests of several blocks, and their blocks.
    many: BySize<4>,
    /// What a mover brought in; invalidations.
    moved: BySize<3>,
}

// Counters of `alone`.
const ONE_READ: usize = 0;
const ONE_WRITE: usize = 1;
const BACK_FROM: usize = 2;
const BACK_UNTIL: usize = 3;

// Counters of `many`.
const BLOCK_READ: usize = 0;
const BLOCK_WRITE: usize = 1;
const READ: usize = 2;
const WRITE: usize = 3;

// Counters of `moved`.
const MOVED_FROM: usize = 0;
const MOVED_UNTIL: usize = 1;
const INVALIDATED: usize = 2;

impl Exact {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.alone.merge(&other.alone);
        self.many.merge(&other.many);
        self.moved.merge(&other.moved);
    }

    /// What these counters of `alone` and `many` counted, whatever the size.
    fn total(&self, alone: usize, many: usize) -> u64 {
        self.alone.total(alone) + self.many.total(many)
    }

    /// Hits over size: the sum of these counters of `alone` and `many`.
    fn hits(&self, alone: &[usize], many: &[usize]) -> SizeCurve {
        let sizes = 0..self.alone.sizes().max(self.many.sizes());
        let count = |size| {
            let alone = alone.iter().map(|&which| self.alone.count(size, which));
            let many = many.iter().map(|&which| self.many.count(size, which));
            (u64::from(size), alone.chain(many).sum())
        };
        SizeCurve::rising(sizes.map(count).filter(|&(_, count)| count > 0))
    }
}

impl Record for Exact {
    #[inline]
    fn block(&mut self, kind: AccessKind, from: u32) {
        self.many.add(from, by_kind(kind, BLOCK_READ, BLOCK_WRITE));
    }

    #[inline]
    fn request(&mut self, kind: AccessKind, from: u32) {
        self.many.add(from, by_kind(kind, READ, WRITE));
    }

    #[inline]
    fn request_of_one(&mut self, kind: AccessKind, from: u32) {
        self.alone.add(from, by_kind(kind, ONE_READ, ONE_WRITE));
    }

    #[inline]
    fn written_back(&mut self, sizes: Range<u32>) {
        self.alone.add(sizes.start, BACK_FROM);
        self.alone.add(sizes.end, BACK_UNTIL);
    }

    #[inline]
    fn moved_in(&mut self, sizes: Range<u32>) {
        self.moved.add(sizes.start, MOVED_FROM);
        self.moved.add(sizes.end, MOVED_UNTIL);
    }

    #[inline]
    fn invalidated(&mut self, from: u32) {
        self.moved.add(from, INVALIDATED);
    }

    fn flush(&mut self) {
        self.alone.flush();
        self.many.flush();
        self.moved.flush();
    }

    fn counted(&self) -> Counted {
        if !(self.alone.is_flushed() && self.many.is_flushed() && self.moved.is_flushed()) {
            let mut flushed = self.clone();
            flushed.flush();
            return flushed.counted();
        }
        let read_requests = self.total(ONE_READ, READ);
        Counted {
            reads: self.total(ONE_READ, BLOCK_READ),
            writes: self.total(ONE_WRITE, BLOCK_WRITE),
            requests: read_requests + self.total(ONE_WRITE, WRITE),
            read_requests,
            read_hits: self.hits(&[ONE_READ], &[BLOCK_READ]),
            write_hits: self.hits(&[ONE_WRITE], &[BLOCK_WRITE]),
            request_hits: self.hits(&[ONE_READ, ONE_WRITE], &[READ, WRITE]),
            read_request_hits: self.hits(&[ONE_READ], &[READ]),
            written_back: self.alone.ranges(BACK_FROM, BACK_UNTIL),
            moved_in: self.moved.ranges(MOVED_FROM, MOVED_UNTIL),
            invalidations: self.moved.rising(INVALIDATED),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.alone.memory_bytes() + self.many.memory_bytes() + self.moved.memory_bytes()
    }
}

fn by_kind(kind: AccessKind, read: usize, write: usize) -> usize {
    match kind {
        AccessKind::Read => read,
        AccessKind::Write => write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::NEVER;

    #[test]
    fn every_count_is_told() {
        let mut record = Exact::new();
        record.request_of_one(AccessKind::Read, 3);
        record.block(AccessKind::Read, 5);
        record.block(AccessKind::Write, NEVER);
        record.request(AccessKind::Read, 5);
        record.request(AccessKind::Write, 0);
        record.written_back(2..4);
        record.moved_in(1..NEVER);
        record.invalidated(6);
        let mut twice = record.clone();
        twice.merge(&record);
        let rising = |pairs: &[(u64, u64)]| SizeCurve::rising(pairs.iter().copied());
        let changing = |pairs: &[(u64, i64)]| SizeCurve::changing(pairs.iter().copied());
        let expected = Counted {
            reads: 4,
            writes: 2,
            requests: 6,
            read_requests: 4,
            read_hits: rising(&[(3, 2), (5, 2)]),
            write_hits: SizeCurve::default(),
            request_hits: rising(&[(0, 2), (3, 2), (5, 2)]),
            read_request_hits: rising(&[(3, 2), (5, 2)]),
            written_back: changing(&[(2, 2), (4, -2)]),
            moved_in: rising(&[(1, 2)]),
            invalidations: rising(&[(6, 2)]),
        };
        assert_eq!(twice.counted(), expected);
    }
}
