//! Merges: a write of a part of a block, where blocks have checksums.
//!
//! The checksum is that of the whole block, so the block is read from its slot and verified, or from the backing; the new part comes in; and
//! it is written as a whole: under `wt` to the same slot, under `wb` to another one, or to the backing where the cache cannot take it. The
//! part's exclusive lock on the whole block keeps everyone else away until all that has ended.

use crate::locks::Owner;
use crate::out::Out;
use crate::request::Part;
use crate::store::{BlockKey, EntryId, State};
use crate::{
    Action, Buf, BufOwner, Engine, IoError, Op, OpKind, RequestKind, STAGE_BYTES_MAX, StageId, Target,
};

/// Where a merge has the rest of the block from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Slot(u32),
    Backing,
    /// There is no rest.
    Nothing,
}

/// A block on its way through memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merge {
    part: u32,
    key: BlockKey,
    source: Source,
    /// The slot that it goes to; `None` for the backing.
    to: Option<u32>,
    stage: StageId,
    /// The bytes of the volume that are new.
    start: u64,
    end: u64,
}

impl Merge {
    /// Under `wt` the slot is the block's own.
    fn is_in_place(&self) -> bool {
        self.to.is_some_and(|to| self.source == Source::Slot(to))
    }
}

impl Engine {
    /// True if there is memory for another block on its way.
    pub(crate) fn has_stage(&self) -> bool {
        self.stage_bytes + self.block_bytes() <= STAGE_BYTES_MAX
    }

    /// Under `wt`: write `start..end` into the slot of its block.
    pub(crate) fn start_merge(&mut self, part_id: u32, part: &Part, entry: EntryId, start: u64, end: u64) {
        let key = BlockKey { volume: part.volume, block: self.block_of(start) };
        if !self.has_stage() {
            return self.invalidate(key, Owner::Part(part_id));
        }
        let slot = self.store.slot(entry);
        self.add_merge(part_id, key, Source::Slot(slot), Some(slot), (start, end));
    }

    /// Write `start..end` of a block, with the rest of it, to a slot of its own, or to the backing. A part that waits for this keeps the
    /// memory bounded.
    pub(crate) fn merge_dirty(&mut self, part_id: u32, key: BlockKey, new: (u64, u64), to: Option<u32>) {
        let entry = self.store.find(key).filter(|&entry| self.store.state(entry) != State::Writing);
        let source = match entry {
            _ if new == self.block_range(key.volume, key.block) => Source::Nothing,
            Some(entry) => Source::Slot(self.store.slot(entry)),
            None => Source::Backing,
        };
        self.add_merge(part_id, key, source, to, new);
    }

    fn add_merge(
        &mut self,
        part_id: u32,
        key: BlockKey,
        source: Source,
        to: Option<u32>,
        (start, end): (u64, u64),
    ) {
        self.parts[part_id as usize].pending += 1;
        let stage = self.alloc_stage(self.config.block_bytes);
        let merge = Merge { part: part_id, key, source, to, stage, start, end };
        let id = self.merges.insert(merge) as u32;
        self.read_rest(id);
    }

    fn read_rest(&mut self, id: u32) {
        let merge = self.merges[id as usize];
        let (start, end) = self.block_range(merge.key.volume, merge.key.block);
        let buf = Buf { owner: BufOwner::Stage(merge.stage), offset: 0 };
        match merge.source {
            Source::Nothing => self.put_together(id),
            Source::Slot(slot) => {
                let kind = OpKind::Read { offset: self.slot_offset(slot), len: self.merge_len(&merge), buf };
                let sums = self.sums(merge.key.volume, start, end);
                self.device_summed(Target::Cache, kind, sums, Op::MergeRead { merge: id });
            }
            Source::Backing => {
                self.stats_mut(merge.key.volume).backing_reads += 1;
                let kind = OpKind::Read { offset: start, len: (end - start) as u32, buf };
                self.device(Target::Backing(merge.key.volume), kind, Op::MergeRead { merge: id });
            }
        }
    }

