//! Latencies of many requests: their mean, and what share takes how long.

use hdrhistogram::Histogram;

/// Nanoseconds of the longest latency that is told from longer ones: a month, for backings that are overburdened by far.
const LONGEST_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// Latencies, in nanoseconds; percentiles are within 1 %.
#[derive(Clone, Debug)]
pub(super) struct Latency {
    histogram: Histogram<u64>,
    sum_ns: u128,
}

impl Latency {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2)
            .expect("the bounds are in order, and two digits may be asked for");
        Self { histogram, sum_ns: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.histogram.saturating_record(ns.max(1));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    pub(super) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Seconds in the mean; 0 without any.
    pub(super) fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_ns as f64 / self.count() as f64 / 1e9 }
    }

    /// Seconds that this share (0 to 1) of the requests does not exceed.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_exact_and_percentiles_close() {
        let (mut one, mut other) = (Latency::new(), Latency::new());
        (1..=500).for_each(|ms| one.add(ms * 1_000_000));
        (501..=1000).for_each(|ms| other.add(ms * 1_000_000));
        one.merge(&other);
        assert_eq!(one.count(), 1000);
        assert!((one.mean() - 0.5005).abs() < 1e-12);
        for (share, seconds) in [(0.5, 0.5), (0.99, 0.99)] {
            assert!((one.quantile(share) / seconds - 1.0).abs() < 0.01, "{share}");
        }
        assert_eq!(Latency::new().mean(), 0.0);
        one.add(u64::MAX);
        assert!(one.quantile(1.0) > 29.0 * 86_400.0);
    }
}
