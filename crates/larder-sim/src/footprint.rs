//! The distinct blocks of a trace: a set of keys by open addressing, eight bytes a slot, at most three quarters in use.

use larder_policy::index::hash;

/// A free slot: no block has this key.
const FREE: u64 = u64::MAX;

const SLOTS_MIN: usize = 1024;

/// Keys whose slots are read together before they are looked up: the processor overlaps reads that do not depend on each other.
const AHEAD: usize = 32;

/// The set.
#[derive(Debug)]
pub(crate) struct Footprint {
    slots: Vec<u64>,
    used: usize,
}

impl Footprint {
    pub(crate) fn new() -> Self {
        Self { slots: vec![FREE; SLOTS_MIN], used: 0 }
    }

    /// Distinct keys so far.
    pub(crate) fn len(&self) -> u64 {
        self.used as u64
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<u64>()) as u64
    }

    /// Add keys, given with their hashes.
    pub(crate) fn extend(&mut self, keys: &[u64], hashes: &[u32]) {
        for (keys, hashes) in keys.chunks(AHEAD).zip(hashes.chunks(AHEAD)) {
            let near = hashes.iter().fold(0, |sum, &hash| sum ^ self.slots[self.home(hash)]);
            std::hint::black_box(near);
            for (&key, &hash) in keys.iter().zip(hashes) {
                self.insert(key, hash);
            }
        }
    }

    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    fn insert(&mut self, key: u64, hash: u32) {
        let at = self.find(key, hash);
        if self.slots[at] == FREE {
            self.slots[at] = key;
            self.used += 1;
            if self.used * 4 > self.slots.len() * 3 {
                self.grow();
            }
        }
    }

    /// The slot that holds the key, or the free one where it belongs.
    fn find(&self, key: u64, hash: u32) -> usize {
        let mut at = self.home(hash);
        while self.slots[at] != key && self.slots[at] != FREE {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        at
    }

    fn grow(&mut self) {
        let larger = vec![FREE; self.slots.len() * 2];
        let before = std::mem::replace(&mut self.slots, larger);
        for key in before.into_iter().filter(|&key| key != FREE) {
            let at = self.find(key, hash(key));
            self.slots[at] = key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn count(keys: &[u64]) -> Footprint {
        let mut footprint = Footprint::new();
        let hashes: Vec<_> = keys.iter().map(|&key| hash(key)).collect();
        footprint.extend(keys, &hashes);
        footprint
    }

    proptest! {
        #[test]
        fn counts_like_a_set(keys in prop::collection::vec(prop_oneof![0u64..300, (0..u64::MAX)], 0..4000)) {
            prop_assert_eq!(count(&keys).len(), keys.iter().collect::<BTreeSet<_>>().len() as u64);
        }
    }

    #[test]
    fn memory_follows_the_distinct_keys_alone() {
        let keys: Vec<_> = (0..10_000).collect();
        let once = count(&keys);
        let often = count(&keys.repeat(5));
        assert_eq!((once.len(), often.len()), (10_000, 10_000));
        assert_eq!(once.memory_bytes(), often.memory_bytes());
        assert!(once.memory_bytes() <= 10_000 * 8 * 3);
    }
}
