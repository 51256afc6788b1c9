//! The journal's ring as it is read: where it ends, and what each of its sectors holds.

use super::super::checksum::Salt;
use super::super::data::Written;
use super::super::entry::Entry;
use super::super::finding::{Finding, Findings};
use super::super::journal::{Piece, reserve};
use super::super::layout::Layout;
use super::super::record::{self, DRAFTS, Entries, Header, PUT, Sector, place};
use super::super::superblock::Superblock;
use super::super::volumes::VolumeTable;
use super::super::{Medium, STEP_BYTES};
use super::read_units;
use std::collections::BTreeSet;

/// Records that replay may need at most for the next session to have room.
pub(super) fn usable(layout: &Layout) -> u64 {
    layout.records() - 2 * reserve(layout)
}

/// A reader of the ring, which reads ahead.
pub(super) struct Ring<'m, M> {
    medium: &'m mut M,
    layout: Layout,
    salt: Salt,
    superblock: Superblock,
    window: Vec<u8>,
    /// The sectors in the window.
    held: std::ops::Range<u64>,
    /// Planted bugs.
    pub skips_holes: bool,
    pub trusts_data: bool,
}

/// The end of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The last record that counts; 0 if there never was one.
    pub last: u64,
    /// Where that lies: in the place of this record. That is another one, if but a draft of it is there.
    pub at: u64,
    /// Bytes of its entries.
    pub bytes: usize,
    /// What follows has to be of this session, or a later one.
    follower: u64,
    /// It had more of them that were durable, which are lost.
    pub is_cut: bool,
    /// The last record that is there: all behind it are lost if this is before `last`.
    pub whole: u64,
    /// Where replay begins: the record `whole`, or the superblock, says so.
    pub tail: u64,
    /// The highest session of any whole record.
    pub session_max: u64,
    /// The highest sequence of any whole record, and of any that a page includes.
    pub highest: u64,
    /// The last record that something says was durable. If it is higher than `last`, records are lost.
    pub durable: u64,
}

/// How much of the journal may count: all records before this one, and of this one what has no more bytes of entries.
type Limit = (u64, usize);

impl End {
    /// True if the last record is not in its place.
    pub fn is_draft(&self) -> bool {
        self.at != self.last
    }
}

impl<'m, M: Medium> Ring<'m, M> {
    pub fn new(medium: &'m mut M, superblock: &Superblock) -> Self {
        let (layout, salt) = (superblock.layout, superblock.salt());
        Self {
            medium,
            layout,
            salt,
            superblock: superblock.clone(),
            window: Vec::new(),
            held: 0..0,
            skips_holes: false,
            trusts_data: false,
        }
    }

    /// A record up to the end, if it is there.
    pub fn record(&mut self, sequence: u64, end: &End) -> Option<(Header, Entries<'_>)> {
        let (layout, at) = (self.layout, if sequence == end.last { end.at } else { sequence });
        match self.sector(at) {
            Sector::Record(header, entries) if (header.sequence, header.place(&layout)) == (sequence, at) => {
                Some((header, entries))
            }
            _ => None,
        }
    }

