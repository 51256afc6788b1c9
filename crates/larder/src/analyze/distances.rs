//! Reuse distances: the largest, percentiles, and how many there are of which.

use larder_locality::DistanceHistogram;

/// Percentiles that are told, and their names.
pub const PERCENTILES: [(&str, u64); 5] = [("50", 500), ("90", 900), ("95", 950), ("99", 990), ("99.9", 999)];

/// What is told of reuse distances, in blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distances {
    /// Accesses that have a distance.
    pub count: u64,
    /// The largest.
    pub max: Option<u64>,
    /// For each of [`PERCENTILES`], the smallest distance that so many accesses do not exceed; none where there are no distances.
    pub percentiles: Option<[u64; 5]>,
    /// Distances from 0 to 1, from 1 to 2, from 2 to 4, from 4 to 8, …: the first one beyond each of these bins, and how many are in it. All bins up to the largest distance.
    pub octaves: Vec<(u64, u64)>,
}

impl Distances {
    /// Of these.
    pub fn new(histogram: &DistanceHistogram) -> Self {
        let count = histogram.total();
        Self {
            count,
            max: histogram.max(),
            percentiles: (count > 0).then(|| percentiles(histogram, count)),
            octaves: octaves(histogram),
        }
    }

    /// The cache that serves all of them; 0 where there are none.
    pub fn blocks(&self) -> u64 {
        self.max.map_or(0, |max| max + 1)
    }
}

fn percentiles(histogram: &DistanceHistogram, count: u64) -> [u64; 5] {
    let (mut entries, mut seen, mut here) = (histogram.iter(), 0, 0);
    PERCENTILES.map(|(_, per_mille)| {
        let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000);
        while u128::from(seen) < rank {
            let Some((distance, more)) = entries.next() else { break };
            (here, seen) = (distance, seen + more);
        }
        here
    })
}

fn octaves(histogram: &DistanceHistogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (distance, count) in histogram.iter() {
        while bins.last().is_none_or(|&(end, _)| distance >= end && end < u64::MAX) {
            let end = bins.last().map_or(1, |&(end, _)| end.saturating_mul(2));
            bins.push((end, 0));
        }
        if let Some((_, counted)) = bins.last_mut() {
            *counted += count;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_distances_that_occur() {
        let histogram: DistanceHistogram = (0..1000).map(|distance| (distance, 1)).collect();
        let distances = Distances::new(&histogram);
        assert_eq!(distances.percentiles, Some([499, 899, 949, 989, 998]));
        assert_eq!((distances.max, distances.blocks(), distances.count), (Some(999), 1000, 1000));
        let one: DistanceHistogram = [(7, 1)].into_iter().collect();
        assert_eq!(Distances::new(&one).percentiles, Some([7; 5]));
        let skewed: DistanceHistogram = [(0, 90), (5, 10)].into_iter().collect();
        assert_eq!(Distances::new(&skewed).percentiles, Some([0, 0, 5, 5, 5]));
    }

    #[test]
    fn octaves_reach_to_the_largest_distance() {
        let histogram: DistanceHistogram = [(0, 1), (2, 3), (3, 4), (9, 5)].into_iter().collect();
        assert_eq!(Distances::new(&histogram).octaves, [(1, 1), (2, 0), (4, 7), (8, 0), (16, 5)]);
    }

    #[test]
    fn without_distances_nothing_is_told() {
        assert_eq!(Distances::new(&DistanceHistogram::default()), Distances::default());
        assert_eq!(Distances::default().blocks(), 0);
    }
}
