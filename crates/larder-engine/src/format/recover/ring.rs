//! The journal's ring as it is read: where it ends, and what each of its sectors holds.

use super::super::checksum::Salt;
use super::super::data::Written;
use super::super::entry::Entry;
use super::super::finding::{Finding, Findings};
use super::super::journal::reserve;
use super::super::layout::Layout;
use super::super::record::{self, Header, Sector};
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

    /// The sector where the record of this sequence belongs.
    pub fn sector(&mut self, sequence: u64) -> Sector<'_> {
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

    /// The record of this sequence, if it is there.
    pub fn header(&mut self, sequence: u64) -> Option<Header> {
        match self.sector(sequence) {
            Sector::Record(header, _) if header.sequence == sequence => Some(header),
            _ => None,
        }
    }

    /// Find the last record that counts. All up to `newest`, which some page includes, were durable, and so were
    /// those before the superblock's `next`. From there on each must follow its predecessor: the next sequence, and a
    /// session that is no older. A record of an older session lay behind a hole that an earlier recovery stopped at. One of which nothing says that it was durable
    /// counts only if the data that were written with it are there.
    /// All up to `known` were durable, whatever the device says.
    pub fn find_end(
        &mut self,
        newest: u64,
        known: u64,
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
        let first = End { last: start, whole, tail, session_max: session, highest: start, durable: start };
        let mut seen = Findings::default();
        let mut end = self.follow(first, u64::MAX);
        let mut called = self.header(end.last).map_or(0, |header| header.durable);
        end = self.survey(end, &mut called, &mut seen);
        let (durable, last) = (known.max(start).max(called), end.last);
        let mut not_arrived = None;
        // Without what freed them, slots count that did not.
        while let Some((sequence, Written { block, slot, .. })) = self.not_arrived(durable, end.last, volumes)
        {
            not_arrived = Some(Finding::NotArrived { sequence, block, slot });
            end = self.follow(first, sequence - 1);
        }
        if end.last < last {
            seen = Findings::default();
            end = self.survey(end, &mut called, &mut seen);
        }
        not_arrived.into_iter().for_each(|finding| seen.push(finding));
        findings.absorb(seen);
        end
    }

    /// Go on from here as long as each record follows its predecessor, not further than `limit`.
    fn follow(&mut self, mut end: End, limit: u64) -> End {
        while let Some(header) = self.after(end.last)
            && header.session >= end.session_max
            && header.sequence <= limit
        {
            (end.last, end.session_max) = (header.sequence, header.session);
            if end.whole + 1 == end.last || self.skips_holes {
                (end.whole, end.tail) = (end.last, header.tail);
            }
        }
        End { highest: end.last, durable: end.last, ..end }
    }

    /// The first record from `durable` up to `last` of which data are missing, with what is missing.
    ///
    /// A slot that is freed or cleaned after such a record may be in use for other data already, if that was durable: then the record was, too, and its
    /// data are of no use.
    fn not_arrived(&mut self, durable: u64, last: u64, volumes: &VolumeTable) -> Option<(u64, Written)> {
        if self.trusts_data {
            return None;
        }
        let (mut over, mut found) = (BTreeSet::new(), None);
        for sequence in (durable + 1..=last).rev() {
            for entry in self.entries(sequence).into_iter().rev() {
                let (slot, old) = match entry {
                    Entry::Write { slot, old, .. } | Entry::Map { slot, old, .. } => (slot, old),
                    Entry::Free { slot } | Entry::Clean { slot } => (slot, None),
                    Entry::Mark { .. } | Entry::Unmark { .. } => continue,
                };
                let is_over = !over.insert(slot);
                over.extend(old);
                if let (Entry::Write { block, crc, .. }, false) = (entry, is_over) {
                    let written = Written { block, slot, crc };
                    // What nobody can tell of is found wrong later.
                    if written.is_there(self.medium, &self.superblock, volumes) == Some(false) {
                        found = Some((sequence, written));
                    }
                }
            }
        }
        found
    }

    /// The entries of a record, if it is there.
    fn entries(&mut self, sequence: u64) -> Vec<Entry> {
        match self.sector(sequence) {
            Sector::Record(header, entries) if header.sequence == sequence => entries.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The record that follows this one.
    fn after(&mut self, last: u64) -> Option<Header> {
        let reach = if self.skips_holes { 4 } else { 1 };
        (last + 1..=last + reach).find_map(|sequence| self.header(sequence))
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
        let records = self.layout.records();
        let live = end.tail..=end.last;
        let last = end.last;
        for sequence in last + 1..=last + records {
            match self.sector(sequence) {
                Sector::Blank => {}
                // Where a live record belongs: replay tells.
                Sector::Broken if live.contains(&(sequence.saturating_sub(records))) => {}
                Sector::Broken => findings
                    .push(Finding::Sector { sector: sequence % records, at_end: sequence == last + 1 }),
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
