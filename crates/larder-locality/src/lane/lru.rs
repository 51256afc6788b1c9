//! LRU caches that take every access: the stack of `wb` and `wt`.
//!
//! Both hold the same blocks, at the depths that [`Places`] tells; under `wt` nobody asks for write-backs.
//!
//! Dirty blocks (Thompson and Smith, "Efficient (stack) algorithms for analysis of write-back and sector memories", ACM TOCS
//! 7(1), 1989): for each block, the smallest cache in which it is dirty. A write makes it dirty in all; those too small to
//! serve a later access have written it back by then, once. They are counted when the block is written again or discarded.

use crate::BlockId;

use super::places::Places;
use super::share::Share;
use super::{Model, NEVER, Record};

mod join;

pub(super) use join::UNWRITTEN;

/// The stack of an LRU cache under `wb` and `wt`: a [`Model`].
///
/// An access takes constant time up to a logarithm of the footprint. Memory is proportional to the footprint: 8 bytes a
/// block, and one or two for the timeline.
#[derive(Clone, Debug, Default)]
pub struct LruModel {
    blocks: Vec<Known>,
    places: Places,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Its slot; [`NEVER`] while no cache holds it.
    slot: u32,
    /// The smallest cache in which it is dirty; [`NEVER`] if it is clean.
    pub(super) dirty: u32,
}

const UNKNOWN: Known = Known { slot: NEVER, dirty: NEVER };

impl LruModel {
    /// An empty stack.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bring a block to the top: the smallest cache that held it, and what is known of it, to be changed.
    #[inline]
    pub(super) fn touch(&mut self, block: BlockId) -> (u32, &mut Known) {
        if self.places.timeline().is_full() {
            self.compact(0);
        }
        let block = block as usize;
        if block >= self.blocks.len() {
            self.blocks.resize(block + 1, UNKNOWN);
        }
        let known = &mut self.blocks[block];
        let slot = std::mem::replace(&mut known.slot, self.places.timeline().next());
        let size = self.places.rise(slot);
        (size, known)
    }

    /// Number the slots anew, without gaps, and make room for so many more places.
    #[cold]
    #[inline(never)]
    pub(super) fn compact(&mut self, more: u32) {
        self.places.compact(self.blocks.iter_mut().map(|known| &mut known.slot), more);
    }
}

impl Known {
    /// Tell of the caches that have written the block back since it was written: those too small to serve it from `size` on,
    /// or to have served it before.
    #[inline]
    pub(super) fn written_back(self, size: u32, record: &mut impl Record) {
        let until = self.dirty.max(size);
        if self.dirty != NEVER && until > 1 {
            record.written_back(1..until);
        }
    }
}

impl Model for LruModel {
    #[inline]
    fn read(&mut self, block: BlockId, _: &mut impl Record) -> u32 {
        let (size, known) = self.touch(block);
        // A block that no cache holds is clean, and stays so.
        known.dirty = known.dirty.max(size);
        size
    }

    #[inline]
    fn write(&mut self, block: BlockId, record: &mut impl Record) -> u32 {
        let (size, known) = self.touch(block);
        known.written_back(size, record);
        known.dirty = 1;
        size
    }

    fn discard(&mut self, block: BlockId, record: &mut impl Record) {
        let Some(known) = self.blocks.get_mut(block as usize) else { return };
        let Known { slot, .. } = *known;
        known.written_back(self.places.size(slot), record);
        *known = UNKNOWN;
        self.places.open(slot);
    }

    fn settle(&self, record: &mut impl Record) {
        let timeline = self.places.timeline();
        let ranks = timeline.ranks();
        for known in self.blocks.iter().filter(|known| known.dirty != NEVER) {
            known.written_back(timeline.live() - ranks.rank(known.slot), record);
        }
    }

    /// Holes belong to no block: as many stay as there are blocks that do, in proportion, from all depths. The same share is
    /// taken of the sizes in which blocks are dirty.
    fn retain(&mut self, renumbered: &[BlockId]) {
        let share = Share::of(renumbered);
        let mut blocks = vec![UNKNOWN; share.kept()];
        for (&known, &block) in self.blocks.iter().zip(renumbered) {
            if block != NEVER {
                blocks[block as usize] = Known { dirty: share.size(known.dirty), ..known };
            } else {
                self.places.forget(known.slot);
            }
        }
        self.blocks = blocks;
        self.places.thin_holes(share);
        self.compact(0);
    }

    #[inline]
    fn warm(&self, blocks: &[BlockId]) -> u32 {
        let slot = |&block: &BlockId| self.blocks.get(block as usize).map_or(NEVER, |known| known.slot);
        let first = blocks.iter().fold(0, |sum, block| sum ^ slot(block));
        let second = blocks.iter().fold(0, |sum, block| sum ^ self.places.timeline().warm(slot(block)));
        first ^ second as u32
    }

    fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Known>() + self.places.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
