//! Partitions over a pool of free blocks that a cleaner keeps from running dry (S-CAVE, section V-B): the daemon's own cleaner.
//!
//! Quotas are limits here: whoever is below its own takes a free block, and where there is none, one of its own leaves.

use larder_policy::trial::{Action, Blocks};
use larder_policy::watermarks::{Pool, PoolCleaner, Watermarks};

use super::store::Part;
use super::traffic::Traffic;

/// The cleaner, and the blocks of the cache.
pub(super) struct Cleaned {
    cleaner: PoolCleaner,
    cache_blocks: u32,
}

/// The partitions while blocks of one enter.
struct Partitions<'a> {
    parts: &'a mut [Part],
    traffic: &'a mut Traffic,
    free: u32,
}

impl Pool for Partitions<'_> {
    fn free(&self) -> u32 {
        self.free
    }

    fn held(&self) -> Vec<u32> {
        self.parts.iter().map(Part::resident_blocks).collect()
    }

    fn evict(&mut self, partition: usize) -> bool {
        let before = self.parts[partition].resident_blocks();
        self.parts[partition].evict(1, self.traffic);
        let gone = before - self.parts[partition].resident_blocks();
        self.free += gone;
        gone > 0
    }
}

impl Cleaned {
    pub(super) fn new(watermarks: Watermarks, cache_blocks: u32) -> Self {
        Self { cleaner: PoolCleaner::new(watermarks), cache_blocks }
    }

    /// A request of a tenant, block by block: the cleaner works as they enter.
    pub(super) fn access(
        &mut self,
        parts: &mut [Part],
        tenant: usize,
        action: Action,
        blocks: &Blocks<'_>,
        closed: bool,
        traffic: &mut Traffic,
    ) {
        let held: u32 = parts.iter().map(Part::resident_blocks).sum();
        let mut pool = Partitions { parts, traffic, free: self.cache_blocks.saturating_sub(held) };
        for at in 0..blocks.keys.len() {
            pool.parts[tenant].set_closed(closed);
            if pool.parts[tenant].may_enter(action, blocks.keys[at], blocks.hashes[at]) {
                self.cleaner.make_room(&mut pool);
                // Its own leaves, as where it is at its limit.
                let room = pool.free > 0 || pool.evict(tenant);
                pool.parts[tenant].set_closed(closed || !room);
            }
            let before = pool.parts[tenant].resident_blocks();
            pool.parts[tenant].accesses(action, blocks, at..at + 1, pool.traffic);
            pool.free = (pool.free + before).saturating_sub(pool.parts[tenant].resident_blocks());
        }
        pool.parts[tenant].end_request(action);
    }
}
