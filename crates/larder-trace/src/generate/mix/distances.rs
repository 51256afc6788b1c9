//! Distributions of reuse distances.

use super::MixError;
use crate::Rng;

/// A distribution of reuse distances: numbers of other distinct blocks accessed between two accesses to the same block.
#[derive(Clone, Debug, PartialEq)]
pub enum Distances {
    /// Always this one.
    Fixed(u64),
    /// Each from `low` to `high`, both included, equally often.
    Uniform {
        /// The shortest.
        low: u64,
        /// The longest; not below `low`.
        high: u64,
    },
    /// Exponential: the shorter, the more often. Rounded.
    Exponential {
        /// The mean; not negative.
        mean: f64,
    },
    /// Log-normal: most around the median, some far beyond it. Rounded.
    LogNormal {
        /// Half of the distances are below; not negative.
        median: f64,
        /// The standard deviation of the distances' natural logarithm; not negative.
        sigma: f64,
    },
    /// Each distance in proportion to its weight (not negative, not all 0): a measured histogram.
    Histogram(Vec<(u64, f64)>),
}

impl Distances {
    fn check(&self) -> Result<(), &'static str> {
        let possible = |number: f64| number >= 0.0 && number.is_finite();
        match self {
            Self::Uniform { low, high } if low > high => Err("go from a number to a lower one"),
            Self::Exponential { mean } if !possible(*mean) => {
                Err("have a mean that is negative or no number")
            }
            Self::LogNormal { median, sigma } if !possible(*median) || !possible(*sigma) => {
                Err("have a median or a sigma that is negative or no number")
            }
            Self::Histogram(weights) if !weights.iter().all(|&(_, weight)| possible(weight)) => {
                Err("have a weight that is negative or no number")
            }
            _ => Ok(()),
        }
    }
}

/// Draws from a distribution.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    law: Distances,
    /// Of a histogram: the sum of the weights up to each distance.
    sums: Vec<f64>,
}

impl Sampler {
    pub(super) fn new(law: Distances) -> Result<Self, MixError> {
        law.check().map_err(MixError::Distances)?;
        let Distances::Histogram(weights) = &law else { return Ok(Self { law, sums: Vec::new() }) };
        let add = |sum: &mut f64, &(_, weight): &(u64, f64)| {
            *sum += weight;
            Some(*sum)
        };
        let sums: Vec<_> = weights.iter().scan(0.0, add).collect();
        match sums.last() {
            Some(&sum) if sum > 0.0 && sum.is_finite() => Ok(Self { law, sums }),
            _ => Err(MixError::Distances("have no weight at all, or more than a number holds")),
        }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.law {
            Distances::Fixed(distance) => *distance,
            Distances::Uniform { low, high } => low + rng.below((high - low).saturating_add(1)),
            Distances::Exponential { mean } => (mean * rng.exponential()).round() as u64,
            Distances::LogNormal { median, sigma } => (median * (sigma * rng.normal()).exp()).round() as u64,
            Distances::Histogram(weights) => {
                let at = self.sums.last().map_or(0.0, |sum| sum * rng.unit());
                // Past the end only by rounding.
                let bin = self.sums.partition_point(|&sum| sum <= at);
                weights.get(bin).or(weights.last()).map_or(0, |&(distance, _)| distance)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 50_000;

    fn draws(law: Distances) -> Vec<u64> {
        let sampler = Sampler::new(law).unwrap();
        let mut rng = Rng::new(2);
        (0..DRAWS).map(|_| sampler.draw(&mut rng)).collect()
    }

    fn share_below(draws: &[u64], bound: f64) -> f64 {
        draws.iter().filter(|&&distance| (distance as f64) < bound).count() as f64 / DRAWS as f64
    }

    #[test]
    fn fixed_and_uniform_distances() {
        assert!(draws(Distances::Fixed(9)).iter().all(|&distance| distance == 9));
        let uniform = draws(Distances::Uniform { low: 3, high: 7 });
        for distance in 3..=7 {
            let share = uniform.iter().filter(|&&drawn| drawn == distance).count() as f64 / DRAWS as f64;
            assert!((share - 0.2).abs() < 0.008, "{distance}: {share}");
        }
        assert!(
            draws(Distances::Uniform { low: 0, high: u64::MAX }).iter().any(|&distance| distance > 1 << 63)
        );
    }

    #[test]
    fn exponential_distances_follow_their_law() {
        let exponential = draws(Distances::Exponential { mean: 1000.0 });
        for bound in [100.0, 500.0, 1000.0, 3000.0] {
            let law = 1.0 - (-bound / 1000.0_f64).exp();
            assert!((share_below(&exponential, bound) - law).abs() < 0.009, "{bound}");
        }
        assert!(draws(Distances::Exponential { mean: 0.0 }).iter().all(|&distance| distance == 0));
    }

    #[test]
    fn log_normal_distances_follow_their_law() {
        let log_normal = draws(Distances::LogNormal { median: 5000.0, sigma: 2.0 });
        for (deviations, law) in [(-1.0, 0.1587), (0.0, 0.5), (1.0, 0.8413), (2.0, 0.9772)] {
            let bound = 5000.0 * (2.0_f64 * deviations).exp();
            assert!((share_below(&log_normal, bound) - law).abs() < 0.009, "{deviations}");
        }
    }

    #[test]
    fn a_histogram_keeps_its_weights() {
        let drawn = draws(Distances::Histogram(vec![(5, 1.0), (70, 0.0), (4, 3.0)]));
        let share = |of: u64| drawn.iter().filter(|&&distance| distance == of).count() as f64 / DRAWS as f64;
        assert!((share(5) - 0.25).abs() < 0.008 && (share(4) - 0.75).abs() < 0.008);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let (nan, infinite) = (f64::NAN, f64::INFINITY);
        for law in [
            Distances::Uniform { low: 2, high: 1 },
            Distances::Exponential { mean: -1.0 },
            Distances::Exponential { mean: nan },
            Distances::LogNormal { median: infinite, sigma: 1.0 },
            Distances::LogNormal { median: 1.0, sigma: -1.0 },
            Distances::Histogram(vec![]),
            Distances::Histogram(vec![(1, 0.0)]),
            Distances::Histogram(vec![(1, 1.0), (2, nan)]),
            Distances::Histogram(vec![(1, f64::MAX), (2, f64::MAX)]),
        ] {
            assert!(matches!(Sampler::new(law.clone()), Err(MixError::Distances(_))), "{law:?}");
        }
    }
}
