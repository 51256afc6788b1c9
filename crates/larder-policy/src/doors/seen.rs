//! What was done to a block lately, about: counters in two generations.

/// How often a block was accessed: never, once, up to 3 times, up to 7, more often.
pub(super) const LEVELS: usize = 5;

/// Counters for each block of the cache in a generation.
const COUNTERS: u64 = 8;

/// Bits of a counter: the upper one tells that the last access was a write, the others count.
const BITS: u64 = 4;

/// What a counter counts to.
const MOST: u64 = (1 << (BITS - 1)) - 1;

/// The last access was a write.
const WRITTEN: u64 = 1 << (BITS - 1);

/// Counters in a word.
const IN_WORD: u64 = 64 / BITS;

/// Blocks remembered at least.
const BLOCKS_MIN: u64 = 1 << 10;

/// The counters. A block may be taken for another that was accessed, one in four at most.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    young: Vec<u64>,
    old: Vec<u64>,
    shift: u32,
    /// Blocks of the young generation.
    count: u64,
    most: u64,
}

impl Seen {
    /// Counters that remember the last accesses to as many blocks as the cache has, up to twice as many.
    pub(super) fn new(cache_blocks: u32) -> Self {
        let most = u64::from(cache_blocks).max(BLOCKS_MIN);
        let counters = (most * COUNTERS).next_power_of_two();
        let words = (counters / IN_WORD) as usize;
        Self {
            young: vec![0; words],
            old: vec![0; words],
            shift: 64 - counters.trailing_zeros(),
            count: 0,
            most,
        }
    }

    /// A block is accessed: how often was it lately (one of the [`LEVELS`]), and was it written last?
    pub(super) fn see(&mut self, key: u64, write: bool) -> (usize, bool) {
        let counter = spread(key) >> self.shift;
        let (word, at) = ((counter / IN_WORD) as usize, counter % IN_WORD * BITS);
        let [young, old] = [&self.young, &self.old].map(|counters| counters[word] >> at & (MOST | WRITTEN));
        let count = young & MOST;
        let now = (count + 1).min(MOST) | if write { WRITTEN } else { 0 };
        self.young[word] ^= (young ^ now) << at;
        if count == 0 {
            self.count += 1;
            if self.count == self.most {
                self.count = 0;
                std::mem::swap(&mut self.young, &mut self.old);
                self.young.fill(0);
            }
        }
        let last = if count > 0 { young } else { old };
        let level = (u64::BITS - (count + (old & MOST)).leading_zeros()) as usize;
        (level.min(LEVELS - 1), last & WRITTEN != 0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.young.capacity() + self.old.capacity()) * size_of::<u64>()
    }
}

/// All bits of a key reach the upper ones.
pub fn spread(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accessed_lately_is_known_and_what_was_long_ago_is_not() {
        let mut seen = Seen::new(4096);
        let mut known = |keys: std::ops::Range<u64>| keys.filter(|&key| seen.see(key, false).0 > 0).count();
        assert!(known(0..2000) < 100);
        assert_eq!(known(0..2000), 2000);
        // Two caches' worth of others, and more, since some of them are taken for known.
        assert!(known(1 << 32..(1 << 32) + 10_000) < 2500);
        assert!(known(0..2000) < 600);
    }

    #[test]
    fn levels_double() {
        let mut seen = Seen::new(4096);
        let levels: Vec<_> = (0..40).map(|_| seen.see(7, true).0).collect();
        let first = |level| levels.iter().position(|&one| one == level);
        assert_eq!([0, 1, 2, 3].map(first), [Some(0), Some(1), Some(2), Some(4)]);
        // One generation counts to 7, two count on.
        assert_eq!(levels[39], 3);
        (100..5100).for_each(|key| _ = seen.see(key, true));
        let more = (0..10).map(|_| seen.see(7, true).0).max();
        assert_eq!(more, Some(LEVELS - 1));
    }

    #[test]
    fn the_last_access_is_known_over_generations() {
        let mut seen = Seen::new(4096);
        let mut see = |write| seen.see(7, write);
        assert_eq!(
            [see(true), see(false), see(false), see(true), see(false)].map(|it| it.1),
            [false, true, false, false, true]
        );
        (0..100).for_each(|_| _ = see(false));
        assert!(!see(true).1 && see(true).1);
        (1 << 32..(1 << 32) + 4200).for_each(|key| _ = seen.see(key, false));
        assert!(seen.see(7, false).1);
        assert!(!seen.see(7, false).1);
    }
}
