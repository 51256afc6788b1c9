//! The slot table's writer: which page to write next, so that the journal's tail moves on.
//!
//! Pages are written in turn, the one that is furthest behind first, and all of them once while 13/16 of the ring are
//! filled. Each is written to the copy that does not hold its newest durable state, so a torn page destroys nothing
//! that is needed. That every page is rewritten, even one of which nothing changed, is what lets recovery tell a page
//! whose newest copy has rotted from one whose newest copy was being written: the older copy is then before the tail,
//! or it is not.

use super::checksum::Salt;
use super::journal::{JournalWriter, reserve};
use super::layout::Layout;
use super::page::{self, Contents};
use super::recover::PageState;
use std::collections::VecDeque;

/// Counts pages handed out. A flush makes durable all up to the last one that was *written* when it began: its ticket
/// is for [`TableWriter::flushed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// A page to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWrite {
    /// Where, in bytes from the start of the device.
    pub offset: u64,
    /// The page must not be written before this record is durable: it would tell of changes that a crash could still
    /// take back.
    pub after: u64,
    /// Its turn. Pages are written in this order.
    pub ticket: Ticket,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    number: u32,
    /// What it durably includes, and in which copy.
    state: PageState,
}

/// The slot table of one session.
#[derive(Debug)]
pub struct TableWriter {
    layout: Layout,
    salt: Salt,
    /// The one that is furthest behind first.
    waiting: VecDeque<Page>,
    /// Handed out, but not known to be durable; with what is in the new copy.
    in_flight: VecDeque<(Page, u64, Ticket)>,
    issued: Ticket,
    /// Records made that pages are still to be written for, times pages.
    credit: u64,
    /// The last record that was counted.
    counted: u64,
}

impl TableWriter {
    /// Go on after recovery, with all pages in order of their number.
    pub(super) fn new(layout: Layout, salt: Salt, pages: &[PageState], sealed: u64) -> Self {
        let mut waiting: Vec<_> = (0..).zip(pages).map(|(number, &state)| Page { number, state }).collect();
        waiting.sort_by_key(|page| page.state.upto);
        Self {
            layout,
            salt,
            waiting: waiting.into(),
            in_flight: VecDeque::new(),
            issued: Ticket::default(),
            credit: 0,
            counted: sealed,
        }
    }

    /// True if a page is due. While there is a draft of a record ([`JournalWriter::has_draft`]) none can be made.
    pub fn is_due(&self, journal: &JournalWriter) -> bool {
        let Some(first) = self.waiting.front() else { return false };
        let (sealed, span) = (journal.sealed(), self.span());
        self.credit_at(sealed) >= span || sealed.saturating_sub(first.state.upto) >= span
    }

    fn credit_at(&self, sealed: u64) -> u64 {
        let pages = u64::from(self.layout.pages());
        self.credit.saturating_add((sealed - self.counted).saturating_mul(pages))
    }

    /// Write the next page into `into` (4 KiB) if one is due. `slots` tells what each slot holds after all entries
    /// pushed so far, which must be in records: call it between [`JournalWriter::seal`] and the next push.
    pub fn write_due(
        &mut self,
        journal: &JournalWriter,
        slots: impl FnMut(u32) -> Option<Contents>,
        into: &mut [u8],
    ) -> Option<PageWrite> {
        if !self.is_due(journal) {
            return None;
        }
        let sealed = journal.sealed();
        let write = self.write_next(journal, slots, into)?;
        self.credit = self.credit_at(sealed).saturating_sub(self.span());
        self.counted = sealed;
        Some(write)
    }

    /// Write the page that is furthest behind, due or not, until none is behind: for a stop.
    pub fn write_next(
        &mut self,
        journal: &JournalWriter,
        slots: impl FnMut(u32) -> Option<Contents>,
        into: &mut [u8],
    ) -> Option<PageWrite> {
        let upto = journal.sealed();
        if !journal.is_sealed() || journal.has_draft() {
            return None;
        }
        let page = self.waiting.pop_front_if(|page| page.state.upto < upto)?;
        let copy = 1 - page.state.copy;
        // By value: called through a reference it is not inlined, which is felt in every write.
        let slots = self.layout.page_slots(page.number).map(slots);
        page::encode(into, self.salt, (page.number, copy), upto, slots);
        self.issued.0 += 1;
        self.in_flight.push_back((page, upto, self.issued));
        Some(PageWrite {
            offset: self.layout.page_offset(page.number, copy),
            after: upto,
            ticket: self.issued,
        })
    }

    /// The last page handed out. Only where that page has been written is this the ticket of a flush that begins now;
    /// else it is the [`PageWrite::ticket`] of the last one that has been.
    pub fn issued(&self) -> Ticket {
        self.issued
    }

    /// A flush ended that began when every page up to this ticket had been written to the device.
    pub fn flushed(&mut self, through: Ticket) {
        while let Some((page, upto, _)) = self.in_flight.pop_front_if(|written| written.2 <= through) {
            let state = PageState { upto, copy: 1 - page.state.copy, behind: false };
            self.waiting.push_back(Page { state, ..page });
        }
    }

    /// Every page durably includes all records before this one: for [`JournalWriter::checkpointed`].
    pub fn tail(&self) -> u64 {
        let first = self.in_flight.front().map(|written| &written.0).or(self.waiting.front());
        first.map_or(1, |page| page.state.upto + 1)
    }

    /// Records in which all pages are written once: all but the journal's reserve, and as much again twice for pages
    /// on their way.
    fn span(&self) -> u64 {
        self.layout.records() - 3 * reserve(&self.layout)
    }
}
