//! CLOCK with a counter: a hand goes round the blocks, takes one off the counter of each used block, and evicts the first whose counter is zero.
//!
//! Corbató: "A Paging Experiment with the Multics System", 1968 (one bit). S-CAVE (Luo et al.: "S-CAVE: Effective SSD Caching to Improve Virtual Machine Storage
//! Performance", PACT 2013, sections III, IV-B and V-D) has a CLOCK per virtual machine, whose blocks count their hits in four bits; that is the default here: a block
//! used often survives up to fifteen rounds. New blocks enter behind the hand, with a counter of zero. What the hand does to a counter the paper does not
//! say: here, as in libCacheSim, it takes one off. Differences from libCacheSim: none known.
//!
//! In a live cache, one eviction spares a limited number of blocks ([`Clock::sparing`]).

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Handle, Links, NONE, Nodes};

/// Bits of the counter in S-CAVE.
pub const COUNTER_BITS: u32 = 4;

/// The policy CLOCK. A block's tag is its counter; its links close a ring.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The block that is looked at next; [`NONE`] in an empty ring.
    hand: Handle,
    len: u32,
    counter_max: u32,
    spared_max: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(COUNTER_BITS)
    }
}

impl Clock {
    /// An empty policy with counters of `bits` bits.
    ///
    /// # Panics
    /// If `bits` is not in 1..=16.
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 16);
        Self { hand: NONE, len: 0, counter_max: (1 << bits) - 1, spared_max: u64::MAX }
    }

    /// The same with a limit to the blocks that one eviction spares: the next one leaves, used or not (see [`super::SPARED_MAX`]).
    pub const fn sparing(self, spared_max: u64) -> Self {
        Self { spared_max, ..self }
    }

    fn unlink<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let Links { newer, older } = *nodes.links(handle);
        nodes.links_mut(newer).older = older;
        nodes.links_mut(older).newer = newer;
        self.len -= 1;
        if self.hand == handle {
            self.hand = if self.len == 0 { NONE } else { newer };
        }
    }
}

impl Replacement for Clock {
    const HIT_MOVES: bool = false;

    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let counter = nodes.tag_mut(handle);
        *counter = (*counter + 1).min(self.counter_max);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        // In each round a pinned block is met once more. Each step takes one from a counter or from the reach, so there is an end.
        let (mut spared, mut reach) = (0, PIN_REACH as u64 * (u64::from(self.counter_max) + 1));
        while self.len > 0 && reach > 0 {
            let handle = self.hand;
            let counter = nodes.tag_mut(handle);
            if *counter > 0 && spared < self.spared_max {
                *counter -= 1;
                spared += 1;
            } else if !pinned(nodes, handle) {
                self.unlink(nodes, handle);
                return Some(Evicted { handle, ghost: false });
            } else {
                reach -= 1;
            }
            self.hand = nodes.links(handle).newer;
        }
        None
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let (older, newer) = match self.hand {
            NONE => (handle, handle),
            hand => (nodes.links(hand).older, hand),
        };
        *nodes.links_mut(handle) = Links { newer, older };
        *nodes.tag_mut(handle) = 0;
        if self.hand == NONE {
            self.hand = handle;
        } else {
            nodes.links_mut(older).newer = handle;
            nodes.links_mut(newer).older = handle;
        }
        self.len += 1;
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        self.unlink(nodes, handle);
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        match *nodes.links(new) {
            // Alone in the ring.
            Links { newer, .. } if newer == old => *nodes.links_mut(new) = Links { newer: new, older: new },
            Links { newer, older } => {
                nodes.links_mut(newer).older = new;
                nodes.links_mut(older).newer = new;
            }
        }
        if self.hand == old {
            self.hand = new;
        }
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::super::slow::{Model, compare, ops, played};
    use super::*;
    use crate::Node;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// CLOCK as a queue of second chances: the block at the hand is in front, and goes to the back if its counter is above zero.
    #[derive(Clone)]
    struct Chances {
        max: u32,
        queue: VecDeque<(u64, u32)>,
    }

    impl Chances {
        fn new(bits: u32) -> Self {
            Self { max: 2u32.pow(bits) - 1, queue: VecDeque::new() }
        }
    }

    impl Model for Chances {
        fn residents(&self) -> Vec<u64> {
            self.queue.iter().map(|&(key, _)| key).collect()
        }

        fn hit(&mut self, key: u64) {
            let (_, count) = self.queue.iter_mut().find(|(other, _)| *other == key).expect("it is resident");
            *count = (*count + 1).min(self.max);
        }

