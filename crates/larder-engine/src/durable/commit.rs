//! Rounds on the device: what the engine has to say is pushed, written and flushed.

use super::round::{Outcome, superblock_piece};
use super::{After, Durable, Phase, Planted, Wish};
use crate::format::{Entry, Epoch, JournalError, Piece, Region, Superblock};
use crate::locks::Owner;
use crate::store::{BlockKey, EntryId, State};
use crate::{Action, Buf, BufOwner, Engine, IoError, Op, OpKind, StageId, Target};

/// Blocks mapped in one round at most: a mark that is waited for is not held up by thousands.
const MAPS_PER_ROUND: usize = 2048;

impl Engine {
    /// Say what there is to say, if nothing is under way and it is time.
    #[inline]
    pub(crate) fn pump(&mut self) {
        let Some(durable) = &self.durable else { return };
        if durable.phase == Phase::Idle && (durable.stopping || durable.wanted > 0) {
            self.go_on_saying();
        }
    }

    fn go_on_saying(&mut self) {
        if self.start_retabling() {
            return;
        }
        match self.durable.as_ref().is_some_and(|durable| durable.stopping) {
            true => self.stop_step(),
            false => drop(self.start_round()),
        }
    }

    /// Begin a round. False if there is nothing to do.
    pub(super) fn start_round(&mut self) -> bool {
        let early = self.is_planted(Planted::MapBeforeData);
        let Some(durable) = &mut self.durable else { return false };
        if durable.news.waiting() > 0 && !durable.superblock.may_hold_dirty {
            let superblock = Superblock { may_hold_dirty: true, ..durable.successor() };
            let piece = superblock_piece(&superblock);
            durable.next_superblock = Some(superblock);
            self.meta_step(vec![piece], After::Flag);
            return true;
        }
        self.push_all();
        let Some(durable) = &mut self.durable else { return false };
        durable.wanted = durable.wanted.saturating_sub(1);
        if early {
            durable.ripe.extend(durable.unflushed.drain(..));
        }
        let pieces = durable.begin_round(&self.store);
        let silent = durable.unflushed.is_empty() && durable.news.waiting() == 0 && durable.pages.is_empty();
        if pieces.is_empty() && silent {
            durable.wanted = 0;
            durable.news.nothing_new();
            self.reply_to_waiters();
            self.look_for_slots();
            return false;
        }
        durable.news.round_begins();
        self.meta_step(pieces, After::Round);
        true
    }

    /// Push frees, marks, unmarks, what there is to say of dirty blocks, and maps, in this order, as long as the journal takes them.
    fn push_all(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        durable.full = false;
        durable.push_frees();
        if durable.push_marks() || !durable.gate.is_empty() {
            self.relieve_marks();
        }
        self.push_unmarks();
        if !self.push_news() {
            return;
        }
        self.push_cleans();
        for _ in 0..MAPS_PER_ROUND {
            let Some(durable) = &mut self.durable else { return };
            let Some(wish) = (!durable.full).then(|| durable.ripe.pop_front()).flatten() else { return };
            if self.is_wanted(&wish) {
                self.push_map(wish);
            }
        }
    }

    fn push_map(&mut self, wish: Wish) {
        let Some(durable) = &mut self.durable else { return };
        let Wish { block, slot, crc } = wish;
        let entry = Entry::Map { block, dirty: false, epoch: Epoch::NONE, slot, crc, old: None };
        if durable.push(entry) {
            durable.slots.map(&mut self.store, slot, crc);
        } else {
            durable.ripe.push_front(wish);
        }
    }

    /// The block is cached as it was, the journal does not know it, and its region is quiet.
    fn is_wanted(&mut self, wish: &Wish) -> bool {
        let hasty = self.is_planted(Planted::MapBeforeBacking);
        let early = self.is_planted(Planted::MapBeforeData);
        let blind = self.is_planted(Planted::MapBeforeFirstFlush);
        let Some(durable) = &mut self.durable else { return false };
        let Some(key) = durable.key_of(wish.block) else { return false };
        let region = durable.region_of(wish.block);
        let trusted = blind || durable.regions.is_trusted(wish.block.volume);
        let quiet = hasty || (trusted && durable.regions.may_map(region));
        if durable.limbo.of(wish.block).any(|slot| durable.slots.is_dirty(slot)) {
            // An older version has to be freed first. The block is mapped at another time.
            return false;
        }
        // The block may have left, and come back to the same slot since the flush began.
        let durable = early || !durable.slots.is_young(wish.slot);
        quiet && durable && !self.goes_past_cache(key.volume) && self.unmapped(key) == Some(*wish)
    }

    /// A block that is cached and that the journal does not map, with what is to be said of it.
    pub(super) fn unmapped(&self, key: BlockKey) -> Option<Wish> {
        let durable = self.durable.as_deref()?;
        let entry = self.store.find(key).filter(|&entry| self.store.state(entry) == State::Valid)?;
        let slot = self.store.slot(entry);
        let crc = durable.sum(&self.store, slot).filter(|_| !durable.slots.is_used(slot))?;
        Some(Wish { block: durable.block_id(key), slot, crc })
    }

