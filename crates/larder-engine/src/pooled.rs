//! Partitions over a pool of free blocks that a cleaner keeps from running dry (S-CAVE, section V-B; [`PoolCleaner`]).
//!
//! Here a quota is a limit, and quotas may be more than the cache in sum: whoever is below its own takes a free block. Blocks that are dirty or in use stay.
//! Where tenants share a partition, the cleaner rests. An engine with a cleaner has the whole free pool, as one whose partitions lend: what it does not hold is free.

use larder_policy::watermarks::{Pool, PoolCleaner, Watermarks};

use crate::partitions::PartitionId;
use crate::{Engine, Sharing};

/// The tenants' own partitions, in their order.
struct Partitions<'e>(&'e mut Engine);

impl Partitions<'_> {
    fn id(&self, number: usize) -> Option<PartitionId> {
        self.0.partitions.own_ids().nth(number)
    }
}

impl Pool for Partitions<'_> {
    fn free(&self) -> u32 {
        self.0.free_blocks()
    }

    fn held(&self) -> Vec<u32> {
        self.0.partitions.own_ids().map(|at| self.0.partitions[at].occupied()).collect()
    }

    fn evict(&mut self, partition: usize) -> bool {
        self.id(partition).is_some_and(|at| self.0.evict_one(at))
    }
}

impl Engine {
    /// Whether a cleaner keeps blocks free. Quotas stay limits; without it, and where partitions lend ([`Engine::set_lending`]), which goes before it, all blocks may be in use.
    pub fn set_watermarks(&mut self, watermarks: Option<Watermarks>) {
        if self.watermarks() != watermarks {
            self.pool_cleaner = watermarks.map(PoolCleaner::new);
        }
    }

    /// When the cleaner begins and ends, where there is one.
    pub fn watermarks(&self) -> Option<Watermarks> {
        self.pool_cleaner.as_ref().map(PoolCleaner::watermarks)
    }

    /// Blocks that no tenant holds, and any may: slots to spare are not among them.
    pub(crate) fn free_blocks(&self) -> u32 {
        self.config.cache_blocks.saturating_sub(self.spare_slots).saturating_sub(self.held_blocks)
    }

    /// A block is about to enter: the cleaner does its part, if it has anything to do.
    pub(crate) fn keep_some_free(&mut self) {
        if self.sharing != Sharing::Off {
            return;
        }
        let Some(mut cleaner) = self.pool_cleaner.take() else { return };
        cleaner.make_room(&mut Partitions(self));
        self.pool_cleaner = Some(cleaner);
    }
}
