//! A block enters at the second access that a Bloom filter sees: three bytes per block of the cache, instead of a ghost's 40 or so.
//!
//! Two filters (generations) take turns (Bloom, CACM 1970; the rotation as in Chang, Feng, Li: "Approximate caches for packet classification", INFOCOM 2004). New
//! blocks go to the current one; both are asked. When the current one has taken as many blocks as the cache holds, the older one is emptied and becomes the current
//! one: a block is remembered, from its first access on, for at least as many other new blocks as the cache holds, and for twice as many at most. A block that was
//! never seen passes for seen in about 1 % of all cases. Each block's bits lie in one line of 64 bytes per filter (Putze, Sanders, Singler 2007), so that a look-up is one memory access.
//! A line says for which turn its bits were set, and counts as empty in any other: emptying a filter of gigabytes takes one step.

use super::Admission;

/// Bits of a filter per block.
const BITS_PER_KEY: u64 = 12;

/// Bits set per block: at 12 bits per block, with all in one line, four are best.
const PROBES: u32 = 4;

/// Fewest blocks that a filter is made for.
const KEYS_MIN: u32 = 64;

/// Bits in a line for blocks; above them, in its last word, are those of the turn.
const LINE_BITS: u64 = 496;
const TURN_SHIFT: u32 = 48;

type Line = [u64; 8];

#[derive(Clone, Debug)]
struct Filter {
    lines: Vec<Line>,
    /// Blocks it was made for.
    keys_max: u32,
    keys: u32,
    /// How often it was emptied. When it wraps around, a line that nobody used for 65,536 turns would pass for a current one: some blocks would pass for seen.
    turn: u16,
}

impl Filter {
    fn new(keys_max: u32) -> Self {
        let lines = (u64::from(keys_max) * BITS_PER_KEY).div_ceil(512) as usize;
        Self { lines: vec![[0; 8]; lines], keys_max, keys: 0, turn: 0 }
    }

    /// Empty it, and make it fit for so many blocks.
    fn renew(&mut self, keys_max: u32) {
        if self.keys_max == keys_max {
            self.turn = self.turn.wrapping_add(1);
            self.keys = 0;
        } else {
            *self = Self::new(keys_max);
        }
    }

    fn line(&self, mixed: u64) -> usize {
        ((u128::from(mixed) * self.lines.len() as u128) >> 64) as usize
    }

    fn contains(&self, mixed: u64) -> bool {
        let line = &self.lines[self.line(mixed)];
        self.is_current(line) && bits(mixed).all(|(word, bit)| line[word] & bit != 0)
    }

    fn insert(&mut self, mixed: u64) {
        let at = self.line(mixed);
        let mut line = self.lines[at];
        if !self.is_current(&line) {
            line = [0; 8];
            line[7] = u64::from(self.turn) << TURN_SHIFT;
        }
        bits(mixed).for_each(|(word, bit)| line[word] |= bit);
        self.lines[at] = line;
        self.keys += 1;
    }

    fn is_current(&self, line: &Line) -> bool {
        line[7] >> TURN_SHIFT == u64::from(self.turn)
    }

    fn memory_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

/// The bits of a block within its line: nine bits of the hash each, from the low end, as the upper ones choose the line.
fn bits(mixed: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..PROBES).map(move |probe| {
        let bit = ((mixed >> (9 * probe) & 0x1ff) * LINE_BITS) >> 9;
        ((bit >> 6) as usize, 1 << (bit & 63))
    })
}

