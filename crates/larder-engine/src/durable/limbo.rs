//! Blocks that the journal may map although they are not cached, or to another slot than the one that they are cached in, until that is durably over.
//!
//! Under write-back each write puts a slot here and each round takes one out, hence a hash table.

use crate::chains::{Chains, Linked, NONE};
use crate::format::BlockId;
use larder_policy::Chunked;

#[derive(Clone, Copy, Debug)]
struct Element {
    block: u64,
    slot: u32,
    next: u32,
}

/// A block's number where an element is not in use: blocks have fewer bits.
const UNUSED: u64 = u64::MAX;

/// Slots by their blocks.
#[derive(Debug)]
pub(super) struct Limbo {
    elements: Elements,
    chains: Chains,
    unused: u32,
    used: u32,
}

#[derive(Debug)]
struct Elements(Chunked<Element>);

impl Linked for Elements {
    #[inline]
    fn word(&self, id: u32) -> u64 {
        self.0[id as usize].block
    }

    #[inline]
    fn next(&self, id: u32) -> u32 {
        self.0[id as usize].next
    }

    #[inline]
    fn set_next(&mut self, id: u32, next: u32) {
        self.0[id as usize].next = next;
    }
}

impl Limbo {
    /// A guest that knew the seed could choose blocks that fall into one bucket.
    pub fn new(seed: u64) -> Self {
        Self { elements: Elements(Chunked::new()), chains: Chains::new(seed), unused: NONE, used: 0 }
    }

    /// Nothing changes if the slot is there.
    pub fn insert(&mut self, block: BlockId, slot: u32) {
        if self.of(block).any(|known| known == slot) {
            return;
        }
        let id = match self.unused {
            NONE => {
                self.elements.0.push(Element { block: UNUSED, slot, next: NONE });
                (self.elements.0.len() - 1) as u32
            }
            id => {
                self.unused = self.elements.next(id);
                id
            }
        };
        // Each by itself: an element that was put together in memory first would be waited for.
        let element = &mut self.elements.0[id as usize];
        (element.block, element.slot) = (block.pack(), slot);
        self.chains.add(&mut self.elements, id);
        self.used += 1;
        if self.used as usize > self.chains.len() {
            self.chains.split_one(&mut self.elements);
        }
    }

    /// Nothing if the slot is not there.
    pub fn remove(&mut self, block: BlockId, slot: u32) {
        if self.used == 0 {
            return;
        }
        let word = block.pack();
        let is_it = |elements: &Elements, id: u32| {
            let element = &elements.0[id as usize];
            element.block == word && element.slot == slot
        };
        let Some(id) = self.chains.take(&mut self.elements, word, is_it) else { return };
        let element = &mut self.elements.0[id as usize];
        (element.block, element.next) = (UNUSED, self.unused);
        self.unused = id;
        self.used -= 1;
    }

    /// How many slots.
    pub fn len(&self) -> usize {
        self.used as usize
    }

    /// The slots of a block, in no order.
    #[inline]
    pub fn of(&self, block: BlockId) -> impl Iterator<Item = u32> + '_ {
        self.chained(block).map(|(_, element)| element.slot)
    }

    /// The slots of the blocks of a volume from `first` on, before `end`, in no order.
    pub fn between(&self, first: BlockId, end: u64) -> impl Iterator<Item = u32> + '_ {
        let blocks = first.block..end.min(BlockId::BLOCK_MAX + 1);
        // What is shorter is gone through: the blocks, or all that there is.
        let few = blocks.end.saturating_sub(blocks.start) < self.elements.0.len() as u64;
        let (each, all) = if few { (blocks.clone(), 0) } else { (0..0, self.elements.0.len()) };
        let found = each.flat_map(move |block| self.of(BlockId { block, ..first }));
        let known = (0..all).map(|at| self.elements.0[at]).filter(|element| element.block != UNUSED);
        let within = known.filter(move |element| {
            let block = BlockId::unpack(element.block);
            block.volume == first.volume && blocks.contains(&block.block)
        });
        found.chain(within.map(|element| element.slot))
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.elements.0.memory_bytes() + self.chains.memory_bytes()
    }

    #[inline]
    fn chained(&self, block: BlockId) -> impl Iterator<Item = (u32, Element)> + '_ {
        let word = block.pack();
        let mut at = if self.used == 0 { NONE } else { self.chains.first(word) };
        let all = std::iter::from_fn(move || {
            let id = (at != NONE).then_some(at)?;
            let element = self.elements.0[id as usize];
            at = element.next;
            Some((id, element))
        });
        all.filter(move |(_, element)| element.block == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(volume: u16, block: u64) -> BlockId {
        BlockId { volume, block }
    }

    fn sorted(slots: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut slots: Vec<u32> = slots.collect();
        slots.sort_unstable();
        slots
    }

    proptest! {
        #[test]
        fn equals_a_set(ops in prop::collection::vec((0..3u16, 0..60u64, 0..4u32, any::<bool>()), 0..500), from in 0..60u64, blocks in 0..600u64) {
            let (mut limbo, mut model) = (Limbo::new(7), BTreeSet::new());
            for (volume, block, slot, add) in ops {
                match add {
                    true => { limbo.insert(at(volume, block), slot); model.insert((volume, block, slot)); }
                    false => { limbo.remove(at(volume, block), slot); model.remove(&(volume, block, slot)); }
                }
                let of: Vec<u32> = model.range((volume, block, 0)..=(volume, block, u32::MAX)).map(|found| found.2).collect();
                prop_assert_eq!(sorted(limbo.of(at(volume, block))), of);
                prop_assert_eq!(limbo.len(), model.len());
            }
            for volume in 0..3 {
                let between = model.range((volume, from, 0)..(volume, from + blocks, 0)).map(|found| found.2);
                prop_assert_eq!(sorted(limbo.between(at(volume, from), from + blocks)), sorted(between));
            }
        }
    }

    #[test]
    fn the_last_blocks_of_a_volume_are_not_the_first_of_the_next() {
        let mut limbo = Limbo::new(7);
        limbo.insert(at(1, BlockId::BLOCK_MAX), 3);
        limbo.insert(at(2, 0), 4);
        assert_eq!(sorted(limbo.between(at(1, BlockId::BLOCK_MAX), u64::MAX)), [3]);
        assert_eq!(sorted(limbo.between(at(1, 0), u64::MAX)), [3]);
    }
}
