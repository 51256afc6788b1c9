//! Least recently used: a doubly linked list from the most to the least recently used handle.
//!
//! Many lists (one per partition) share one arena of links ([`Links`]), so that a block's eight bytes of links exist once however
//! many partitions there are. A handle is on at most one list at a time; the caller keeps track of which.

use crate::Chunked;

/// The end of a list.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// The links of all handles: 8 bytes each.
#[derive(Debug, Default)]
pub struct Links {
    links: Chunked<Link>,
}

impl Links {
    /// An arena without handles.
    pub const fn new() -> Self {
        Self { links: Chunked::new() }
    }

    /// Make room for handles up to and including `handle`.
    pub fn grow_to(&mut self, handle: u32) {
        while self.links.len() <= handle as usize {
            self.links.push(Link { newer: NONE, older: NONE });
        }
    }

    /// The next more recently used handle.
    pub fn newer(&self, handle: u32) -> Option<u32> {
        some(self.links[handle as usize].newer)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.links.memory_bytes()
    }
}

fn some(handle: u32) -> Option<u32> {
    (handle != NONE).then_some(handle)
}

/// One LRU list over shared [`Links`].
#[derive(Clone, Copy, Debug)]
pub struct Lru {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Lru {
    /// An empty list.
    pub const fn new() -> Self {
        Self { newest: NONE, oldest: NONE, len: 0 }
    }

    /// Handles on the list.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True without handles.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least recently used handle: the first candidate to leave. Walk on with [`Links::newer`].
    pub fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    /// Put a handle that is on no list in front, as most recently used.
    pub fn insert(&mut self, links: &mut Links, handle: u32) {
        links.links[handle as usize] = Link { newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = handle,
            first => links.links[first as usize].newer = handle,
        }
        self.newest = handle;
        self.len += 1;
    }

    /// Put a handle that is on no list at the end, as the next to leave.
    pub fn insert_oldest(&mut self, links: &mut Links, handle: u32) {
        links.links[handle as usize] = Link { newer: self.oldest, older: NONE };
        match self.oldest {
            NONE => self.newest = handle,
            last => links.links[last as usize].older = handle,
        }
        self.oldest = handle;
        self.len += 1;
    }

    /// A handle on this list was used.
    pub fn touch(&mut self, links: &mut Links, handle: u32) {
        if self.newest != handle {
            self.remove(links, handle);
            self.insert(links, handle);
        }
    }

    /// Take a handle off this list.
    pub fn remove(&mut self, links: &mut Links, handle: u32) {
        let Link { newer, older } = links.links[handle as usize];
        match newer {
            NONE => self.newest = older,
            n => links.links[n as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            o => links.links[o as usize].newer = newer,
        }
        self.len -= 1;
    }

    /// The handles from the oldest to the newest.
    pub fn iter_oldest_first<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.oldest(), |&h| links.newer(h))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32),
        InsertOldest(u32),
        Touch(usize),
        Remove(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..64u32).prop_map(Op::Insert),
            (0..64u32).prop_map(Op::InsertOldest),
            any::<usize>().prop_map(Op::Touch),
            any::<usize>().prop_map(Op::Remove),
        ]
    }

    fn apply(op: &Op, links: &mut Links, lru: &mut Lru, model: &mut Vec<u32>) {
        match *op {
            Op::Insert(h) if !model.contains(&h) => {
                lru.insert(links, h);
                model.push(h);
            }
            Op::InsertOldest(h) if !model.contains(&h) => {
                lru.insert_oldest(links, h);
                model.insert(0, h);
            }
            Op::Touch(i) if !model.is_empty() => {
                let h = model.remove(i % model.len());
                lru.touch(links, h);
                model.push(h);
            }
            Op::Remove(i) if !model.is_empty() => lru.remove(links, model.remove(i % model.len())),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn equals_a_plain_vector(ops in prop::collection::vec(op(), 0..200)) {
            let (mut links, mut lru, mut model) = (Links::new(), Lru::new(), Vec::new());
            links.grow_to(63);
            for op in &ops {
                apply(op, &mut links, &mut lru, &mut model);
                prop_assert_eq!(lru.iter_oldest_first(&links).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(lru.len() as usize, model.len());
                prop_assert_eq!(lru.oldest(), model.first().copied());
            }
        }
    }
}
