//! Which blocks of which volume were read and written: a map of 64 blocks at a time.

use std::collections::HashMap;
use std::ops::Range;

const WORD_BLOCKS: u64 = 64;

/// Blocks of a volume, by the last bits of their numbers: those that were read, and those that were written.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    read: u64,
    written: u64,
}

/// Blocks that an access touches for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Neither read nor written before.
    pub touched: u64,
    /// Read, and not read before.
    pub read: u64,
    /// Written, and not written before.
    pub written: u64,
}

/// The blocks of all volumes. Memory is some 5 bytes a block where they lie side by side, and some 50 where they lie alone.
#[derive(Debug, Default)]
pub struct Footprint {
    /// By volume and the upper bits of blocks. Only looked up, never walked: its order shows nowhere.
    words: HashMap<(u32, u64), Word>,
}

impl Footprint {
    /// Blocks of a volume are read or written.
    pub fn access(&mut self, volume: u32, blocks: Range<u64>, is_write: bool) -> Fresh {
        let (mut fresh, mut block) = (Fresh::default(), blocks.start);
        while block < blocks.end {
            let number = block / WORD_BLOCKS;
            let end = blocks.end.min((number + 1) * WORD_BLOCKS);
            let mask = mask(block % WORD_BLOCKS, end - block);
            let word = self.words.entry((volume, number)).or_default();
            let count = |known: u64| u64::from((mask & !known).count_ones());
            fresh.touched += count(word.read | word.written);
            if is_write {
                fresh.written += count(word.written);
                word.written |= mask;
            } else {
                fresh.read += count(word.read);
                word.read |= mask;
            }
            block = end;
        }
        fresh
    }
}

/// `count` bits, at least one, from bit `first` on.
fn mask(first: u64, count: u64) -> u64 {
    (u64::MAX >> (WORD_BLOCKS - count)) << first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn reads_and_writes_are_told_apart() {
        let mut footprint = Footprint::default();
        assert_eq!(footprint.access(0, 60..70, false), Fresh { touched: 10, read: 10, written: 0 });
        assert_eq!(footprint.access(0, 65..75, true), Fresh { touched: 5, read: 0, written: 10 });
        assert_eq!(footprint.access(0, 60..75, false), Fresh { touched: 0, read: 5, written: 0 });
        assert_eq!(footprint.access(1, 60..61, false), Fresh { touched: 1, read: 1, written: 0 });
        assert_eq!(footprint.access(0, 7..7, false), Fresh::default());
    }

    #[test]
    fn memory_follows_the_distinct_blocks_alone() {
        let mut footprint = Footprint::default();
        let mut words = [0; 3];
        for words in &mut words {
            for block in 0..10_000 {
                footprint.access(0, block..block + 1, block % 2 == 0);
            }
            *words = footprint.words.len();
        }
        assert_eq!(words, [10_000usize.div_ceil(64); 3]);
    }

    proptest! {
        #[test]
        fn counts_like_sets(
            accesses in prop::collection::vec((0u32..2, prop_oneof![0u64..300, (1u64 << 55) - 300..(1 << 55) - 200], 0u64..200, any::<bool>()), 0..50),
        ) {
            let mut footprint = Footprint::default();
            let (mut touched, mut by_kind) = (BTreeSet::new(), [BTreeSet::new(), BTreeSet::new()]);
            for (volume, start, count, is_write) in accesses {
                let fresh = footprint.access(volume, start..start + count, is_write);
                let mut expected = [0, 0];
                for block in start..start + count {
                    expected[0] += u64::from(touched.insert((volume, block)));
                    expected[1] += u64::from(by_kind[usize::from(is_write)].insert((volume, block)));
                }
                let of_kind = if is_write { (0, expected[1]) } else { (expected[1], 0) };
                prop_assert_eq!((fresh.touched, (fresh.read, fresh.written)), (expected[0], of_kind));
            }
        }
    }
}
