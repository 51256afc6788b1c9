//! When to poll before sleeping: a wake-up across cores costs tens of microseconds, a poll costs the core.
//!
//! The reactor polls only where that has lately paid: while work has been arriving within the polling time. An idle daemon sleeps. Devices and guests are two
//! matters: a guest with one request at a time asks again at once, and then waits for a disk that takes longer than polling is worth.

use std::time::Duration;

/// Credit is earned by short pauses and lost by polling in vain; without any, the reactor sleeps at once.
const CREDIT_MAX: u8 = 8;

/// How long to poll for guests: a client on a socket has asked again by then.
const GUESTS: Duration = Duration::from_micros(50);

/// And for devices: about what it costs to sleep and be woken. With more a disk's answers come earlier, and each takes half as much processor time again.
const DEVICES: Duration = Duration::from_micros(5);

/// Decides for pauses in which devices are waited for, and for those in which guests are.
#[derive(Debug)]
pub(crate) struct Spins {
    devices: Spin,
    guests: Spin,
}

impl Spins {
    /// Poll for `limit` at most; zero: never.
    pub fn new(limit: Option<Duration>) -> Self {
        let of = |usual| Spin::new(limit.unwrap_or(usual));
        Self { devices: of(DEVICES), guests: of(GUESTS) }
    }

    /// The one for a pause in which devices are at work, or not.
    pub fn of(&mut self, devices_work: bool) -> &mut Spin {
        if devices_work { &mut self.devices } else { &mut self.guests }
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
            spins.of(true).slept(LIMIT / 2);
            spins.of(false).slept(LIMIT / 8);
        }
        assert_eq!((spins.of(true).budget(), spins.of(false).budget()), (Duration::ZERO, LIMIT));
    }

    #[test]
    fn a_limit_of_zero_never_polls() {
        let mut spin = Spin::new(Duration::ZERO);
        spin.slept(Duration::ZERO);
        assert_eq!(spin.budget(), Duration::ZERO);
    }
}
