//! Recovery: superblock, slot table and journal put together to the state that the last durable record left, and what
//! is wrong with it.
//!
//! 1. The superblock of the higher generation that is whole (`superblocks`).
//! 2. The newer whole copy of each page of the slot table (`pages`). A page includes only what was durable, so every
//!    record up to the highest `upto` was.
//! 3. From there on the journal's records, as long as each follows its predecessor: the last one is the end (`ring`).
//!    The end names the tail. Records that nothing calls durable count only if the data that were written with them are
//!    there.
//! 4. Every record from the tail to the end must be there. A page that does not reach up to the tail is an old one,
//!    whose newer copy is gone: where the ring still has all that happened since, nothing is lost; else the page is.
//! 5. The marks that are in force at the end; then, record by record, what each slot holds, where its page does not
//!    tell it already (`replay`).
//! 6. Clean blocks that a mark covers, and everything that contradicts itself, are dropped (`verify`).
//!
//! The cost is one read of everything, and two more of what is to be replayed, all in large pieces; 12 bytes of memory
//! for a slot, and 3 more while looking for blocks that are in two slots.

mod pages;
mod replay;
mod ring;
mod superblocks;
mod verify;

pub(super) use superblocks::choose;

use super::entry::{BlockId, Entry, Region};
use super::epoch::{Epoch, PERIOD};
use super::finding::{Finding, Findings, Severity};
use super::journal::{JournalWriter, MarkState, Piece};
use super::page::{Contents, PAGE_SLOTS, Word};
use super::superblock::{Superblock, Unusable};
use super::table::TableWriter;
use super::volumes::VolumeTable;
use super::{Medium, MediumError, SEQUENCE_MAX, SESSION_RECORDS};
use crate::{Planted, SessionMark};
use ring::{End, Ring};
use std::collections::{BTreeMap, BTreeSet};

/// A cache cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// Neither copy of the superblock can be used.
    #[error("no usable superblock: A {a}; B {b}")]
    NoSuperblock {
        /// Why the first copy cannot be used.
        a: Unusable,
        /// Why the second one cannot.
        b: Unusable,
    },
    /// The two superblocks are those of different caches.
    #[error("the two superblocks are those of different caches")]
    TwoCaches,
    /// The device is shorter than the cache.
    #[error("the cache takes {needed} bytes, and the device has {bytes}")]
    TooShort {
        /// Bytes that the superblock tells of.
        needed: u64,
        /// Bytes that there are.
        bytes: u64,
    },
    /// Blocks that the backings do not have may be lost: only a repair can say to go on without them.
    #[error("dirty blocks may be lost: {0}")]
    MayLoseDirty(Finding),
    /// Nothing but clean blocks is lost, but a new session would leave the hole in the journal or the slot table, and
    /// the next crash would lose what it wrote: [`super::repair`] comes first, which may run without being asked.
    #[error("a repair must come first: {0}")]
    RepairFirst(Finding),
    /// Sequences or generations are used up, which no writer can have done in a lifetime.
    #[error("the cache's sequences are used up: it must be made anew")]
    UsedUp,
    /// The device failed where a repair would have had to write, or a superblock to be read.
    #[error(transparent)]
    Medium(#[from] MediumError),
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Nothing.
    Free,
    /// A block, to be used.
    Used(Contents),
    /// A block that must not be used: a clean one that a write to the backing may have overtaken, or one that
    /// contradicts other metadata.
    Dropped(Contents),
    /// Nobody knows: its page is lost.
    Unknown,
}

/// A version of a dirty block of a volume with ordered write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its epoch, by [`Epoch::number`]: lower ones are older.
    pub number: u64,
    /// Another slot holds a newer version of the block.
    pub is_superseded: bool,
}

/// What is durably known of a page of the slot table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageState {
    /// The last record that it includes.
    pub upto: u64,
    /// The copy (0 or 1) that says so; the other one is written next.
    pub copy: u8,
    /// True if the journal tells more, or the other copy is damaged.
    pub behind: bool,
}

