//! Partitions over a pool of free blocks that a cleaner keeps from running dry (S-CAVE, section V-B).
//!
//! Here a quota is a limit, and quotas may be more than the cache in sum: whoever is below its own takes a free block. When fewer blocks are free than the low watermark, the
//! cleaner is launched, and works until as many are as the high one says. It takes blocks that were not used lately, whosever they are: from each partition a part of what it
//! holds, as a scan over the whole cache would meet them, and of these what its replacement policy gives up first. Blocks that are dirty or in use stay.
//!
//! The cleaner has no time of its own: for each block that enters it takes [`PACE`], so that it is done long before what is free is used up, and nothing stands still for it.
//! Where tenants share a partition, it rests. An engine with a cleaner has the whole free pool, as one whose partitions lend: what it does not hold is free.

use crate::partitions::PartitionId;
use crate::{Engine, Sharing};

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

/// The cleaner.
#[derive(Debug)]
pub(crate) struct PoolCleaner {
    watermarks: Watermarks,
    /// What it still takes of which partition: it works while there is any.
    wanted: Vec<(PartitionId, u32)>,
    /// Some block has left since it last looked at what each partition holds.
    took_some: bool,
    /// How often it has looked: each time it begins with another partition, since it seldom comes to the last.
    looks: usize,
}

impl Engine {
    /// Whether a cleaner keeps blocks free. Quotas stay limits; without it, and where partitions lend ([`Engine::set_lending`]), which goes before it, all blocks may be in use.
    pub fn set_watermarks(&mut self, watermarks: Option<Watermarks>) {
        if self.watermarks() != watermarks {
            let rests =
                |watermarks| PoolCleaner { watermarks, wanted: Vec::new(), took_some: false, looks: 0 };
            self.pool_cleaner = watermarks.map(rests);
        }
    }

    /// When the cleaner begins and ends, where there is one.
    pub fn watermarks(&self) -> Option<Watermarks> {
        self.pool_cleaner.as_ref().map(|cleaner| cleaner.watermarks)
    }

    /// Blocks that no tenant holds.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.config.cache_blocks.saturating_sub(self.held_blocks)
    }

    /// A block is about to enter: the cleaner does its part, if it has anything to do.
    pub(crate) fn keep_some_free(&mut self) {
        let free = self.free_blocks();
        let off = self.sharing != Sharing::Off;
        let Some(cleaner) = self.pool_cleaner.as_mut().filter(|_| !off) else { return };
        let Watermarks { low, high } = cleaner.watermarks;
        if cleaner.wanted.is_empty() {
            // A scan that found nothing to take is not begun again before somebody needs it.
            let goes_on = std::mem::take(&mut cleaner.took_some) && free < high;
            if free >= low && !goes_on {
                return;
            }
            self.look_for(high.saturating_sub(free));
        }
        self.want_freed();
        for _ in 0..PACE {
            if self.free_blocks() >= high {
                self.stop_pool_cleaner();
                return;
            }
            let Some(cleaner) = &mut self.pool_cleaner else { return };
            let Some((at, left)) = cleaner.wanted.last_mut() else { return };
            let at = *at;
            *left -= 1;
            if *left == 0 {
                cleaner.wanted.pop();
            }
            let took = self.evict_one(at);
            if let Some(cleaner) = &mut self.pool_cleaner {
                cleaner.took_some |= took;
            }
        }
    }

    /// Begin to take so many blocks, and those that enter meanwhile: of each partition a part of what it holds.
    fn look_for(&mut self, blocks: u32) {
        let blocks = blocks.saturating_add(blocks / (PACE - 1) + 1);
        let held = |at| u64::from(self.partitions[at].occupied());
        let all: u64 = self.partitions.own_ids().map(held).sum();
        // A part of `blocks`.
        let part = |at| (u64::from(blocks) * held(at)).div_ceil(all.max(1)) as u32;
        let wanted = self.partitions.own_ids().map(|at| (at, part(at))).filter(|(_, part)| *part > 0);
        let mut wanted: Vec<_> = wanted.collect();
        if let Some(cleaner) = &mut self.pool_cleaner {
            cleaner.looks += 1;
            let begin = cleaner.looks % wanted.len().max(1);
            wanted.rotate_left(begin);
            cleaner.wanted = wanted;
        }
    }

    fn stop_pool_cleaner(&mut self) {
        if let Some(cleaner) = &mut self.pool_cleaner {
            cleaner.wanted.clear();
            cleaner.took_some = false;
        }
    }
}
