//! An LRU stack of blocks, with free places ([`Places`]).

use crate::BlockId;
use crate::timeline::Timeline;

use super::NEVER;
use super::places::Places;
use super::share::Share;

/// Blocks in the order of their last accesses, with holes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    places: Places,
    /// Each block's slot; [`NEVER`] for one that is not in the stack.
    slots: Vec<u32>,
}

impl Stack {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The slots behind the depths. They keep their meaning until the stack is laid out anew.
    #[inline]
    pub(crate) fn timeline(&self) -> &Timeline {
        self.places.timeline()
    }

    /// The slot of a block in the stack.
    #[inline]
    pub(crate) fn slot(&self, block: BlockId) -> Option<u32> {
        self.slots.get(block as usize).copied().filter(|&slot| slot != NEVER)
    }

    /// True when the next access to another block than the top one lays the slots out anew.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.timeline().is_full()
    }

    /// The smallest cache that holds a block, [`NEVER`] for one that is not in the stack.
    #[inline]
    pub(crate) fn depth(&self, block: BlockId) -> u32 {
        self.places.size(self.slot(block).unwrap_or(NEVER))
    }

    /// A block goes to the top. Returns its depth before.
    #[inline]
    pub(crate) fn access(&mut self, block: BlockId) -> u32 {
        if self.slot(block).is_some_and(|last| last + 1 == self.timeline().next()) {
            return 1;
        }
        if self.is_full() {
            self.lay_out_anew();
        }
        let block = block as usize;
        if block >= self.slots.len() {
            self.slots.resize(block + 1, NEVER);
        }
        let last = std::mem::replace(&mut self.slots[block], self.places.timeline().next());
        self.places.rise(last)
    }

    /// A block leaves. Returns its depth before.
    pub(crate) fn remove(&mut self, block: BlockId) -> u32 {
        let Some(slot) = self.slots.get_mut(block as usize) else { return NEVER };
        let slot = std::mem::replace(slot, NEVER);
        let depth = self.places.size(slot);
        self.places.open(slot);
        depth
    }

    /// Forget blocks as if they had never been, as [`super::Model::retain`] says. Of the holes the same share stays, from
    /// all depths.
    pub(crate) fn retain(&mut self, renumbered: &[BlockId]) {
        let share = Share::of(renumbered);
        let mut slots = vec![NEVER; share.kept()];
        for (&slot, &now) in self.slots.iter().zip(renumbered) {
            if now != NEVER {
                slots[now as usize] = slot;
            } else {
                self.places.forget(slot);
            }
        }
        self.slots = slots;
        self.places.thin_holes(share);
        self.lay_out_anew();
    }

    /// Read the memory that accesses to these blocks will need.
    #[inline]
    pub(crate) fn warm(&self, blocks: &[BlockId]) -> u32 {
        let slots = || blocks.iter().filter_map(|&block| self.slots.get(block as usize)).copied();
        let first = slots().fold(0, |sum, slot| sum ^ slot);
        let second = slots().fold(0, |sum, slot| sum ^ self.timeline().warm(slot));
        first ^ second as u32
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.memory_bytes() + self.slots.capacity() * size_of::<u32>()
    }

    /// Number the slots anew, without gaps.
    #[cold]
    fn lay_out_anew(&mut self) {
        self.places.compact(self.slots.iter_mut(), 0);
    }
}

#[cfg(test)]
mod tests;
