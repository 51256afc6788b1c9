//! The journal's writer: entries go in, whole records for the ring come out.
//!
//! What a crash leaves of the ring is a prefix of the records ([`super::recover`]). So entries count in the order in
//! which they were pushed, and an entry is durable once a flush of the device that began after its record was written
//! has ended. The writer keeps two promises to recovery:
//!
//! * Each record names a *tail*. Every page of the slot table includes all records before it, and every mark still in
//!   force is in a record from it on.
//! * Records from the tail that the newest *durable* record names are never overwritten. A mark is written again
//!   before the tail would pass it.
//!
//! A commit of a few entries may be a *draft* of a record ([`JournalWriter::draft`]), to which the next one adds its own: with a flush after each write the ring turns
//! once for as many writes as a record has room for, and with it the slot table is written that much less.

use super::checksum::Salt;
use super::entry::{ENTRY_BYTES, Entry, MARK_BYTES, Region};
use super::layout::Layout;
use super::record::{DRAFTS, Header, place, record_room};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Records that ordinary entries leave free, for marks to be written again (half of them hold all marks) and for a
/// record that names a new tail.
pub(super) fn reserve(layout: &Layout) -> u64 {
    (layout.records() / 16).max(4)
}

/// Marks at a time at most, however large the ring: they may all be written again at once, in 5 MiB.
const MARKS_MAX: usize = 1 << 18;

/// An entry cannot be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The slot table is too far behind: write the pages that are due, flush, seal, and flush again.
    #[error("the journal is full until the slot table has caught up")]
    Full,
    /// As many regions are marked as the ring can carry along.
    #[error("{0} regions are marked, which is all that the journal can carry")]
    Marks(usize),
}

/// A mark in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkState {
    /// Clean blocks of the region are trusted after a crash only if they became clean in a record after this one.
    pub since: u64,
    /// The last record that has the mark.
    pub at: u64,
}

/// Bytes to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where, in bytes from the start of the device.
    pub offset: u64,
    /// Whole sectors.
    pub bytes: Vec<u8>,
}

/// The journal of one session.
#[derive(Debug)]
pub struct JournalWriter {
    layout: Layout,
    salt: Salt,
    session: u64,
    /// The sequence of the next record.
    next: u64,
    /// Every record up to this one is durable, in its place.
    durable: u64,
    /// The last record, while there are but drafts of it.
    draft: Option<Draft>,
    /// Bytes of entries that are durable in a draft of the record after `durable`.
    draft_durable: usize,
    /// The last record of which there were drafts, until it is durable in its place.
    drafted: Option<u64>,
    /// A planted bug.
    pub(crate) drafts_in_one_place: bool,
    /// The last one that the newest record calls so.
    called_durable: u64,
    /// The last record with data of its own ([`Entry::Write`]).
    with_data: u64,
    pending: Vec<Entry>,
    /// The records that they will take.
    pending_records: Packing,
    /// Marks among `pending`.
    pending_marks: usize,
    marks: BTreeMap<Region, MarkState>,
    /// The same by the record that has them.
    marks_by_age: BTreeSet<(u64, Region)>,
    /// Every page of the slot table durably includes all records before this one.
    page_tail: u64,
    /// The tail that the newest durable record names.
    tail_durable: u64,
    /// Records not known to be durable that name another tail than the one before, with that tail.
    tails: VecDeque<(u64, u64)>,
}

/// A record that is not in its place yet, and may have more entries when it is.
#[derive(Debug)]
struct Draft {
    entries: Vec<Entry>,
    bytes: usize,
    /// In which of the two places the newest one lies.
    draft: u16,
}

/// A record that is being made.
struct Making {
    sequence: u64,
    /// Bytes of its entries that are durable, and entries that were in a draft of it.
    before: usize,
    drafted: usize,
    draft: u16,
}

impl JournalWriter {
    /// Go on from record `next`, under a session that the superblock already names durably.
    pub(super) fn new(
        layout: Layout,
        salt: Salt,
        session: u64,
        (next, tail): (u64, u64),
        marks: BTreeMap<Region, MarkState>,
    ) -> Self {
        Self {
            layout,
            salt,
            session,
            next,
            durable: next - 1,
            draft: None,
            draft_durable: 0,
            drafted: None,
            drafts_in_one_place: false,
            called_durable: next - 1,
            with_data: 0,
            pending: Vec::new(),
            pending_records: Packing::default(),
            pending_marks: 0,
            marks_by_age: marks.iter().map(|(&region, mark)| (mark.at, region)).collect(),
            marks,
            page_tail: tail,
            tail_durable: tail,
            tails: VecDeque::new(),
        }
    }

