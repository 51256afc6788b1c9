//! Rounds, without devices: what is written, and what is known when its flush has ended.

use super::slots::SlotTable;
use super::versions::Versions;
use super::{Durable, LAZY, Said, Wish, numbered};
use crate::format::{Contents, Epoch, PAGE_BYTES, Piece, Superblock};
use crate::store::Store;

/// What a round has brought about.
pub(super) struct Outcome {
    /// Slots that are free.
    pub freed: Vec<u32>,
    /// Parts whose marks are in force.
    pub marked: Vec<u32>,
}

impl Durable {
    /// Make records of what was pushed, or the draft of one. What is to be written; nothing where there is nothing to do. Pages wait for the
    /// record that they include to be durable, so they go with the next round.
    pub(super) fn begin_round(&mut self, store: &Store) -> Vec<Piece> {
        self.ticket = self.table.issued();
        // Pages, and the superblock of a stop, include whole records.
        let whole = self.stopping || self.full || self.table.is_due(&self.journal);
        let mut pieces = if whole { self.journal.seal() } else { self.journal.draft() };
        if pieces.is_empty() && std::mem::take(&mut self.confirms) {
            pieces = self.journal.confirm();
        }
        pieces.append(&mut self.pages);
        let Self { table, journal, slots, versions, numbers, pages, .. } = self;
        let mut page = vec![0; PAGE_BYTES];
        let contents = |slot| contents(slots, versions, (store, numbers), slot);
        while let Some(write) = table.write_due(journal, contents, &mut page) {
            pages.push(Piece { offset: write.offset, bytes: page.clone() });
        }
        if self.full && pages.is_empty() && pieces.is_empty() {
            // The ring has room again only when its tail moves.
            self.make_page(store);
        }
        pieces
    }

    /// Make the page that is furthest behind. False if none is.
    pub(super) fn make_page(&mut self, store: &Store) -> bool {
        let Self { table, journal, slots, versions, numbers, pages, .. } = self;
        let mut bytes = vec![0; PAGE_BYTES];
        let contents = |slot| contents(slots, versions, (store, numbers), slot);
        let write = table.write_next(journal, contents, &mut bytes);
        write.map(|write| pages.push(Piece { offset: write.offset, bytes })).is_some()
    }

    /// The flush begins: it covers all data of the cache that has been written.
    pub(super) fn flush_begins(&mut self) {
        self.unflushed.iter().for_each(|wish| self.slots.cover(wish.slot));
        self.flushing.append(&mut self.unflushed);
    }

    /// The flush has ended: what was written when it began is durable.
    pub(super) fn flush_ended(&mut self) {
        self.ripe.extend(self.flushing.drain(..));
    }

    /// The round's flush has ended.
    pub(super) fn end_round(&mut self, store: &Store) -> Outcome {
        self.journal.flushed(self.journal.sealed());
        self.table.flushed(self.ticket);
        self.journal.checkpointed(self.table.tail());
        self.flush_ended();
        self.news.round_ended();
        let Said { mut frees, marks, mut firm, mut epochless, .. } = std::mem::take(&mut self.said);
        firm.drain(..).for_each(|slot| self.slots.firm(slot));
        epochless.drain(..).for_each(|slot| self.versions.remove(slot));
        let mut freed = Vec::with_capacity(frees.len());
        store.expect_slots(frees.iter().copied());
        for slot in frees.drain(..) {
            self.versions.remove(slot);
            self.limbo.remove(self.block(store, slot), slot);
            if self.slots.freed(slot) {
                freed.push(slot);
            }
        }
        // The next round uses their memory again.
        self.said = Said { frees, firm, epochless, ..Said::default() };
        let marked = marks.into_iter().flat_map(|region| self.regions.marked(region)).collect();
        self.want_if_much();
        Outcome { freed, marked }
    }

    /// Ask for rounds where so much has gathered that they are worth it.
    pub(super) fn want_if_much(&mut self) {
        let waiting = [self.ripe.len(), self.frees.len(), self.news.waiting()];
        if self.full || waiting.iter().any(|&waiting| waiting >= LAZY) {
            self.want(1);
        } else if self.unflushed.len() >= LAZY {
            self.want(2);
        }
    }

    /// A block is to be mapped once its data is durable.
    pub(super) fn wish(&mut self, wish: Wish) {
        self.unflushed.push(wish);
        self.want_if_much();
    }

    /// The next superblock: it goes to the copy that does not hold the newest durable one.
    pub(super) fn successor(&mut self) -> Superblock {
        let above = self.generation.max(self.superblock.generation) + 1;
        let generation = above + u64::from((above - self.superblock.generation).is_multiple_of(2));
        self.generation = generation;
        Superblock { generation, ..self.superblock.clone() }
    }
}

/// What a page says of a slot, but for the epoch of the page. The checksum of a stale slot may be newer than the journal's: its region is marked, so nobody trusts it
/// before a `Free`.
#[inline(always)]
fn contents(
    slots: &SlotTable,
    versions: &Versions,
    (store, numbers): (&Store, &[u16]),
    slot: u32,
) -> Option<Contents> {
    if !slots.is_used(slot) {
        return None;
    }
    let dirty = slots.is_dirty(slot);
    let epoch = if dirty { versions.epoch(slot) } else { Epoch::NONE };
    let (block, crc) = store.block_and_note(slot);
    let block = block.map_or_else(|left| left, |key| numbered(numbers, key));
    Some(Contents { block, dirty, epoch, crc })
}

/// A superblock as bytes for its place.
pub(super) fn superblock_piece(superblock: &Superblock) -> Piece {
    Piece { offset: superblock.offset(), bytes: superblock.encode() }
}
