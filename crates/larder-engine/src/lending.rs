//! Partitions that lend each other what they do not use.
//!
//! While they lend, a tenant grows as long as there are free blocks, whatever its quota. When there are none, one that is below its quota takes blocks from the one that is
//! most above its own; all others make do with what they have. That goes for newer data of a dirty block, too, which takes a slot of its own.
//! So nothing leaves the cache because of a decision alone, but only when somebody wants its place.
//! Where tenants share a partition, none of this is so. An engine that lends takes the whole free pool: no other may depend on it.

use crate::partitions::PartitionId;
use crate::{Engine, Sharing};

/// Blocks that change hands together.
const BATCH: u32 = 64;

/// How many more blocks policies are told of than a tenant holds, once it holds more than its quota.
const AHEAD: u32 = 1024;

impl Engine {
    /// Whether partitions lend each other what they do not use. Where they no longer do, what is above a quota leaves in [`Engine::trim`].
    pub fn set_lending(&mut self, lending: bool) {
        if std::mem::replace(&mut self.lending, lending) != lending {
            self.tell_touched();
            self.partitions.own_ids().for_each(|at| self.fit_capacity(at));
            self.trim_due = true;
        }
    }

    /// True if partitions lend.
    #[inline]
    pub fn is_lending(&self) -> bool {
        self.lending && self.sharing == Sharing::Off
    }

    /// A partition's policies are told its quota, or what it holds of others' as well.
    pub(crate) fn fit_capacity(&mut self, at: PartitionId) {
        let lending = self.is_lending();
        let partition = &mut self.partitions[at];
        let (quota, held) = (partition.quota, partition.occupied());
        let capacity = if lending && held > quota { held.saturating_add(AHEAD) } else { quota };
        partition.set_capacity(capacity);
    }

    /// Nothing more fits into a partition without anything leaving the cache.
    pub(crate) fn is_full(&mut self, at: PartitionId) -> bool {
        let spare = self.spills(at) && !self.partitions[PartitionId::COMMON].is_full();
        self.partitions[at].is_full() && !spare && !(self.is_lending() && self.have_free_slot())
    }

    /// A slot for another block of a tenant, lent or its own.
    pub(crate) fn take_lent_slot(&mut self, own: PartitionId) -> Option<u32> {
        if !self.have_free_slot() {
            let from = self.lendable(own).map_or(own, |(from, _)| from);
            let above = self.above_quota(from);
            // Slots that wait until the journal says that they are free are on their way already.
            let coming = self.durable.as_ref().map_or(0, |durable| durable.freeing());
            let batch = match from == own {
                true => 1,
                false => above.min(BATCH.saturating_sub(u32::try_from(coming).unwrap_or(u32::MAX))),
            };
            for _ in 0..batch {
                if !self.evict_one(from) {
                    break;
                }
            }
            self.free_ahead(own);
            self.fit_capacity(from);
            // What left may not be free yet, and others be.
            self.have_free_slot();
        }
        let slot = self.free_slots.pop()?;
        let partition = &mut self.partitions[own];
        let held = partition.occupied();
        if held >= partition.capacity {
            partition.set_capacity(held.saturating_add(AHEAD));
        }
        Some(slot)
    }

    /// A block leaves the cache so that a tenant can have its slot: one of its own, but where partitions lend and it is below its quota.
    pub(crate) fn give_one(&mut self, own: PartitionId) -> bool {
        let Some((from, _)) = self.lendable(own) else { return self.evict_for(own) };
        let gone = self.evict_one(from);
        self.fit_capacity(from);
        gone
    }

    /// Who lends to a tenant, and how much it has above its quota.
    pub(crate) fn lendable(&self, own: PartitionId) -> Option<(PartitionId, u32)> {
        let from = if self.is_lending() { self.lender(own) } else { None };
        from.map(|from| (from, self.above_quota(from)))
    }

    /// Who gives blocks back for a tenant that is below its quota: the one that is most above its own.
    fn lender(&self, own: PartitionId) -> Option<PartitionId> {
        if self.partitions[own].is_full() {
            return None;
        }
        let others = self.partitions.own_ids().filter(|&at| at != own);
        let most = others.max_by_key(|&at| self.above_quota(at))?;
        (self.above_quota(most) > 0).then_some(most)
    }

    fn above_quota(&self, at: PartitionId) -> u32 {
        self.partitions[at].occupied().saturating_sub(self.partitions[at].quota)
    }
}
