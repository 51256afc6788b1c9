//! The cache's format on the SSD: what survives a stop, a crash and a bad sector. `docs/FORMAT.md` gives the layout
//! and the proofs.
//!
//! Everything here is a function of bytes: no device, no clock. Whoever has a device gives it as a [`Medium`] and
//! carries out the writes in the order that is asked for. The medium may tear, lose or keep any sector until a flush
//! ends, so everything carries a CRC-32C, and whatever is replaced has two copies.
//!
//! * **Places**: [`Layout`] says where each region lies; [`Superblock`] names it, in two copies.
//! * **State**: the slot table (`page`, in two copies) and the volume table ([`VolumeTable`], likewise) say what is
//!   where.
//! * **Change**: [`JournalWriter`] makes records of [`Entry`]s in a ring; [`TableWriter`] brings the slot table after
//!   it, page by page, so that the ring can go on.
//! * **Start**: [`recover`] puts both together and says what is damaged, as [`Finding`]s.
//! * **Tools**: [`check`], [`Dump`] and [`restore`], [`repair`], and [`Harm`], which breaks images for tests.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod build;
mod bytes;
mod check;
mod checksum;
mod data;
mod dump;
mod entry;
mod epoch;
mod finding;
mod harm;
mod journal;
mod layout;
mod page;
mod record;
mod recover;
mod repair;
mod superblock;
mod table;
mod volumes;

pub use build::{format, restore};
pub use check::check;
pub use checksum::{Salt, Uuid, crc32c};
pub use dump::{Dump, DumpBlock, DumpError, DumpVolume};
pub use entry::{BlockId, Entry, Region};
pub use epoch::{Epoch, PERIOD, SPAN};
pub use finding::{Finding, Severity};
pub use harm::Harm;
pub use journal::{JournalError, JournalWriter, MarkState, Piece};
pub use layout::{Layout, LayoutError, Shape, spare_slots};
pub use page::{Contents, PAGE_BYTES, PAGE_SLOTS};
pub use record::Header;
#[cfg(feature = "planted")]
pub(crate) use recover::recover_with;
pub use recover::{PageState, RecoverError, Recovered, Session, SlotState, Version, recover, recover_after};
pub use repair::{Lost, Repaired, repair, repair_after};
pub use superblock::{SUPERBLOCK_BYTES, Superblock, Unusable, VERSION};
pub use table::{PageWrite, TableWriter, Ticket};
pub use volumes::{Volume, VolumeTable, VolumeTableError};

/// Bytes read or written at a time by what goes through whole regions.
const STEP_BYTES: usize = 1 << 20;

/// Sequences and generations stay below this, so that arithmetic on them cannot overflow: at a million records a
/// second it lasts for 146,000 years.
const SEQUENCE_MAX: u64 = 1 << 62;

/// Records of one session are fewer than this: at a million a second it lasts for two years. Repairs number their
/// pages that far ahead, so that those of one that was cut short are known.
const SESSION_RECORDS: u64 = 1 << 46;

/// The device could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cache device failed at byte {offset}: {reason}")]
pub struct MediumError {
    /// Where, in bytes from the start of the device.
    pub offset: u64,
    /// What the device said.
    pub reason: String,
}

/// A cache device to read.
pub trait Medium {
    /// Its size in bytes.
    fn bytes(&self) -> u64;

    /// Fill `into` from `offset`. Both are multiples of the sector. After an error `into` may hold anything.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError>;
}

/// A cache device to write.
pub trait MediumMut: Medium {
    /// Write `bytes` at `offset`; both are multiples of the sector. Durable only after [`MediumMut::flush`].
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError>;

    /// Make all earlier writes durable.
    fn flush(&mut self) -> Result<(), MediumError>;

    /// Write zeroes. A device that can do it without moving data should.
    fn zero(&mut self, offset: u64, bytes: u64) -> Result<(), MediumError> {
        let zeroes = vec![0; STEP_BYTES];
        for start in (offset..offset + bytes).step_by(STEP_BYTES) {
            let len = (offset + bytes - start).min(STEP_BYTES as u64) as usize;
            self.write(start, &zeroes[..len])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
