//! Fills: copies of absent blocks into the cache after a read miss.
//!
//! A fill reads a run of whole blocks from the backing into a staging buffer, hands each waiting reader its bytes, then writes the blocks
//! to their slots: of blocks that are cached already, or do not enter, the data was only read since it lies beside others ([`crate::read`]). Readers that come meanwhile are served from the same buffer: concurrent misses of one block read the backing once.
//! The fill holds a shared lock on its blocks from before the read until after the last write, so writes of the guest wait for it.

use crate::locks::Owner;
use crate::request::Part;
use crate::store::{BlockKey, EntryId, State};
use crate::{
    Action, Buf, BufOwner, Engine, IoError, Op, OpKind, Planted, STAGE_BYTES_BEHIND, StageId, Target,
    VolumeId,
};
use std::ops::Range;

/// A run of blocks on its way into the cache.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) volume: VolumeId,
    first: u64,
    /// The entry of each block in turn; none of one that does not enter, or is cached already.
    entries: Vec<Option<EntryId>>,
    stage: StageId,
    /// The readers that wait for the data; the first ones caused the fill. Empty once the data is there.
    waiters: Vec<Waiter>,
    /// True until the backing has answered.
    reading: bool,
    /// Writes to the cache device in flight.
    writes: u32,
    /// Parts that have their data, but are held back until the fill has ended.
    held_back: Vec<u32>,
    /// A mover wants it.
    moved: bool,
}

/// A part that waits for `start..end` of a fill.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    part: u32,
    start: u64,
    end: u64,
    /// It came while the fill was under way: its blocks count as hits.
    attached: bool,
}

impl Fill {
    fn blocks(&self) -> Range<u64> {
        self.first..self.first + self.entries.len() as u64
    }

    /// The block is on its way into the cache.
    fn brings(&self, block: u64) -> bool {
        let at = block.checked_sub(self.first).and_then(|at| self.entries.get(at as usize));
        matches!(at, Some(Some(_)))
    }
}

impl Engine {
    /// Fill the blocks from `first` on, of those for which entries were admitted; the others are only read.
    pub(crate) fn start_fill(&mut self, part: &Part, first: u64, entries: Vec<Option<EntryId>>) -> u32 {
        let id = self.new_fill(part.volume, first);
        let count = entries.len() as u64;
        let (from, to) = (first * self.block_bytes(), self.block_range(part.volume, first + count - 1).1);
        let locked = if self.is_planted(Planted::StaleFill) { (0, 0) } else { (from, to) };
        self.volume_mut(part.volume).locks.share(locked.0, locked.1, Owner::Fill(id));
        self.read_fill(id, entries);
        id
    }

    /// A part, which caused the fill, waits for `start..end` of it.
    pub(crate) fn wait_for(&mut self, fill_id: u32, part: u32, start: u64, end: u64) {
        self.parts[part as usize].pending += 1;
        self.fills[fill_id as usize].waiters.push(Waiter { part, start, end, attached: false });
    }

    /// A fill of blocks of a volume from `first` on, before anything of it is under way. Its lock comes next.
    pub(crate) fn new_fill(&mut self, volume: VolumeId, first: u64) -> u32 {
        self.fills.insert(Fill {
            volume,
            first,
            entries: Vec::new(),
            stage: StageId(0),
            waiters: Vec::new(),
            reading: true,
            writes: 0,
            held_back: Vec::new(),
            moved: false,
        }) as u32
    }

    /// A fill of which nothing came.
    pub(crate) fn drop_fill(&mut self, fill_id: u32) {
        let fill = self.fills.remove(fill_id as usize);
        self.unlock(fill.volume, Owner::Fill(fill_id));
    }

    /// A mover's fill, which has its lock, brings these blocks.
    pub(crate) fn read_moved(&mut self, fill_id: u32, entries: Vec<EntryId>) {
        self.fills[fill_id as usize].moved = true;
        self.read_fill(fill_id, entries.into_iter().map(Some).collect());
    }

