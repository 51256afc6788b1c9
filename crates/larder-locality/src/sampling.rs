//! Which blocks an analysis looks at: the spatial filter of SHARDS.
//!
//! Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST'15: a block is in the sample if its
//! hash lies below a threshold, so that all accesses to a block are seen or none. Where SHARDS draws each block for itself, here
//! each aligned stretch of 2^n blocks has the same number of its blocks in the sample, give or take one, for every n:
//! neighbours are used alike, so an even sample says as much as one of several times its size (measured on recorded disks).

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

/// A sample of the blocks, chosen by the hashes of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// A guest that does not know it cannot choose blocks of which more, or fewer, are sampled.
    secret: u64,
    /// The highest hash in the sample.
    limit: u64,
}

impl Filter {
    /// A sample of the share `rate` of all blocks; one out of range is brought to the nearest possible.
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        // Not a number gives the lowest rate. The conversion ends at the highest hash.
        let limit = (rate.max(RATE_MIN) * HASHES) as u64;
        // Seeds that differ in a few low bits give samples that have nothing in common.
        let secret = larder_policy::Rng::new(seed).next_u64();
        Self { secret, limit: if limit == u64::MAX { limit } else { limit - 1 } }
    }

    /// The hash of a block, by its key: its bits in reverse order, as in van der Corput's sequence, which spreads neighbours
    /// evenly, scrambled as Owen does it: each bit by those below it, which are the higher ones of the key. What is multiplied
    /// or added carries upwards only; the even factors keep the lowest bit of each sum, and so each step is a permutation.
    #[inline]
    pub(crate) fn hash(&self, key: u64) -> u64 {
        let mut hash = key.reverse_bits().wrapping_add(self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash.wrapping_mul(0xbf58_476d_1ce4_e5b8);
        hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^= hash.wrapping_mul(0x94d0_49bb_1331_11ea);
        hash
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_block_is_in_a_sample_at_rate_one() {
        let filter = Filter::new(1.0, 7);
        assert!(filter.rate() == 1.0 && (0..1000).all(|key| filter.takes(key << 20)));
        let (high, low) = ([2.0, f64::INFINITY], [0.0, -1.0, f64::NAN]);
        assert!(high.into_iter().all(|rate| Filter::new(rate, 7).rate() == 1.0));
        assert!(low.into_iter().all(|rate| Filter::new(rate, 7).rate() == RATE_MIN));
    }

    /// Of neighbours, of strangers and of every 64th block, the share is the rate, within five standard deviations.
    #[test]
    fn the_share_is_the_rate() {
        for rate in [0.5, 0.1, 0.01, 0.001] {
            let filter = Filter::new(rate, 42);
            for stride in [1, 3, 64, 89, 1 << 20, 1 << 43] {
                let taken = (0..1_000_000u64).filter(|key| filter.takes(key * stride)).count() as f64;
                let expected = 1e6 * rate;
                assert!(
                    (taken - expected).abs() < 5.0 * expected.sqrt(),
                    "{taken} of {expected}, stride {stride}"
                );
            }
        }
    }

    /// One in each aligned stretch of `1 / rate` neighbours, and not always at the same place of it.
    #[test]
    fn neighbours_are_drawn_evenly() {
        for length in [2u64, 16, 64, 4096] {
            let filter = Filter::new(1.0 / length as f64, 5);
            let chosen: Vec<Vec<u64>> = (77..177)
                .map(|stretch| (0..length).filter(|at| filter.takes(stretch * length + at)).collect())
                .collect();
            assert!(chosen.iter().all(|places| places.len() == 1), "of {length}: {chosen:?}");
            let places: std::collections::BTreeSet<_> = chosen.iter().flatten().collect();
            assert!(places.len() as u64 >= length.min(50), "of {length}: {places:?}");
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
