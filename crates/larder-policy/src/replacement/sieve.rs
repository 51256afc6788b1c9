//! SIEVE: a FIFO queue over which a hand moves from the oldest to the newest, gives each used block one more round in place, and evicts the first unused one.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for Web Caches", NSDI 2024, Algorithm 1.
//! Unlike CLOCK, a block that was spared stays where it is, and new blocks enter at the head, before the hand. Differences from libCacheSim: none known.
//!
//! In a live cache, one eviction spares a limited number of blocks ([`Sieve::sparing`]).

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, List, NONE, Nodes};

const USED: u32 = 1;

/// The policy SIEVE. A block's tag is 1 if it was used since the hand last passed it.
#[derive(Clone, Debug)]
pub struct Sieve {
    list: List,
    /// Where the next search begins; [`NONE`] for the oldest.
    hand: Handle,
    spared_max: u64,
}

impl Default for Sieve {
    fn default() -> Self {
        Self::new()
    }
}

impl Sieve {
    /// An empty policy.
    pub const fn new() -> Self {
        Self { list: List::new(), hand: NONE, spared_max: u64::MAX }
    }

    /// The same with a limit to the blocks that one eviction spares: the next one leaves, used or not (see [`super::SPARED_MAX`]).
    pub const fn sparing(self, spared_max: u64) -> Self {
        Self { spared_max, ..self }
    }

    fn take<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if self.hand == handle {
            self.hand = nodes.links(handle).newer;
        }
        self.list.remove(nodes, handle);
    }
}

impl Replacement for Sieve {
    const HIT_MOVES: bool = false;

    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        *nodes.tag_mut(handle) = USED;
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let oldest = self.list.oldest()?;
        let mut at = if self.hand == NONE { oldest } else { self.hand };
        // A pinned block is met once more in a second round. Each step takes a mark or one from the reach, so there is an end.
        let (mut spared, mut reach) = (0, 2 * PIN_REACH);
        while reach > 0 {
            let newer = List::newer(nodes, at).unwrap_or(oldest);
            if nodes.tag(at) == USED && spared < self.spared_max {
                *nodes.tag_mut(at) = 0;
                spared += 1;
            } else if !pinned(nodes, at) {
                self.hand = at;
                self.take(nodes, at);
                return Some(Evicted { handle: at, ghost: false });
            } else {
                reach -= 1;
            }
            at = newer;
        }
        // What was spared is not looked at again before the others.
        self.hand = at;
        None
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        *nodes.tag_mut(handle) = 0;
        self.list.push_newest(nodes, handle);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.take(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename([&mut self.list], nodes, old, new);
        if self.hand == old {
            self.hand = new;
        }
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

    /// Algorithm 1 over a vector: the head, where blocks enter, at index 0; the hand is the block it points to.
    #[derive(Clone, Default)]
    struct Queue {
        blocks: Vec<(u64, bool)>,
        hand: Option<u64>,
    }

    impl Queue {
        fn place(&self, key: u64) -> usize {
            self.blocks.iter().position(|&(other, _)| other == key).expect("it is resident")
        }

        /// The block before it, towards the head.
        fn before(&self, place: usize) -> Option<u64> {
            place.checked_sub(1).map(|place| self.blocks[place].0)
        }
    }

    impl Model for Queue {
        fn residents(&self) -> Vec<u64> {
            self.blocks.iter().map(|&(key, _)| key).collect()
        }

        fn hit(&mut self, key: u64) {
            let place = self.place(key);
            self.blocks[place].1 = true;
        }

        fn insert(&mut self, key: u64) {
            self.blocks.insert(0, (key, false));
        }

        fn evict(&mut self) -> u64 {
            let tail = self.blocks.last().expect("it is resident").0;
            let mut o = self.hand.unwrap_or(tail);
            while self.blocks[self.place(o)].1 {
                let place = self.place(o);
                self.blocks[place].1 = false;
                o = self.before(place).unwrap_or(tail);
            }
            self.hand = self.before(self.place(o));
            self.blocks.remove(self.place(o));
            o
        }

        fn remove(&mut self, key: u64) {
            let place = self.place(key);
            if self.hand == Some(key) {
                self.hand = self.before(place);
            }
            self.blocks.remove(place);
        }
    }

    proptest! {
        #[test]
        fn equals_the_papers_algorithm(ops in ops()) {
            compare(Sieve::new(), Queue::default(), &ops)?;
        }
    }

    #[test]
    fn a_used_block_keeps_its_place_and_the_hand_goes_on_from_where_it_was() {
        // Oldest first: 1' 2 3. 4: past 1, for 2, hand at 3. 5: for 3, hand at 4: 1 4 5. 6: for 4, hand at 5: 1 5 6. 1 hit: 1' 5 6.
        // 7: for 5, hand at 6: 1' 6 7. 8: for 6: 1' 7 8.
        assert_eq!(played(Sieve::new(), 3, &[1, 2, 3, 1, 4, 5, 6, 1, 7, 8]), "...+234+56");
    }

    #[test]
    fn the_hand_wraps_from_the_newest_to_the_oldest() {
        // 1' 2' 3': the hand takes every mark, begins again, and 4 enters for 1. 5 for 2, hand at 3: 3 4 5. 3 is hit; 2 takes its mark, and enters for 4.
        assert_eq!(played(Sieve::new(), 3, &[1, 2, 3, 1, 2, 3, 4, 5, 3, 2]), "...+++12+4");
    }

    #[test]
    fn a_limit_to_the_spared_makes_a_used_block_leave() {
        let (mut nodes, mut sieve) = (vec![Node::NEW; 4], Sieve::new().sparing(2));
        (0..4).for_each(|handle| sieve.insert(&mut nodes, handle, false));
        (0..4).for_each(|handle| sieve.hit(&mut nodes, handle));
        assert_eq!(sieve.evict(&mut nodes, |_, h| h == 2), Some(Evicted { handle: 3, ghost: false }));
        assert_eq!(nodes[..3].iter().map(|node| node.tag).collect::<Vec<_>>(), [0, 0, 1]);
        // The hand went on to the oldest.
        assert_eq!(sieve.evict(&mut nodes, |_, _| false).map(|out| out.handle), Some(0));
    }

    #[test]
    fn where_all_within_reach_are_pinned_the_next_search_begins_behind_them() {
        let count = 3 * PIN_REACH as Handle;
        let (mut nodes, mut sieve) = (vec![Node::NEW; count as usize], Sieve::new());
        (0..count).for_each(|handle| sieve.insert(&mut nodes, handle, false));
        let reach = 2 * PIN_REACH as Handle;
        assert_eq!(sieve.evict(&mut nodes, |_, handle| handle <= reach), None);
        assert_eq!(
            sieve.evict(&mut nodes, |_, handle| handle <= reach).map(|out| out.handle),
            Some(reach + 1)
        );
    }

    #[test]
    fn with_all_blocks_pinned_the_search_ends() {
        let (mut nodes, mut sieve) = (vec![Node::NEW; 3], Sieve::new());
        (0..3).for_each(|handle| sieve.insert(&mut nodes, handle, false));
        sieve.hit(&mut nodes, 1);
        assert_eq!(sieve.evict(&mut nodes, |_, _| true), None);
        assert_eq!(
            sieve.evict(&mut nodes, |_, handle| handle != 1),
            Some(Evicted { handle: 1, ghost: false })
        );
        assert_eq!(sieve.resident(), 2);
    }
}