/// The state of a cache after a stop or a crash.
#[derive(Debug)]
pub struct Recovered {
    superblock: Superblock,
    volumes: VolumeTable,
    words: Vec<u64>,
    crcs: Vec<u32>,
    /// Of slots whose blocks have one, or are in several slots.
    epochs: BTreeMap<u32, Epoch>,
    once_dirty: BTreeSet<u16>,
    pages: Vec<PageState>,
    marks: BTreeMap<Region, MarkState>,
    end: End,
    /// The last record for its place, where there is but a draft of it.
    draft: Option<Piece>,
    /// Where replay began.
    pub(super) tail: u64,
    /// The last record that is lost, of those that are known to have been durable.
    lost_to: Option<u64>,
    hole: Option<Finding>,
    findings: Vec<Finding>,
}

/// What writes to a cache from its start to its stop.
#[derive(Debug)]
pub struct Session {
    /// To be written first of all: the last record in its place, where recovery has found but a draft of it. Until `superblock` is durable, the one that was
    /// recovered says what is.
    pub first: Option<Piece>,
    /// To be written before anything else, between two flushes: the one before makes durable what recovery has read,
    /// which this superblock then calls durable.
    pub superblock: Superblock,
    /// Makes records.
    pub journal: JournalWriter,
    /// Makes pages of the slot table.
    pub table: TableWriter,
}

/// Put together what the cache holds, reading all of its metadata. Damage is no error, but among the
/// [`Recovered::findings`].
pub fn recover(medium: &mut impl Medium) -> Result<Recovered, RecoverError> {
    recover_with(medium, None, None)
}

/// The same by someone who knows what was durable of a session.
pub fn recover_after(medium: &mut impl Medium, mark: SessionMark) -> Result<Recovered, RecoverError> {
    recover_with(medium, None, Some(mark))
}

/// The same; tests plant bugs.
/// Where the record of this sequence, and drafts of it, lie, or else where it would: bytes of the device.
pub(super) fn record_offsets(medium: &mut impl Medium, superblock: &Superblock, sequence: u64) -> Vec<u64> {
    let mut places = Ring::new(medium, superblock).places(sequence);
    if places.is_empty() {
        places.push(sequence);
    }
    places.into_iter().map(|at| superblock.layout.record_offset(at)).collect()
}

pub(crate) fn recover_with(
    medium: &mut impl Medium,
    bug: Option<Planted>,
    mark: Option<SessionMark>,
) -> Result<Recovered, RecoverError> {
    let mut findings = Findings::default();
    let (superblock, volumes) = superblocks::read(medium, bug, &mut findings)?;
    let mut slots = pages::read(medium, &superblock);
    let newest = slots.pages.iter().map(|page| page.state.upto).max().unwrap_or(0);
    let mut ring = Ring::new(medium, &superblock);
    ring.skips_holes = bug == Some(Planted::HoleReplayed);
    ring.trusts_data = bug == Some(Planted::MapBeforeData);
    let same = |mark: &SessionMark| (mark.uuid, mark.session) == (superblock.uuid, superblock.session);
    let known = mark.filter(same).map_or((0, 0), |mark| (mark.record, mark.part as usize));
    let end = ring.find_end(newest, known, &volumes, &mut findings);
    let first =
        if slots.are_short(end.tail) || end.whole < end.last { ring.reach_back(&end) } else { end.tail };
    slots.lose_stale(first);
    let tail = end.tail.min(slots.least_upto() + 1);
    let mut replay = replay::Replay::new(&superblock, slots, &mut findings);
    replay.run(&mut ring, first, &end);
    let draft = ring.for_its_place(&end);
    let (slots, marks, lost_to) = replay.finish();
    let mut recovered = Recovered {
        superblock,
        volumes,
        words: slots.words,
        crcs: slots.crcs,
        epochs: slots.epochs,
        once_dirty: (0..=u16::MAX)
            .filter(|&volume| slots.once_dirty[usize::from(volume) / 64] >> (volume % 64) & 1 != 0)
            .collect(),
        pages: slots.pages.iter().map(|page| page.state).collect(),
        marks,
        end,
        draft,
        tail,
        lost_to,
        hole: None,
        findings: Vec::new(),
    };
    verify::run(&mut recovered, &mut findings);
    recovered.hole = findings.hole();
    recovered.findings = findings.into_list();
    Ok(recovered)
}

