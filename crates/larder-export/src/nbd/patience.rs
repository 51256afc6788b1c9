//! How long the server waits for a client.

use super::limits::{FAREWELL_TIME_MAX, HANDSHAKE_TIME_MAX};
use std::time::Instant;

/// When patience with a client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not: it is being served.
    Endless,
    /// The handshake has to be over by then.
    Handshake(Instant),
    /// Its last replies have to be taken by then. Begins only when all of them are there: a slow backing is no fault of the client.
    Farewell(Instant),
}

impl Patience {
    /// With a client that came now.
    pub fn for_handshake(now: Instant) -> Self {
        Self::Handshake(now + HANDSHAKE_TIME_MAX)
    }

    /// With a client that gets its last replies from now on.
    pub fn for_farewell(now: Instant) -> Self {
        Self::Farewell(now + FAREWELL_TIME_MAX)
    }

    /// True once it is at its end, for a client with this many requests in the engine.
    pub fn is_over(&mut self, now: Instant, executing: usize) -> bool {
        match self {
            Self::Endless => false,
            Self::Farewell(_) if executing > 0 => {
                *self = Self::for_farewell(now);
                false
            }
            Self::Handshake(end) | Self::Farewell(end) => now >= *end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_farewell_waits_for_what_is_executing() {
        let began = Instant::now();
        let mut patience = Patience::for_farewell(began);
        let slow = began + 5 * FAREWELL_TIME_MAX;
        assert!(!patience.is_over(slow, 1), "the backing is slow");
        let second = Duration::from_secs(1);
        assert!(!patience.is_over(slow + FAREWELL_TIME_MAX - second, 0));
        assert!(patience.is_over(slow + FAREWELL_TIME_MAX, 0), "the client is");
    }

    #[test]
    fn the_handshake_does_not_wait() {
        let began = Instant::now();
        assert!(Patience::for_handshake(began).is_over(began + HANDSHAKE_TIME_MAX, 0));
        assert!(!Patience::Endless.is_over(began + HANDSHAKE_TIME_MAX, 0));
    }
}
