//! LRU caches that take every access: the stack of `wb` and `wt`.
//!
//! Both hold the same blocks; under `wt` nobody asks for write-backs. A block's depth in the LRU stack is the number of live
//! slots of a [`Timeline`] from its own on (Bennett and Kruskal, "LRU stack processing", IBM J. Res. Dev. 19, 1975).
//!
//! A block that was discarded leaves a *hole* at its depth: a free place in the caches that held it. The next block that
//! enters takes the topmost hole, and what lies below stays where it is. A hole is a live slot without a block.
//!
//! Dirty blocks (Thompson and Smith, "Efficient (stack) algorithms for analysis of write-back and sector memories", ACM TOCS
//! 7(1), 1989): for each block, the smallest cache in which it is dirty. A write makes it dirty in all; those too small to
//! serve a later access have written it back by then, once. They are counted when the block is written again.

use std::collections::BinaryHeap;

use crate::BlockId;
use crate::timeline::Timeline;

use super::share::Share;
use super::{Model, NEVER, Record};

/// The stack of an LRU cache under `wb` and `wt`: a [`Model`].
///
/// An access takes constant time up to a logarithm of the footprint over 512. Memory is proportional to the footprint: 8
/// bytes a block, and one or two for the timeline.
#[derive(Clone, Debug)]
pub struct LruModel {
    blocks: Vec<Known>,
    timeline: Timeline,
    /// Slots of holes, the topmost first.
    holes: BinaryHeap<u32>,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its slot; [`NEVER`] while no cache holds it.
    slot: u32,
    /// The smallest cache in which it is dirty; [`NEVER`] if it is clean.
    dirty: u32,
}

const UNKNOWN: Known = Known { slot: NEVER, dirty: NEVER };

impl Default for LruModel {
    fn default() -> Self {
        Self::new()
    }
}

impl LruModel {
    /// An empty stack.
    pub fn new() -> Self {
        Self { blocks: Vec::new(), timeline: Timeline::with_room(0), holes: BinaryHeap::new() }
    }

    /// Bring a block to the top: where it was, and what is known of it, to be changed.
    #[inline]
    fn touch(&mut self, block: BlockId) -> (u32, &mut Known) {
        if self.timeline.is_full() {
            self.compact();
        }
        let block = block as usize;
        if block >= self.blocks.len() {
            self.blocks.resize(block + 1, UNKNOWN);
        }
        let known = &mut self.blocks[block];
        let slot = std::mem::replace(&mut known.slot, self.timeline.next());
        let size = if self.holes.is_empty() {
            match slot {
                NEVER => NEVER,
                slot => self.timeline.take(slot) + 1,
            }
        } else {
            fill_hole(&mut self.holes, &mut self.timeline, slot)
        };
        self.timeline.push();
        (size, known)
    }

    /// Number the slots anew, without gaps.
    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        let ranks = self.timeline.ranks();
        for known in self.blocks.iter_mut().filter(|known| known.slot != NEVER) {
            known.slot = ranks.rank(known.slot);
        }
        self.holes = self.holes.iter().map(|&slot| ranks.rank(slot)).collect();
        self.timeline = Timeline::with_room(self.timeline.live());
    }
}

/// Take the slot of a block that enters or moves to the top, where there are holes: gives its size. The topmost hole, if it
/// lies above, takes what the block pushes down; so the block's old place is free then.
#[cold]
fn fill_hole(holes: &mut BinaryHeap<u32>, timeline: &mut Timeline, slot: u32) -> u32 {
    let hole = holes.peek().copied().filter(|&hole| slot == NEVER || hole > slot);
    let size = match (slot, hole) {
        (NEVER, _) => NEVER,
        (slot, None) => return timeline.take(slot) + 1,
        (slot, Some(_)) => timeline.live_after(slot) + 1,
    };
    if let Some(hole) = hole {
        timeline.erase(hole);
        holes.pop();
        if slot != NEVER {
            holes.push(slot);
        }
    }
    size
}

impl Known {
    /// Tell of the caches that have written the block back since it was written: those too small to serve it from `size` on,
    /// or to have served it before.
    #[inline]
    fn written_back(self, size: u32, record: &mut impl Record) {
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
        let Some(&Known { slot, .. }) = self.blocks.get(block as usize) else { return };
        if slot == NEVER {
            return;
        }
        let size = self.timeline.live_after(slot) + 1;
        let known = &mut self.blocks[block as usize];
        known.written_back(size, record);
        *known = UNKNOWN;
        self.holes.push(slot);
    }

    fn settle(&self, record: &mut impl Record) {
        let ranks = self.timeline.ranks();
        for known in self.blocks.iter().filter(|known| known.dirty != NEVER) {
            let size = self.timeline.live() - ranks.rank(known.slot);
            known.written_back(size, record);
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
            } else if known.slot != NEVER {
                self.timeline.erase(known.slot);
            }
        }
        self.blocks = blocks;
        let holes = std::mem::take(&mut self.holes).into_sorted_vec();
        for (at, hole) in (0..).zip(holes) {
            match share.keeps(at) {
                true => self.holes.push(hole),
                false => self.timeline.erase(hole),
            }
        }
        self.compact();
    }

    #[inline]
    fn warm(&self, blocks: &[BlockId]) -> u32 {
        let slot = |&block: &BlockId| self.blocks.get(block as usize).map_or(NEVER, |known| known.slot);
        let first = blocks.iter().fold(0, |sum, block| sum ^ slot(block));
        let second = blocks.iter().fold(0, |sum, block| sum ^ self.timeline.warm(slot(block)));
        first ^ second as u32
    }

    fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Known>()
            + self.timeline.memory_bytes()
            + self.holes.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests;
