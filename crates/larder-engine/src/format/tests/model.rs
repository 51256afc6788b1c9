//! A model of an engine that keeps the format's rules, and of what a crash may then leave.
//!
//! It knows nothing of pages and sectors: after every record it notes what each slot holds. A block's checksum stands for its data here: all that is written anywhere
//! is different. What guests write is on the device, as dirty blocks come with their data; the rest is not.

use super::disk::Disk;
use super::earlier::as_version_3;
use super::images::{formatted, layout};
use super::state::{Held, State, is_trusted, is_warm, region};
use crate::format::*;
use larder_policy::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const VOLUME: u16 = 3;
pub const BLOCKS: u64 = 24;
/// Slots in use.
pub const SLOTS: u32 = 16;
/// They are spread over three pages.
pub const SLOT_STEP: u32 = 60;

/// A block of the backing: its durable value, and those written since its last flush.
#[derive(Clone, Debug, Default)]
struct Stored {
    durable: u32,
    volatile: Vec<u32>,
}

impl Stored {
    fn newest(&self) -> u32 {
        self.volatile.last().copied().unwrap_or(self.durable)
    }
}

pub struct Model {
    pub disk: Disk,
    session: Session,
    /// After each record, or draft of one, that a crash may still make the last one, by sequence and bytes of entries.
    history: BTreeMap<(u64, usize), State>,
    /// After the last record that was made in its place, and which one that was.
    whole: (u64, State),
    /// The last record or draft that was made.
    made: (u64, usize),
    /// With the entries that are in no record yet.
    now: State,
    /// Clean blocks that a marked write has overtaken, but of which the journal does not know.
    stale: BTreeSet<u32>,
    backing: Vec<Stored>,
    values: u32,
    /// Pages that wait for their record to be durable.
    pages: VecDeque<(PageWrite, Vec<u8>)>,
    /// The last page that was written.
    written: Ticket,
    pub crashes: u32,
    /// Drafts that were made.
    pub drafts: u32,
    /// Each crash leaves what version 3 would have left.
    pub earlier: bool,
}

impl Model {
    pub fn new(records: u64) -> Self {
        Self::of(layout(records))
    }

    pub fn of(layout: Layout) -> Self {
        let mut disk = formatted(layout);
        let session = recover(&mut disk).unwrap().open().unwrap();
        disk.write(session.superblock.offset(), &session.superblock.encode()).unwrap();
        disk.flush().unwrap();
        Self {
            disk,
            session,
            history: BTreeMap::from([((0, 0), State::default())]),
            whole: (0, State::default()),
            made: (0, 0),
            drafts: 0,
            now: State::default(),
            stale: BTreeSet::new(),
            backing: vec![Stored::default(); BLOCKS as usize],
            values: 0,
            pages: VecDeque::new(),
            written: Ticket::default(),
            crashes: 0,
            earlier: false,
        }
    }

    /// One step; `arg` chooses among what is possible.
    pub fn step(&mut self, kind: u8, arg: u64) {
        let block = arg % BLOCKS;
        match kind {
            0..=5 => self.write_back(block),
            6..=8 => self.fill(block),
            9..=11 => self.write_past(block, arg.is_multiple_of(3)),
            12 => self.clean(block),
            13 => self.evict(block),
            14 => self.refresh(block),
            15 => self.unmark(block),
            16 => self.flush_backing(),
            17..=19 => self.commit(),
            20..=21 => self.seal(),
            22 => self.flush(),
            23 => self.stop(),
            24 => self.kill(arg),
            _ => self.crash(arg),
        }
    }

    /// Data that never were before, with their checksum as those of a block.
    fn value(&mut self, block: u64) -> (Vec<u8>, u32) {
        self.values += 1;
        let data =
            self.values.to_le_bytes().repeat(self.session.superblock.layout.block_bytes() as usize / 4);
        let crc = self.session.superblock.salt().block(BlockId { volume: VOLUME, block }, &data);
        (data, crc)
    }

    /// Now and then none.
    fn epoch(&self) -> Epoch {
        if self.values.is_multiple_of(3) { Epoch::NONE } else { Epoch::of(u64::from(self.values)) }
    }

    fn slot_of(&self, block: u64) -> Option<u32> {
        self.now.slots.iter().find(|(_, held)| held.contents.block.block == block).map(|(&slot, _)| slot)
    }

    /// One that is free durably.
    fn free_slot(&self) -> Option<u32> {
        let step = self.session.superblock.layout.slots() / SLOTS;
        let is_used = |slot: &u32| {
            let mut states = self.history.values().chain([&self.now]);
            states.any(|state| state.slots.contains_key(slot))
        };
        (0..SLOTS).map(|n| n * step).find(|slot| !is_used(slot))
    }

