//! Reads: each block of a part is classed under the part's shared lock, and runs of like blocks become single operations.
//!
//! A read of which the cache has the middle would become one operation of the backing for each missing piece, and break a sequential stream into random ones. So what lies
//! between two of them is read with them where it is no more than [`BRIDGED_BYTES`], and thrown away: hits come from the cache device all the same, and if the backing
//! cannot read it all, each piece is asked for by itself. What enters the cache and what does not, side by side, are one operation, too.

use crate::locks::Owner;
use crate::request::Part;
use crate::store::{BlockKey, EntryId, State};
use crate::{
    Action, Buf, BufOwner, Engine, IoError, Op, OpKind, STAGE_BYTES_BEHIND, STAGE_BYTES_MAX, StagedRead,
    Target, VolumeId,
};

/// Cached bytes between missing blocks that are read from the backing with these, at most: disks and networks carry them in less time than another operation takes to begin.
const BRIDGED_BYTES: u64 = 16 << 10;

/// Where a block's data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// From this slot of the cache device.
    Hit(u32),
    /// Likewise, and from nowhere else.
    Dirty(u32),
    /// From a fill that is under way.
    Attach(u32),
    /// From the backing, into the cache: this entry was admitted for it.
    Fill(EntryId),
    /// From the backing, past the cache.
    Bypass,
}

impl Class {
    /// True if the next block can be served by the same operation.
    fn continues(self, next: Self) -> bool {
        match (self, next) {
            (Self::Hit(slot), Self::Hit(next)) | (Self::Dirty(slot), Self::Dirty(next)) => slot + 1 == next,
            (Self::Attach(fill), Self::Attach(next)) => fill == next,
            (Self::Fill(_), Self::Fill(_)) | (Self::Bypass, Self::Bypass) => true,
            _ => false,
        }
    }
}

impl Class {
    /// The backing has to be read for it.
    fn is_missing(self) -> bool {
        matches!(self, Self::Fill(_) | Self::Bypass)
    }
}

/// How many of these blocks, which are some, are served as the first is.
fn alike(classes: &[Class]) -> usize {
    classes.windows(2).take_while(|pair| pair[0].continues(pair[1])).count() + 1
}

impl Engine {
    /// A read part has its lock: class its blocks, and start an operation for each run.
    pub(crate) fn run_read(&mut self, part_id: u32) {
        let part = self.parts[part_id as usize];
        let blocks = self.blocks_of(part.start, part.end);
        let mut classes = std::mem::take(&mut self.scratch);
        classes.clear();
        let past = self.read_passes_by(part.volume);
        for block in blocks.clone() {
            classes.push(self.class_of(part_id, &part, block, past));
        }
        // One step of its own keeps the part alive while its runs start: some end at once.
        self.parts[part_id as usize].pending = 1;
        let mut from = 0;
        while from < classes.len() {
            let (first, rest) = (blocks.start + from as u64, &classes[from..]);
            let (run, bridged) = (alike(rest), self.bridged(&part, first, rest));
            match bridged > run {
                true => self.start_bridged(part_id, &part, first, &rest[..bridged]),
                false => self.start_run(part_id, &part, first, &rest[..run]),
            }
            from += run.max(bridged);
        }
        self.scratch = classes;
        self.part_step(part_id);
    }

    /// What only the cache has is read there, also where the part passes it by (`past`).
    fn class_of(&mut self, part_id: u32, part: &Part, block: u64, past: bool) -> Class {
        let key = BlockKey { volume: part.volume, block };
        let bypass = (past || self.goes_past_cache(part.volume)) && !self.is_dirty(key);
        let class = if bypass { Class::Bypass } else { self.look_up(part_id, part, key) };
        let stats = self.stats_mut(part.volume);
        match class {
            Class::Hit(_) | Class::Dirty(_) | Class::Attach(_) => stats.read_hits += 1,
            Class::Fill(_) | Class::Bypass => {
                stats.read_misses += 1;
                self.offer_read(self.tenant_of(key.volume), part.asked);
            }
        }
        class
    }

