//! Free slots of the cache device in the order of their places: what is written next goes, as far as may be, behind what was written last.
//!
//! Slots are handed out by a sweep that goes round the device and takes what is free on its way. A region is filled as a whole then, and left alone for a whole round, in which its
//! blocks are overwritten, invalidated or evicted: so the sweep finds runs of free slots when it is back, the longer the more of the cache is free (two or three where a third is, and all
//! are written at random), and whoever writes several blocks at once writes runs. With the last freed first, each would go to a place of its own.
//!
//! A bit for each slot, and above that a bit for each 64 of those that are not all zero, three times over: so the next free slot of 2^30 is found by a few accesses.

use crate::FreePool;

/// Rows of bits, of which each has one for 64 of the one below.
const LEVELS: usize = 4;

/// A set of slots.
#[derive(Clone, Debug, Default)]
pub struct FreeSlots {
    levels: [Vec<u64>; LEVELS],
    count: u32,
    /// Where the sweep goes on.
    next: u32,
}

impl FreeSlots {
    /// No slot is free.
    pub fn new() -> Self {
        Self::default()
    }

    /// The slots below `end` are free: as [`Self::insert`] for each, in far less time.
    pub fn below(end: u32) -> Self {
        let mut bits = end as usize;
        let levels = [(); LEVELS].map(|()| {
            let mut words = vec![!0; bits.div_ceil(64)];
            if let (Some(last), 1..) = (words.last_mut(), bits % 64) {
                *last = (1 << (bits % 64)) - 1;
            }
            bits = words.len();
            words
        });
        Self { levels, count: end, next: 0 }
    }

    /// Free slots.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A slot is free now.
    ///
    /// # Panics
    /// If it was.
    pub fn insert(&mut self, slot: u32) {
        let mut at = slot as usize;
        for (level, words) in self.levels.iter_mut().enumerate() {
            if words.len() <= at / 64 {
                words.resize(at / 64 + 1, 0);
            }
            let word = &mut words[at / 64];
            let (before, bit) = (*word, 1 << (at % 64));
            assert!(level > 0 || before & bit == 0, "slot {slot} is free already");
            *word |= bit;
            if before != 0 {
                break;
            }
            at /= 64;
        }
        self.count += 1;
    }

    /// Free slots where the sweep comes next, which lie near each other and are not free any more: at most as many as are wanted. False where there is none.
    fn take_near(&mut self, wanted: usize, into: &mut Vec<u32>) -> bool {
        let next = self.next as usize;
        let Some(first) = self.at_or_after(next).or_else(|| self.at_or_after(0)) else { return false };
        let (at, mut left) = (first / 64, wanted);
        let word = &mut self.levels[0][at];
        let mut here = *word & (!0 << (first % 64));
        while here != 0 && left > 0 {
            let slot = (at * 64) as u32 + here.trailing_zeros();
            into.push(slot);
            self.next = slot + 1;
            *word &= !(1 << (slot % 64));
            here &= here - 1;
            left -= 1;
        }
        let is_empty = *word == 0;
        self.count -= (wanted - left) as u32;
        if is_empty {
            self.note_empty(at);
        }
        true
    }

    /// The lowest free slot from here on.
    fn at_or_after(&self, mut at: usize) -> Option<usize> {
        for (level, words) in self.levels.iter().enumerate() {
            let first = words.get(at / 64)? & (!0 << (at % 64));
            if first != 0 {
                return Some(self.lowest(level, at / 64 * 64 + first.trailing_zeros() as usize));
            }
            at = at / 64 + 1;
        }
        let (above, words) = (LEVELS - 1, &self.levels[LEVELS - 1]);
        let word = (at..words.len()).find(|&word| words[word] != 0)?;
        Some(self.lowest(above, word * 64 + words[word].trailing_zeros() as usize))
    }

    /// The lowest free slot of those that a bit stands for.
    fn lowest(&self, level: usize, bit: usize) -> usize {
        let below = self.levels[..level].iter().rev();
        below.fold(bit, |at, words| at * 64 + words[at].trailing_zeros() as usize)
    }

    /// A word of the lowest row has become zero.
    fn note_empty(&mut self, mut at: usize) {
        for words in &mut self.levels[1..] {
            let word = &mut words[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
    }
}

impl Extend<u32> for FreeSlots {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, slots: I) {
        slots.into_iter().for_each(|slot| self.insert(slot));
    }
}

impl FromIterator<u32> for FreeSlots {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut free = Self::new();
        free.extend(slots);
        free
    }
}

