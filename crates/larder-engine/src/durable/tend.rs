//! What is done now and then: backings are flushed, marks of regions that rest go, blocks that wait are mapped.

use super::{Durable, Planted};
use crate::format::{BlockId, Entry, Region};
use crate::store::{BlockKey, State};
use crate::{Engine, VolumeId};

impl Engine {
    /// To be called about once a second: says what nobody waits for. Follow with [`Engine::next_action`] until it is empty.
    pub fn tick(&mut self) {
        self.wake_movers();
        let hasty = self.is_planted(Planted::UnmarkBeforeBacking);
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_latched()) else { return };
        let idle = durable.regions.idle(hasty);
        durable.unmarks.extend(idle);
        // One that makes data durable, one that maps it.
        durable.want(2);
        durable.confirms = true;
        self.flush_unflushed();
        self.clean_now_and_then();
        self.pump();
        self.run_granted();
    }

    /// Where slots begin on the cache device, in bytes, if the cache was opened.
    pub fn data_offset(&self) -> Option<u64> {
        self.durable.as_ref().map(|durable| durable.superblock.layout.data_offset())
    }

    /// Bytes of metadata written to the cache device since the start.
    pub fn metadata_bytes(&self) -> u64 {
        self.durable.as_ref().map_or(0, |durable| durable.written_bytes)
    }

    /// Flush the backings of which that would make regions quiet.
    pub(super) fn flush_unflushed(&mut self) {
        for volume in 0..self.volumes.len() {
            let wants = self.durable.as_ref().is_some_and(|durable| {
                let number = durable.numbers[volume];
                durable.regions.wants_flush(number) || durable.owes(number)
            });
            if wants {
                self.flush_backing(VolumeId(volume as u16));
            }
        }
    }

    /// As many regions are marked as can be: those that are quiet make room, else flushes make some quiet.
    pub(super) fn relieve_marks(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        let count = durable.journal.marks_max().div_ceil(4);
        let mut quiet = durable.regions.quiet(count);
        if quiet.is_empty() {
            quiet = durable.regions.forgettable(count);
        }
        if quiet.is_empty() {
            return self.flush_unflushed();
        }
        durable.unmarks.extend(quiet);
        durable.want(2);
    }

    /// End the marks that are to go. Blocks that were overwritten under them are freed first, and mapped again later.
    pub(super) fn push_unmarks(&mut self) {
        let hasty = self.is_planted(Planted::UnmarkBeforeBacking);
        let keep = self.is_planted(Planted::UnmarkKeepsStale);
        let Some(durable) = &mut self.durable else { return };
        for region in std::mem::take(&mut durable.unmarks) {
            let Some(durable) = &mut self.durable else { return };
            if durable.full {
                durable.unmarks.push_back(region);
                continue;
            }
            let volume = durable.volumes.get(&region.volume).copied();
            let trusted = durable.regions.is_trusted(region.volume) || volume.is_none();
            let quiet = durable.regions.may_unmark(region, hasty) && trusted;
            // What is cached of a volume that is distrusted is on its way out. Its marks go all the same: requests that hold it up may wait for others.
            let distrusts = volume.is_some_and(|volume| self.goes_past_cache(volume));
            let Some(durable) = &mut self.durable else { return };
            let forgets = if quiet { distrusts } else { durable.regions.may_forget(region) };
            let may = durable.frees.is_empty() && (keep || !durable.maps_older(region));
            if may && (quiet || forgets) {
                self.unmark(region, keep, forgets);
            }
        }
    }

    /// Where nothing is known of the backing (`forgets`) all that is clean there is freed.
    fn unmark(&mut self, region: Region, keep: bool, forgets: bool) {
        for key in self.blocks_of_region(region) {
            let Some(entry) = self.store.find(key) else { continue };
            let slot = self.store.slot(entry);
            let Some(durable) = &mut self.durable else { return };
            // A dead block's data is in doubt; it leaves when nobody reads it any more.
            let doubtful = self.store.state(entry) == State::Dead && durable.slots.is_used(slot);
            let clean = durable.slots.is_used(slot) && !durable.slots.is_dirty(slot);
            let unknown = forgets && clean;
            if (doubtful || durable.slots.is_stale(slot) || unknown)
                && !keep
                && !durable.push_free_in_use(key, slot)
            {
                durable.unmarks.push_back(region);
                return;
            }
        }
        let Some(durable) = &mut self.durable else { return };
        if durable.push(Entry::Unmark { region }) {
            durable.regions.unmarked(region);
            self.wish_region(region);
        } else {
            durable.unmarks.push_back(region);
        }
    }
}

impl Durable {
    /// True if the journal maps an older version of one of the region's blocks clean, which the `Map` of a newer one will free: without the mark a
    /// crash before that would have it trusted.
    fn maps_older(&self, region: Region) -> bool {
        let size = u64::from(self.superblock.region_blocks);
        let at = |block| BlockId { volume: region.volume, block };
        let (first, end) = (region.region * size, (region.region + 1).saturating_mul(size));
        let mut older = self.limbo.between(at(first), end);
        older.any(|slot| self.slots.is_used(slot) && !self.slots.is_dirty(slot))
    }

    /// The journal is to forget a block that stays cached. False if the journal is full.
    pub(super) fn push_free_in_use(&mut self, key: BlockKey, slot: u32) -> bool {
        if !self.push(Entry::Free { slot }) {
            return false;
        }
        self.limbo.insert(self.block_id(key), slot);
        self.slots.unmap(slot);
        self.said.frees.push(slot);
        true
    }
}