    fn look_up(&mut self, part_id: u32, part: &Part, key: BlockKey) -> Class {
        match self.find_live(key, Owner::Part(part_id)) {
            Ok(Some(entry)) => {
                self.touch(key.volume, entry, true);
                match self.store.state(entry) {
                    State::Valid => Class::Hit(self.store.slot(entry)),
                    State::Dirty => Class::Dirty(self.store.slot(entry)),
                    State::Filling => self.fill_of(key).map_or(Class::Bypass, Class::Attach),
                    State::Writing => unreachable!("a shared lock keeps writes of the block out"),
                    State::Dead | State::Ghost => unreachable!("such an entry is not live"),
                }
            }
            Ok(None) if part.asked.closed => {
                self.turn_away(self.tenant_of(key.volume));
                Class::Bypass
            }
            Ok(None) if self.may_fill(part, key) => {
                self.admit(key, State::Filling, part.asked).map_or(Class::Bypass, Class::Fill)
            }
            Ok(None) | Err(_) => Class::Bypass,
        }
    }

    /// A fill reads whole blocks: what it reads beyond the part must not be being written.
    fn may_fill(&self, part: &Part, key: BlockKey) -> bool {
        let (start, end) = self.block_range(key.volume, key.block);
        let covered = part.start <= start && end <= part.end;
        let fits = self.stage_bytes + (part.end - part.start) + 2 * self.block_bytes() <= STAGE_BYTES_MAX;
        fits && !self.is_streamed(part) && (covered || self.volume(key.volume).locks.shareable(start, end))
    }

    /// How many of these blocks, the first of which is `first`, one operation of the backing brings: from one that is missing to another, over cached ones in between.
    ///
    /// It takes a staging buffer, as fills do. What does not enter the cache is not to make it seem behind with its writes: where much is staged, it goes straight to the guest.
    fn bridged(&self, part: &Part, first: u64, classes: &[Class]) -> usize {
        let stages = self.stage_bytes + (part.end - part.start) <= STAGE_BYTES_BEHIND / 2;
        if !classes[0].is_missing() || (!stages && classes[0] == Class::Bypass) {
            return 0;
        }
        let gap = (BRIDGED_BYTES / self.block_bytes()) as usize;
        let (mut end, mut cached) = (0, 0);
        for (at, class) in classes.iter().enumerate() {
            match class {
                Class::Fill(_) => (end, cached) = (at + 1, 0),
                // Whole blocks are read, of which only the part's own bytes may be.
                Class::Bypass if stages && self.is_whole(part, first + at as u64) => {
                    (end, cached) = (at + 1, 0);
                }
                Class::Hit(_) | Class::Dirty(_) if cached < gap => cached += 1,
                Class::Bypass | Class::Hit(_) | Class::Dirty(_) | Class::Attach(_) => break,
            }
        }
        end
    }

    fn is_whole(&self, part: &Part, block: u64) -> bool {
        let (start, end) = self.block_range(part.volume, block);
        part.start <= start && end <= part.end
    }

    /// Read blocks from `first` on from the backing at once, and those of them that are cached from the cache.
    fn start_bridged(&mut self, part_id: u32, part: &Part, first: u64, classes: &[Class]) {
        let entry = |class: &Class| match class {
            Class::Fill(entry) => Some(*entry),
            _ => None,
        };
        let fill = self.start_fill(part, first, classes.iter().map(entry).collect());
        let mut from = 0;
        while from < classes.len() {
            let missing = |class: &&Class| class.is_missing();
            let holes = classes[from..].iter().take_while(missing).count();
            let run = if holes > 0 { holes } else { alike(&classes[from..]) };
            let at = first + from as u64;
            if holes > 0 {
                let (start, end) = self.wanted(part, at, run);
                self.wait_for(fill, part_id, start, end);
            } else {
                self.start_run(part_id, part, at, &classes[from..from + run]);
            }
            from += run;
        }
    }

