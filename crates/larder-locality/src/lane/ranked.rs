//! A set of numbers that knows how many of them lie before any, and which numbers it does not hold.
//!
//! One bit a number, in chunks of one cache line, with a Fenwick tree of the bits set in each chunk.

const BITS_PER_WORD: u32 = u64::BITS;
const WORDS_PER_CHUNK: usize = 8;
const BITS_PER_CHUNK: u32 = BITS_PER_WORD * WORDS_PER_CHUNK as u32;

/// Numbers from 0.
#[derive(Clone, Debug)]
pub(crate) struct RankedSet {
    /// Whole chunks.
    words: Vec<u64>,
    /// Fenwick tree: one more than chunks.
    tree: Vec<u32>,
    len: u32,
}

impl RankedSet {
    /// The numbers below `len`, with room for those below `room`, and more.
    pub(crate) fn below(len: u32, room: u32) -> Self {
        let chunks = room.max(len).div_ceil(BITS_PER_CHUNK).max(1) as usize;
        let mut words = vec![0; chunks * WORDS_PER_CHUNK];
        words[..word_of(len)].fill(u64::MAX);
        if !len.is_multiple_of(BITS_PER_WORD) {
            words[word_of(len)] = bit(len) - 1;
        }
        Self::of_words(words)
    }

    /// The numbers that it has room for.
    pub(crate) fn room(&self) -> u32 {
        self.words.len() as u32 * BITS_PER_WORD
    }

    /// How many numbers it holds.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Add a number that it does not hold. Makes room.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        if number >= self.room() {
            self.make_room(number);
        }
        debug_assert!(self.words[word_of(number)] & bit(number) == 0, "{number} is in the set");
        self.words[word_of(number)] |= bit(number);
        self.len += 1;
        self.add(number, 1);
    }

    /// Remove a number that it holds.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        debug_assert!(self.words[word_of(number)] & bit(number) != 0, "{number} is not in the set");
        self.words[word_of(number)] &= !bit(number);
        self.len -= 1;
        // Minus one, modulo 2^32.
        self.add(number, u32::MAX);
    }

    /// How many it holds that are smaller.
    #[inline]
    pub(crate) fn before(&self, number: u32) -> u32 {
        if number >= self.room() {
            return self.len;
        }
        let chunk = chunk_of(number);
        let words = &self.words[chunk * WORDS_PER_CHUNK..=word_of(number)];
        let whole: u32 = words[..words.len() - 1].iter().map(|word| word.count_ones()).sum();
        self.sum(chunk) + whole + (words[words.len() - 1] & (bit(number) - 1)).count_ones()
    }

    /// The number that it does not hold before which it does not hold `absent` others.
    #[inline]
    pub(crate) fn absent(&self, absent: u32) -> u32 {
        if self.len == 0 {
            return absent;
        }
        let (chunk, mut left) = self.chunk_of_absent(absent);
        let mut number = chunk as u32 * BITS_PER_CHUNK;
        for word in self.words[chunk * WORDS_PER_CHUNK..].iter().take(WORDS_PER_CHUNK) {
            let zeros = word.count_zeros();
            if left < zeros {
                return number + nth_one(!word, left);
            }
            left -= zeros;
            number += BITS_PER_WORD;
        }
        // Behind all that there is room for.
        number + left
    }

    /// Read the memory that a number lies in; what it gives has no meaning.
    #[inline]
    pub(crate) fn warm(&self, number: u32) -> u64 {
        self.words.get(word_of(number)).copied().unwrap_or(0)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.tree.capacity() * size_of::<u32>()
    }

    fn of_words(words: Vec<u64>) -> Self {
        let chunks =
            words.chunks_exact(WORDS_PER_CHUNK).map(|chunk| chunk.iter().map(|word| word.count_ones()).sum());
        let mut tree: Vec<u32> = std::iter::once(0).chain(chunks).collect();
        let len = tree.iter().sum();
        for at in 1..tree.len() {
            let parent = at + (at & at.wrapping_neg());
            if parent < tree.len() {
                tree[parent] += tree[at];
            }
        }
        Self { words, tree, len }
    }

    #[cold]
    fn make_room(&mut self, number: u32) {
        let chunks = (chunk_of(number) + 1).next_power_of_two();
        let mut words = std::mem::take(&mut self.words);
        words.resize(chunks * WORDS_PER_CHUNK, 0);
        *self = Self::of_words(words);
    }

    #[inline]
    fn add(&mut self, number: u32, count: u32) {
        let mut at = chunk_of(number) + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(count);
            at += at & at.wrapping_neg();
        }
    }

    /// How many it holds in the first chunks.
    #[inline]
    fn sum(&self, chunks: usize) -> u32 {
        let (mut sum, mut at) = (0u32, chunks);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// The chunk in which [`RankedSet::absent`] finds its number, or the one behind the last, and how many it does not hold
    /// of that chunk before it.
    #[inline]
    fn chunk_of_absent(&self, absent: u32) -> (usize, u32) {
        let chunks = self.tree.len() - 1;
        let (mut chunk, mut left) = (0, absent);
        let mut step = 1 << chunks.ilog2();
        while step > 0 {
            if chunk + step <= chunks {
                let zeros = step as u32 * BITS_PER_CHUNK - self.tree[chunk + step];
                if left >= zeros {
                    chunk += step;
                    left -= zeros;
                }
            }
            step /= 2;
        }
        (chunk, left)
    }
}

/// The place of the one in a word that has `before` others below it.
#[inline]
fn nth_one(word: u64, before: u32) -> u32 {
    let (mut word, mut left, mut place, mut width) = (word, before, 0, u64::BITS / 2);
    while width > 0 {
        let low = word & ((1 << width) - 1);
        let ones = low.count_ones();
        if left < ones {
            word = low;
        } else {
            left -= ones;
            word >>= width;
            place += width;
        }
        width /= 2;
    }
    place
}

fn chunk_of(number: u32) -> usize {
    (number / BITS_PER_CHUNK) as usize
}

fn word_of(number: u32) -> usize {
    (number / BITS_PER_WORD) as usize
}

fn bit(number: u32) -> u64 {
    1 << (number % BITS_PER_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(set: &RankedSet, model: &BTreeSet<u32>) {
        assert_eq!(set.len() as usize, model.len());
        let mut before = 0;
        for number in 0..set.room() + 700 {
            assert_eq!(set.before(number), before);
            match model.contains(&number) {
                true => before += 1,
                false => assert_eq!(set.absent(number - before), number),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn it_counts_as_a_tree_of_numbers_does(
            start in 0u32..1200, room in 0u32..3000, numbers in prop::collection::vec((0u32..5000, 0u32..600), 0..400),
        ) {
            let (mut set, mut model) = (RankedSet::below(start, room), (0..start).collect::<BTreeSet<_>>());
            prop_assert!(set.room() >= room.max(start));
            for (anywhere, low) in numbers {
                for number in [anywhere, low] {
                    if model.remove(&number) {
                        set.remove(number);
                    } else {
                        set.insert(number);
                        model.insert(number);
                    }
                }
            }
            check(&set, &model);
        }
    }
}
