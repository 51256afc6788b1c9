//! The LRU stack with free places: who lies how deep, when blocks also leave from the middle.
//!
//! A block that leaves all caches leaves a free place, a *hole*, in those that held it. The stack keeps the hole at the
//! block's depth: the blocks below stay as deep as they are. An access that comes from below the topmost hole, or from
//! outside, fills it in the caches that do not hold its block: the blocks below the hole are not pushed down, and what the
//! block leaves behind in the caches that held it is the next hole.

use std::collections::BinaryHeap;

use crate::BlockId;
use crate::timeline::Timeline;

use super::NEVER;
use super::share::Share;

/// The slot of a block that is not in the stack.
const NOWHERE: u32 = u32::MAX;

/// Blocks in the order of their last accesses, with holes.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// A live slot for every place of the stack, of a block or a hole; the newest is the top.
    timeline: Timeline,
    /// Each block's slot.
    slots: Vec<u32>,
    /// The slots of the holes: the topmost comes first.
    holes: BinaryHeap<u32>,
}

impl Stack {
    pub(crate) fn new() -> Self {
        Self { timeline: Timeline::with_room(0), slots: Vec::new(), holes: BinaryHeap::new() }
    }

    /// The slots behind the depths. They keep their meaning until the stack is laid out anew.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The slot of a block in the stack.
    #[inline]
    pub(crate) fn slot(&self, block: BlockId) -> Option<u32> {
        self.slots.get(block as usize).copied().filter(|&slot| slot != NOWHERE)
    }

    /// True when the next access to another block than the top one lays the slots out anew.
    pub(crate) fn is_full(&self) -> bool {
        self.timeline.is_full()
    }

    /// The smallest cache that holds a block, [`NEVER`] for one that is not in the stack.
    #[inline]
    pub(crate) fn depth(&self, block: BlockId) -> u32 {
        self.slot(block).map_or(NEVER, |slot| self.timeline.live_after(slot) + 1)
    }

    /// A block goes to the top. Returns its depth before.
    #[inline]
    pub(crate) fn access(&mut self, block: BlockId) -> u32 {
        let last = self.slot(block);
        if last.is_some_and(|last| last + 1 == self.timeline.next()) {
            return 1;
        }
        if self.timeline.is_full() {
            self.lay_out_anew();
            return self.access(block);
        }
        let depth = last.map_or(NEVER, |last| self.timeline.live_after(last) + 1);
        self.vacate_for(last);
        self.grow_to(block);
        self.slots[block as usize] = self.timeline.next();
        self.timeline.push();
        depth
    }

    /// A block leaves. Returns its depth before.
    pub(crate) fn remove(&mut self, block: BlockId) -> u32 {
        let depth = self.depth(block);
        if let Some(slot) = self.slot(block) {
            self.holes.push(slot);
            self.slots[block as usize] = NOWHERE;
        }
        depth
    }

    /// Forget blocks as if they had never been, as [`super::Model::retain`] says. Of the holes the same share stays, from
    /// all depths.
    pub(crate) fn retain(&mut self, renumbered: &[BlockId]) {
        let share = Share::of(renumbered);
        let mut slots = vec![NOWHERE; share.kept()];
        for (&slot, &now) in self.slots.iter().zip(renumbered) {
            if now != NEVER {
                slots[now as usize] = slot;
            } else if slot != NOWHERE {
                self.timeline.erase(slot);
            }
        }
        self.slots = slots;
        let holes = std::mem::take(&mut self.holes).into_sorted_vec();
        for (at, hole) in (0..).zip(holes) {
            match share.keeps(at) {
                true => self.holes.push(hole),
                false => self.timeline.erase(hole),
            }
        }
        self.lay_out_anew();
    }

    /// Read the memory that accesses to these blocks will need.
    #[inline]
    pub(crate) fn warm(&self, blocks: &[BlockId]) -> u32 {
        let slots = || blocks.iter().filter_map(|&block| self.slots.get(block as usize)).copied();
        let first = slots().fold(0, |sum, slot| sum ^ slot);
        let second = slots().fold(0, |sum, slot| sum ^ self.timeline.warm(slot));
        first ^ second as u32
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.slots.capacity() + self.holes.capacity();
        self.timeline.memory_bytes() + slots * size_of::<u32>()
    }

    /// The place of a block that goes to the top becomes the hole that the access fills elsewhere, if it fills one.
    #[inline]
    fn vacate_for(&mut self, last: Option<u32>) {
        match (self.holes.peek().copied(), last) {
            (Some(hole), Some(last)) if hole > last => {
                self.timeline.erase(hole);
                if let Some(mut topmost) = self.holes.peek_mut() {
                    *topmost = last;
                }
            }
            (_, Some(last)) => self.timeline.erase(last),
            (Some(hole), None) => {
                self.timeline.erase(hole);
                self.holes.pop();
            }
            (None, None) => {}
        }
    }

    #[inline]
    fn grow_to(&mut self, block: BlockId) {
        if block as usize >= self.slots.len() {
            self.slots.resize(block as usize + 1, NOWHERE);
        }
    }

    /// Number the slots anew, without gaps.
    fn lay_out_anew(&mut self) {
        let ranks = self.timeline.ranks();
        for slot in self.slots.iter_mut().filter(|slot| **slot != NOWHERE) {
            *slot = ranks.rank(*slot);
        }
        let holes = std::mem::take(&mut self.holes).into_iter();
        self.holes = holes.map(|hole| ranks.rank(hole)).collect();
        self.timeline = Timeline::with_room(self.timeline.live());
    }
}

#[cfg(test)]
mod tests;