    /// A guest's write under write-back: to a slot of its own, as dirty; now and then made durable before it is told of.
    fn write_back(&mut self, block: u64) {
        let Some(slot) = self.free_slot() else { return };
        let old = self.slot_of(block);
        let (data, crc) = self.value(block);
        self.disk.write(self.session.superblock.layout.slot_offset(slot), &data).unwrap();
        let contents =
            Contents { block: BlockId { volume: VOLUME, block }, dirty: true, epoch: self.epoch(), crc };
        let Contents { block, dirty, epoch, crc } = contents;
        match self.values.is_multiple_of(8) {
            true => {
                self.flush();
                self.map(Entry::Map { block, dirty, epoch, slot, crc, old });
            }
            false => self.map(Entry::Write { block, epoch, slot, crc, old }),
        }
        old.map(|old| self.stale.remove(&old));
    }

    /// A copy of what the backing has, durably.
    fn fill(&mut self, block: u64) {
        let (Some(slot), None) = (self.free_slot(), self.slot_of(block)) else { return };
        let stored = &self.backing[block as usize];
        if stored.volatile.is_empty() {
            let block = BlockId { volume: VOLUME, block };
            let crc = stored.durable;
            self.map(Entry::Map { block, dirty: false, epoch: Epoch::NONE, slot, crc, old: None });
        }
    }

    fn map(&mut self, entry: Entry) {
        self.push(entry);
        let Entry::Map { block, dirty, epoch, slot, crc, old } = entry.as_map() else { unreachable!() };
        old.map(|old| self.now.slots.remove(&old));
        let contents = Contents { block, dirty, epoch, crc };
        self.now.slots.insert(slot, Held { contents, clean_since: u64::MAX });
    }

    /// A guest's write to the backing alone. What the journal may say after a crash must be no trap: by a mark, or by
    /// a durable `Free`.
    pub fn write_past(&mut self, block: u64, free_first: bool) {
        if let Some(slot) = self.slot_of(block) {
            let dirty = self.now.slots[&slot].contents.dirty;
            if dirty || free_first {
                self.free(slot);
            } else {
                self.stale.insert(slot);
            }
        }
        if !self.may_pass(block) {
            if !free_first {
                self.push(Entry::mark(region(block)));
                self.now.marks.insert(region(block), u64::MAX);
            }
            self.commit();
        }
        assert!(self.may_pass(block), "a mark or a Free is durable now");
        let (_, value) = self.value(block);
        self.backing[block as usize].volatile.push(value);
    }

    /// The rule for writes past the cache: in no state that a crash may leave is the block trusted, or dirty.
    fn may_pass(&self, block: u64) -> bool {
        let harmless = |state: &State| {
            let held = state.slots.values().find(|held| held.contents.block.block == block);
            held.is_none_or(|held| !held.contents.dirty && !is_trusted(held, state))
        };
        self.history.values().all(harmless) && (self.session.journal.is_sealed() || harmless(&self.now))
    }

    /// The cleaner: its write overtakes what was clean before, so the dirty mapping must be durable first; and the
    /// backing has the data, durably, before the journal says so.
    fn clean(&mut self, block: u64) {
        let Some(slot) = self.slot_of(block) else { return };
        let contents = self.now.slots[&slot].contents;
        if !contents.dirty {
            return;
        }
        if !self.may_write_back(block) {
            self.commit();
        }
        assert!(self.may_write_back(block), "the dirty mapping is durable now");
        self.backing[block as usize] = Stored { durable: contents.crc, volatile: Vec::new() };
        self.push(Entry::Clean { slot });
        let contents = Contents { dirty: false, epoch: Epoch::NONE, ..contents };
        self.now.slots.insert(slot, Held { contents, clean_since: u64::MAX });
    }

    /// In no state that a crash may leave is the block clean and trusted.
    fn may_write_back(&self, block: u64) -> bool {
        self.history.values().all(|state| {
            let held = state.slots.values().find(|held| held.contents.block.block == block);
            held.is_none_or(|held| held.contents.dirty || !is_trusted(held, state))
        })
    }

    fn evict(&mut self, block: u64) {
        let Some(slot) = self.slot_of(block) else { return };
        if !self.now.slots[&slot].contents.dirty {
            self.free(slot);
        }
    }

    fn free(&mut self, slot: u32) {
        self.push(Entry::Free { slot });
        self.now.slots.remove(&slot);
        self.stale.remove(&slot);
    }

    /// Write-through: what was overtaken holds the new data too, and the journal learns it once the backing has it
    /// durably.
    fn refresh(&mut self, block: u64) {
        let Some(slot) = self.slot_of(block).filter(|slot| self.stale.contains(slot)) else { return };
        let stored = &self.backing[block as usize];
        if stored.volatile.is_empty() {
            let (crc, Contents { block, dirty, epoch, .. }) =
                (stored.durable, self.now.slots[&slot].contents);
            self.map(Entry::Map { block, dirty, epoch, slot, crc, old: None });
            self.stale.remove(&slot);
        }
    }

