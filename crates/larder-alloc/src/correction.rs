//! What measurements say of predictions: by which factor a tenant's requests took longer than its curves say of the partition that it had.
//!
//! An allocator that predicts keeps one for each tenant. What it makes of it is its own matter; when a prediction is wrong is said here.

use crate::Tenant;

/// Predictions are wrong where what was measured differs by more than this part of them.
const WRONG: f64 = 0.1;
/// The part of a new correction that is taken over at once.
const LEARNING: f64 = 0.5;
/// How far measurements may correct the predictions, either way.
const MAX: f64 = 2.0;

/// The correction of one tenant's predictions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Correction(Option<f64>);

impl Correction {
    /// So much was measured where the curves predict so much; of nothing, nothing is learned.
    pub fn learn(&mut self, measured: f64, predicted: f64) {
        if !(predicted > 0.0 && measured > 0.0) {
            return;
        }
        let ratio = (measured / predicted).clamp(1.0 / MAX, MAX);
        self.0 = Some(self.0.map_or(ratio, |before| before + LEARNING * (ratio - before)));
    }

    /// The factor of its predictions; 1 where nothing was measured yet.
    pub fn factor(self) -> f64 {
        self.0.unwrap_or(1.0)
    }

    /// The factor, if its predictions are wrong without it.
    pub fn if_wrong(self) -> Option<f64> {
        self.0.filter(|factor| (factor - 1.0).abs() > WRONG)
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
        correction.learn(1.09, 1.0);
        assert_eq!(correction.if_wrong(), None);
        correction.learn(1.5, 1.0);
        assert!(correction.if_wrong().is_some_and(|factor| (factor - 1.295).abs() < 1e-9));
        for wrong in [true, false] {
            correction.learn(1.0, 1.0);
            assert_eq!(correction.if_wrong().is_some(), wrong, "{correction:?}");
        }
    }

    #[test]
    fn it_is_bounded_and_learns_nothing_of_nothing() {
        let mut correction = Correction::default();
        for (measured, predicted) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::NAN)] {
            correction.learn(measured, predicted);
            assert_eq!(correction.if_wrong(), None);
        }
        correction.learn(1e9, 1.0);
        assert_eq!(correction.factor(), 2.0);
        (0..50).for_each(|_| correction.learn(1e-9, 1.0));
        assert!((correction.factor() - 0.5).abs() < 1e-9);
    }
}