    /// Take an entry for the next record.
    pub fn push(&mut self, entry: Entry) -> Result<(), JournalError> {
        let records = self.pending_records.with(entry.bytes(), self.record_room());
        if records.count + self.reserve() > self.room() {
            return Err(JournalError::Full);
        }
        let entry = match entry {
            Entry::Mark { region, .. } => {
                let marks = self.marks.len() + self.pending_marks;
                if marks >= self.marks_max() {
                    return Err(JournalError::Marks(marks));
                }
                self.pending_marks += 1;
                Entry::mark(region)
            }
            other => other,
        };
        self.pending.push(entry);
        self.pending_records = records;
        Ok(())
    }

    /// Make records of all entries pushed so far, in their places; empty if there is nothing to say. The pieces may be written in any
    /// order.
    pub fn seal(&mut self) -> Vec<Piece> {
        let entries = self.take_pending();
        self.seal_all(entries)
    }

    /// The same where a few entries need not be a record: they make a draft of one, to which more may be added until it is in its place. A draft is
    /// made where all records, and the last draft, are known to be durable: of flushes, only one may be under way at a time. Until the record is in its place, entries are refused
    /// that would need so many others that they reach the draft.
    pub fn draft(&mut self) -> Vec<Piece> {
        // What takes several records is not looked at once more.
        if self.pending_records.count > 1 {
            return self.seal();
        }
        let entries = self.take_pending();
        let bytes: usize = entries.iter().map(Entry::bytes).sum();
        let before = self.draft.as_ref().map_or(0, |draft| draft.bytes);
        // A draft without a second one would be a sector more.
        let is_small = before + 2 * bytes <= self.record_room();
        let drafted = u64::from(self.draft.is_some());
        let is_durable = self.durable + drafted == self.sealed() && self.draft_durable == before;
        if !is_small || !is_durable || self.is_short() {
            return self.seal_all(entries);
        }
        if entries.is_empty() {
            self.pending = entries;
            return Vec::new();
        }
        self.next += 1 - drafted;
        let Draft { entries: mut all, draft, .. } =
            self.draft.take().unwrap_or(Draft { entries: Vec::new(), bytes: 0, draft: 0 });
        // In turn: the newest one that is durable stays.
        let draft = if self.drafts_in_one_place { 1 } else { draft % DRAFTS + 1 };
        let making = Making { sequence: self.sealed(), before, drafted: all.len(), draft };
        all.extend(&entries);
        self.keep_memory(entries);
        let mut pieces = Vec::new();
        self.record(making, &mut all, &mut pieces);
        self.draft = Some(Draft { entries: all, bytes: before + bytes, draft });
        self.drafted = Some(self.sealed());
        pieces
    }

