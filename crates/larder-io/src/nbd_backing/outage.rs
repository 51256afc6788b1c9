//! How a connection fares: how long to wait before the next attempt, and what the log is told, both at a bounded rate.
//!
//! A connection counts for something once it has lived for a second: a server that greets and hangs up is not back.

use std::time::{Duration, Instant};

/// Before the second attempt; it doubles from attempt to attempt.
pub(super) const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Between attempts at most.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// A connection that has lived for so long is one.
const PROVEN: Duration = Duration::from_secs(1);
/// Between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// The pause after the next failure.
pub(super) fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(BACKOFF_MIN, BACKOFF_MAX)
}

/// The life of a backing's connections.
#[derive(Debug)]
pub(super) struct Outage {
    up_since: Option<Instant>,
    pause: Duration,
    retry_at: Option<Instant>,
    /// Connections lost since the log was last told.
    losses: u64,
    cause: String,
    /// What the log says at present.
    told_up: bool,
    told_at: Option<Instant>,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Connections were lost, the latest for this cause.
    Lost { losses: u64, cause: String },
    /// There is a connection that lasts.
    Back { losses: u64 },
}

impl Outage {
    /// The first connection is there.
    pub fn new(now: Instant) -> Self {
        Self {
            up_since: Some(now),
            pause: Duration::ZERO,
            retry_at: None,
            losses: 0,
            cause: String::new(),
            told_up: true,
            told_at: None,
        }
    }

    /// There is a new connection.
    pub fn connected(&mut self, now: Instant) {
        self.up_since = Some(now);
        self.retry_at = None;
    }

    /// The connection is of no further use.
    pub fn lost(&mut self, cause: &str, now: Instant) {
        let proven = self.lived(now).is_some_and(|life| life >= PROVEN);
        self.pause = if proven { Duration::ZERO } else { longer(self.pause) };
        self.up_since = None;
        self.losses += 1;
        self.cause = cause.into();
    }

    /// Nobody could be set to connecting.
    pub fn no_helper(&mut self, cause: &str, now: Instant) {
        self.pause = longer(self.pause);
        self.retry_at = Some(now + self.pause);
        self.losses += 1;
        self.cause = cause.into();
    }

    /// True where somebody may be set to connecting.
    pub fn may_try(&self, now: Instant) -> bool {
        self.retry_at.is_none_or(|at| now >= at)
    }

    /// To wait before the next attempt.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// True while the log says all that there is to say.
    pub fn is_told(&self) -> bool {
        self.told_up && self.losses == 0
    }

    /// What to tell the log now, if anything.
    pub fn news(&mut self, now: Instant) -> Option<News> {
        let due = self.told_at.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL);
        let news = match self.lived(now) {
            None if due && self.losses > 0 => {
                News::Lost { losses: self.losses, cause: std::mem::take(&mut self.cause) }
            }
            Some(life) if due && life >= PROVEN && !self.is_told() => News::Back { losses: self.losses },
            _ => return None,
        };
        self.told_up = matches!(news, News::Back { .. });
        (self.told_at, self.losses) = (Some(now), 0);
        Some(news)
    }

    fn lived(&self, now: Instant) -> Option<Duration> {
        self.up_since.map(|since| now.duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_until_a_connection_lives() {
        let start = Instant::now();
        let mut outage = Outage::new(start);
        outage.lost("gone", start + PROVEN);
        assert_eq!(outage.pause(), Duration::ZERO, "a connection that lived is replaced at once");
        let mut pauses = Vec::new();
        for _ in 0..7 {
            outage.connected(start);
            outage.lost("hung up", start + PROVEN / 2);
            pauses.push(outage.pause().as_millis());
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        outage.connected(start);
        outage.lost("gone", start + PROVEN);
        assert_eq!(outage.pause(), Duration::ZERO);
    }

    #[test]
    fn a_storm_is_a_line_per_interval_and_the_end_is_told() {
        let start = Instant::now();
        let at = |tenths: u32| start + Duration::from_millis(100) * tenths;
        let mut outage = Outage::new(start);
        let mut told = Vec::new();
        for tenths in 20..121 {
            outage.lost("hung up", at(tenths));
            told.extend(outage.news(at(tenths)));
            outage.connected(at(tenths));
            told.extend(outage.news(at(tenths)));
        }
        let lost = |losses| News::Lost { losses, cause: "hung up".into() };
        assert_eq!(told, [lost(1), lost(50), lost(50)]);
        assert_eq!(outage.news(at(125)), None, "not proven");
        assert_eq!(outage.news(at(140)), None, "not due");
        assert_eq!(outage.news(at(170)), Some(News::Back { losses: 0 }));
        assert!(outage.is_told() && outage.news(at(900)).is_none());
    }
}