    /// The slot of an entry holds the block, with this checksum.
    pub(crate) fn note_cached(&mut self, entry: EntryId, crc: Option<u32>) {
        let (key, slot) = (self.store.key(entry), self.store.slot(entry));
        let Some(durable) = &mut self.durable else { return };
        let crc = crc.expect("the driver gives the checksums that it is asked for");
        durable.slots.written(&mut self.store, slot, crc);
        if !durable.slots.is_used(slot) {
            let block = durable.block_id(key);
            durable.wish(Wish { block, slot, crc });
        }
    }

    /// Blocks of a region that has become quiet may be mapped.
    pub(super) fn wish_region(&mut self, region: Region) {
        for key in self.blocks_of_region(region) {
            if let (Some(wish), Some(durable)) = (self.unmapped(key), &mut self.durable) {
                durable.wish(wish);
            }
        }
    }

    pub(super) fn blocks_of_region(&self, region: Region) -> impl Iterator<Item = BlockKey> + use<> {
        let found = self.durable.as_deref().and_then(|durable| {
            let volume = *durable.volumes.get(&region.volume)?;
            let blocks = u64::from(durable.superblock.region_blocks);
            let end = self.blocks_of(0, self.volume(volume).bytes).end;
            Some((volume, region.region * blocks..(region.region + 1).saturating_mul(blocks).min(end)))
        });
        found.into_iter().flat_map(|(volume, blocks)| blocks.map(move |block| BlockKey { volume, block }))
    }

    /// Write these pieces, then flush the device.
    pub(super) fn meta_step(&mut self, pieces: Vec<Piece>, after: After) {
        let Some(durable) = &mut self.durable else { return };
        durable.phase = Phase::Busy(after);
        durable.writes = pieces.len() as u32;
        durable.written_bytes += pieces.iter().map(|piece| piece.bytes.len() as u64).sum::<u64>();
        if pieces.is_empty() {
            return self.meta_flush();
        }
        for Piece { offset, bytes } in pieces {
            let len = bytes.len() as u32;
            let stage = self.alloc_stage(len);
            if let Some(durable) = &mut self.durable {
                durable.load(stage, bytes);
            }
            self.actions.push_back(Action::Load { stage });
            let buf = Buf { owner: BufOwner::Stage(stage), offset: 0 };
            let kind = OpKind::Write { offset, len, buf, fua: false };
            self.device(Target::CacheMeta, kind, Op::MetaWrite { stage });
        }
    }

    fn meta_flush(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.flush_begins();
        }
        self.device(Target::CacheMeta, OpKind::Flush, Op::MetaFlush);
    }

    /// The bytes for a staging buffer that [`Action::Load`] names: once.
    pub fn take_load(&mut self, stage: StageId) -> Vec<u8> {
        let load = self.durable.as_mut().and_then(|durable| durable.loads.pop_front());
        let (name, bytes) = load.expect("a load is taken once, when its action comes");
        assert_eq!(name, stage, "loads are taken in their order");
        bytes
    }

    pub(crate) fn end_meta_write(&mut self, stage: StageId, result: Result<(), IoError>) {
        self.free_stage(stage);
        let Some(durable) = &mut self.durable else { return };
        durable.failed |= result.is_err();
        durable.writes -= 1;
        if durable.writes == 0 {
            match durable.failed {
                true => self.latch(),
                false => self.meta_flush(),
            }
        }
    }

    pub(crate) fn end_meta_flush(&mut self, result: Result<(), IoError>) {
        let Some(durable) = &mut self.durable else { return };
        let Phase::Busy(after) = durable.phase else { unreachable!("a flush of metadata has a phase") };
        if result.is_err() || durable.failed {
            return self.latch();
        }
        if let Some(superblock) = durable.next_superblock.take() {
            durable.superblock = superblock;
        }
        durable.phase = Phase::Idle;
        match after {
            After::Start => self.start_step(),
            After::Table => self.retabling_step(),
            After::Flag => {}
            After::Round | After::Pages => {
                let outcome = durable.end_round(&self.store);
                self.note_outcome(outcome);
            }
            After::Stop => durable.phase = Phase::Stopped,
            After::Latch => self.latched(),
        }
    }

    fn note_outcome(&mut self, outcome: Outcome) {
        let Outcome { freed, marked } = outcome;
        self.give_to_pool(freed);
        self.look_for_slots();
        self.resume(marked);
        self.open_gate();
        self.reply_to_waiters();
        self.note_round();
    }

    /// Parts may go on with what they waited for.
    pub(super) fn resume(&mut self, parts: Vec<u32>) {
        for part in parts {
            let waits = &mut self.parts[part as usize].marks;
            *waits -= 1;
            if *waits == 0 {
                self.granted.push_back(Owner::Part(part));
            }
        }
    }
}

impl Durable {
    /// Push an entry; false if the journal is full.
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        let pushed = self.journal.push(entry).is_ok();
        self.full |= !pushed;
        pushed
    }

    fn push_frees(&mut self) {
        while let Some(&slot) = self.frees.front() {
            if !self.push(Entry::Free { slot }) {
                return;
            }
            self.frees.pop_front();
            self.slots.unmap(slot);
            self.said.frees.push(slot);
        }
    }

    /// True if there are as many marks as the journal can carry.
    fn push_marks(&mut self) -> bool {
        while let Some(&region) = self.marks.front() {
            match self.journal.push(Entry::mark(region)) {
                Ok(()) => {}
                Err(JournalError::Full) => {
                    self.full = true;
                    return false;
                }
                Err(JournalError::Marks(_)) => return true,
            }
            self.marks.pop_front();
            self.said.marks.push(region);
        }
        false
    }
}
