//! Where a block's handle is found by its key: open addressing over words of a fingerprint and a handle.
//!
//! Eight bytes a slot, at most three quarters in use. A word holds the upper half of the key's hash and the handle, so that a search reads the keys themselves
//! (which the owner of the handles has) only where the fingerprints agree. Deletion shifts later words back (Knuth, TAOCP 6.4, algorithm R): no tombstones, so
//! the table never degrades. The fingerprint also tells a word's home slot, hence neither deletion nor growth looks at keys.

use crate::Handle;

/// A free slot: no handle is [`crate::NONE`].
const FREE: u64 = u64::MAX;

const SLOTS_MIN: usize = 16;

/// The hash of a key: all of its bits reach the upper ones, which choose the slot.
#[inline]
pub fn hash(key: u64) -> u32 {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93u64);
    let folded = (product as u64) ^ ((product >> 64) as u64);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The index.
#[derive(Clone, Debug)]
pub struct Index {
    slots: Vec<u64>,
    /// A hash shifted right by this is a slot's number.
    shift: u32,
    used: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self { slots: vec![FREE; SLOTS_MIN], shift: 32 - SLOTS_MIN.trailing_zeros(), used: 0 }
    }

    /// Handles in the index.
    pub fn len(&self) -> usize {
        self.used
    }

    /// True without handles.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// The handle with this hash of which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(Handle) -> bool) -> Option<Handle> {
        let mut at = self.home(hash);
        loop {
            let word = self.slots[at];
            if (word >> 32) as u32 == hash && word != FREE && is_it(word as u32) {
                return Some(word as u32);
            }
            if word == FREE {
                return None;
            }
            at = self.next(at);
        }
    }

    /// The first handle that a search for this hash comes across, to have its memory at hand later; no answer to anything.
    #[inline]
    pub fn hint(&self, hash: u32) -> Handle {
        self.slots[self.home(hash)] as u32
    }

    /// Add a handle that is not in the index.
    pub fn insert(&mut self, hash: u32, handle: Handle) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.put(u64::from(hash) << 32 | u64::from(handle));
        self.used += 1;
    }

    /// Take out a handle that is in the index with this hash.
    ///
    /// # Panics
    /// If it is not.
    pub fn remove(&mut self, hash: u32, handle: Handle) {
        let wanted = u64::from(hash) << 32 | u64::from(handle);
        let mut hole = self.home(hash);
        while self.slots[hole] != wanted {
            assert_ne!(self.slots[hole], FREE, "only what is in the index is removed");
            hole = self.next(hole);
        }
        let mut at = hole;
        loop {
            at = self.next(at);
            let word = self.slots[at];
            if word == FREE {
                break;
            }
            let home = self.home((word >> 32) as u32);
            // The word may move into the hole unless its home lies behind the hole.
            if at.wrapping_sub(home) & self.mask() >= at.wrapping_sub(hole) & self.mask() {
                self.slots[hole] = word;
                hole = at;
            }
        }
        self.slots[hole] = FREE;
        self.used -= 1;
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }

    fn put(&mut self, word: u64) {
        let mut at = self.home((word >> 32) as u32);
        while self.slots[at] != FREE {
            at = self.next(at);
        }
        self.slots[at] = word;
    }

    fn grow(&mut self) {
        assert!(self.shift > 0, "handles are below 2^32, so 2^32 slots are never full");
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![FREE; old.len() * 2];
        self.shift -= 1;
        for word in old.into_iter().filter(|&word| word != FREE) {
            self.put(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Few hashes, so that words pile up, wrap around the end and are shifted back.
        #[test]
        fn equals_an_ordered_map(ops in prop::collection::vec((0..40u64, any::<bool>()), 0..400), spread in 0u32..3) {
            let hash_of = |key: u64| match spread { 0 => hash(key), 1 => (key as u32 % 5) << 29 | 0x1fff_ffff, _ => u32::MAX - key as u32 };
            let (mut index, mut model, mut keys) = (Index::new(), BTreeMap::new(), Vec::new());
            for (key, add) in ops {
                match (add, model.contains_key(&key)) {
                    (true, false) => {
                        let handle = keys.len() as u32;
                        keys.push(key);
                        index.insert(hash_of(key), handle);
                        model.insert(key, handle);
                    }
                    (false, true) => index.remove(hash_of(key), model.remove(&key).expect("in the model")),
                    _ => {}
                }
                prop_assert_eq!(index.len(), model.len());
            }
            for key in 0..40 {
                let found = index.find(hash_of(key), |handle| keys[handle as usize] == key);
                prop_assert_eq!(found, model.get(&key).copied());
            }
        }
    }

    #[test]
    fn neighbouring_blocks_spread() {
        let mut homes = [0u32; 64];
        (0..64_000u64).for_each(|key| homes[(hash(key) >> 26) as usize] += 1);
        assert!(homes.iter().all(|&count| (800..1200).contains(&count)), "{homes:?}");
    }
}
