//! What the journal says of each slot: a byte of flags for each. The rest of what is known of a slot lies with its entry ([`Store`]), or where its entry was: the block, and, as
//! the slot's note, the checksum of what it holds.
//!
//! The journal's view is not the cache's: a block that was filled just now is cached and not yet mapped; one that was
//! evicted is mapped until its `Free` is durable, and its slot must not be used before. But a slot never has another block than the one that the journal knows it by: it
//! gets an entry when the journal says nothing of it any more ([`SlotTable::enter`]).
//!
//! A dirty slot goes through three states: *waiting* (what is to be said of it may still change), *used* (pushed: a guest's flush may count on it), and *firm*
//! (durable: the cleaner may write it back). While it waits its note is the number of its news, which have the checksum meanwhile.

use crate::store::Store;

/// The journal maps the block to the slot, durably or not.
const USED: u8 = 1;
/// The data was overwritten since.
const STALE: u8 = 2;
/// The checksum is that of the slot's data.
const SUMMED: u8 = 4;
/// A `Free` was pushed, and is not durable.
const FREEING: u8 = 8;
/// Nothing is cached here: the slot is free once the journal durably says so.
const LOOSE: u8 = 16;
/// The backing does not have the data. With `USED` the journal maps it so.
const DIRTY: u8 = 32;
/// With `DIRTY`: the mapping is durable. With `FREEING` alone: it was dirty.
const FIRM: u8 = 64;
/// No flush of the device has begun since the slot was written.
const YOUNG: u8 = 128;

/// What becomes of a slot that no entry has any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// Free now: the journal does not know it.
    Now,
    /// A `Free` has to be pushed.
    Push,
    /// A `Free` was pushed already.
    Wait,
    /// The journal maps it dirty, or will: another `Map` names it, or a `Free` comes when the backing has newer data.
    Owed,
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot(u8);

impl Slot {
    #[inline]
    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// Take these flags away, and put those on.
    #[inline]
    fn change(&mut self, off: u8, on: u8) {
        self.0 = self.0 & !off | on;
    }
}

/// Where the checksum of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// There is none: the slot is being written, or has nothing.
    None,
    /// It is this.
    Here(u32),
    /// In the news of this number.
    News(u32),
}

/// All slots.
#[derive(Debug)]
pub(crate) struct SlotTable {
    slots: Vec<Slot>,
}

impl SlotTable {
    pub fn new(slots: u32) -> Self {
        Self { slots: vec![Slot::default(); slots as usize] }
    }

    /// What recovery found. The slot was left with its block ([`Store::leave`]).
    pub fn restore(&mut self, store: &mut Store, slot: u32, dirty: bool, crc: u32) {
        self.map(store, slot, crc);
        if dirty {
            self.at(slot).change(0, DIRTY | FIRM);
        }
    }

    /// A free slot gets an entry.
    pub fn enter(&mut self, slot: u32) {
        assert_eq!(self.word(slot), 0, "slot {slot} is free durably");
    }

    /// The checksum of what the slot holds; none while it is being written.
    #[inline]
    pub fn sum(&self, store: &Store, slot: u32) -> Sum {
        match self.word(slot) & (SUMMED | USED | DIRTY) {
            word if word & SUMMED == 0 => Sum::None,
            word if word & (USED | DIRTY) == DIRTY => Sum::News(store.note(slot)),
            _ => Sum::Here(store.note(slot)),
        }
    }

    /// The slot is about to be written.
    pub fn overwrite(&mut self, slot: u32) {
        let slot = self.at(slot);
        slot.change(SUMMED, if slot.has(USED) { STALE } else { 0 });
    }

    /// The slot has been written.
    pub fn written(&mut self, store: &mut Store, slot: u32, crc: u32) {
        debug_assert!(!self.has(slot, DIRTY), "what is dirty is not written where it is");
        self.at(slot).change(0, SUMMED | YOUNG);
        store.set_note(slot, crc);
    }

    /// A flush begins that covers what the slot holds, if it is not being written.
    pub fn cover(&mut self, slot: u32) {
        self.at(slot).change(YOUNG, 0);
    }

    /// True if the device may still lose what the slot holds, whatever is known of an earlier write of the same.
    pub fn is_young(&self, slot: u32) -> bool {
        self.has(slot, YOUNG)
    }

    /// A `Map` was pushed.
    pub fn map(&mut self, store: &mut Store, slot: u32, crc: u32) {
        let keep = self.word(slot) & (FREEING | LOOSE | FIRM);
        self.at(slot).0 = USED | SUMMED | keep;
        store.set_note(slot, crc);
    }

    /// Written with data that the backing does not have; the news of it have this number.
    pub fn wait(&mut self, store: &mut Store, slot: u32, news: u32) {
        debug_assert_eq!(self.word(slot) & !SUMMED, 0, "the slot was free");
        self.at(slot).0 = DIRTY | SUMMED;
        store.set_note(slot, news);
    }

