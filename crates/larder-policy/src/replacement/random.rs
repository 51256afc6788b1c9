//! Random replacement: any block may leave, each as likely as the others. The yardstick below which a policy is of no use.

use super::{Evicted, PIN_REACH, Replacement};
use crate::random::Rng;
use crate::{Chunked, Handle, Nodes};

/// Random replacement, seeded. A block's tag is its place in the table of residents.
#[derive(Clone, Debug)]
pub struct Random {
    residents: Chunked<Handle>,
    rng: Rng,
}

impl Random {
    /// An empty policy; the same seed evicts the same blocks.
    pub const fn new(seed: u64) -> Self {
        Self { residents: Chunked::new(), rng: Rng::new(seed) }
    }
}

impl Replacement for Random {
    const HIT_MOVES: bool = false;

    #[inline]
    fn hit<N: Nodes>(&mut self, _nodes: &mut N, _handle: Handle) {}

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let count = self.residents.len();
        if count == 0 {
            return None;
        }
        let first = self.rng.below(count as u64) as usize;
        let mut candidates = (0..count.min(PIN_REACH)).map(|step| self.residents[(first + step) % count]);
        let handle = candidates.find(|&handle| !pinned(nodes, handle))?;
        self.remove(nodes, handle, false);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        *nodes.tag_mut(handle) = self.residents.len() as u32;
        self.residents.push(handle);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let place = nodes.tag(handle) as usize;
        let Some(last) = self.residents.pop() else { return };
        if last != handle {
            self.residents[place] = last;
            *nodes.tag_mut(last) = place as u32;
        }
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, _old: Handle, new: Handle) {
        self.residents[nodes.tag(new) as usize] = new;
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.residents.len() as u32
    }

    fn memory_bytes(&self) -> usize {
        self.residents.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slow::{Model, compare, ops};
    use super::*;
    use crate::{Cache, Node};
    use proptest::proptest;

    /// Blocks at numbered places; the last one takes the place of one that leaves.
    #[derive(Clone)]
    struct Places {
        blocks: Vec<u64>,
        rng: Rng,
    }

    impl Model for Places {
        fn residents(&self) -> Vec<u64> {
            self.blocks.clone()
        }

        fn hit(&mut self, _key: u64) {}

        fn insert(&mut self, key: u64) {
            self.blocks.push(key);
        }

        fn evict(&mut self) -> u64 {
            let place = self.rng.below(self.blocks.len() as u64) as usize;
            self.blocks.swap_remove(place)
        }

        fn remove(&mut self, key: u64) {
            let place = self.blocks.iter().position(|&other| other == key).expect("it is resident");
            self.blocks.swap_remove(place);
        }
    }

    proptest! {
        #[test]
        fn places_stay_right(ops in ops(), seed: u64) {
            compare(Random::new(seed), Places { blocks: Vec::new(), rng: Rng::new(seed) }, &ops)?;
        }
    }

    #[test]
    fn each_block_is_as_likely_to_leave() {
        let mut left = [0u32; 10];
        for seed in 0..10_000 {
            let mut cache = Cache::new(10, Random::new(seed));
            (0..10).for_each(|key| assert!(!cache.access(key)));
            cache.resize(9, |key, _| left[key as usize] += 1);
        }
        // Four standard deviations of 10,000 lots at one tenth are 120.
        assert!(left.iter().all(|&count| (880..=1120).contains(&count)), "{left:?}");
    }

    #[test]
    fn pinned_blocks_stay() {
        let (mut nodes, mut random) = (vec![Node::NEW; 8], Random::new(1));
        (0..8).for_each(|handle| random.insert(&mut nodes, handle, false));
        assert_eq!(random.evict(&mut nodes, |_, _| true), None);
        assert_eq!(
            random.evict(&mut nodes, |_, handle| handle != 5),
            Some(Evicted { handle: 5, ghost: false })
        );
        assert_eq!(random.evict(&mut nodes, |_, handle| handle != 5), None);
        assert_eq!(random.resident(), 7);
    }
}
