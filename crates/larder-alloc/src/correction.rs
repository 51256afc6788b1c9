//! What measurements say of predictions: by which factor a tenant's requests took longer than its curves say of the partition that it had.
//!
//! An allocator that predicts keeps one for each tenant. What it makes of it is its own matter; when a prediction is wrong is said here.

use crate::Tenant;

/// Predictions are wrong where what was measured differs by more than this part of them.
const WRONG: f64 = 0.1;
/// How far measurements may correct the predictions, either way.
const MAX: f64 = 2.0;

/// The correction of one tenant's predictions: the mean of what was measured in so many epochs, about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correction {
    factor: f64,
    learned: f64,
    epochs: f64,
}

impl Default for Correction {
    /// Of two epochs: what was wrong is forgotten by halves.
    fn default() -> Self {
        Self::of_epochs(2)
    }
}

impl Correction {
    /// Of so many epochs, one at least.
    pub fn of_epochs(epochs: u32) -> Self {
        Self { factor: 1.0, learned: 0.0, epochs: f64::from(epochs.max(1)) }
    }

    /// Of no more than so many epochs from now on.
    pub fn limit_epochs(&mut self, epochs: u32) {
        self.epochs = f64::from(epochs.max(1));
    }

    /// So much was measured where the curves predict so much, in this part of an epoch (0 to 1); of nothing, nothing is learned.
    ///
    /// It counts for that part: a few requests after a decision within an epoch are a matter of chance.
    pub fn learn(&mut self, measured: f64, predicted: f64, part: f64) {
        if !(predicted > 0.0 && measured > 0.0) {
            return;
        }
        let ratio = (measured / predicted).clamp(1.0 / MAX, MAX);
        self.learned = (self.learned + part).min(self.epochs);
        // Until a whole epoch was measured, the curves are trusted for what is missing of it.
        self.factor += (ratio - self.factor) * part / self.learned.max(1.0);
    }

    /// The factor of its predictions; 1 where nothing was measured yet.
    pub fn factor(self) -> f64 {
        self.factor
    }

    /// The factor, if its predictions are wrong without it.
    pub fn if_wrong(self) -> Option<f64> {
        Some(self.factor).filter(|factor| (factor - 1.0).abs() > WRONG)
    }
}

/// Blocks that the tenant holds of its quota; all of it where that is not known.
pub(crate) fn held_blocks(tenant: &Tenant<'_>) -> u64 {
    let resident = tenant.findings.map_or(0, |findings| findings.usage.resident_blocks);
    let held = if resident > 0 { resident.min(tenant.quota_blocks) } else { tenant.quota_blocks };
    held.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_by_more_than_a_tenth_is_corrected_until_it_is_right() {
        let mut correction = Correction::default();
        assert_eq!((correction.factor(), correction.if_wrong()), (1.0, None));
        correction.learn(1.09, 1.0, 1.0);
        assert_eq!(correction.if_wrong(), None);
        correction.learn(1.5, 1.0, 1.0);
        assert!(correction.if_wrong().is_some_and(|factor| (factor - 1.295).abs() < 1e-9));
        for wrong in [true, false] {
            correction.learn(1.0, 1.0, 1.0);
            assert_eq!(correction.if_wrong().is_some(), wrong, "{correction:?}");
        }
    }

    #[test]
    fn it_is_a_mean_of_epochs_and_forgets_the_oldest_by_and_by() {
        let mut correction = Correction::of_epochs(4);
        let factors = [1.1, 1.6, 1.0, 1.1, 2.0, 1.0].map(|ratio| {
            correction.learn(ratio, 1.0, 1.0);
            correction.factor()
        });
        let expected = [1.1, 1.35, 3.7 / 3.0, 1.2, 1.4, 1.3];
        assert!(factors.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{factors:?}");
    }

    #[test]
    fn a_part_of_an_epoch_counts_for_that_part() {
        let mut correction = Correction::default();
        // Of a quarter of an epoch alone, the curves count for the rest.
        correction.learn(2.0, 1.0, 0.25);
        assert_eq!(correction.factor(), 1.25);
        // A quarter is forgotten with each of the next.
        (0..3).for_each(|_| correction.learn(1.0, 1.0, 0.25));
        assert!((correction.factor() - 1.105).abs() < 1e-3, "{}", correction.factor());
        correction.learn(2.0, 1.0, 0.0);
        assert!((correction.factor() - 1.105).abs() < 1e-3, "{}", correction.factor());
    }

    #[test]
    fn it_is_bounded_and_learns_nothing_of_nothing() {
        let mut correction = Correction::default();
        for (measured, predicted) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::NAN)] {
            correction.learn(measured, predicted, 1.0);
            assert_eq!(correction.if_wrong(), None);
        }
        correction.learn(1e9, 1.0, 1.0);
        assert_eq!(correction.factor(), 2.0);
        (0..50).for_each(|_| correction.learn(1e-9, 1.0, 1.0));
        assert!((correction.factor() - 0.5).abs() < 1e-9);
    }
}
