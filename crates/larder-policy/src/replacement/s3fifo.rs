//! S3-FIFO: a small FIFO queue that most blocks only pass through, a main one for those used meanwhile, and a third one of ghosts.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: "FIFO Queues are All You Need for Cache Eviction", SOSP 2023, Algorithm 1. A new block enters the small queue S, a block
//! whose ghost is in G the main queue M. S has a tenth of the cache, M the rest, G as many ghosts as M blocks. Each block counts its
//! hits, up to 3. A block at the end of S that was hit more than once moves to M, its counter cleared; any other leaves and becomes a ghost. A block at the end of M
//! that was hit since takes another round and loses one from its counter; any other leaves without a trace.
//!
//! Where it differs from the paper, in step with its authors' own libCacheSim: until the first eviction, new blocks enter M once S has
//! its tenth (the paper fills the whole cache through S; here a cache made larger does the same again); a block that moves from S to M
//! does not evict another from M at once, so M may be longer than its share, and then it is M that evicts next.
//! What the paper has no word for: where all that S or M could give up is pinned, the other queue gives a block up. In a live cache, one eviction lets a limited
//! number of blocks stay ([`S3Fifo::sparing`]).
//!
//! Differences from libCacheSim: none known for ten blocks or more; below that, its S holds none and it admits nothing, while here S has one.

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, Nodes};

/// S has the cache divided by this, but one block at least.
const SMALL_SHARE: u32 = 10;
/// Hits that are counted.
const HITS_MAX: u32 = 3;
/// Hits in S that move a block to M.
const HITS_TO_MAIN: u32 = 2;

/// A block's tag: its hits in the lower two bits, and in the upper ones the queue that it is in.
const HITS: u32 = 3;
const SMALL: u32 = 0;
const MAIN: u32 = 4;
const GHOST: u32 = 8;

/// The policy S3-FIFO.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    small: List,
    main: List,
    ghosts: List,
    capacity: u32,
    /// True once the cache was full.
    full: bool,
    spared_max: u64,
}

impl Default for S3Fifo {
    fn default() -> Self {
        Self::new()
    }
}

impl S3Fifo {
    /// An empty policy.
    pub const fn new() -> Self {
        let (small, main, ghosts) = (List::new(), List::new(), List::new());
        Self { small, main, ghosts, capacity: 0, full: false, spared_max: u64::MAX }
    }

    /// The same with a limit to the blocks that one eviction moves to M or lets go round in it: the next one leaves, used or not (see
    /// [`super::SPARED_MAX`]).
    pub const fn sparing(self, spared_max: u64) -> Self {
        Self { spared_max, ..self }
    }

    /// The small queue, S.
    pub fn small(&self) -> &List {
        &self.small
    }

    /// The main queue, M.
    pub fn main(&self) -> &List {
        &self.main
    }

    /// The ghosts, G.
    pub fn ghosts(&self) -> &List {
        &self.ghosts
    }

    fn small_share(&self) -> u32 {
        (self.capacity / SMALL_SHARE).max(1)
    }

    fn ghosts_max(&self) -> u32 {
        (u64::from(self.capacity) * 9 / 10) as u32
    }

    /// From the oldest block of S on: what was used moves to M, until one leaves.
    fn evict_small<N: Nodes>(
        &mut self,
        nodes: &mut N,
        pinned: impl Fn(&N, Handle) -> bool,
    ) -> Option<Evicted> {
        let (mut spared, mut reach) = (0, PIN_REACH);
        let mut next = self.small.oldest();
        while let Some(handle) = next {
            next = List::newer(nodes, handle);
            if nodes.tag(handle) & HITS >= HITS_TO_MAIN && spared < self.spared_max {
                spared += 1;
                self.small.remove(nodes, handle);
                *nodes.tag_mut(handle) = MAIN;
                self.main.push_newest(nodes, handle);
            } else if !pinned(nodes, handle) {
                self.small.remove(nodes, handle);
                *nodes.tag_mut(handle) = GHOST;
                self.ghosts.push_newest(nodes, handle);
                return Some(Evicted { handle, ghost: true });
            } else {
                reach -= 1;
                if reach == 0 {
                    return None;
                }
            }
        }
        None
    }

    /// From the oldest block of M on: what was used goes round once more, until one leaves. Each step takes one from a counter or passes a pinned block for
    /// good, so there is an end.
    fn evict_main<N: Nodes>(
        &mut self,
        nodes: &mut N,
        pinned: impl Fn(&N, Handle) -> bool,
    ) -> Option<Evicted> {
        let (mut spared, mut reach) = (0, PIN_REACH);
        let mut next = self.main.oldest();
        while let Some(handle) = next {
            next = List::newer(nodes, handle);
            if nodes.tag(handle) & HITS > 0 && spared < self.spared_max {
                spared += 1;
                *nodes.tag_mut(handle) -= 1;
                self.main.to_newest(nodes, handle);
                next = next.or(Some(handle));
            } else if !pinned(nodes, handle) {
                self.main.remove(nodes, handle);
                return Some(Evicted { handle, ghost: false });
            } else {
                reach -= 1;
                if reach == 0 {
                    return None;
                }
            }
        }
        None
    }
}

impl Replacement for S3Fifo {
    const HIT_MOVES: bool = false;

    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if nodes.tag(handle) & HITS < HITS_MAX {
            *nodes.tag_mut(handle) += 1;
        }
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        if let Some(handle) = ghost {
            self.ghosts.remove(nodes, handle);
        }
    }

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        self.full = true;
        let main_is_long = self.main.len() > self.capacity.saturating_sub(self.small_share());
        let first = if main_is_long { self.evict_main(nodes, &pinned) } else { None };
        // S may move all it has to M, so M is looked at after it, whatever it had before.
        first.or_else(|| self.evict_small(nodes, &pinned)).or_else(|| self.evict_main(nodes, &pinned))
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        let straight = ghost || (!self.full && self.small.len() >= self.small_share());
        let (list, tag) = if straight { (&mut self.main, MAIN) } else { (&mut self.small, SMALL) };
        *nodes.tag_mut(handle) = tag;
        list.push_newest(nodes, handle);
    }

    /// To where S gives blocks up. What comes back soon after it left goes to M all the same.
    #[inline]
    fn insert_to_leave_first<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        if ghost {
            return self.insert(nodes, handle, ghost);
        }
        *nodes.tag_mut(handle) = SMALL;
        self.small.push_oldest(nodes, handle);
    }

    #[inline]
    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        if self.ghosts.len() > self.ghosts_max() { self.ghosts.pop_oldest(nodes) } else { None }
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let list = match nodes.tag(handle) & !HITS {
            SMALL => &mut self.small,
            MAIN => &mut self.main,
            _ => &mut self.ghosts,
        };
        list.remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename([&mut self.small, &mut self.main, &mut self.ghosts], nodes, old, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.full &= capacity <= self.capacity;
        self.capacity = capacity;
    }

    #[inline]
    fn resident(&self) -> u32 {
        self.small.len() + self.main.len()
    }
}

#[cfg(test)]
mod tests;
