//! Whether what was recovered can be: every block once, or in ordered write-back once in an epoch; of a volume that exists, within its end.

use super::super::epoch::Epoch;
use super::super::finding::{Finding, Findings};
use super::super::page::Word;
use super::Recovered;
use std::collections::{BTreeMap, BTreeSet};

/// Bits of the filter for each slot.
const FILTER_BITS: usize = 8;

/// Slots whose bits of a filter are fetched at once: they lie anywhere in it.
const AT_ONCE: usize = 64;

/// Drop and report what contradicts itself.
pub(super) fn run(recovered: &mut Recovered, findings: &mut Findings) {
    let repeated = repeated(&recovered.words);
    let twice = contradictory(recovered, &repeated);
    let mut known: Option<(u16, Option<u64>)> = None;
    for at in 0..recovered.words.len() {
        let word = Word(recovered.words[at]);
        if !word.is_used() {
            continue;
        }
        let (block, dirty) = recovered.contents(at);
        let slot = at as u32;
        // Neighbouring slots are mostly of one volume.
        let blocks = match known {
            Some((volume, blocks)) if volume == block.volume => blocks,
            _ => recovered.volume_blocks(block.volume),
        };
        known = Some((block.volume, blocks));
        let finding = match blocks {
            None => Some(Finding::NoSuchVolume { block, slot, dirty }),
            Some(blocks) if block.block >= blocks => Some(Finding::BeyondEnd { block, slot, dirty }),
            Some(_) if !twice.is_empty() && twice.contains(&word.key()) => {
                Some(Finding::Duplicate { block, slot, dirty })
            }
            Some(_) => None,
        };
        if let Some(finding) = finding {
            findings.push(finding);
            recovered.words[at] = word.dropped().0;
        }
    }
}

/// Of the blocks that are in several slots, those that may not be: versions of a dirty block are of different epochs. (One may be of none: it is older than the
/// volume's order, or was lost.)
fn contradictory(recovered: &mut Recovered, repeated: &BTreeSet<u64>) -> BTreeSet<u64> {
    let mut wrong = BTreeSet::new();
    let mut epochs: BTreeMap<u64, BTreeSet<Epoch>> = BTreeMap::new();
    if repeated.is_empty() {
        return wrong;
    }
    for (slot, word) in (0..).zip(recovered.words.iter().map(|&word| Word(word))) {
        if word.is_used() && repeated.contains(&word.key()) {
            let epoch = *recovered.epochs.entry(slot).or_default();
            if !word.is_dirty() || !epochs.entry(word.key()).or_default().insert(epoch) {
                wrong.insert(word.key());
            }
        }
    }
    wrong
}

/// The blocks that are in several slots.
///
/// A filter of one bit per hash finds those that may be: every second use of a bit. Then the same with the bits of
/// those: what is left is a small part of all, and is sorted.
fn repeated(words: &[u64]) -> BTreeSet<u64> {
    let mut seen = Filter::new(words.len());
    let mut second = Filter::new(words.len());
    for some in words.chunks(AT_ONCE) {
        seen.fetch(used_keys(some));
        for key in used_keys(some) {
            if !seen.insert(key) {
                second.insert(key);
            }
        }
    }
    let mut candidates = Vec::new();
    for some in words.chunks(AT_ONCE) {
        second.fetch(used_keys(some));
        candidates.extend(used_keys(some).filter(|&key| second.contains(key)));
    }
    candidates.sort_unstable();
    candidates.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

/// The blocks of slots that are in use.
fn used_keys(words: &[u64]) -> impl Iterator<Item = u64> {
    words.iter().map(|&word| Word(word)).filter(|word| word.is_used()).map(Word::key)
}

struct Filter {
    bits: Vec<u64>,
}

impl Filter {
    fn new(slots: usize) -> Self {
        Self { bits: vec![0; (slots * FILTER_BITS).div_ceil(64).max(1)] }
    }

    /// The bits of these are about to be looked at.
    fn fetch(&self, keys: impl Iterator<Item = u64>) {
        std::hint::black_box(keys.fold(0, |all, key| all ^ self.bits[self.place(key).0]));
    }

    /// False if the bit was set.
    fn insert(&mut self, key: u64) -> bool {
        let (at, bit) = self.place(key);
        let was_set = self.bits[at] & bit != 0;
        self.bits[at] |= bit;
        !was_set
    }

    fn contains(&self, key: u64) -> bool {
        let (at, bit) = self.place(key);
        self.bits[at] & bit != 0
    }

    /// Fibonacci hashing: the high bits of a product spread over the filter.
    fn place(&self, key: u64) -> (usize, u64) {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = ((u128::from(hash) * self.bits.len() as u128) >> 64) as usize;
        (at, 1 << (hash & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::BlockId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn repeated_blocks_are_found_as_by_counting(blocks in prop::collection::vec(0u64..200, 0..150)) {
            let word = |&block: &u64| Word::mapped(BlockId { volume: (block % 3) as u16, block }, block % 2 == 0).0;
            let words: Vec<_> = blocks.iter().map(word).chain([0, 0]).collect();
            let mut counts = BTreeMap::new();
            blocks.iter().for_each(|block| *counts.entry(*block).or_insert(0) += 1);
            let counted = counts.into_iter().filter(|one| one.1 > 1).map(|(block, _)| Word(word(&block)).key());
            prop_assert_eq!(repeated(&words), counted.collect());
        }
    }
}
