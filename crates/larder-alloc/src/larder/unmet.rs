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

/// Fewer requests than these tell nothing.
const ENOUGH: u64 = 20;

/// What came of what a tenant was promised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unmet {
    reserved: Option<Reservation>,
    /// The latency that was promised, now or last.
    limit: f64,
    /// It is promised now.
    promised: bool,
    /// Epochs in which it did not come.
    late_epochs: f64,
    /// What came when these began.
    began: Option<f64>,
    /// The best that came in them.
    best: Option<Came>,
    /// Epochs since it was refused.
    refused_epochs: f64,
    /// Times that that was over.
    refused: u32,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Came {
    /// Mean seconds of a request.
    pub(super) latency: f64,
    /// Requests per second.
    pub(super) rate: f64,
}

impl Unmet {
    /// What was measured under a decision.
    pub(super) fn learn(&mut self, reserved: Option<Reservation>, under: &SinceDecision, epoch_seconds: f64) {
        self.keep_to(reserved);
        let requests = under.measured.requests();
        let Some(latency) = under.measured.mean_latency().filter(|_| requests >= ENOUGH) else { return };
        if self.limit <= 0.0 || under.seconds <= 0.0 || epoch_seconds <= 0.0 {
            return;
        }
        let came = Came { latency, rate: requests as f64 / under.seconds };
        let asked = matches!(reserved, Some(Reservation::Iops(least)) if came.rate >= least * (1.0 - NEARLY));
        let part = under.seconds / epoch_seconds;
        if asked || latency <= self.limit * (1.0 + NEARLY) {
            let (limit, promised) = (self.limit, self.promised);
            *self = Self { reserved, limit, promised, ..Self::default() };
        } else if self.came().is_some() {
            self.refused_epochs += part;
            if self.refused_epochs >= self.patience() {
                (self.late_epochs, self.began, self.best, self.refused_epochs) = (0.0, None, None, 0.0);
                self.refused = self.refused.saturating_add(1);
            }
        } else if !self.promised {
            // It takes part as one to which nothing was promised.
        } else if self.began.is_some_and(|began| latency > began * (1.0 - NEARLY)) {
            self.late_epochs += part;
            self.best = self.best.filter(|best| best.latency <= latency).or(Some(came));
        } else {
            (self.late_epochs, self.began, self.best) = (0.0, Some(latency), Some(came));
        }
    }

    /// This latency was promised; an infinite one is none.
    pub(super) fn promise(&mut self, reserved: Option<Reservation>, limit: f64) {
        self.keep_to(reserved);
        self.promised = limit.is_finite();
        if self.promised {
            self.limit = limit;
        }
    }

    /// The best that came in place of what was promised, if that is refused for it.
    pub(super) fn came(&self) -> Option<Came> {
        self.best.filter(|_| self.late_epochs >= EPOCHS)
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
    fn after(unmet: &mut Unmet, ms: &[f64]) -> Option<Came> {
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
        assert!(after(&mut unmet, &[3.9]).is_some_and(|came| (came.latency - 3.9e-3).abs() < 1e-9));
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
        // A large partition that fills slowly: each epoch brings four per cent.
        let slowly: Vec<f64> = (0..40).map(|epoch| 5.0 * 0.96f64.powi(epoch)).collect();
        assert_eq!(after(&mut Unmet::default(), &slowly), None);
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
    fn what_comes_while_it_is_refused_is_granted_again() {
        let mut unmet = Unmet::default();
        assert!(after(&mut unmet, &[4.0; 5]).is_some());
        unmet.promise(WISH, f64::INFINITY);
        unmet.learn(WISH, &measured(1.05, 1.0), 10.0);
        assert_eq!((unmet.came(), unmet.patience()), (None, PATIENCE));
        // Requests per second that come are kept, whatever they wait: there are more of them at once.
        let (wish, mut unmet) = (Some(Reservation::Iops(10.0)), Unmet::default());
        for _ in 0..9 {
            unmet.promise(wish, 1e-3);
            unmet.learn(wish, &measured(4.0, 1.0), 10.0);
        }
        assert_eq!(unmet.came(), None);
    }

    #[test]
    fn a_few_requests_tell_nothing() {
        let mut unmet = Unmet::default();
        assert!(after(&mut unmet, &[4.0; 5]).is_some());
        let few = Timed { count: ENOUGH - 1, seconds: 1e-6 };
        let hits = Measured { read_hits: few, ..Measured::default() };
        unmet.learn(WISH, &SinceDecision { measured: hits, ..measured(1.0, 0.1) }, 10.0);
        assert!(unmet.came().is_some());
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
