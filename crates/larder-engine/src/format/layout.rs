//! Where each region of the cache device lies.
//!
//! ```text
//! 0      4096   8192
//! | sb A | sb B | volumes 0 | volumes 1 | slots 0 | slots 1 | journal | … | data: slot 0, slot 1, … |
//! ```
//!
//! Regions before the data begin at multiples of 4 KiB, the data at a multiple of the block. Metadata takes 37 bytes
//! for a slot: twice 12 of slot table, and as much journal as brings the table after it once per turn of the ring.

use super::page::{PAGE_BYTES, PAGE_SLOTS, SLOT_BYTES};
use super::record::record_entries;
use super::superblock::SUPERBLOCK_BYTES;
use super::{SEQUENCE_MAX, entry::ENTRY_BYTES};
use std::ops::Range;

/// Records that a journal has at least, when nothing else is asked for.
const RECORDS_USUAL_MIN: u64 = 128;
/// Records that a journal must have: a few commits, and room to bring one page after them.
const RECORDS_MIN: u64 = 32;
/// Bytes of one copy of the volume table: about a thousandth of the data, between these.
const VOLUME_TABLE_BYTES: (u64, u64) = (16 << 10, 1 << 20);

/// Slots beside those of so many blocks. One that is freed can be used when the journal says so, a few milliseconds later: what enters meanwhile takes one of these,
/// and the blocks that it may hold are in the cache.
pub fn spare_slots(blocks: u64) -> u32 {
    // No more than 256.
    (blocks / 64).min(256).max((blocks / 16).min(32)) as u32
}

/// What decides where everything lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes in a block: a power of two from 4 KiB to 128 KiB.
    pub block_bytes: u32,
    /// Bytes in a sector: 512 or 4096.
    pub sector_bytes: u32,
    /// Slots, at least one.
    pub slots: u32,
    /// Records (of one sector each) that the journal's ring holds.
    pub records: u64,
    /// Bytes of one copy of the volume table: a multiple of 4096.
    pub volume_table_bytes: u32,
}

/// There is no such cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The block size is not possible.
    #[error("a block of {0} bytes: it must be a power of two from 4096 to 131072")]
    Block(u32),
    /// The sector size is not possible.
    #[error("a sector of {0} bytes: it must be 512 or 4096")]
    Sector(u32),
    /// Too little or too much room.
    #[error("room for {0} blocks: a cache has from 1 to {max}", max = u32::MAX)]
    Slots(u64),
    /// The journal is too small or too large.
    #[error("a journal of {0} records")]
    Records(u64),
    /// The volume table's size is not possible.
    #[error("a volume table of {0} bytes: it must be a multiple of 4096 up to 64 MiB, and no less than 4096")]
    VolumeTable(u32),
}

/// The regions of a cache device; offsets are in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    volume_table: u64,
    slot_table: u64,
    journal: u64,
    data: u64,
    end: u64,
}

impl Layout {
    /// The layout of this shape.
    pub fn new(shape: Shape) -> Result<Self, LayoutError> {
        if !shape.block_bytes.is_power_of_two() || !(4096..=131_072).contains(&shape.block_bytes) {
            return Err(LayoutError::Block(shape.block_bytes));
        }
        if !matches!(shape.sector_bytes, 512 | 4096) {
            return Err(LayoutError::Sector(shape.sector_bytes));
        }
        if shape.slots == 0 {
            return Err(LayoutError::Slots(0));
        }
        if !(RECORDS_MIN..=1 << 40).contains(&shape.records) {
            return Err(LayoutError::Records(shape.records));
        }
        let table = shape.volume_table_bytes;
        if !table.is_multiple_of(4096) || !(4096..=64 << 20).contains(&table) {
            return Err(LayoutError::VolumeTable(table));
        }
        Ok(Self::place(shape))
    }

    /// No sum here overflows: each part is below 2^55.
    fn place(shape: Shape) -> Self {
        let volume_table = 2 * SUPERBLOCK_BYTES as u64;
        let slot_table = volume_table + 2 * u64::from(shape.volume_table_bytes);
        let journal = slot_table + 2 * pages(shape.slots) * PAGE_BYTES as u64;
        let block = u64::from(shape.block_bytes);
        let data = (journal + shape.records * u64::from(shape.sector_bytes)).next_multiple_of(block);
        let end = data + u64::from(shape.slots) * block;
        Self { shape, volume_table, slot_table, journal, data, end }
    }

