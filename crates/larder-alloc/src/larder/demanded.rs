//! Whether a tenant that was promised requests per second asks for that many.
//!
//! They are promised as a latency, for as many requests as it has outstanding (Little's law). That brings them if it issues the next request when one is done. One that
//! issues them by a clock of its own has the latency and no more requests: then the promise is not for the cache to keep, and what it takes from the other tenants brings nobody anything.

use crate::{Reservation, SinceDecision};

/// Epochs in which the latency came and the requests did not, after which no more of them are expected.
const EPOCHS: f64 = 2.0;
/// Then they are expected again after so many epochs; after twice as many each time, up to [`PATIENCE_MAX`]: it may ask for more by then, and could not show it while it had to wait longer.
const PATIENCE: f64 = 8.0;
const PATIENCE_MAX: f64 = 64.0;
/// What is short of a promise by less than this part is kept.
const NEARLY: f64 = 0.1;

/// What came of the requests per second that a tenant was promised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demanded {
    /// The requests per second that are reserved; 0 where none are.
    least: f64,
    /// The latency that was promised for them.
    limit: Option<f64>,
    /// Epochs in which that came and they did not.
    short_epochs: f64,
    /// The most requests per second in these.
    most: f64,
    /// Epochs since no more were expected.
    refused_epochs: f64,
    /// Times that that came.
    refused: u32,
}

impl Demanded {
    /// What was measured under a decision.
    pub(super) fn learn(&mut self, reserved: Option<Reservation>, under: &SinceDecision, epoch_seconds: f64) {
        self.keep_to(reserved);
        let (Some(latency), seconds) = (under.measured.mean_latency(), under.seconds) else { return };
        if self.least <= 0.0 || seconds <= 0.0 || epoch_seconds <= 0.0 {
            return;
        }
        let rate = under.measured.requests() as f64 / seconds;
        let is_short = rate < self.least * (1.0 - NEARLY);
        let refused = self.asks_for().is_some();
        if !is_short || (refused && rate > self.most * (1.0 + NEARLY)) {
            *self = Self { least: self.least, limit: self.limit, ..Self::default() };
        } else if refused {
            self.refused_epochs += seconds / epoch_seconds;
            if self.refused_epochs >= self.patience() {
                (self.short_epochs, self.most, self.refused_epochs) = (0.0, 0.0, 0.0);
                self.refused = self.refused.saturating_add(1);
            }
        } else if self.limit.is_some_and(|limit| latency <= limit * (1.0 + NEARLY)) {
            self.short_epochs += seconds / epoch_seconds;
            self.most = self.most.max(rate);
        }
    }

    /// This latency was promised; an infinite one is none.
    pub(super) fn promise(&mut self, reserved: Option<Reservation>, limit: f64) {
        self.keep_to(reserved);
        self.limit = Some(limit).filter(|limit| limit.is_finite() && self.least > 0.0);
    }

    /// The requests per second that it asks for, where those are known to be fewer than it was promised.
    pub(super) fn asks_for(&self) -> Option<f64> {
        (self.short_epochs >= EPOCHS).then_some(self.most)
    }

    /// Epochs until they are expected again, unless it asks for more before.
    pub(super) fn expected_in_epochs(&self) -> f64 {
        (self.patience() - self.refused_epochs).ceil()
    }

    fn patience(&self) -> f64 {
        (PATIENCE * f64::from(self.refused).exp2()).min(PATIENCE_MAX)
    }

    fn keep_to(&mut self, reserved: Option<Reservation>) {
        let least = if let Some(Reservation::Iops(least)) = reserved { least } else { 0.0 };
        if least != self.least {
            *self = Self { least, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Measured, Timed};

    const WISH: Option<Reservation> = Some(Reservation::Iops(1000.0));

    /// So many requests a second of a millisecond each, in an epoch of 10 s or a part of it.
    fn measured(rate: f64, part: f64) -> SinceDecision {
        let count = (rate * part * 10.0) as u64;
        let read_hits = Timed { count, seconds: count as f64 * 1e-3 };
        SinceDecision { measured: Measured { read_hits, ..Measured::default() }, seconds: part * 10.0, part }
    }

    #[test]
    fn who_has_the_latency_and_does_not_ask_for_more_is_known_after_two_epochs() {
        let mut demanded = Demanded::default();
        for (part, asks_for) in [(1.0, None), (0.5, None), (0.5, Some(220.0))] {
            demanded.promise(WISH, 1e-3);
            demanded.learn(WISH, &measured(if part < 1.0 { 220.0 } else { 200.0 }, part), 10.0);
            assert_eq!(demanded.asks_for(), asks_for);
        }
        // As long as it does not ask for more, and the same is reserved.
        assert_eq!(demanded.expected_in_epochs(), PATIENCE);
        demanded.promise(WISH, f64::INFINITY);
        demanded.learn(WISH, &measured(230.0, 1.0), 10.0);
        assert_eq!((demanded.asks_for(), demanded.expected_in_epochs()), (Some(220.0), PATIENCE - 1.0));
        let mut other = demanded;
        other.learn(Some(Reservation::Iops(500.0)), &measured(230.0, 1.0), 10.0);
        assert_eq!(other.asks_for(), None);
        demanded.learn(WISH, &measured(300.0, 1.0), 10.0);
        assert_eq!(demanded.asks_for(), None);
    }

    #[test]
    fn who_did_not_have_the_latency_may_ask_for_more_once_it_has() {
        let mut demanded = Demanded::default();
        for _ in 0..5 {
            demanded.promise(WISH, 0.8e-3);
            demanded.learn(WISH, &measured(200.0, 1.0), 10.0);
        }
        // Nor does one that nothing was promised to, or that was promised something else.
        demanded.promise(WISH, f64::INFINITY);
        demanded.learn(WISH, &measured(200.0, 5.0), 10.0);
        demanded.promise(Some(Reservation::Latency(1e-3)), 1e-3);
        demanded.learn(Some(Reservation::Latency(1e-3)), &measured(200.0, 5.0), 10.0);
        assert_eq!(demanded.asks_for(), None);
    }

    #[test]
    fn it_may_ask_for_more_after_a_while() {
        let mut demanded = Demanded::default();
        let refused: Vec<bool> = (0..64)
            .map(|_| {
                let is_refused = demanded.asks_for().is_some();
                demanded.promise(WISH, if is_refused { f64::INFINITY } else { 1e-3 });
                demanded.learn(WISH, &measured(200.0, 1.0), 10.0);
                is_refused
            })
            .collect();
        let granted: Vec<usize> = (0..64).filter(|&at| !refused[at]).collect();
        assert_eq!(granted, [0, 1, 10, 11, 28, 29, 62, 63]);
    }

    #[test]
    fn a_promise_that_is_kept_is_not_given_up() {
        let mut demanded = Demanded::default();
        for rate in [200.0, 950.0, 200.0, 950.0] {
            demanded.promise(WISH, 1e-3);
            demanded.learn(WISH, &measured(rate, 1.0), 10.0);
            assert_eq!(demanded.asks_for(), None);
        }
    }
}
