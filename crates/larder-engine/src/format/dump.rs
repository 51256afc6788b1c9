//! A cache's metadata as a plain structure, to be looked at, kept, or made into a cache again.

use super::MediumError;
use super::checksum::Uuid;
use super::entry::BlockId;
use super::epoch::Epoch;
use super::layout::{Layout, LayoutError, Shape};
use super::page::Contents;
use super::recover::Recovered;
use super::superblock::{OLDEST, Superblock, VERSION};
use super::volumes::{Volume, VolumeTableError};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a cache holds, without the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// Version of the format.
    pub version: u32,
    /// The cache's name.
    pub uuid: String,
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Bytes in a sector.
    pub sector_bytes: u32,
    /// Slots.
    pub slots: u32,
    /// Records of the journal's ring.
    pub journal_records: u64,
    /// Bytes of one copy of the volume table.
    pub volume_table_bytes: u32,
    /// Blocks in a region.
    pub region_blocks: u32,
    /// True if some block may be dirty.
    pub may_hold_dirty: bool,
    /// By rising number.
    pub volumes: Vec<DumpVolume>,
    /// The blocks that can be used, by rising slot.
    pub blocks: Vec<DumpBlock>,
    /// What was wrong, in words; not needed to restore.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpVolume {
    /// Its number.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// What its backing is.
    pub backing: String,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpBlock {
    /// Where it is.
    pub slot: u32,
    /// Its volume's number.
    pub volume: u16,
    /// Its number within the volume.
    pub block: u64,
    /// True if the backing does not have this data.
    pub dirty: bool,
    /// Of a dirty block of a volume with ordered write-back, 1 to 63: between which flushes it was written. 0 for none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub epoch: u8,
    /// The salted checksum of its data.
    pub crc: u32,
}

/// A dump cannot be made into a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// It is of another version.
    #[error("the dump is of format {0}, and this is format {VERSION}")]
    Version(u32),
    /// A UUID that is none.
    #[error("{uuid}: {reason}")]
    Uuid {
        /// What stands there.
        uuid: String,
        /// Why it is none.
        reason: &'static str,
    },
    /// Sizes that make no cache.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Volumes that make no table.
    #[error(transparent)]
    Volumes(#[from] VolumeTableError),
    /// Regions that are no power of two.
    #[error("regions of {0} blocks: it must be a power of two")]
    Region(u32),
    /// A slot out of range, or not above the one before it.
    #[error("slot {0} does not exist, or is not above the one before it")]
    Slot(u32),
    /// A block number of more than 40 bits.
    #[error("block {0} is beyond what a volume can have")]
    Block(u64),
    /// An epoch that is none, or of a block that is clean.
    #[error("the block in slot {0} has an epoch above 63, or has one and is clean")]
    Epoch(u32),
    /// The device failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
}

impl Dump {
    /// What can be used of a cache, and what is wrong with it.
    pub fn new(recovered: &Recovered) -> Self {
        let superblock = recovered.superblock();
        let shape = superblock.layout.shape();
        let block = |(slot, contents): (u32, Contents)| {
            let Contents { block: BlockId { volume, block }, dirty, epoch, crc } = contents;
            DumpBlock { slot, volume, block, dirty, epoch: epoch.bits(), crc }
        };
        Self {
            version: VERSION,
            uuid: superblock.uuid.to_string(),
            block_bytes: shape.block_bytes,
            sector_bytes: shape.sector_bytes,
            slots: shape.slots,
            journal_records: shape.records,
            volume_table_bytes: shape.volume_table_bytes,
            region_blocks: superblock.region_blocks,
            may_hold_dirty: superblock.may_hold_dirty,
            volumes: recovered.volumes().volumes.iter().map(DumpVolume::new).collect(),
            blocks: recovered.blocks().map(block).collect(),
            findings: recovered.findings().iter().map(ToString::to_string).collect(),
        }
    }

    /// What a cache is made from: superblock, volumes, blocks by slot.
    #[expect(clippy::type_complexity, reason = "taken apart at once, in one place")]
    pub(super) fn decode(&self) -> Result<(Superblock, Vec<Volume>, Vec<(u32, Contents)>), DumpError> {
        if !(OLDEST..=VERSION).contains(&self.version) {
            return Err(DumpError::Version(self.version));
        }
        if !self.region_blocks.is_power_of_two() {
            return Err(DumpError::Region(self.region_blocks));
        }
        let layout = Layout::new(Shape {
            block_bytes: self.block_bytes,
            sector_bytes: self.sector_bytes,
            slots: self.slots,
            records: self.journal_records,
            volume_table_bytes: self.volume_table_bytes,
        })?;
        let dirty = self.may_hold_dirty || self.blocks.iter().any(|block| block.dirty);
        let fresh = Superblock::new(uuid(&self.uuid)?, layout);
        let superblock = Superblock { region_blocks: self.region_blocks, may_hold_dirty: dirty, ..fresh };
        let volumes = self.volumes.iter().map(DumpVolume::decode).collect::<Result<_, _>>()?;
        Ok((superblock, volumes, self.decode_blocks()?))
    }

    fn decode_blocks(&self) -> Result<Vec<(u32, Contents)>, DumpError> {
        let mut least = 0;
        let decode = |one: &DumpBlock| {
            if one.slot < least || one.slot >= self.slots {
                return Err(DumpError::Slot(one.slot));
            }
            if one.block > BlockId::BLOCK_MAX {
                return Err(DumpError::Block(one.block));
            }
            // Below the number of slots.
            least = one.slot + 1;
            let block = BlockId { volume: one.volume, block: one.block };
            let epoch = Epoch::from_bits(one.epoch).filter(|epoch| one.dirty || !epoch.is_some());
            let epoch = epoch.ok_or(DumpError::Epoch(one.slot))?;
            Ok((one.slot, Contents { block, dirty: one.dirty, epoch, crc: one.crc }))
        };
        self.blocks.iter().map(decode).collect()
    }
}

impl DumpVolume {
    fn new(volume: &Volume) -> Self {
        let Volume { id, name, uuid, bytes, identity } = volume.clone();
        Self { id, name, uuid: uuid.to_string(), bytes, backing: identity }
    }

    fn decode(&self) -> Result<Volume, DumpError> {
        let Self { id, name, bytes, backing: identity, .. } = self.clone();
        Ok(Volume { id, name, uuid: uuid(&self.uuid)?, bytes, identity })
    }
}

fn is_none(epoch: &u8) -> bool {
    *epoch == 0
}

fn uuid(words: &str) -> Result<Uuid, DumpError> {
    Uuid::from_str(words).map_err(|reason| DumpError::Uuid { uuid: words.into(), reason })
}
