//! Writes under `wb` that the cache cannot take: they go to the backing, behind the marks that this needs.
//!
//! A block is passed by where its tenant's admission policy does not want it, where there is no slot or too much is dirty, or where the
//! cache device fails. Then the block leaves the cache when the backing has it. A dirty block is only ever passed by as a whole: of a write of a
//! part of it the rest comes from its slot (`merge.rs`).

use crate::locks::Owner;
use crate::request::Part;
use crate::store::BlockKey;
use crate::{Buf, Engine, IoError, Op, OpKind, Target, VolumeId};

/// A range that goes to the backing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub start: u64,
    pub end: u64,
    pub from: Buf,
    /// The merge that has the data.
    pub merge: Option<u32>,
}

impl Engine {
    /// `start..end` of the guest's data goes to the backing.
    pub(crate) fn pass_by(&mut self, part_id: u32, part: &Part, start: u64, end: u64) {
        let outs = self.outs.entry(part_id).or_default();
        match outs.last_mut().filter(|last| last.merge.is_none() && last.end == start) {
            Some(last) => last.end = end,
            None => {
                outs.push(Out { start, end, from: part.buf(start), merge: None });
                self.parts[part_id as usize].pending += 1;
            }
        }
    }

    /// A block that a merge has put together goes to the backing, at once or when marks are durable.
    pub(crate) fn pass_merged(&mut self, part_id: u32, out: Out) {
        self.outs.entry(part_id).or_default().push(out);
        self.start_outs(part_id);
    }

    /// Write what there is of a part for its backing, unless it has to wait for marks: then it is granted again.
    pub(crate) fn start_outs(&mut self, part_id: u32) {
        if !self.outs.contains_key(&part_id) {
            return;
        }
        let Part { volume, marks, .. } = self.parts[part_id as usize];
        if marks > 0 {
            // It is granted again, whatever happens meanwhile.
            return;
        }
        if self.is_ordered(volume) && self.is_failed(volume) {
            // What is older is not on the backing, and will not be. Who is at the gate is granted again.
            if !self.is_at_gate(volume, part_id) {
                self.refuse(part_id);
            }
            return;
        }
        if self.waits_at_order(part_id) || self.waits_for_marks(part_id) {
            return;
        }
        let part = self.parts[part_id as usize];
        for out in self.outs.remove(&part_id).unwrap_or_default() {
            let blocks = self.blocks_of(out.start, out.end);
            self.stats_mut(part.volume).backing_writes += blocks.end - blocks.start;
            let len = (out.end - out.start) as u32;
            let kind = OpKind::Write { offset: out.start, len, buf: out.from, fua: part.fua };
            self.device(Target::Backing(part.volume), kind, Op::PartOut { part: part_id, out });
        }
    }

    /// It has ended. If it failed, what the backing holds is unknown: a clean block must not say otherwise, and a dirty one does not care.
    pub(crate) fn end_out(&mut self, part_id: u32, out: Out, result: Result<(), IoError>) {
        let volume = self.parts[part_id as usize].volume;
        self.volume_mut(volume).unflushed = true;
        self.invalidate_range(part_id, out.start, out.end);
        match result {
            Ok(()) => self.drop_dirty(part_id, volume, out.start, out.end),
            Err(error) => {
                self.fail_part(part_id, error);
                self.doubt_dirty(volume, out.start, out.end);
            }
        }
        self.drop_out(part_id, out);
    }

    /// Nothing more comes of it.
    pub(crate) fn drop_out(&mut self, part_id: u32, out: Out) {
        match out.merge {
            Some(merge) => self.end_merge(merge),
            None => self.part_step(part_id),
        }
    }

    /// The backing may have anything of `start..end`: dirty blocks there are not clean, whatever was written back of them.
    pub(crate) fn doubt_dirty(&mut self, volume: VolumeId, start: u64, end: u64) {
        for block in self.blocks_of(start, end) {
            let key = BlockKey { volume, block };
            if let Some(entry) = self.store.find(key).filter(|_| self.is_dirty(key)) {
                self.forget_cleaned(key);
                self.requeue(vec![(key, self.store.slot(entry))]);
            }
        }
    }

    /// The backing has newer data of the dirty blocks that are wholly within `start..end`.
    pub(crate) fn drop_dirty(&mut self, part_id: u32, volume: VolumeId, start: u64, end: u64) {
        for block in self.blocks_of(start, end) {
            let (key, (from, to)) = (BlockKey { volume, block }, self.block_range(volume, block));
            if start <= from && to <= end && self.is_dirty(key) {
                self.invalidate(key, Owner::Part(part_id));
            }
        }
    }

    /// Dirty blocks at the ends of a part's range that it covers only in part: they are put together, or (for a discard) left alone. What is
    /// left of the range.
    pub(crate) fn keep_edges(&mut self, part_id: u32, part: &Part) -> (u64, u64) {
        let (mut start, mut end) = (part.start, part.end);
        let blocks = self.blocks_of(start, end);
        for block in [blocks.start, blocks.end - 1] {
            let (key, (from, to)) =
                (BlockKey { volume: part.volume, block }, self.block_range(part.volume, block));
            let covered = part.start <= from && to <= part.end;
            if covered || start >= end || !self.is_dirty(key) {
                continue;
            }
            let edge = (start.max(from), end.min(to));
            self.keep_edge(part_id, part, key, edge);
            (start, end) = if block == blocks.start { (edge.1, end) } else { (start, edge.0) };
        }
        (start, end)
    }

    fn keep_edge(&mut self, part_id: u32, part: &Part, key: BlockKey, (start, end): (u64, u64)) {
        if part.kind == crate::RequestKind::Discard {
            return;
        }
        let to = match self.writes_back(key.volume) && !part.asked.closed {
            true => self.slot_for_update(key),
            false => None,
        };
        self.merge_dirty(part_id, key, (start, end), to);
    }
}
