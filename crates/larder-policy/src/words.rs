//! What a policy keeps per block beyond the node: a word, at a *place* that the block's tag names.
//!
//! Not an array indexed by handle: the policies of a live cache share its handles, and each of them would have memory for the blocks of all.

use crate::Chunked;

/// Where a block's word is.
pub(crate) type Place = u32;

/// Words at dense places. Memory is that of the most words that there ever were, 8 bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    words: Chunked<u64>,
    /// One more than the place that is to be used again next, whose word has the one after it in the same way; 0 for none.
    unused: u64,
}

impl Words {
    pub(crate) const fn new() -> Self {
        Self { words: Chunked::new(), unused: 0 }
    }

    /// A place for another word.
    #[inline]
    pub(crate) fn add(&mut self, word: u64) -> Place {
        let Some(place) = self.unused.checked_sub(1) else {
            self.words.push(word);
            return (self.words.len() - 1) as Place;
        };
        self.unused = std::mem::replace(&mut self.words[place as usize], word);
        place as Place
    }

    /// The word at a place is not needed any more.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place) {
        self.words[place as usize] = std::mem::replace(&mut self.unused, u64::from(place) + 1);
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> u64 {
        self.words[place as usize]
    }

    #[inline]
    pub(crate) fn set(&mut self, place: Place, word: u64) {
        self.words[place as usize] = word;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn each_word_has_a_place_of_its_own_and_places_are_dense(
            ops in prop::collection::vec((any::<u64>(), any::<prop::sample::Index>(), 0..3), 0..200),
        ) {
            let (mut words, mut model, mut most) = (Words::new(), BTreeMap::new(), 0);
            for (word, at, action) in ops {
                let place = (!model.is_empty()).then(|| *at.get(&model.keys().copied().collect::<Vec<_>>()));
                match (action, place) {
                    (0, Some(place)) => {
                        words.remove(place);
                        model.remove(&place);
                    }
                    (1, Some(place)) => {
                        words.set(place, word);
                        model.insert(place, word);
                    }
                    _ => prop_assert_eq!(model.insert(words.add(word), word), None),
                }
                most = most.max(model.len());
                prop_assert!(words.words.len() <= most);
                prop_assert!(model.iter().all(|(&place, &word)| words.get(place) == word));
            }
        }
    }
}
