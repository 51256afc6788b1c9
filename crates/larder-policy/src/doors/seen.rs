//! What was done to a block lately, about: counters that age as others are accessed.

/// How often a block was accessed: never, once, up to 3 times, up to 7, more often.
pub(super) const LEVELS: usize = 5;

/// Blocks that a word knows, of which words there is one for each block of the cache.
const IN_WORD: usize = 4;

/// Bits for each: what it is known by, and then two halves of a counter, for accesses before it aged and since.
const BITS: usize = 16;

/// What a half of a counter takes.
const HALF: usize = 4;

/// Both halves: without accesses in either nothing is known.
const COUNTER: u64 = 0xff;

/// What blocks are known by.
const TAGS: u64 = 0xff00_ff00_ff00_ff00;

/// The halves for accesses since it aged.
const YOUNG: u64 = 0x000f_000f_000f_000f;

/// What a half counts to.
const MOST: u64 = 7;

/// Its upper bit: the last access was a write.
const WRITTEN: u64 = MOST + 1;

/// Blocks remembered at least.
const BLOCKS_MIN: usize = 1 << 10;

/// The counters. A block that was not accessed may be taken for one that was, one in sixty-four at most.
///
/// With each block that was not accessed since its counter aged a word of counters ages: by the time that as many blocks as the cache has were accessed all have, and no request waits for all of them.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    words: Vec<u64>,
    /// The word that ages next.
    hand: usize,
}

impl Seen {
    /// Counters that remember the last accesses to as many blocks as the cache has, up to twice as many.
    pub(super) fn new(cache_blocks: u32) -> Self {
        Self { words: vec![0; (cache_blocks as usize).max(BLOCKS_MIN)], hand: 0 }
    }

    /// A block will be accessed soon: its word is at hand then.
    #[inline]
    pub(super) fn expect(&self, key: u64) {
        std::hint::black_box(self.words[self.place(spread(key))]);
    }

    /// Which word a block is in, by the upper bits of its spread key: below the number of words.
    #[inline]
    fn place(&self, spread: u64) -> usize {
        ((u128::from(spread) * self.words.len() as u128) >> 64) as usize
    }

    /// A block is accessed: how often was it lately (one of the [`LEVELS`]), and was it written last?
    pub(super) fn see(&mut self, key: u64, write: bool) -> (usize, bool) {
        let spread = spread(key);
        let (at, tag) = (self.place(spread), spread >> 24 & 0xff);
        let word = &mut self.words[at];
        let known = |lane: &usize| {
            let one = *word >> (lane * BITS);
            one & COUNTER != 0 && one >> 8 & 0xff == tag
        };
        let lane = match (0..IN_WORD).find(known) {
            Some(lane) => lane,
            None => {
                let lane = least(*word);
                *word = *word & !(0xffff << (lane * BITS)) | tag << (lane * BITS + 8);
                lane
            }
        };
        let at = lane * BITS;
        let (young, old) = (*word >> at & (MOST | WRITTEN), *word >> (at + HALF) & (MOST | WRITTEN));
        let count = young & MOST;
        let now = (count + 1).min(MOST) | if write { WRITTEN } else { 0 };
        *word ^= (young ^ now) << at;
        if count == 0 {
            self.age();
        }
        let last = if count > 0 { young } else { old };
        let level = (u64::BITS - (count + (old & MOST)).leading_zeros()) as usize;
        (level.min(LEVELS - 1), last & WRITTEN != 0)
    }

    /// The next word's counters age.
    fn age(&mut self) {
        let word = &mut self.words[self.hand];
        *word = *word & TAGS | (*word & YOUNG) << HALF;
        self.hand = if self.hand + 1 < self.words.len() { self.hand + 1 } else { 0 };
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// Which block of a word is forgotten for another: one of which nothing is known, or else the one that was accessed least since it aged, and before.
fn least(word: u64) -> usize {
    let accesses = |lane: &usize| {
        let one = word >> (lane * BITS);
        (one & MOST) << HALF | one >> HALF & MOST
    };
    (0..IN_WORD).min_by_key(accesses).unwrap_or(0)
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
        assert!(known(0..2000) < 2000 / 64);
        // A few of more than a word knows were forgotten.
        assert!(known(0..2000) > 1990);
        // Two caches' worth of others, of which a few are taken for known.
        assert!(known(1 << 32..(1 << 32) + 8192) < 8192 / 64);
        assert!(known(0..2000) < 2000 / 64);
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
