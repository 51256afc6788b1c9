//! Runs: neighbouring dirty blocks on their way to the backing.
//!
//! A run reads its blocks from their slots, verifies them, and writes them at once. It holds a shared lock on them meanwhile: guests read, and those that
//! write wait. (Versions of an ordered volume stay as they are anyway.) Then the blocks wait for a flush of the backing.

use super::{Engine, PAUSE_MAX};
use crate::durable::Planted;
use crate::locks::Owner;
use crate::store::BlockKey;
use crate::{Buf, BufOwner, IoError, Op, OpKind, PART_BYTES, StageId, Target, VolumeId};
use std::ops::Range;

/// Blocks that are written back before their backing is flushed, at most.
const WRITTEN_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Run {
    volume: VolumeId,
    first: u64,
    slots: Vec<u32>,
    stage: StageId,
    /// Reads of slots under way.
    reads: u32,
    failed: bool,
    /// Versions of an ordered volume of which the data is lost, by their place. That is said when nothing of the run is under way: their slots are soon used again.
    lost: Vec<u32>,
}

impl Run {
    fn key(&self, at: usize) -> BlockKey {
        BlockKey { volume: self.volume, block: self.first + at as u64 }
    }

    fn blocks(&self) -> impl Iterator<Item = (BlockKey, u32)> + '_ {
        self.slots.iter().enumerate().map(|(at, &slot)| (self.key(at), slot))
    }
}

impl Engine {
    /// Write a block back, and its neighbours.
    pub(super) fn start_clean(&mut self, key: BlockKey) {
        let most = (PART_BYTES / self.block_bytes()).max(1);
        if self.is_ordered(key.volume) {
            let slots = self.take_in_order(key, most);
            return self.begin_run(key, slots);
        }
        let mut blocks = key.block..key.block + 1;
        while blocks.end - blocks.start < most && blocks.start > 0 && self.joins(key.volume, blocks.start - 1)
        {
            blocks.start -= 1;
        }
        while blocks.end - blocks.start < most && self.joins(key.volume, blocks.end) {
            blocks.end += 1;
        }
        let keys = blocks.clone().map(|block| BlockKey { volume: key.volume, block });
        let mut slots = Vec::with_capacity((blocks.end - blocks.start) as usize);
        slots.extend(keys.clone().filter_map(|key| self.store.find(key)).map(|entry| self.store.slot(entry)));
        keys.for_each(|key| self.cleaner.backlog.remove(key));
        self.begin_run(BlockKey { block: blocks.start, ..key }, slots);
    }

    fn begin_run(&mut self, first: BlockKey, slots: Vec<u32>) {
        let stage = self.alloc_stage((slots.len() as u64 * self.block_bytes()) as u32);
        let (volume, first) = (first.volume, first.block);
        let run = Run { volume, first, slots, stage, reads: 0, failed: false, lost: Vec::new() };
        let id = self.cleaner.runs.insert(run) as u32;
        let (start, end) = self.clean_range(id);
        if !self.is_ordered(volume) {
            self.volume_mut(volume).locks.share(start, end, Owner::Clean(id));
        }
        self.cleaner.volumes[volume.0 as usize].runs += 1;
        self.read_run(id);
    }

    fn joins(&mut self, volume: VolumeId, block: u64) -> bool {
        self.is_cleanable(BlockKey { volume, block })
    }

    /// The bytes of the volume.
    fn clean_range(&self, id: u32) -> (u64, u64) {
        let run = &self.cleaner.runs[id as usize];
        let last = run.first + run.slots.len() as u64 - 1;
        (run.first * self.block_bytes(), self.block_range(run.volume, last).1)
    }

    /// Read the slots: neighbours in one operation.
    fn read_run(&mut self, id: u32) {
        let mut from = 0;
        while let Some(slots) =
            self.cleaner.runs[id as usize].slots.get(from..).filter(|rest| !rest.is_empty())
        {
            let count = slots.windows(2).take_while(|pair| pair[0] + 1 == pair[1]).count() + 1;
            self.read_slots(id, slots[0], from..from + count);
            from += count;
        }
    }

