//! Checksums of the data in slots: which are asked for, which are known, and slots freed ahead of their use.

use super::{Planted, Sums};
use crate::format::spare_slots;
use crate::partitions::PartitionId;
use crate::store::{BlockKey, State};
use crate::{Engine, VolumeId};

/// Free slots below which a round is asked for, where fewer are to spare than twice as many: those that are on their way are wanted.
const FEW: usize = 16;

impl Engine {
    /// The checksums of whole blocks `start..end` of a volume (bytes), where they are kept.
    pub(crate) fn sums(&self, volume: VolumeId, start: u64, end: u64) -> Option<Sums> {
        let durable = self.durable.as_deref()?;
        debug_assert_eq!(self.block_range(volume, self.block_of(start)).0, start, "whole blocks");
        let first = durable.block_id(BlockKey { volume, block: self.block_of(start) });
        Some(Sums {
            salt: durable.salt,
            first,
            block_bytes: self.config.block_bytes,
            bytes: (end - start) as u32,
        })
    }

    /// True if this is the checksum of what was written to the slot.
    pub(crate) fn is_sum(&self, slot: u32, sum: u32) -> bool {
        let known = self.durable.as_deref().and_then(|durable| durable.sum(&self.store, slot));
        known.is_none_or(|known| known == sum) || self.is_planted(Planted::SumsIgnored)
    }

    /// True if the data of a cached block may be changed where it is.
    pub(crate) fn may_change(&self, slot: u32) -> bool {
        self.durable.as_ref().is_none_or(|durable| durable.slots.may_change(slot))
    }

    /// A slot is about to be written with other data of its block.
    pub(crate) fn note_overwritten(&mut self, slot: u32) {
        if let Some(durable) = &mut self.durable {
            durable.slots.overwrite(slot);
        }
    }

    /// Whole blocks from `start` on were written to their slots. Their regions are not quiet: they are mapped later.
    pub(crate) fn note_written(&mut self, volume: VolumeId, start: u64, sums: &[u32]) {
        for (&sum, block) in sums.iter().zip(self.block_of(start)..) {
            let found = self.store.find(BlockKey { volume, block });
            let slot = found.filter(|&entry| self.store.state(entry) != State::Dead);
            if let (Some(entry), Some(durable)) = (slot, &mut self.durable) {
                durable.slots.written(&mut self.store, entry, sum);
            }
        }
    }

    /// A free slot gets an entry.
    pub(crate) fn note_entered(&mut self, slot: u32) {
        let unchecked = self.is_planted(Planted::SlotBeforeFree);
        if let Some(durable) = self.durable.as_mut().filter(|durable| !unchecked && !durable.is_latched()) {
            durable.slots.enter(slot);
        }
    }

    /// Where few slots are free, and the pool has no more, those that are on their way are wanted.
    pub(crate) fn want_freed(&mut self) {
        let few = FEW.max(self.spare_slots as usize / 2);
        let coming = self.durable.as_ref().is_some_and(|durable| durable.freeing() > 0);
        if !coming || self.free_slots.len() >= few {
            return;
        }
        if !self.pool_is_dry {
            self.take_from_pool(few - self.free_slots.len());
        }
        if let Some(durable) = self.durable.as_mut().filter(|_| self.free_slots.len() < few) {
            durable.want(1);
        }
    }

    /// Slots that are freed cannot be used before a round has said so: see to it that some always are on their way.
    pub(crate) fn free_ahead(&mut self, at: PartitionId) {
        self.want_freed();
        let Some(durable) = &self.durable else { return };
        let ahead = spare_slots(self.partitions[at].quota.into());
        let wanted = (ahead as usize).saturating_sub(durable.freeing());
        if self.free_slots.len() < wanted {
            self.take_from_pool(wanted - self.free_slots.len());
        }
        // No more than `ahead`.
        let missing = wanted.saturating_sub(self.free_slots.len()) as u32;
        if missing == 0 {
            return;
        }
        // Whoever lends gives what it has above its quota, and no more.
        let lent = self.lendable(at).map_or(0, |(from, most)| self.lend(from, most.min(missing)));
        for _ in lent..missing {
            if !self.evict_for(at) {
                return;
            }
        }
    }
}
