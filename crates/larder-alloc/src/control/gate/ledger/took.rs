//! What requests of one shape take that one device serves.

use crate::Timed;

/// A guess counts for as much as so many requests that were measured, and for the less the more of these have faded.
const ENOUGH: f64 = 16.0;

/// Requests, and what they took.
///
/// What fades is kept as what will be taken for true while nothing newer is measured: of a device that takes none of these requests any more, since another one does, it is best known what it took when it last did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    requests: f64,
    seconds: f64,
    /// Those that faded, [`ENOUGH`] at most, and what they took.
    kept: f64,
    kept_seconds: f64,
}

impl Took {
    pub(super) fn add(&mut self, more: Timed) {
        self.requests += more.count as f64;
        self.seconds += more.seconds;
    }

    /// What was measured so far weighs this much from now on.
    pub(super) fn fade(&mut self, factor: f64) {
        self.kept += self.requests * (1.0 - factor);
        self.kept_seconds += self.seconds * (1.0 - factor);
        if self.kept > ENOUGH {
            self.kept_seconds *= ENOUGH / self.kept;
            self.kept = ENOUGH;
        }
        self.requests *= factor;
        self.seconds *= factor;
    }

    /// Requests that were measured.
    pub(super) fn count(&self) -> f64 {
        self.requests
    }

    /// Mean seconds of a request; what is not known yet is taken to be as `guess` says.
    pub(super) fn mean(&self, guess: f64) -> f64 {
        (self.seconds + self.kept_seconds + guess * (ENOUGH - self.kept)) / (self.requests + ENOUGH)
    }

    /// Enough was measured, though it may be long ago.
    pub(super) fn is_known(&self) -> bool {
        self.requests + self.kept >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESS: f64 = 7e-3;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_guess_gives_way_to_what_is_measured() {
        let mut took = Took::default();
        assert!(!took.is_known() && near(took.mean(GUESS), GUESS));
        took.add(Timed { count: 15, seconds: 15.0 * 1e-3 });
        assert!(!took.is_known() && near(took.mean(GUESS), (15.0 * 1e-3 + 16.0 * GUESS) / 31.0));
        took.add(Timed { count: 1, seconds: 1e-3 });
        assert!(took.is_known());
    }

    #[test]
    fn what_was_measured_last_is_not_forgotten() {
        let mut took = Took::default();
        took.add(Timed { count: 1000, seconds: 1000.0 * 2e-3 });
        (0..500).for_each(|_| took.fade(0.9));
        // No guess is left in it.
        assert!(took.is_known() && near(took.mean(GUESS), 2e-3), "{took:?}");
        // It counts for as many requests as a guess did.
        took.add(Timed { count: 16, seconds: 16.0 * 1e-3 });
        assert!(near(took.mean(GUESS), 1.5e-3), "{took:?}");
        (0..500).for_each(|_| took.fade(0.9));
        assert!((1e-3..2e-3).contains(&took.mean(GUESS)), "{took:?}");
    }

    #[test]
    fn little_that_faded_leaves_the_rest_to_the_guess() {
        let mut took = Took::default();
        took.add(Timed { count: 4, seconds: 4.0 * 1e-3 });
        (0..500).for_each(|_| took.fade(0.9));
        assert!(!took.is_known() && near(took.mean(GUESS), (4.0 * 1e-3 + 12.0 * GUESS) / 16.0), "{took:?}");
    }
}
