//! ARC: two LRU lists, of blocks seen once and of blocks seen more often, and a target between them that follows where ghosts are met again.
//!
//! Megiddo, Modha: "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, Figure 4. The list T1 holds the resident blocks seen once, T2 those seen
//! at least twice; B1 and B2 are their ghosts. A hit in B1 raises the target `p` for the length of T1, a hit in B2 lowers it. For a cache
//! of `c` blocks, T1 and B1 have at most `c`, all four lists at most `2c` blocks (one more between an `insert` and the `forget` after it).
//!
//! Where the paper leaves it open: `p` and its steps are real numbers, as the paper's quotients are (libCacheSim does the same). What the paper
//! has no word for: where blocks were invalidated and the cache is not full, nothing is replaced; where the list that is to give up a block has only
//! pinned ones, the other list gives one up; a smaller cache cuts `p`, replaces as for a block that is in no list, and then drops the oldest ghosts.
//!
//! Differences from libCacheSim: none known.

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, Nodes};

/// A block's tag: the list that it is on.
const T1: u32 = 0;
const T2: u32 = 1;
const B1: u32 = 2;
const B2: u32 = 3;

/// From the tag of a resident block to that of its ghost.
const GHOST: u32 = B1;

/// What is to enter, as told by `miss`: Figure 4 has a case for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entering {
    /// Nothing: the cache is being made smaller.
    Nothing,
    /// A block that is on no list (case IV).
    New,
    /// A ghost of B1 (case II).
    SeenOnce,
    /// A ghost of B2 (case III).
    SeenOften,
}

/// The policy ARC.
#[derive(Clone, Debug)]
pub struct Arc {
    /// T1, T2, B1, B2.
    lists: [List; 4],
    /// How long T1 is to be.
    p: f64,
    capacity: u32,
    entering: Entering,
}

impl Default for Arc {
    fn default() -> Self {
        Self::new()
    }
}

impl Arc {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { lists: [List::new(); 4], p: 0.0, capacity: 0, entering: Entering::Nothing }
    }

    /// The resident blocks seen once.
    pub fn t1(&self) -> &List {
        self.list(T1)
    }

    /// The resident blocks seen more often.
    pub fn t2(&self) -> &List {
        self.list(T2)
    }

    /// The ghosts of blocks seen once.
    pub fn b1(&self) -> &List {
        self.list(B1)
    }

    /// The ghosts of blocks seen more often.
    pub fn b2(&self) -> &List {
        self.list(B2)
    }

    /// The target `p` for the length of T1, in 0..=capacity.
    pub fn target(&self) -> f64 {
        self.p
    }

    #[inline]
    fn list(&self, tag: u32) -> &List {
        &self.lists[(tag & 3) as usize]
    }

    #[inline]
    fn list_mut(&mut self, tag: u32) -> &mut List {
        &mut self.lists[(tag & 3) as usize]
    }

    #[inline]
    fn len(&self, tag: u32) -> u32 {
        self.list(tag).len()
    }

    #[inline]
    fn push<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, tag: u32) {
        *nodes.tag_mut(handle) = tag;
        self.list_mut(tag).push_newest(nodes, handle);
    }

    /// Follow a hit among the ghosts: one more, or as many as the other ghosts outnumber these.
    #[inline]
    fn adapt(&mut self, hit: u32) {
        let step = |others: u32, these: u32| (f64::from(others) / f64::from(these)).max(1.0);
        self.p = if hit == B1 {
            (self.p + step(self.len(B2), self.len(B1))).min(f64::from(self.capacity))
        } else {
            (self.p - step(self.len(B1), self.len(B2))).max(0.0)
        };
    }

    /// REPLACE of Figure 4: the list that gives up a block.
    #[inline]
    fn replaced(&self) -> u32 {
        let t1 = f64::from(self.len(T1));
        let above = t1 > self.p || (self.entering == Entering::SeenOften && t1 == self.p);
        if self.len(T1) > 0 && above { T1 } else { T2 }
    }

    /// True if case IV A finds no ghost in the full L1 to drop: T1's oldest block then leaves without becoming one.
    #[inline]
    fn t1_is_all(&self) -> bool {
        self.entering == Entering::New && self.len(T1) >= self.capacity
    }
}

impl Replacement for Arc {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if nodes.tag(handle) == T2 {
            self.list_mut(T2).to_newest(nodes, handle);
        } else {
            self.list_mut(T1).remove(nodes, handle);
            self.push(nodes, handle, T2);
        }
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        let Some(handle) = ghost else {
            self.entering = Entering::New;
            return;
        };
        let tag = nodes.tag(handle);
        self.entering = if tag == B1 { Entering::SeenOnce } else { Entering::SeenOften };
        self.adapt(tag);
        self.list_mut(tag).remove(nodes, handle);
    }

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let first = self.replaced();
        let ghost = !self.t1_is_all();
        let tags = if ghost { [first, T1 + T2 - first] } else { [T1, T2] };
        let (tag, handle) = tags
            .into_iter()
            .find_map(|tag| Some((tag, self.list(tag).oldest_unpinned(nodes, PIN_REACH, &pinned)?)))?;
        self.list_mut(tag).remove(nodes, handle);
        if ghost {
            self.push(nodes, handle, tag + GHOST);
        }
        Some(Evicted { handle, ghost })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        self.push(nodes, handle, if ghost { T2 } else { T1 });
        self.entering = Entering::Nothing;
    }

    /// Case IV drops a ghost before it replaces; here it is dropped after the insertion, which is the same one: the oldest of a list that only grew at
    /// its other end.
    #[inline]
    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        let seen_once = self.len(T1) + self.len(B1);
        let seen_often = self.len(T2) + self.len(B2);
        if seen_once > self.capacity && self.len(B1) > 0 {
            self.list_mut(B1).pop_oldest(nodes)
        } else if u64::from(seen_once) + u64::from(seen_often) > 2 * u64::from(self.capacity) {
            self.list_mut(B2).pop_oldest(nodes).or_else(|| self.list_mut(B1).pop_oldest(nodes))
        } else {
            None
        }
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let tag = nodes.tag(handle);
        self.list_mut(tag).remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename(&mut self.lists, nodes, old, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.p = self.p.min(f64::from(capacity));
        self.entering = Entering::Nothing;
    }

    fn scale(&mut self, capacity: u32) {
        self.p *= f64::from(capacity) / f64::from(self.capacity.max(1));
        self.resize(capacity);
    }

    #[inline]
    fn resident(&self) -> u32 {
        self.len(T1) + self.len(T2)
    }
}

#[cfg(test)]
mod tests;
