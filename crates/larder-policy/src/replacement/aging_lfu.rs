//! Aging-LFU: LFU whose counts are halved from time to time, so that what was popular long ago gives way.
//!
//! The policy of Centaur's cache (Koller et al.: "Centaur: Host-Side SSD Caching for Storage Performance Control", ICAC 2015, section on the evaluation), which
//! names no rule and no parameter but refers to Robinson, Devarakonda: "Data Cache Management Using Frequency-Based Replacement", SIGMETRICS 1990. As there, aging
//! makes C/2, rounded up, of every count C. There it happens when the average count of the resident blocks exceeds a maximum, which never comes
//! about while a new working set finds no hits; here it happens once in so many accesses (hits and entries), in units of the capacity. Left out is what is
//! not aging: their new section, in which uses do not count, and their order by recency among blocks of the same count (here, as in
//! [`super::lfu`], the one that has been there for longest leaves).
//!
//! Aging keeps the order of the resident blocks; it lets newer ones overtake them sooner. It takes as many steps as there are different counts: these
//! add up to less than (2·period + 1)·capacity, so there are at most √(2·(2·period + 1)·capacity). libCacheSim has no such policy: its LFU-DA adds an age to the
//! counts of new blocks instead.

use super::lfu::frequencies::Frequencies;
use super::{Evicted, Replacement};
use crate::{Handle, Nodes};

/// Accesses between two agings, in units of the capacity, unless told otherwise. Over real traces a compromise: where the working set moves on, a longer period comes
/// close to plain LFU's misses soon (pgbench: from 5 on), and a shorter one comes close to LRU's where it does not.
pub const PERIOD: u32 = 2;

/// Least frequently used, with aging. A block's tag names its bucket.
#[derive(Clone, Debug)]
pub struct AgingLfu {
    blocks: Frequencies,
    period: u32,
    capacity: u32,
    /// Accesses since the last aging.
    accesses: u64,
}

impl Default for AgingLfu {
    fn default() -> Self {
        Self::new(PERIOD)
    }
}

impl AgingLfu {
    /// An empty policy that halves the counts once in `period` accesses per block of capacity.
    ///
    /// # Panics
    /// If `period` is 0.
    pub const fn new(period: u32) -> Self {
        assert!(period > 0);
        Self { blocks: Frequencies::new(), period, capacity: 0, accesses: 0 }
    }

    /// The resident blocks with their counts, the next to leave first.
    pub fn iter<'a, N: Nodes>(&'a self, nodes: &'a N) -> impl Iterator<Item = (Handle, u32)> + 'a {
        self.blocks.iter(nodes)
    }

    #[inline]
    fn age(&mut self, nodes: &mut impl Nodes) {
        self.accesses += 1;
        if self.accesses >= u64::from(self.period) * u64::from(self.capacity) {
            self.accesses = 0;
            self.blocks.halve(nodes);
        }
    }
}

impl Replacement for AgingLfu {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.blocks.count_use(nodes, handle);
        self.age(nodes);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let handle = self.blocks.lowest_unpinned(nodes, pinned)?;
        self.blocks.remove(nodes, handle);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.blocks.insert(nodes, handle);
        self.age(nodes);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.blocks.remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, _old: Handle, new: Handle) {
        self.blocks.rename(nodes, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn resident(&self) -> u32 {
        self.blocks.len()
    }

    fn memory_bytes(&self) -> usize {
        self.blocks.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    fn contents(cache: &Cache<AgingLfu>) -> Vec<(u64, u32)> {
        let nodes = cache.nodes();
        cache.policy().iter(nodes).map(|(handle, count)| (nodes.key(handle), count)).collect()
    }

    #[test]
    fn counts_are_halved_once_in_a_period() {
        let mut cache = Cache::new(3, AgingLfu::new(2));
        for key in [1, 1, 2, 2, 2] {
            cache.access(key);
        }
        assert_eq!(contents(&cache), [(1, 2), (2, 3)]);
        cache.access(3);
        assert_eq!(contents(&cache), [(3, 1), (1, 1), (2, 2)], "the sixth access halves 1, 2 and 3");
        cache.access(3);
        cache.access(4);
        assert_eq!(contents(&cache), [(4, 1), (2, 2), (3, 2)], "3 overtook 1");
    }

    /// Two working sets one after the other: LFU clings to the first, aging-LFU takes in the second.
    #[test]
    fn what_was_popular_once_leaves() {
        let hits_in_second_phase = |mut access: Box<dyn FnMut(u64) -> bool>| {
            for _ in 0..200 {
                for key in 0..8 {
                    access(key);
                }
            }
            (0..100)
                .map(|round| u32::from(access(100 + round % 4)) + u32::from(access(1000 + round)))
                .sum::<u32>()
        };
        let mut plain = Cache::new(8, super::super::lfu::Lfu::new());
        let mut aging = Cache::new(8, AgingLfu::new(1));
        let plain = hits_in_second_phase(Box::new(move |key| plain.access(key)));
        let aging = hits_in_second_phase(Box::new(move |key| aging.access(key)));
        assert_eq!(plain, 0, "one of the two newcomers always throws out the other");
        assert!(aging > 80, "{aging}");
    }
}
