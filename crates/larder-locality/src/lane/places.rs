//! The places of an LRU stack: who lies how deep, when blocks also leave from the middle.
//!
//! A block's depth is the number of live slots of a [`Timeline`] from its own on (Bennett and Kruskal, "LRU stack processing",
//! IBM J. Res. Dev. 19, 1975).
//!
//! A block that leaves all caches leaves a free place, a *hole*, in those that held it. The stack keeps the hole at the
//! block's depth: the blocks below stay as deep as they are. An access that comes from below the topmost hole, or from
//! outside, fills it in the caches that do not hold its block: the blocks below the hole are not pushed down, and what the
//! block leaves behind in the caches that held it is the next hole. A hole is a live slot without a block.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::mem;

use crate::timeline::Timeline;

use super::NEVER;
use super::share::Share;

/// Live slots, of blocks and of holes; the newest is the top. Who has which slot is known elsewhere: [`NEVER`] is that of a
/// block that is nowhere.
#[derive(Clone, Debug)]
pub(super) struct Places {
    timeline: Timeline,
    /// Slots of holes, the topmost first.
    holes: BinaryHeap<u32>,
}

impl Default for Places {
    fn default() -> Self {
        Self { timeline: Timeline::with_room(0), holes: BinaryHeap::new() }
    }
}

impl Places {
    /// The slots, which keep their meaning until [`Places::compact`].
    #[inline]
    pub(super) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// True if a place is free.
    #[inline]
    pub(super) fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// The smallest cache that holds a block with this slot.
    #[inline]
    pub(super) fn size(&self, slot: u32) -> u32 {
        if slot == NEVER { NEVER } else { self.timeline.live_after(slot) + 1 }
    }

    /// A block goes to the top, which has the timeline's next slot, from this one. There must be room. Returns its size before.
    #[inline]
    pub(super) fn rise(&mut self, slot: u32) -> u32 {
        let size = self.leave(slot);
        self.timeline.push();
        size
    }

    /// A block leaves this slot for the top of another stack, laid on this one later, or enters there from nowhere: its size
    /// before.
    #[inline]
    pub(super) fn leave(&mut self, slot: u32) -> u32 {
        if self.has_holes() {
            return self.leave_to_holes(slot);
        }
        match slot {
            NEVER => NEVER,
            slot => self.timeline.take(slot) + 1,
        }
    }

    /// The same where there are holes. The topmost one, if it lies above the block, takes what the block pushes down, so that
    /// the block's old place is a hole then.
    #[inline(never)]
    fn leave_to_holes(&mut self, slot: u32) -> u32 {
        let size = self.size(slot);
        match self.holes.peek_mut() {
            Some(topmost) if slot == NEVER => self.timeline.erase(PeekMut::pop(topmost)),
            Some(mut topmost) if *topmost > slot => self.timeline.erase(mem::replace(&mut *topmost, slot)),
            _ if slot != NEVER => self.timeline.erase(slot),
            _ => {}
        }
        size
    }

    /// A block's place becomes a hole, if it has one.
    #[inline]
    pub(super) fn open(&mut self, slot: u32) {
        if slot != NEVER {
            self.holes.push(slot);
        }
    }

    /// A block is forgotten: its place goes, if it has one.
    pub(super) fn forget(&mut self, slot: u32) {
        if slot != NEVER {
            self.timeline.erase(slot);
        }
    }

    /// Forget holes: this share of them stays, from all depths.
    pub(super) fn thin_holes(&mut self, share: Share) {
        let holes = mem::take(&mut self.holes).into_sorted_vec();
        for (at, hole) in (0..).zip(holes) {
            match share.keeps(at) {
                true => self.holes.push(hole),
                false => self.timeline.erase(hole),
            }
        }
    }

    /// Number the slots anew, without gaps, and make room for so many more: given the slots of all blocks.
    pub(super) fn compact<'a>(&mut self, slots: impl Iterator<Item = &'a mut u32>, more: u32) {
        let ranks = self.timeline.ranks();
        for slot in slots.filter(|slot| **slot != NEVER) {
            *slot = ranks.rank(*slot);
        }
        let holes = self.holes.iter().map(|&slot| ranks.rank(slot)).collect();
        *self = Self { timeline: Timeline::with_room_for(self.timeline.live(), more), holes };
    }

    /// Lay the places of another stack on top, for which there is room. Returns the slot of the lowest of them.
    pub(super) fn lay_on_top(&mut self, other: &Self) -> u32 {
        let base = self.timeline.next();
        (0..other.timeline.live()).for_each(|_| self.timeline.push());
        let ranks = other.timeline.ranks();
        self.holes.extend(other.holes.iter().map(|&slot| base + ranks.rank(slot)));
        base
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.timeline.memory_bytes() + self.holes.capacity() * size_of::<u32>()
    }
}
