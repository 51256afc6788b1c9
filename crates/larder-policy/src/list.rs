//! A doubly linked list of blocks from the newest to the oldest, through the nodes of its user.
//!
//! A block is on at most one list at a time; the caller keeps track of which.

use crate::{Handle, Links, NONE, Nodes};

/// A list: three words; the links are in the nodes.
#[derive(Clone, Copy, Debug)]
pub struct List {
    newest: Handle,
    oldest: Handle,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

fn some(handle: Handle) -> Option<Handle> {
    (handle != NONE).then_some(handle)
}

impl List {
    /// An empty list.
    pub const fn new() -> Self {
        Self { newest: NONE, oldest: NONE, len: 0 }
    }

    /// Blocks on the list.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True without blocks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block that came first.
    #[inline]
    pub fn oldest(&self) -> Option<Handle> {
        some(self.oldest)
    }

    /// The block that came last.
    #[inline]
    pub fn newest(&self) -> Option<Handle> {
        some(self.newest)
    }

    /// Put a block that is on no list in front.
    #[inline]
    pub fn push_newest(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        let links = nodes.links_mut(handle);
        (links.newer, links.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = handle,
            first => nodes.links_mut(first).newer = handle,
        }
        self.newest = handle;
        self.len += 1;
    }

    /// Put a block that is on no list at the end.
    pub fn push_oldest(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        let links = nodes.links_mut(handle);
        (links.newer, links.older) = (self.oldest, NONE);
        match self.oldest {
            NONE => self.newest = handle,
            last => nodes.links_mut(last).older = handle,
        }
        self.oldest = handle;
        self.len += 1;
    }

    /// Move a block of this list to the front.
    #[inline]
    pub fn to_newest(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        if self.newest == handle {
            return;
        }
        let first = std::mem::replace(&mut self.newest, handle);
        let links = nodes.links_mut(handle);
        let (newer, older) = (links.newer, links.older);
        (links.newer, links.older) = (NONE, first);
        nodes.links_mut(newer).older = older;
        match older {
            NONE => self.oldest = newer,
            older => nodes.links_mut(older).newer = newer,
        }
        nodes.links_mut(first).newer = handle;
    }

    /// Take a block off this list.
    #[inline]
    pub fn remove(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        let links = *nodes.links(handle);
        match links.newer {
            NONE => self.newest = links.older,
            newer => nodes.links_mut(newer).older = links.older,
        }
        match links.older {
            NONE => self.oldest = links.newer,
            older => nodes.links_mut(older).newer = links.newer,
        }
        self.len -= 1;
    }

    /// A block of one of these lists has another handle now, and the node that it had: its neighbours and the ends of its list name it by that.
    #[inline]
    pub fn rename<'l>(
        lists: impl IntoIterator<Item = &'l mut Self>,
        nodes: &mut impl Nodes,
        old: Handle,
        new: Handle,
    ) {
        let Links { newer, older } = *nodes.links(new);
        if newer != NONE {
            nodes.links_mut(newer).older = new;
        }
        if older != NONE {
            nodes.links_mut(older).newer = new;
        }
        if newer == NONE || older == NONE {
            lists.into_iter().for_each(|list| list.rename_ends(old, new));
        }
    }

    fn rename_ends(&mut self, old: Handle, new: Handle) {
        for end in [&mut self.newest, &mut self.oldest] {
            if *end == old {
                *end = new;
            }
        }
    }

    /// Take the oldest block off.
    pub fn pop_oldest(&mut self, nodes: &mut impl Nodes) -> Option<Handle> {
        let oldest = self.oldest()?;
        self.remove(nodes, oldest);
        Some(oldest)
    }

    /// The next block towards the newest.
    #[inline]
    pub fn newer(nodes: &impl Nodes, handle: Handle) -> Option<Handle> {
        some(nodes.links(handle).newer)
    }

    /// The blocks from the oldest to the newest.
    pub fn iter_oldest_first<'a, N: Nodes>(&self, nodes: &'a N) -> impl Iterator<Item = Handle> + use<'a, N> {
        std::iter::successors(self.oldest(), move |&handle| Self::newer(nodes, handle))
    }

    /// The oldest block that is not pinned, among the first `reach` of them.
    #[inline]
    pub fn oldest_unpinned<N: Nodes>(
        &self,
        nodes: &N,
        reach: usize,
        pinned: impl Fn(&N, Handle) -> bool,
    ) -> Option<Handle> {
        self.iter_oldest_first(nodes).take(reach).find(|&handle| !pinned(nodes, handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        PushNewest(u32),
        PushOldest(u32),
        Touch(usize),
        Remove(usize),
        Pop,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..64u32).prop_map(Op::PushNewest),
            (0..64u32).prop_map(Op::PushOldest),
            any::<usize>().prop_map(Op::Touch),
            any::<usize>().prop_map(Op::Remove),
            Just(Op::Pop),
        ]
    }

    fn apply(op: &Op, nodes: &mut Vec<Node>, list: &mut List, model: &mut Vec<u32>) {
        match *op {
            Op::PushNewest(h) if !model.contains(&h) => {
                list.push_newest(nodes, h);
                model.push(h);
            }
            Op::PushOldest(h) if !model.contains(&h) => {
                list.push_oldest(nodes, h);
                model.insert(0, h);
            }
            Op::Touch(i) if !model.is_empty() => {
                let h = model.remove(i % model.len());
                list.to_newest(nodes, h);
                model.push(h);
            }
            Op::Remove(i) if !model.is_empty() => list.remove(nodes, model.remove(i % model.len())),
            Op::Pop => {
                let expected = (!model.is_empty()).then(|| model.remove(0));
                assert_eq!(list.pop_oldest(nodes), expected);
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn equals_a_plain_vector(ops in prop::collection::vec(op(), 0..200)) {
            let (mut nodes, mut list, mut model) = (vec![Node::NEW; 64], List::new(), Vec::new());
            for op in &ops {
                apply(op, &mut nodes, &mut list, &mut model);
                prop_assert_eq!(list.iter_oldest_first(&nodes).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(list.len() as usize, model.len());
                prop_assert_eq!((list.oldest(), list.newest()), (model.first().copied(), model.last().copied()));
            }
        }
    }

    #[test]
    fn the_search_for_an_unpinned_block_has_an_end() {
        let (mut nodes, mut list) = (vec![Node::NEW; 8], List::new());
        (0..8).for_each(|h| list.push_newest(&mut nodes, h));
        assert_eq!(list.oldest_unpinned(&nodes, 8, |_, h| h < 5), Some(5));
        assert_eq!(list.oldest_unpinned(&nodes, 5, |_, h| h < 5), None);
    }
}
