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

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.list.remove(nodes, handle);
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.list.len()
    }
}
