//! Where each remembered block was last seen: an open-addressed hash index with 12 bytes a place.
//!
//! Linear probing over one array: a look-up costs one cache line or two. Blocks are only ever forgotten in bulk, by writing the
//! index anew, so there are no tombstones. At most three quarters of the places are taken, at least three eighths once
//! it has grown: 16 to 32 bytes a block.

use crate::AccessKind;

/// Blocks whose numbers differ in these low bits only are kept side by side.
const GROUP_BITS: u32 = 3;

/// When a block was accessed last (a slot of the timeline), and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u32);

impl Seen {
    /// Slots lie below this, so that slot and kind fit in 32 bits with zero to spare.
    pub(crate) const SLOT_LIMIT: u32 = (1 << 31) - 1;

    pub(crate) fn new(slot: u32, kind: AccessKind) -> Self {
        debug_assert!(slot < Self::SLOT_LIMIT);
        Self(((slot + 1) << 1) | u32::from(kind == AccessKind::Write))
    }

    pub(crate) fn slot(self) -> u32 {
        (self.0 >> 1) - 1
    }

    pub(crate) fn kind(self) -> AccessKind {
        match self.0 & 1 {
            0 => AccessKind::Read,
            _ => AccessKind::Write,
        }
    }
}

/// A place of the index. `seen` is zero where it is empty. The block is in two halves to keep it at 12 bytes.
#[derive(Clone, Copy, Default)]
struct Place {
    low: u32,
    high: u32,
    seen: u32,
}

impl Place {
    fn new(block: u64, seen: Seen) -> Self {
        Self { low: block as u32, high: (block >> 32) as u32, seen: seen.0 }
    }

    fn block(&self) -> u64 {
        u64::from(self.low) | (u64::from(self.high) << 32)
    }

    fn is_empty(&self) -> bool {
        self.seen == 0
    }
}

/// The index: block to [`Seen`].
pub(crate) struct BlockIndex {
    /// A power of two.
    places: Vec<Place>,
    len: usize,
    /// A hostile guest chooses its block numbers: without knowing the seed it cannot make them collide.
    seed: u64,
}

impl BlockIndex {
    const PLACES_MIN: usize = 64;

    pub(crate) fn new(seed: u64) -> Self {
        Self { places: vec![Place::default(); Self::PLACES_MIN], len: 0, seed }
    }

    /// Remember how a block was seen now; gives how it was seen before.
    pub(crate) fn replace(&mut self, block: u64, seen: Seen) -> Option<Seen> {
        let at = self.find(block);
        let before = std::mem::replace(&mut self.places[at], Place::new(block, seen));
        if !before.is_empty() {
            return Some(Seen(before.seen));
        }
        self.len += 1;
        if self.len > self.places.len() / 4 * 3 {
            self.rewrite(self.places.len() * 2);
        }
        None
    }

    /// Change every entry; those for which `change` gives none are forgotten. Takes time in the size of the index.
    pub(crate) fn remap(&mut self, change: impl Fn(Seen) -> Option<Seen>) {
        let before = self.len;
        for place in self.places.iter_mut().filter(|place| !place.is_empty()) {
            place.seen = change(Seen(place.seen)).map_or(0, |seen| seen.0);
            self.len -= usize::from(place.is_empty());
        }
        if self.len < before {
            self.rewrite(Self::places_for(self.len));
        }
    }

    /// The place where a block is, or where it would be put.
    fn find(&self, block: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.home(block);
        // Ends: a quarter of the places is always empty.
        while !self.places[at].is_empty() && self.places[at].block() != block {
            at = (at + 1) & mask;
        }
        at
    }

    /// Neighbours of a group of blocks stay together, so that a request for several finds them in one or two cache
    /// lines. The group is hashed by two multiplications, each followed by bringing its well-mixed upper half down.
    fn home(&self, block: u64) -> usize {
        let mixed = ((block >> GROUP_BITS) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let group = (mixed >> 32) << GROUP_BITS;
        (group | block & ((1 << GROUP_BITS) - 1)) as usize & (self.places.len() - 1)
    }

    fn rewrite(&mut self, places: usize) {
        let old = std::mem::replace(&mut self.places, vec![Place::default(); places]);
        for place in old.into_iter().filter(|place| !place.is_empty()) {
            let at = self.find(place.block());
            self.places[at] = place;
        }
    }

    /// Room for `len` entries with some to come.
    fn places_for(len: usize) -> usize {
        (len / 2 * 3).next_power_of_two().max(Self::PLACES_MIN)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_place_takes_twelve_bytes() {
        assert_eq!(size_of::<Place>(), 12);
    }

    #[test]
    fn seen_keeps_slot_and_kind() {
        for slot in [0, 1, 12_345, Seen::SLOT_LIMIT - 1] {
            for kind in [AccessKind::Read, AccessKind::Write] {
                let seen = Seen::new(slot, kind);
                assert_eq!((seen.slot(), seen.kind()), (slot, kind));
            }
        }
    }

    proptest! {
        #[test]
        fn it_remembers_what_a_map_remembers(
            steps in proptest::collection::vec((0u64..400, 0u32..1000, 0u32..20), 1..2000), seed in any::<u64>(),
        ) {
            let mut index = BlockIndex::new(seed);
            let mut model = BTreeMap::new();
            for (block, slot, forget) in steps {
                let block = block.wrapping_mul(0x0100_0000_0000_0003);
                let seen = Seen::new(slot, AccessKind::Read);
                prop_assert_eq!(index.replace(block, seen), model.insert(block, seen));
                if forget == 0 {
                    let keep = |seen: Seen| (seen.slot() >= 500).then(|| Seen::new(seen.slot() - 500, seen.kind()));
                    index.remap(keep);
                    model = model.into_iter().filter_map(|(b, s)| keep(s).map(|s| (b, s))).collect();
                }
                prop_assert_eq!(index.len, model.len());
                prop_assert!(index.len <= index.places.len() / 4 * 3);
            }
        }
    }
}
