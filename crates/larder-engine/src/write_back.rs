//! Writes under `wb`: to the cache alone.
//!
//! Each block goes to a slot of its own, never to the one where it is: what the journal maps stays as it is until it maps something else
//! (`durable`). A part of a block is put together with the rest of it first, which comes from its slot or, where the block is absent, from the
//! backing: passed by, a volume of large blocks and small writes would never be cached. What the cache cannot take goes to the backing (`out.rs`).

use crate::locks::Owner;
use crate::request::Part;
use crate::store::{BlockKey, State};
use crate::write::Run;
use crate::{Drain, Engine, IoError, Op, OpKind, Target, VolumeId, WritePolicy};

impl Engine {
    /// True if writes of this volume go to the cache alone.
    pub(crate) fn writes_back(&self, volume: VolumeId) -> bool {
        let policy = self.write_policy(self.volume(volume).tenant);
        let draining = self.draining(volume) != Drain::Off;
        policy == WritePolicy::WriteBack && self.durable.is_some() && !self.cache_failed && !draining
    }

    /// True if the backing does not have a block's data.
    pub(crate) fn is_dirty(&self, key: BlockKey) -> bool {
        self.volume(key.volume).dirty > 0
            && self.store.find(key).is_some_and(|entry| self.store.state(entry) == State::Dirty)
    }

    /// True if the backing does not have some of this.
    pub(crate) fn any_dirty(&self, volume: VolumeId, start: u64, end: u64) -> bool {
        self.volume(volume).dirty > 0
            && self.blocks_of(start, end).any(|block| self.is_dirty(BlockKey { volume, block }))
    }

    /// A write part has its lock.
    pub(crate) fn write_back(&mut self, part_id: u32) {
        // One step of its own keeps the part alive while its pieces start.
        let known = &mut self.parts[part_id as usize];
        let part = Part { pending: 1, back: true, ..*known };
        (known.pending, known.back) = (1, true);
        let mut run: Option<Run> = None;
        for block in self.blocks_of(part.start, part.end) {
            let key = BlockKey { volume: part.volume, block };
            self.count_write(key, part.asked);
            let (block_start, block_end) = self.block_range(part.volume, block);
            let (start, end) = (part.start.max(block_start), part.end.min(block_end));
            let whole = (start, end) == (block_start, block_end);
            let slot = self.place(part_id, key, whole);
            let aligned = self.is_cache_aligned(end);
            let slot = match slot {
                Some(slot) if whole && aligned => Some(slot),
                None if whole || !self.is_dirty(key) => {
                    self.pass_by(part_id, &part, start, end);
                    None
                }
                to => {
                    self.merge_dirty(part_id, key, (start, end), to);
                    None
                }
            };
            run = match (run, slot) {
                (Some(r), Some(slot)) if r.slot + r.blocks == slot => {
                    Some(Run { end, blocks: r.blocks + 1, ..r })
                }
                (previous, slot) => {
                    self.start_dirty_write(part_id, &part, previous);
                    slot.map(|slot| Run { start, end, slot, blocks: 1 })
                }
            };
        }
        self.start_dirty_write(part_id, &part, run);
        self.start_outs(part_id);
        self.part_step(part_id);
    }

    /// The slot for a block's next version; `None` where the cache cannot take it.
    fn place(&mut self, part_id: u32, key: BlockKey, whole: bool) -> Option<u32> {
        let past = self.goes_past_cache(key.volume);
        let asked = self.parts[part_id as usize].asked;
        if asked.closed {
            self.turn_away(self.tenant_of(key.volume));
            return None;
        }
        match self.find_live(key, Owner::Part(part_id)).ok()? {
            Some(entry) => {
                let is_dirty = self.store.state(entry) == State::Dirty;
                if !is_dirty && (past || self.is_too_dirty(key.volume)) {
                    return None;
                }
                self.touch(key.volume, entry, false);
                if !whole && !is_dirty && !self.has_stage() {
                    return None;
                }
                self.slot_for_update(key)
            }
            None if past || self.is_too_dirty(key.volume) || (!whole && !self.has_stage()) => None,
            None => self.admit(key, State::Writing, asked).map(|entry| self.store.slot(entry)),
        }
    }

    /// A slot for newer data of a block that is cached, if it may be written.
    pub(crate) fn slot_for_update(&mut self, key: BlockKey) -> Option<u32> {
        let tenant = self.tenant_of(key.volume);
        if !self.charge_update(tenant, self.block_bytes()) {
            return None;
        }
        let slot = self.spare_slot(tenant);
        if slot.is_none() {
            self.uncharge(tenant);
        }
        slot
    }

    fn start_dirty_write(&mut self, part_id: u32, part: &Part, run: Option<Run>) {
        let Some(Run { start, end, slot, blocks }) = run else { return };
        self.parts[part_id as usize].pending += 1;
        let stats = self.stats_mut(part.volume);
        stats.ssd_guest_write_blocks += u64::from(blocks);
        stats.ssd_guest_write_bytes += end - start;
        let offset = u64::from(slot) * self.block_bytes();
        let kind = OpKind::Write { offset, len: (end - start) as u32, buf: part.buf(start), fua: false };
        let sums = self.sums(part.volume, start, end);
        self.device_summed(Target::Cache, kind, sums, Op::PartDirty { part: part_id, start, end, slot });
    }

    /// Blocks are in their slots, the first in `slot`. If that failed they go to the backing.
    pub(crate) fn end_dirty_write(
        &mut self,
        part_id: u32,
        (start, end): (u64, u64),
        slot: u32,
        result: Result<(), IoError>,
        sums: &[u32],
    ) {
        let part = self.parts[part_id as usize];
        self.note_cache_result(part.volume, result);
        // On a device that was given up meanwhile nothing becomes dirty: nobody would see to it.
        let result = if self.cache_failed { Err(IoError::Io) } else { result };
        for ((at, block), slot) in self.blocks_of(start, end).enumerate().zip(slot..) {
            let key = BlockKey { volume: part.volume, block };
            match result {
                Ok(()) => self.become_dirty(key, slot, sums[at]),
                Err(_) => self.give_slot_up(key, slot),
            }
        }
        if result.is_err() {
            self.pass_by(part_id, &part, start, end);
            self.start_outs(part_id);
        }
        self.part_step(part_id);
    }

    /// A slot that was taken for a block is not used after all.
    pub(crate) fn give_slot_up(&mut self, key: BlockKey, slot: u32) {
        let entry = self.store.find(key).filter(|&entry| self.store.slot(entry) == slot);
        match entry {
            Some(entry) => self.remove_entry(entry),
            None => {
                if self.may_reuse(key, slot) {
                    self.free_slot(slot);
                }
            }
        }
    }
}