    /// The usual layout for `slots` blocks.
    pub fn for_slots(block_bytes: u32, sector_bytes: u32, slots: u64) -> Result<Self, LayoutError> {
        let slots = u32::try_from(slots).map_err(|_| LayoutError::Slots(slots))?;
        let per_record = (record_entries(sector_bytes) * ENTRY_BYTES) as u64;
        let (least, most) = VOLUME_TABLE_BYTES;
        let volume_table = u64::from(slots) * u64::from(block_bytes) / 1024;
        Self::new(Shape {
            block_bytes,
            sector_bytes,
            slots,
            records: (u64::from(slots) * SLOT_BYTES as u64)
                .div_ceil(per_record.max(1))
                .max(RECORDS_USUAL_MIN),
            volume_table_bytes: volume_table.next_multiple_of(4096).clamp(least, most) as u32,
        })
    }

    /// The usual layout for this many bytes of data, rounded down to whole blocks, and a few slots to spare ([`spare_slots`]); the device must be
    /// larger ([`Layout::device_bytes`]).
    pub fn for_data_bytes(block_bytes: u32, sector_bytes: u32, data: u64) -> Result<Self, LayoutError> {
        let blocks = data / u64::from(block_bytes.max(1));
        Self::for_slots(block_bytes, sector_bytes, blocks + u64::from(spare_slots(blocks)))
    }

    /// Blocks that may be cached at a time, of the `data` bytes that are wanted: the other slots are to spare. A layout that was made with as many slots as blocks (by an
    /// earlier version) has none.
    pub fn blocks(&self, data: u64) -> u32 {
        let (slots, wanted) = (self.shape.slots, data / u64::from(self.shape.block_bytes));
        let most = match u64::from(slots) {
            all if all == wanted || all >= wanted + u64::from(spare_slots(wanted)) => wanted,
            all => wanted.min(all - u64::from(spare_slots(all))),
        };
        u32::try_from(most).unwrap_or(slots)
    }

    /// The largest usual layout that fits on a device of this many bytes.
    pub fn for_device_bytes(block_bytes: u32, sector_bytes: u32, device: u64) -> Result<Self, LayoutError> {
        let mut best = Self::for_slots(block_bytes, sector_bytes, 1)?;
        if best.end > device {
            return Err(LayoutError::Slots(0));
        }
        let (mut least, mut most) = (1, (device / u64::from(block_bytes)).min(u64::from(u32::MAX)));
        // Space needed rises with the slots: the most that fit is found by halving.
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            let tried = Self::for_slots(block_bytes, sector_bytes, middle)?;
            if tried.end <= device {
                (best, least) = (tried, middle);
            } else {
                most = middle - 1;
            }
        }
        Ok(best)
    }

    /// What it was computed from.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Slots.
    pub fn slots(&self) -> u32 {
        self.shape.slots
    }

    /// Bytes in a block.
    pub fn block_bytes(&self) -> u32 {
        self.shape.block_bytes
    }

    /// Bytes in a sector.
    pub fn sector_bytes(&self) -> usize {
        self.shape.sector_bytes as usize
    }

    /// Records that the journal's ring holds.
    pub fn records(&self) -> u64 {
        self.shape.records
    }

    /// Pages of one copy of the slot table.
    pub fn pages(&self) -> u32 {
        // At most 2^32 / 340.
        pages(self.shape.slots) as u32
    }

    /// Bytes that the device must have.
    pub fn device_bytes(&self) -> u64 {
        self.end
    }

    /// Where the metadata ends and the slots begin.
    pub fn data_offset(&self) -> u64 {
        self.data
    }

    /// Where a slot's data lies.
    pub fn slot_offset(&self, slot: u32) -> u64 {
        self.data + u64::from(slot) * u64::from(self.shape.block_bytes)
    }

    /// Where a page of a copy (0 or 1) of the slot table lies.
    pub fn page_offset(&self, page: u32, copy: u8) -> u64 {
        let before = u64::from(copy) * u64::from(self.pages()) + u64::from(page);
        self.slot_table + before * PAGE_BYTES as u64
    }

    /// The slots that a page is about.
    pub fn page_slots(&self, page: u32) -> Range<u32> {
        let start = page * PAGE_SLOTS as u32;
        start..start.saturating_add(PAGE_SLOTS as u32).min(self.shape.slots)
    }

    /// Where the record of this sequence lies.
    pub fn record_offset(&self, sequence: u64) -> u64 {
        self.journal + sequence % self.shape.records * u64::from(self.shape.sector_bytes)
    }

    /// Where a copy (0 or 1) of the volume table lies.
    pub fn volume_table_offset(&self, copy: u8) -> u64 {
        self.volume_table + u64::from(copy) * u64::from(self.shape.volume_table_bytes)
    }

    /// Bytes of one copy of the volume table.
    pub fn volume_table_bytes(&self) -> usize {
        self.shape.volume_table_bytes as usize
    }

    /// Volume tables, slot tables, journal, data and end, as a superblock keeps them.
    pub(super) fn offsets(&self) -> [u64; 5] {
        [self.volume_table, self.slot_table, self.journal, self.data, self.end]
    }

    /// A sequence that a record may have.
    pub(super) fn is_sequence(sequence: u64) -> bool {
        (1..SEQUENCE_MAX).contains(&sequence)
    }
}

