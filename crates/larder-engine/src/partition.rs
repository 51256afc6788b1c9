//! Partitions: which tenant holds how many blocks, who may enter, and who leaves.
//!
//! A partition is a quota over entries on the tenant's replacement list. Resizing moves no data: a tenant above its quota loses its coldest
//! blocks, a bounded number at a time ([`Engine::trim`]). A block on which anyone holds a range lock is passed over: something on its slot may be in flight.

use crate::locks::Owner;
use crate::store::{BlockKey, EntryId, State};
use crate::{Engine, TenantId, TenantStats, VolumeId, WritePolicy};

/// Slots taken from the free pool at a time.
const TAKE: usize = 64;

/// Blocks looked at for one that nobody has locked before giving up.
const VICTIM_LOOKAHEAD: usize = 64;

impl Engine {
    /// Evict up to `budget` blocks of tenants above their quota, coldest first, drop blocks of volumes that are distrusted, and give surplus slots back
    /// to the pool. True if the budget ran out before the work: call again. Blocks in use stay for a later call.
    pub fn trim(&mut self, budget: usize) -> bool {
        if !self.trim_due {
            return false;
        }
        let mut left = budget;
        let mut still_above = false;
        for t in 0..self.tenants.len() {
            while left > 0 && self.above_limit(t) && self.evict_one(t) {
                left -= 1;
            }
            still_above |= self.above_limit(t);
        }
        let more_to_sweep = self.sweep(budget);
        self.give_surplus();
        self.trim_due = still_above || !self.sweeps.is_empty();
        (still_above && left == 0) || more_to_sweep
    }

    /// A tenant's counters.
    pub fn stats(&self, tenant: TenantId) -> TenantStats {
        self.tenants[tenant.0 as usize].stats
    }

    /// Blocks that a tenant holds.
    pub fn occupied(&self, tenant: TenantId) -> u32 {
        self.tenants[tenant.0 as usize].lru.len()
    }

    /// A tenant's quota, in blocks.
    pub fn quota(&self, tenant: TenantId) -> u32 {
        self.tenants[tenant.0 as usize].quota
    }

    /// A tenant's write policy.
    pub fn write_policy(&self, tenant: TenantId) -> WritePolicy {
        self.tenants[tenant.0 as usize].policy
    }

    /// Blocks newer on the cache device than on the backing. Neither `wt` nor `ro` has a path that makes any: a write completes only when the backing has it.
    pub fn dirty(&self, _tenant: TenantId) -> u32 {
        0
    }

    /// True once the cache device failed so often in a row that it is no longer used.
    pub fn cache_failed(&self) -> bool {
        self.cache_failed
    }

