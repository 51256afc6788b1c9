//! Partitions that lend each other what they do not use.
//!
//! A tenant grows as long as there are free blocks, whatever its quota. When there are none, one that is below its quota takes blocks from the one that is
//! most above its own; all others make do with what they have. No tenant ever holds more than its maximum, free blocks or not. So nothing leaves the cache because of a decision alone, but only when somebody wants its place.

use larder_alloc::Mode;
use larder_policy::trial::{Action, Blocks};

use super::store::{Part, part};
use super::traffic::Traffic;

/// Blocks that change hands together.
const BATCH: u32 = 64;

/// Free blocks that one tenant may enter before it is looked at again.
const AHEAD: u32 = 1024;

/// The partitions.
pub(super) struct Lending {
    parts: Vec<Part>,
    quotas: Vec<u32>,
    /// What each may hold at most, or its quota where that is more.
    most: Vec<u32>,
    cache_blocks: u32,
    held: u32,
    by_block: bool,
}

impl Lending {
    pub(super) fn new(mode: Mode, cache_blocks: u32, tenants: usize, seed: u64) -> Self {
        let parts = (0..tenants).map(|_| part(mode, 0, seed)).collect();
        Self {
            parts,
            quotas: vec![0; tenants],
            most: vec![u32::MAX; tenants],
            cache_blocks,
            held: 0,
            by_block: false,
        }
    }

    /// Room is made for each block as it enters, as in the daemon, rather than for whole requests beforehand.
    pub(super) fn set_by_block(&mut self, by_block: bool) {
        self.by_block = by_block;
    }

    /// Each tenant holds no more than this, however many blocks are free.
    pub(super) fn set_most(&mut self, most: Vec<u32>) {
        self.most = most;
    }

    pub(super) fn access(
        &mut self,
        tenant: usize,
        action: Action,
        blocks: &Blocks<'_>,
        (closed, leaves_first): (bool, bool),
        traffic: &mut Traffic,
    ) {
        let count = blocks.keys.len();
        let step = if self.by_block { 1 } else { count.max(1) };
        self.parts[tenant].set_closed(closed);
        self.parts[tenant].set_leaves_first(leaves_first);
        for first in (0..count).step_by(step) {
            // A block that is there, or passes by, needs no room.
            if !self.by_block
                || self.parts[tenant].may_enter(action, blocks.keys[first], blocks.hashes[first])
            {
                // No request has more blocks than 32 bits count.
                self.make_room(tenant, step as u32, leaves_first, traffic);
            }
            let part = &mut self.parts[tenant];
            let before = part.resident_blocks();
            part.accesses(action, blocks, first..first + step, traffic);
            self.held = self.held - before + part.resident_blocks();
        }
        self.parts[tenant].set_leaves_first(false);
        self.parts[tenant].end_request(action);
    }

    /// Before so many blocks of a request: what the tenant may hold. For those that are to leave first nobody gives any back.
    fn make_room(&mut self, tenant: usize, needed: u32, leaves_first: bool, traffic: &mut Traffic) {
        let resident = self.parts[tenant].resident_blocks();
        let wanted = resident.saturating_add(needed).min(self.quotas[tenant]);
        let lacks = |it: &Self| !leaves_first && it.free() < wanted.saturating_sub(resident);
        while lacks(self) && self.take_back(tenant, traffic) {}
        let most = self.most[tenant].max(self.quotas[tenant]);
        let free = self.free().min(most.saturating_sub(resident));
        let capacity = self.parts[tenant].cache().capacity();
        let may = resident + free;
        if capacity > may || (capacity < resident.saturating_add(needed) && capacity < may) {
            let ahead = free.min(AHEAD.max(needed));
            self.set_capacity(tenant, resident + ahead, traffic);
        }
    }

    /// The tenant that is most above its quota gives blocks back; false if nobody is.
    fn take_back(&mut self, but: usize, traffic: &mut Traffic) -> bool {
        let above = |at: usize| self.parts[at].resident_blocks().saturating_sub(self.quotas[at]);
        let Some(most) = (0..self.parts.len()).filter(|&at| at != but).max_by_key(|&at| above(at)) else {
            return false;
        };
        let blocks = above(most).min(BATCH);
        let left = self.parts[most].resident_blocks() - blocks;
        if blocks > 0 {
            self.set_capacity(most, left, traffic);
        }
        blocks > 0
    }

    fn set_capacity(&mut self, tenant: usize, blocks: u32, traffic: &mut Traffic) {
        let before = self.parts[tenant].resident_blocks();
        self.parts[tenant].set_capacity(blocks, traffic);
        self.held = self.held - before + self.parts[tenant].resident_blocks();
    }

    fn free(&self) -> u32 {
        self.cache_blocks - self.held
    }

    /// Another quota: nothing leaves for it, but what is above the most that the tenant may hold.
    pub(super) fn resize(&mut self, tenant: usize, quota: u32, traffic: &mut Traffic) {
        self.quotas[tenant] = quota;
        self.parts[tenant].set_reach(quota);
        let most = self.most[tenant].max(quota);
        if self.parts[tenant].resident_blocks() > most {
            self.set_capacity(tenant, most, traffic);
        }
    }

    /// The tenant is gone: its blocks are free.
    pub(super) fn drop_all(&mut self, tenant: usize, traffic: &mut Traffic) {
        self.resize(tenant, 0, traffic);
        self.set_capacity(tenant, 0, traffic);
    }

    pub(super) fn part_mut(&mut self, tenant: usize) -> &mut Part {
        &mut self.parts[tenant]
    }

    pub(super) fn quota(&self, tenant: usize) -> u32 {
        self.quotas[tenant]
    }

    pub(super) fn resident(&self, tenant: usize) -> u32 {
        self.parts[tenant].resident_blocks()
    }
}
