//! The free pool of the cache device's slots that all reactors of a host share.

use larder_engine::FreePool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Free slots as ascending runs, handed out lowest first. Clones share one pool; engines take and give in batches, so the lock
/// is rarely wanted.
#[derive(Clone, Debug)]
pub struct SharedPool {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    /// Never handed out yet: `next..end`.
    next: u32,
    end: u32,
    /// Came back.
    returned: Vec<u32>,
}

impl SharedPool {
    /// A pool of the slots `0..blocks`.
    pub fn new(blocks: u32) -> Self {
        Self { free: Arc::new(Mutex::new(Free { next: 0, end: blocks, returned: Vec::new() })) }
    }

    /// Slots in the pool.
    pub fn free_blocks(&self) -> u32 {
        let free = self.lock();
        free.end - free.next + free.returned.len() as u32
    }

    /// The pool's contents are whole between statements, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreePool for SharedPool {
    /// Slots that came back are used first: the device has written them before, and a file need not grow.
    fn take(&mut self, count: usize, into: &mut Vec<u32>) {
        let mut free = self.lock();
        let reused = count.min(free.returned.len());
        let keep = free.returned.len() - reused;
        into.extend(free.returned.drain(keep..));
        let fresh = u32::try_from(count - reused).unwrap_or(u32::MAX).min(free.end - free.next);
        into.extend(free.next..free.next + fresh);
        free.next += fresh;
    }

    fn give(&mut self, slots: &mut Vec<u32>) {
        self.lock().returned.append(slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_handed_out_once_and_come_back() {
        let mut pool = SharedPool::new(10);
        let mut other = pool.clone();
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        pool.take(6, &mut mine);
        other.take(100, &mut theirs);
        assert_eq!((&mine[..], &theirs[..]), (&[0, 1, 2, 3, 4, 5][..], &[6, 7, 8, 9][..]));
        assert_eq!(pool.free_blocks(), 0);
        pool.give(&mut mine);
        assert_eq!((mine.len(), other.free_blocks()), (0, 6));
        other.take(4, &mut theirs);
        let mut all = theirs.clone();
        pool.take(9, &mut all);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
