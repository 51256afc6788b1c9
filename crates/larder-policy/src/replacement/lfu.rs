//! LFU: the block that was used least often since it entered leaves; of several, the one that has been at that count for longest.
//!
//! Perfect counts, but only for as long as a block is resident: it enters with a count of one, and what it was used before is forgotten with it. Ties are broken
//! first in, first out, as in libCacheSim's LFU, to which the miss counts are equal. Each access takes a constant number of steps (Shah, Mitra, Matani: "An O(1)
//! algorithm for implementing the LFU cache eviction scheme", 2010) over buckets of blocks with the same count. A count stops at 2^32 - 1.

pub(super) mod frequencies;

use self::frequencies::Frequencies;
use super::{Evicted, Replacement};
use crate::{Handle, Nodes};

/// Least frequently used. A block's tag names its bucket.
#[derive(Clone, Debug, Default)]
pub struct Lfu {
    blocks: Frequencies,
}

impl Lfu {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { blocks: Frequencies::new() }
    }

    /// The resident blocks with their counts, the next to leave first.
    pub fn iter<'a, N: Nodes>(&'a self, nodes: &'a N) -> impl Iterator<Item = (Handle, u32)> + 'a {
        self.blocks.iter(nodes)
    }
}

impl Replacement for Lfu {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.blocks.count_use(nodes, handle);
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
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.blocks.remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, _old: Handle, new: Handle) {
        self.blocks.rename(nodes, new);
    }

    fn resize(&mut self, _capacity: u32) {}

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

    fn contents(cache: &Cache<Lfu>) -> Vec<(u64, u32)> {
        let nodes = cache.nodes();
        cache.policy().iter(nodes).map(|(handle, count)| (nodes.key(handle), count)).collect()
    }

    #[test]
    fn a_sequence_worked_out_by_hand() {
        let mut cache = Cache::new(3, Lfu::new());
        for key in [1, 2, 3, 1, 1, 2] {
            cache.access(key);
        }
        assert_eq!(contents(&cache), [(3, 1), (2, 2), (1, 3)]);
        assert!(!cache.access(4), "3 was used least");
        assert_eq!(contents(&cache), [(4, 1), (2, 2), (1, 3)]);
        assert!(cache.access(4));
        assert_eq!(contents(&cache), [(2, 2), (4, 2), (1, 3)], "4 reached two uses after 2 did");
        assert!(!cache.access(3));
        assert_eq!(contents(&cache), [(3, 1), (4, 2), (1, 3)], "and what 3 was used before is forgotten");
    }

    #[test]
    fn pinned_blocks_are_passed_over_up_the_counts() {
        let mut nodes = vec![crate::Node::NEW; 4];
        let mut lfu = Lfu::new();
        for handle in 0..4 {
            lfu.insert(&mut nodes, handle, false);
        }
        lfu.hit(&mut nodes, 3);
        let out = lfu.evict(&mut nodes, |_, handle| handle < 3);
        assert_eq!(out, Some(Evicted { handle: 3, ghost: false }));
        assert_eq!(lfu.evict(&mut nodes, |_, _| true), None);
        assert_eq!(lfu.resident(), 3);
    }
}
