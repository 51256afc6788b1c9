//! Ways to break a stopped cache on purpose, by name: for tests, and to try what the other tools say.

use super::entry::{BlockId, Entry};
use super::epoch::Epoch;
use super::page::PAGE_BYTES;
use super::recover::{RecoverError, Recovered, Session, SlotState, choose, record_offsets, recover};
use super::superblock::SUPERBLOCK_BYTES;
use super::{MediumError, MediumMut};

/// One way to break a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Flip one bit of the device, counted from its first byte's lowest.
    Bit(u64),
    /// Overwrite a copy (0 or 1) of the superblock.
    Superblock(u8),
    /// Overwrite both.
    Superblocks,
    /// Overwrite a copy (0 or 1) of the volume table.
    VolumeTable(u8),
    /// Overwrite both.
    VolumeTables,
    /// Overwrite a page's newer copy: what is left is too old, or missing.
    PageNewest(u32),
    /// Overwrite a page's older copy.
    PageOldest(u32),
    /// Overwrite both copies of a page.
    Page(u32),
    /// Overwrite a record of the journal, by its sequence, with all drafts of it.
    Record(u64),
    /// Flip a bit of the data of a slot.
    Data(u32),
    /// Add a record that puts a block of this slot into a free slot as well, dirty.
    Duplicate(u32),
    /// Add a record of a block past the end of its volume.
    BeyondEnd,
    /// Add a record that names a slot that does not exist.
    NoSuchSlot,
    /// Add a record that cleans what is free.
    Misfit,
}

/// What something is overwritten with.
const RUBBISH: u8 = 0xdb;

impl Harm {
    /// All names, and what the number that goes with each is (empty if there is none).
    pub const NAMES: [(&str, &str); 14] = [
        ("bit", "bit"),
        ("superblock", "copy"),
        ("superblocks", ""),
        ("volume-table", "copy"),
        ("volume-tables", ""),
        ("page-newest", "page"),
        ("page-oldest", "page"),
        ("page", "page"),
        ("record", "sequence"),
        ("data", "slot"),
        ("duplicate", "slot"),
        ("beyond-end", ""),
        ("no-such-slot", ""),
        ("misfit", ""),
    ];

    /// The harm of this name; `None` if there is none, or the number is out of its range.
    pub fn named(name: &str, number: u64) -> Option<Self> {
        let copy = || u8::try_from(number).ok().filter(|&copy| copy < 2);
        let short = || u32::try_from(number).ok();
        Some(match name {
            "bit" => Self::Bit(number),
            "superblock" => Self::Superblock(copy()?),
            "superblocks" => Self::Superblocks,
            "volume-table" => Self::VolumeTable(copy()?),
            "volume-tables" => Self::VolumeTables,
            "page-newest" => Self::PageNewest(short()?),
            "page-oldest" => Self::PageOldest(short()?),
            "page" => Self::Page(short()?),
            "record" => Self::Record(number),
            "data" => Self::Data(short()?),
            "duplicate" => Self::Duplicate(short()?),
            "beyond-end" => Self::BeyondEnd,
            "no-such-slot" => Self::NoSuchSlot,
            "misfit" => Self::Misfit,
            _ => return None,
        })
    }

    /// Do it.
    pub fn inflict(self, medium: &mut impl MediumMut) -> Result<(), RecoverError> {
        match self {
            Self::Bit(bit) => flip(medium, bit),
            Self::Superblock(copy) => {
                rubbish(medium, u64::from(copy) * SUPERBLOCK_BYTES as u64, SUPERBLOCK_BYTES)
            }
            Self::Superblocks => rubbish(medium, 0, 2 * SUPERBLOCK_BYTES),
            _ => self.inflict_inside(medium),
        }
    }