    /// What a part wants of so many blocks.
    fn wanted(&self, part: &Part, first: u64, blocks: usize) -> (u64, u64) {
        let end = (first + blocks as u64) * self.block_bytes();
        (part.start.max(first * self.block_bytes()), part.end.min(end))
    }

    fn start_run(&mut self, part_id: u32, part: &Part, first: u64, run: &[Class]) {
        let (start, end) = self.wanted(part, first, run.len());
        match run[0] {
            Class::Hit(slot) | Class::Dirty(slot) => self.start_hit(part_id, part, start, end, slot),
            Class::Attach(fill) => self.attach(fill, part_id, start, end),
            Class::Bypass => self.start_bypass(part_id, start, end),
            Class::Fill(_) => {
                let entry = |class: &Class| match class {
                    Class::Fill(entry) => Some(*entry),
                    _ => unreachable!("a run of fills holds fills"),
                };
                let fill = self.start_fill(part, first, run.iter().map(entry).collect());
                self.wait_for(fill, part_id, start, end);
            }
        }
    }

    /// Read `start..end`, whose first block is in `slot` and the others behind it.
    fn start_hit(&mut self, part_id: u32, part: &Part, start: u64, end: u64, slot: u32) {
        let offset = self.slot_offset(slot) + self.within_block(start);
        let (low, high) = self.summed_bytes(part.volume, start, end);
        let whole = (offset, offset + (end - start));
        if self.cache_aligned(offset - (start - low), (high - low) as u32) != whole {
            return self.start_staged_hit(part_id, part, start, end, slot);
        }
        self.parts[part_id as usize].pending += 1;
        let op = Op::PartHit { part: part_id, start, end, slot, via: None };
        let kind = OpKind::Read { offset, len: (end - start) as u32, buf: part.buf(start) };
        self.device_summed(Target::Cache, kind, self.sums(part.volume, low, high), op);
    }

    /// The same by way of a staging buffer.
    fn start_staged_hit(&mut self, part_id: u32, part: &Part, start: u64, end: u64, slot: u32) {
        let offset = self.slot_offset(slot) + self.within_block(start);
        let (low, high) = self.summed_bytes(part.volume, start, end);
        let (from, to) = self.cache_aligned(offset - (start - low), (high - low) as u32);
        if self.stage_bytes + (to - from) > STAGE_BYTES_MAX && !self.any_dirty(part.volume, start, end) {
            self.hits_to_misses(part.volume, start, end);
            return self.start_bypass(part_id, start, end);
        }
        self.parts[part_id as usize].pending += 1;
        let stage = self.alloc_stage((to - from) as u32);
        let via = Some(StagedRead { stage, skip: (offset - from) as u32 });
        let buf = Buf { owner: BufOwner::Stage(stage), offset: 0 };
        let op = Op::PartHit { part: part_id, start, end, slot, via };
        let kind = OpKind::Read { offset: from, len: (to - from) as u32, buf };
        self.device_summed(Target::Cache, kind, self.sums(part.volume, low, high), op);
    }

    /// What has to be read to serve `start..end`: checksums are those of whole blocks.
    fn summed_bytes(&self, volume: VolumeId, start: u64, end: u64) -> (u64, u64) {
        if self.durable.is_some() { self.whole_blocks(volume, start, end) } else { (start, end) }
    }

    /// The bytes of all blocks that `start..end` touches.
    pub(crate) fn whole_blocks(&self, volume: VolumeId, start: u64, end: u64) -> (u64, u64) {
        let blocks = self.blocks_of(start, end);
        (self.block_range(volume, blocks.start).0, self.block_range(volume, blocks.end - 1).1)
    }

    /// The bytes of the cache device to read for these: widened to its alignment.
    fn cache_aligned(&self, offset: u64, len: u32) -> (u64, u64) {
        // A power of two, as a division would take longer than the rest of this.
        let mask = u64::from(self.config.cache_align) - 1;
        (offset & !mask, (offset + u64::from(len) + mask) & !mask)
    }