    /// The sector where the record of this sequence belongs.
    fn sector(&mut self, sequence: u64) -> Sector<'_> {
        let (at, bytes) = (sequence % self.layout.records(), self.layout.sector_bytes());
        if !self.held.contains(&at) {
            let step = (STEP_BYTES / bytes) as u64;
            let start = at - at % step;
            let count = (self.layout.records() - start).min(step);
            self.window.resize(count as usize * bytes, 0);
            read_units(self.medium, self.layout.record_offset(start), &mut self.window, bytes);
            self.held = start..start + count;
        }
        let start = (at - self.held.start) as usize * bytes;
        record::inspect(&self.window[start..start + bytes], self.salt, &self.layout, sequence)
    }

    /// The last record for its place, if there is but a draft of it.
    pub fn for_its_place(&mut self, end: &End) -> Option<Piece> {
        let (layout, salt) = (self.layout, self.salt);
        let (header, entries) = self.record(end.last, end).filter(|_| end.is_draft())?;
        let mut bytes = vec![0; layout.sector_bytes()];
        Header { draft: PUT, ..header }.encode(&mut bytes, salt, &entries.iter().collect::<Vec<_>>());
        Some(Piece { offset: layout.record_offset(end.last), bytes })
    }

    /// The record of this sequence, if it is in its place.
    fn header(&mut self, sequence: u64) -> Option<Header> {
        self.version(sequence, sequence).map(|(header, _)| header)
    }

    /// The record of this sequence, or a draft of it, that lies in the place of another; with its bytes of entries.
    fn version(&mut self, sequence: u64, at: u64) -> Option<(Header, usize)> {
        let layout = self.layout;
        match self.sector(at) {
            Sector::Record(header, entries) if (header.sequence, header.place(&layout)) == (sequence, at) => {
                Some((header, entries.bytes()))
            }
            _ => None,
        }
    }

    /// What there is of the record of this sequence, of a session that is no older: it, or the draft that has most of it.
    fn fullest(&mut self, sequence: u64, session: u64, limit: Limit) -> Option<(Header, usize)> {
        let layout = self.layout;
        let counts =
            |(header, bytes): &(Header, usize)| header.session >= session && (sequence, *bytes) <= limit;
        // Drafts lie elsewhere: they are looked at only where they are needed.
        self.version(sequence, sequence).filter(counts).or_else(|| {
            let places = (1..=DRAFTS).map(|draft| place(&layout, sequence, draft));
            let drafts = places.filter_map(|at| self.version(sequence, at));
            drafts.filter(counts).max_by_key(|&(_, bytes)| bytes)
        })
    }

    /// Find the last record that counts. All up to `newest`, which some page includes, were durable, and so were
    /// those before the superblock's `next`. From there on each must follow its predecessor: the next sequence, and a
    /// session that is no older. A record of an older session lay behind a hole that an earlier recovery stopped at. One of which nothing says that it was durable
    /// counts only if the data that were written with it are there.
    /// All up to `known` were durable, whatever the device says, and so many bytes of the entries of the next one.
    pub fn find_end(
        &mut self,
        newest: u64,
        known: Limit,
        volumes: &VolumeTable,
        findings: &mut Findings,
    ) -> End {
        let superblock = (self.superblock.session, self.superblock.tail);
        let start = newest.max(self.superblock.next - 1);
        let first = match self.header(start) {
            _ if start < self.superblock.next => Some((start, superblock.0, superblock.1)),
            Some(header) => Some((start, header.session.max(superblock.0), header.tail)),
            None => self
                .last_before(start)
                .map(|header| (header.sequence, header.session.max(superblock.0), header.tail)),
        };
        let (mut whole, session, tail) = first.unwrap_or((start, superblock.0, start + 1));
        if first.is_none() {
            // Nothing at all is left of it.
            whole = start.saturating_sub(1);
        }
        let first = End {
            last: start,
            at: start,
            bytes: self.version(start, start).map_or(0, |(_, bytes)| bytes),
            follower: session,
            is_cut: false,
            whole,
            tail,
            session_max: session,
            highest: start,
            durable: start,
        };
        let mut seen = Findings::default();
        let mut end = self.follow(first, (u64::MAX, 0));
        let mut called = self.record(end.last, &end).map_or(0, |(header, _)| header.durable);
        end = self.survey(end, &mut called, &mut seen);
        let (mut proven, last) = ((known.0.max(start).max(called), known.1), (end.last, end.bytes));
        let (mut told, mut not_arrived) = ((0, 0), None);
        // Without what freed them, slots count that did not.
        while let Some((limit, before, Written { block, slot, .. })) = self.not_arrived(proven, &end, volumes)
        {
            not_arrived = Some(Finding::NotArrived { sequence: limit.0, block, slot });
            if before > 0 {
                told = (limit.0, before);
                proven = (limit.0 - 1, before);
            }
            end = self.follow(first, limit);
        }
        if (end.last, end.bytes) < last {
            seen = Findings::default();
            end = self.survey(end, &mut called, &mut seen);
        }
        end.durable = end.durable.max(told.0);
        // It was in its place, or another draft of it was durable.
        end.is_cut = end.is_draft() && (proven.0 >= end.last || (end.last, end.bytes) < told);
        not_arrived.into_iter().for_each(|finding| seen.push(finding));
        findings.absorb(seen);
        end
    }

    /// Go on from here as long as each record follows its predecessor, not further than `limit`. Nothing follows a draft: what was made after it was made after the record was in its place,
    /// or with it.
    fn follow(&mut self, mut end: End, limit: Limit) -> End {
        while !end.is_draft()
            && let Some((header, bytes)) = self.after(&end, limit)
        {
            (end.last, end.session_max) = (header.sequence, header.session);
            end.follower = header.session + u64::from(header.draft == PUT);
            (end.at, end.bytes) = (header.place(&self.layout), bytes);
            if end.whole + 1 == end.last || self.skips_holes {
                (end.whole, end.tail) = (end.last, header.tail);
            }
        }
        End { highest: end.last, durable: end.last, ..end }
    }

    /// The first entry behind what is `proven` to have been durable of which the data are missing: where it is, how many bytes of the record's entries were durable, and what is missing. Proven
    /// are all records up to the first number, and so many bytes of the entries of the next one.
    ///
    /// A slot that is freed or cleaned after such a record may be in use for other data already, if that was durable: then the record was, too, and its
    /// data are of no use.
    fn not_arrived(
        &mut self,
        proven: Limit,
        end: &End,
        volumes: &VolumeTable,
    ) -> Option<(Limit, usize, Written)> {
        if self.trusts_data {
            return None;
        }
        let (mut over, mut found) = (BTreeSet::new(), None);
        for sequence in (proven.0 + 1..=end.last).rev() {
            let (entries, before) = self.entries(sequence, end);
            let before = if sequence == proven.0 + 1 { before.max(proven.1) } else { before };
            for (entry, start) in entries.into_iter().rev() {
                let (slot, old) = match entry {
                    Entry::Write { slot, old, .. } | Entry::Map { slot, old, .. } => (slot, old),
                    Entry::Free { slot } | Entry::Clean { slot } => (slot, None),
                    Entry::Mark { .. } | Entry::Unmark { .. } => continue,
                };
                let is_over = !over.insert(slot);
                over.extend(old);
                if let (Entry::Write { block, crc, .. }, false) = (entry, is_over || start < before) {
                    let written = Written { block, slot, crc };
                    // What nobody can tell of is found wrong later.
                    if written.is_there(self.medium, &self.superblock, volumes) == Some(false) {
                        found = Some(((sequence, start), before, written));
                    }
                }
            }
        }
        found
    }

    /// The entries of a record, if it is there, with the bytes before each; and how many of these were durable when it was made.
    fn entries(&mut self, sequence: u64, end: &End) -> (Vec<(Entry, usize)>, usize) {
        let found = self.record(sequence, end);
        found.map_or((Vec::new(), 0), |(header, entries)| (entries.places().collect(), header.before.into()))
    }

    /// The record that follows.
    fn after(&mut self, end: &End, limit: Limit) -> Option<(Header, usize)> {
        let reach = if self.skips_holes { 4 } else { 1 };
        let (last, session) = (end.last, end.follower);
        (last + 1..=last + reach).find_map(|sequence| self.fullest(sequence, session, limit))
    }

    /// The last whole record before a lost one.
    fn last_before(&mut self, lost: u64) -> Option<Header> {
        let first = lost.saturating_sub(self.layout.records()) + 1;
        (first..lost).rev().find_map(|sequence| self.header(sequence))
    }

    /// Where damage makes more of the past of use than the tail says: the first record from which all are there up to
    /// the tail. Not so far back that the next session would have no room.
    pub fn reach_back(&mut self, end: &End) -> u64 {
        let least = end.whole.saturating_sub(usable(&self.layout)) + 1;
        let mut first = end.tail.min(end.whole + 1);
        let mut session = self.header(first).map_or(u64::MAX, |header| header.session);
        while first > least {
            let Some(header) = self.header(first - 1).filter(|header| header.session <= session) else {
                break;
            };
            (first, session) = (first - 1, header.session);
        }
        first
    }

    /// Look at all that is not replayed: what lies behind the end may say that there was more, and which record was durable (`called`).
    fn survey(&mut self, mut end: End, called: &mut u64, findings: &mut Findings) -> End {
        let layout = self.layout;
        let (records, last) = (layout.records(), end.last);
        // In the place of a record of which there is but a draft nothing is missed.
        let live = end.tail..last + u64::from(!end.is_draft());
        for sequence in last + 1..=last + records {
            match self.sector(sequence) {
                Sector::Blank => {}
                // Where a live record belongs: replay tells.
                Sector::Broken if live.contains(&(sequence.saturating_sub(records))) => {}
                Sector::Broken => {
                    // The last record, if there is but a draft of it, or the next one, or drafts of them.
                    let drafts =
                        (1..=DRAFTS).flat_map(|draft| [last, last + 1].map(|of| place(&layout, of, draft)));
                    let at_end = sequence == last + 1
                        || sequence == last + records
                        || drafts.into_iter().any(|at| at == sequence);
                    findings.push(Finding::Sector { sector: sequence % records, at_end });
                }
                Sector::Record(header, _) => {
                    end.session_max = end.session_max.max(header.session);
                    end.highest = end.highest.max(header.sequence);
                    if header.sequence > last {
                        *called = header.durable.max(*called);
                        end.durable = end.durable.max(header.durable);
                    }
                }
            }
        }
        end
    }
}