    fn inflict_inside(self, medium: &mut impl MediumMut) -> Result<(), RecoverError> {
        let superblock = choose(medium)?.0;
        let layout = superblock.layout;
        match self {
            Self::VolumeTable(copy) => rubbish(medium, layout.volume_table_offset(copy), 4096),
            Self::VolumeTables => {
                rubbish(medium, layout.volume_table_offset(0), 4096)?;
                rubbish(medium, layout.volume_table_offset(1), 4096)
            }
            Self::Record(sequence) => record_offsets(medium, &superblock, sequence)
                .into_iter()
                .try_for_each(|offset| rubbish(medium, offset, layout.sector_bytes())),
            Self::Data(slot) if slot < layout.slots() => flip(medium, layout.slot_offset(slot) * 8),
            Self::Data(_) => Ok(()),
            _ => self.inflict_state(medium),
        }
    }

    /// What needs to know what the cache holds.
    fn inflict_state(self, medium: &mut impl MediumMut) -> Result<(), RecoverError> {
        let recovered = recover(medium)?;
        let layout = recovered.superblock().layout;
        let newest = |page: u32| recovered.pages().get(page as usize).map(|state| state.copy);
        let both = |page: u32| newest(page).map(|newest| [newest, 1 - newest]);
        let copies = match self {
            Self::PageNewest(page) => newest(page).map(|copy| (page, vec![copy])),
            Self::PageOldest(page) => newest(page).map(|copy| (page, vec![1 - copy])),
            Self::Page(page) => both(page).map(|copies| (page, copies.to_vec())),
            _ => return add_entry(medium, &recovered, self.entry(&recovered)),
        };
        let (page, copies) = copies.unwrap_or_default();
        copies.into_iter().try_for_each(|copy| rubbish(medium, layout.page_offset(page, copy), PAGE_BYTES))
    }

    fn entry(self, recovered: &Recovered) -> Option<Entry> {
        let free = recovered.slots().find(|(_, state)| *state == SlotState::Free)?.0;
        let map =
            |block, slot| Entry::Map { block, dirty: true, epoch: Epoch::NONE, slot, crc: 0, old: None };
        let (_, used) = recovered.blocks().next()?;
        match self {
            Self::Duplicate(slot) => match recovered.slots().nth(slot as usize)?.1 {
                SlotState::Used(contents) => Some(map(contents.block, free)),
                _ => None,
            },
            Self::BeyondEnd => Some(map(BlockId { block: BlockId::BLOCK_MAX, ..used.block }, free)),
            Self::NoSuchSlot => Some(Entry::Free { slot: u32::MAX }),
            _ => Some(Entry::Clean { slot: free }),
        }
    }
}

/// A record that no correct writer would have made.
fn add_entry(
    medium: &mut impl MediumMut,
    recovered: &Recovered,
    entry: Option<Entry>,
) -> Result<(), RecoverError> {
    let Session { first, mut journal, .. } = recovered.open()?;
    let Some(entry) = entry.filter(|&entry| journal.push(entry).is_ok()) else { return Ok(()) };
    debug_assert!(!journal.is_sealed(), "{entry:?} was pushed");
    for piece in first.into_iter().chain(journal.seal()) {
        medium.write(piece.offset, &piece.bytes)?;
    }
    Ok(medium.flush()?)
}

fn rubbish(medium: &mut impl MediumMut, offset: u64, len: usize) -> Result<(), RecoverError> {
    medium.write(offset, &vec![RUBBISH; len])?;
    Ok(medium.flush()?)
}

/// The sectors of 4 KiB that it reads and writes suit every device.
fn flip(medium: &mut impl MediumMut, bit: u64) -> Result<(), RecoverError> {
    let byte = bit / 8;
    let offset = byte - byte % 4096;
    if offset + 4096 > medium.bytes() {
        let reason = "there is no such bit".into();
        return Err(MediumError { offset: byte, reason }.into());
    }
    let mut sector = vec![0; 4096];
    medium.read(offset, &mut sector)?;
    sector[(byte - offset) as usize] ^= 1 << (bit % 8);
    medium.write(offset, &sector)?;
    Ok(medium.flush()?)
}