    /// Read `start..end` from the backing straight to the guest.
    pub(crate) fn start_bypass(&mut self, part_id: u32, start: u64, end: u64) {
        let part = self.parts[part_id as usize];
        self.parts[part_id as usize].pending += 1;
        let blocks = self.blocks_of(start, end);
        self.stats_mut(part.volume).backing_reads += blocks.end - blocks.start;
        let kind = OpKind::Read { offset: start, len: (end - start) as u32, buf: part.buf(start) };
        self.device(Target::Backing(part.volume), kind, Op::PartRead { part: part_id });
    }

    /// A read of the cache device ended. If it failed, or a checksum does, the backing has the same data, and the guest never sees the
    /// error; unless a block is dirty.
    ///
    /// A checksum over the guest's own memory proves nothing against a block: guests that share their memory may have changed it meanwhile. Such a
    /// block is read once more, to memory of the host's.
    pub(crate) fn end_hit(
        &mut self,
        part_id: u32,
        (start, end): (u64, u64),
        slot: u32,
        via: Option<StagedRead>,
        (result, sums): (Result<(), IoError>, &[u32]),
    ) {
        let part = self.parts[part_id as usize];
        self.note_cache_result(part.volume, result);
        let sound = result.is_ok() && self.are_sums(slot, sums);
        if !sound && result.is_ok() {
            match via {
                None if !self.cache_failed => {
                    self.start_staged_hit(part_id, &part, start, end, slot);
                    return self.part_step(part_id);
                }
                // Nobody can tell any more.
                None => {}
                Some(_) => self.drop_rotten(part_id, &part, start, slot, sums),
            }
        }
        if let Some(StagedRead { stage, skip }) = via {
            if sound {
                let from = Buf { owner: BufOwner::Stage(stage), offset: skip };
                let to = part.buf(start);
                self.actions.push_back(Action::Copy { from, to, len: (end - start) as u32 });
            }
            self.free_stage(stage);
        }
        if !sound && self.any_dirty(part.volume, start, end) {
            self.parts[part_id as usize].error.get_or_insert(IoError::Io);
        } else if result.is_err() {
            self.hit_to_miss(part_id, &part, start, end);
        } else if !sound {
            self.hits_to_misses(part.volume, start, end);
            self.start_bypass(part_id, start, end);
        }
        self.part_step(part_id);
    }

    /// True if these are the checksums of the blocks in this slot and those behind it.
    #[inline]
    fn are_sums(&self, slot: u32, sums: &[u32]) -> bool {
        sums.iter().zip(slot..).all(|(&sum, slot)| self.is_sum(slot, sum))
    }

    /// Those of the blocks that were read, the first from this slot, whose checksums fail leave the cache, and are counted.
    fn drop_rotten(&mut self, part_id: u32, part: &Part, start: u64, slot: u32, sums: &[u32]) {
        for ((&sum, slot), block) in sums.iter().zip(slot..).zip(self.block_of(start)..) {
            if !self.is_sum(slot, sum) {
                self.stats_mut(part.volume).checksum_errors += 1;
                let key = BlockKey { volume: part.volume, block };
                match self.is_dirty(key) {
                    true => self.note_lost(key),
                    false => self.invalidate(key, Owner::Part(part_id)),
                }
            }
        }
    }

    /// Blocks that were counted as hits are read from the backing after all.
    pub(crate) fn hits_to_misses(&mut self, volume: VolumeId, start: u64, end: u64) {
        let blocks = self.blocks_of(start, end);
        let stats = self.stats_mut(volume);
        stats.read_hits -= blocks.end - blocks.start;
        stats.read_misses += blocks.end - blocks.start;
    }

    fn hit_to_miss(&mut self, part_id: u32, part: &Part, start: u64, end: u64) {
        self.hits_to_misses(part.volume, start, end);
        for block in self.blocks_of(start, end) {
            self.invalidate(BlockKey { volume: part.volume, block }, Owner::Part(part_id));
        }
        self.start_bypass(part_id, start, end);
    }
}
