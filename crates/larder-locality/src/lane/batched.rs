//! Batched population: the stack of caches that a mover changes at the end of every epoch, and nothing in between.
//!
//! Centaur (section IV and VII-C) computes their curve with two stacks: accesses are looked up in one that stays as it is
//! for an epoch, and are noted in a *shadow* stack; at the epoch's end the shadow becomes the stack. Here the shadow is the
//! one [`Stack`], and the other is a copy of its timeline at the end of the last epoch: a block that was not accessed since
//! has kept its slot, so that its depth then can still be counted. It is counted at the block's first access in an epoch, and
//! kept until the end of it.
//!
//! The caches are write-back: a write that hits makes its block dirty in the caches that hold it, any other goes to the
//! backing. Dirty blocks that fall out at an epoch's end are told at their next access (Thompson and Smith, "Efficient (stack)
//! algorithms for analysis of write-back and sector memories", ACM TOCS 7(1), 1989).

use crate::BlockId;
use crate::timeline::Timeline;

use super::share::Share;
use super::stack::Stack;
use super::{Model, NEVER, Record};

/// The [`Model`] of LRU caches under batched population, empty until the first epoch ends.
///
/// An access takes time in the logarithm of the stack, the end of an epoch in the number of blocks accessed in it, and in the
/// bits of the timeline to copy it. Memory: 12 bytes a block, 4 for each block accessed in an epoch, and 2 to 4 for the timelines.
#[derive(Clone, Debug)]
pub struct BatchedModel {
    /// What the caches will hold at the end of this epoch.
    shadow: Stack,
    /// The shadow's timeline at the end of the last epoch. Tells nothing of blocks that were looked up since.
    frozen: Timeline,
    blocks: Vec<Known>,
    /// The blocks whose depth is known.
    looked_up: Vec<BlockId>,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The smallest cache that holds it in this epoch; [`NEVER`] if none does; [`UNKNOWN`] until it is looked up.
    depth: u32,
    /// The smallest cache in which it is dirty; [`NEVER`] if it is clean.
    dirty: u32,
}

const UNKNOWN: u32 = 0;

impl BatchedModel {
    /// Empty caches.
    pub fn new() -> Self {
        Self {
            shadow: Stack::new(),
            frozen: Timeline::with_room(0),
            blocks: Vec::new(),
            looked_up: Vec::new(),
        }
    }

    /// Note an access: the smallest cache that holds the block in this epoch, and what is known of it.
    #[inline]
    fn access(&mut self, block: BlockId, record: &mut impl Record) -> (u32, &mut Known) {
        if self.shadow.is_full() {
            self.look_up_all();
        }
        let depth = self.look_up(block);
        self.shadow.access(block);
        let known = &mut self.blocks[block as usize];
        known.evicted_below(depth, record);
        (depth, known)
    }

    #[inline]
    fn look_up(&mut self, block: BlockId) -> u32 {
        if block as usize >= self.blocks.len() {
            self.blocks.resize(block as usize + 1, Known { depth: UNKNOWN, dirty: NEVER });
        }
        let depth = self.depth(block);
        let known = &mut self.blocks[block as usize];
        if known.depth == UNKNOWN {
            known.depth = depth;
            self.looked_up.push(block);
        }
        depth
    }

    /// Before slots are numbered anew, which the copy of the timeline does not follow.
    #[cold]
    fn look_up_all(&mut self) {
        (0..self.blocks.len() as BlockId).for_each(|block| {
            self.look_up(block);
        });
    }

    /// The smallest cache that holds a known block in this epoch.
    #[inline]
    fn depth(&self, block: BlockId) -> u32 {
        match self.blocks[block as usize].depth {
            UNKNOWN => self.shadow.slot(block).map_or(NEVER, |slot| self.frozen.live_after(slot) + 1),
            depth => depth,
        }
    }
}

impl Known {
    /// The block is in caches from `depth` on: smaller ones have written it back, if it was dirty in them.
    #[inline]
    fn evicted_below(&mut self, depth: u32, record: &mut impl Record) {
        if self.dirty < depth {
            record.written_back(self.dirty..depth);
            self.dirty = depth;
        }
    }
}

impl Default for BatchedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for BatchedModel {
    #[inline]
    fn read(&mut self, block: BlockId, record: &mut impl Record) -> u32 {
        self.access(block, record).0
    }

    #[inline]
    fn write(&mut self, block: BlockId, record: &mut impl Record) -> u32 {
        let (depth, known) = self.access(block, record);
        known.dirty = depth;
        depth
    }

    fn discard(&mut self, block: BlockId, record: &mut impl Record) {
        if block as usize >= self.blocks.len() {
            return;
        }
        let depth = self.look_up(block);
        self.blocks[block as usize].evicted_below(depth, record);
        self.blocks[block as usize] = Known { depth: NEVER, dirty: NEVER };
        self.shadow.remove(block);
    }

    fn populate(&mut self, record: &mut impl Record) {
        if self.looked_up.is_empty() {
            return;
        }
        for block in self.looked_up.drain(..) {
            let before = std::mem::replace(&mut self.blocks[block as usize].depth, UNKNOWN);
            let now = self.shadow.depth(block);
            if now < before {
                record.moved_in(now..before);
            }
        }
        self.frozen = self.shadow.timeline().clone();
    }

    fn settle(&self, record: &mut impl Record) {
        for (block, known) in (0..).zip(&self.blocks).filter(|(_, known)| known.dirty != NEVER) {
            known.clone().evicted_below(self.depth(block), record);
        }
    }

    /// Of the places that belong to no block, and of the sizes in which blocks are dirty, the same share stays.
    fn retain(&mut self, renumbered: &[BlockId]) {
        self.look_up_all();
        let share = Share::of(renumbered);
        let mut held: Vec<_> = (0..self.blocks.len()).filter(|&at| self.blocks[at].depth != NEVER).collect();
        held.sort_unstable_by_key(|&at| self.blocks[at].depth);
        let mut blocks = vec![Known { depth: NEVER, dirty: NEVER }; share.kept()];
        let mut above = 0;
        for (all_above, at) in (0..).zip(held) {
            let (Known { depth, dirty }, now) = (self.blocks[at], renumbered[at]);
            if now != NEVER {
                let depth = 1 + above + share.part(depth - 1 - all_above);
                blocks[now as usize] = Known { depth, dirty: share.size(dirty) };
                above += 1;
            }
        }
        self.looked_up = (0..share.kept() as BlockId).collect();
        self.blocks = blocks;
        self.shadow.retain(renumbered);
    }

    #[inline]
    fn warm(&self, blocks: &[BlockId]) -> u32 {
        let known = blocks.iter().filter_map(|&block| self.blocks.get(block as usize));
        known.fold(self.shadow.warm(blocks), |sum, known| sum ^ known.depth)
    }

    fn memory_bytes(&self) -> usize {
        self.shadow.memory_bytes()
            + self.frozen.memory_bytes()
            + self.blocks.capacity() * size_of::<Known>()
            + self.looked_up.capacity() * size_of::<BlockId>()
    }
}

#[cfg(test)]
mod tests;
