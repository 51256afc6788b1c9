//! The stack of `wt-noalloc`: reads as LRU; a write of a resident block refreshes it, one of an absent block changes nothing.
//!
//! It is a stack, with the time of a block's last access as its priority (Mattson, Gecsei, Slutz and Traiger, "Evaluation
//! techniques for storage hierarchies", IBM Systems Journal 9(2), 1970), but blocks do not lie in the order of time: a
//! written block is the most recent one of the caches that hold it, and stays absent from smaller ones. It keeps its place in
//! the stack, though it is newer than what lies above.
//!
//! When a block enters from below, or from outside, each place down to where it came from keeps the newer one of its block
//! and of the block that comes down, and the older one goes on. So only *free* blocks, which are older than all above them,
//! move, each to the next one's place, and the others are *pinned*. Free blocks lie in the order of time: the `k`th newest
//! of them lies at the `k`th place where nothing is pinned.
//!
//! A pinned block comes free when the free blocks above it are all newer than it. Its *slack* is the number of those that
//! are older: the free places above it less the free blocks newer than it. A block that moves to the top lowers the slack of
//! those that get it as one more newer block, and did not have it above them; see [`Stairs`] for how that is kept.
//!
//! A block that was discarded leaves a *hole*, a place that stays where it is. The topmost hole takes the last block that comes
//! down; if the block that moves to the top lay below, its place is the next hole.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::BlockId;

use super::ranked::RankedSet;
use super::share::Share;
use super::stairs::Stairs;
use super::{Model, NEVER, Record};

/// Slots for each block in the stack when they are numbered anew, and at least.
const SLOTS_PER_BLOCK: u32 = 8;
const SLOTS_MIN: u32 = 512;

/// The [`Model`] of LRU caches under the write policy `wt-noalloc`.
///
/// An access takes time in the logarithm of the stack. Memory: 4 bytes a block, 1 to 2 for the timeline, and 13 to 26 for every
/// place down to the deepest that a write hit.
#[derive(Clone, Debug)]
pub struct NoAllocateModel {
    /// Where each block is.
    spots: Vec<Spot>,
    /// The slots of the free blocks: their times, the newest last.
    free: RankedSet,
    /// The slot of the next access.
    next: u32,
    /// The places that free blocks do not take: those of pinned blocks and of holes.
    taken: RankedSet,
    /// The pinned blocks' places and slots.
    stairs: Stairs,
    /// By place: the block that is pinned there.
    pinned: Vec<BlockId>,
    /// The places of the holes, the topmost first.
    holes: BinaryHeap<Reverse<u32>>,
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot(u32);

/// The same, spelled out.
enum Whereabouts {
    /// In no cache.
    Nowhere,
    /// Free, with this slot.
    Free(u32),
    /// Pinned at this place.
    Pinned(u32),
}

impl Spot {
    const NOWHERE: Self = Self(u32::MAX);
    /// Slots and places lie below: there are fewer than 2^29 blocks, and eight slots for each at most.
    const PINNED: u32 = 1 << 31;

    fn free(slot: u32) -> Self {
        Self(slot)
    }

    fn pinned(place: u32) -> Self {
        Self(place | Self::PINNED)
    }

    #[inline]
    fn is_pinned(self) -> bool {
        matches!(self.spelled_out(), Whereabouts::Pinned(_))
    }

    #[inline]
    fn spelled_out(self) -> Whereabouts {
        match self {
            Self::NOWHERE => Whereabouts::Nowhere,
            Self(spot) if spot & Self::PINNED == 0 => Whereabouts::Free(spot),
            Self(spot) => Whereabouts::Pinned(spot & !Self::PINNED),
        }
    }
}

impl NoAllocateModel {
    /// Empty caches.
    pub fn new() -> Self {
        Self {
            spots: Vec::new(),
            free: RankedSet::below(0, SLOTS_MIN),
            next: 0,
            taken: RankedSet::below(0, 0),
            stairs: Stairs::new(),
            pinned: Vec::new(),
            holes: BinaryHeap::new(),
        }
    }

    #[inline]
    fn spot(&self, block: BlockId) -> Spot {
        self.spots.get(block as usize).copied().unwrap_or(Spot::NOWHERE)
    }