    /// A mark ends when the journal knows all that it covered, and the backing has it.
    fn unmark(&mut self, block: u64) {
        let region = region(block);
        if !self.now.marks.contains_key(&region) {
            return;
        }
        let stale: Vec<_> =
            self.stale.iter().copied().filter(|slot| self.region_of(*slot) == region).collect();
        stale.into_iter().for_each(|slot| self.free(slot));
        self.push(Entry::Unmark { region });
        self.now.marks.remove(&region);
    }

    fn region_of(&self, slot: u32) -> Region {
        region(self.now.slots[&slot].contents.block.block)
    }

    fn flush_backing(&mut self) {
        for stored in &mut self.backing {
            *stored = Stored { durable: stored.newest(), volatile: Vec::new() };
        }
    }

    /// Push, after making room where there is none.
    fn push(&mut self, entry: Entry) {
        for _ in 0..100 {
            match self.session.journal.push(entry) {
                Ok(()) => return,
                Err(JournalError::Full) => self.commit(),
                Err(JournalError::Marks(_)) => panic!("there are few regions"),
            }
        }
        panic!("the journal stays full: {:?}", self.session.journal);
    }

    pub fn commit(&mut self) {
        self.seal();
        self.flush();
    }

    /// The same with all in whole records.
    pub fn commit_whole(&mut self) {
        self.seal_all();
        self.flush();
    }

    /// Make records of what there is, or the draft of one, and pages if any are due, and write what may be written.
    fn seal(&mut self) {
        if self.earlier || self.values.is_multiple_of(7) || self.session.table.is_due(&self.session.journal) {
            return self.seal_all();
        }
        let pieces = self.session.journal.draft();
        self.drafts += u32::from(self.session.journal.has_draft());
        self.write(pieces);
    }

    fn seal_all(&mut self) {
        let pieces = self.session.journal.seal();
        self.write(pieces);
    }

    fn write(&mut self, pieces: Vec<Piece>) {
        self.note(&pieces);
        for piece in pieces {
            self.disk.write(piece.offset, &piece.bytes).unwrap();
        }
        let mut bytes = vec![0; PAGE_BYTES];
        let now = &self.now;
        let slots = |slot| now.slots.get(&slot).map(|held| held.contents);
        while let Some(write) = self.session.table.write_due(&self.session.journal, slots, &mut bytes) {
            self.pages.push_back((write, bytes.clone()));
        }
    }

    /// Note what each new record makes of the state, from the bytes of the record.
    fn note(&mut self, pieces: &[Piece]) {
        let layout = self.session.superblock.layout;
        let bytes = layout.sector_bytes();
        for Piece { offset, bytes: some } in pieces {
            let place = (offset - layout.record_offset(0)) / bytes as u64;
            for (at, sector) in (place..).zip(some.chunks(bytes)) {
                let found = record::inspect(sector, self.session.superblock.salt(), &layout, at);
                let record::Sector::Record(header, entries) = found else { panic!("not a record") };
                assert_eq!(header.sequence, self.whole.0 + 1);
                let mut state = self.whole.1.clone();
                entries.iter().for_each(|entry| state.apply(entry, header.sequence));
                self.made = (header.sequence, entries.bytes());
                self.history.insert(self.made, state.clone());
                if header.draft == 0 {
                    self.whole = (header.sequence, state);
                }
            }
        }
        let Some(state) = self.history.get(&self.made) else { return };
        let contents =
            |state: &State| state.slots.iter().map(|(&slot, held)| (slot, held.contents)).collect::<Vec<_>>();
        assert_eq!(contents(state), contents(&self.now), "records say what was pushed");
        self.now = state.clone();
    }

    fn flush(&mut self) {
        let sealed = self.session.journal.sealed();
        self.disk.flush().unwrap();
        self.session.journal.flushed(sealed);
        let made = self.made;
        self.history.retain(|&record, _| record >= made);
        self.session.table.flushed(self.written);
        self.session.journal.checkpointed(self.session.table.tail());
        while let Some((write, bytes)) = self.pages.pop_front() {
            assert!(write.after <= sealed, "pages were made before");
            self.disk.write(write.offset, &bytes).unwrap();
            self.written = write.ticket;
        }
    }

    /// A clean stop, with or without the slot table brought up to date, and a start.
    fn stop(&mut self) {
        self.flush_backing();
        self.commit_whole();
        self.commit_whole();
        self.stopped().store(&mut self.disk).unwrap();
        self.start();
    }

