//! When to poll before sleeping: a wake-up across cores costs tens of microseconds, a poll costs the core.
//!
//! The reactor polls only where that has lately paid: while work has been arriving within the polling time. An idle daemon sleeps. Devices and guests are two
//! matters: a guest with one request at a time asks again at once, and then waits for a disk that takes longer than polling is worth. Where a disk has
//! many operations, the next one ends soon.

use std::time::Duration;

/// Credit is earned by short pauses and lost by polling in vain; without any, the reactor sleeps at once.
const CREDIT_MAX: u8 = 8;

/// How long to poll for guests: a client on a socket has asked again by then.
const GUESTS: Duration = Duration::from_micros(50);

/// And for devices, for each operation under way, up to the time for guests: about what it costs to sleep and be woken. With more for a single one
/// a disk's answers come earlier, and each takes half as much processor time again.
const DEVICES: Duration = Duration::from_micros(5);

/// Decides for pauses in which devices are waited for, and for those in which guests are.
#[derive(Debug)]
pub(crate) struct Spins {
    devices: Spin,
    guests: Spin,
    /// The limit is the same for both.
    given: bool,
}

impl Spins {
    /// Poll for `limit` at most; zero: never.
    pub fn new(limit: Option<Duration>) -> Self {
        let of = |usual| Spin::new(limit.unwrap_or(usual));
        Self { devices: of(DEVICES), guests: of(GUESTS), given: limit.is_some() }
    }

    /// The one for a pause in which so much is under way on devices.
    pub fn of(&mut self, operations: usize) -> &mut Spin {
        if operations == 0 {
            return &mut self.guests;
        }
        if !self.given {
            self.devices.limit = GUESTS.min(DEVICES * operations as u32);
        }
        &mut self.devices
    }
}

/// Decides from the pauses between pieces of work.
#[derive(Debug)]
pub(crate) struct Spin {
    limit: Duration,
    credit: u8,
}

impl Spin {
    /// Poll for `limit` at most; zero: never.
    pub fn new(limit: Duration) -> Self {
        Self { limit, credit: 0 }
    }

    /// How long to poll now.
    pub fn budget(&self) -> Duration {
        if self.credit > 0 { self.limit } else { Duration::ZERO }
    }

    /// Polling found work.
    pub fn paid(&mut self) {
        self.credit = CREDIT_MAX.min(self.credit + 1);
    }

    /// Polling found nothing.
    pub fn in_vain(&mut self) {
        self.credit = self.credit.saturating_sub(1);
    }

    /// The reactor slept this long until work came.
    pub fn slept(&mut self, pause: Duration) {
        if pause <= self.limit {
            self.paid();
        } else if pause > self.limit * 16 {
            self.credit = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(50);

    #[test]
    fn polls_only_while_work_comes_quickly() {
        let mut spin = Spin::new(LIMIT);
        assert_eq!(spin.budget(), Duration::ZERO);
        spin.slept(LIMIT / 2);
        assert_eq!(spin.budget(), LIMIT);
        spin.in_vain();
        assert_eq!(spin.budget(), Duration::ZERO);
    }

    #[test]
    fn a_long_pause_ends_polling_at_once() {
        let mut spin = Spin::new(LIMIT);
        (0..100).for_each(|_| spin.paid());
        spin.slept(LIMIT * 2);
        assert_eq!(spin.budget(), LIMIT);
        spin.slept(Duration::from_secs(1));
        assert_eq!(spin.budget(), Duration::ZERO);
    }

    #[test]
    fn a_slow_device_does_not_keep_guests_from_being_polled_for() {
        let mut spins = Spins::new(None);
        for _ in 0..10 {
            spins.of(1).slept(LIMIT / 2);
            spins.of(0).slept(LIMIT / 8);
        }
        assert_eq!((spins.of(1).budget(), spins.of(0).budget()), (Duration::ZERO, LIMIT));
    }

    #[test]
    fn a_busy_device_is_polled_for_longer_unless_a_limit_is_given() {
        let (mut usual, mut given) = (Spins::new(None), Spins::new(Some(LIMIT / 5)));
        for spins in [&mut usual, &mut given] {
            spins.of(4).slept(LIMIT / 5);
        }
        let mut budgets = |operations| (usual.of(operations).budget(), given.of(operations).budget());
        assert_eq!(budgets(4), (DEVICES * 4, LIMIT / 5));
        assert_eq!(budgets(1), (DEVICES, LIMIT / 5));
        assert_eq!(budgets(1000), (GUESTS, LIMIT / 5));
    }

    #[test]
    fn a_limit_of_zero_never_polls() {
        let mut spin = Spin::new(Duration::ZERO);
        spin.slept(Duration::ZERO);
        assert_eq!(spin.budget(), Duration::ZERO);
    }
}
