//! The numbering of blocks: dense numbers in the order in which blocks first appear.
//!
//! A hash table by linear probing, with the key and the number side by side in 12 bytes: a look-up costs one cache line or
//! two. It grows by half when four fifths of its places are taken: 15 to 23 bytes a block, and both tables for the moment of
//! growth.

use larder_policy::Rng;

use crate::BlockId;
use crate::lane::NEVER;

/// Blocks that can be numbered at most: 2 TiB of 4 KiB blocks.
pub const MAX_BLOCKS: u32 = 1 << 29;

const PLACES_MIN: usize = 64;

/// Keys whose places are read together before they are looked up: the processor overlaps reads that do not depend on each
/// other.
const AHEAD: usize = 32;

/// There are more than [`MAX_BLOCKS`] distinct blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_BLOCKS} distinct blocks")]
pub struct TooManyBlocks;

/// Blocks by their keys of 64 bits, any of which may occur.
#[derive(Clone, Debug)]
pub struct Blocks {
    places: Vec<Place>,
    len: u32,
    /// An offset and a multiplier: without knowing them a guest, which chooses its blocks, cannot make their keys collide.
    seed: (u64, u64),
}

/// A place of the table; free where the block is [`NEVER`]. The key is in two halves to keep the place at 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    low: u32,
    high: u32,
    block: BlockId,
}

const FREE: Place = Place { low: 0, high: 0, block: NEVER };

impl Place {
    fn new(key: u64, block: BlockId) -> Self {
        Self { low: key as u32, high: (key >> 32) as u32, block }
    }

    fn key(self) -> u64 {
        u64::from(self.low) | u64::from(self.high) << 32
    }

    fn is_free(self) -> bool {
        self.block == NEVER
    }
}

impl Blocks {
    /// No blocks yet. The numbers do not depend on the seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let seed = (rng.next_u64(), rng.next_u64() | 1);
        Self { places: vec![FREE; PLACES_MIN], len: 0, seed }
    }

    /// Blocks numbered so far.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True without blocks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of a block: the next one, if it was not numbered yet.
    ///
    /// # Errors
    /// It is new, and there are [`MAX_BLOCKS`] already.
    pub fn number(&mut self, key: u64) -> Result<BlockId, TooManyBlocks> {
        self.number_from(self.home(key), key)
    }

    /// The number of a block, if it has one.
    pub fn find(&self, key: u64) -> Option<BlockId> {
        let place = self.places[self.search(self.home(key), key)];
        (!place.is_free()).then_some(place.block)
    }

    /// Append the numbers of blocks to `numbers`, as [`Blocks::number`] gives them, but faster than one by one.
    ///
    /// # Errors
    /// As for [`Blocks::number`]; those before the block that fails are numbered and appended.
    pub fn number_all(&mut self, keys: &[u64], numbers: &mut Vec<BlockId>) -> Result<(), TooManyBlocks> {
        numbers.reserve(keys.len());
        let mut homes = [0; AHEAD];
        for keys in keys.chunks(AHEAD) {
            let mut near = 0;
            for (home, &key) in homes.iter_mut().zip(keys) {
                *home = self.home(key);
                near ^= self.places[*home].block;
            }
            std::hint::black_box(near);
            let places = self.places.len();
            for (&home, &key) in homes.iter().zip(keys) {
                // The table may have grown under way.
                let home = if self.places.len() == places { home } else { self.home(key) };
                numbers.push(self.number_from(home, key)?);
            }
        }
        Ok(())
    }

    /// Forget all blocks but those that `keep` wants, told by key and number in no particular order; the others are numbered
    /// anew, in the order of their old numbers. Returns the new numbers by the old ones, [`NEVER`] for blocks forgotten.
    pub fn retain(&mut self, mut keep: impl FnMut(u64, BlockId) -> bool) -> Vec<BlockId> {
        let mut renumbered = vec![NEVER; self.len as usize];
        for place in self.places.iter().filter(|place| !place.is_free()) {
            if keep(place.key(), place.block) {
                renumbered[place.block as usize] = 0;
            }
        }
        self.len = 0;
        for block in renumbered.iter_mut().filter(|block| **block != NEVER) {
            *block = self.len;
            self.len += 1;
        }
        for place in self.places.iter_mut().filter(|place| !place.is_free()) {
            place.block = renumbered[place.block as usize];
        }
        self.rewrite(places_for(self.len as usize));
        renumbered
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }

    #[inline]
    fn number_from(&mut self, home: usize, key: u64) -> Result<BlockId, TooManyBlocks> {
        let at = self.search(home, key);
        match self.places[at] {
            place if place.is_free() => self.add(at, key),
            place => Ok(place.block),
        }
    }

    fn add(&mut self, at: usize, key: u64) -> Result<BlockId, TooManyBlocks> {
        if self.len == MAX_BLOCKS {
            return Err(TooManyBlocks);
        }
        let block = self.len;
        self.places[at] = Place::new(key, block);
        self.len += 1;
        if self.len as usize > self.places.len() / 5 * 4 {
            self.rewrite(self.places.len() / 2 * 3);
        }
        Ok(block)
    }

    /// The place that holds the key, or the free one where it belongs.
    #[inline]
    fn search(&self, home: usize, key: u64) -> usize {
        let mut at = home;
        // Ends: a fifth of the places is always free.
        while !self.places[at].is_free() && self.places[at].key() != key {
            at = if at + 1 == self.places.len() { 0 } else { at + 1 };
        }
        at
    }

    /// Where the search for a key begins. The first product mixes what the guest chose with what it does not know, the
    /// second spreads the outcome over the upper bits, which choose the place.
    #[inline]
    fn home(&self, key: u64) -> usize {
        let product = u128::from(key ^ self.seed.0) * u128::from(self.seed.1);
        let folded = (product as u64) ^ ((product >> 64) as u64);
        let hash = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * self.places.len() as u128) >> 64) as usize
    }

    fn rewrite(&mut self, places: usize) {
        let old = std::mem::replace(&mut self.places, vec![FREE; places]);
        for place in old.into_iter().filter(|place| !place.is_free()) {
            let at = self.search(self.home(place.key()), place.key());
            self.places[at] = place;
        }
    }
}

