//! One log line per burst of device errors: a broken disk must not fill the log.

use std::time::{Duration, Instant};

/// Between two lines about the same device.
const INTERVAL: Duration = Duration::from_secs(5);

/// The errors of one device.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog {
    last: Option<Instant>,
    unreported: u64,
}

impl ErrorLog {
    /// An operation failed.
    pub fn failed(&mut self, device: &str, operation: &str, offset: u64, len: u64, cause: &str) {
        let now = Instant::now();
        if !self.is_due(now) {
            return;
        }
        let unreported = std::mem::take(&mut self.unreported);
        tracing::error!(device, operation, offset, len, unreported, "device error: {cause}");
    }

    /// Whether to write a line now; counts what is not written.
    fn is_due(&mut self, now: Instant) -> bool {
        if self.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            self.unreported += 1;
            return false;
        }
        self.last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_one_line_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut log = ErrorLog::default();
        assert!(log.is_due(start));
        assert!(!log.is_due(start) && !log.is_due(start + INTERVAL / 2));
        assert_eq!(log.unreported, 2);
        assert!(log.is_due(start + INTERVAL));
    }
}
