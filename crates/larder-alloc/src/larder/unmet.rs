//! Whether a promise that was granted comes.
//!
//! It is granted by what is expected of the partition once that is filled. That may never be: with a budget of SSD writes that lets too little in, with other devices
//! than were measured, with requests that no curve tells of. Then it is refused by what came, since what the partition takes from the other tenants brings nobody what was promised.

use crate::{Reservation, SinceDecision};

/// Epochs in which a promise does not come, and comes no nearer, after which it is refused.
const EPOCHS: f64 = 4.0;
/// Then it is tried again after so many epochs; after twice as many each time, up to [`PATIENCE_MAX`].
const PATIENCE: f64 = 8.0;
const PATIENCE_MAX: f64 = 64.0;
/// What misses a promise by less than this part keeps it; a latency that falls by as much comes nearer.
const NEARLY: f64 = 0.1;

/// What came of what a tenant was promised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unmet {
    reserved: Option<Reservation>,
    /// The latency that was promised.
    limit: Option<f64>,
    /// Epochs in which it did not come.
    late_epochs: f64,
    /// The least latency in these.
    least: Option<f64>,
    /// Epochs since it was refused.
    refused_epochs: f64,
    /// Times that that was over.
    refused: u32,
}

impl Unmet {
    /// What was measured under a decision.
    pub(super) fn learn(&mut self, reserved: Option<Reservation>, under: &SinceDecision, epoch_seconds: f64) {
        self.keep_to(reserved);
        let (Some(latency), true) = (under.measured.mean_latency(), epoch_seconds > 0.0) else { return };
        let part = under.seconds / epoch_seconds;
        if self.came().is_some() {
            self.refused_epochs += part;
            if self.refused_epochs >= self.patience() {
                (self.late_epochs, self.least, self.refused_epochs) = (0.0, None, 0.0);
                self.refused = self.refused.saturating_add(1);
            }
            return;
        }
        let Some(limit) = self.limit else { return };
        if latency <= limit * (1.0 + NEARLY) {
            *self = Self { reserved, limit: self.limit, ..Self::default() };
        } else if self.least.is_some_and(|least| latency > least * (1.0 - NEARLY)) {
            self.late_epochs += part;
            self.least = self.least.map(|least| least.min(latency));
        } else {
            (self.late_epochs, self.least) = (0.0, Some(latency));
        }
    }

    /// This latency was promised; an infinite one is none.
    pub(super) fn promise(&mut self, reserved: Option<Reservation>, limit: f64) {
        self.keep_to(reserved);
        self.limit = Some(limit).filter(|limit| limit.is_finite());
    }

    /// The latency that came in place of what was promised, if that is refused for it.
    pub(super) fn came(&self) -> Option<f64> {
        self.least.filter(|_| self.late_epochs >= EPOCHS)
    }

    /// Epochs until it is tried again.
    pub(super) fn tried_in_epochs(&self) -> f64 {
        (self.patience() - self.refused_epochs).ceil().max(1.0)
    }

    fn patience(&self) -> f64 {
        (PATIENCE * f64::from(self.refused).exp2()).min(PATIENCE_MAX)
    }

    fn keep_to(&mut self, reserved: Option<Reservation>) {
        if reserved != self.reserved {
            *self = Self { reserved, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Measured, Timed};

    const WISH: Option<Reservation> = Some(Reservation::Latency(1e-3));

    /// Requests of so many milliseconds, in an epoch of 10 s or a part of it.
    fn measured(ms: f64, part: f64) -> SinceDecision {
        let read_hits = Timed { count: 100, seconds: 0.1 * ms };
        SinceDecision { measured: Measured { read_hits, ..Measured::default() }, seconds: part * 10.0, part }
    }

    /// After epochs with these latencies.
    fn after(unmet: &mut Unmet, ms: &[f64]) -> Option<f64> {
        for &ms in ms {
            unmet.promise(WISH, 1e-3);
            unmet.learn(WISH, &measured(ms, 1.0), 10.0);
        }
        unmet.came()
    }

    #[test]
    fn what_stays_late_is_refused_and_what_comes_or_comes_nearer_is_not() {
        let mut unmet = Unmet::default();
        assert_eq!(after(&mut unmet, &[4.0; 4]), None, "the first is what the others are held against");
        assert!(after(&mut unmet, &[3.9]).is_some_and(|came| (came - 3.9e-3).abs() < 1e-9));
        // Halves of epochs.
        let mut halves = Unmet::default();
        for half in 0..10 {
            assert_eq!(halves.came(), None, "{half}");
            halves.promise(WISH, 1e-3);
            halves.learn(WISH, &measured(4.0, if half == 0 { 1.0 } else { 0.5 }), 10.0);
            if halves.came().is_some() {
                assert_eq!(half, 8);
                break;
            }
        }
        assert!(halves.came().is_some());
        assert_eq!(after(&mut Unmet::default(), &[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.2]), None);
        assert_eq!(after(&mut Unmet::default(), &[4.0, 4.0, 4.0, 4.0, 1.05, 4.0, 4.0, 4.0, 4.0]), None);
    }

    #[test]
    fn it_is_tried_again_ever_more_seldom_and_at_once_if_something_else_is_reserved() {
        let mut unmet = Unmet::default();
        assert!(after(&mut unmet, &[4.0; 5]).is_some());
        assert_eq!(unmet.tried_in_epochs(), PATIENCE);
        let refused =
            |unmet: &mut Unmet| (1..).find(|_| after(unmet, &[4.0]).is_none()).expect("in some epochs");
        let pauses: Vec<i32> = (0..5)
            .map(|_| {
                let pause = refused(&mut unmet);
                assert!(after(&mut unmet, &[4.0; 5]).is_some());
                pause
            })
            .collect();
        assert_eq!(pauses, [8, 16, 32, 64, 64]);
        let other = Some(Reservation::Latency(2e-3));
        unmet.learn(other, &measured(4.0, 1.0), 10.0);
        assert_eq!((unmet.came(), unmet.patience()), (None, PATIENCE));
    }

    #[test]
    fn nothing_is_late_that_was_not_promised_or_measured() {
        let mut unmet = Unmet::default();
        for _ in 0..9 {
            unmet.promise(WISH, f64::INFINITY);
            unmet.learn(WISH, &measured(4.0, 1.0), 10.0);
            unmet.promise(WISH, 1e-3);
            let nothing = SinceDecision { measured: Measured::default(), ..measured(0.0, 1.0) };
            unmet.learn(WISH, &nothing, 10.0);
        }
        assert_eq!(unmet.came(), None);
    }
}
