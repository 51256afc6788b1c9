//! A chained hash table that grows by one bucket per insertion (linear hashing; Litwin, VLDB 1980): no insertion ever stops for all that is in it to be moved.
//! The chains go through elements that its user keeps.

use crate::{Chunked, Handle, NONE};

/// What the chains go through.
pub(super) trait Chain {
    /// An element's hash.
    fn hash(&self, handle: Handle) -> u32;

    /// The next element of the same bucket, or [`NONE`].
    fn next(&self, handle: Handle) -> Handle;

    /// Another element is the next one.
    fn set_next(&mut self, handle: Handle, next: Handle);
}

/// The buckets: 4 bytes for each of the most elements that there ever were at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    /// The first element of each bucket.
    first: Chunked<Handle>,
    used: usize,
}

impl Buckets {
    /// The element with this hash of which `is_it` holds.
    #[inline]
    pub(super) fn find<C: Chain>(
        &self,
        chain: &C,
        hash: u32,
        is_it: impl Fn(&C, Handle) -> bool,
    ) -> Option<Handle> {
        if self.first.is_empty() {
            return None;
        }
        let first = self.first[self.bucket(hash)];
        let some = |handle: Handle| (handle != NONE).then_some(handle);
        std::iter::successors(some(first), |&handle| some(chain.next(handle)))
            .find(|&handle| is_it(chain, handle))
    }

    /// Add an element.
    #[inline]
    pub(super) fn insert<C: Chain>(&mut self, chain: &mut C, handle: Handle) {
        self.used += 1;
        if self.used > self.first.len() {
            self.split(chain);
        }
        self.put(chain, handle);
    }

    /// Take out an element that is in the table.
    #[inline]
    pub(super) fn remove<C: Chain>(&mut self, chain: &mut C, handle: Handle) {
        let (bucket, next) = (self.bucket(chain.hash(handle)), chain.next(handle));
        self.used -= 1;
        if self.first[bucket] == handle {
            self.first[bucket] = next;
            return;
        }
        let mut at = self.first[bucket];
        while chain.next(at) != handle {
            at = chain.next(at);
        }
        chain.set_next(at, next);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.first.memory_bytes()
    }

    /// The bucket of a hash: its lower bits, as many as it takes, or one less where there is no such bucket yet.
    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        let buckets = self.first.len();
        let mask = buckets.next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < buckets { bucket } else { bucket & (mask >> 1) }
    }

    fn put<C: Chain>(&mut self, chain: &mut C, handle: Handle) {
        let bucket = self.bucket(chain.hash(handle));
        chain.set_next(handle, self.first[bucket]);
        self.first[bucket] = handle;
    }

    /// Another bucket, which takes its share of the one whose number is its own without the highest bit.
    fn split<C: Chain>(&mut self, chain: &mut C) {
        let new = self.first.len();
        self.first.push(NONE);
        let Some(highest) = new.checked_ilog2() else { return };
        let mut at = std::mem::replace(&mut self.first[new ^ (1 << highest)], NONE);
        while at != NONE {
            let next = chain.next(at);
            self.put(chain, at);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;
    use proptest::prelude::*;

    /// Hashes and links of elements.
    #[derive(Default)]
    struct Elements(Vec<(u32, Handle)>);

    impl Chain for Elements {
        fn hash(&self, handle: Handle) -> u32 {
            self.0[handle as usize].0
        }

        fn next(&self, handle: Handle) -> Handle {
            self.0[handle as usize].1
        }

        fn set_next(&mut self, handle: Handle, next: Handle) {
            self.0[handle as usize].1 = next;
        }
    }

    proptest! {
        /// Few hashes, so that chains are long.
        #[test]
        fn finds_what_is_in_and_nothing_else(
            hashes in prop::collection::vec(0..64u32, 1..80),
            steps in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let mut elements = Elements(hashes.iter().map(|&hash| (hash, 7)).collect());
            let (mut buckets, mut is_in) = (Buckets::default(), vec![false; hashes.len()]);
            for step in steps {
                let at = step.index(hashes.len());
                if is_in[at] {
                    buckets.remove(&mut elements, at as Handle);
                } else {
                    buckets.insert(&mut elements, at as Handle);
                }
                is_in[at] = !is_in[at];
                for (handle, &is_in) in (0..).zip(&is_in) {
                    let found = buckets.find(&elements, hashes[handle as usize], |_, other| other == handle);
                    prop_assert_eq!(found.is_some(), is_in);
                }
            }
        }
    }

    #[test]
    fn neighbouring_and_distant_blocks_make_short_chains() {
        for stride in [1, 8, 1 << 20] {
            let (mut elements, mut buckets) = (Elements::default(), Buckets::default());
            for key in 0..10_000u64 {
                elements.0.push((hash(key * stride), NONE));
                buckets.insert(&mut elements, key as Handle);
            }
            let looked = std::cell::Cell::new(0);
            let look = |_: &Elements, _: Handle| {
                looked.set(looked.get() + 1);
                false
            };
            (0..10_000u64)
                .for_each(|key| assert_eq!(buckets.find(&elements, hash(key * stride), look), None));
            // Where each bucket has one element on average, those in the bucket of one of them are two, and half more in the buckets that are not split yet.
            assert!(looked.get() < 25_000, "{} for a stride of {stride}", looked.get());
        }
    }
}
