//! What the journal says of each slot, and the checksum of what the slot holds: 12 bytes for a slot.
//!
//! The journal's view is not the cache's: a block that was filled just now is cached and not yet mapped; one that was
//! evicted is mapped until its `Free` is durable, and its slot must not be used before.
//!
//! A dirty slot goes through three states: *waiting* (what is to be said of it may still change), *used* (pushed: a guest's flush may count on it), and *firm*
//! (durable: the cleaner may write it back).

use crate::format::{BlockId, Contents, Epoch};

const BLOCK_BITS: u32 = 40;
const FLAG_SHIFT: u32 = 56;
/// The journal maps the block to the slot, durably or not.
const USED: u64 = 1 << FLAG_SHIFT;
/// The data was overwritten since.
const STALE: u64 = 2 << FLAG_SHIFT;
/// The checksum is that of the slot's data.
const SUMMED: u64 = 4 << FLAG_SHIFT;
/// A `Free` was pushed, and is not durable.
const FREEING: u64 = 8 << FLAG_SHIFT;
/// Nothing is cached here: the slot is free once the journal durably says so.
const LOOSE: u64 = 16 << FLAG_SHIFT;
/// The backing does not have the data. With `USED` the journal maps it so.
const DIRTY: u64 = 32 << FLAG_SHIFT;
/// With `DIRTY`: the mapping is durable. With `FREEING` alone: it was dirty.
const FIRM: u64 = 64 << FLAG_SHIFT;
/// No flush of the device has begun since the slot was written.
const YOUNG: u64 = 128 << FLAG_SHIFT;
/// A waiting slot's news have this number, in place of the block.
const NEWS: u64 = u32::MAX as u64;

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
struct Slot {
    /// Flags (8 bits), volume (16), block (40), in halves: aligned to eight bytes a slot would be four longer.
    halves: [u32; 2],
    crc: u32,
}

impl Slot {
    #[inline]
    fn word(self) -> u64 {
        u64::from(self.halves[1]) << 32 | u64::from(self.halves[0])
    }

    #[inline]
    fn set(&mut self, word: u64) {
        self.halves = [word as u32, (word >> 32) as u32];
    }

    #[inline]
    fn has(self, flag: u64) -> bool {
        self.word() & flag != 0
    }

    /// Take these flags away, and put those on.
    #[inline]
    fn change(&mut self, off: u64, on: u64) {
        self.set(self.word() & !off | on);
    }
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

    /// What recovery found.
    pub fn restore(&mut self, slot: u32, contents: Contents) {
        self.map(slot, contents.block, contents.crc);
        if contents.dirty {
            self.at(slot).change(0, DIRTY | FIRM);
        }
    }

    /// A free slot gets an entry.
    pub fn enter(&mut self, slot: u32) {
        assert_eq!(self.word(slot), 0, "slot {slot} is free durably");
    }

    /// The checksum of what the slot holds; none while it is being written.
    pub fn sum(&self, slot: u32) -> Option<u32> {
        self.has(slot, SUMMED).then(|| self.slots[slot as usize].crc)
    }

    /// The slot is about to be written.
    pub fn overwrite(&mut self, slot: u32) {
        let slot = self.at(slot);
        slot.change(SUMMED, if slot.has(USED) { STALE } else { 0 });
    }

