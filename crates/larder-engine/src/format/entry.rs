//! Entries of the journal: the changes that make up the state, 5 to 20 bytes each. The first byte is the kind, which says how many.
//!
//! | bytes | `Map`, `Write` | `Free`, `Clean` | `Mark` | `Unmark` |
//! | --- | --- | --- | --- | --- |
//! | 0 | kind: 64 and [`Epoch`] for one that is dirty and has an epoch, 16 more for one without an epoch and without an old slot, 128 more for a `Write` | kind | kind | kind |
//! | 1..6, 6..8 | block, volume | slot (1..5) | region, volume | region, volume |
//! | 8..12 | slot | | since (8..16) | |
//! | 12..16 | checksum of the data | | | |
//! | 16..20 | old slot, 2^32-1 for none; not there where the kind says that there is none | | | |
//!
//! Up to version 3 each had 20 bytes ([`Entry::decode_fixed`]).

use super::bytes::{put, u32_at, u64_at};
use super::epoch::Epoch;
use std::fmt;

/// Bytes of an entry at most; up to version 3 of each.
pub(super) const ENTRY_BYTES: usize = 20;
/// Bytes of a mark.
pub(super) const MARK_BYTES: usize = 16;

const BLOCK_BITS: u32 = 40;
const BLOCK_MASK: u64 = (1 << BLOCK_BITS) - 1;
/// Where the byte of kind or flags lies in a key's word.
pub(super) const TOP_SHIFT: u32 = 56;
/// Volume and block of a key's word.
pub(super) const KEY_MASK: u64 = (1 << TOP_SHIFT) - 1;
/// In place of an old slot: a cache has fewer slots than this.
const NO_SLOT: u32 = u32::MAX;

const MAP_CLEAN: u8 = 1;
const MAP_DIRTY: u8 = 2;
const FREE: u8 = 3;
const CLEAN: u8 = 4;
const MARK: u8 = 5;
const UNMARK: u8 = 6;
/// A `Map` without an epoch: this and its kind, where it frees no slot.
const FREES_NONE: u8 = 16;
/// A dirty `Map` with an epoch: this and its six bits.
const MAP_IN_EPOCH: u8 = 64;
/// A `Write`: this and the kind of the dirty `Map`.
const WITH_DATA: u8 = 128;

/// Which block of which volume, by its number in the volume table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The volume's number in the volume table.
    pub volume: u16,
    /// Counted from the volume's start; below 2^40.
    pub block: u64,
}

impl BlockId {
    /// The highest block number.
    pub const BLOCK_MAX: u64 = BLOCK_MASK;

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.volume) << BLOCK_BITS | self.block & BLOCK_MASK
    }

    pub(crate) fn unpack(word: u64) -> Self {
        Self { volume: (word >> BLOCK_BITS) as u16, block: word & BLOCK_MASK }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} of volume {}", self.block, self.volume)
    }
}

/// A run of blocks of a volume that is marked as one: its number is the block's divided by the superblock's
/// `region_blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// The volume's number in the volume table.
    pub volume: u16,
    /// Counted from the volume's start; below 2^40.
    pub region: u64,
}

impl Region {
    /// The region of a block.
    pub fn of(block: BlockId, region_blocks: u32) -> Self {
        Self { volume: block.volume, region: block.block / u64::from(region_blocks) }
    }

    /// As one number: regions have the same order.
    pub(crate) fn pack(self) -> u64 {
        BlockId { volume: self.volume, block: self.region }.pack()
    }

    pub(crate) fn unpack(word: u64) -> Self {
        let BlockId { volume, block: region } = BlockId::unpack(word);
        Self { volume, region }
    }
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The slot holds the block from now on.
    Map {
        /// Which block.
        block: BlockId,
        /// True if the backing does not have this data.
        dirty: bool,
        /// Of a dirty block of a volume with ordered write-back.
        epoch: Epoch,
        /// Where it is.
        slot: u32,
        /// [`super::Salt::block`] of its data.
        crc: u32,
        /// Where it was: free from now on.
        old: Option<u32>,
    },
    /// A dirty [`Entry::Map`] of data that were written before the entry, and may become durable no earlier than it: while nothing else says that its record was
    /// durable, it was not if the slot holds anything else.
    Write {
        /// Which block.
        block: BlockId,
        /// As in a `Map`.
        epoch: Epoch,
        /// Where it is.
        slot: u32,
        /// [`super::Salt::block`] of its data.
        crc: u32,
        /// Where it was: free from now on.
        old: Option<u32>,
    },
    /// The slot holds nothing.
    Free {
        /// The slot.
        slot: u32,
    },
    /// The backing has the slot's data, durably.
    Clean {
        /// The slot.
        slot: u32,
    },
    /// Writes may go past the clean blocks of this region from now on.
    Mark {
        /// The region.
        region: Region,
        /// The record with which it was asked for; it stays when the mark is written again. The writer fills it in.
        since: u64,
    },
    /// No write that the state does not show is under way in this region, nor will be before another mark.
    Unmark {
        /// The region.
        region: Region,
    },
}