    /// Everything that is to be said, with the marks that are to be carried along.
    fn take_pending(&mut self) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut self.pending);
        let ordinary = std::mem::take(&mut self.pending_records);
        self.pending_marks = 0;
        self.carry(&mut entries, ordinary);
        entries
    }

    /// Entries that were pushed next use this memory again.
    fn keep_memory(&mut self, mut entries: Vec<Entry>) {
        entries.clear();
        self.pending = entries;
    }

    fn seal_all(&mut self, mut entries: Vec<Entry>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = &mut entries[..];
        if let Some(Draft { entries: mut all, bytes, .. }) = self.draft.take() {
            let (some, others) = rest.split_at_mut(fitting(rest, self.record_room() - bytes));
            let sequence = self.sealed();
            let making = Making { sequence, before: self.draft_durable, drafted: all.len(), draft: 0 };
            all.extend(&*some);
            self.record(making, &mut all, &mut pieces);
            rest = others;
        }
        while !rest.is_empty() {
            let (some, others) = rest.split_at_mut(fitting(rest, self.record_room()));
            self.new_record(some, &mut pieces);
            rest = others;
        }
        if pieces.is_empty() && self.is_short() && self.has_new_tail() {
            self.new_record(&mut [], &mut pieces);
        }
        self.keep_memory(entries);
        pieces
    }

    /// Make a record, after [`JournalWriter::seal`], where one with data of its own is durable and nothing on the device says so: from then on damage of those data is
    /// told from a power cut.
    pub fn confirm(&mut self) -> Vec<Piece> {
        let drafted = self.draft.as_ref().is_some_and(|draft| draft.bytes == self.draft_durable);
        let durable = self.durable + u64::from(drafted);
        if !(self.called_durable + 1..=durable).contains(&self.with_data) || self.is_short() {
            return Vec::new();
        }
        let mut pieces = self.seal_all(Vec::new());
        if pieces.is_empty() {
            self.new_record(&mut [], &mut pieces);
        }
        pieces
    }

    /// A flush of the device ended that began when every record up to this one had been written.
    pub fn flushed(&mut self, through: u64) {
        debug_assert!(through < self.next, "records are written before they are flushed");
        match &self.draft {
            Some(draft) if through == self.sealed() => {
                self.durable = through - 1;
                self.draft_durable = draft.bytes;
            }
            _ if through > self.durable => {
                self.durable = through;
                self.draft_durable = 0;
            }
            _ => {}
        }
        self.drafted.take_if(|drafted| *drafted <= self.durable);
        while let Some((_, tail)) = self.tails.pop_front_if(|named| named.0 <= through) {
            self.tail_durable = tail;
        }
    }

    /// Every page of the slot table durably includes all records before `tail` ([`super::TableWriter::tail`]).
    pub fn checkpointed(&mut self, tail: u64) {
        debug_assert!(tail <= self.next, "pages include what was written");
        self.page_tail = self.page_tail.max(tail);
    }

    /// The session whose records it makes.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The last record made, or of which there is a draft.
    pub fn sealed(&self) -> u64 {
        self.next - 1
    }

    /// The last record known to be durable, in its place.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// So many bytes of entries of the record after [`JournalWriter::durable`] are durable, in a draft.
    pub fn draft_durable(&self) -> usize {
        self.draft_durable
    }

    /// Where replay has to begin if the last record known to be durable is the last one.
    pub fn durable_tail(&self) -> u64 {
        self.tail_durable
    }

    /// True if all entries pushed are in records, or in the draft of one.
    pub fn is_sealed(&self) -> bool {
        self.pending.is_empty()
    }

    /// True if the last record is not in its place, and there are but drafts of it: what it will say is not known. [`JournalWriter::seal`] ends that.
    pub fn has_draft(&self) -> bool {
        self.draft.is_some()
    }

    /// Where replay has to begin: what the next record will name.
    pub fn tail(&self) -> u64 {
        self.marks_by_age.first().map_or(self.page_tail, |oldest| oldest.0.min(self.page_tail)).min(self.next)
    }

    /// Entries that can be pushed before it is full, of whatever kinds.
    pub fn room_entries(&self) -> u64 {
        let records = self.room().saturating_sub(self.reserve()).checked_sub(self.pending_records.count);
        let room = self.record_room();
        let entries = |bytes: usize| (bytes / ENTRY_BYTES) as u64;
        records.map_or(0, |records| records * entries(room) + entries(self.pending_records.left(room)))
    }

    /// The mark of a region, if it is in a record. It protects once that record (`since`) is durable.
    pub fn mark(&self, region: Region) -> Option<MarkState> {
        self.marks.get(&region).copied()
    }

    /// Regions that may be marked at a time.
    pub fn marks_max(&self) -> usize {
        (self.reserve() as usize / 2 * marks_in(self.record_room())).min(MARKS_MAX)
    }

    /// Records that may be made, with the reserve: the record before the tail is the last to be overwritten. Drafts are not reached, nor by marks, until their record is durable in its
    /// place.
    fn room(&self) -> u64 {
        let drafts = self.drafted.map(|record| place(&self.layout, record, 1).saturating_sub(self.next));
        let room = drafts.map_or(u64::MAX, |records| records + self.reserve() / 2 - 1);
        room.min(self.ring_room())
    }

    /// Records between the newest and the tail.
    fn ring_room(&self) -> u64 {
        (self.tail_durable + self.layout.records()).saturating_sub(self.next)
    }

    fn reserve(&self) -> u64 {
        reserve(&self.layout)
    }

    /// Bytes of entries in a record.
    fn record_room(&self) -> usize {
        record_room(self.layout.shape().sector_bytes)
    }

    /// True when entries are, or soon will be, refused.
    fn is_short(&self) -> bool {
        self.ring_room() <= 2 * self.reserve()
    }

    /// True if the ring has more room once a record names the tail that is, and none is on its way that does. Such a
    /// record gives back at least the room that it takes.
    fn has_new_tail(&self) -> bool {
        self.tails.is_empty() && self.tail() > self.tail_durable && self.ring_room() > 0
    }

    /// The tail that the newest record names.
    fn tail_named(&self) -> u64 {
        self.tails.back().map_or(self.tail_durable, |named| named.1)
    }

    /// Write marks again that half of the ring has passed: with each commit as many records of them as it has of its
    /// own, so that all are through before the ring has turned. When room is short, all marks at once: then none is
    /// old again before the tail has moved, and half of the reserve is enough.
    fn carry(&mut self, entries: &mut Vec<Entry>, ordinary: Packing) {
        let half = self.next.saturating_sub(self.layout.records() / 2);
        if self.marks_by_age.first().is_none_or(|oldest| oldest.0 >= half) {
            return;
        }
        let (before, budget) = match self.is_short() {
            true => (u64::MAX, usize::MAX),
            false => {
                let left = (self.room() - self.reserve()).saturating_sub(ordinary.count);
                let (more, room) = (ordinary.count.min(left), self.record_room());
                (half, more as usize * marks_in(room) + marks_in(ordinary.left(room)))
            }
        };
        let settled: BTreeSet<_> = entries.iter().filter_map(region_of).collect();
        let due = self.marks_by_age.iter().take_while(|mark| mark.0 < before).map(|&(_, region)| region);
        for region in due.filter(|region| !settled.contains(region)).take(budget) {
            entries.push(Entry::Mark { region, since: self.marks[&region].since });
        }
    }

    /// Make the next record of these entries.
    fn new_record(&mut self, entries: &mut [Entry], pieces: &mut Vec<Piece>) {
        let sequence = self.next;
        self.next += 1;
        self.record(Making { sequence, before: 0, drafted: 0, draft: 0 }, entries, pieces);
    }

    fn record(&mut self, making: Making, entries: &mut [Entry], pieces: &mut Vec<Piece>) {
        let Making { sequence, before, drafted, draft } = making;
        let all_durable = entries[..drafted].iter().map(Entry::bytes).sum::<usize>() == before;
        let (_, new) = entries.split_at_mut(drafted);
        new.iter_mut().for_each(|entry| self.note_mark(entry, sequence));
        let header = Header {
            sequence,
            session: self.session,
            tail: self.tail().min(sequence),
            durable: self.durable,
            // A sector has 4 KiB at most.
            before: before as u16,
            draft,
        };
        self.called_durable = self.durable;
        if new.iter().any(|entry| matches!(entry, Entry::Write { .. })) {
            self.with_data = sequence;
        } else if self.with_data == sequence && all_durable {
            self.with_data = 0;
        }
        if header.tail != self.tail_named() {
            self.tails.push_back((sequence, header.tail));
        }
        let offset = self.layout.record_offset(header.place(&self.layout));
        let contiguous = pieces.last().is_some_and(|last| last.offset + last.bytes.len() as u64 == offset);
        if !contiguous {
            pieces.push(Piece { offset, bytes: Vec::new() });
        }
        if let Some(piece) = pieces.last_mut() {
            let start = piece.bytes.len();
            piece.bytes.resize(start + self.layout.sector_bytes(), 0);
            header.encode(&mut piece.bytes[start..], self.salt, entries);
        }
    }

    /// Keep track of what is marked; a new mark learns its record.
    fn note_mark(&mut self, entry: &mut Entry, sequence: u64) {
        let Some(region) = region_of(entry) else { return };
        if let Some(mark) = self.marks.remove(&region) {
            self.marks_by_age.remove(&(mark.at, region));
        }
        if let Entry::Mark { since, .. } = entry {
            if *since == 0 {
                *since = sequence;
            }
            self.marks.insert(region, MarkState { since: *since, at: sequence });
            self.marks_by_age.insert((sequence, region));
        }
    }
}

/// Records that entries take, one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Packing {
    count: u64,
    /// Bytes of entries in the last of them.
    used: usize,
}

impl Packing {
    /// With one more entry; a record has room for so many bytes.
    fn with(self, entry: usize, room: usize) -> Self {
        match entry <= self.left(room) {
            true => Self { used: self.used + entry, ..self },
            false => Self { count: self.count + 1, used: entry },
        }
    }

    /// Bytes left in the last record.
    fn left(self, room: usize) -> usize {
        if self.count > 0 { room - self.used } else { 0 }
    }
}

/// How many of these fit in so many bytes.
fn fitting(entries: &[Entry], room: usize) -> usize {
    let mut left = room;
    let fits = |entry: &&Entry| left.checked_sub(entry.bytes()).inspect(|&rest| left = rest).is_some();
    entries.iter().take_while(fits).count()
}

/// Marks in so many bytes of entries.
fn marks_in(bytes: usize) -> usize {
    bytes / MARK_BYTES
}

fn region_of(entry: &Entry) -> Option<Region> {
    match *entry {
        Entry::Mark { region, .. } | Entry::Unmark { region } => Some(region),
        _ => None,
    }
}
