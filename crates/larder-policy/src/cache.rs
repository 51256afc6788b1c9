//! A cache of block numbers in memory: an index and nodes around any replacement policy. What the simulator and the analyzer run.
//!
//! It holds no data, but all that a cache would decide: which block is in, which leaves, which are remembered. Per resident or remembered block it takes 24
//! bytes and its slots in the index (8 bytes, at most three quarters in use). A block that comes and goes takes no allocation.

use std::ops::Range;

use crate::index::{Index, hash};
use crate::replacement::Replacement;
use crate::{Handle, Links, Node, Nodes};

/// Accesses whose memory is fetched together by [`Cache::warm`].
pub const WARM: usize = 32;

/// What a user notes about a resident block.
pub type Mark = u8;

const RESIDENT: u8 = 1;

#[derive(Clone, Copy, Debug)]
struct Block {
    key: u64,
    node: Node,
    resident: u8,
    mark: Mark,
}

#[derive(Clone, Debug, Default)]
struct Blocks(Vec<Block>);

impl Nodes for Blocks {
    #[inline]
    fn links(&self, handle: Handle) -> &Links {
        &self.0[handle as usize].node.links
    }

    #[inline]
    fn links_mut(&mut self, handle: Handle) -> &mut Links {
        &mut self.0[handle as usize].node.links
    }

    #[inline]
    fn tag(&self, handle: Handle) -> u32 {
        self.0[handle as usize].node.tag
    }

    #[inline]
    fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
        &mut self.0[handle as usize].node.tag
    }

    #[inline]
    fn key(&self, handle: Handle) -> u64 {
        self.0[handle as usize].key
    }
}

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The block is resident.
    Resident(Handle),
    /// Only the policy remembers it.
    Ghost(Handle),
    /// Nothing is known of it.
    Absent,
}

/// A cache of up to `capacity` blocks.
#[derive(Clone, Debug)]
pub struct Cache<P> {
    capacity: u32,
    policy: P,
    index: Index,
    blocks: Blocks,
    unused: Vec<Handle>,
    /// Blocks with these keys stay, as long as others can leave.
    pinned: Range<u64>,
    /// What enters is to leave before others.
    leaves_first: bool,
}

impl<P: Replacement> Cache<P> {
    /// An empty cache under `policy`, which is told the capacity.
    pub fn new(capacity: u32, mut policy: P) -> Self {
        policy.resize(capacity);
        Self {
            capacity,
            policy,
            index: Index::new(),
            blocks: Blocks::default(),
            unused: Vec::new(),
            pinned: 0..0,
            leaves_first: false,
        }
    }

    /// Blocks with these keys stay from now on, as those of a request under way do in a live cache; unless no others can leave.
    pub fn pin(&mut self, keys: Range<u64>) {
        self.pinned = keys;
    }

    /// What enters from now on is to leave before others, or no more ([`Replacement::insert_to_leave_first`]). Whether anything may leave for it is its user's affair.
    pub fn set_leaves_first(&mut self, leaves_first: bool) {
        self.leaves_first = leaves_first;
    }

    /// What enters is to leave before others.
    #[inline]
    pub fn leaves_first(&self) -> bool {
        self.leaves_first
    }

    /// Blocks it may hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Blocks that it holds.
    pub fn len(&self) -> u32 {
        self.policy.resident()
    }

    /// True without resident blocks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The policy, to look at.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The nodes that the policy works on, to look at.
    pub fn nodes(&self) -> &impl Nodes {
        &self.blocks
    }

