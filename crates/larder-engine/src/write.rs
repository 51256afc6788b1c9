//! Writes under `wt` and `ro`: to the backing always; under `wt` also to the cache, under `ro` the blocks are invalidated.
//!
//! Both devices are written at once. The part's exclusive lock keeps readers of its bytes out until both have ended, so nobody sees one without
//! the other. An absent block is admitted only by a write of the whole block: a part of a block would need its rest from the backing first. A block that
//! still is dirty from a time under `wb` leaves when the backing has all of it.

use crate::doors::Asked;
use crate::locks::Owner;
use crate::request::Part;
use crate::store::{BlockKey, EntryId, State};
use crate::{Engine, IoError, Op, OpKind, Target, WritePolicy};

/// A run of blocks whose slots follow one another.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub start: u64,
    pub end: u64,
    pub slot: u32,
    pub blocks: u32,
}

impl Engine {
    /// A write part has its lock.
    pub(crate) fn run_write(&mut self, part_id: u32) {
        if self.parts[part_id as usize].pending > 0 {
            return self.start_outs(part_id);
        }
        if self.writes_back(self.parts[part_id as usize].volume) {
            if !self.waits_for_slots(part_id) && !self.waits_for_room(part_id) {
                self.write_back(part_id);
            }
            return;
        }
        if self.waits_at_order(part_id) || self.waits_for_marks(part_id) {
            return;
        }
        let part = self.parts[part_id as usize];
        let blocks = self.blocks_of(part.start, part.end);
        self.stats_mut(part.volume).backing_writes += blocks.end - blocks.start;
        // One step of its own keeps the part alive while its pieces start.
        self.parts[part_id as usize].pending = 1;
        let (start, end) = self.keep_edges(part_id, &part);
        if start < end && !self.skips_backing(&part) {
            self.parts[part_id as usize].pending += 1;
            let len = (end - start) as u32;
            let kind = OpKind::Write { offset: start, len, buf: part.buf(start), fua: part.fua };
            self.device(Target::Backing(part.volume), kind, Op::PartBacking { part: part_id });
        }
        let tenant = self.volume(part.volume).tenant;
        match self.write_policy(tenant) {
            WritePolicy::WriteBack | WritePolicy::WriteThrough | WritePolicy::WriteThroughNoAllocate => {
                self.write_through(part_id, &part)
            }
            WritePolicy::ReadOnly => self.write_around(part_id, &part),
        }
        self.part_step(part_id);
    }

    fn write_around(&mut self, part_id: u32, part: &Part) {
        for block in self.blocks_of(part.start, part.end) {
            let key = BlockKey { volume: part.volume, block };
            self.count_write(key, Asked { closed: true, ..part.asked });
            if !self.is_dirty(key) {
                self.invalidate(key, Owner::Part(part_id));
            }
        }
    }

    fn write_through(&mut self, part_id: u32, part: &Part) {
        let mut run: Option<Run> = None;
        for block in self.blocks_of(part.start, part.end) {
            let key = BlockKey { volume: part.volume, block };
            self.count_write(key, part.asked);
            let (block_start, block_end) = self.block_range(part.volume, block);
            let (start, end) = (part.start.max(block_start), part.end.min(block_end));
            let entry = self.entry_for_write(part_id, key, start, end);
            let whole = (start, end) == (block_start, block_end);
            let slot = match entry {
                Some(entry) if self.durable.is_some() && !whole => {
                    self.start_merge(part_id, part, entry, start, end);
                    None
                }
                entry => entry.map(|entry| self.store.slot(entry)),
            };
            run = match (run, slot) {
                (Some(r), Some(slot)) if r.slot + r.blocks == slot => {
                    Some(Run { end, blocks: r.blocks + 1, ..r })
                }
                (previous, slot) => {
                    self.flush_run(part_id, part, previous);
                    slot.map(|slot| Run { start, end, slot, blocks: 1 })
                }
            };
        }
        self.flush_run(part_id, part, run);
    }

    pub(crate) fn count_write(&mut self, key: BlockKey, asked: Asked) {
        let state = self.store.find(key).map(|entry| self.store.state(entry));
        let hit =
            state == Some(State::Dirty) || (state == Some(State::Valid) && !self.goes_past_cache(key.volume));
        let stats = self.stats_mut(key.volume);
        stats.write_hits += u64::from(hit);
        stats.write_misses += u64::from(!hit);
        self.offer_write(key.volume, asked, hit);
    }

