//! The free pool of the cache device's slots that all reactors of a host share.

use larder_engine::FreePool;
use larder_engine::format::{Recovered, SlotState};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Free slots as ascending runs, handed out lowest first. Clones share one pool; engines take and give in batches, so the lock
/// is rarely wanted.
#[derive(Clone, Debug)]
pub struct SharedPool {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    /// Never handed out yet, as runs that rise.
    fresh: VecDeque<Range<u32>>,
    /// Came back.
    returned: Vec<u32>,
}

impl SharedPool {
    /// A pool of the slots `0..blocks`.
    pub fn new(blocks: u32) -> Self {
        Self::of(0..blocks)
    }

    /// A pool of the slots in which a cache holds nothing. One of which nobody knows what it holds is not among them.
    pub fn of_recovered(recovered: &Recovered) -> Self {
        let is_free = |(slot, state)| (state == SlotState::Free).then_some(slot);
        Self::of(recovered.slots().filter_map(is_free))
    }

    /// A pool of these slots, which rise.
    fn of(slots: impl Iterator<Item = u32>) -> Self {
        let mut fresh: VecDeque<Range<u32>> = VecDeque::new();
        for slot in slots {
            match fresh.back_mut() {
                Some(run) if run.end == slot => run.end += 1,
                _ => fresh.push_back(slot..slot + 1),
            }
        }
        Self { free: Arc::new(Mutex::new(Free { fresh, returned: Vec::new() })) }
    }

    /// Slots in the pool.
    pub fn free_blocks(&self) -> u32 {
        let free = self.lock();
        free.fresh.iter().map(|run| run.end - run.start).sum::<u32>() + free.returned.len() as u32
    }

    /// The pool's contents are whole between statements, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreePool for SharedPool {
    /// Slots that came back are used first: the device has written them before, and a file need not grow.
    fn take(&mut self, count: usize, into: &mut Vec<u32>) -> bool {
        let mut free = self.lock();
        let reused = count.min(free.returned.len());
        let keep = free.returned.len() - reused;
        into.extend(free.returned.drain(keep..));
        let mut wanted = u32::try_from(count - reused).unwrap_or(u32::MAX);
        while wanted > 0
            && let Some(run) = free.fresh.front_mut()
        {
            let taken = wanted.min(run.end - run.start);
            into.extend(run.start..run.start + taken);
            run.start += taken;
            wanted -= taken;
            if run.start == run.end {
                free.fresh.pop_front();
            }
        }
        !free.returned.is_empty() || !free.fresh.is_empty()
    }

    fn give(&mut self, slots: &mut Vec<u32>) {
        self.lock().returned.append(slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_are_in_use_are_never_handed_out() {
        let mut pool = SharedPool::of([1, 2, 3, 7, 9, 10].into_iter());
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        pool.take(4, &mut first);
        assert_eq!((&first[..], pool.free_blocks()), (&[1, 2, 3, 7][..], 2));
        pool.take(100, &mut rest);
        assert_eq!((&rest[..], pool.free_blocks()), (&[9, 10][..], 0));
        pool.give(&mut first);
        pool.take(2, &mut rest);
        assert_eq!((&rest[2..], pool.free_blocks()), (&[3, 7][..], 2));
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