fn pages(slots: u32) -> u64 {
    u64::from(slots).div_ceil(PAGE_SLOTS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn regions_follow_one_another_and_the_device_is_used_up(
            block in 12u32..=17, large_sector: bool, device in 1u64 << 18..1 << 46,
        ) {
            let (block, sector) = (1 << block, if large_sector { 4096 } else { 512 });
            let Ok(layout) = Layout::for_device_bytes(block, sector, device) else {
                prop_assert!(device < 1 << 21 || device / u64::from(block) >= 1 << 32);
                return Ok(());
            };
            prop_assert!(layout.device_bytes() <= device);
            let more = Layout::for_slots(block, sector, u64::from(layout.slots()) + 1);
            prop_assert!(more.is_err() || more.unwrap().device_bytes() > device);
            prop_assert_eq!(layout.volume_table_offset(1) + layout.volume_table_bytes() as u64, layout.page_offset(0, 0));
            prop_assert_eq!(layout.page_offset(layout.pages() - 1, 0) + 4096, layout.page_offset(0, 1));
            prop_assert_eq!(layout.page_offset(layout.pages() - 1, 1) + 4096, layout.record_offset(0));
            prop_assert!(layout.record_offset(layout.records() - 1) + u64::from(sector) <= layout.data_offset());
            prop_assert!(layout.data_offset().is_multiple_of(u64::from(block)));
            prop_assert_eq!(layout.slot_offset(layout.slots() - 1) + u64::from(block), layout.device_bytes());
            prop_assert_eq!(layout.page_slots(layout.pages() - 1).end, layout.slots());
        }
    }

    #[test]
    fn the_largest_cache_has_one_slot_less_than_two_to_the_32() {
        let layout = Layout::for_slots(131_072, 512, u64::from(u32::MAX)).unwrap();
        assert_eq!(layout.page_slots(layout.pages() - 1).end, u32::MAX);
        assert_eq!(Layout::for_slots(4096, 512, 1 << 32), Err(LayoutError::Slots(1 << 32)));
        assert_eq!(Layout::for_slots(4096, 512, 0), Err(LayoutError::Slots(0)));
        assert_eq!(Layout::for_slots(4096, 520, 1), Err(LayoutError::Sector(520)));
        assert_eq!(Layout::for_slots(5000, 512, 1), Err(LayoutError::Block(5000)));
    }

    #[test]
    fn a_few_slots_are_to_spare() {
        let spare = [0, 15, 16, 512, 2048, 8192, 16_384, 1 << 31].map(spare_slots);
        assert_eq!(spare, [0, 0, 1, 32, 32, 128, 256, 256]);
        for blocks in [1u64, 16, 700, 8192, 100_000] {
            let layout = Layout::for_data_bytes(4096, 512, blocks * 4096 + 17).unwrap();
            assert_eq!(u64::from(layout.slots()), blocks + u64::from(spare_slots(blocks)));
            assert_eq!(u64::from(layout.blocks(blocks * 4096 + 17)), blocks);
        }
        // What was made without any holds as many blocks as it has slots; what a device has no room for is not there.
        let layout = Layout::for_slots(4096, 512, 1000).unwrap();
        let held = [500u64, 999, 1000, 1001, 5000].map(|blocks| layout.blocks(blocks * 4096));
        assert_eq!(held, [500, 968, 1000, 968, 968]);
    }

    #[test]
    fn metadata_takes_37_bytes_for_a_slot() {
        let layout = Layout::for_data_bytes(4096, 512, 1 << 40).unwrap();
        assert_eq!(layout.slots(), (1 << 28) + 256);
        let per_slot = layout.data_offset() as f64 / f64::from(layout.slots());
        assert!((37.0..38.0).contains(&per_slot), "{per_slot}");
    }
}