    fn read_slots(&mut self, id: u32, slot: u32, blocks: Range<usize>) {
        let (start, end) = self.clean_range(id);
        let run = &mut self.cleaner.runs[id as usize];
        run.reads += 1;
        let (volume, stage) = (run.volume, run.stage);
        let skip = blocks.start as u64 * self.block_bytes();
        let (low, high) = (start + skip, (start + blocks.end as u64 * self.block_bytes()).min(end));
        let len = (high - low).next_multiple_of(u64::from(self.config.cache_align)) as u32;
        let buf = Buf { owner: BufOwner::Stage(stage), offset: skip as u32 };
        let kind = OpKind::Read { offset: self.slot_offset(slot), len, buf };
        let sums = self.sums(volume, low, high);
        let op = Op::CleanRead { run: id, from: blocks.start as u32, to: blocks.end as u32 };
        self.device_summed(Target::Cache, kind, sums, op);
    }

    pub(crate) fn end_clean_read(
        &mut self,
        id: u32,
        blocks: Range<u32>,
        result: Result<(), IoError>,
        sums: &[u32],
    ) {
        let volume = self.cleaner.runs[id as usize].volume;
        self.note_cache_result(volume, result);
        if self.is_ordered(volume) {
            let is_lost = self.note_order_read(volume, result.is_ok(), blocks.len());
            self.cleaner.runs[id as usize].lost.extend(blocks.clone().filter(|_| is_lost));
        }
        let mut sound = result.is_ok();
        for (&sum, at) in sums.iter().zip(blocks) {
            let run = &self.cleaner.runs[id as usize];
            let (key, slot) = (run.key(at as usize), run.slots[at as usize]);
            if !self.is_sum(slot, sum) {
                sound = false;
                self.stats_mut(volume).checksum_errors += 1;
                match self.is_ordered(volume) {
                    true => self.cleaner.runs[id as usize].lost.push(at),
                    false => self.note_lost(key),
                }
            }
        }
        let run = &mut self.cleaner.runs[id as usize];
        run.reads -= 1;
        run.failed |= !sound;
        match (run.reads, run.failed) {
            (0, false) => self.write_run_back(id),
            (0, true) => self.end_clean(id, false),
            _ => {}
        }
    }

    fn write_run_back(&mut self, id: u32) {
        let (start, end) = self.clean_range(id);
        let run = &self.cleaner.runs[id as usize];
        let (volume, blocks) = (run.volume, run.slots.len() as u64);
        let buf = Buf { owner: BufOwner::Stage(run.stage), offset: 0 };
        let stats = self.stats_mut(volume);
        stats.backing_writes += blocks;
        stats.cleaned_blocks += blocks;
        let kind = OpKind::Write { offset: start, len: (end - start) as u32, buf, fua: false };
        self.device(Target::Backing(volume), kind, Op::CleanWrite { run: id });
    }

    pub(crate) fn end_clean_write(&mut self, id: u32, result: Result<(), IoError>) {
        let volume = self.cleaner.runs[id as usize].volume;
        if result.is_err() {
            self.stats_mut(volume).backing_errors += 1;
            self.note_backing_failed(volume);
        }
        self.end_clean(id, result.is_ok());
    }

    /// After an error a backing is left alone for a while, and longer each time until blocks have become clean.
    pub(crate) fn note_backing_failed(&mut self, volume: VolumeId) {
        let now = self.cleaner.ticks;
        let state = &mut self.cleaner.volumes[volume.0 as usize];
        state.failing_since.get_or_insert(now);
        state.failed_since_asked = true;
        if state.paused_until <= now {
            state.pause = (state.pause * 2).clamp(1, PAUSE_MAX);
            state.paused_until = now + state.pause;
        }
    }

    /// The backing takes what is written back.
    pub(crate) fn note_backing_works(&mut self, volume: VolumeId) {
        let state = &mut self.cleaner.volumes[volume.0 as usize];
        (state.pause, state.paused_until, state.failing_since) = (0, 0, None);
    }

