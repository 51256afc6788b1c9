//! The slot table as its pages have it, before the journal is looked at.

use super::super::epoch::Epoch;
use super::super::page::{self, Copy, PAGE_BYTES, PAGE_SLOTS, Word};
use super::super::superblock::Superblock;
use super::super::{Medium, SESSION_RECORDS, STEP_BYTES};
use super::{PageState, read_units};
use std::collections::BTreeMap;

/// A page as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub state: PageState,
    /// The copy that is damaged, or both.
    pub broken: Broken,
    /// Nothing is known of its slots but what the journal tells.
    pub lost: bool,
}

/// Copies of a page that are torn or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    None,
    One(u8),
    Both,
}

/// What the slots hold.
pub(super) struct Slots {
    pub words: Vec<u64>,
    pub crcs: Vec<u32>,
    /// Of the slots whose blocks have one.
    pub epochs: BTreeMap<u32, Epoch>,
    /// The volumes of which blocks were dirty before replay, or during it, and ceased to be so: a bit for each number.
    pub once_dirty: Vec<u64>,
    pub pages: Vec<Page>,
}

impl Slots {
    /// The page that a slot is on.
    pub fn page_of(slot: u32) -> usize {
        slot as usize / PAGE_SLOTS
    }

    /// Some bits of all that is known of a slot: to have it at hand.
    pub fn fetch(&self, slot: u32) -> u64 {
        let word = self.words.get(slot as usize).copied().unwrap_or_default();
        let crc = self.crcs.get(slot as usize).copied().unwrap_or_default();
        let page = self.pages.get(Self::page_of(slot)).map_or(0, |page| page.state.upto);
        word ^ u64::from(crc) ^ page
    }

    /// The last record that all pages include.
    pub fn least_upto(&self) -> u64 {
        self.pages.iter().map(|page| page.state.upto).min().unwrap_or(0)
    }

    /// True if some page needs records from before the tail.
    pub fn are_short(&self, tail: u64) -> bool {
        self.pages.iter().any(|page| page.lost || page.state.upto + 1 < tail)
    }

    /// Replay begins with record `first`. A page that does not reach up to it is lost: nothing tells what happened to
    /// its slots in between.
    pub fn lose_stale(&mut self, first: u64) {
        let (words, crcs) = (self.words.chunks_mut(PAGE_SLOTS), self.crcs.chunks_mut(PAGE_SLOTS));
        let starts = (0..).step_by(PAGE_SLOTS);
        for (page, (start, (words, crcs))) in self.pages.iter_mut().zip(starts.zip(words.zip(crcs))) {
            if page.lost || page.state.upto + 1 < first {
                page.lost = true;
                page.state.upto = first - 1;
                page.state.behind = true;
                self.epochs.retain(|&slot, _| !(start..start + PAGE_SLOTS as u32).contains(&slot));
                words.fill(Word::UNKNOWN.0);
                crcs.fill(0);
            }
        }
    }
}

/// Read both copies of all pages, and keep the newer one of each.
pub(super) fn read(medium: &mut impl Medium, superblock: &Superblock) -> Slots {
    let layout = superblock.layout;
    let slots = layout.slots() as usize;
    let mut found = Slots {
        words: Vec::with_capacity(slots),
        crcs: Vec::with_capacity(slots),
        epochs: BTreeMap::new(),
        once_dirty: vec![0; (u16::MAX as usize + 1) / 64],
        pages: Vec::with_capacity(layout.pages() as usize),
    };
    let step = (STEP_BYTES / PAGE_BYTES).min(layout.pages() as usize);
    let mut buffers = [vec![0; step * PAGE_BYTES], vec![0; step * PAGE_BYTES]];
    for first in (0..layout.pages()).step_by(step) {
        let count = ((layout.pages() - first) as usize).min(step);
        for (copy, buffer) in (0..).zip(&mut buffers) {
            read_units(
                medium,
                layout.page_offset(first, copy),
                &mut buffer[..count * PAGE_BYTES],
                PAGE_BYTES,
            );
        }
        for (page, at) in (first..).zip((0..count * PAGE_BYTES).step_by(PAGE_BYTES)) {
            let copies = [&buffers[0][at..at + PAGE_BYTES], &buffers[1][at..at + PAGE_BYTES]];
            take(&mut found, copies, superblock, page);
        }
    }
    found
}

/// Add a page: its newer copy.
fn take(found: &mut Slots, copies: [&[u8]; 2], superblock: &Superblock, number: u32) {
    let salt = superblock.salt();
    let looked_at = [0u8, 1].map(|copy| match page::inspect(copies[usize::from(copy)], salt, number, copy) {
        // Of a repair that was cut short: no session can have made it.
        Copy::Upto(upto) if upto >= superblock.next - 1 + SESSION_RECORDS => Copy::Broken,
        looked_at => looked_at,
    });
    let (upto, copy, broken) = match looked_at {
        [Copy::Upto(a), Copy::Upto(b)] => (a.max(b), u8::from(b >= a), Broken::None),
        [Copy::Upto(a), Copy::Broken] => (a, 0, Broken::One(1)),
        [Copy::Broken, Copy::Upto(b)] => (b, 1, Broken::One(0)),
        [Copy::Broken, Copy::Broken] => (0, 1, Broken::Both),
    };
    let lost = broken == Broken::Both;
    let state = PageState { upto, copy, behind: broken != Broken::None };
    found.pages.push(Page { state, broken, lost });
    let slots = superblock.layout.page_slots(number).len();
    for stored in page::slots(copies[usize::from(copy)]).take(slots) {
        if stored.epoch().is_some() && !lost {
            // There are fewer slots than 2^32.
            found.epochs.insert(found.words.len() as u32, stored.epoch());
        }
        found.words.push(if lost { Word::UNKNOWN.0 } else { stored.word().0 });
        found.crcs.push(if lost { 0 } else { stored.crc });
    }
}