    /// The entry whose slot takes `start..end` of a block; `None` where the cache is passed by.
    fn entry_for_write(&mut self, part_id: u32, key: BlockKey, start: u64, end: u64) -> Option<EntryId> {
        if self.goes_past_cache(key.volume) || self.is_dirty(key) {
            return None;
        }
        let owner = Owner::Part(part_id);
        let asked = self.parts[part_id as usize].asked;
        if asked.closed {
            self.turn_away(self.tenant_of(key.volume));
            self.invalidate(key, owner);
            return None;
        }
        let aligned = self.is_cache_aligned(start) && self.is_cache_aligned(end);
        let whole = (start, end) == self.block_range(key.volume, key.block);
        match self.find_live(key, owner).ok()? {
            None if whole && aligned && self.allocates_writes(key) => self.admit(key, State::Writing, asked),
            None => None,
            Some(entry) if self.passes_fill(entry) => None,
            Some(entry)
                if aligned
                    && self.may_change(self.store.slot(entry))
                    && self
                        .charge_update(self.tenant_of(key.volume), self.write_bytes(whole, end - start)) =>
            {
                assert_eq!(self.store.state(entry), State::Valid, "an exclusive lock keeps fills out");
                self.touch(key.volume, entry, false);
                Some(entry)
            }
            // The device cannot write so small a piece of the slot, or the slot may not be written, or the device.
            Some(_) => {
                self.invalidate(key, owner);
                None
            }
        }
    }

    /// Bytes of the cache device that a write of so many of a block writes.
    fn write_bytes(&self, whole: bool, len: u64) -> u64 {
        if whole || self.durable.is_some() { self.block_bytes() } else { len }
    }

    fn allocates_writes(&self, key: BlockKey) -> bool {
        self.write_policy(self.volume(key.volume).tenant) != WritePolicy::WriteThroughNoAllocate
    }

    fn flush_run(&mut self, part_id: u32, part: &Part, run: Option<Run>) {
        let Some(run) = run else { return };
        self.parts[part_id as usize].pending += 1;
        let len = run.end - run.start;
        let stats = self.stats_mut(part.volume);
        stats.ssd_guest_write_blocks += u64::from(run.blocks);
        stats.ssd_guest_write_bytes += len;
        let offset = self.slot_offset(run.slot) + self.within_block(run.start);
        let kind = OpKind::Write { offset, len: len as u32, buf: part.buf(run.start), fua: false };
        let op = Op::PartCache { part: part_id, start: run.start, end: run.end };
        (run.slot..run.slot + run.blocks).for_each(|slot| self.note_overwritten(slot));
        let sums = self.sums(part.volume, run.start, run.end);
        self.device_summed(Target::Cache, kind, sums, op);
    }

    /// A write to slots ended. If it failed, what they hold is unknown: the blocks leave the cache, and the guest need not know.
    pub(crate) fn end_write_through(
        &mut self,
        part_id: u32,
        start: u64,
        end: u64,
        result: Result<(), IoError>,
        sums: &[u32],
    ) {
        let volume = self.parts[part_id as usize].volume;
        self.note_cache_result(volume, result);
        match result {
            Ok(()) => self.note_written(volume, start, sums),
            Err(_) => self.invalidate_range(part_id, start, end),
        }
        self.part_step(part_id);
    }

    /// All operations of a write have ended. If the backing failed, what it holds is unknown, and the cache must not say otherwise.
    pub(crate) fn settle_write(&mut self, part_id: u32, part: &Part) {
        if part.back {
            return;
        }
        if part.error.is_some() {
            self.doubt_dirty(part.volume, part.start, part.end);
            return self.invalidate_range(part_id, part.start, part.end);
        }
        self.drop_dirty(part_id, part.volume, part.start, part.end);
        for block in self.blocks_of(part.start, part.end) {
            let found = self.store.find(BlockKey { volume: part.volume, block });
            if let Some(entry) = found.filter(|&entry| self.store.state(entry) == State::Writing) {
                self.store.set_state(entry, State::Valid);
            }
        }
    }

    /// Every clean block that `start..end` touches is stale.
    pub(crate) fn invalidate_range(&mut self, part_id: u32, start: u64, end: u64) {
        let volume = self.parts[part_id as usize].volume;
        for block in self.blocks_of(start, end) {
            let key = BlockKey { volume, block };
            if !self.is_dirty(key) {
                self.invalidate(key, Owner::Part(part_id));
            }
        }
    }
}
