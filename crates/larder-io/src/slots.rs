//! The free pool of the cache device's slots that all reactors of a host share.

use larder_engine::format::{Recovered, SlotState};
use larder_engine::{FreePool, FreeSlots};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Free slots, handed out in the order of their places ([`FreeSlots`]). Clones share one pool. Engines that share it take and give in batches, so the lock is rarely
/// wanted; that of a cache that is kept has it for itself.
#[derive(Clone, Debug)]
pub struct SharedPool(Arc<Mutex<FreeSlots>>);

impl SharedPool {
    /// A pool of the slots `0..blocks`.
    pub fn new(blocks: u32) -> Self {
        Self(Arc::new(Mutex::new(FreeSlots::below(blocks))))
    }

    /// A pool of the slots in which a cache holds nothing. One of which nobody knows what it holds is not among them.
    pub fn of_recovered(recovered: &Recovered) -> Self {
        let is_free = |(slot, state)| (state == SlotState::Free).then_some(slot);
        Self(Arc::new(Mutex::new(recovered.slots().filter_map(is_free).collect())))
    }

    /// Slots in the pool.
    pub fn free_blocks(&self) -> u32 {
        self.lock().len()
    }

    /// A panic (a slot that is given back twice) may lose slots, and gives out none twice.
    fn lock(&self) -> MutexGuard<'_, FreeSlots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreePool for SharedPool {
    fn take(&mut self, count: usize, into: &mut Vec<u32>) -> bool {
        self.lock().take(count, into)
    }

    fn give(&mut self, slots: &mut Vec<u32>) {
        self.lock().give(slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_in_use_are_handed_out_when_they_come_back() {
        let mut pool = SharedPool(Arc::new(Mutex::new([1, 2, 3, 7, 9, 10].into_iter().collect())));
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        pool.take(4, &mut first);
        assert_eq!((&first[..], pool.free_blocks()), (&[1, 2, 3, 7][..], 2));
        pool.take(100, &mut rest);
        assert_eq!((&rest[..], pool.free_blocks()), (&[9, 10][..], 0));
        pool.give(&mut first);
        pool.take(2, &mut rest);
        assert_eq!((&rest[2..], pool.free_blocks()), (&[1, 2][..], 2));
    }

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