/// All bits of the result depend on all bits of the key, and each key has its own (the finalizer of SplitMix64).
fn mix(key: u64) -> u64 {
    let mixed = (key ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Admission at the second access, as far as Bloom filters remember.
#[derive(Clone, Debug)]
pub struct Bloom {
    current: Filter,
    older: Filter,
    capacity: u32,
}

impl Bloom {
    /// In front of a cache of `capacity` blocks. Takes its memory at once: 3 bytes per block.
    pub fn new(capacity: u32) -> Self {
        let keys_max = capacity.max(KEYS_MIN);
        Self { current: Filter::new(keys_max), older: Filter::new(keys_max), capacity }
    }
}

impl Admission for Bloom {
    #[inline]
    fn admit(&mut self, key: u64, _hash: u32) -> bool {
        if self.capacity == 0 {
            return false;
        }
        let mixed = mix(key);
        if self.current.contains(mixed) || self.older.contains(mixed) {
            return true;
        }
        self.current.insert(mixed);
        let keys_max = self.capacity.max(KEYS_MIN);
        if self.current.keys >= self.current.keys_max.min(keys_max) {
            std::mem::swap(&mut self.current, &mut self.older);
            self.current.renew(keys_max);
        }
        false
    }

    /// The filters keep what they have seen, and follow the new capacity as they take turns.
    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn memory_bytes(&self) -> usize {
        self.current.memory_bytes() + self.older.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;
    use proptest::prelude::*;

    fn ask(policy: &mut Bloom, key: u64) -> bool {
        policy.admit(key, hash(key))
    }

    proptest! {
        /// What was new once is not new again while as few others were seen since as the cache holds.
        #[test]
        fn no_block_is_forgotten_early(capacity in 64..2000u32, first: u64, seen in 0..3000u64) {
            let mut bloom = Bloom::new(capacity);
            let new: Vec<u64> = (0..seen).map(|key| first.wrapping_add(key)).filter(|&key| !ask(&mut bloom, key)).collect();
            for &key in new.iter().rev().take(capacity as usize) {
                prop_assert!(ask(&mut bloom, key), "{} of {}..+{}", key, first, seen);
            }
        }
    }

    #[test]
    fn a_block_is_forgotten_after_twice_the_capacity() {
        let mut bloom = Bloom::new(1000);
        (0..100_000).for_each(|key| _ = ask(&mut bloom, key));
        // All that is left of the first thousand are errors of filters that hold others.
        let taken_for_seen = (0..1000).filter(|&key| ask(&mut bloom, key)).count();
        assert!(taken_for_seen < 40, "{taken_for_seen}");
    }

    #[test]
    fn one_new_block_in_a_hundred_passes_for_seen() {
        let capacity = 100_000;
        let mut bloom = Bloom::new(capacity);
        let errors = (0..40 * u64::from(capacity)).filter(|&key| ask(&mut bloom, key * 8)).count();
        let share = errors as f64 / (40.0 * f64::from(capacity));
        // Over the filling of the current filter, from the older one alone to both.
        assert!((0.002..0.012).contains(&share), "{share}");
    }

    #[test]
    fn a_change_of_size_forgets_nothing_and_takes_effect_in_turn() {
        let mut bloom = Bloom::new(1000);
        let memory = bloom.memory_bytes();
        (0..500).for_each(|key| _ = ask(&mut bloom, key));
        bloom.resize(4000);
        assert_eq!(bloom.memory_bytes(), memory);
        assert!((0..500).all(|key| ask(&mut bloom, key)));
        (0..20_000).for_each(|key| _ = ask(&mut bloom, 1_000_000 + key));
        assert_eq!(bloom.memory_bytes(), Bloom::new(4000).memory_bytes());
        bloom.resize(100);
        (0..20_000).for_each(|key| _ = ask(&mut bloom, 2_000_000 + key));
        assert_eq!(bloom.memory_bytes(), Bloom::new(100).memory_bytes());
        bloom.resize(0);
        assert!(!ask(&mut bloom, 2_019_999));
    }

    #[test]
    fn memory_is_three_bytes_a_block() {
        assert_eq!(Bloom::new(1 << 20).memory_bytes(), 3 << 20);
        assert_eq!(Bloom::new(0).memory_bytes(), 2 * 2 * 64);
    }
}