    pub(crate) fn slot_offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.block_bytes()
    }

    /// The bytes of its slot that a block takes: the last one of a volume may end earlier.
    fn merge_len(&self, merge: &Merge) -> u32 {
        let (start, end) = self.block_range(merge.key.volume, merge.key.block);
        (end - start).next_multiple_of(u64::from(self.config.cache_align)) as u32
    }

    pub(crate) fn end_merge_read(&mut self, id: u32, result: Result<(), IoError>, sums: &[u32]) {
        let merge = self.merges[id as usize];
        match (merge.source, result) {
            (Source::Slot(slot), _) => {
                self.note_cache_result(merge.key.volume, result);
                let sound = sums.iter().all(|&sum| self.is_sum(slot, sum));
                self.stats_mut(merge.key.volume).checksum_errors += u64::from(!sound);
                if result.is_err() || !sound {
                    return self.rest_is_lost(id, &merge, sound);
                }
            }
            (_, Err(error)) => {
                self.fail_part(merge.part, error);
                return self.abandon_merge(id);
            }
            (_, Ok(())) => {}
        }
        match self.cache_failed && merge.is_in_place() {
            true => self.abandon_merge(id),
            false => self.put_together(id),
        }
    }

    /// The slot cannot be read, or has something else.
    fn rest_is_lost(&mut self, id: u32, merge: &Merge, sound: bool) {
        if merge.is_in_place() {
            self.abandon_merge(id);
        } else if self.is_dirty(merge.key) {
            if !sound {
                self.note_lost(merge.key);
            }
            self.parts[merge.part as usize].error.get_or_insert(IoError::Io);
            self.abandon_merge(id);
        } else {
            self.merges[id as usize].source = Source::Backing;
            self.read_rest(id);
        }
    }

    fn put_together(&mut self, id: u32) {
        let merge = self.merges[id as usize];
        let part = self.parts[merge.part as usize];
        let skip = (merge.start - self.block_range(merge.key.volume, merge.key.block).0) as u32;
        let to = Buf { owner: BufOwner::Stage(merge.stage), offset: skip };
        let len = (merge.end - merge.start) as u32;
        if part.kind == RequestKind::Write {
            self.actions.push_back(Action::Copy { from: part.buf(merge.start), to, len });
        } else {
            self.put_zeroes(to, len);
        }
        self.write_merged(id);
    }

    fn put_zeroes(&mut self, to: Buf, len: u32) {
        let Some(durable) = &mut self.durable else { unreachable!("without checksums nothing is merged") };
        let zeroes = StageId(self.stages.insert(len) as u32);
        durable.load(zeroes, vec![0; len as usize]);
        self.stage_bytes += u64::from(len);
        self.actions.push_back(Action::AllocStage { stage: zeroes, bytes: len });
        self.actions.push_back(Action::Load { stage: zeroes });
        let from = Buf { owner: BufOwner::Stage(zeroes), offset: 0 };
        self.actions.push_back(Action::Copy { from, to, len });
        self.free_stage(zeroes);
    }

    fn write_merged(&mut self, id: u32) {
        let merge = self.merges[id as usize];
        let from = Buf { owner: BufOwner::Stage(merge.stage), offset: 0 };
        let (start, end) = self.block_range(merge.key.volume, merge.key.block);
        if let Some(slot) = merge.to.filter(|_| self.cache_failed && !merge.is_in_place()) {
            return self.merge_past_cache(id, slot);
        }
        let Some(slot) = merge.to else {
            return self.pass_merged(merge.part, Out { start, end, from, merge: Some(id) });
        };
        if merge.is_in_place() {
            self.note_overwritten(slot);
        }
        let len = self.merge_len(&merge);
        let stats = self.stats_mut(merge.key.volume);
        stats.ssd_guest_write_blocks += 1;
        stats.ssd_guest_write_bytes += u64::from(len);
        let kind = OpKind::Write { offset: self.slot_offset(slot), len, buf: from, fua: false };
        let sums = self.sums(merge.key.volume, start, end);
        self.device_summed(Target::Cache, kind, sums, Op::MergeWrite { merge: id });
    }

    pub(crate) fn end_merge_write(&mut self, id: u32, result: Result<(), IoError>, sums: &[u32]) {
        let merge = self.merges[id as usize];
        self.note_cache_result(merge.key.volume, result);
        let result = if self.cache_failed { Err(IoError::Io) } else { result };
        match (result, merge.to) {
            (Ok(()), _) if merge.is_in_place() => self.note_written(merge.key.volume, merge.start, sums),
            (Ok(()), Some(slot)) => self.become_dirty(merge.key, slot, sums[0]),
            (Err(_), Some(slot)) if !merge.is_in_place() => {
                return self.merge_past_cache(id, slot);
            }
            _ => return self.abandon_merge(id),
        }
        self.end_merge(id);
    }

    /// The slot cannot be used: the block goes to the backing.
    fn merge_past_cache(&mut self, id: u32, slot: u32) {
        self.give_slot_up(self.merges[id as usize].key, slot);
        self.merges[id as usize].to = None;
        self.write_merged(id);
    }

    /// The block is not written.
    fn abandon_merge(&mut self, id: u32) {
        let merge = self.merges[id as usize];
        match merge.to {
            Some(_) if merge.is_in_place() => self.invalidate(merge.key, Owner::Part(merge.part)),
            Some(slot) => self.give_slot_up(merge.key, slot),
            None => {}
        }
        self.end_merge(id);
    }

    pub(crate) fn end_merge(&mut self, id: u32) {
        let merge = self.merges.remove(id as usize);
        self.free_stage(merge.stage);
        self.part_step(merge.part);
    }
}
