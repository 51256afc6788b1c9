//! A cache that no daemon has open: reading and writing it as [`larder_engine::format`] asks, and saving its dirty blocks to
//! their backings.
//!
//! Everything here blocks, goes through the page cache, and takes the lock that a daemon takes ([`StoppedCache`]).

mod device;
mod disk;
mod ledger;
mod write_back;

pub use device::{Content, StoppedCache, StoppedError, content, is_clean, new_uuid};
pub use disk::{Disk, DiskError, OpenDisk};
pub use write_back::{Broken, Failed, FailedWhy, Saved, WriteBackError, dirty_blocks, write_back};

#[cfg(test)]
mod tests;
