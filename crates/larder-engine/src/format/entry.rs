//! Entries of the journal: the changes that make up the state, 20 bytes each.
//!
//! | bytes | `Map`, `Write` | `Free`, `Clean` | `Mark` | `Unmark` |
//! | --- | --- | --- | --- | --- |
//! | 0..8 | block (40 bits), volume (16), kind (8; 64 and [`Epoch`] for one that is dirty and has an epoch; 128 more for a `Write`) | kind | region (40), volume (16), kind (8) | likewise |
//! | 8..12 | slot | slot | since (8 bytes) | 0 |
//! | 12..16 | checksum of the data | 0 | | 0 |
//! | 16..20 | old slot, 2^32-1 for none | 0 | 0 | 0 |

use super::bytes::{put, u32_at, u64_at};
use super::epoch::Epoch;
use std::fmt;

/// Bytes of an entry.
pub(super) const ENTRY_BYTES: usize = 20;

const BLOCK_BITS: u32 = 40;
const BLOCK_MASK: u64 = (1 << BLOCK_BITS) - 1;
/// Where the byte of kind or flags lies in a key's word.
pub(super) const TOP_SHIFT: u32 = 56;
/// Volume and block of a key's word.
pub(super) const KEY_MASK: u64 = (1 << TOP_SHIFT) - 1;
/// In place of an old slot: a cache has fewer slots than this.
const NO_SLOT: u32 = u32::MAX;

const MAP_CLEAN: u64 = 1;
const MAP_DIRTY: u64 = 2;
const FREE: u64 = 3;
const CLEAN: u64 = 4;
const MARK: u64 = 5;
const UNMARK: u64 = 6;
/// A dirty `Map` with an epoch: this and its six bits.
const MAP_IN_EPOCH: u64 = 64;
/// A `Write`: this and the kind of the dirty `Map`.
const WITH_DATA: u64 = 128;

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

    pub(super) fn encode(&self, into: &mut [u8]) {
        let (kind, key, middle, last) = match *self {
            Self::Map { block, dirty, epoch, slot, crc, old } => {
                let kind = if dirty { kind_of_dirty(epoch) } else { MAP_CLEAN };
                (kind, block.pack(), u64::from(crc) << 32 | u64::from(slot), old.unwrap_or(NO_SLOT))
            }
            Self::Write { block, epoch, slot, crc, old } => {
                let kind = WITH_DATA | kind_of_dirty(epoch);
                (kind, block.pack(), u64::from(crc) << 32 | u64::from(slot), old.unwrap_or(NO_SLOT))
            }
            Self::Free { slot } => (FREE, 0, u64::from(slot), 0),
            Self::Clean { slot } => (CLEAN, 0, u64::from(slot), 0),
            Self::Mark { region, since } => (MARK, region.pack(), since, 0),
            Self::Unmark { region } => (UNMARK, region.pack(), 0, 0),
        };
        put(into, 0, (kind << TOP_SHIFT | key).to_le_bytes());
        put(into, 8, middle.to_le_bytes());
        put(into, 16, last.to_le_bytes());
    }

    /// `None` if no entry is written so: there is one way to write each, and bytes that mean nothing are zero.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (word, middle, last) = (u64_at(bytes, 0), u64_at(bytes, 8), u32_at(bytes, 16));
        let (low, high) = (middle as u32, (middle >> 32) as u32);
        let rest = (word & KEY_MASK, high, last);
        let (block, old) = (BlockId::unpack(word), (last != NO_SLOT).then_some(last));
        let map = |dirty, epoch| Self::Map { block, dirty, epoch, slot: low, crc: high, old };
        Some(match (word >> TOP_SHIFT, rest) {
            (MAP_CLEAN, _) => map(false, Epoch::NONE),
            (MAP_DIRTY, _) => map(true, Epoch::NONE),
            (kind, _) if kind > WITH_DATA => {
                Self::Write { block, epoch: epoch_of_dirty(kind - WITH_DATA)?, slot: low, crc: high, old }
            }
            (kind, _) if kind > MAP_IN_EPOCH => map(true, epoch_of_dirty(kind)?),
            (FREE, (0, 0, 0)) => Self::Free { slot: low },
            (CLEAN, (0, 0, 0)) => Self::Clean { slot: low },
            (MARK, (_, _, 0)) => Self::Mark { region: Region::unpack(word), since: middle },
            (UNMARK, (_, 0, 0)) if low == 0 => Self::Unmark { region: Region::unpack(word) },
            _ => return None,
        })
    }
}

fn kind_of_dirty(epoch: Epoch) -> u64 {
    if epoch.is_some() { MAP_IN_EPOCH | u64::from(epoch.bits()) } else { MAP_DIRTY }
}

/// Of the kind of a dirty `Map`.
fn epoch_of_dirty(kind: u64) -> Option<Epoch> {
    match kind {
        MAP_DIRTY => Some(Epoch::NONE),
        kind if kind > MAP_IN_EPOCH => Epoch::from_bits((kind - MAP_IN_EPOCH) as u8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_decodes_is_written_the_same_again(bytes in any::<[u8; ENTRY_BYTES]>(), kind in prop_oneof![0u8..8, any::<u8>()]) {
            let mut bytes = bytes;
            bytes[7] = kind;
            if (3..64).contains(&kind) { bytes[16..].fill(0); }
            if let Some(entry) = Entry::decode(&bytes) {
                let mut again = [0xff; ENTRY_BYTES];
                entry.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
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
            let mut bytes = [0xff; ENTRY_BYTES];
            entry.encode(&mut bytes);
            assert_eq!(Entry::decode(&bytes), Some(entry));
        }
        assert_eq!(Entry::decode(&[0; ENTRY_BYTES]), None);
    }
}
