//! Whether a slot holds the data that metadata tell of.

use super::Medium;
use super::entry::BlockId;
use super::superblock::Superblock;
use super::volumes::VolumeTable;

/// What a slot should hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub block: BlockId,
    pub slot: u32,
    /// Of the part of the block that lies within its volume.
    pub crc: u32,
}

impl Written {
    /// True if the slot holds it. A slot that cannot be read, not even at the second try, does not. `None` for a slot that does not exist and for a block of no volume, or past the end of its volume.
    pub fn is_there(
        &self,
        medium: &mut impl Medium,
        superblock: &Superblock,
        volumes: &VolumeTable,
    ) -> Option<bool> {
        let (layout, Self { block, slot, crc }) = (superblock.layout, *self);
        let block_bytes = u64::from(layout.block_bytes());
        let left = volumes.get(block.volume)?.bytes.saturating_sub(block.block.saturating_mul(block_bytes));
        let covered = left.min(block_bytes) as usize;
        if slot >= layout.slots() || covered == 0 {
            return None;
        }
        let mut data = vec![0; covered.next_multiple_of(layout.sector_bytes())];
        let is_read = (0..2).any(|_| medium.read(layout.slot_offset(slot), &mut data).is_ok());
        Some(is_read && superblock.salt().block(block, &data[..covered]) == crc)
    }
}