    pub fn stopped(&self) -> Superblock {
        Superblock {
            clean_stop: true,
            next: self.session.journal.sealed() + 1,
            tail: self.session.journal.tail(),
            ..self.session.superblock.successor()
        }
    }

    /// The power goes, perhaps again while recovery writes its superblock.
    fn crash(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.disk.crash(&mut rng);
        self.crashes += 1;
        if self.earlier {
            as_version_3(&mut self.disk);
        }
        self.crash_in_start(&mut rng);
        self.start();
        for stored in &mut self.backing {
            let survived = rng.below(stored.volatile.len() as u64 + 1) as usize;
            let durable = if survived == 0 { stored.durable } else { stored.volatile[survived - 1] };
            *stored = Stored { durable, volatile: Vec::new() };
        }
    }

    /// The process is gone, and nothing else: both devices keep what they have in their own caches. The power may go
    /// while the next process starts.
    fn kill(&mut self, seed: u64) {
        self.crash_in_start(&mut Rng::new(seed));
        self.start();
    }

    /// Perhaps the power goes while the superblock of a start is on its way.
    fn crash_in_start(&mut self, rng: &mut Rng) {
        if rng.below(3) > 0 {
            return;
        }
        let recovered = recover(&mut self.disk).unwrap();
        let session = recovered.open().unwrap();
        let mut is_same = |disk: &mut Disk| {
            disk.crash(rng);
            let again = recover(disk).unwrap();
            assert!(again.slots().eq(recovered.slots()), "a crash during a start changes nothing");
            assert_eq!((again.next(), again.last_bytes()), (recovered.next(), recovered.last_bytes()));
        };
        if let Some(Piece { offset, bytes }) = session.first {
            // The power went before: what is there is durable.
            if self.disk.is_flushed() {
                let mut disk = self.disk.clone();
                disk.write(offset, &bytes).unwrap();
                is_same(&mut disk);
            }
            self.disk.write(offset, &bytes).unwrap();
        }
        self.disk.flush().unwrap();
        self.disk.write(session.superblock.offset(), &session.superblock.encode()).unwrap();
        is_same(&mut self.disk);
    }

    /// Recover, hold the outcome against the model, and go on from there.
    fn start(&mut self) {
        let recovered = recover(&mut self.disk).unwrap();
        let last = (recovered.next() - 1, recovered.last_bytes());
        // Of one that has left the ring nobody knows how many bytes it had, and version 3 took others.
        let unknown = self.earlier || last.1 == 0;
        let known = |record: &&(u64, usize)| **record == last || record.0 == last.0 && unknown;
        let made = *self.history.keys().rfind(known).unwrap_or_else(|| {
            panic!("record {last:?} is the last one, and not one of {:?}", self.history.keys());
        });
        let state = &self.history[&made];
        self.compare(&recovered, state);
        self.session = recovered.open().expect("nothing is damaged");
        if let Some(Piece { offset, bytes }) = &self.session.first {
            self.disk.write(*offset, bytes).unwrap();
        }
        self.disk.flush().unwrap();
        self.disk.write(self.session.superblock.offset(), &self.session.superblock.encode()).unwrap();
        self.disk.flush().unwrap();
        self.now = state.clone();
        self.whole = (made.0, state.clone());
        self.made = made;
        self.history = BTreeMap::from([(made, self.now.clone())]);
        self.stale.clear();
        self.pages.clear();
        self.written = Ticket::default();
        for entry in recovered.settle().collect::<Vec<_>>() {
            match entry {
                Entry::Free { slot } => self.free(slot),
                Entry::Unmark { region } => {
                    self.push(entry);
                    self.now.marks.remove(&region);
                }
                other => panic!("{other:?} settles nothing"),
            }
        }
    }

    fn compare(&self, recovered: &Recovered, state: &State) {
        assert!(recovered.severity() <= Some(Severity::Note), "{:?}", recovered.findings());
        for (slot, found) in recovered.slots() {
            let expected = match state.slots.get(&slot) {
                None => SlotState::Free,
                Some(held) if held.contents.dirty || is_warm(held, state, recovered) => {
                    SlotState::Used(held.contents)
                }
                Some(held) => SlotState::Dropped(held.contents),
            };
            assert_eq!(found, expected, "slot {slot} after record {}", recovered.next() - 1);
        }
        for (slot, contents) in recovered.blocks() {
            assert!(
                !self.is_overtaken(&contents),
                "slot {slot} has {contents:?}, and the backing may have something else"
            );
        }
    }

    /// True for a clean block if the backing has, or may have after a power cut, anything else.
    pub fn is_overtaken(&self, contents: &Contents) -> bool {
        let stored = &self.backing[contents.block.block as usize];
        let mut values = std::iter::once(&stored.durable).chain(&stored.volatile);
        !contents.dirty && values.any(|&value| value != contents.crc)
    }
}
