//! The blocks of a sample: how each was accessed, and which of them stay when there are too many.

use crate::lane::{Heat, NEVER};
use crate::sampling::Filter;
use crate::{AccessKind, BlockId};

/// What is known of a block of the sample.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The hash that the filter goes by.
    hash: u64,
    /// Twice the number of its last access, and one if that was a write.
    last: u64,
    /// Reads and writes; they fade as the counts do.
    reads: f32,
    writes: f32,
}

impl Known {
    fn last_access(&self) -> u64 {
        self.last >> 1
    }

    /// A missing access is one to a hot block, more likely than its share of the accesses says: the blocks that a sample
    /// misses, or has too many of, are hotter than any others.
    fn heat(&self) -> Heat {
        let square = |count: f32| f64::from(count) * f64::from(count);
        Heat { reads: square(self.reads), writes: square(self.writes) }
    }
}

/// How a block was seen before an access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// What its last access did; none where this is the first.
    pub(super) last: Option<AccessKind>,
    /// True if it was not accessed since the last decay.
    pub(super) new: bool,
    /// How hot it is, this access included.
    pub(super) heat: Heat,
}

/// The blocks of the sample, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    known: Vec<Known>,
    /// Accesses so far.
    accesses: u64,
    /// Accesses before the last decay.
    decayed: u64,
}

impl Sample {
    /// An access to a block: a known one, or the next.
    #[inline]
    pub(super) fn access(&mut self, block: BlockId, hash: u64, kind: AccessKind) -> Seen {
        let before = self.known.get(block as usize).map(|known| known.last);
        if before.is_none() {
            self.known.push(Known { hash, last: 0, reads: 0.0, writes: 0.0 });
        }
        let known = &mut self.known[block as usize];
        let (count, bit) = match kind {
            AccessKind::Read => (&mut known.reads, 0),
            AccessKind::Write => (&mut known.writes, 1),
        };
        *count += 1.0;
        known.last = self.accesses << 1 | bit;
        self.accesses += 1;
        Seen {
            last: before.map(|last| if last & 1 == 1 { AccessKind::Write } else { AccessKind::Read }),
            new: before.is_none_or(|last| last >> 1 < self.decayed),
            heat: known.heat(),
        }
    }

    /// How hot a block is.
    pub(super) fn heat(&self, block: BlockId) -> Heat {
        self.known[block as usize].heat()
    }

    /// The first access that the `blocks` blocks used last were used by, each the last time.
    pub(super) fn first_access_of_newest(&self, blocks: usize) -> u64 {
        let mut last: Vec<_> = self.known.iter().map(Known::last_access).collect();
        match last.len().checked_sub(blocks) {
            Some(older) if older < last.len() => *last.select_nth_unstable(older).1,
            Some(_) => self.accesses,
            None => 0,
        }
    }

    /// Of the blocks used at or after an access, the hash below which `blocks` hashes are; none where there are no more.
    pub(super) fn hash_above(&self, blocks: usize, since: u64) -> Option<u64> {
        let recent = self.known.iter().filter(|known| known.last_access() >= since);
        let mut hashes: Vec<_> = recent.map(|known| known.hash).collect();
        (blocks < hashes.len()).then(|| *hashes.select_nth_unstable(blocks).1)
    }

    /// True if a block is used at or after an access, and in the sample of a filter.
    pub(super) fn stays(&self, block: BlockId, since: u64, filter: &Filter) -> bool {
        let known = self.known[block as usize];
        known.last_access() >= since && filter.has(known.hash)
    }

    /// How many blocks that are in the sample of a filter were used before an access for the last time.
    pub(super) fn forgotten(&self, since: u64, filter: &Filter) -> usize {
        self.known.iter().filter(|known| known.last_access() < since && filter.has(known.hash)).count()
    }

    /// Forget blocks; the others get new numbers, in the same order.
    pub(super) fn retain(&mut self, renumbered: &[BlockId]) {
        let mut now = renumbered.iter();
        self.known.retain(|_| now.next().is_some_and(|&now| now != NEVER));
    }

    /// Multiply all counts.
    pub(super) fn decay(&mut self, factor: f64) {
        self.decayed = self.accesses;
        for known in &mut self.known {
            known.reads *= factor as f32;
            known.writes *= factor as f32;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.known.capacity() * size_of::<Known>()
    }
}
