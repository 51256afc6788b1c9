//! A volume grows while it is in use, since its backing has.
//!
//! Where the cache is kept, the volume table with the new size is durable before the first request beyond the old end: recovery
//! finds no block that its table has no room for ([`super::retable`]). The last block of a volume is cached as far as the volume goes, so the old end has
//! to be one of a block.

use super::Planted;
use super::retable::Then;
use crate::{Engine, SECTOR_BYTES, VolumeId};

/// A volume cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrowError {
    /// It would not be larger, or not have whole sectors.
    #[error("it has {from} bytes, and its backing {to}: a volume in use only grows")]
    Size {
        /// What it has.
        from: u64,
        /// What was asked.
        to: u64,
    },
    /// It would be larger than an index can address.
    #[error("a volume has at most {0} bytes with blocks of this size")]
    TooLarge(u64),
    /// Its last block is not whole.
    #[error("its size of {bytes} bytes is no multiple of the cache's block of {block_bytes} bytes")]
    Uneven {
        /// What it has.
        bytes: u64,
        /// The cache's block.
        block_bytes: u32,
    },
    /// The new size cannot be written down.
    #[error("the cache device is out of use, and has to know the size")]
    NoCache,
    /// One at a time.
    #[error("another volume is growing, or joining")]
    Busy,
}

impl Engine {
    /// Bytes of a volume.
    pub fn volume_bytes(&self, volume: VolumeId) -> u64 {
        self.volume(volume).bytes
    }

    /// Let a volume have `bytes`, as its backing has already. [`Engine::volume_bytes`] tells when that is so; until then, and if the cache device fails
    /// meanwhile, it keeps its size. Follow with [`Engine::next_action`] until it is empty.
    ///
    /// # Errors
    /// Where it cannot be: nothing has changed then.
    pub fn grow_volume(&mut self, volume: VolumeId, bytes: u64) -> Result<(), GrowError> {
        let (from, block_bytes) = (self.volume(volume).bytes, self.config.block_bytes);
        if bytes <= from || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(GrowError::Size { from, to: bytes });
        }
        if bytes > self.volume_bytes_max() {
            return Err(GrowError::TooLarge(self.volume_bytes_max()));
        }
        if !from.is_multiple_of(u64::from(block_bytes)) {
            return Err(GrowError::Uneven { bytes: from, block_bytes });
        }
        let (failed, untold) = (self.cache_failed, self.is_planted(Planted::GrowthUntold));
        let Some(durable) = self.durable.as_mut().filter(|_| !untold) else {
            self.volume_mut(volume).bytes = bytes;
            return Ok(());
        };
        if failed || durable.is_latched() || durable.stopping {
            return Err(GrowError::NoCache);
        }
        if durable.retabling.is_some() {
            return Err(GrowError::Busy);
        }
        let mut table = durable.volume_table.clone();
        let number = durable.numbers[usize::from(volume.0)];
        table.volumes.iter_mut().filter(|known| known.id == number).for_each(|known| known.bytes = bytes);
        table.generation += 1;
        durable.retable(table, Then::Grown { volume, bytes });
        self.pump();
        Ok(())
    }
}
