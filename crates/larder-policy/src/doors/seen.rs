//! What was done to a block lately, about: counters that age as others are accessed.

/// How often a block was accessed: never, once, up to 3 times, up to 7, more often.
pub(super) const LEVELS: usize = 5;

/// Blocks that a word knows, of which words there is one for each block of the cache.
const IN_WORD: usize = 4;

/// Words of a line, which is what memory reads at once: neighbouring blocks have theirs in one, so that a request of some of them waits for memory once.
const IN_LINE: usize = 8;

/// A line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; IN_LINE]);

/// Bits for each: what it is known by, and then two halves of a counter, for accesses before it aged and since.
const BITS: usize = u64::BITS as usize / IN_WORD;

/// What a half of a counter takes.
const HALF: usize = 4;

/// Both halves: without accesses in either nothing is known.
const COUNTER: u64 = 0xff;

/// What blocks are known by.
const TAGS: u64 = 0xff00_ff00_ff00_ff00;

/// The lowest bit of each of a word's blocks.
const EACH: u64 = 0x0001_0001_0001_0001;

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
    lines: Vec<Line>,
    /// The word that ages next.
    hand: usize,
}

impl Seen {
    /// Counters that remember the last accesses to as many blocks as the cache has, up to twice as many.
    pub(super) fn new(cache_blocks: u32) -> Self {
        let words = (cache_blocks as usize).max(BLOCKS_MIN);
        Self { lines: vec![Line::default(); words.div_ceil(IN_LINE)], hand: 0 }
    }

    /// A block will be accessed soon: its word is at hand then.
    #[inline]
    pub(super) fn expect(&self, key: u64) {
        let (line, word, _) = self.place(key);
        std::hint::black_box(self.lines[line].0[word]);
    }

    /// Which line a block is in, by the upper bits of the spread key of its neighbourhood, and which word of it; and what it is known by there.
    ///
    /// Which word that of the first of the neighbours is differs from line to line: what is always at the begin of them would crowd one word of eight otherwise.
    #[inline]
    fn place(&self, key: u64) -> (usize, usize, u64) {
        let spread = spread(key / IN_LINE as u64);
        let line = (u128::from(spread) * self.lines.len() as u128) >> 64;
        let word = key.wrapping_add(spread >> 16) as usize % IN_LINE;
        (line as usize, word, spread >> 24 & 0xff)
    }

    /// A block is accessed: how often was it lately (one of the [`LEVELS`]), and was it written last?
    pub(super) fn see(&mut self, key: u64, write: bool) -> (usize, bool) {
        let (line, at, tag) = self.place(key);
        let word = &mut self.lines[line].0[at];
        let lane = find(*word, tag).unwrap_or_else(|| {
            let lane = least(*word);
            *word = *word & !(0xffff << (lane * BITS)) | tag << (lane * BITS + 8);
            lane
        });
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
        let word = &mut self.lines[self.hand / IN_LINE].0[self.hand % IN_LINE];
        *word = *word & TAGS | (*word & YOUNG) << HALF;
        self.hand = if self.hand + 1 < self.lines.len() * IN_LINE { self.hand + 1 } else { 0 };
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

/// Which block of a word is known by this, if something is known of it. All four are looked at together: which one it is no processor can foretell.
#[inline]
fn find(word: u64, tag: u64) -> Option<usize> {
    const COUNTERS: u64 = EACH * COUNTER;
    // Of each block the bit above its lower half is set where that is not nothing.
    let some = |halves: u64| ((halves & COUNTERS) + COUNTERS) >> 8 & EACH;
    let others = some((word ^ (tag * EACH) << 8) >> 8);
    let found = some(word) & !others;
    (found != 0).then(|| found.trailing_zeros() as usize / BITS)
}

/// Which block of a word is forgotten for another: one of which nothing is known, or else the one that was accessed least since it aged, and before.
#[inline]
fn least(word: u64) -> usize {
    const COUNTS: u64 = EACH * MOST;
    let accesses = (word & COUNTS) << HALF | word >> HALF & COUNTS;
    let ranked = |lane: usize| (accesses >> (lane * BITS) & COUNTER) << 2 | lane as u64;
    let first = ranked(0).min(ranked(1)).min(ranked(2)).min(ranked(3));
    (first & 3) as usize
}

/// All bits of a key reach the upper ones.
pub fn spread(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block whose word is not among the first, which age twice in the tests.
    const KEY: u64 = 70;

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
    fn blocks_that_are_the_first_of_their_neighbours_do_not_crowd() {
        let mut seen = Seen::new(4096);
        let mut known = |keys: std::ops::Range<u64>| {
            keys.filter(|&key| seen.see(key * IN_LINE as u64, false).0 > 0).count()
        };
        assert!(known(0..2000) < 2000 / 64);
        assert!(known(0..2000) > 1990);
    }

    /// A block of which nothing is known, now and then.
    fn lane() -> impl Strategy<Value = u64> {
        prop_oneof![
            0u64..0x10000,
            (0u64..4).prop_map(|tag| tag << 8 | 0x10),
            (0u64..4).prop_map(|tag| tag << 8)
        ]
    }

    proptest! {
        #[test]
        fn the_blocks_of_a_word_are_looked_at_one_by_one(lanes in [lane(), lane(), lane(), lane()], tag in prop_oneof![0u64..4, 0u64..0x100]) {
            let word = lanes.iter().rev().fold(0, |word, lane| word << BITS | lane);
            let known = |one: &u64| one & COUNTER != 0 && one >> 8 == tag;
            prop_assert_eq!(find(word, tag), lanes.iter().position(known));
            let accesses = |lane: &usize| (lanes[*lane] & MOST, lanes[*lane] >> HALF & MOST);
            prop_assert_eq!(Some(least(word)), (0..IN_WORD).min_by_key(accesses));
        }
    }

    #[test]
    fn levels_double() {
        let mut seen = Seen::new(4096);
        let levels: Vec<_> = (0..40).map(|_| seen.see(KEY, true).0).collect();
        let first = |level| levels.iter().position(|&one| one == level);
        assert_eq!([0, 1, 2, 3].map(first), [Some(0), Some(1), Some(2), Some(4)]);
        // One generation counts to 7, two count on.
        assert_eq!(levels[39], 3);
        (100..5100).for_each(|key| _ = seen.see(key, true));
        let more = (0..10).map(|_| seen.see(KEY, true).0).max();
        assert_eq!(more, Some(LEVELS - 1));
    }

    #[test]
    fn the_last_access_is_known_over_generations() {
        let mut seen = Seen::new(4096);
        let mut see = |write| seen.see(KEY, write);
        assert_eq!(
            [see(true), see(false), see(false), see(true), see(false)].map(|it| it.1),
            [false, true, false, false, true]
        );
        (0..100).for_each(|_| _ = see(false));
        assert!(!see(true).1 && see(true).1);
        (1 << 32..(1 << 32) + 4200).for_each(|key| _ = seen.see(key, false));
        assert!(seen.see(KEY, false).1);
        assert!(!seen.see(KEY, false).1);
    }
}