        fn insert(&mut self, key: u64) {
            self.queue.push_back((key, 0));
        }

        fn evict(&mut self) -> u64 {
            loop {
                match self.queue.pop_front().expect("blocks are left") {
                    (key, 0) => return key,
                    (key, count) => self.queue.push_back((key, count - 1)),
                }
            }
        }

        fn remove(&mut self, key: u64) {
            self.queue.retain(|&(other, _)| other != key);
        }
    }

    proptest! {
        #[test]
        fn equals_a_queue_of_chances(ops in ops(), bits in 1..5u32) {
            compare(Clock::new(bits), Chances::new(bits), &ops)?;
        }
    }

    #[test]
    fn one_bit_gives_one_more_round() {
        // From the hand on, with bits: 1' 2' 3. 4 takes the bits and leaves 1 2 4; 5 enters for 1: 2 4 5; 1 for 2: 4 5 1; 4 is hit.
        assert_eq!(played(Clock::new(1), 3, &[1, 2, 3, 1, 1, 2, 4, 5, 1, 4]), "...+++312+");
    }

    #[test]
    fn four_bits_count_the_uses() {
        // From the hand on, with counters: 1:2 2:1 3:0. 4 takes one off 1 and 2, and leaves 1:1 2:0 4:0; 5 takes one off 1, and leaves 4:0 1:0 5:0.
        // 1 is hit; 6 enters for 4: 1:1 5:0 6:0; 7 takes one off 1, and enters for 5.
        assert_eq!(played(Clock::default(), 3, &[1, 2, 3, 1, 1, 2, 4, 5, 1, 6, 7]), "...+++32+45");
    }

    #[test]
    fn a_counter_ends_at_its_maximum() {
        let uses: Vec<u64> = [1, 2].into_iter().chain([1; 40]).collect();
        // 2 leaves at once; then each new block leaves for the next one, and takes one off the counter of 1, which 15 rounds use up.
        let after: Vec<u64> = (3..21).collect();
        let told = played(Clock::default(), 2, &[uses, after].concat());
        let left: Vec<u64> = (2..17).chain([1]).collect();
        let expected = left.iter().map(u64::to_string).collect::<String>();
        assert!(told[42..].starts_with(&expected), "{}", &told[42..]);
    }

    #[test]
    fn a_limit_to_the_spared_makes_a_used_block_leave() {
        let (mut nodes, mut clock) = (vec![Node::NEW; 4], Clock::new(4).sparing(2));
        (0..4).for_each(|handle| clock.insert(&mut nodes, handle, false));
        (0..4).for_each(|handle| (0..3).for_each(|_| clock.hit(&mut nodes, handle)));
        // 0 and 1 are spared, and the hand goes on from there the next time.
        assert_eq!(clock.evict(&mut nodes, |_, h| h == 2), Some(Evicted { handle: 3, ghost: false }));
        assert_eq!(nodes.iter().map(|node| node.tag).collect::<Vec<_>>(), [2, 2, 3, 3]);
        assert_eq!(clock.evict(&mut nodes, |_, _| false).map(|out| out.handle), Some(2));
        assert_eq!(clock.evict(&mut nodes, |_, _| true), None);
    }

    #[test]
    fn the_search_among_pinned_blocks_has_an_end() {
        let count = 3 * PIN_REACH as Handle;
        let (mut nodes, mut clock) = (vec![Node::NEW; count as usize], Clock::new(1));
        (0..count).for_each(|handle| clock.insert(&mut nodes, handle, false));
        let asked = std::cell::Cell::new(0);
        let all = |_: &Vec<Node>, _: Handle| {
            asked.set(asked.get() + 1);
            true
        };
        assert_eq!((clock.evict(&mut nodes, all), asked.get()), (None, 2 * PIN_REACH));
    }

    #[test]
    fn with_all_blocks_pinned_the_search_ends() {
        let (mut nodes, mut clock) = (vec![Node::NEW; 3], Clock::new(2));
        (0..3).for_each(|handle| clock.insert(&mut nodes, handle, false));
        (0..3).for_each(|_| clock.hit(&mut nodes, 1));
        assert_eq!(clock.evict(&mut nodes, |_, _| true), None);
        assert_eq!(
            clock.evict(&mut nodes, |_, handle| handle != 1),
            Some(Evicted { handle: 1, ghost: false })
        );
        assert_eq!(clock.resident(), 2);
    }
}
