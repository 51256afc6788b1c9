//! FIFO: the block that entered first leaves, however often it was used since.

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, Nodes};

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    list: List,
}

impl Fifo {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { list: List::new() }
    }
}

impl Replacement for Fifo {
    const HIT_MOVES: bool = false;

    #[inline]
    fn hit<N: Nodes>(&mut self, _nodes: &mut N, _handle: Handle) {}

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let handle = self.list.oldest_unpinned(nodes, PIN_REACH, pinned)?;
        self.list.remove(nodes, handle);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.list.push_newest(nodes, handle);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.list.remove(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename([&mut self.list], nodes, old, new);
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slow::{Model, compare, ops, played};
    use super::*;
    use crate::Node;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// The block that entered first is in front.
    #[derive(Clone, Default)]
    struct Queue(VecDeque<u64>);

    impl Model for Queue {
        fn residents(&self) -> Vec<u64> {
            self.0.iter().copied().collect()
        }

        fn hit(&mut self, _key: u64) {}

        fn insert(&mut self, key: u64) {
            self.0.push_back(key);
        }

        fn evict(&mut self) -> u64 {
            self.0.pop_front().expect("blocks are left")
        }

        fn remove(&mut self, key: u64) {
            self.0.retain(|&other| other != key);
        }
    }

    proptest! {
        #[test]
        fn equals_a_queue(ops in ops()) {
            compare(Fifo::new(), Queue::default(), &ops)?;
        }
    }

    #[test]
    fn use_spares_no_block() {
        // 1 and 2 are hit, and yet 1 leaves for 4, and 2 for 1; then 3 is hit, and leaves for 2.
        assert_eq!(played(Fifo::new(), 3, &[1, 2, 3, 1, 2, 4, 1, 3, 2]), "...++12+3");
    }

    #[test]
    fn a_pinned_block_is_passed_over_and_keeps_its_place() {
        let (mut nodes, mut fifo) = (vec![Node::NEW; 3], Fifo::new());
        (0..3).for_each(|handle| fifo.insert(&mut nodes, handle, false));
        assert_eq!(
            fifo.evict(&mut nodes, |_, handle| handle == 0),
            Some(Evicted { handle: 1, ghost: false })
        );
        assert_eq!(fifo.evict(&mut nodes, |_, _| true), None);
        assert_eq!(fifo.evict(&mut nodes, |_, _| false), Some(Evicted { handle: 0, ghost: false }));
        assert_eq!(fifo.resident(), 1);
    }
}