    /// Bytes of memory held for index, replacement and slots.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.links.memory_bytes() + self.free_slots.capacity() * size_of::<u32>()
    }

    pub(crate) fn stats_mut(&mut self, volume: VolumeId) -> &mut TenantStats {
        let tenant = self.volume(volume).tenant;
        &mut self.tenants[tenant.0 as usize].stats
    }

    /// A cached block was used.
    pub(crate) fn touch(&mut self, volume: VolumeId, entry: EntryId) {
        let tenant = self.volume(volume).tenant;
        self.tenants[tenant.0 as usize].lru.touch(&mut self.links, entry);
    }

    /// Give an absent block an entry with a slot, if its partition allows: from the free slots below the quota, else from the partition's coldest block.
    pub(crate) fn admit(&mut self, key: BlockKey, state: State) -> Option<EntryId> {
        let tenant = self.volume(key.volume).tenant.0 as usize;
        if self.cache_failed || self.tenants[tenant].quota == 0 {
            return None;
        }
        if self.tenants[tenant].lru.len() >= self.tenants[tenant].quota || !self.have_free_slot() {
            self.evict_one(tenant);
        }
        if self.tenants[tenant].lru.len() >= self.tenants[tenant].quota {
            return None;
        }
        let slot = self.free_slots.pop()?;
        let entry = self.store.insert(key, slot, state);
        self.links.grow_to(entry);
        self.tenants[tenant].lru.insert(&mut self.links, entry);
        Some(entry)
    }

    /// The block's data on the cache device is stale. `owner`'s own lock does not count as use.
    pub(crate) fn invalidate(&mut self, key: BlockKey, owner: Owner) {
        if let Some(entry) = self.store.find(key) {
            if self.store.state(entry) != State::Dead {
                self.stats_mut(key.volume).invalidations += 1;
            }
            self.drop_entry(key, entry, owner);
        }
    }

    /// Take an entry away; while another owner may still use the slot, it stays as dead, first in line to leave.
    pub(crate) fn drop_entry(&mut self, key: BlockKey, entry: EntryId, owner: Owner) {
        let (start, end) = self.block_range(key.volume, key.block);
        if !self.volume(key.volume).locks.is_locked_by_other(start, end, owner) {
            return self.remove_entry(entry);
        }
        self.store.set_state(entry, State::Dead);
        let tenant = self.volume(key.volume).tenant.0 as usize;
        self.tenants[tenant].lru.remove(&mut self.links, entry);
        self.tenants[tenant].lru.insert_oldest(&mut self.links, entry);
    }

    /// The entry of a block, unless it is dead; a dead one that nobody but `owner` can be using is removed on the way.
    /// `Err` if it is dead and in use, so that the block cannot be cached now.
    pub(crate) fn find_live(&mut self, key: BlockKey, owner: Owner) -> Result<Option<EntryId>, InUse> {
        let Some(entry) = self.store.find(key) else { return Ok(None) };
        if self.store.state(entry) != State::Dead {
            return Ok(Some(entry));
        }
        let (start, end) = self.block_range(key.volume, key.block);
        if self.volume(key.volume).locks.is_locked_by_other(start, end, owner) {
            return Err(InUse);
        }
        self.remove_entry(entry);
        Ok(None)
    }

    /// Remove an entry on whose slot nothing is in flight; the slot is free.
    pub(crate) fn remove_entry(&mut self, entry: EntryId) {
        let tenant = self.volume(self.store.key(entry).volume).tenant.0 as usize;
        self.tenants[tenant].lru.remove(&mut self.links, entry);
        let slot = self.store.remove(entry);
        self.free_slots.push(slot);
    }

    /// Blocks a tenant may hold: nothing on a failed device.
    fn limit(&self, tenant: usize) -> u32 {
        if self.cache_failed { 0 } else { self.tenants[tenant].quota }
    }

    fn above_limit(&self, tenant: usize) -> bool {
        self.tenants[tenant].lru.len() > self.limit(tenant)
    }

    /// Evict a tenant's coldest block that nobody has locked. False if there is none within reach.
    fn evict_one(&mut self, tenant: usize) -> bool {
        let Some(victim) = self.coldest_unused(tenant) else { return false };
        if self.store.state(victim) == State::Valid && !self.cache_failed {
            self.tenants[tenant].stats.evictions += 1;
        }
        self.remove_entry(victim);
        true
    }

    fn coldest_unused(&self, tenant: usize) -> Option<EntryId> {
        let mut candidates = self.tenants[tenant].lru.iter_oldest_first(&self.links).take(VICTIM_LOOKAHEAD);
        candidates.find(|&entry| !self.is_in_use(entry))
    }

    pub(crate) fn is_in_use(&self, entry: EntryId) -> bool {
        let key = self.store.key(entry);
        let (start, end) = self.block_range(key.volume, key.block);
        self.volume(key.volume).locks.is_locked(start, end)
    }

    /// True if a slot is at hand, after asking the pool for some. No more is taken than the partitions here have room for: slots held back
    /// from another reactor's tenants would keep those below their quota.
    fn have_free_slot(&mut self) -> bool {
        if self.free_slots.is_empty() {
            let room = self.room().min(TAKE);
            self.pool.take(room, &mut self.free_slots);
            // The pool hands out ascending runs, and slots are used from the back: neighbours on the volume become neighbours on the device.
            self.free_slots.reverse();
        }
        !self.free_slots.is_empty()
    }

    /// Blocks that the tenants here may still add.
    fn room(&self) -> usize {
        (0..self.tenants.len())
            .map(|t| self.limit(t).saturating_sub(self.tenants[t].lru.len()) as usize)
            .sum()
    }

    fn give_surplus(&mut self) {
        let keep = self.room();
        if self.free_slots.len() > keep {
            let mut surplus = self.free_slots.split_off(keep);
            self.pool.give(&mut surplus);
        }
    }
}

/// A dead entry whose slot someone may still be reading.
pub(crate) struct InUse;
