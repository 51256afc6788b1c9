//! Times of many requests: their mean, and what share takes how long.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Nanoseconds of the longest time that is told from longer ones: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Times, in nanoseconds; percentiles are within 0.1 %.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    sum_ns: u128,
    longest_ns: u64,
}

/// What is told of them, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Times {
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3)
            .expect("the bounds are in order, and three digits may be asked for");
        Self { histogram, sum_ns: 0, longest_ns: 0 }
    }

    pub fn add(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.longest_ns = self.longest_ns.max(ns);
        self.histogram.saturating_record(ns.max(1));
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// None of nothing.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let max = self.longest_ns as f64 / 1e9;
        // The histogram tells the upper end of a range of times.
        let of = |share| (self.histogram.value_at_quantile(share) as f64 / 1e9).min(max);
        (self.count() > 0).then(|| Percentiles {
            mean: self.sum_ns as f64 / self.count() as f64 / 1e9,
            p50: of(0.5),
            p95: of(0.95),
            p99: of(0.99),
            p999: of(0.999),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_close_and_the_rest_is_exact() {
        let mut times = Times::new();
        assert!(times.percentiles().is_none());
        (1..=1000).for_each(|ms| times.add(ms * 1_000_000));
        let told = times.percentiles().expect("there are some");
        for (told, expected) in [(told.p50, 0.5), (told.p95, 0.95), (told.p99, 0.99), (told.p999, 0.999)] {
            assert!((told / expected - 1.0).abs() < 0.001, "{told} {expected}");
        }
        assert!((told.mean - 0.5005).abs() < 1e-12);
        assert_eq!((times.count(), told.max), (1000, 1.0));
        times.add(u64::MAX);
        assert!(times.percentiles().is_some_and(|told| told.max > 1e10));
    }
}