impl Entry {
    /// What it makes of the state: a [`Entry::Write`] is a [`Entry::Map`].
    pub(super) fn as_map(self) -> Self {
        match self {
            Self::Write { block, epoch, slot, crc, old } => {
                Self::Map { block, dirty: true, epoch, slot, crc, old }
            }
            other => other,
        }
    }

    /// A new mark.
    pub fn mark(region: Region) -> Self {
        Self::Mark { region, since: 0 }
    }

    /// Bytes that it takes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match *self {
            Self::Map { epoch, old, .. } | Self::Write { epoch, old, .. }
                if epoch.is_some() || old.is_some() =>
            {
                ENTRY_BYTES
            }
            Self::Map { .. } | Self::Write { .. } => 16,
            Self::Mark { .. } => MARK_BYTES,
            Self::Free { .. } | Self::Clean { .. } => 5,
            Self::Unmark { .. } => 8,
        }
    }

    /// Write it to where so many bytes are.
    #[inline]
    pub(super) fn encode(&self, into: &mut [u8]) {
        match *self {
            Self::Map { block, dirty: false, slot, crc, old, .. } => {
                put_map(into, MAP_CLEAN, block, (slot, crc, old));
            }
            Self::Map { block, dirty: true, epoch, slot, crc, old } => {
                put_map(into, kind_of_dirty(epoch), block, (slot, crc, old));
            }
            Self::Write { block, epoch, slot, crc, old } => {
                put_map(into, WITH_DATA | kind_of_dirty(epoch), block, (slot, crc, old));
            }
            Self::Free { slot } => put_slot(into, FREE, slot),
            Self::Clean { slot } => put_slot(into, CLEAN, slot),
            Self::Mark { region, since } => {
                put(into, 0, word(MARK, region.pack()));
                put(into, 8, since.to_le_bytes());
            }
            Self::Unmark { region } => put(into, 0, word(UNMARK, region.pack())),
        }
    }

    /// The first entry of these bytes, and how many are its own. `None` if no entry is written so: there is one way to write each.
    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let kind = *bytes.first()?;
        let frees_none = matches!(kind & !WITH_DATA ^ FREES_NONE, MAP_CLEAN | MAP_DIRTY);
        let len = match kind {
            FREE | CLEAN => 5,
            UNMARK => 8,
            MARK => MARK_BYTES,
            _ if frees_none => 16,
            _ => ENTRY_BYTES,
        };
        let bytes = bytes.get(..len)?;
        let entry = match kind {
            FREE => Self::Free { slot: u32_at(bytes, 1) },
            CLEAN => Self::Clean { slot: u32_at(bytes, 1) },
            _ => {
                let middle = bytes.get(8..16).map_or(0, |middle| u64_at(middle, 0));
                let last = bytes.get(16..20).map_or(NO_SLOT, |last| u32_at(last, 0));
                // Only with an epoch is there room for an old slot that there is not.
                if len == ENTRY_BYTES && last == NO_SLOT && kind & MAP_IN_EPOCH == 0 {
                    return None;
                }
                let kind = if frees_none { kind - FREES_NONE } else { kind };
                Self::of(kind, u64_at(bytes, 0) >> 8, middle, last)?
            }
        };
        Some((entry, len))
    }

    /// An entry as it was up to version 3: 20 bytes, the kind in the eighth of them, zeroes for what it does not have.
    pub(super) fn decode_fixed(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let (word, middle, last) = (u64_at(bytes, 0), u64_at(bytes, 8), u32_at(bytes, 16));
        let (kind, key) = ((word >> TOP_SHIFT) as u8, word & KEY_MASK);
        match kind {
            FREE | CLEAN if key == 0 && middle >> 32 == 0 && last == 0 => {
                let slot = middle as u32;
                Some(if kind == FREE { Self::Free { slot } } else { Self::Clean { slot } })
            }
            FREE | CLEAN => None,
            MARK | UNMARK if last != 0 => None,
            _ => Self::of(kind, key, middle, last),
        }
    }

    /// An entry about a block or a region, from what both ways of writing have.
    #[inline]
    fn of(kind: u8, key: u64, middle: u64, last: u32) -> Option<Self> {
        let (slot, crc, old) = (middle as u32, (middle >> 32) as u32, (last != NO_SLOT).then_some(last));
        let block = BlockId::unpack(key);
        let map = |dirty, epoch| Self::Map { block, dirty, epoch, slot, crc, old };
        Some(match kind {
            MAP_CLEAN => map(false, Epoch::NONE),
            MAP_DIRTY => map(true, Epoch::NONE),
            kind if kind > WITH_DATA => {
                Self::Write { block, epoch: epoch_of_dirty(kind - WITH_DATA)?, slot, crc, old }
            }
            kind if kind > MAP_IN_EPOCH => map(true, epoch_of_dirty(kind)?),
            MARK => Self::Mark { region: Region::unpack(key), since: middle },
            UNMARK if middle == 0 => Self::Unmark { region: Region::unpack(key) },
            _ => return None,
        })
    }
}

