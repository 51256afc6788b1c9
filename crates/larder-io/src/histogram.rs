//! Latencies counted in fixed buckets whose widths grow with the latency: no allocation, no division, the same bounds in every reactor, so that
//! histograms are added by adding their counts.
//!
//! Each doubling of the latency, from [`Histogram::FIRST_NS`] on, is four buckets of the same width: a quantile is off by less than a fifth.

use std::fmt;

/// Bits of a latency that choose a bucket within its doubling.
const FINE_BITS: u32 = 2;
/// Buckets in a doubling.
const FINE: usize = 1 << FINE_BITS;
/// The first bucket goes up to two to this power, in nanoseconds.
const FIRST_BITS: u32 = 10;
/// Doublings above the first bucket: up to 69 s.
const DOUBLINGS: usize = 26;
/// All buckets: the first, those of the doublings, and one for what is longer.
const BUCKETS: usize = 1 + DOUBLINGS * FINE + 1;

/// How many took how long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum_ns: 0 }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).field("sum_ns", &self.sum_ns).finish()
    }
}

impl Histogram {
    /// The upper bound of the first bucket, in nanoseconds: what is shorter is not told apart.
    pub const FIRST_NS: u64 = 1 << FIRST_BITS;

    /// Count one.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket_of(ns)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Count all that another one counts.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What they took together, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Their mean, in nanoseconds; `None` before the first.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count())
    }

    /// The bound in nanoseconds that so large a part of them (from 0 to 1) did not exceed; `None` before the first. Where the longest are asked for, which no
    /// bucket bounds, it is the last bound.
    pub fn quantile_ns(&self, part: f64) -> Option<u64> {
        let count = self.count();
        let wanted = ((count as f64 * part).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        (count > 0).then(|| {
            let reached = |count: &u64| {
                seen += count;
                seen >= wanted
            };
            bound_of(self.counts.iter().position(reached).unwrap_or(BUCKETS - 1).min(BUCKETS - 2))
        })
    }

    /// For each doubling, from the shortest: its upper bound in nanoseconds, and how many did not take longer than that. What took longer than the last bound is
    /// in [`Histogram::count`] alone.
    pub fn doublings(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut below = 0;
        (0..=DOUBLINGS).map(move |doubling| {
            let first = if doubling == 0 { 0 } else { (doubling - 1) * FINE + 1 };
            let last = doubling * FINE;
            below += self.counts[first..=last].iter().sum::<u64>();
            (bound_of(last), below)
        })
    }
}

/// The bucket of a latency. Each holds its upper bound, and not its lower.
#[inline]
fn bucket_of(ns: u64) -> usize {
    // So that a power of two is the end of its doubling.
    let below = ns.saturating_sub(1);
    if below < Histogram::FIRST_NS {
        return 0;
    }
    let bits = below.ilog2();
    let fine = (below >> (bits - FINE_BITS)) as usize & (FINE - 1);
    (1 + (bits - FIRST_BITS) as usize * FINE + fine).min(BUCKETS - 1)
}

/// The upper bound of a bucket that has one, in nanoseconds.
fn bound_of(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => Histogram::FIRST_NS,
        Some(index) => {
            let low = Histogram::FIRST_NS << (index / FINE);
            low + (low >> FINE_BITS) * (index % FINE + 1) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_bucket_holds_its_bound_and_the_next_begins_after_it() {
        for bucket in 0..BUCKETS - 1 {
            let bound = bound_of(bucket);
            assert_eq!((bucket_of(bound), bucket_of(bound + 1)), (bucket, bucket + 1), "{bound}");
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
        assert_eq!(bound_of(BUCKETS - 2), 1 << 36);
    }

    #[test]
    fn doublings_count_all_up_to_their_bound() {
        let mut histogram = Histogram::default();
        [1, 1024, 1025, 1500, 2048, 2049, 1 << 36, (1 << 36) + 1].iter().for_each(|&ns| histogram.record(ns));
        let doublings: Vec<_> = histogram.doublings().collect();
        assert_eq!(doublings[..3], [(1024, 2), (2048, 5), (4096, 6)]);
        assert_eq!(doublings.last(), Some(&(1 << 36, 7)));
        assert_eq!(histogram.count(), 8, "the longest is in no doubling");
        assert_eq!(histogram.quantile_ns(1.0), Some(1 << 36));
    }

    #[test]
    fn nothing_has_no_mean_and_no_quantile() {
        let empty = Histogram::default();
        assert_eq!((empty.count(), empty.mean_ns(), empty.quantile_ns(0.5)), (0, None, None));
    }

    proptest! {
        #[test]
        fn quantiles_are_close_and_sums_exact(mut times in prop::collection::vec(1_025_u64..(1 << 36), 1..200), part in 0.0..=1.0_f64) {
            let mut halves = [Histogram::default(); 2];
            times.iter().enumerate().for_each(|(index, &ns)| halves[index % 2].record(ns));
            let mut all = halves[0];
            all.add(&halves[1]);
            prop_assert_eq!((all.count(), all.sum_ns()), (times.len() as u64, times.iter().sum::<u64>()));
            times.sort_unstable();
            let rank = ((times.len() as f64 * part).ceil() as usize).clamp(1, times.len());
            let (exact, told) = (times[rank - 1], all.quantile_ns(part).unwrap_or(0));
            prop_assert!(exact <= told && told as f64 <= exact as f64 * 1.25, "{} for {}", told, exact);
        }
    }
}