impl FreePool for FreeSlots {
    fn take(&mut self, count: usize, into: &mut Vec<u32>) -> bool {
        let end = into.len().saturating_add(count);
        while into.len() < end && self.take_near(end - into.len(), into) {}
        !self.is_empty()
    }

    fn give(&mut self, slots: &mut Vec<u32>) {
        self.extend(slots.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn taken(free: &mut FreeSlots, count: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        free.take(count, &mut taken);
        taken
    }

    #[test]
    fn the_sweep_goes_round() {
        let mut free: FreeSlots = [1, 2, 3, 7, 9, 10].into_iter().collect();
        assert_eq!(taken(&mut free, 4), [1, 2, 3, 7]);
        free.give(&mut vec![3, 2]);
        assert_eq!((taken(&mut free, 3), free.len()), (vec![9, 10, 2], 1));
        assert_eq!((taken(&mut free, 9), free.is_empty()), (vec![3], true));
        assert_eq!(taken(&mut free, 9), []);
    }

    #[test]
    fn a_pool_that_is_all_free_is_made_at_once() {
        for end in [0, 1, 63, 64, 65, 4096, 4097, 262_145] {
            let (at_once, one_by_one) = (FreeSlots::below(end), (0..end).collect::<FreeSlots>());
            assert_eq!((&at_once.levels, at_once.count), (&one_by_one.levels, one_by_one.count), "{end}");
        }
    }

    #[test]
    #[should_panic(expected = "slot 5 is free already")]
    fn a_slot_that_comes_back_twice_is_refused() {
        let mut free: FreeSlots = [5].into_iter().collect();
        free.insert(5);
    }

    #[test]
    fn slots_far_apart_are_found_through_all_levels() {
        let far = [0, 63, 64, 4095, 4096, 262_143, 262_144, 16_777_215, 16_777_216, 50_000_000];
        let mut free: FreeSlots = far.into_iter().collect();
        assert_eq!(taken(&mut free, 100), far);
        free.insert(4096);
        assert_eq!(taken(&mut free, 100), [4096], "from the end on round to it");
    }

    /// A third of the slots is free, and blocks are overwritten at random: what the first paragraph says of runs.
    #[test]
    fn a_cache_that_is_overwritten_at_random_has_runs_of_free_slots() {
        const SLOTS: u32 = 98_304;
        let mut free: FreeSlots = (0..SLOTS).collect();
        let mut blocks: Vec<u32> = taken(&mut free, (SLOTS / 3 * 2) as usize);
        let mut random = 7_u64;
        let mut overwrite = |last: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = &mut blocks[(random >> 32) as usize % (SLOTS / 3 * 2) as usize];
            let slot = taken(&mut free, 1)[0];
            free.insert(std::mem::replace(block, slot));
            (slot, u32::from(slot != last + 1))
        };
        let mut last = (0..10 * SLOTS).fold(0, |last, _| overwrite(last).0);
        let runs: u32 = (0..SLOTS)
            .map(|_| {
                let (slot, begins) = overwrite(last);
                last = slot;
                begins
            })
            .sum();
        let mean = f64::from(SLOTS) / f64::from(runs);
        // Of what the sweep comes to, u is in use, where 2/3 = (1 - u) / -ln u: u = 0.417, and a run is 1 / u long.
        assert!((2.3..2.5).contains(&mean), "runs of {mean}");
    }

    proptest! {
        #[test]
        fn it_is_a_set_in_the_order_of_a_sweep(
            changes in prop::collection::vec((0..4_usize, 0_u32..9000), 1..400),
        ) {
            let (mut free, mut model, mut next) = (FreeSlots::new(), BTreeSet::new(), 0);
            for (wanted, slot) in changes {
                if wanted == 0 && model.insert(slot) {
                    free.insert(slot);
                } else {
                    let sweep = model.range(next..).chain(model.range(..next)).copied();
                    let expected: Vec<u32> = sweep.take(wanted).collect();
                    prop_assert_eq!(&taken(&mut free, wanted), &expected);
                    expected.iter().for_each(|slot| _ = model.remove(slot));
                    next = expected.last().map_or(next, |slot| slot + 1);
                }
                prop_assert_eq!(free.len() as usize, model.len());
            }
        }
    }
}