    /// The place of a block, from 0 at the top; [`NEVER`] if it is in no cache.
    #[inline]
    fn place(&self, spot: Spot) -> u32 {
        match spot.spelled_out() {
            Whereabouts::Nowhere => NEVER,
            Whereabouts::Free(slot) => self.taken.absent(newer(&self.free, slot)),
            Whereabouts::Pinned(place) => place,
        }
    }

    /// True for the newest of all blocks, at the top unless there is a hole.
    #[inline]
    fn is_newest(&self, spot: Spot) -> bool {
        self.next > 0 && spot == Spot::free(self.next - 1) && self.holes.is_empty()
    }

    /// A block is to move from its place to the top: lower the slacks that this lowers, and clear the place.
    #[inline]
    fn make_way(&mut self, spot: Spot, place: u32) {
        if let Some(&Reverse(hole)) = self.holes.peek()
            && hole < place
        {
            self.holes.pop();
            self.vacate(spot, place);
            self.stairs.lower(0..hole);
            return self.taken.remove(hole);
        }
        match spot.spelled_out() {
            Whereabouts::Nowhere => self.stairs.lower(0..NEVER),
            Whereabouts::Free(slot) => {
                self.stairs.lower(0..self.stairs.first_older(0, slot));
                self.free.remove(slot);
            }
            Whereabouts::Pinned(_) => {
                self.stairs.lower(0..place);
                self.stairs.free(place);
                self.taken.remove(place);
            }
        }
    }

    /// A block leaves a hole at its place.
    fn vacate(&mut self, spot: Spot, place: u32) {
        match spot.spelled_out() {
            Whereabouts::Nowhere => return,
            Whereabouts::Free(slot) => self.take_place(slot, place),
            Whereabouts::Pinned(_) => self.stairs.free(place),
        }
        self.holes.push(Reverse(place));
    }

    /// A free block is free no longer, and its place is taken: those below that are newer lose a place above them, but no
    /// newer block.
    #[inline]
    fn take_place(&mut self, slot: u32, place: u32) {
        self.stairs.lower(place..self.stairs.first_older(0, slot));
        self.free.remove(slot);
        self.taken.insert(place);
    }

    /// Free the pinned blocks that have no slack left.
    #[inline]
    fn free_ripe(&mut self) {
        while let Some(place) = self.stairs.ripe() {
            let slot = self.stairs.time(place);
            self.stairs.free(place);
            self.taken.remove(place);
            self.free.insert(slot);
            self.spots[self.pinned[place as usize] as usize] = Spot::free(slot);
            self.lay_stairs(place);
        }
    }

    /// After what is pinned at a place has changed.
    #[inline]
    fn lay_stairs(&mut self, from: u32) {
        let (free, taken) = (&self.free, &self.taken);
        self.stairs.lay(from, |place, slot| (place - taken.before(place)) as i32 - newer(free, slot) as i32);
    }

    #[inline]
    fn pin(&mut self, block: BlockId, place: u32, slot: u32) {
        if place as usize >= self.pinned.len() {
            self.pinned.resize(place as usize + 1, NEVER);
        }
        self.pinned[place as usize] = block;
        self.spots[block as usize] = Spot::pinned(place);
        self.stairs.pin(place, slot);
    }

