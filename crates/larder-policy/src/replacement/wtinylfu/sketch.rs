//! How often keys were used lately, roughly, in half a byte per counter: TinyLFU's count-min sketch.
//!
//! Einziger, Friedman, Manes: "TinyLFU: A Highly Efficient Cache Admission Policy", ACM Transactions on Storage 13(4), 2017, section 3: a key has four counters of
//! four bits; a use adds one to the smallest of them (minimal increment), and their minimum is the estimate. After a *sample* of uses everything
//! is halved (*reset*), and the number of uses in the sample too.
//!
//! Differences of layout, not of method: a key's four counters share one cache line, so that a use costs one fetch from memory. A line notes up to which reset it was
//! halved, and is halved when it is next used: a reset takes no time. Lines are added one by one as the cache fills, each as
//! a copy of the line that its keys used until then (linear hashing), so that growth neither stops anybody nor loses a count.

use crate::Chunked;

/// Blocks of the cache per line: 14 counters for each.
const BLOCKS_PER_LINE: usize = 8;

/// Words of counters in a line, sixteen counters each. The four counters of a key are one of each quarter.
const WORDS: usize = 7;

const PROBES: u32 = 4;
const COUNTERS_PER_PROBE: u32 = WORDS as u32 * 16 / PROBES;
const COUNTER_MAX: u32 = 15;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line {
    counters: [u64; WORDS],
    /// Resets that these counters have seen.
    resets: u64,
}

/// The sketch.
#[derive(Clone, Debug, Default)]
pub(super) struct Sketch {
    lines: Chunked<Line>,
    resets: u64,
    /// Uses since the last reset, and half of those before.
    uses: u64,
    /// Uses that bring about a reset.
    sample: u64,
}

/// A key's line and its counters' numbers there.
struct Place {
    line: usize,
    counters: [u32; PROBES as usize],
}

