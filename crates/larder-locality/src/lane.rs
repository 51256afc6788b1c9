//! Lanes: one pass over the accesses for each kind of LRU cache, all cache sizes at once.
//!
//! A [`Lane`] is a [`Model`] (the LRU stack of one kind of cache, which tells of every access the smallest cache that
//! serves it) and a [`Record`] (the counts over cache size that come of it).
//!
//! Sizes are in blocks. An access with reuse distance `d` is served by caches of `d + 1` blocks and more; one that no
//! cache serves has the size [`NEVER`].

use std::ops::Range;

use crate::curves::Counted;
use crate::{AccessKind, BlockId, Op, Stretch};

mod batched;
mod by_size;
mod classes;
mod exact;
mod lru;
#[cfg(test)]
pub(crate) mod naive;
mod no_allocate;
mod parts;
mod places;
mod ranked;
mod read_only;
mod scaled;
mod share;
mod stack;
mod stairs;
#[cfg(test)]
mod trials;

pub use batched::BatchedModel;
pub use classes::ClassCounter;
pub use exact::Exact;
pub use lru::LruModel;
pub use no_allocate::NoAllocateModel;
pub use parts::LruPart;
pub use read_only::ReadOnlyModel;
pub use scaled::{Heat, Scaled, Totals};

/// Larger than every cache: the size from which an access is served that no cache serves.
pub const NEVER: u32 = u32::MAX;

/// The LRU stack of one kind of cache. Blocks enter and leave caches of all sizes as accesses come.
///
/// A block that was never seen has the next number; models grow their arrays as needed.
pub trait Model: Send {
    /// Read a block: the smallest cache that holds it now, before the read. Costs that come of it go to `record`.
    fn read(&mut self, block: BlockId, record: &mut impl Record) -> u32;

    /// Write a block: the smallest cache that takes the write as a hit.
    fn write(&mut self, block: BlockId, record: &mut impl Record) -> u32;

    /// A block leaves all caches, unwritten.
    fn discard(&mut self, block: BlockId, record: &mut impl Record);

    /// A mover epoch ends; only batched population cares.
    fn populate(&mut self, record: &mut impl Record) {
        let _ = record;
    }

    /// Tell what has happened in caches already, but is told only at a later access to its block: dirty blocks that were
    /// evicted since. Nothing changes.
    fn settle(&self, record: &mut impl Record) {
        let _ = record;
    }

    /// Forget blocks as if they had never been (those with [`NEVER`] in `renumbered`), and give the others their new
    /// numbers: `renumbered[old]`. For samples that are thinned out. Takes time in the number of blocks.
    fn retain(&mut self, renumbered: &[BlockId]);

    /// Read the memory that accesses to these blocks will need, all at once; nothing changes. Returns a number to keep
    /// the compiler from leaving it out.
    fn warm(&self, blocks: &[BlockId]) -> u32 {
        let _ = blocks;
        0
    }

    /// Bytes of memory held.
    fn memory_bytes(&self) -> usize;
}

/// Counts over cache size. Sizes are those of the model: of a sample where blocks are sampled.
pub trait Record: Clone + Send {
    /// A block was accessed: a hit in caches from `from` blocks on.
    fn block(&mut self, kind: AccessKind, from: u32);

    /// A request ended: a hit in caches from `from` blocks on (Centaur, section IV: the largest of its blocks counts).
    /// One without blocks has 0.
    fn request(&mut self, kind: AccessKind, from: u32);

    /// A request of exactly one block: the block was accessed, and the request ended.
    fn request_of_one(&mut self, kind: AccessKind, from: u32) {
        self.block(kind, from);
        self.request(kind, from);
    }

    /// A dirty block was written back by caches of these sizes. Never called with an empty range.
    fn written_back(&mut self, sizes: Range<u32>);

    /// A mover brought a block into caches of these sizes. Never called with an empty range.
    fn moved_in(&mut self, sizes: Range<u32>);

    /// A write made its block leave caches from `from` blocks on.
    fn invalidated(&mut self, from: u32);

    /// Count what may have been put off, to be counted together with more. It belongs to the counts in any case; they are
    /// told faster without.
    fn flush(&mut self) {}

    /// The counts so far.
    fn counted(&self) -> Counted;

    /// Bytes of memory held.
    fn memory_bytes(&self) -> usize;
}

/// One kind of cache over a stream of accesses.
#[derive(Clone, Debug)]
pub struct Lane<M, R> {
    model: M,
    record: R,
    /// The request under way: the largest size of its blocks so far.
    from: u32,
}

/// Accesses whose memory is read together.
const WARM: usize = 32;

impl<M: Model, R: Record> Lane<M, R> {
    /// A lane at its start.
    pub fn new(model: M, record: R) -> Self {
        Self { model, record, from: 0 }
    }

    /// Take what comes next.
    pub fn process(&mut self, stretch: &Stretch<'_>) {
        for (piece, range) in stretch.parts() {
            match piece.op {
                Op::Read => self.part(stretch, range, piece.last, AccessKind::Read, M::read),
                Op::Write => self.part(stretch, range, piece.last, AccessKind::Write, M::write),
                Op::Discard => {
                    for &block in &stretch.blocks[range] {
                        self.model.discard(block, &mut self.record);
                    }
                }
                Op::Populate => self.model.populate(&mut self.record),
            }
        }
    }

    /// The counts so far, over cache size.
    pub fn counted(&self) -> Counted {
        let mut record = self.record.clone();
        self.settle(&mut record);
        record.counted()
    }

    /// Tell `record` what has happened already, but would be told later only ([`Model::settle`]).
    pub fn settle(&self, record: &mut R) {
        self.model.settle(record);
    }

    /// The record, without what [`Lane::settle`] would add.
    pub fn record(&self) -> &R {
        &self.record
    }

    /// The model, to look at or to thin out.
    pub fn model_mut(&mut self) -> &mut M {
        &mut self.model
    }

    /// The record, to change the scale of.
    pub fn record_mut(&mut self) -> &mut R {
        &mut self.record
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.model.memory_bytes() + self.record.memory_bytes()
    }

    /// A part of a request, maybe all of it.
    #[inline]
    fn part(
        &mut self,
        stretch: &Stretch<'_>,
        range: Range<usize>,
        last: bool,
        kind: AccessKind,
        access: impl Fn(&mut M, BlockId, &mut R) -> u32,
    ) {
        // No block came before: each has a size of 1 at least.
        if last && range.len() == 1 && self.from == 0 {
            self.warm(stretch, range.start);
            let from = access(&mut self.model, stretch.blocks[range.start], &mut self.record);
            return self.record.request_of_one(kind, from);
        }
        for at in range {
            self.warm(stretch, at);
            let from = access(&mut self.model, stretch.blocks[at], &mut self.record);
            self.record.block(kind, from);
            self.from = self.from.max(from);
        }
        if last {
            self.record.request(kind, std::mem::take(&mut self.from));
        }
    }

    /// Before the access at every [`WARM`]th place: have the memory of those to come at hand.
    #[inline]
    fn warm(&self, stretch: &Stretch<'_>, at: usize) {
        if at.is_multiple_of(WARM) {
            let ahead = &stretch.blocks[at..stretch.blocks.len().min(at + WARM)];
            std::hint::black_box(self.model.warm(ahead));
        }
    }
}