    #[inline]
    fn take_slot(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Number the slots anew, without gaps.
    #[cold]
    fn lay_out_anew(&mut self) {
        let mut all = self.free.clone();
        self.stairs.pinned().for_each(|(_, slot)| all.insert(slot));
        for spot in &mut self.spots {
            if let Whereabouts::Free(slot) = spot.spelled_out() {
                *spot = Spot::free(all.before(slot));
            }
        }
        self.stairs.renumber(|slot| all.before(slot));
        self.start_with(all.len());
        self.stairs.pinned().for_each(|(_, slot)| self.free.remove(slot));
    }

    /// So many free slots, and room for more.
    fn start_with(&mut self, slots: u32) {
        let room = slots.saturating_mul(SLOTS_PER_BLOCK).clamp(SLOTS_MIN, Spot::PINNED);
        self.free = RankedSet::below(slots, room);
        self.next = slots;
    }

    /// Fill the empty stack: places, blocks and slots, in the order of the places. Those left out are holes.
    fn rebuild(&mut self, held: &[(u32, BlockId, u32)]) {
        let mut slots: Vec<_> = held.iter().map(|&(_, _, slot)| slot).collect();
        slots.sort_unstable();
        self.start_with(slots.len() as u32);
        let (mut next, mut oldest) = (0, NEVER);
        for &(place, block, slot) in held {
            (next..place).for_each(|hole| self.taken.insert(hole));
            self.holes.extend((next..place).map(Reverse));
            next = place + 1;
            let slot = slots.partition_point(|&other| other < slot) as u32;
            if slot < oldest {
                oldest = slot;
                self.spots[block as usize] = Spot::free(slot);
            } else {
                self.take_place(slot, place);
                self.pin(block, place, slot);
            }
        }
        self.lay_stairs(0);
    }

    /// The blocks in the order of their places, each with its place and its slot.
    fn in_order(&self) -> Vec<(u32, BlockId, u32)> {
        let held = (0..).zip(&self.spots).filter_map(|(block, &spot)| match spot.spelled_out() {
            Whereabouts::Nowhere => None,
            Whereabouts::Free(slot) => Some((self.place(spot), block, slot)),
            Whereabouts::Pinned(place) => Some((place, block, self.stairs.time(place))),
        });
        let mut held: Vec<_> = held.collect();
        held.sort_unstable();
        held
    }
}

/// How many slots are newer.
#[inline]
fn newer(slots: &RankedSet, slot: u32) -> u32 {
    slots.len() - slots.before(slot + 1)
}

impl Default for NoAllocateModel {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for NoAllocateModel {
    #[inline]
    fn read(&mut self, block: BlockId, _record: &mut impl Record) -> u32 {
        if self.is_newest(self.spot(block)) {
            return 1;
        }
        if self.next == self.free.room() {
            self.lay_out_anew();
        }
        if block as usize >= self.spots.len() {
            self.spots.resize(block as usize + 1, Spot::NOWHERE);
        }
        let spot = self.spot(block);
        let place = self.place(spot);
        self.make_way(spot, place);
        let slot = self.take_slot();
        self.free.insert(slot);
        self.spots[block as usize] = Spot::free(slot);
        if spot.is_pinned() {
            self.lay_stairs(place);
        }
        self.free_ripe();
        place.saturating_add(1)
    }

    #[inline]
    fn write(&mut self, block: BlockId, _record: &mut impl Record) -> u32 {
        if self.is_newest(self.spot(block)) {
            return 1;
        }
        if self.next == self.free.room() {
            self.lay_out_anew();
        }
        let spot = self.spot(block);
        let place = self.place(spot);
        match spot.spelled_out() {
            Whereabouts::Nowhere => return NEVER,
            Whereabouts::Free(slot) => self.take_place(slot, place),
            Whereabouts::Pinned(_) => {}
        }
        let slot = self.take_slot();
        self.pin(block, place, slot);
        self.lay_stairs(place);
        self.free_ripe();
        place + 1
    }

    fn discard(&mut self, block: BlockId, _record: &mut impl Record) {
        let spot = self.spot(block);
        let place = self.place(spot);
        if place == NEVER {
            return;
        }
        self.vacate(spot, place);
        self.spots[block as usize] = Spot::NOWHERE;
        if spot.is_pinned() {
            self.lay_stairs(place);
        }
        self.free_ripe();
    }

    /// Of the holes the same share stays.
    fn retain(&mut self, renumbered: &[BlockId]) {
        let share = Share::of(renumbered);
        let mut kept = Vec::new();
        for (all_above, (place, block, slot)) in (0..).zip(self.in_order()) {
            let now = renumbered[block as usize];
            if now != NEVER {
                let holes_above = share.part(place - all_above);
                kept.push((kept.len() as u32 + holes_above, now, slot));
            }
        }
        *self = Self { spots: vec![Spot::NOWHERE; share.kept()], ..Self::new() };
        self.rebuild(&kept);
    }

    #[inline]
    fn warm(&self, blocks: &[BlockId]) -> u32 {
        let first = blocks.iter().fold(0, |sum, &block| sum ^ self.spot(block).0);
        // Those of pinned blocks lie outside.
        let second = blocks.iter().fold(0, |sum, &block| sum ^ self.free.warm(self.spot(block).0));
        first ^ second as u32
    }

    fn memory_bytes(&self) -> usize {
        self.spots.capacity() * size_of::<Spot>()
            + self.pinned.capacity() * size_of::<BlockId>()
            + self.holes.capacity() * size_of::<u32>()
            + self.free.memory_bytes()
            + self.taken.memory_bytes()
            + self.stairs.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
