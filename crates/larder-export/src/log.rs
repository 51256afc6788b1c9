//! A budget for messages that clients cause: none of them can flood the log.

/// Messages in the log, per second, about the clients of a reactor, and about the guest of each disk. The rest is counted.
pub const LOG_MESSAGES_PER_TICK: u32 = 8;

/// Messages that may still be written, and those that were not.
#[derive(Debug)]
pub(crate) struct LogBudget {
    left: u32,
    suppressed: u64,
}

impl LogBudget {
    pub fn new() -> Self {
        Self { left: LOG_MESSAGES_PER_TICK, suppressed: 0 }
    }

    /// True if the next message may be written; else it is counted.
    pub fn allows(&mut self) -> bool {
        let allowed = self.left > 0;
        match allowed {
            true => self.left -= 1,
            false => self.suppressed += 1,
        }
        allowed
    }

    /// A second has passed. How many messages were left out in it.
    pub fn renew(&mut self) -> u64 {
        self.left = LOG_MESSAGES_PER_TICK;
        std::mem::take(&mut self.suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_the_budget_is_counted() {
        let mut budget = LogBudget::new();
        let allowed = (0..20).filter(|_| budget.allows()).count();
        assert_eq!(allowed as u32, LOG_MESSAGES_PER_TICK);
        assert_eq!(budget.renew(), 20 - u64::from(LOG_MESSAGES_PER_TICK));
        assert!(budget.allows());
        assert_eq!(budget.renew(), 0);
    }
}
