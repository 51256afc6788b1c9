//! CLOCK with a counter: a hand goes round the blocks, takes one off the counter of each used block, and evicts the first whose counter is zero.
//!
//! Corbató: "A Paging Experiment with the Multics System", 1968 (one bit). S-CAVE (Luo et al., PACT 2013, section on rECS) keeps a counter of four bits per
//! block, which is the default here: a block used often survives up to fifteen rounds. New blocks enter behind the hand, with a counter of zero.

use super::{Evicted, Replacement};
use crate::{Handle, NONE, Nodes};

/// Bits of the counter in S-CAVE.
pub const COUNTER_BITS: u32 = 4;

/// The policy CLOCK. A block's tag is its counter; its links close a ring.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The block that is looked at next; [`NONE`] in an empty ring.
    hand: Handle,
    len: u32,
    counter_max: u32,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(COUNTER_BITS)
    }
}

impl Clock {
    /// An empty policy with counters of `bits` bits.
    ///
    /// # Panics
    /// If `bits` is not in 1..=16.
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 16);
        Self { hand: NONE, len: 0, counter_max: (1 << bits) - 1 }
    }

    fn unlink<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let node = *nodes.node(handle);
        nodes.node_mut(node.newer).older = node.older;
        nodes.node_mut(node.older).newer = node.newer;
        self.len -= 1;
        if self.hand == handle {
            self.hand = if self.len == 0 { NONE } else { node.newer };
        }
    }
}

impl Replacement for Clock {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let node = nodes.node_mut(handle);
        node.tag = (node.tag + 1).min(self.counter_max);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        // Each round takes one off every counter: after counter_max rounds all are zero, and one more finds a block, or all are pinned.
        for _ in 0..u64::from(self.len) * (u64::from(self.counter_max) + 1) {
            let handle = self.hand;
            let node = nodes.node_mut(handle);
            if node.tag > 0 {
                node.tag -= 1;
            } else if !pinned(nodes, handle) {
                self.unlink(nodes, handle);
                return Some(Evicted { handle, ghost: false });
            }
            self.hand = nodes.node(handle).newer;
        }
        None
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let (older, newer) = match self.hand {
            NONE => (handle, handle),
            hand => (nodes.node(hand).older, hand),
        };
        *nodes.node_mut(handle) = crate::Node { newer, older, tag: 0 };
        if self.hand == NONE {
            self.hand = handle;
        } else {
            nodes.node_mut(older).newer = handle;
            nodes.node_mut(newer).older = handle;
        }
        self.len += 1;
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.unlink(nodes, handle);
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.len
    }
}
