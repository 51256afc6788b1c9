//! What a server may still lose: changes that it answered, and that no flush has covered since.
//!
//! A flush covers what was answered before it was sent, and nothing that was answered while it ran.

/// Changes of the disk, numbered in the order in which they ended.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    /// Every change so far that is not durable by itself.
    changes: u64,
    /// The latest change of which a guest was told that it succeeded, and not since that it may be lost.
    promised: u64,
    /// Up to here all is durable.
    flushed: u64,
}

impl Unflushed {
    /// A change succeeded, and a guest will rely on the next flush to keep it.
    pub fn promised(&mut self) {
        self.changes += 1;
        self.promised = self.changes;
    }

    /// A change that no guest relies on: it failed on the way, or it was a discard. What it did may show, and be lost.
    pub fn doubtful(&mut self) {
        self.changes += 1;
    }

    /// What a flush covers that is sent now.
    pub fn mark(&self) -> u64 {
        self.changes
    }

    /// The flush of this mark succeeded.
    pub fn flushed(&mut self, mark: u64) {
        self.flushed = self.flushed.max(mark);
    }

    /// True where what was read from the server since may not be what it holds after a crash.
    pub fn may_revert(&self) -> bool {
        self.changes > self.flushed
    }

    /// The connection broke: true where a promise may be broken, once.
    pub fn take_promises(&mut self) -> bool {
        std::mem::take(&mut self.promised) > self.flushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_ended_before_it_was_sent() {
        let mut unflushed = Unflushed::default();
        assert!(!unflushed.may_revert() && !unflushed.take_promises());
        unflushed.promised();
        let early = unflushed.mark();
        unflushed.promised();
        let late = unflushed.mark();
        unflushed.flushed(late);
        unflushed.flushed(early);
        assert!(!unflushed.may_revert() && !unflushed.take_promises());
        unflushed.promised();
        unflushed.flushed(late);
        assert!(unflushed.may_revert() && unflushed.take_promises());
    }

    #[test]
    fn a_lost_promise_is_told_once_but_stays_in_doubt_until_a_flush() {
        let mut unflushed = Unflushed::default();
        unflushed.promised();
        assert!(unflushed.take_promises() && !unflushed.take_promises());
        assert!(unflushed.may_revert(), "the server may have kept it so far, and lose it later");
        unflushed.flushed(unflushed.mark());
        assert!(!unflushed.may_revert());
    }

    #[test]
    fn a_doubtful_change_breaks_no_promise() {
        let mut unflushed = Unflushed::default();
        unflushed.doubtful();
        assert!(unflushed.may_revert() && !unflushed.take_promises());
    }
}