/// Room for `len` blocks with some to come.
fn places_for(len: usize) -> usize {
    (len / 2 * 3).max(PLACES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn keys() -> impl Strategy<Value = Vec<u64>> {
        let key = prop_oneof![0u64..300, (0u64..300).prop_map(|key| key << 40), any::<u64>(), Just(u64::MAX)];
        prop::collection::vec(key, 0..1500)
    }

    fn model(keys: &[u64]) -> (BTreeMap<u64, BlockId>, Vec<BlockId>) {
        let mut numbers = BTreeMap::new();
        let all = keys.iter().map(|&key| {
            let next = numbers.len() as BlockId;
            *numbers.entry(key).or_insert(next)
        });
        let all = all.collect();
        (numbers, all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn numbers_are_dense_in_the_order_of_appearance(keys in keys(), seed in any::<u64>(), absent in any::<u64>()) {
            let (map, expected) = model(&keys);
            let (mut one_by_one, mut together) = (Blocks::new(seed), Blocks::new(seed));
            let numbers: Vec<_> = keys.iter().map(|&key| one_by_one.number(key).expect("they are few")).collect();
            prop_assert_eq!(&numbers, &expected);
            let mut numbers = vec![7];
            together.number_all(&keys, &mut numbers).expect("they are few");
            prop_assert_eq!(&numbers[1..], &expected);
            prop_assert_eq!(together.len() as usize, map.len());
            for key in keys.iter().chain([&absent]) {
                prop_assert_eq!(together.find(*key), map.get(key).copied());
            }
        }

        #[test]
        fn what_is_kept_is_numbered_anew_in_its_order(before in keys(), after in keys(), divisor in 1u64..9) {
            let mut blocks = Blocks::new(1);
            blocks.number_all(&before, &mut Vec::new()).expect("they are few");
            let keep = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15).is_multiple_of(divisor);
            let (map, _) = model(&before);
            let mut told = BTreeMap::new();
            let renumbered = blocks.retain(|key, block| {
                told.insert(key, block);
                keep(key)
            });
            prop_assert_eq!(&told, &map);
            let mut first: Vec<_> = map.iter().map(|(&key, &block)| (block, key)).collect();
            first.sort_unstable();
            let kept: Vec<_> = first.iter().map(|&(_, key)| key).filter(|&key| keep(key)).collect();
            for (old, key) in first {
                let now = kept.iter().position(|&other| other == key).map_or(NEVER, |at| at as BlockId);
                prop_assert_eq!(renumbered[old as usize], now);
            }
            let (_, expected) = model(&[&kept[..], &after].concat());
            let mut numbers = Vec::new();
            blocks.number_all(&after, &mut numbers).expect("they are few");
            prop_assert_eq!(&numbers, &expected[kept.len()..]);
        }
    }

    #[test]
    fn memory_is_within_bounds() {
        let mut blocks = Blocks::new(3);
        for key in 0..100_000u64 {
            blocks.number(key * 4096).expect("they are few");
            if blocks.len() > 1000 {
                assert!(blocks.memory_bytes() <= 24 * blocks.len() as usize);
            }
        }
        blocks.retain(|_, block| block < 1000);
        assert!(blocks.memory_bytes() <= 24 * 1000);
    }

    #[test]
    fn searches_stay_short() {
        for step in [1, 8, 4096, 1 << 32, 0x9e37_79b9_7f4a_7c15u64] {
            let mut blocks = Blocks::new(5);
            (0..50_000u64).for_each(|at| assert!(blocks.number(at.wrapping_mul(step)).is_ok()));
            let distance = |key: u64| {
                let (home, at) = (blocks.home(key), blocks.search(blocks.home(key), key));
                (at + blocks.places.len() - home) % blocks.places.len()
            };
            let sum: usize = (0..50_000u64).map(|at| distance(at.wrapping_mul(step))).sum();
            // Knuth (TAOCP 6.4): two places beyond the home on average, with four fifths taken.
            assert!(sum < 3 * 50_000, "{sum} for steps of {step}");
        }
    }
}
