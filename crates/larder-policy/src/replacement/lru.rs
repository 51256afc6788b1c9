//! LRU: the block whose last use is longest ago leaves.

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, Nodes};

/// Least recently used.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    list: List,
}

impl Lru {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { list: List::new() }
    }

    /// The resident blocks, the next to leave first.
    pub fn list(&self) -> &List {
        &self.list
    }
}

impl Replacement for Lru {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.list.to_newest(nodes, handle);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let handle = self.list.oldest_unpinned(nodes, PIN_REACH, pinned)?;
        self.list.remove(nodes, handle);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.list.push_newest(nodes, handle);
    }

    #[inline]
    fn insert_to_leave_first<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.list.push_oldest(nodes, handle);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.list.remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename([&mut self.list], nodes, old, new);
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slow::{Model, compare, ops, played};
    use super::*;
    use crate::Node;
    use proptest::prelude::*;

    /// The time of each block's last use.
    #[derive(Clone, Default)]
    struct Times {
        now: u64,
        used: Vec<(u64, u64)>,
    }

    impl Model for Times {
        fn residents(&self) -> Vec<u64> {
            self.used.iter().map(|&(_, key)| key).collect()
        }

        fn hit(&mut self, key: u64) {
            self.remove(key);
            self.insert(key);
        }

        fn insert(&mut self, key: u64) {
            self.now += 1;
            self.used.push((self.now, key));
        }

        fn evict(&mut self) -> u64 {
            let (_, key) = *self.used.iter().min().expect("blocks are left");
            self.remove(key);
            key
        }

        fn remove(&mut self, key: u64) {
            self.used.retain(|&(_, other)| other != key);
        }
    }

    proptest! {
        #[test]
        fn the_least_recent_leaves(ops in ops()) {
            compare(Lru::new(), Times::default(), &ops)?;
        }
    }

    #[test]
    fn use_moves_a_block_to_the_front() {
        // From the newest: 3 2 1 | 1 hit: 1 3 2 | 4 for 2: 4 1 3 | 1 hit: 1 4 3 | 2 for 3: 2 1 4 | 3 for 4: 3 2 1.
        assert_eq!(played(Lru::new(), 3, &[1, 2, 3, 1, 4, 1, 2, 3, 1]), "...+2+34+");
    }

    #[test]
    fn the_search_past_pinned_blocks_has_an_end() {
        let count = PIN_REACH as Handle + 1;
        let (mut nodes, mut lru) = (vec![Node::NEW; count as usize], Lru::new());
        (0..count).for_each(|handle| lru.insert(&mut nodes, handle, false));
        let reach = count - 1;
        assert_eq!(lru.evict(&mut nodes, |_, handle| handle < reach), None);
        let last_within = Evicted { handle: reach - 1, ghost: false };
        assert_eq!(lru.evict(&mut nodes, |_, handle| handle < reach - 1), Some(last_within));
    }
}