    /// True if the slot is waiting with these news. Else there is nothing to say of it.
    #[inline]
    pub fn is_waiting(&self, store: &Store, slot: u32, news: u32) -> bool {
        self.word(slot) & (USED | DIRTY) == DIRTY && store.note(slot) == news
    }

    /// A dirty `Map` was pushed, with its data.
    pub fn map_dirty(&mut self, store: &mut Store, slot: u32, crc: u32) {
        let keep = self.word(slot) & (SUMMED | LOOSE | STALE);
        self.at(slot).0 = USED | DIRTY | keep;
        store.set_note(slot, crc);
    }

    /// The dirty `Map` of a slot is durable.
    pub fn firm(&mut self, slot: u32) {
        let slot = self.at(slot);
        if slot.0 & (USED | DIRTY) == USED | DIRTY {
            slot.change(0, FIRM);
        }
    }

    /// A `Clean` was pushed.
    pub fn clean(&mut self, slot: u32) {
        self.at(slot).change(DIRTY | FIRM, 0);
    }

    /// True if the journal durably maps the slot dirty: it may be written back.
    #[inline]
    pub fn is_firm(&self, slot: u32) -> bool {
        let all = USED | DIRTY | FIRM;
        self.word(slot) & all == all
    }

    /// True if the journal maps the slot dirty, or will, and nobody has seen to its end yet.
    pub fn is_owed(&self, slot: u32) -> bool {
        let word = self.word(slot);
        word & DIRTY != 0 && word & (LOOSE | STALE) == LOOSE
    }

    /// True if the slot's data may be changed where it is: a crash does not bring it back as dirty.
    pub fn may_change(&self, slot: u32) -> bool {
        let word = self.word(slot);
        word & DIRTY == 0 && word & (FREEING | FIRM) != FREEING | FIRM
    }

    /// True if the journal maps the slot dirty, or will.
    #[inline]
    pub fn is_dirty(&self, slot: u32) -> bool {
        self.has(slot, DIRTY)
    }

    /// An entry that will be pushed frees this slot.
    pub fn supersede(&mut self, slot: u32) {
        debug_assert!(self.is_owed(slot), "what is freed once is not freed twice");
        self.at(slot).change(0, STALE);
    }

    /// A waiting slot whose block has newer data: it is free, and the news with this number are not said. `None` if it does not wait.
    pub fn withdraw(&mut self, store: &Store, slot: u32) -> Option<u32> {
        let waits = self.word(slot) & (USED | DIRTY) == DIRTY;
        waits.then(|| {
            self.forget(slot);
            store.note(slot)
        })
    }

    /// A `Free` was pushed.
    pub fn unmap(&mut self, slot: u32) {
        let slot = self.at(slot);
        let was_dirty = if slot.has(DIRTY) { FIRM } else { 0 };
        slot.change(USED | STALE | DIRTY | FIRM, FREEING | was_dirty);
    }

    /// No entry has the slot any more.
    pub fn release(&mut self, slot: u32) -> Release {
        let slot = self.at(slot);
        let release = match slot.0 & (USED | FREEING) {
            _ if slot.has(DIRTY) => Release::Owed,
            0 => {
                slot.0 = 0;
                return Release::Now;
            }
            FREEING => Release::Wait,
            _ => Release::Push,
        };
        slot.change(0, LOOSE);
        release
    }

    /// The slot's `Free` is durable. True if the slot is free now.
    pub fn freed(&mut self, slot: u32) -> bool {
        let slot = self.at(slot);
        slot.change(if slot.has(DIRTY) { FREEING } else { FREEING | FIRM }, 0);
        let is_free = slot.0 & (LOOSE | USED) == LOOSE;
        if is_free {
            slot.0 = 0;
        }
        is_free
    }

    /// Nothing is known of the slot any more.
    pub fn forget(&mut self, slot: u32) {
        self.at(slot).0 = 0;
    }

    /// True if the journal maps the slot.
    #[inline]
    pub fn is_used(&self, slot: u32) -> bool {
        self.has(slot, USED)
    }

    /// True if the journal maps the slot with other data than it holds.
    pub fn is_stale(&self, slot: u32) -> bool {
        self.has(slot, STALE)
    }

    /// True if the journal maps a slot dirty.
    pub fn any_dirty(&self) -> bool {
        self.slots.iter().any(|slot| slot.has(DIRTY))
    }

