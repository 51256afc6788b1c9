//! Blocks remembered without their data, from the most to the least recently seen, each with a count.

mod buckets;

use self::buckets::{Buckets, Chain};
use crate::index::hash;
use crate::{Chunked, Handle, Links, List, NONE, Node, Nodes};

#[derive(Clone, Copy, Debug)]
struct Ghost {
    key: u64,
    node: Node,
    /// The next one in the same bucket of the hash table.
    next: Handle,
}

#[derive(Clone, Debug, Default)]
struct Table(Chunked<Ghost>);

impl Nodes for Table {
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

impl Chain for Table {
    #[inline]
    fn hash(&self, handle: Handle) -> u32 {
        hash(self.key(handle))
    }

    #[inline]
    fn next(&self, handle: Handle) -> Handle {
        self.0[handle as usize].next
    }

    #[inline]
    fn set_next(&mut self, handle: Handle, next: Handle) {
        self.0[handle as usize].next = next;
    }
}

/// A queue of ghosts that are found by their key. Its user bounds it: the memory is that of the most ghosts it ever held, 28 bytes each. No call takes long, whatever
/// is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ghosts {
    buckets: Buckets,
    table: Table,
    list: List,
    /// Handles without a ghost; their nodes are on no other list.
    unused: List,
}

impl Ghosts {
    pub(super) fn len(&self) -> u32 {
        self.list.len()
    }

    #[inline]
    pub(super) fn find(&self, key: u64, hash: u32) -> Option<Handle> {
        self.buckets.find(&self.table, hash, |table, handle| table.key(handle) == key)
    }

    /// How often it was counted.
    #[inline]
    pub(super) fn count(&self, ghost: Handle) -> u32 {
        self.table.tag(ghost)
    }

    /// Remember a block that is not in the queue as the most recent.
    pub(super) fn push_newest(&mut self, key: u64, count: u32) {
        let ghost = self.add(key, count);
        self.list.push_newest(&mut self.table, ghost);
    }

    /// Remember a block that is not in the queue as the next to be forgotten.
    pub(super) fn push_oldest(&mut self, key: u64, count: u32) {
        let ghost = self.add(key, count);
        self.list.push_oldest(&mut self.table, ghost);
    }

    /// A ghost was seen once more.
    pub(super) fn touch(&mut self, ghost: Handle) {
        *self.table.tag_mut(ghost) += 1;
        self.list.to_newest(&mut self.table, ghost);
    }

    /// Forget a block.
    pub(super) fn remove(&mut self, ghost: Handle) {
        self.list.remove(&mut self.table, ghost);
        self.buckets.remove(&mut self.table, ghost);
        self.unused.push_newest(&mut self.table, ghost);
    }

    /// Forget the least recent block, if there is one.
    pub(super) fn drop_oldest(&mut self) {
        if let Some(ghost) = self.list.oldest() {
            self.remove(ghost);
        }
    }

    /// Forget the least recent blocks above `limit`, but no more than `most`.
    pub(super) fn drop_above(&mut self, limit: u32, most: u32) {
        for _ in 0..self.len().saturating_sub(limit).min(most) {
            self.drop_oldest();
        }
    }

    /// The keys from the least to the most recent.
    pub(super) fn keys_oldest_first(&self) -> impl Iterator<Item = u64> {
        self.list.iter_oldest_first(&self.table).map(|ghost| self.table.key(ghost))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.table.0.memory_bytes()
    }

    fn add(&mut self, key: u64, count: u32) -> Handle {
        let ghost = Ghost { key, node: Node { tag: count, ..Node::NEW }, next: NONE };
        let handle = match self.unused.pop_oldest(&mut self.table) {
            Some(handle) => {
                self.table.0[handle as usize] = ghost;
                handle
            }
            None => {
                self.table.0.push(ghost);
                (self.table.0.len() - 1) as Handle
            }
        };
        self.buckets.insert(&mut self.table, handle);
        handle
    }
}
