//! A set of positions in a trace that knows its last one: bits, and above each 64 of them a bit that says whether there is any, up to a single word.
//!
//! Finding, adding and removing touch at most one word per level: four levels for 16 million positions.

/// The set.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    /// From the bits of the positions to the single word at the top.
    levels: Vec<Vec<u64>>,
}

impl Positions {
    /// An empty set of positions below `len`.
    pub(super) fn new(len: usize) -> Self {
        let mut levels = vec![vec![0; len.div_ceil(64).max(1)]];
        while let Some(words) = levels.last().map(Vec::len).filter(|&words| words > 1) {
            levels.push(vec![0; words.div_ceil(64)]);
        }
        Self { levels }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.levels.iter().map(|words| words.capacity() * size_of::<u64>()).sum()
    }

    /// Add a position; false if it was in the set.
    #[inline]
    pub(super) fn insert(&mut self, position: u32) -> bool {
        let mut at = position as usize;
        for (level, words) in self.levels.iter_mut().enumerate() {
            let word = &mut words[at / 64];
            let before = *word;
            *word |= 1 << (at % 64);
            if before != 0 {
                return level > 0 || *word != before;
            }
            at /= 64;
        }
        true
    }

    /// Take out a position.
    #[inline]
    pub(super) fn remove(&mut self, position: u32) {
        let mut at = position as usize;
        for words in &mut self.levels {
            let word = &mut words[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The last position.
    #[inline]
    pub(super) fn last(&self) -> Option<u32> {
        let top = self.levels.last()?;
        (top[0] != 0).then(|| self.last_below(self.levels.len(), 0))
    }

    /// The last position before another.
    pub(super) fn before(&self, position: u32) -> Option<u32> {
        let mut at = position as usize;
        for (level, words) in self.levels.iter().enumerate() {
            let earlier = words[at / 64] & ((1 << (at % 64)) - 1);
            at /= 64;
            if earlier != 0 {
                return Some(self.last_below(level, at * 64 + earlier.ilog2() as usize));
            }
        }
        None
    }

    /// The last position that bit `at` of a level stands for; in the levels below it there is one.
    #[inline]
    fn last_below(&self, level: usize, at: usize) -> u32 {
        let down = self.levels[..level].iter().rev();
        down.fold(at, |at, words| at * 64 + words[at].ilog2() as usize) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_an_ordered_set(
            len in prop::sample::select(vec![1usize, 63, 64, 65, 4096, 4097, 300_000]),
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..150),
        ) {
            let (mut positions, mut model) = (Positions::new(len), BTreeSet::new());
            for (at, add) in steps {
                let at = at.index(len) as u32;
                if add {
                    prop_assert_eq!(positions.insert(at), model.insert(at));
                } else if model.remove(&at) {
                    positions.remove(at);
                }
                prop_assert_eq!(positions.last(), model.last().copied());
                prop_assert_eq!(positions.before(at), model.range(..at).next_back().copied());
            }
        }
    }

    #[test]
    fn an_empty_set_has_no_last_position() {
        assert_eq!(Positions::new(0).last(), None);
        assert_eq!(Positions::new(100).before(50), None);
    }
}