/// The first eight bytes of an entry.
fn word(kind: u8, key: u64) -> [u8; 8] {
    (key << 8 | u64::from(kind)).to_le_bytes()
}

fn put_slot(into: &mut [u8], kind: u8, slot: u32) {
    put(into, 0, [kind]);
    put(into, 1, slot.to_le_bytes());
}

#[inline]
fn put_map(into: &mut [u8], kind: u8, block: BlockId, (slot, crc, old): (u32, u32, Option<u32>)) {
    let is_short = old.is_none() && kind & MAP_IN_EPOCH == 0;
    put(into, 0, word(if is_short { kind | FREES_NONE } else { kind }, block.pack()));
    put(into, 8, (u64::from(crc) << 32 | u64::from(slot)).to_le_bytes());
    if !is_short {
        put(into, 16, old.unwrap_or(NO_SLOT).to_le_bytes());
    }
}

fn kind_of_dirty(epoch: Epoch) -> u8 {
    if epoch.is_some() { MAP_IN_EPOCH | epoch.bits() } else { MAP_DIRTY }
}

/// Of the kind of a dirty `Map`.
fn epoch_of_dirty(kind: u8) -> Option<Epoch> {
    match kind {
        MAP_DIRTY => Some(Epoch::NONE),
        kind if kind > MAP_IN_EPOCH => Epoch::from_bits(kind - MAP_IN_EPOCH),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_decodes_is_written_the_same_again(bytes in any::<[u8; ENTRY_BYTES]>(), kind in prop_oneof![0u8..24, any::<u8>()], none in any::<bool>()) {
            let mut bytes = bytes;
            bytes[0] = kind;
            if none { bytes[16..].fill(0xff); }
            if let Some((entry, len)) = Entry::decode(&bytes) {
                let mut again = [0xff; ENTRY_BYTES];
                prop_assert_eq!(entry.bytes(), len);
                entry.encode(&mut again[..len]);
                prop_assert_eq!(&again[..len], &bytes[..len]);
                prop_assert_eq!(Entry::decode(&bytes[..len - 1]), None);
            }
        }

        /// Both ways of writing say the same.
        #[test]
        fn what_version_3_wrote_is_read(bytes in any::<[u8; ENTRY_BYTES]>(), kind in prop_oneof![0u8..8, any::<u8>()]) {
            let mut bytes = bytes;
            bytes[7] = kind;
            if matches!(kind, 3 | 4) { bytes[..7].fill(0); bytes[12..].fill(0); }
            if (5..64).contains(&kind) { bytes[16..].fill(0); }
            if kind == 6 { bytes[8..].fill(0); }
            let entry = Entry::decode_fixed(&bytes);
            prop_assert_eq!(entry.is_some(), matches!(kind, 1..=6 | 65..128 | 130 | 193..));
            if let Some(entry) = entry {
                let mut again = vec![0; entry.bytes()];
                entry.encode(&mut again);
                prop_assert_eq!(Entry::decode(&again), Some((entry, again.len())));
            }
        }
    }

    /// Bytes that version 3 wrote.
    #[test]
    fn a_write_of_version_3() {
        let bytes = [5, 0, 0, 0, 0, 2, 0, 130, 9, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde, 0xff, 0xff, 0xff, 0xff];
        let block = BlockId { volume: 2, block: 5 };
        let write = Entry::Write { block, epoch: Epoch::NONE, slot: 9, crc: 0xdead_beef, old: None };
        assert_eq!(Entry::decode_fixed(&bytes), Some(write));
    }

    #[test]
    fn each_kind_survives() {
        let block = BlockId { volume: u16::MAX, block: BlockId::BLOCK_MAX };
        let region = Region::of(BlockId { volume: 3, block: 5000 }, 1024);
        assert_eq!(region, Region { volume: 3, region: 4 });
        let map = |dirty, epoch, slot, old| Entry::Map { block, dirty, epoch, slot, crc: 0xdead_beef, old };
        let dirty = map(true, Epoch::NONE, u32::MAX - 1, None);
        let clean = map(false, Epoch::NONE, 0, Some(7));
        let ordered = map(true, Epoch::of(62), 1, None);
        let write = |epoch| Entry::Write { block, epoch, slot: 3, crc: 1, old: Some(9) };
        let mark = Entry::Mark { region, since: 1 << 61 };
        for entry in [
            dirty,
            clean,
            ordered,
            write(Epoch::NONE),
            write(Epoch::of(62)),
            Entry::Free { slot: 9 },
            Entry::Clean { slot: 1 },
            mark,
            Entry::Unmark { region },
        ] {
            let mut bytes = [0xff; 24];
            entry.encode(&mut bytes[..entry.bytes()]);
            assert_eq!(Entry::decode(&bytes), Some((entry, entry.bytes())));
        }
        assert_eq!((Entry::decode(&[0; ENTRY_BYTES]), Entry::decode(&[])), (None, None));
    }
}