fn mix(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

/// The same word with all counters halved so many times.
fn halved(word: u64, times: u64) -> u64 {
    match times {
        0 => word,
        1..=3 => (word >> times) & (0x1111_1111_1111_1111 * (u64::from(COUNTER_MAX) >> times)),
        _ => 0,
    }
}

impl Line {
    const EMPTY: Self = Self { counters: [0; WORDS], resets: 0 };

    #[inline]
    fn counter(&self, at: u32) -> u32 {
        (self.counters[(at / 16) as usize] >> (at % 16 * 4)) as u32 & COUNTER_MAX
    }

    #[inline]
    fn minimum(&self, counters: &[u32; PROBES as usize]) -> u32 {
        counters.iter().map(|&at| self.counter(at)).fold(COUNTER_MAX, u32::min)
    }

    #[inline]
    fn catch_up(&mut self, resets: u64) {
        if self.resets != resets {
            let behind = resets - self.resets;
            self.counters.iter_mut().for_each(|word| *word = halved(*word, behind));
            self.resets = resets;
        }
    }

    /// The larger of two counters each: what keys of either line count up to at least.
    fn absorb(&mut self, other: &Self) {
        for at in 0..WORDS as u32 * 16 {
            let more = other.counter(at).saturating_sub(self.counter(at));
            self.counters[(at / 16) as usize] += u64::from(more) << (at % 16 * 4);
        }
    }
}

/// The line whose keys a new line takes its share of, when there are `lines` before it: its number without the highest bit.
fn parent(line: usize) -> usize {
    line ^ (1 << line.ilog2())
}

impl Sketch {
    /// A sketch without memory, whose sample is still to be set.
    pub(super) const fn new() -> Self {
        Self { lines: Chunked::new(), resets: 0, uses: 0, sample: u64::MAX }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.memory_bytes()
    }

    /// Reset after so many uses.
    pub(super) fn set_sample(&mut self, uses: u64) {
        self.sample = uses.max(1);
    }

    /// Have memory for a cache that holds `blocks`.
    #[inline]
    pub(super) fn grow_to(&mut self, blocks: u32) {
        while self.lines.len() * BLOCKS_PER_LINE < blocks as usize {
            let line = match self.lines.len() {
                0 => Line::EMPTY,
                new => self.lines[parent(new)],
            };
            self.lines.push(line);
        }
    }

    /// Give a line back if a cache of `blocks` needs less than half of them: what it counted goes to the line that it was a copy of.
    #[inline]
    pub(super) fn shrink_to(&mut self, blocks: u32) {
        if self.lines.len() > 2 * (blocks as usize).div_ceil(BLOCKS_PER_LINE) {
            self.fold_last();
        }
    }

    fn fold_last(&mut self) {
        let Some(mut last) = self.lines.pop() else { return };
        if !self.lines.is_empty() {
            let parent = parent(self.lines.len());
            last.catch_up(self.resets);
            let line = &mut self.lines[parent];
            line.catch_up(self.resets);
            line.absorb(&last);
        }
    }

    /// A key was used.
    #[inline]
    pub(super) fn count_use(&mut self, key: u64) {
        self.uses += 1;
        if self.uses >= self.sample {
            self.resets += 1;
            self.uses /= 2;
        }
        let Some(place) = self.place(key) else { return };
        let line = &mut self.lines[place.line];
        line.catch_up(self.resets);
        let minimum = line.minimum(&place.counters);
        if minimum == COUNTER_MAX {
            return;
        }
        for at in place.counters {
            if line.counter(at) == minimum {
                line.counters[(at / 16) as usize] += 1 << (at % 16 * 4);
            }
        }
    }

    /// How often a key was used: 0 to 15.
    #[inline]
    pub(super) fn estimate(&self, key: u64) -> u32 {
        let Some(place) = self.place(key) else { return 0 };
        let line = &self.lines[place.line];
        let behind = (self.resets - line.resets).min(u64::from(u32::BITS - 1));
        line.minimum(&place.counters) >> behind
    }

    #[inline]
    fn place(&self, key: u64) -> Option<Place> {
        let lines = self.lines.len();
        if lines == 0 {
            return None;
        }
        let hash = mix(key);
        let mask = lines.next_power_of_two() - 1;
        let line = (hash >> 32) as usize & mask;
        let line = if line < lines { line } else { line & (mask >> 1) };
        let byte = |probe: u32| (hash >> (8 * probe)) as u32 & 0xff;
        let counter = |probe: u32| probe * COUNTERS_PER_PROBE + ((byte(probe) * COUNTERS_PER_PROBE) >> 8);
        Some(Place { line, counters: [counter(0), counter(1), counter(2), counter(3)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn few_keys_are_counted_exactly_up_to_fifteen() {
        let mut sketch = Sketch::new();
        sketch.grow_to(8000);
        for key in 0..100u64 {
            (0..key).for_each(|_| sketch.count_use(key));
        }
        let wrong = (0..100).filter(|&key| sketch.estimate(key) != (key as u32).min(COUNTER_MAX)).count();
        assert!(wrong <= 1, "{wrong} keys share all of their counters with others");
    }

    #[test]
    fn a_reset_halves_every_count_and_the_sample() {
        let mut sketch = Sketch::new();
        sketch.grow_to(80);
        sketch.set_sample(10);
        (0..6).for_each(|_| sketch.count_use(1));
        (0..3).for_each(|_| sketch.count_use(2));
        assert_eq!((sketch.estimate(1), sketch.estimate(2)), (6, 3));
        sketch.count_use(1);
        assert_eq!((sketch.estimate(1), sketch.estimate(2), sketch.uses), (4, 1, 5), "halved, then counted");
        (0..4).for_each(|_| sketch.count_use(2));
        assert_eq!((sketch.estimate(1), sketch.estimate(2), sketch.uses), (4, 5, 9));
        sketch.count_use(3);
        assert_eq!((sketch.estimate(1), sketch.estimate(2), sketch.estimate(3)), (2, 2, 1));
        (0..500).for_each(|_| sketch.count_use(3));
        assert_eq!(sketch.estimate(1), 0);
    }

    #[test]
    fn a_word_is_halved_counter_by_counter() {
        assert_eq!(halved(0xfedc_ba98_7654_3210, 0), 0xfedc_ba98_7654_3210);
        assert_eq!(halved(0xfedc_ba98_7654_3210, 1), 0x7766_5544_3322_1100);
        assert_eq!(halved(0xfedc_ba98_7654_3210, 2), 0x3333_2222_1111_0000);
        assert_eq!(halved(0xfedc_ba98_7654_3210, 3), 0x1111_1111_0000_0000);
        assert_eq!(halved(u64::MAX, 4), 0);
    }

    proptest! {
        /// Whatever the memory does, a key's estimate is never below its count, except that fifteen is the most.
        #[test]
        fn no_use_is_lost_when_memory_grows_or_shrinks(
            steps in prop::collection::vec((0..200u64, 0..20u32), 0..400),
        ) {
            let (mut sketch, mut counts) = (Sketch::new(), BTreeMap::new());
            sketch.grow_to(8);
            for (key, action) in steps {
                match action {
                    0 => (0..key % 9).for_each(|_| sketch.shrink_to(8)),
                    1..6 => sketch.grow_to(sketch.lines.len() as u32 * 8 + action * 3),
                    _ => {}
                }
                sketch.count_use(key);
                *counts.entry(key).or_insert(0) += 1;
                for (&key, &count) in &counts {
                    prop_assert!(sketch.estimate(key) >= count.min(COUNTER_MAX));
                }
            }
        }
    }
}
