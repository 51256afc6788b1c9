//! Belady's replacement: the block whose next use is furthest away leaves. No policy has fewer misses; it needs the whole trace beforehand.
//!
//! Belady: "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966 (MIN); Mattson, Gecsei, Slutz, Traiger: "Evaluation techniques for
//! storage hierarchies", IBM Systems Journal 9(2), 1970 (OPT), who prove it optimal. Every absent block enters, as in libCacheSim's Belady, to which the miss
//! counts are equal: a cache that may also turn blocks away could do a little better. Of blocks that are never used again, the one
//! that was used first leaves; the choice among them changes no miss count.
//!
//! Memory: 4 bytes per access for [`NextUses`], shared by all runs over a trace; 4 bytes and a bit per access for each run.

mod next_uses;
mod positions;

use std::sync::Arc;

pub use self::next_uses::{NEVER, NextUses, NextUsesBuilder, TooLong};
use self::positions::Positions;
use crate::replacement::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, NONE, Nodes};

/// Belady's replacement. A block's tag is the position of its next use.
///
/// The policy counts accesses itself: each [`hit`](Replacement::hit) and each [`insert`](Replacement::insert) is one. Where some accesses reach it as neither (blocks that
/// were not admitted, writes that invalidate), its user says [`at`](Self::at) which position comes next.
#[derive(Clone, Debug)]
pub struct Belady {
    uses: Arc<NextUses>,
    position: usize,
    /// The positions at which resident blocks are used next.
    awaited: Positions,
    /// Which block that is; of meaning only at awaited positions.
    handles: Vec<Handle>,
    /// Resident blocks that are never used again.
    idle: List,
    resident: u32,
}

impl Belady {
    /// An empty policy at the first access of a trace.
    pub fn new(uses: Arc<NextUses>) -> Self {
        let (awaited, handles) = (Positions::new(uses.len()), vec![0; uses.len()]);
        Self { uses, position: 0, awaited, handles, idle: List::new(), resident: 0 }
    }

    /// The next access that this policy hears of is the one at `position` of the trace, from 0.
    #[inline]
    pub fn at(&mut self, position: usize) {
        self.position = position;
    }

    /// Note when the block that is used now is used next.
    #[inline]
    fn await_next<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let next = self.uses.after(self.position);
        self.position += 1;
        // One block is used at a position: were it awaited already, the user would have told a wrong position.
        if next != NEVER && self.awaited.insert(next) {
            self.handles[next as usize] = handle;
            *nodes.tag_mut(handle) = next;
        } else {
            *nodes.tag_mut(handle) = NEVER;
            self.idle.push_newest(nodes, handle);
        }
    }

    #[inline]
    fn stop_awaiting<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        match nodes.tag(handle) {
            NEVER => self.idle.remove(nodes, handle),
            next => self.awaited.remove(next),
        }
    }

    fn furthest<N: Nodes>(&self, nodes: &N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Handle> {
        let down = std::iter::successors(self.awaited.last(), |&position| self.awaited.before(position));
        let blocks = down.take(PIN_REACH).map(|position| self.handles[position as usize]);
        blocks.into_iter().find(|&handle| !pinned(nodes, handle))
    }
}

impl Replacement for Belady {
    const HIT_MOVES: bool = false;

    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.stop_awaiting(nodes, handle);
        self.await_next(nodes, handle);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let idle = self.idle.oldest_unpinned(nodes, PIN_REACH, &pinned);
        let handle = idle.or_else(|| self.furthest(nodes, pinned))?;
        self.remove(nodes, handle, false);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.await_next(nodes, handle);
        self.resident += 1;
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.stop_awaiting(nodes, handle);
        self.resident -= 1;
    }

    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        match nodes.tag(new) {
            NEVER => List::rename([&mut self.idle], nodes, old, new),
            next => self.handles[next as usize] = new,
        }
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.resident
    }

    /// Without the shared [`NextUses`].
    fn memory_bytes(&self) -> usize {
        self.awaited.memory_bytes() + self.handles.capacity() * size_of::<Handle>()
    }
}

// A position that is never used must not be mistaken for a handle's list end.
const _: () = assert!(NEVER == NONE);

#[cfg(test)]
mod tests;
