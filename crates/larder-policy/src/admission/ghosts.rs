//! Blocks remembered without their data, from the most to the least recently seen, each with a count.

use crate::index::{Index, hash};
use crate::{Chunked, Handle, List, Node, Nodes};

#[derive(Clone, Copy, Debug)]
struct Ghost {
    key: u64,
    node: Node,
}

#[derive(Debug, Default)]
struct Table(Chunked<Ghost>);

impl Nodes for Table {
    #[inline]
    fn node(&self, handle: Handle) -> &Node {
        &self.0[handle as usize].node
    }

    #[inline]
    fn node_mut(&mut self, handle: Handle) -> &mut Node {
        &mut self.0[handle as usize].node
    }

    #[inline]
    fn key(&self, handle: Handle) -> u64 {
        self.0[handle as usize].key
    }
}

/// A queue of ghosts that are found by their key. Its user bounds it: the memory is that of the most ghosts it ever held, 24 bytes each and the index.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    index: Index,
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
        self.index.find(hash, |handle| self.table.key(handle) == key)
    }

    /// How often it was counted.
    #[inline]
    pub(super) fn count(&self, ghost: Handle) -> u32 {
        self.table.node(ghost).tag
    }

    /// Remember a block that is not in the queue as the most recent.
    pub(super) fn push_newest(&mut self, key: u64, hash: u32, count: u32) {
        let ghost = self.add(key, hash, count);
        self.list.push_newest(&mut self.table, ghost);
    }

    /// Remember a block that is not in the queue as the next to be forgotten.
    pub(super) fn push_oldest(&mut self, key: u64, hash: u32, count: u32) {
        let ghost = self.add(key, hash, count);
        self.list.push_oldest(&mut self.table, ghost);
    }

    /// A ghost was seen once more.
    pub(super) fn touch(&mut self, ghost: Handle) {
        self.table.node_mut(ghost).tag += 1;
        self.list.to_newest(&mut self.table, ghost);
    }

    /// Forget a block.
    pub(super) fn remove(&mut self, ghost: Handle, hash: u32) {
        self.list.remove(&mut self.table, ghost);
        self.index.remove(hash, ghost);
        self.unused.push_newest(&mut self.table, ghost);
    }

    /// Forget the least recent block, if there is one.
    pub(super) fn drop_oldest(&mut self) {
        if let Some(ghost) = self.list.oldest() {
            self.remove(ghost, hash(self.table.key(ghost)));
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
        self.index.memory_bytes() + self.table.0.memory_bytes()
    }

    fn add(&mut self, key: u64, hash: u32, count: u32) -> Handle {
        let ghost = Ghost { key, node: Node { tag: count, ..Node::NEW } };
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
        self.index.insert(hash, handle);
        handle
    }
}
