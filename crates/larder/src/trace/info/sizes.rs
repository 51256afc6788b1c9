//! How large requests are: their sizes, counted.

use std::collections::BTreeMap;

use serde::Serialize;

/// Different sizes that are counted exactly.
const EXACT_MAX: usize = 1 << 16;

/// Steps per power of two of the sizes that come after those.
const STEPS: u32 = 64;

/// Counts of sizes. Those after the first 65,536 different ones are rounded up, by less than 1/64, so that memory has a limit.
#[derive(Debug, Default)]
pub struct Sizes {
    counts: BTreeMap<u32, u64>,
    total: u64,
    bytes: u128,
    max: u32,
}

/// Sizes of requests in bytes; none where there are no requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RequestBytes {
    /// The smallest.
    pub min: Option<u32>,
    /// The mean.
    pub mean: Option<f64>,
    /// The median: half of the requests are at most as large.
    pub p50: Option<u32>,
    /// 99 % are at most as large.
    pub p99: Option<u32>,
    /// The largest.
    pub max: Option<u32>,
}

impl Sizes {
    /// Count a request of so many bytes.
    pub fn add(&mut self, len: u32) {
        let has_room = self.counts.len() < EXACT_MAX || self.counts.contains_key(&len);
        let counted = if has_room { len } else { rounded(len) };
        *self.counts.entry(counted).or_default() += 1;
        self.total += 1;
        self.bytes += u128::from(len);
        self.max = self.max.max(len);
    }

    /// What there was.
    pub fn findings(&self) -> RequestBytes {
        let mean = (self.total > 0).then(|| self.bytes as f64 / self.total as f64);
        let max = (self.total > 0).then_some(self.max);
        RequestBytes {
            min: self.counts.first_key_value().map(|(&len, _)| len),
            mean,
            p50: self.quantile(50),
            p99: self.quantile(99),
            max,
        }
    }

    /// The least size that `percent` of the requests do not exceed.
    fn quantile(&self, percent: u64) -> Option<u32> {
        let rank = (u128::from(self.total) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let reached = self.counts.iter().find(|&(_, &count)| {
            below += u128::from(count);
            below >= rank
        });
        reached.map(|(&len, _)| len.min(self.max))
    }
}

/// The next step at or above.
fn rounded(len: u32) -> u32 {
    let step = (len.max(1).ilog2().saturating_sub(STEPS.ilog2())).min(31);
    len.div_ceil(1 << step).saturating_mul(1 << step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn findings(sizes: impl IntoIterator<Item = u32>) -> RequestBytes {
        let mut counts = Sizes::default();
        sizes.into_iter().for_each(|len| counts.add(len));
        counts.findings()
    }

    #[test]
    fn nothing_has_no_size() {
        assert_eq!(findings([]), RequestBytes { min: None, mean: None, p50: None, p99: None, max: None });
    }

    #[test]
    fn a_hundred_sizes() {
        let expected =
            RequestBytes { min: Some(1), mean: Some(50.5), p50: Some(50), p99: Some(99), max: Some(100) };
        assert_eq!(findings((1..=100).rev()), expected);
        let one = RequestBytes { min: Some(7), mean: Some(7.0), p50: Some(7), p99: Some(7), max: Some(7) };
        assert_eq!(findings([7]), one);
    }

    #[test]
    fn many_different_sizes_take_limited_memory() {
        let mut counts = Sizes::default();
        (0..400_000u32).for_each(|number| counts.add(number.wrapping_mul(2_654_435_761)));
        assert!(counts.counts.len() <= EXACT_MAX + 32 * STEPS as usize, "{}", counts.counts.len());
        let found = counts.findings();
        let near = |found: Option<u32>, share: f64| {
            let expected = share * 2f64.powi(32);
            (f64::from(found.unwrap()) / expected - 1.0).abs() < 0.02
        };
        assert!(near(found.p50, 0.5) && near(found.p99, 0.99), "{found:?}");
    }

    proptest! {
        #[test]
        fn rounding_adds_less_than_a_step(len: u32) {
            let rounded = rounded(len);
            prop_assert!(rounded >= len && u64::from(rounded - len) * u64::from(STEPS) <= u64::from(len));
        }
    }
}
