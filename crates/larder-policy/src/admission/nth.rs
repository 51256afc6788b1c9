//! A block enters at its n-th access: the sieve of SieveStore.
//!
//! Pritchett, Thottethodi: "SieveStore: A Highly-Selective, Ensemble-level Disk Cache for Cost-Performance", ISCA 2010. The paper counts misses per block over a
//! window of time, in two tables, the first of which several blocks may share a counter in. Here every counter is a block's own, and the window is the recency: as
//! many blocks are remembered as the cache holds, and the one that was not seen for the longest is forgotten.

use super::Admission;
use super::ghosts::Ghosts;

/// Ghosts dropped per access while there are more than the capacity: after the cache was made smaller.
const DROP: u32 = 4;

/// Admission at the n-th access.
#[derive(Clone, Debug)]
pub struct Nth {
    ghosts: Ghosts,
    n: u32,
    capacity: u32,
}

impl Nth {
    /// Admit at the `n`-th access (0 as 1) to a cache of `capacity` blocks.
    pub fn new(n: u32, capacity: u32) -> Self {
        Self { ghosts: Ghosts::default(), n, capacity }
    }

    /// The blocks remembered, the next to be forgotten first.
    pub fn keys_oldest_first(&self) -> impl Iterator<Item = u64> {
        self.ghosts.keys_oldest_first()
    }
}

impl Admission for Nth {
    #[inline]
    fn admit(&mut self, key: u64, hash: u32) -> bool {
        self.ghosts.drop_above(self.capacity, DROP);
        if self.n <= 1 || self.capacity == 0 {
            return self.capacity > 0;
        }
        let Some(ghost) = self.ghosts.find(key, hash) else {
            self.ghosts.push_newest(key, 1);
            self.ghosts.drop_above(self.capacity, 1);
            return false;
        };
        if self.ghosts.count(ghost) + 1 >= self.n {
            self.ghosts.remove(ghost);
            return true;
        }
        self.ghosts.touch(ghost);
        false
    }

    /// The block keeps its count, and enters at its next access.
    fn failed(&mut self, key: u64, _hash: u32) {
        if self.n > 1 {
            self.ghosts.push_newest(key, self.n - 1);
            self.ghosts.drop_above(self.capacity, 1);
        }
    }

    fn forget(&mut self, key: u64, hash: u32) {
        self.ghosts.find(key, hash).into_iter().for_each(|ghost| self.ghosts.remove(ghost));
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn memory_bytes(&self) -> usize {
        self.ghosts.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;
    use proptest::prelude::*;

    fn ask(policy: &mut Nth, key: u64) -> bool {
        policy.admit(key, hash(key))
    }

    #[test]
    fn the_third_access_lets_a_block_in_and_it_begins_anew() {
        let mut nth = Nth::new(3, 10);
        assert_eq!(
            [7, 7, 8, 7, 7, 8, 8].map(|key| ask(&mut nth, key)),
            [false, false, false, true, false, false, true]
        );
        assert!(nth.keys_oldest_first().eq([7]));
    }

    #[test]
    fn the_first_access_lets_every_block_in() {
        let mut nth = Nth::new(1, 10);
        assert!((0..100).all(|key| ask(&mut nth, key)));
        assert_eq!(nth.keys_oldest_first().count(), 0);
    }

    #[test]
    fn the_block_not_seen_for_longest_is_forgotten() {
        let mut nth = Nth::new(3, 2);
        [1, 2, 1, 3].into_iter().for_each(|key| assert!(!ask(&mut nth, key)));
        assert!(nth.keys_oldest_first().eq([1, 3]), "2 was forgotten for 3");
        assert!(ask(&mut nth, 1));
    }

    #[test]
    fn a_block_that_found_no_slot_enters_at_its_next_access() {
        let mut nth = Nth::new(3, 2);
        assert_eq!([5, 5, 5].map(|key| ask(&mut nth, key)), [false, false, true]);
        nth.failed(5, hash(5));
        assert!(ask(&mut nth, 5));
    }

    /// Counts of the blocks seen, the most recent at the end.
    struct Counts(Vec<(u64, u32)>);

    impl Counts {
        fn admit(&mut self, key: u64, n: u32, capacity: usize) -> bool {
            let place = self.0.iter().position(|&(other, _)| other == key);
            let count = 1 + place.map_or(0, |place| self.0.remove(place).1);
            if count < n {
                self.0.push((key, count));
                self.0.drain(..self.0.len().saturating_sub(capacity));
            }
            count >= n
        }
    }

    proptest! {
        #[test]
        fn equals_a_list_of_counts(n in 1..5u32, capacity in 1..8u32, keys in prop::collection::vec(0..12u64, 0..300)) {
            let (mut nth, mut model) = (Nth::new(n, capacity), Counts(Vec::new()));
            for key in keys {
                prop_assert_eq!(ask(&mut nth, key), model.admit(key, n, capacity as usize));
                prop_assert!(nth.keys_oldest_first().eq(model.0.iter().map(|&(key, _)| key)));
            }
        }
    }

    #[test]
    fn a_smaller_cache_forgets_a_few_blocks_per_access() {
        let mut nth = Nth::new(2, 100);
        (0..100).for_each(|key| assert!(!ask(&mut nth, key)));
        nth.resize(10);
        assert!(!ask(&mut nth, 1000));
        assert!(nth.keys_oldest_first().count() > 10);
        (1001..1100).for_each(|key| assert!(!ask(&mut nth, key)));
        assert!(nth.keys_oldest_first().eq(1090..1100));
        nth.resize(0);
        (0..5).for_each(|_| assert!(!ask(&mut nth, 1099)));
        assert_eq!(nth.keys_oldest_first().count(), 0);
    }
}