    /// Bytes of memory held, the policy's own among them.
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes()
            + self.blocks.0.capacity() * size_of::<Block>()
            + self.unused.capacity() * size_of::<Handle>()
            + self.policy.memory_bytes()
    }

    /// A plain access: a hit is true; an absent block enters, and another may leave.
    #[inline]
    pub fn access(&mut self, key: u64) -> bool {
        self.access_hashed(key, hash(key))
    }

    /// [`Self::access`] with the key's [`hash`].
    #[inline]
    pub fn access_hashed(&mut self, key: u64, hash: u32) -> bool {
        match self.find(key, hash) {
            Found::Resident(handle) => {
                self.hit(handle);
                true
            }
            found => {
                self.enter(key, hash, found, 0, |_, _| {});
                false
            }
        }
    }

    /// Look a block up; nothing changes.
    #[inline]
    pub fn find(&self, key: u64, hash: u32) -> Found {
        match self.index.find(hash, |handle| self.blocks.0[handle as usize].key == key) {
            Some(handle) if self.blocks.0[handle as usize].resident == RESIDENT => Found::Resident(handle),
            Some(handle) => Found::Ghost(handle),
            None => Found::Absent,
        }
    }

    /// A resident block is used.
    #[inline]
    pub fn hit(&mut self, handle: Handle) {
        self.policy.hit(&mut self.blocks, handle);
    }

    /// The user's note on a resident block; 0 unless given.
    #[inline]
    pub fn mark(&self, handle: Handle) -> Mark {
        self.blocks.0[handle as usize].mark
    }

    /// Note something about a resident block.
    #[inline]
    pub fn set_mark(&mut self, handle: Handle, mark: Mark) {
        self.blocks.0[handle as usize].mark = mark;
    }

    /// Let a block enter that is not resident; `found` is what [`Self::find`] said of it. `evicted` is told the key and the mark of each block that leaves.
    /// A cache without capacity admits nothing.
    pub fn enter(
        &mut self,
        key: u64,
        hash: u32,
        found: Found,
        mark: Mark,
        mut evicted: impl FnMut(u64, Mark),
    ) {
        if self.capacity == 0 {
            return;
        }
        let ghost = match found {
            Found::Ghost(handle) => Some(handle),
            _ => None,
        };
        self.policy.miss(&mut self.blocks, ghost);
        self.make_room(&mut evicted);
        let handle = ghost.unwrap_or_else(|| self.add(key, hash));
        let block = &mut self.blocks.0[handle as usize];
        (block.resident, block.mark) = (RESIDENT, mark);
        match self.leaves_first {
            true => self.policy.insert_to_leave_first(&mut self.blocks, handle, ghost.is_some()),
            false => self.policy.insert(&mut self.blocks, handle, ghost.is_some()),
        }
        self.drop_forgotten();
    }

    /// Note something anew about every resident block: from its key and the note so far. In no particular order, but the same every time.
    pub fn remark(&mut self, mut note: impl FnMut(u64, Mark) -> Mark) {
        for block in self.blocks.0.iter_mut().filter(|block| block.resident == RESIDENT) {
            block.mark = note(block.key, block.mark);
        }
    }

    /// The keys of all resident blocks. In no particular order, but the same every time.
    pub fn resident(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.0.iter().filter(|block| block.resident == RESIDENT).map(|block| block.key)
    }

    /// A block's data is not valid any more: it leaves. True, with its mark, if it was resident.
    pub fn invalidate(&mut self, key: u64, hash: u32) -> Option<Mark> {
        let Found::Resident(handle) = self.find(key, hash) else { return None };
        self.policy.remove(&mut self.blocks, handle, false);
        let mark = self.mark(handle);
        self.drop_handle(handle, hash);
        Some(mark)
    }

    /// Go on as if a block had never been seen: it leaves, resident or ghost. Its mark, if it was resident.
    pub fn forget(&mut self, key: u64, hash: u32) -> Option<Mark> {
        let (handle, ghost) = match self.find(key, hash) {
            Found::Resident(handle) => (handle, false),
            Found::Ghost(handle) => (handle, true),
            Found::Absent => return None,
        };
        self.policy.remove(&mut self.blocks, handle, ghost);
        let mark = self.mark(handle);
        self.drop_handle(handle, hash);
        (!ghost).then_some(mark)
    }

    /// Change the capacity; what is above it leaves.
    pub fn resize(&mut self, capacity: u32, mut evicted: impl FnMut(u64, Mark)) {
        self.policy.resize(capacity);
        self.trim(capacity, &mut evicted);
    }

    /// Change the capacity after the blocks were thinned out in proportion ([`Replacement::scale`]); what is above it leaves.
    pub fn scale(&mut self, capacity: u32, mut evicted: impl FnMut(u64, Mark)) {
        self.policy.scale(capacity);
        self.trim(capacity, &mut evicted);
    }

    /// All blocks leave, in the order in which they would if others took their places.
    pub fn drain(&mut self, mut evicted: impl FnMut(u64, Mark)) {
        while self.policy.resident() > 0 {
            self.evict_one(&mut evicted);
        }
    }

    fn trim(&mut self, capacity: u32, evicted: &mut impl FnMut(u64, Mark)) {
        self.capacity = capacity;
        while self.policy.resident() > capacity {
            self.evict_one(evicted);
        }
        self.drop_forgotten();
    }

    fn make_room(&mut self, evicted: &mut impl FnMut(u64, Mark)) {
        while self.policy.resident() >= self.capacity {
            self.evict_one(evicted);
        }
    }

    fn evict_one(&mut self, evicted: &mut impl FnMut(u64, Mark)) {
        let pinned = &self.pinned;
        // Most caches pin nothing, and need not look at what might leave.
        let out = match pinned.is_empty() {
            true => None,
            false => self.policy.evict(&mut self.blocks, |nodes, handle| pinned.contains(&nodes.key(handle))),
        };
        let out = out
            .or_else(|| self.policy.evict(&mut self.blocks, |_, _| false))
            .expect("nothing is pinned now, and a block is resident");
        let block = &mut self.blocks.0[out.handle as usize];
        block.resident = 0;
        evicted(block.key, block.mark);
        if !out.ghost {
            let hash = hash(block.key);
            self.drop_handle(out.handle, hash);
        }
    }

    fn drop_forgotten(&mut self) {
        while let Some(handle) = self.policy.forget(&mut self.blocks) {
            let hash = hash(self.blocks.key(handle));
            self.drop_handle(handle, hash);
        }
    }

    fn add(&mut self, key: u64, hash: u32) -> Handle {
        let block = Block { key, node: Node::NEW, resident: 0, mark: 0 };
        let handle = match self.unused.pop() {
            Some(handle) => {
                self.blocks.0[handle as usize] = block;
                handle
            }
            None => {
                self.blocks.0.push(block);
                (self.blocks.0.len() - 1) as Handle
            }
        };
        self.index.insert(hash, handle);
        handle
    }

    fn drop_handle(&mut self, handle: Handle, hash: u32) {
        self.blocks.0[handle as usize].resident = 0;
        self.index.remove(hash, handle);
        self.unused.push(handle);
    }

    /// Read the memory that accesses to these keys (by their hashes, at most [`WARM`]) will need, all at once instead of one after the other: the
    /// processor overlaps what does not depend on each other. Nothing changes; returns a number to keep the compiler from leaving it out.
    #[inline]
    pub fn warm(&self, hashes: &[u32]) -> u32 {
        let mut handles = [0; WARM];
        let count = hashes.len().min(WARM);
        for (handle, &hash) in handles.iter_mut().zip(hashes) {
            *handle = self.index.hint(hash);
        }
        let mut newer = [0; WARM];
        let mut sum = 0;
        for (newer, &handle) in newer.iter_mut().zip(&handles[..count]) {
            if let Some(block) = self.blocks.0.get(handle as usize) {
                *newer = block.node.links.newer;
                sum ^= block.node.links.older;
            }
        }
        if P::HIT_MOVES {
            for &handle in &newer[..count] {
                if let Some(block) = self.blocks.0.get(handle as usize) {
                    sum ^= block.node.tag;
                }
            }
        }
        sum
    }

    /// [`Self::access`] for many keys in turn; returns the hits.
    pub fn access_all(&mut self, keys: &[u64]) -> u64 {
        let mut hits = 0;
        let mut hashes = [0; WARM];
        for keys in keys.chunks(WARM) {
            for (slot, &key) in hashes.iter_mut().zip(keys) {
                *slot = hash(key);
            }
            std::hint::black_box(self.warm(&hashes[..keys.len()]));
            for (&key, &hash) in keys.iter().zip(&hashes) {
                hits += u64::from(self.access_hashed(key, hash));
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests;