    fn end_clean(&mut self, id: u32, ok: bool) {
        let run = self.cleaner.runs.remove(id as usize);
        for &at in &run.lost {
            self.lose_version(run.key(at as usize), run.slots[at as usize]);
        }
        self.free_stage(run.stage);
        if !self.is_ordered(run.volume) {
            self.unlock(run.volume, Owner::Clean(id));
        }
        let hasty = self.is_planted(Planted::CleanBeforeFlush);
        let state = &mut self.cleaner.volumes[run.volume.0 as usize];
        state.runs -= 1;
        match ok {
            true if hasty => {
                let clean = self.settle_versions_of(run.volume, run.blocks().collect());
                self.say_clean(clean);
            }
            true => state.written.extend(run.blocks()),
            false => {
                let is_lost = |at: &u32| run.lost.contains(at);
                let left = (0..).zip(run.blocks()).filter(|(at, _)| !is_lost(at));
                self.requeue(left.map(|(_, block)| block).collect());
            }
        }
        self.cleaner.due = true;
        self.clean();
        let state = &self.cleaner.volumes[run.volume.0 as usize];
        let much = state.runs == 0 || state.written.len() >= WRITTEN_MAX || self.cleaner.pressed;
        if much && !state.written.is_empty() {
            self.flush_backing(run.volume);
        }
    }

    /// Blocks are to be written back again, if they still are dirty.
    pub(crate) fn requeue(&mut self, blocks: Vec<(BlockKey, u32)>) {
        for (key, slot) in blocks {
            if self.is_ordered(key.volume) {
                self.write_version_again(key, slot);
                continue;
            }
            if self.is_dirty(key) && !self.cleaner.lost.contains(&(key.volume, key.block)) {
                self.cleaner.backlog.add(key, self.cleaner.ticks);
            }
        }
    }

    /// A flush of a volume's backing begins.
    pub(crate) fn cover_cleaned(&mut self, volume: VolumeId) {
        let state = &mut self.cleaner.volumes[volume.0 as usize];
        state.covered.append(&mut state.written);
    }

    /// It has ended: the blocks that it covers are clean, if it ended well.
    pub(crate) fn end_cleaned(&mut self, volume: VolumeId, ok: bool) {
        let covered = std::mem::take(&mut self.cleaner.volumes[volume.0 as usize].covered);
        if ok && !covered.is_empty() {
            self.note_backing_works(volume);
        }
        match ok {
            true => {
                self.cleaner.pressed |= self.is_draining(volume) || self.hurries_order(volume);
                let clean = self.settle_versions_of(volume, covered);
                self.say_clean(clean);
            }
            false => self.requeue(covered),
        }
    }

    /// The backing may have lost what was written and not flushed.
    pub(crate) fn clean_again(&mut self, volume: VolumeId) {
        let state = &mut self.cleaner.volumes[volume.0 as usize];
        let mut blocks = std::mem::take(&mut state.covered);
        blocks.append(&mut state.written);
        self.requeue(blocks);
    }

    /// A dirty block that does not wait to be written back has newer data, or leaves. What was written back of it says nothing of what comes, even if that
    /// is in the same slot again.
    pub(crate) fn forget_cleaned(&mut self, key: BlockKey) {
        let state = &mut self.cleaner.volumes[key.volume.0 as usize];
        if self.volumes[usize::from(key.volume.0)].order.is_none() {
            state.written.retain(|(cleaned, _)| *cleaned != key);
            state.covered.retain(|(cleaned, _)| *cleaned != key);
        }
        if let Some(durable) = &mut self.durable {
            durable.forget_cleaned(key);
        }
    }

    fn say_clean(&mut self, blocks: Vec<(BlockKey, u32)>) {
        let soon = std::mem::take(&mut self.cleaner.pressed);
        if let Some(durable) = &mut self.durable {
            durable.say_clean(blocks, soon);
        }
    }

    /// What was written back, and is not called clean yet, is dirty and does not wait to be written back: [`Engine::count_dirty`] relies on it.
    pub(crate) fn check_cleaned(&self) {
        let flushed = self.durable.iter().flat_map(|durable| durable.cleaned());
        let written =
            self.cleaner.volumes.iter().flat_map(|state| state.written.iter().chain(&state.covered));
        for &(key, _) in flushed.chain(written) {
            let waits = self.cleaner.backlog.contains(key);
            assert!(self.is_dirty(key) && !waits, "{key:?} was written back, and does not wait for that");
        }
    }

    /// Runs are under way.
    pub(crate) fn is_cleaning(&self) -> bool {
        !self.cleaner.runs.is_empty()
    }
}