    fn read_fill(&mut self, fill_id: u32, entries: Vec<Option<EntryId>>) {
        let count = entries.len() as u64;
        let stage = self.alloc_stage((count * self.block_bytes()) as u32);
        let fill = &mut self.fills[fill_id as usize];
        (fill.entries, fill.stage) = (entries, stage);
        let volume = fill.volume;
        let (from, to) = self.fill_bytes(fill_id);
        self.volume_mut(volume).fills.push(fill_id);
        self.stats_mut(volume).backing_reads += count;
        let buf = Buf { owner: BufOwner::Stage(stage), offset: 0 };
        let kind = OpKind::Read { offset: from, len: (to - from) as u32, buf };
        self.device(Target::Backing(volume), kind, Op::FillRead { fill: fill_id });
    }

    /// The fill that is bringing a block.
    pub(crate) fn fill_of(&self, key: BlockKey) -> Option<u32> {
        let fills = &self.volume(key.volume).fills;
        fills.iter().copied().find(|&id| self.fills[id as usize].brings(key.block))
    }

    /// A part wants `start..end` of a fill: now, if the data is there, else with the others.
    pub(crate) fn attach(&mut self, fill_id: u32, part: u32, start: u64, end: u64) {
        let waiter = Waiter { part, start, end, attached: true };
        if self.fills[fill_id as usize].reading {
            self.parts[part as usize].pending += 1;
            self.fills[fill_id as usize].waiters.push(waiter);
        } else {
            self.copy_to(fill_id, waiter);
        }
    }

    fn copy_to(&mut self, fill_id: u32, waiter: Waiter) {
        let fill = &self.fills[fill_id as usize];
        let offset = (waiter.start - fill.first * self.block_bytes()) as u32;
        let from = Buf { owner: BufOwner::Stage(fill.stage), offset };
        let to = self.parts[waiter.part as usize].buf(waiter.start);
        self.actions.push_back(Action::Copy { from, to, len: (waiter.end - waiter.start) as u32 });
    }

    /// The backing answered.
    pub(crate) fn end_fill_read(&mut self, fill_id: u32, result: Result<(), IoError>) {
        let fill = &mut self.fills[fill_id as usize];
        fill.reading = false;
        let (waiters, moved, volume) = (std::mem::take(&mut fill.waiters), fill.moved, fill.volume);
        if moved && result.is_err() {
            self.stats_mut(volume).backing_errors += 1;
        }
        for (at, &waiter) in waiters.iter().enumerate() {
            match result {
                Ok(()) => self.serve(fill_id, waiter),
                Err(error) => {
                    self.fill_failed(fill_id, waiter, at == 0, error);
                    self.part_step(waiter.part);
                }
            }
        }
        match result {
            Ok(()) if !self.cache_failed => self.write_fill(fill_id),
            _ => {
                self.give_up(fill_id, 0..self.fills[fill_id as usize].entries.len());
                self.end_fill(fill_id);
            }
        }
    }

    /// Give a waiting part its data. While the cache device is behind with its writes the part waits for this fill's: a client is
    /// slowed to the pace at which its blocks can be cached, rather than served past the cache.
    fn serve(&mut self, fill_id: u32, waiter: Waiter) {
        self.copy_to(fill_id, waiter);
        if self.stage_bytes > STAGE_BYTES_BEHIND {
            self.fills[fill_id as usize].held_back.push(waiter.part);
        } else {
            self.part_step(waiter.part);
        }
    }

    /// A fill reads whole blocks, and for one reader; and what lies between those that are missing. A guest that wanted less, or only waited, asks the backing for just its own
    /// bytes: an error elsewhere is not its own.
    fn fill_failed(&mut self, fill_id: u32, waiter: Waiter, is_first: bool, error: IoError) {
        let volume = self.fills[fill_id as usize].volume;
        let Waiter { part, start, end, attached } = waiter;
        if !attached && (start, end) == self.fill_bytes(fill_id) {
            return self.fail_part(part, error);
        }
        if attached {
            self.hits_to_misses(volume, start, end);
        } else if is_first {
            self.stats_mut(volume).backing_errors += 1;
        }
        self.start_bypass(part, start, end);
    }

