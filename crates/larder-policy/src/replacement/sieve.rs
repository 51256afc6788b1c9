//! SIEVE: a FIFO queue over which a hand moves from the oldest to the newest, gives each used block one more round in place, and evicts the first unused one.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for Web Caches", NSDI 2024, Algorithm 1.
//! Unlike CLOCK, a block that was spared stays where it is, and new blocks enter at the head, before the hand.

use super::{Evicted, Replacement};
use crate::{Handle, List, NONE, Nodes};

const USED: u32 = 1;

/// The policy SIEVE. A block's tag is 1 if it was used since the hand last passed it.
#[derive(Clone, Debug)]
pub struct Sieve {
    list: List,
    /// Where the next search begins; [`NONE`] for the oldest.
    hand: Handle,
}

impl Default for Sieve {
    fn default() -> Self {
        Self::new()
    }
}

impl Sieve {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { list: List::new(), hand: NONE }
    }

    fn take<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if self.hand == handle {
            self.hand = nodes.node(handle).newer;
        }
        self.list.remove(nodes, handle);
    }
}

impl Replacement for Sieve {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        nodes.node_mut(handle).tag = USED;
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let oldest = self.list.oldest()?;
        let mut at = if self.hand == NONE { oldest } else { self.hand };
        // After one round nobody has a used mark left: a second one finds a block, or all are pinned.
        for _ in 0..2 * u64::from(self.list.len()) {
            let node = nodes.node_mut(at);
            let newer = if node.newer == NONE { oldest } else { node.newer };
            if node.tag == USED {
                node.tag = 0;
            } else if !pinned(nodes, at) {
                self.hand = at;
                self.take(nodes, at);
                return Some(Evicted { handle: at, ghost: false });
            }
            at = newer;
        }
        None
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        nodes.node_mut(handle).tag = 0;
        self.list.push_newest(nodes, handle);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.take(nodes, handle);
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.list.len()
    }
}
