//! Hit ratio over cache size: the step function of ECI-Cache's Algorithm 2.

use crate::{DistanceHistogram, SizeCurve};

/// How many accesses an LRU cache of each size would have served: those RAR and RAW accesses whose distance is below it.
///
/// The ratio is over *all* block accesses, as in the paper: a tenant that only writes has a flat curve at zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HitCurve {
    accesses: u64,
    hits: SizeCurve,
}

impl HitCurve {
    /// From the useful distances of an epoch with `accesses` block accesses in all.
    pub fn new(useful: &DistanceHistogram, accesses: u64) -> Self {
        let served = useful.iter().map(|(distance, count)| (distance.saturating_add(1), count));
        Self { accesses, hits: SizeCurve::rising(served) }
    }

    /// Block accesses in all: what the ratio is taken of.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Accesses served by a cache of `blocks`.
    pub fn hits(&self, blocks: u64) -> u64 {
        self.hits.at(blocks)
    }

    /// Share of all accesses served by a cache of `blocks`, from 0 to 1; 0 where there were no accesses.
    pub fn ratio(&self, blocks: u64) -> f64 {
        match self.accesses {
            0 => 0.0,
            accesses => self.hits(blocks) as f64 / accesses as f64,
        }
    }

    /// The steps `(blocks, hits)`: the sizes at which the curve rises, and the accesses served from there on.
    pub fn steps(&self) -> &[(u64, u64)] {
        self.hits.steps()
    }

    /// The smallest cache that serves all that any cache can: 0 where nothing can be served.
    pub fn full_blocks(&self) -> u64 {
        self.hits.full_blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_curve_steps_where_the_distances_are() {
        let useful: DistanceHistogram = [(0, 1), (1, 2), (4, 5)].into_iter().collect();
        let curve = HitCurve::new(&useful, 16);
        let hits: Vec<_> = (0..8).map(|blocks| curve.hits(blocks)).collect();
        assert_eq!(hits, [0, 1, 3, 3, 3, 8, 8, 8]);
        assert_eq!((curve.ratio(5), curve.full_blocks()), (0.5, 5));
    }

    proptest! {
        #[test]
        fn hits_are_the_accesses_with_a_smaller_distance(
            pairs in proptest::collection::vec((0u64..50, 1u64..9), 0..20), blocks in 0u64..60,
        ) {
            let useful: DistanceHistogram = pairs.iter().copied().collect();
            let expected: u64 = pairs.iter().filter(|pair| pair.0 < blocks).map(|pair| pair.1).sum();
            prop_assert_eq!(HitCurve::new(&useful, 1000).hits(blocks), expected);
        }
    }
}
