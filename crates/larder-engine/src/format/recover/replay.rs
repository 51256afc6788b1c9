//! Replay: the journal's entries on top of the pages.

use super::super::Medium;
use super::super::entry::{BlockId, Entry, Region};
use super::super::epoch::Epoch;
use super::super::finding::{Finding, Findings};
use super::super::journal::MarkState;
use super::super::page::{PAGE_SLOTS, Word};
use super::super::superblock::Superblock;
use super::pages::{Broken, Slots};
use super::ring::{End, Ring};
use std::collections::BTreeMap;

/// The state while it is put together.
pub(super) struct Replay<'r> {
    superblock: &'r Superblock,
    slots: Slots,
    marks: BTreeMap<Region, MarkState>,
    /// Records are missing, up to this one: there may have been marks in them, and anything else.
    lost_to: Option<u64>,
    findings: &'r mut Findings,
}

impl<'r> Replay<'r> {
    pub fn new(superblock: &'r Superblock, slots: Slots, findings: &'r mut Findings) -> Self {
        Self { superblock, slots, marks: BTreeMap::new(), lost_to: None, findings }
    }

    /// Replay from record `first` to the end, or to the first record that is missing: never past it.
    pub fn run<M: Medium>(&mut self, ring: &mut Ring<'_, M>, first: u64, end: &End) {
        let last = self.collect_marks(ring, first, end);
        for sequence in first..=last {
            if let Some((_, entries)) = ring.record(sequence, end) {
                self.fetch(entries.iter());
                entries.iter().for_each(|entry| self.apply(entry, sequence));
            }
        }
    }

    /// These entries are about to be applied. Their slots lie anywhere in gigabytes: one after the other these accesses would take most of the time of a start; together they
    /// overlap.
    fn fetch(&self, entries: impl Iterator<Item = Entry>) {
        let named = entries.flat_map(|entry| match entry.as_map() {
            Entry::Map { slot, old, .. } => [Some(slot), old],
            Entry::Free { slot } | Entry::Clean { slot } => [Some(slot), None],
            Entry::Write { .. } | Entry::Mark { .. } | Entry::Unmark { .. } => [None, None],
        });
        std::hint::black_box(named.flatten().fold(0, |all, slot| all ^ self.slots.fetch(slot)));
    }

    /// The marks in force at the end, and the last record before a hole.
    fn collect_marks<M: Medium>(&mut self, ring: &mut Ring<'_, M>, first: u64, end: &End) -> u64 {
        let (mut session, skips_holes) = (0, ring.skips_holes);
        for sequence in first..=end.whole {
            match ring.record(sequence, end) {
                // A session that falls is that of a record from behind a hole, in the place of one that is lost.
                Some((header, entries)) if header.session >= session => {
                    session = header.session;
                    entries.iter().for_each(|entry| self.note_mark(entry, sequence));
                }
                _ if skips_holes => {}
                _ => {
                    self.lose_records(sequence, end);
                    return sequence - 1;
                }
            }
        }
        if end.whole < end.durable {
            self.lose_records(end.whole + 1, end);
        } else if end.is_cut {
            self.lose_records(end.last, end);
        }
        end.whole
    }

    fn note_mark(&mut self, entry: Entry, sequence: u64) {
        match entry {
            Entry::Mark { region, since } => {
                self.marks.insert(region, MarkState { since, at: sequence });
            }
            Entry::Unmark { region } => {
                self.marks.remove(&region);
            }
            _ => {}
        }
    }

    /// A record that was durable is gone. If some page needed it, so is what it told.
    fn lose_records(&mut self, sequence: u64, end: &End) {
        let durable = end.durable;
        self.lost_to = Some(durable);
        let needed = self.slots.pages.iter().any(|page| page.state.upto < durable);
        let dirty = needed && self.superblock.may_hold_dirty;
        self.findings.push(Finding::RecordLost { sequence, durable, dirty });
    }

    fn apply(&mut self, entry: Entry, sequence: u64) {
        match entry.as_map() {
            Entry::Map { block, dirty, epoch, slot, crc, old } => {
                self.map((block, dirty, crc), slot, sequence, epoch);
                if let Some(old) = old {
                    self.free(old, sequence, Some(block));
                }
            }
            Entry::Free { slot } => self.free(slot, sequence, None),
            Entry::Clean { slot } => self.clean(slot, sequence),
            Entry::Write { .. } | Entry::Mark { .. } | Entry::Unmark { .. } => {}
        }
    }

    fn map(&mut self, (block, dirty, crc): (BlockId, bool, u32), slot: u32, sequence: u64, epoch: Epoch) {
        let Some((word, is_new)) = self.look(slot, sequence) else { return };
        let trusted = !dirty && self.is_trusted(block, sequence);
        if is_new {
            self.expect(!word.is_used() || word.block() == block, slot, sequence);
            self.set(slot, Word::mapped(block, dirty).trusted(trusted), crc);
            if epoch.is_some() {
                self.slots.epochs.insert(slot, epoch);
            }
        } else if word.is_used() && !word.is_dirty() && word.block() == block {
            self.words_mut(slot, word.trusted(trusted));
        }
    }

