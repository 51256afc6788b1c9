//! What an epoch told about a tenant, in numbers that an allocator can use.

use crate::{ClassCounts, HitCurve};

/// How many accesses had which distance: sorted by distance, without empty entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistanceHistogram {
    entries: Vec<(u64, u64)>,
}

impl DistanceHistogram {
    /// The entries `(distance, count)` in rising order of distance; no count is zero.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.entries.iter().copied()
    }

    /// The largest distance, if there is any.
    pub fn max(&self) -> Option<u64> {
        self.entries.last().map(|&(distance, _)| distance)
    }

    /// All accesses counted.
    pub fn total(&self) -> u64 {
        self.entries.iter().map(|&(_, count)| count).sum()
    }
}

impl FromIterator<(u64, u64)> for DistanceHistogram {
    /// From pairs `(distance, count)` in any order; counts of the same distance are added.
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(pairs: I) -> Self {
        let mut entries: Vec<_> = pairs.into_iter().filter(|&(_, count)| count > 0).collect();
        entries.sort_unstable_by_key(|&(distance, _)| distance);
        entries.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        Self { entries }
    }
}

/// What one tenant did in one epoch. Distances and sizes are in blocks. Counts of requests and accesses are exact; what goes
/// by blocks is an estimate where blocks are sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochFindings {
    /// Requests; each touches one block or more.
    pub requests: u64,
    /// Block accesses: a request counts once for every block that it touches.
    pub accesses: u64,
    /// Block accesses by request class.
    pub classes: ClassCounts,
    /// Largest reuse distance of any access; none where no block was accessed again.
    pub trd_max: Option<u64>,
    /// Blocks that were remembered at most: an access to one not used for longer counts as its first, and has no distance.
    pub history_blocks: u64,
    /// Largest useful reuse distance; none where no remembered block was read.
    pub urd_max: Option<u64>,
    /// Useful reuse distances.
    pub useful: DistanceHistogram,
    /// Distinct blocks accessed in the epoch (a block that was forgotten in between counts again).
    pub footprint_blocks: u64,
}

impl EpochFindings {
    /// The LRU cache that holds every block until it is accessed again: the largest TRD and one; 0 without any.
    pub fn trd_blocks(&self) -> u64 {
        self.trd_max.map_or(0, |distance| distance + 1)
    }

    /// The LRU cache that serves every read that a cache can serve: the largest URD and one; 0 without any.
    pub fn urd_blocks(&self) -> u64 {
        self.urd_max.map_or(0, |distance| distance + 1)
    }

    /// ECI-Cache's `writeRatio`: the share of WAW and WAR among all accesses, from 0 to 1.
    pub fn write_ratio(&self) -> f64 {
        self.classes.write_ratio()
    }

    /// Hit ratio over cache size.
    pub fn hit_curve(&self) -> HitCurve {
        HitCurve::new(&self.useful, self.accesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_sorts_adds_and_drops_empty_entries() {
        let histogram: DistanceHistogram = [(7, 1), (2, 5), (7, 2), (3, 0), (2, 1)].into_iter().collect();
        assert_eq!(histogram.iter().collect::<Vec<_>>(), [(2, 6), (7, 3)]);
        assert_eq!((histogram.max(), histogram.total()), (Some(7), 9));
        assert_eq!(histogram, [(2, 6), (7, 3)].into_iter().collect());
    }

    #[test]
    fn an_empty_epoch_wants_nothing() {
        let nothing = EpochFindings::default();
        assert_eq!((nothing.trd_blocks(), nothing.urd_blocks()), (0, 0));
        assert_eq!(nothing.write_ratio(), 0.0);
        assert_eq!(nothing.hit_curve().ratio(u64::MAX), 0.0);
    }
}
