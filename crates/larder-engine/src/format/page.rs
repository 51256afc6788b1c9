//! Pages of the slot table: 340 slots each, in 4 KiB, in two copies of the table.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | CRC-32C of what follows, salted with UUID and copy |
//! | 4..8 | the page's number |
//! | 8..16 | upto: the page is the state after the record of this sequence |
//! | 16..4096 | 340 slots: block (40 bits), volume (16), flags (8: used, dirty, [`Epoch`]), checksum of the data (32); zeroes for a free slot |
//!
//! A page of zeroes was never written: it is the state before the first record.

use super::SEQUENCE_MAX;
use super::bytes::{is_blank, put, u32_at, u64_at};
use super::checksum::{Kind, Salt};
use super::entry::{BlockId, KEY_MASK, TOP_SHIFT};
use super::epoch::Epoch;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a slot in a page.
pub(super) const SLOT_BYTES: usize = 12;
const HEADER_BYTES: usize = 16;
/// Slots that a page is about (the last one may be about fewer).
pub const PAGE_SLOTS: usize = (PAGE_BYTES - HEADER_BYTES) / SLOT_BYTES;

const USED: u64 = 1 << TOP_SHIFT;
const DIRTY: u64 = 2 << TOP_SHIFT;
/// In pages only: the epoch's six bits; in memory the other flags are in their place.
const EPOCH_SHIFT: u32 = TOP_SHIFT + 2;
/// In memory only: recovery has seen the block become clean after its region was marked.
const TRUSTED: u64 = 4 << TOP_SHIFT;
/// In memory only: what the slot holds cannot be used.
const DROPPED: u64 = 8 << TOP_SHIFT;
/// In memory only: what the slot holds is not known.
const UNKNOWN: u64 = 16 << TOP_SHIFT;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Which block.
    pub block: BlockId,
    /// True if the backing does not have this data.
    pub dirty: bool,
    /// Of a dirty block of a volume with ordered write-back.
    pub epoch: Epoch,
    /// [`Salt::block`] of its data.
    pub crc: u32,
}

/// Block and flags of a slot, in the form that pages have; 0 for a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub u64);

impl Word {
    pub const FREE: Self = Self(0);
    pub const UNKNOWN: Self = Self(UNKNOWN);

    pub fn mapped(block: BlockId, dirty: bool) -> Self {
        Self(USED | block.pack() | if dirty { DIRTY } else { 0 })
    }

    pub fn is_used(self) -> bool {
        self.0 & USED != 0
    }

    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    pub fn is_trusted(self) -> bool {
        self.0 & TRUSTED != 0
    }

    pub fn is_dropped(self) -> bool {
        self.0 & DROPPED != 0
    }

    pub fn is_unknown(self) -> bool {
        self.0 & UNKNOWN != 0
    }

    pub fn block(self) -> BlockId {
        BlockId::unpack(self.0)
    }

    /// The block without flags.
    pub fn key(self) -> u64 {
        self.0 & KEY_MASK
    }

    pub fn clean(self) -> Self {
        Self(self.0 & !DIRTY)
    }

    pub fn trusted(self, trusted: bool) -> Self {
        Self(if trusted { self.0 | TRUSTED } else { self.0 & !TRUSTED })
    }

    pub fn dropped(self) -> Self {
        Self(self.0 | DROPPED)
    }
}

/// What a copy of a page turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    /// Whole: the state after the record of this sequence (0: never written).
    Upto(u64),
    /// Torn, damaged, unreadable, or another page.
    Broken,
}

/// Look at a copy of a page.
pub(super) fn inspect(bytes: &[u8], salt: Salt, page: u32, copy: u8) -> Copy {
    if is_blank(bytes) {
        return Copy::Upto(0);
    }
    let upto = u64_at(bytes, 8);
    let whole = u32_at(bytes, 0) == salt.metadata(Kind::Page { copy }, &bytes[4..PAGE_BYTES]);
    match whole && u32_at(bytes, 4) == page && upto < SEQUENCE_MAX && slots(bytes).all(Stored::is_possible) {
        true => Copy::Upto(upto),
        false => Copy::Broken,
    }
}

/// A slot as a page has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    word: u64,
    pub crc: u32,
}

impl Stored {
    pub fn word(self) -> Word {
        Word(self.word & ((1 << EPOCH_SHIFT) - 1))
    }

    pub fn epoch(self) -> Epoch {
        Epoch::from_bits((self.word >> EPOCH_SHIFT) as u8).unwrap_or(Epoch::NONE)
    }

    /// Zeroes where it is free, and an epoch only where it is dirty.
    fn is_possible(self) -> bool {
        let word = self.word();
        let is_free = self.word == 0 && self.crc == 0;
        is_free || (word.is_used() && (word.is_dirty() || !self.epoch().is_some()))
    }
}

/// The slots of a page.
pub(super) fn slots(bytes: &[u8]) -> impl Iterator<Item = Stored> + '_ {
    let (slots, _) = bytes[HEADER_BYTES..PAGE_BYTES].as_chunks::<SLOT_BYTES>();
    slots.iter().map(|slot| Stored { word: u64_at(slot, 0), crc: u32_at(slot, 8) })
}

/// Write a page: the state of its slots after the record `upto`.
pub(super) fn encode(
    into: &mut [u8],
    salt: Salt,
    (page, copy): (u32, u8),
    upto: u64,
    slots: impl Iterator<Item = Option<Contents>>,
) {
    into.fill(0);
    put(into, 4, page.to_le_bytes());
    put(into, 8, upto.to_le_bytes());
    let (places, _) = into[HEADER_BYTES..].as_chunks_mut::<SLOT_BYTES>();
    for (place, slot) in places.iter_mut().zip(slots) {
        if let Some(Contents { block, dirty, epoch, crc }) = slot {
            let word = Word::mapped(block, dirty).0 | u64::from(epoch.bits()) << EPOCH_SHIFT;
            put(place, 0, word.to_le_bytes());
            put(place, 8, crc.to_le_bytes());
        }
    }
    let crc = salt.metadata(Kind::Page { copy }, &into[4..]);
    put(into, 0, crc.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Uuid;

    #[test]
    fn a_page_is_told_from_others_and_from_the_other_copy() {
        let (salt, other) = (Salt::new(Uuid([1; 16])), Salt::new(Uuid([2; 16])));
        let slot = |n: u64| {
            let block = BlockId { volume: 65_535, block: BlockId::BLOCK_MAX - n };
            let dirty = n.is_multiple_of(2);
            let epoch = if dirty && n.is_multiple_of(5) { Epoch::of(n) } else { Epoch::NONE };
            (!n.is_multiple_of(3)).then_some(Contents { block, dirty, epoch, crc: n as u32 })
        };
        let mut bytes = [0xff; PAGE_BYTES];
        encode(&mut bytes, salt, (7, 1), 99, (0..PAGE_SLOTS as u64).map(slot));
        assert_eq!(inspect(&bytes, salt, 7, 1), Copy::Upto(99));
        for (salt, page, copy) in [(other, 7, 1), (salt, 8, 1), (salt, 7, 0)] {
            assert_eq!(inspect(&bytes, salt, page, copy), Copy::Broken);
        }
        for (stored, n) in slots(&bytes).zip(0..) {
            let (word, epoch, crc) = (stored.word(), stored.epoch(), stored.crc);
            let found = Contents { block: word.block(), dirty: word.is_dirty(), epoch, crc };
            assert_eq!(word.is_used().then_some(found), slot(n));
        }
        assert_eq!(inspect(&[0; PAGE_BYTES], salt, 7, 1), Copy::Upto(0));
    }
}