impl Recovered {
    /// The newest superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The volumes.
    pub fn volumes(&self) -> &VolumeTable {
        &self.volumes
    }

    /// What is wrong.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The worst of it.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }

    /// What a slot holds.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn slot(&self, slot: u32) -> SlotState {
        let word = Word(self.words[slot as usize]);
        if word.is_unknown() {
            return SlotState::Unknown;
        }
        if !word.is_used() {
            return SlotState::Free;
        }
        let crc = self.crcs[slot as usize];
        let epoch = self.epochs.get(&slot).copied().filter(|_| word.is_dirty()).unwrap_or_default();
        let contents = Contents { block: word.block(), dirty: word.is_dirty(), epoch, crc };
        if word.is_dropped() { SlotState::Dropped(contents) } else { SlotState::Used(contents) }
    }

    /// All slots, by number.
    pub fn slots(&self) -> impl Iterator<Item = (u32, SlotState)> + '_ {
        (0..self.superblock.layout.slots()).map(|slot| (slot, self.slot(slot)))
    }

    /// The blocks that can be used, by slot.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, Contents)> + '_ {
        self.slots().filter_map(|(slot, state)| match state {
            SlotState::Used(contents) => Some((slot, contents)),
            _ => None,
        })
    }

    /// The state of each page of the slot table, by number.
    pub fn pages(&self) -> &[PageState] {
        &self.pages
    }

    /// Pages of which the journal tells more, or a copy is damaged.
    pub fn pages_behind(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.pages).filter_map(|(page, state)| state.behind.then_some(page))
    }

    /// Regions that are still marked.
    pub fn marks(&self) -> impl Iterator<Item = (Region, MarkState)> + '_ {
        self.marks.iter().map(|(&region, &mark)| (region, mark))
    }

    /// The sequence of the next record.
    pub fn next(&self) -> u64 {
        self.end.last + 1
    }

    /// True if all is there that was durable of this session, by its mark.
    pub fn reaches(&self, mark: &SessionMark) -> bool {
        let End { last, bytes, .. } = self.end;
        match mark.part {
            0 => last - u64::from(self.end.is_draft()) >= mark.record,
            part => (last, bytes) >= (mark.record + 1, part as usize),
        }
    }

    /// Bytes of entries in the last record, in its place or in a draft.
    #[cfg(test)]
    pub(super) fn last_bytes(&self) -> usize {
        self.end.bytes
    }

    /// In the place of which record the last one lies.
    #[cfg(test)]
    pub(super) fn last_place(&self) -> u64 {
        self.end.at
    }

    /// The highest sequence seen anywhere, even in records that do not count.
    pub(super) fn highest(&self) -> u64 {
        self.end.highest
    }

    /// Higher than any generation and session seen.
    pub(super) fn next_generation(&self) -> u64 {
        let above = self.superblock.generation.max(self.end.session_max) + 1;
        // The other copy's turn.
        above + u64::from((above - self.superblock.generation).is_multiple_of(2))
    }

    /// True for a slot of which a lost record may have told something newer.
    pub(super) fn may_be_outdated(&self, slot: u32) -> bool {
        let upto = self.pages[slot as usize / PAGE_SLOTS].upto;
        self.lost_to.is_some_and(|lost_to| upto < lost_to)
    }

    /// Go on from here: what the next session writes with. First the device gets [`Session::first`], and is flushed: what recovery has read may be
    /// in the device's own cache only, if it was not the power that went. Then its superblock is written, which calls
    /// all that durable, and flushed. Then come the entries of [`Recovered::settle`], before anything else of their
    /// regions.
    ///
    /// Refused where dirty blocks may be lost, and on top of a hole.
    pub fn open(&self) -> Result<Session, RecoverError> {
        if let Some(worst) = self.findings.iter().find(|finding| finding.severity() == Severity::Dirty) {
            return Err(RecoverError::MayLoseDirty(worst.clone()));
        }
        if let Some(hole) = &self.hole {
            return Err(RecoverError::RepairFirst(hole.clone()));
        }
        let (generation, next, tail) = (self.next_generation(), self.next(), self.tail);
        let volumes_generation = self.superblock.volumes_generation.max(self.volumes.generation);
        check_room(next, generation.max(volumes_generation))?;
        let superblock = Superblock {
            generation,
            session: generation,
            clean_stop: false,
            next,
            part: 0,
            tail,
            volumes_generation,
            ..self.superblock.clone()
        };
        let (layout, salt) = (superblock.layout, superblock.salt());
        Ok(Session {
            first: self.draft.clone(),
            journal: JournalWriter::new(layout, salt, generation, (next, tail), self.marks.clone()),
            table: TableWriter::new(layout, salt, &self.pages, self.end.last),
            superblock,
        })
    }

    /// What makes the journal agree with what is in use: dropped blocks are freed; then no mark is needed any more.
    /// Until its `Free` is pushed a slot still holds its block, and pages say so: else they would be ahead of the
    /// journal.
    pub fn settle(&self) -> impl Iterator<Item = Entry> + '_ {
        let dropped = self.slots().filter(|(_, state)| matches!(state, SlotState::Dropped(_)));
        let frees = dropped.map(|(slot, _)| Entry::Free { slot });
        frees.chain(self.marks.keys().map(|&region| Entry::Unmark { region }))
    }

    /// The highest block that a volume has room for, plus one; `None` if there is no such volume.
    fn volume_blocks(&self, volume: u16) -> Option<u64> {
        let block = u64::from(self.superblock.layout.block_bytes());
        self.volumes.get(volume).map(|volume| volume.bytes.div_ceil(block))
    }

    /// The volumes of which replay has found that dirty blocks are so no more. What it has read may not be durable: a power cut could bring them back.
    pub(crate) fn once_dirty(&self) -> &BTreeSet<u16> {
        &self.once_dirty
    }

    /// The versions of dirty blocks of volumes with ordered write-back, by slot.
    pub fn versions(&self) -> BTreeMap<u32, Version> {
        let in_use = |(&slot, &epoch): (&u32, &Epoch)| match self.slot(slot) {
            SlotState::Used(contents) => Some((slot, contents.block, epoch)),
            _ => None,
        };
        let mut epochs: BTreeMap<u16, BTreeSet<Epoch>> = BTreeMap::new();
        for (_, block, epoch) in self.epochs.iter().filter_map(in_use) {
            epochs.entry(block.volume).or_default().insert(epoch);
        }
        let numbers: BTreeMap<u16, BTreeMap<Epoch, u64>> =
            epochs.into_iter().map(|(volume, epochs)| (volume, Epoch::number(epochs.into_iter()))).collect();
        let mut newest: BTreeMap<BlockId, (u64, u32)> = BTreeMap::new();
        let mut versions = BTreeMap::new();
        for (slot, block, epoch) in self.epochs.iter().filter_map(in_use) {
            // What is of no epoch is the oldest.
            let number = numbers[&block.volume].get(&epoch).copied().unwrap_or(PERIOD - 1);
            versions.insert(slot, Version { number, is_superseded: true });
            let best = newest.entry(block).or_insert((number, slot));
            *best = (*best).max((number, slot));
        }
        for (number, slot) in newest.into_values() {
            versions.insert(slot, Version { number, is_superseded: false });
        }
        versions
    }

    fn contents(&self, slot: usize) -> (BlockId, bool) {
        let word = Word(self.words[slot]);
        (word.block(), word.is_dirty())
    }
}

/// Refuse where a session's records, or as many superblocks and volume tables, could reach [`SEQUENCE_MAX`].
pub(super) fn check_room(next: u64, generation: u64) -> Result<(), RecoverError> {
    let has_room = next.max(generation) < SEQUENCE_MAX - SESSION_RECORDS;
    has_room.then_some(()).ok_or(RecoverError::UsedUp)
}

/// Read a run of pieces of `unit` bytes; one that cannot be read is filled with ones, which no checksum and no magic
/// takes for anything.
fn read_units(medium: &mut impl Medium, offset: u64, into: &mut [u8], unit: usize) {
    if medium.read(offset, into).is_ok() {
        return;
    }
    for (at, piece) in (0..).zip(into.chunks_mut(unit)) {
        if medium.read(offset + at * unit as u64, piece).is_err() {
            piece.fill(0xff);
        }
    }
}
