//! Who may touch which bytes of a volume now: range locks in arrival order.
//!
//! A lock covers its whole range at once or waits, so no owner holds one while it waits for another, and there is no
//! deadlock. Reads share; a write excludes all that overlaps it. A request waits behind an earlier waiter that it conflicts with, so
//! none starves. Held ranges are few (a queue depth), hence a plain scan of a short array: it beats a tree at these lengths, and
//! [`HELD_MAX`] keeps it so.

use std::collections::VecDeque;

/// Requests that may hold a lock on one volume at a time; further ones wait their turn.
pub(crate) const HELD_MAX: usize = 256;

/// Waiters looked at when a lock is released: bounds the work when everything conflicts.
const LOOKAHEAD: usize = 64;

/// Who holds a lock: a part of a guest request, a fill, or the cleaner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Part(u32),
    Fill(u32),
    Clean(u32),
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    start: u64,
    end: u64,
    exclusive: bool,
    owner: Owner,
}

impl Lock {
    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }

    fn conflicts(&self, other: &Self) -> bool {
        (self.exclusive || other.exclusive) && self.overlaps(other.start, other.end)
    }
}

/// The locks of one volume.
#[derive(Debug, Default)]
pub(crate) struct RangeLocks {
    held: Vec<Lock>,
    waiting: VecDeque<Lock>,
}

impl RangeLocks {
    /// Take the range `start..end` (bytes), or wait for it. True if taken.
    pub fn acquire(&mut self, start: u64, end: u64, exclusive: bool, owner: Owner) -> bool {
        let lock = Lock { start, end, exclusive, owner };
        let free = self.held.len() < HELD_MAX
            && !self.held.iter().any(|h| h.conflicts(&lock))
            && !self.waiting.iter().any(|w| w.conflicts(&lock));
        match free {
            true => self.held.push(lock),
            false => self.waiting.push_back(lock),
        }
        free
    }

    /// Take a shared lock that [`Self::shareable`] said is free, ahead of any waiter.
    pub fn share(&mut self, start: u64, end: u64, owner: Owner) {
        debug_assert!(self.shareable(start, end), "a fill may not start beside a write");
        self.held.push(Lock { start, end, exclusive: false, owner });
    }

    /// True if no exclusive lock is held on any part of the range.
    pub fn shareable(&self, start: u64, end: u64) -> bool {
        !self.held.iter().any(|h| h.exclusive && h.overlaps(start, end))
    }

    /// Who holds an exclusive lock on any part of the range.
    pub fn writers(&self, start: u64, end: u64) -> impl Iterator<Item = Owner> + '_ {
        self.held.iter().filter(move |h| h.exclusive && h.overlaps(start, end)).map(|h| h.owner)
    }

    /// True if anyone holds a lock on any part of the range.
    pub fn is_locked(&self, start: u64, end: u64) -> bool {
        self.held.iter().any(|h| h.overlaps(start, end))
    }

    /// True if anyone but `owner` holds a lock on any part of the range.
    pub fn is_locked_by_other(&self, start: u64, end: u64, owner: Owner) -> bool {
        self.held.iter().any(|h| h.owner != owner && h.overlaps(start, end))
    }

    /// Give up the lock of `owner`; the waiters that may now go on are appended to `granted`.
    pub fn release(&mut self, owner: Owner, granted: &mut VecDeque<Owner>) {
        let at = self.held.iter().position(|h| h.owner == owner).expect("an owner releases what it holds");
        self.held.swap_remove(at);
        if !self.waiting.is_empty() {
            self.wake(granted);
        }
    }

    fn wake(&mut self, granted: &mut VecDeque<Owner>) {
        let mut at = 0;
        while at < self.waiting.len().min(LOOKAHEAD) && self.held.len() < HELD_MAX {
            let lock = self.waiting[at];
            let blocked = self.held.iter().any(|h| h.conflicts(&lock))
                || self.waiting.range(..at).any(|w| w.conflicts(&lock));
            if blocked {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            self.held.push(lock);
            granted.push_back(lock.owner);
        }
    }

    /// True if nobody holds or waits for anything.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    /// Panics if two conflicting locks are held at once, or if waiters could go on but were left waiting.
    pub fn self_check(&self) {
        for (i, a) in self.held.iter().enumerate() {
            assert!(
                !self.held[..i].iter().any(|b| a.conflicts(b)),
                "conflicting locks held: {a:?} in {self:?}"
            );
        }
        if let Some(first) = self.waiting.front() {
            let stuck = self.held.len() < HELD_MAX && !self.held.iter().any(|h| h.conflicts(first));
            assert!(!stuck, "the first waiter could go on: {first:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(n: u32) -> Owner {
        Owner::Part(n)
    }

    #[test]
    fn reads_share_and_writes_exclude() {
        let mut locks = RangeLocks::default();
        assert!(locks.acquire(0, 10, false, part(1)));
        assert!(locks.acquire(5, 15, false, part(2)));
        assert!(!locks.acquire(9, 11, true, part(3)));
        assert!(locks.acquire(15, 20, true, part(4)));
        let mut granted = VecDeque::new();
        locks.release(part(1), &mut granted);
        assert!(granted.is_empty());
        locks.release(part(2), &mut granted);
        assert_eq!(granted, [part(3)]);
        locks.self_check();
    }

    #[test]
    fn a_reader_does_not_overtake_a_waiting_writer_that_it_overlaps() {
        let mut locks = RangeLocks::default();
        assert!(locks.acquire(0, 10, false, part(1)));
        assert!(!locks.acquire(0, 10, true, part(2)));
        assert!(!locks.acquire(5, 6, false, part(3)));
        assert!(locks.acquire(10, 12, false, part(4)));
        let mut granted = VecDeque::new();
        locks.release(part(1), &mut granted);
        assert_eq!(granted, [part(2)]);
        granted.clear();
        locks.release(part(2), &mut granted);
        assert_eq!(granted, [part(3)]);
    }

    #[test]
    fn the_number_of_holders_is_bounded() {
        let mut locks = RangeLocks::default();
        for n in 0..HELD_MAX as u64 {
            assert!(locks.acquire(n, n + 1, true, part(n as u32)));
        }
        assert!(!locks.acquire(1_000_000, 1_000_001, true, part(9999)));
        let mut granted = VecDeque::new();
        locks.release(part(0), &mut granted);
        assert_eq!(granted, [part(9999)]);
    }

    #[test]
    fn a_fill_shares_with_readers_only() {
        let mut locks = RangeLocks::default();
        assert!(locks.acquire(512, 1024, false, part(1)));
        assert!(locks.shareable(0, 4096));
        locks.share(0, 4096, Owner::Fill(0));
        assert!(locks.is_locked_by_other(0, 4096, part(1)));
        assert!(!locks.acquire(2048, 2560, true, part(2)));
        assert!(!locks.is_locked(4096, 8192));
    }
}
