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

/// What is read for a draft. The journal begins at a multiple of this, and there is as much behind its end.
const AROUND: usize = 4096;

/// A place in the journal: so many bytes of the entries of this record.
type At = (u64, usize);

/// How much of the journal may count: all records before this place, and of its record no more, by no older session. (That began where no older one had that record.)
#[derive(Clone, Copy)]
struct Limit {
    at: At,
    session: u64,
}

/// Data that are missing.
struct Missing {
    /// The entry that tells of them.
    limit: Limit,
    /// Bytes of entries of its record that were durable.
    before: usize,
    written: Written,
}

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

    /// Where the record of this sequence lies, and drafts of it: in the places of which records.
    pub fn places(&mut self, sequence: u64) -> Vec<u64> {
        let layout = self.layout;
        let places = (0..=DRAFTS).map(|draft| place(&layout, sequence, draft));
        places.filter(|&at| self.draft(sequence, at).is_some()).collect()
    }

    /// What there is of the record of this sequence, of a session that is no older: of the newest of these the most, but for what a start has put in its place.
    fn fullest(&mut self, sequence: u64, session: u64, limit: Limit) -> Option<(Header, usize)> {
        let layout = self.layout;
        let drafts = (1..=DRAFTS).map(|draft| place(&layout, sequence, draft));
        let mut versions: Vec<_> = drafts.filter_map(|at| self.draft(sequence, at)).collect();
        versions.extend(self.version(sequence, sequence));
        let counts = |(header, bytes): &(Header, usize)| {
            let fits = sequence < limit.at.0 || header.session >= limit.session;
            header.session >= session && fits && (sequence, *bytes) <= limit.at
        };
        let rank = |&(header, bytes): &(Header, usize)| (header.session, header.draft == PUT, bytes);
        versions.into_iter().filter(counts).max_by_key(rank)
    }

    /// A draft of this record. It lies far from what is read ahead: that stays.
    fn draft(&mut self, sequence: u64, at: u64) -> Option<(Header, usize)> {
        let (layout, bytes) = (self.layout, self.layout.sector_bytes());
        // With what is around it: some devices read no less.
        let (offset, mut page) = (layout.record_offset(at), [0; AROUND]);
        let before = offset as usize % AROUND;
        read_units(self.medium, offset - before as u64, &mut page, bytes);
        match record::inspect(&page[before..before + bytes], self.salt, &layout, at) {
            Sector::Record(header, entries) if (header.sequence, header.place(&layout)) == (sequence, at) => {
                Some((header, entries.bytes()))
            }
            _ => None,
        }
    }

    /// Find the last record that counts. All up to `newest`, which some page includes, were durable, and so were
    /// those before the superblock's `next`. From there on each must follow its predecessor: the next sequence, and a
    /// session that is no older. A record of an older session lay behind a hole that an earlier recovery stopped at. One of which nothing says that it was durable
    /// counts only if the data that were written with it are there.
    /// All up to `known` were durable, whatever the device says, and so many bytes of the entries of the next one.
    pub fn find_end(
        &mut self,
        newest: u64,
        known: At,
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
        let there = self.version(start, start);
        let first = End {
            last: start,
            at: start,
            bytes: there.map_or(0, |(_, bytes)| bytes),
            follower: there.map_or(session, |(header, _)| session.max(follower(&header))),
            is_cut: false,
            whole,
            tail,
            session_max: session,
            highest: start,
            durable: start,
        };
        let mut seen = Findings::default();
        let mut end = self.follow(first, Limit { at: (u64::MAX, 0), session: 0 });
        let mut called = self.record(end.last, &end).map_or(0, |(header, _)| header.durable);
        end = self.survey(end, &mut called, &mut seen);
        let (next, part) = (self.superblock.next, self.superblock.part as usize);
        let mut proven = known.max((next - 1, part)).max((start.max(called), 0));
        let mut told = if part > 0 { (next, part) } else { (0, 0) };
        let (last, mut not_arrived) = ((end.last, end.bytes), None);
        // Without what freed them, slots count that did not.
        while let Some(Missing { limit, before, written }) = self.not_arrived(proven, &end, volumes) {
            let Written { block, slot, .. } = written;
            not_arrived = Some(Finding::NotArrived { sequence: limit.at.0, block, slot });
            if before > 0 {
                told = told.max((limit.at.0, before));
                proven = (limit.at.0 - 1, before);
            }
            end = self.follow(first, limit);
        }
        if (end.last, end.bytes) < last {
            seen = Findings::default();
            end = self.survey(end, &mut called, &mut seen);
        }
        end.durable = end.durable.max(told.0);
        // It was in its place, or another draft of it was durable.
        end.is_cut = end.is_draft() && proven.0 >= end.last || end.last == told.0 && end.bytes < told.1;
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
            end.follower = follower(&header);
            (end.at, end.bytes) = (header.place(&self.layout), bytes);
            if end.whole + 1 == end.last || self.skips_holes {
                (end.whole, end.tail) = (end.last, header.tail);
            }
        }
        End { highest: end.last, durable: end.last, ..end }
    }

    /// The first entry behind what is `proven` to have been durable of which the data are missing. Proven are all records up to the first number, and so many bytes of the entries of the
    /// next one.
    ///
    /// A slot that is freed or cleaned after such a record may be in use for other data already, if that was durable: then the record was, too, and its
    /// data are of no use.
    fn not_arrived(&mut self, proven: At, end: &End, volumes: &VolumeTable) -> Option<Missing> {
        if self.trusts_data {
            return None;
        }
        let (mut over, mut found) = (BTreeSet::new(), None);
        for sequence in (proven.0 + 1..=end.last).rev() {
            let Some((header, entries)) = self.record(sequence, end) else { continue };
            let (entries, before): (Vec<_>, _) = (entries.places().collect(), usize::from(header.before));
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
                        let limit = Limit { at: (sequence, start), session: header.session };
                        found = Some(Missing { limit, before, written });
                    }
                }
            }
        }
        found
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

/// The oldest session of which a record may follow this one.
fn follower(header: &Header) -> u64 {
    header.session + u64::from(header.draft == PUT)
}
