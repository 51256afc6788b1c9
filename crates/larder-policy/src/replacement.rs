//! Replacement: which block leaves when another is to enter.
//!
//! One trait for all policies ([`Replacement`]), driven by the simulator's [`crate::Cache`] and by the live engine in the same way.

pub mod aging_lfu;
pub mod arc;
pub mod clock;
pub mod fifo;
pub mod lfu;
pub mod lirs;
pub mod lru;
pub mod mq;
pub mod random;
pub mod s3fifo;
pub mod sieve;
pub mod twoq;
pub mod wtinylfu;

#[cfg(test)]
mod renames;
#[cfg(test)]
mod slow;

use crate::{Handle, Nodes};

/// Blocks looked at for one that is not pinned before a policy gives up. Blocks are pinned for as long as a device operation lasts, so hardly ever.
pub const PIN_REACH: usize = 64;

/// Used blocks that CLOCK, SIEVE and S3-FIFO spare in one [`Replacement::evict`] of a live cache, before a used one has to leave. As the policies are in their
/// papers, a single eviction may pass over the whole cache, fifteen times even; each step is paid for by a hit before, but they come all at once, and a live cache
/// has I/O to serve meanwhile. Each step costs a memory access, so this many take less than a millisecond. Simulations have no such limit.
pub const SPARED_MAX: u64 = 4096;

/// A block that a policy gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Which.
    pub handle: Handle,
    /// True if the policy remembers it as a ghost: its user keeps the handle until [`Replacement::forget`] or [`Replacement::remove`].
    pub ghost: bool,
}

/// A replacement policy over the blocks of one partition.
///
/// For each access its user looks the block up, and tells the policy:
///
/// * the block is resident: [`hit`](Self::hit);
/// * it is not, and is to enter: [`miss`](Self::miss), then [`evict`](Self::evict) while the partition is full, then [`insert`](Self::insert), then
///   [`forget`](Self::forget) until there is none. If no block could be evicted, `insert` does not follow.
///
/// A block whose data became invalid leaves by [`remove`](Self::remove). Nothing here allocates per access once the policy has seen as many blocks as it
/// remembers at most.
pub trait Replacement {
    /// True if a hit links the block elsewhere: its user then does well to fetch the neighbours' nodes with the block's, all of them ahead.
    const HIT_MOVES: bool = true;

    /// A resident block was used.
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle);

    /// An absent block is to enter. `ghost` is its handle if the policy remembered it: it forgets it now, and gets it back by `insert`
    /// or never; under another handle, if its user has moved the node meanwhile.
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>);

    /// Give up a resident block that is not pinned; `None` if there is none within reach. Where no `miss` came since the last `insert`, the
    /// partition is being made smaller.
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted>;

    /// The block announced by `miss` is resident now. `ghost` is true if its handle was given to `miss`.
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool);

    /// The same of a block that is to be among the first to leave, once any has to: it takes room that nothing else wanted as yet. Where a policy has no place for such blocks they enter as all do.
    fn insert_to_leave_first<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        self.insert(nodes, handle, ghost);
    }

    /// A ghost that the policy remembers no longer: its user drops the handle.
    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        let _ = nodes;
        None
    }

    /// Take a block out, resident or ghost, whatever the reason.
    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool);

    /// A block that the policy knows, resident or ghost, has another handle. Its user has moved the node from `old` to `new`, as it was.
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle);

    /// The partition holds `capacity` blocks from now on. Its user evicts what is above it.
    fn resize(&mut self, capacity: u32);

    /// The partition holds `capacity` blocks from now on, and its blocks were thinned out in proportion: what is measured in blocks is so too. For
    /// scaled-down caches, whose scale changes.
    fn scale(&mut self, capacity: u32) {
        self.resize(capacity);
    }

    /// Resident blocks.
    fn resident(&self) -> u32;

    /// Bytes of memory held beyond the nodes. Proportional to the blocks that this policy knew at most, whatever handles they have.
    fn memory_bytes(&self) -> usize {
        0
    }
}
