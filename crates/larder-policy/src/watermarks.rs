//! A cleaner that keeps some blocks of a cache of partitions free (S-CAVE, section V-B).
//!
//! Quotas are limits then, and may be more than the cache in sum: whoever is below its own takes a free block. When fewer blocks are free than the low watermark, the
//! cleaner is launched, and works until as many are as the high one says. It takes blocks that were not used lately, whosever they are: from each partition a part of what it
//! holds, as a scan over the whole cache would meet them, and of these what its replacement policy gives up first.
//!
//! The cleaner has no time of its own: for each block that enters it takes 16, so that it is done long before what is free is used up, and nothing stands still for it.

/// Blocks that leave for each that enters while the cleaner works: with watermarks of 1 and 5 % it is done when a third of a percent of the cache has entered.
const PACE: u32 = 16;

/// When the cleaner begins, and when it ends, in free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// It begins when fewer are free.
    pub low: u32,
    /// It ends when so many are free.
    pub high: u32,
}

/// A cache of partitions that has a cleaner.
pub trait Pool {
    /// Blocks that no partition holds.
    fn free(&self) -> u32;

    /// Blocks that each partition holds, in the order of their numbers from 0.
    fn held(&self) -> Vec<u32>;

    /// The partition of this number loses the block that its policy gives up. False if it has none that may leave.
    fn evict(&mut self, partition: usize) -> bool;
}

/// The cleaner.
#[derive(Clone, Debug)]
pub struct PoolCleaner {
    watermarks: Watermarks,
    /// What it still takes of which partition: it works while there is any.
    wanted: Vec<(usize, u32)>,
    /// Some block has left since it last looked at what each partition holds.
    took_some: bool,
    /// How often it has looked: each time it begins with another partition, since it seldom comes to the last.
    looks: usize,
}

impl PoolCleaner {
    /// A cleaner at rest.
    pub fn new(watermarks: Watermarks) -> Self {
        Self { watermarks, wanted: Vec::new(), took_some: false, looks: 0 }
    }

    /// When it begins and ends.
    pub fn watermarks(&self) -> Watermarks {
        self.watermarks
    }

    /// A block is about to enter: the cleaner does its part. True if it had anything to do.
    pub fn make_room(&mut self, pool: &mut impl Pool) -> bool {
        let (free, Watermarks { low, high }) = (pool.free(), self.watermarks);
        if self.wanted.is_empty() {
            // A scan that found nothing to take is not begun again before somebody needs it.
            let goes_on = std::mem::take(&mut self.took_some) && free < high;
            if free >= low && !goes_on {
                return false;
            }
            self.look_for(high.saturating_sub(free), &pool.held());
        }
        for _ in 0..PACE {
            if pool.free() >= high {
                self.rest();
                break;
            }
            let Some((at, left)) = self.wanted.last_mut() else { break };
            let at = *at;
            *left -= 1;
            if *left == 0 {
                self.wanted.pop();
            }
            self.took_some |= pool.evict(at);
        }
        true
    }

    /// Begin to take so many blocks, and those that enter meanwhile: of each partition a part of what it holds.
    fn look_for(&mut self, blocks: u32, held: &[u32]) {
        let blocks = blocks.saturating_add(blocks / (PACE - 1) + 1);
        let all: u64 = held.iter().map(|&held| u64::from(held)).sum();
        // A part of `blocks`.
        let part = |held: u32| (u64::from(blocks) * u64::from(held)).div_ceil(all.max(1)) as u32;
        self.wanted.extend(held.iter().map(|&held| part(held)).enumerate().filter(|(_, part)| *part > 0));
        self.looks += 1;
        let begin = self.looks % self.wanted.len().max(1);
        self.wanted.rotate_left(begin);
    }

    fn rest(&mut self) {
        self.wanted.clear();
        self.took_some = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of 1,000 blocks: what each partition holds, and how much of that may leave.
    struct Blocks {
        held: Vec<u32>,
        loose: Vec<u32>,
    }

    impl Pool for Blocks {
        fn free(&self) -> u32 {
            1000 - self.held.iter().sum::<u32>()
        }

        fn held(&self) -> Vec<u32> {
            self.held.clone()
        }

        fn evict(&mut self, partition: usize) -> bool {
            let may = self.loose[partition] > 0;
            self.loose[partition] -= u32::from(may);
            self.held[partition] -= u32::from(may);
            may
        }
    }

    fn cleaner() -> PoolCleaner {
        PoolCleaner::new(Watermarks { low: 10, high: 50 })
    }

    #[test]
    fn it_begins_below_the_low_watermark_and_works_up_to_the_high_one() {
        let mut pool = Blocks { held: vec![600, 300, 90], loose: vec![1000; 3] };
        let mut cleaner = cleaner();
        assert!(!cleaner.make_room(&mut pool), "ten are free");
        pool.held[0] += 1;
        let mut entered = 1;
        while cleaner.make_room(&mut pool) {
            pool.held[0] += 1;
            entered += 1;
        }
        // 41 are wanted, and those that enter meanwhile: it takes 16, 16, and the 11 that are left.
        assert_eq!(entered, 4);
        assert_eq!(pool.free(), 49, "as many as the high one says, before the last entered: {:?}", pool.held);
    }

    #[test]
    fn each_partition_gives_a_part_of_what_it_holds() {
        let mut pool = Blocks { held: vec![600, 300, 100], loose: vec![1000; 3] };
        let mut cleaner = cleaner();
        while cleaner.make_room(&mut pool) {}
        // Of 54 (50, and those that could enter meanwhile) 33, 17 and 6; six of whom it comes to last are not needed.
        assert_eq!(pool.held, [600 - 33, 300 - 11, 100 - 6]);
    }

    #[test]
    fn where_nothing_may_leave_it_goes_on_looking() {
        let mut pool = Blocks { held: vec![1000], loose: vec![3] };
        let mut cleaner = cleaner();
        let turns = (0..100).take_while(|_| cleaner.make_room(&mut pool)).count();
        assert_eq!(
            turns, 100,
            "as long as fewer are free than the low watermark, whoever enters has it look again"
        );
        assert_eq!(pool.free(), 3);
    }
}