    /// `held` is what the entry says was there.
    fn free(&mut self, slot: u32, sequence: u64, held: Option<BlockId>) {
        let Some((word, true)) = self.look(slot, sequence) else { return };
        if word == Word::FREE && held.is_none() {
            self.findings.push(Finding::FreedTwice { sequence, slot });
            return;
        }
        let fits = word.is_used() && held.is_none_or(|block| word.block() == block);
        self.expect(fits || word.is_unknown(), slot, sequence);
        self.set(slot, Word::FREE, 0);
    }

    fn clean(&mut self, slot: u32, sequence: u64) {
        let Some((word, is_new)) = self.look(slot, sequence) else { return };
        if is_new {
            self.expect((word.is_used() && word.is_dirty()) || word.is_unknown(), slot, sequence);
        }
        if word.is_used() && (is_new || !word.is_dirty()) {
            let trusted = self.is_trusted(word.block(), sequence);
            let crc = self.slots.crcs[slot as usize];
            let word = word.clean().trusted(trusted);
            if is_new { self.set(slot, word, crc) } else { self.words_mut(slot, word) }
        }
    }

    /// What a slot holds, and whether its page does not yet include this record.
    fn look(&mut self, slot: u32, sequence: u64) -> Option<(Word, bool)> {
        let Some(&word) = self.slots.words.get(slot as usize) else {
            self.findings.push(Finding::NoSuchSlot { sequence, slot });
            return None;
        };
        Some((Word(word), sequence > self.slots.pages[Slots::page_of(slot)].state.upto))
    }

    fn expect(&mut self, fits: bool, slot: u32, sequence: u64) {
        if !fits {
            self.findings.push(Finding::Misfit { sequence, slot });
        }
    }

    fn set(&mut self, slot: u32, word: Word, crc: u32) {
        self.words_mut(slot, word);
        self.slots.epochs.remove(&slot);
        self.slots.crcs[slot as usize] = crc;
        self.slots.pages[Slots::page_of(slot)].state.behind = true;
    }

    fn words_mut(&mut self, slot: u32, word: Word) {
        let before = Word(std::mem::replace(&mut self.slots.words[slot as usize], word.0));
        if before.is_used() && before.is_dirty() && !(word.is_used() && word.is_dirty()) {
            let volume = usize::from(before.block().volume);
            self.slots.once_dirty[volume / 64] |= 1 << (volume % 64);
        }
    }

    /// True if a block that became clean in this record cannot have been overtaken since by a write past the cache.
    fn is_trusted(&self, block: BlockId, sequence: u64) -> bool {
        let region = Region::of(block, self.superblock.region_blocks);
        self.marks.get(&region).is_none_or(|mark| sequence > mark.since)
    }

    /// Drop what marks cover, and what cannot be dirty any more; say which pages are lost. The last record that is
    /// lost, if any is, comes along.
    pub fn finish(mut self) -> (Slots, BTreeMap<Region, MarkState>, Option<u64>) {
        self.drop_untrusted();
        if !self.superblock.may_hold_dirty {
            self.drop_dirty();
        }
        for number in 0..self.slots.pages.len() {
            self.report_page(number as u32);
        }
        (self.slots, self.marks, self.lost_to)
    }

    fn drop_untrusted(&mut self) {
        // Whoever could not write metadata went past clean blocks without marks.
        let trusts_none = self.lost_to.is_some() || self.superblock.needs_check;
        if self.marks.is_empty() && !trusts_none {
            return;
        }
        for at in 0..self.slots.words.len() {
            let word = Word(self.slots.words[at]);
            if !word.is_used() || word.is_dirty() {
                continue;
            }
            let region = Region::of(word.block(), self.superblock.region_blocks);
            let covered = self.marks.contains_key(&region) && !word.is_trusted();
            if covered || trusts_none {
                self.slots.words[at] = word.dropped().0;
            }
        }
    }

    /// The superblock says that no block is dirty. Where records are lost, the one that cleaned the block was among
    /// them: the backing has newer data. Where none is lost, one of the two is wrong, and nobody knows which.
    fn drop_dirty(&mut self) {
        for (slot, word) in (0..).zip(&mut self.slots.words) {
            let old = Word(*word);
            if old.is_used() && old.is_dirty() {
                let cleaned = self.lost_to.is_some();
                self.findings.push(Finding::NotDirty { block: old.block(), slot, cleaned });
                *word = if cleaned { old.clean().dropped().0 } else { old.dropped().0 };
            }
        }
    }

    fn report_page(&mut self, number: u32) {
        let page = self.slots.pages[number as usize];
        let range = self.superblock.layout.page_slots(number);
        if page.lost {
            let start = number as usize * PAGE_SLOTS;
            let words = &self.slots.words[start..start + range.len()];
            let unknown = words.iter().filter(|&&word| Word(word).is_unknown()).count() as u32;
            let dirty = self.superblock.may_hold_dirty;
            self.findings.push(Finding::PageLost { page: number, slots: range, unknown, dirty });
        } else if let Broken::One(copy) = page.broken {
            self.findings.push(Finding::PageCopy { page: number, copy });
        }
    }
}