    /// The slots that the journal maps, or will until a `Free` is durable. Slow: it looks at all slots.
    pub fn mapped(&self) -> impl Iterator<Item = u32> + '_ {
        self.all(|slot| slot.has(USED | FREEING))
    }

    /// The slots of which a crash now could bring back a dirty block. Slow.
    pub fn mapped_dirty(&self) -> impl Iterator<Item = u32> + '_ {
        self.all(|slot| {
            let mapped = slot.0 & (USED | DIRTY) == USED | DIRTY;
            let ending = slot.0 & (FREEING | FIRM) == FREEING | FIRM && !slot.has(DIRTY);
            mapped || ending
        })
    }

    fn all(&self, is_it: impl Fn(Slot) -> bool) -> impl Iterator<Item = u32> {
        (0..).zip(&self.slots).filter(move |(_, slot)| is_it(**slot)).map(|(at, _)| at)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    #[inline]
    fn has(&self, slot: u32, flag: u8) -> bool {
        self.slots[slot as usize].has(flag)
    }

    #[inline]
    fn word(&self, slot: u32) -> u8 {
        self.slots[slot as usize].0
    }

    #[inline]
    fn at(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::BlockId;

    const BLOCK: BlockId = BlockId { volume: 7, block: BlockId::BLOCK_MAX };

    /// A table and a store, with slots that were left.
    fn slots(count: u32) -> (SlotTable, Store) {
        let mut store = Store::new(7);
        store.number_by_slots(Some(count));
        (0..count).for_each(|slot| store.leave(slot, BLOCK));
        (SlotTable::new(count), store)
    }

    #[test]
    fn a_mapped_slot_is_free_when_its_free_is_durable() {
        let (mut slots, mut store) = slots(2);
        slots.enter(1);
        slots.written(&mut store, 1, 9);
        assert_eq!((slots.sum(&store, 1), slots.is_used(1)), (Sum::Here(9), false));
        slots.map(&mut store, 1, 9);
        assert_eq!((slots.sum(&store, 1), slots.is_used(1), slots.is_dirty(1)), (Sum::Here(9), true, false));
        assert_eq!(slots.release(1), Release::Push);
        assert!(slots.is_used(1), "until the entry is pushed");
        slots.unmap(1);
        assert_eq!(slots.mapped().collect::<Vec<_>>(), [1], "until that is durable");
        assert_eq!((slots.is_used(1), slots.freed(1)), (false, true));
        slots.enter(1);
        assert_eq!(slots.release(1), Release::Now, "the journal has not heard of it");
        assert_eq!(slots.mapped().count(), 0);
    }

    #[test]
    fn a_slot_that_is_unmapped_in_use_waits_all_the_same() {
        let (mut slots, mut store) = slots(1);
        slots.written(&mut store, 0, 1);
        slots.map(&mut store, 0, 1);
        slots.overwrite(0);
        assert!(slots.is_stale(0) && slots.sum(&store, 0) == Sum::None);
        slots.written(&mut store, 0, 2);
        slots.unmap(0);
        assert_eq!((slots.is_stale(0), slots.sum(&store, 0)), (false, Sum::Here(2)));
        assert_eq!(slots.release(0), Release::Wait);
        assert!(slots.freed(0));
        slots.written(&mut store, 0, 3);
        slots.map(&mut store, 0, 3);
        slots.unmap(0);
        assert!(!slots.freed(0), "it still is in use");
    }

    #[test]
    fn a_dirty_slot_is_free_when_what_frees_it_is_durable() {
        let (mut slots, mut store) = slots(2);
        slots.wait(&mut store, 0, 5);
        assert_eq!((slots.sum(&store, 0), slots.is_used(0), slots.is_owed(0)), (Sum::News(5), false, false));
        assert_eq!(slots.withdraw(&store, 0), Some(5), "nothing was said");
        slots.wait(&mut store, 0, 6);
        assert!(!slots.is_waiting(&store, 0, 5) && slots.is_waiting(&store, 0, 6));
        slots.map_dirty(&mut store, 0, 9);
        assert!(!slots.is_waiting(&store, 0, 6) && !slots.is_waiting(&store, 0, 9));
        let freed = (slots.withdraw(&store, 0), slots.release(0), slots.is_owed(0));
        assert_eq!(freed, (None, Release::Owed, true));
        assert_eq!((slots.sum(&store, 0), slots.is_used(0), slots.is_dirty(0)), (Sum::Here(9), true, true));
        slots.firm(0);
        assert!(slots.is_firm(0) && slots.is_owed(0));
        assert_eq!(slots.mapped_dirty().collect::<Vec<_>>(), [0]);
        slots.supersede(0);
        assert!(!slots.is_owed(0));
        slots.unmap(0);
        assert_eq!(slots.mapped_dirty().collect::<Vec<_>>(), [0], "its end is not durable");
        assert!(!slots.is_dirty(0) && slots.freed(0));
        assert_eq!(slots.mapped_dirty().count(), 0);
        slots.firm(0);
        assert!(!slots.is_firm(0));
    }
}