    /// The slot has been written.
    pub fn written(&mut self, slot: u32, crc: u32) {
        let slot = self.at(slot);
        slot.change(0, SUMMED | YOUNG);
        slot.crc = crc;
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
    pub fn map(&mut self, slot: u32, block: BlockId, crc: u32) {
        let slot = self.at(slot);
        let keep = slot.word() & (FREEING | LOOSE | FIRM);
        slot.set(USED | SUMMED | keep | key_bits(block));
        slot.crc = crc;
    }

    /// Written with data that the backing does not have; the news of it have this number.
    pub fn wait(&mut self, slot: u32, news: u32, crc: u32) {
        let slot = self.at(slot);
        debug_assert_eq!(slot.word() & !SUMMED, 0, "the slot was free");
        slot.set(DIRTY | SUMMED | u64::from(news));
        slot.crc = crc;
    }

    /// True if the slot is waiting with these news. Else there is nothing to say of it.
    pub fn is_waiting(&self, slot: u32, news: u32) -> bool {
        let word = self.word(slot);
        word & (USED | DIRTY) == DIRTY && word & NEWS == u64::from(news)
    }

    /// A dirty `Map` was pushed, with its data or of data that are durable.
    pub fn map_dirty(&mut self, slot: u32, block: BlockId) {
        let slot = self.at(slot);
        slot.set(USED | DIRTY | slot.word() & (SUMMED | LOOSE | STALE) | key_bits(block));
    }

    /// The dirty `Map` of a slot is durable.
    pub fn firm(&mut self, slot: u32) {
        let slot = self.at(slot);
        if slot.word() & (USED | DIRTY) == USED | DIRTY {
            slot.change(0, FIRM);
        }
    }

    /// A `Clean` was pushed.
    pub fn clean(&mut self, slot: u32) {
        self.at(slot).change(DIRTY | FIRM, 0);
    }

    /// True if the journal durably maps the slot dirty: it may be written back.
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
    pub fn is_dirty(&self, slot: u32) -> bool {
        self.has(slot, DIRTY)
    }

    /// An entry that will be pushed frees this slot.
    pub fn supersede(&mut self, slot: u32) {
        debug_assert!(self.is_owed(slot), "what is freed once is not freed twice");
        self.at(slot).change(0, STALE);
    }

    /// A waiting slot whose block has newer data: it is free, and the news with this number are not said. `None` if it does not wait.
    pub fn withdraw(&mut self, slot: u32) -> Option<u32> {
        let slot = self.at(slot);
        let news = (slot.word() & NEWS) as u32;
        let waits = slot.word() & (USED | DIRTY) == DIRTY;
        if waits {
            slot.set(0);
        }
        waits.then_some(news)
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
        let release = match slot.word() & (USED | FREEING) {
            _ if slot.has(DIRTY) => Release::Owed,
            0 => {
                slot.set(0);
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
        let is_free = slot.word() & (LOOSE | USED) == LOOSE;
        if is_free {
            slot.set(0);
        }
        is_free
    }

    /// Nothing is known of the slot: a planted bug.
    pub fn forget(&mut self, slot: u32) {
        self.at(slot).set(0);
    }

    /// True if the journal maps the slot.
    pub fn is_used(&self, slot: u32) -> bool {
        self.has(slot, USED)
    }

    /// True if the journal maps the slot with other data than it holds.
    pub fn is_stale(&self, slot: u32) -> bool {
        self.has(slot, STALE)
    }

    /// The block that the journal maps, or mapped last, to the slot.
    pub fn block(&self, slot: u32) -> BlockId {
        let word = self.word(slot);
        BlockId { volume: (word >> BLOCK_BITS) as u16, block: word & BlockId::BLOCK_MAX }
    }

    /// True if the journal maps a slot dirty.
    pub fn any_dirty(&self) -> bool {
        self.slots.iter().any(|slot| slot.has(DIRTY))
    }

    /// True if the journal maps a block of a volume, or will until a `Free` is durable. Slow: it looks at all slots.
    pub fn maps_any_of(&self, volume: u16) -> bool {
        let words = self.slots.iter().map(|slot| slot.word());
        words.into_iter().any(|word| word & (USED | FREEING) != 0 && (word >> BLOCK_BITS) as u16 == volume)
    }

    /// The volumes, by their numbers, of which a crash now could bring back a dirty block.
    pub fn dirty_volumes(&self) -> impl Iterator<Item = u16> + '_ {
        let mapped = |word: u64| word & (USED | DIRTY) == USED | DIRTY;
        let ending = |word: u64| word & (FREEING | FIRM) == FREEING | FIRM && word & DIRTY == 0;
        let words =
            self.slots.iter().map(|slot| slot.word()).filter(move |&word| mapped(word) || ending(word));
        words.map(|word| (word >> BLOCK_BITS) as u16)
    }

    /// What a page of the slot table says, but for the epoch. The checksum of a stale slot may be newer than the journal's: its region is
    /// marked, so nobody trusts it before a `Free`.
    pub fn contents(&self, slot: u32) -> Option<Contents> {
        let (crc, dirty) = (self.slots[slot as usize].crc, self.is_dirty(slot));
        self.is_used(slot).then(|| Contents { block: self.block(slot), dirty, epoch: Epoch::NONE, crc })
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    fn has(&self, slot: u32, flag: u64) -> bool {
        self.slots[slot as usize].has(flag)
    }

    fn word(&self, slot: u32) -> u64 {
        self.slots[slot as usize].word()
    }

    fn at(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }
}

fn key_bits(block: BlockId) -> u64 {
    u64::from(block.volume) << BLOCK_BITS | block.block
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockId = BlockId { volume: 7, block: BlockId::BLOCK_MAX };

    #[test]
    fn a_mapped_slot_is_free_when_its_free_is_durable() {
        let mut slots = SlotTable::new(2);
        slots.enter(1);
        slots.written(1, 9);
        assert_eq!((slots.sum(1), slots.contents(1)), (Some(9), None));
        slots.map(1, BLOCK, 9);
        assert_eq!(
            slots.contents(1),
            Some(Contents { block: BLOCK, dirty: false, epoch: Epoch::NONE, crc: 9 })
        );
        assert_eq!(slots.release(1), Release::Push);
        assert!(slots.is_used(1), "until the entry is pushed");
        slots.unmap(1);
        assert_eq!((slots.is_used(1), slots.freed(1)), (false, true));
        slots.enter(1);
        assert_eq!(slots.release(1), Release::Now, "the journal has not heard of it");
    }

    #[test]
    fn a_slot_that_is_unmapped_in_use_waits_all_the_same() {
        let mut slots = SlotTable::new(1);
        slots.written(0, 1);
        slots.map(0, BLOCK, 1);
        slots.overwrite(0);
        assert!(slots.is_stale(0) && slots.sum(0).is_none());
        slots.written(0, 2);
        slots.unmap(0);
        assert_eq!((slots.is_stale(0), slots.sum(0)), (false, Some(2)));
        assert_eq!(slots.release(0), Release::Wait);
        assert!(slots.freed(0));
        slots.written(0, 3);
        slots.map(0, BLOCK, 3);
        slots.unmap(0);
        assert!(!slots.freed(0), "it still is in use");
    }

    #[test]
    fn a_dirty_slot_is_free_when_what_frees_it_is_durable() {
        let mut slots = SlotTable::new(2);
        slots.wait(0, 5, 9);
        assert_eq!((slots.sum(0), slots.contents(0), slots.is_owed(0)), (Some(9), None, false));
        assert_eq!(slots.withdraw(0), Some(5), "nothing was said");
        slots.wait(0, 6, 9);
        assert!(!slots.is_waiting(0, 5) && slots.is_waiting(0, 6));
        slots.map_dirty(0, BLOCK);
        assert!(!slots.is_waiting(0, 6));
        assert_eq!((slots.withdraw(0), slots.release(0), slots.is_owed(0)), (None, Release::Owed, true));
        assert_eq!(
            slots.contents(0),
            Some(Contents { block: BLOCK, dirty: true, epoch: Epoch::NONE, crc: 9 })
        );
        slots.firm(0);
        assert!(slots.is_firm(0) && slots.is_owed(0));
        assert_eq!(slots.dirty_volumes().collect::<Vec<_>>(), [7]);
        slots.supersede(0);
        assert!(!slots.is_owed(0));
        slots.unmap(0);
        assert_eq!(slots.dirty_volumes().collect::<Vec<_>>(), [7], "its end is not durable");
        assert!(!slots.is_dirty(0) && slots.freed(0));
        assert_eq!(slots.dirty_volumes().count(), 0);
        slots.firm(0);
        assert!(!slots.is_firm(0));
    }
}
