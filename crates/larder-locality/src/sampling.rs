//! Which blocks an analysis looks at: the spatial filter of SHARDS.
//!
//! Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST'15: a block is in the sample if its
//! hash lies below a threshold, so that all accesses to a block are seen or none. Here the hashes of neighbouring blocks
//! are spread evenly: of a stretch of neighbours nearly the same share is in the sample everywhere. Blocks that are used
//! together lie together, so that such a sample tells more than one whose blocks are drawn without regard to each other.

use std::ops::Range;

/// Which blocks an analysis looks at: all, or those whose hash is low enough (SHARDS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// All blocks: exact, in memory proportional to the footprint.
    Exact,
    /// This share of the blocks, above 0 and up to 1: memory proportional to the footprint times the rate.
    Rate(f64),
    /// At most this many blocks: the rate starts at 1 and falls as the footprint grows. Constant memory.
    Blocks(u32),
}

/// The lowest rate: one block in 2^32.
const RATE_MIN: f64 = 1.0 / (1u64 << 32) as f64;

/// 2^64: how many hashes there are.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// Neighbours whose hashes are spread evenly: 2^6, an aligned stretch of 256 KiB at blocks of 4 KiB.
const GROUP_BITS: u32 = 6;
const GROUP: usize = 1 << GROUP_BITS;

/// 2^64 over the golden ratio: its multiples divide the circle of hashes into arcs of nearly equal length, however many
/// there are.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sample of the blocks, chosen by the hashes of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// A guest that does not know it cannot choose blocks of which more, or fewer, are sampled.
    seed: u64,
    /// The highest hash in the sample.
    limit: u64,
}

impl Filter {
    /// A sample of the share `rate` of all blocks; one out of range is brought to the nearest possible.
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        // Not a number gives the lowest rate. The conversion ends at the highest hash.
        let limit = (rate.max(RATE_MIN) * HASHES) as u64;
        Self { seed, limit: if limit == u64::MAX { limit } else { limit - 1 } }
    }

    /// The hash of a block, by its key.
    #[inline]
    pub(crate) fn hash(&self, key: u64) -> u64 {
        let mixed = ((key >> GROUP_BITS) ^ self.seed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed.wrapping_add((key % GROUP as u64).wrapping_mul(GOLDEN))
    }

    /// True for the blocks in the sample.
    #[inline]
    pub(crate) fn takes(&self, key: u64) -> bool {
        self.has(self.hash(key))
    }

    /// True for the hashes of blocks in the sample.
    #[inline]
    pub(crate) fn has(&self, hash: u64) -> bool {
        hash <= self.limit
    }

    /// The share of all blocks that is in the sample.
    pub(crate) fn rate(&self) -> f64 {
        (self.limit as f64 + 1.0) / HASHES
    }

    /// Leave out the blocks with a hash of `hash` and above.
    pub(crate) fn lower(&mut self, hash: u64) {
        self.limit = self.limit.min(hash.saturating_sub(1));
    }
}

/// How likely it is that a sample has any of some consecutive blocks.
#[derive(Clone, Debug)]
pub(crate) struct Chances {
    /// That it has none of so many blocks of one group.
    none_of: [f64; GROUP + 1],
}

impl Chances {
    /// Of a sample at this rate.
    pub(crate) fn new(rate: f64) -> Self {
        let mut none_of = [1.0; GROUP + 1];
        let mut hashes = Vec::with_capacity(GROUP);
        for (at, none_of) in (0..).zip(&mut none_of[1..]) {
            let hash = GOLDEN.wrapping_mul(at);
            hashes.insert(hashes.partition_point(|&other| other < hash), hash);
            *none_of = none_below(&hashes, rate);
        }
        Self { none_of }
    }

    /// The chance to see a request for blocks with these keys; 0 for none.
    pub(crate) fn any(&self, keys: Range<u64>) -> f64 {
        let group = GROUP as u64;
        let blocks = keys.end.saturating_sub(keys.start);
        let head = blocks.min(group - keys.start % group);
        let (whole, tail) = ((blocks - head) / group, (blocks - head) % group);
        let none_of = |blocks: u64| self.none_of[blocks as usize];
        1.0 - none_of(head) * none_of(group).powi(whole.min(i32::MAX as u64) as i32) * none_of(tail)
    }
}

