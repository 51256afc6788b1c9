//! A free pool for simulations: a stack of slots that the test can look into, and make scarce.

use larder_engine::FreePool;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Free slots, shared by an engine and the test that watches it. Slots come back in the order last in, first out, so that a slot
/// given back too early is soon in use again, and seen.
#[derive(Clone, Debug)]
pub struct SharedSlots(Arc<Mutex<Slots>>);

#[derive(Debug)]
struct Slots {
    total: u32,
    take_max: usize,
    stack: Vec<u32>,
    free: BTreeSet<u32>,
}

impl SharedSlots {
    /// A pool of the slots below `total`, which gives out at most `take_max` at a time.
    pub fn new(total: u32, take_max: usize) -> Self {
        let slots = Slots { total, take_max, stack: (0..total).rev().collect(), free: (0..total).collect() };
        Self(Arc::new(Mutex::new(slots)))
    }

    /// A pool of these of `total` slots, the last to be given out first.
    pub fn of(free: Vec<u32>, total: u32) -> Self {
        let set = free.iter().copied().collect();
        Self(Arc::new(Mutex::new(Slots { total, take_max: usize::MAX, stack: free, free: set })))
    }

    /// How many slots are free.
    pub fn len(&self) -> usize {
        self.lock().stack.len()
    }

    /// True if no slot is free.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if this slot is free.
    pub fn contains(&self, slot: u32) -> bool {
        self.lock().free.contains(&slot)
    }

    /// From now on give out at most this many slots at a time.
    pub fn set_take_max(&self, take_max: usize) {
        self.lock().take_max = take_max;
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // A holder panics only by refusing a slot, which leaves the pool as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreePool for SharedSlots {
    fn take(&mut self, count: usize, into: &mut Vec<u32>) -> bool {
        let mut slots = self.lock();
        for _ in 0..count.min(slots.take_max) {
            let Some(slot) = slots.stack.pop() else { return false };
            slots.free.remove(&slot);
            into.push(slot);
        }
        !slots.stack.is_empty()
    }

    fn give(&mut self, given: &mut Vec<u32>) {
        let mut slots = self.lock();
        for slot in given.drain(..) {
            assert!(slot < slots.total, "slot {slot} does not exist");
            assert!(slots.free.insert(slot), "slot {slot} is given back twice");
            slots.stack.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_out_each_slot_once_and_the_last_returned_first() {
        let mut pool = SharedSlots::new(4, 3);
        let mut mine = Vec::new();
        pool.take(10, &mut mine);
        assert_eq!((mine.as_slice(), pool.len()), ([0, 1, 2].as_slice(), 1));
        pool.give(&mut vec![1]);
        assert!(pool.contains(1) && !pool.contains(0));
        pool.take(1, &mut mine);
        assert_eq!(mine, [0, 1, 2, 1]);
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn refuses_a_slot_that_is_free_already() {
        SharedSlots::new(4, 4).give(&mut vec![2]);
    }
}