    /// Write the blocks to their slots: neighbours in one operation.
    fn write_fill(&mut self, fill_id: u32) {
        let slots: Vec<Option<u32>> = self.fills[fill_id as usize]
            .entries
            .iter()
            .map(|entry| entry.map(|entry| self.store.slot(entry)))
            .collect();
        let mut from = 0;
        while let Some(at) = slots[from..].iter().position(Option::is_some) {
            from += at;
            let follows = |pair: &&[Option<u32>]| pair[0].map(|slot| slot + 1) == pair[1];
            let run = slots[from..].windows(2).take_while(follows).count() + 1;
            if let Some(slot) = slots[from] {
                self.write_run(fill_id, slot, from, from + run);
            }
            from += run;
        }
        if self.fills[fill_id as usize].writes == 0 {
            self.end_fill(fill_id);
        }
    }

    fn write_run(&mut self, fill_id: u32, slot: u32, from: usize, to: usize) {
        let block_bytes = self.block_bytes();
        let align = u64::from(self.config.cache_align);
        let (fill_start, fill_end) = self.fill_bytes(fill_id);
        let start = from as u64 * block_bytes;
        // The last block of a volume may end within the cache device's unit: what follows it in the slot is never read.
        let end = (to as u64 * block_bytes).min((fill_end - fill_start).next_multiple_of(align));
        let fill = &mut self.fills[fill_id as usize];
        fill.writes += 1;
        let (volume, stage) = (fill.volume, fill.stage);
        let stats = self.stats_mut(volume);
        stats.ssd_fill_blocks += (to - from) as u64;
        stats.ssd_fill_bytes += end - start;
        let buf = Buf { owner: BufOwner::Stage(stage), offset: start as u32 };
        let kind = OpKind::Write {
            offset: u64::from(slot) * block_bytes,
            len: (end - start) as u32,
            buf,
            fua: false,
        };
        let op = Op::FillWrite { fill: fill_id, from: from as u32, to: to as u32 };
        let sums =
            self.sums(volume, fill_start + start, (fill_start + to as u64 * block_bytes).min(fill_end));
        self.device_summed(Target::Cache, kind, sums, op);
    }

    /// A write of a fill's blocks to the cache ended: they are valid, or not cached.
    pub(crate) fn end_fill_write(
        &mut self,
        fill_id: u32,
        from: u32,
        to: u32,
        result: Result<(), IoError>,
        sums: &[u32],
    ) {
        self.note_cache_result(self.fills[fill_id as usize].volume, result);
        let run = from as usize..to as usize;
        match result {
            Ok(()) => {
                for (n, at) in run.enumerate() {
                    let Some(entry) = self.fills[fill_id as usize].entries[at] else { continue };
                    self.store.set_state(entry, State::Valid);
                    self.note_cached(entry, sums.get(n).copied());
                }
            }
            Err(_) => self.give_up(fill_id, run),
        }
        let fill = &mut self.fills[fill_id as usize];
        fill.writes -= 1;
        if fill.writes == 0 {
            self.end_fill(fill_id);
        }
    }

    /// These blocks will not be cached; their slots hold nothing that anyone reads, since a filling block is served from memory.
    fn give_up(&mut self, fill_id: u32, run: Range<usize>) {
        for at in run {
            let fill = &self.fills[fill_id as usize];
            let Some(entry) = fill.entries[at] else { continue };
            let key = BlockKey { volume: fill.volume, block: fill.first + at as u64 };
            debug_assert_eq!(self.store.find(key), Some(entry), "a block in a fill keeps its entry");
            self.remove_entry(entry);
        }
    }

    fn end_fill(&mut self, fill_id: u32) {
        let fill = self.fills.remove(fill_id as usize);
        self.volume_mut(fill.volume).fills.retain(|&id| id != fill_id);
        self.free_stage(fill.stage);
        self.unlock(fill.volume, Owner::Fill(fill_id));
        for part in fill.held_back {
            self.part_step(part);
        }
        if fill.moved {
            self.end_move(fill.volume);
        }
    }

    /// The bytes of the volume that a fill covers.
    fn fill_bytes(&self, fill_id: u32) -> (u64, u64) {
        let fill = &self.fills[fill_id as usize];
        let blocks = fill.blocks();
        (blocks.start * self.block_bytes(), self.block_range(fill.volume, blocks.end - 1).1)
    }
}