/// The chance that none of some hashes (at least one, in rising order) lies in a given part `rate` of the circle of hashes, after the circle was
/// turned by chance: each gap between neighbours is free of hashes in the part by which it is longer.
fn none_below(hashes: &[u64], rate: f64) -> f64 {
    let next = hashes.iter().cycle().skip(1);
    let gaps = hashes.iter().zip(next).map(|(&hash, &next)| match next.wrapping_sub(hash) {
        // A single one: once around.
        0 => 1.0,
        gap => gap as f64 / HASHES,
    });
    gaps.map(|gap| (gap - rate).max(0.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_block_is_in_a_sample_at_rate_one() {
        let filter = Filter::new(1.0, 7);
        assert!(filter.rate() == 1.0 && (0..1000).all(|key| filter.takes(key << 20)));
        for (rate, brought) in [(2.0, 1.0), (f64::INFINITY, 1.0), (0.0, RATE_MIN), (-1.0, RATE_MIN), (f64::NAN, RATE_MIN)]
        {
            assert_eq!(Filter::new(rate, 7).rate(), brought);
        }
    }

    /// Of neighbours, of strangers and of every 64th block, the share is the rate, within five standard deviations of
    /// independent draws.
    #[test]
    fn the_share_is_the_rate() {
        for rate in [0.5, 0.1, 0.01, 0.001] {
            let filter = Filter::new(rate, 42);
            for stride in [1, 3, 64, 89, 1 << 20] {
                let taken = (0..1_000_000u64).filter(|key| filter.takes(key * stride)).count() as f64;
                let expected = 1e6 * rate;
                assert!((taken - expected).abs() < 5.0 * expected.sqrt(), "{taken} of {expected}, stride {stride}");
            }
        }
    }

    /// How many of a group are in the sample differs by little from group to group.
    #[test]
    fn neighbours_are_sampled_evenly() {
        for (rate, few, many) in [(0.5, 31, 33), (0.25, 15, 17), (0.1, 5, 8), (0.01, 0, 1)] {
            let filter = Filter::new(rate, 3);
            for group in 0..10_000u64 {
                let taken = (0..64).filter(|key| filter.takes(group << GROUP_BITS | key)).count();
                assert!((few..=many).contains(&taken), "{taken} of 64 at {rate}");
            }
        }
    }

    /// Against the share of requests all over the place that the sample has a block of.
    #[test]
    fn chances_are_what_happens() {
        for rate in [1.0, 0.3, 0.02, 0.001] {
            let (filter, chances) = (Filter::new(rate, 11), Chances::new(rate));
            for (offset, blocks) in [(0, 0), (5, 1), (0, 2), (60, 3), (62, 7), (0, 64), (30, 64), (3, 200), (0, 256)] {
                let first = |at: u64| (at * 977) << GROUP_BITS | offset;
                let seen = |at: &u64| (0..blocks).any(|block| filter.takes(first(*at) + block));
                let share = (0..20_000).filter(seen).count() as f64 / 20_000.0;
                let chance = chances.any(first(0)..first(0) + blocks);
                let deviation = (chance * (1.0 - chance) / 20_000.0).sqrt();
                assert!((share - chance).abs() <= 5.0 * deviation, "{share} for {chance}: {blocks} at {rate}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_lower_limit_keeps_just_the_hashes_below(seed: u64, rate in 0.1f64..1.0, to in 0u64..200, keys: u64) {
            let mut filter = Filter::new(rate, seed);
            let before = filter;
            let hash = filter.hash(keys.wrapping_add(to));
            filter.lower(hash);
            for key in (0..200).map(|at| keys.wrapping_add(at)) {
                prop_assert_eq!(filter.takes(key), before.takes(key) && filter.hash(key) < hash);
            }
        }
    }
}
