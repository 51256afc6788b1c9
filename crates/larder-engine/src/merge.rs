//! Merges: a write of a part of a cached block, where blocks have checksums.
//!
//! The checksum is that of the whole block, so the block is read, verified, and written back with the new part in it. The part's
//! exclusive lock keeps everyone else away until both the backing and the slot have ended.

use crate::locks::Owner;
use crate::request::Part;
use crate::store::{BlockKey, EntryId};
use crate::{Action, Buf, BufOwner, Engine, IoError, Op, OpKind, STAGE_BYTES_MAX, StageId, Target};

/// A block on its way through memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merge {
    part: u32,
    key: BlockKey,
    slot: u32,
    stage: StageId,
    /// The bytes of the volume that are new.
    start: u64,
    end: u64,
}

impl Engine {
    /// Write `start..end` into the slot of its block.
    pub(crate) fn start_merge(&mut self, part_id: u32, part: &Part, entry: EntryId, start: u64, end: u64) {
        let key = BlockKey { volume: part.volume, block: self.block_of(start) };
        if self.stage_bytes + self.block_bytes() > STAGE_BYTES_MAX {
            return self.invalidate(key, Owner::Part(part_id));
        }
        self.parts[part_id as usize].pending += 1;
        let stage = self.alloc_stage(self.config.block_bytes);
        let merge = Merge { part: part_id, key, slot: self.store.slot(entry), stage, start, end };
        let id = self.merges.insert(merge) as u32;
        let (offset, len) = self.merge_extent(&merge);
        let kind = OpKind::Read { offset, len, buf: Buf { owner: BufOwner::Stage(stage), offset: 0 } };
        let sums = self.merge_sums(&merge);
        self.device_summed(Target::Cache, kind, sums, Op::MergeRead { merge: id });
    }

    /// The bytes of the cache device that hold the block: the last one of a volume may end earlier than its slot.
    fn merge_extent(&self, merge: &Merge) -> (u64, u32) {
        let (start, end) = self.block_range(merge.key.volume, merge.key.block);
        let len = (end - start).next_multiple_of(u64::from(self.config.cache_align));
        (u64::from(merge.slot) * self.block_bytes(), len as u32)
    }

    fn merge_sums(&self, merge: &Merge) -> Option<crate::Sums> {
        let (start, end) = self.block_range(merge.key.volume, merge.key.block);
        self.sums(merge.key.volume, start, end)
    }

    pub(crate) fn end_merge_read(&mut self, id: u32, result: Result<(), IoError>, sums: &[u32]) {
        let merge = self.merges[id as usize];
        self.note_cache_result(merge.key.volume, result);
        let sound = sums.iter().all(|&sum| self.is_sum(merge.slot, sum));
        self.stats_mut(merge.key.volume).checksum_errors += u64::from(!sound);
        if result.is_err() || !sound || self.cache_failed {
            return self.end_merge(id, false);
        }
        let part = self.parts[merge.part as usize];
        let skip = (merge.start - self.block_range(merge.key.volume, merge.key.block).0) as u32;
        let to = Buf { owner: BufOwner::Stage(merge.stage), offset: skip };
        let len = (merge.end - merge.start) as u32;
        self.actions.push_back(Action::Copy { from: part.buf(merge.start), to, len });
        self.note_overwritten(merge.slot);
        let (offset, len) = self.merge_extent(&merge);
        let stats = self.stats_mut(merge.key.volume);
        stats.ssd_guest_write_blocks += 1;
        stats.ssd_guest_write_bytes += u64::from(len);
        let buf = Buf { owner: BufOwner::Stage(merge.stage), offset: 0 };
        let kind = OpKind::Write { offset, len, buf, fua: false };
        let sums = self.merge_sums(&merge);
        self.device_summed(Target::Cache, kind, sums, Op::MergeWrite { merge: id });
    }

    pub(crate) fn end_merge_write(&mut self, id: u32, result: Result<(), IoError>, sums: &[u32]) {
        let Merge { key, start, .. } = self.merges[id as usize];
        self.note_cache_result(key.volume, result);
        if result.is_ok() {
            self.note_written(key.volume, start, sums);
        }
        self.end_merge(id, result.is_ok());
    }

    fn end_merge(&mut self, id: u32, ok: bool) {
        let merge = self.merges.remove(id as usize);
        self.free_stage(merge.stage);
        if !ok {
            self.invalidate(merge.key, Owner::Part(merge.part));
        }
        self.part_step(merge.part);
    }
}
