//! 2Q: a FIFO queue for blocks that came lately, an LRU list for those that came again after they had left it.
//!
//! Johnson, Shasha: "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm", VLDB 1994, section 2.2, the full version. A new block
//! enters A1in, a FIFO queue; a hit there changes nothing, for it is likely correlated with the first access. A block that leaves A1in is remembered
//! in A1out, a FIFO queue of ghosts; one that is accessed while there enters Am, an LRU list, and leaves from there without a trace. A1in gives a block up if it
//! is longer than `Kin`, otherwise Am does. Defaults: `Kin` a quarter of the cache, `Kout` (the length of A1out) half of it, as the paper suggests,
//! both rounded down.
//!
//! Where it differs from the paper: the paper's `reclaimfor(X)` may add a ghost, and then drop the oldest for it, before it takes X itself off A1out; here
//! X leaves A1out first (so does libCacheSim's), so that a hit on a ghost drops no other. What the paper has no word for: where the queue that is to give up
//! a block is empty or has only pinned ones, the other gives one up.
//!
//! Differences from libCacheSim: none known for four blocks or more; below that, its A1in holds none and it admits nothing.

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, Nodes};

/// A block's tag: the queue that it is in.
const A1_IN: u32 = 0;
const AM: u32 = 1;
const A1_OUT: u32 = 2;

/// `Kin` is the cache divided by this.
const IN_SHARE: u32 = 4;
/// `Kout` is the cache divided by this.
const OUT_SHARE: u32 = 2;

/// The policy 2Q.
#[derive(Clone, Debug, Default)]
pub struct TwoQ {
    a1_in: List,
    am: List,
    a1_out: List,
    capacity: u32,
}

impl TwoQ {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { a1_in: List::new(), am: List::new(), a1_out: List::new(), capacity: 0 }
    }

    /// The resident blocks that came lately.
    pub fn a1_in(&self) -> &List {
        &self.a1_in
    }

    /// The resident blocks that came again.
    pub fn am(&self) -> &List {
        &self.am
    }

    /// The ghosts.
    pub fn a1_out(&self) -> &List {
        &self.a1_out
    }

    fn reclaim_in<N: Nodes>(
        &mut self,
        nodes: &mut N,
        pinned: impl Fn(&N, Handle) -> bool,
    ) -> Option<Evicted> {
        let handle = self.a1_in.oldest_unpinned(nodes, PIN_REACH, pinned)?;
        self.a1_in.remove(nodes, handle);
        *nodes.tag_mut(handle) = A1_OUT;
        self.a1_out.push_newest(nodes, handle);
        Some(Evicted { handle, ghost: true })
    }

    fn reclaim_am<N: Nodes>(
        &mut self,
        nodes: &mut N,
        pinned: impl Fn(&N, Handle) -> bool,
    ) -> Option<Evicted> {
        let handle = self.am.oldest_unpinned(nodes, PIN_REACH, pinned)?;
        self.am.remove(nodes, handle);
        Some(Evicted { handle, ghost: false })
    }
}

impl Replacement for TwoQ {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if nodes.tag(handle) == AM {
            self.am.to_newest(nodes, handle);
        }
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        if let Some(handle) = ghost {
            self.a1_out.remove(nodes, handle);
        }
    }

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        if self.a1_in.len() > self.capacity / IN_SHARE {
            self.reclaim_in(nodes, &pinned).or_else(|| self.reclaim_am(nodes, &pinned))
        } else {
            self.reclaim_am(nodes, &pinned).or_else(|| self.reclaim_in(nodes, &pinned))
        }
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        let (list, tag) = if ghost { (&mut self.am, AM) } else { (&mut self.a1_in, A1_IN) };
        *nodes.tag_mut(handle) = tag;
        list.push_newest(nodes, handle);
    }

    #[inline]
    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        if self.a1_out.len() > self.capacity / OUT_SHARE { self.a1_out.pop_oldest(nodes) } else { None }
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let list = match nodes.tag(handle) {
            A1_IN => &mut self.a1_in,
            AM => &mut self.am,
            _ => &mut self.a1_out,
        };
        list.remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename([&mut self.a1_in, &mut self.am, &mut self.a1_out], nodes, old, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    #[inline]
    fn resident(&self) -> u32 {
        self.a1_in.len() + self.am.len()
    }
}

#[cfg(test)]
mod tests;
