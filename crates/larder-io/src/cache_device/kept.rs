//! A cache that is kept over stops and crashes: what a start may do with what it finds, and making one.

use super::medium::CacheMedium;
use super::{CacheError, CacheSpec, failed};
use crate::file::FileDevice;
use larder_engine::SessionMark;
use larder_engine::format::{
    self, Layout, LayoutError, RecoverError, Recovered, SlotState, Superblock, Uuid, recover, recover_after,
    repair, repair_after,
};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::time::Instant;

/// A name that nothing else has.
pub fn new_uuid() -> Uuid {
    // Each has keys of its own, drawn from the system's.
    let halves = [(); 2].map(|()| RandomState::new().hash_one(0).to_le_bytes());
    let mut bytes: [u8; 16] = std::array::from_fn(|at| halves[at / 8][at % 8]);
    // Version 4 of RFC 9562: random.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid(bytes)
}

/// What a device holds that may be gone on with; or given up, if no block in it is dirty.
pub(super) struct Sound {
    pub recovered: Box<Recovered>,
    /// Clean blocks are lost, and a repair has to say so before anything is written.
    pub repair_first: bool,
    /// Blocks that their backings do not have.
    dirty: u64,
}

impl Sound {
    /// Read all of a cache's metadata, and refuse what may have lost data that no backing has.
    pub fn read(device: &FileDevice) -> Result<Self, CacheError> {
        let path = device.path();
        let recovered = Box::new(recover_from(device, None)?);
        if recovered.superblock().needs_check {
            return Err(CacheError::NeedsCheck { path: path.into() });
        }
        let repair_first = match recovered.open() {
            Ok(_) => false,
            Err(RecoverError::RepairFirst(_)) => true,
            Err(why) => return Err(damaged(path, &why)),
        };
        let dirty = dirty(&recovered);
        Ok(Self { recovered, repair_first, dirty })
    }

    /// Refuse to give up what no backing has.
    pub fn give_up(&self, path: &Path) -> Result<(), CacheError> {
        match self.dirty {
            0 => Ok(()),
            blocks => Err(CacheError::Dirty { path: path.into(), blocks }),
        }
    }

    /// True if it is a cache as configured, on a device that can be read and written in its sectors.
    pub fn is_as_configured(&self, spec: &CacheSpec, device: &FileDevice) -> bool {
        is_as_configured(&self.recovered, spec, device)
    }

    /// Blocks that are cached.
    pub fn blocks(&self) -> usize {
        self.recovered.blocks().count()
    }
}

/// True if what was recovered is a cache as configured, on a device that can be read and written in its sectors.
pub(super) fn is_as_configured(recovered: &Recovered, spec: &CacheSpec, device: &FileDevice) -> bool {
    let made = recovered.superblock().layout.shape();
    let wanted = layout(spec, made.sector_bytes, Some(device.bytes()));
    // Earlier versions made as many slots as blocks.
    let without_spare = spec.size / u64::from(made.block_bytes) == u64::from(made.slots);
    let same = |wanted: Layout| {
        (wanted.slots() == made.slots || without_spare) && wanted.block_bytes() == made.block_bytes
    };
    // One that is smaller may be as large as it can be, and the file can grow.
    device.bytes() >= spec.size && wanted.is_ok_and(same) && device.align() <= made.sector_bytes
}

/// Where everything lies on a device of `room` bytes, or on one that may be as large as it takes.
pub(super) fn layout(spec: &CacheSpec, sector: u32, room: Option<u64>) -> Result<Layout, CacheError> {
    let made = match Layout::for_data_bytes(spec.block_bytes, sector, spec.size) {
        Ok(layout) if room.is_some_and(|room| layout.device_bytes() > room) => {
            Layout::for_device_bytes(spec.block_bytes, sector, room.unwrap_or(0))
        }
        made => made,
    };
    made.map_err(|error| {
        let blocks = match error {
            LayoutError::Slots(slots) => slots,
            _ => spec.size.checked_div(u64::from(spec.block_bytes)).unwrap_or(0),
        };
        CacheError::BlockCount { path: spec.path.clone(), blocks, block_bytes: spec.block_bytes }
    })
}

/// Make an empty cache, and find it so.
pub(super) fn make(device: &FileDevice, layout: Layout) -> Result<Recovered, CacheError> {
    let path = device.path();
    let mut medium = medium(device)?;
    let superblock = Superblock::new(new_uuid(), layout);
    let made = format::format(&mut medium, &superblock);
    made.map_err(|error| failed(path, "format", io::Error::other(error.to_string())))?;
    recover(&mut medium).map_err(|why| damaged(path, &why))
}

/// Give up clean blocks of which nothing certain is known, so that the rest can be gone on with. `mark` is what is known to have been durable.
pub(super) fn mend(device: &FileDevice, mark: Option<SessionMark>) -> Result<Recovered, CacheError> {
    let path = device.path();
    let mut medium = medium(device)?;
    let repaired = match mark {
        Some(mark) => repair_after(&mut medium, mark),
        None => repair(&mut medium),
    };
    let repaired = repaired.map_err(|why| damaged(path, &why))?;
    for finding in &repaired.findings {
        tracing::warn!(cache = %path.display(), "repaired: {finding}");
    }
    let (kept, dropped) = (repaired.kept, repaired.clean_dropped);
    tracing::warn!(cache = %path.display(), kept, dropped, "repaired: what was lost is on the backings");
    recover(&mut medium).map_err(|why| damaged(path, &why))
}

/// `mark` is what is known to have been durable.
pub(super) fn recover_from(device: &FileDevice, mark: Option<SessionMark>) -> Result<Recovered, CacheError> {
    let (path, began) = (device.path(), Instant::now());
    let mut medium = medium(device)?;
    let recovered = match mark {
        Some(mark) => recover_after(&mut medium, mark),
        None => recover(&mut medium),
    };
    let recovered = recovered.map_err(|why| damaged(path, &why))?;
    let stopped = if recovered.superblock().clean_stop { "a clean stop" } else { "a crash" };
    let (blocks, seconds) = (recovered.blocks().count(), began.elapsed().as_secs_f64());
    tracing::info!(cache = %path.display(), "recovered {blocks} blocks after {stopped}, in {seconds:.1} s");
    for finding in recovered.findings() {
        tracing::warn!(cache = %path.display(), "found: {finding}");
    }
    Ok(recovered)
}

fn dirty(recovered: &Recovered) -> u64 {
    let is_dirty = |state| match state {
        SlotState::Used(contents) | SlotState::Dropped(contents) => contents.dirty,
        SlotState::Free | SlotState::Unknown => false,
    };
    recovered.slots().filter(|(_, state)| is_dirty(*state)).count() as u64
}

pub(super) fn medium(device: &FileDevice) -> Result<CacheMedium<'_>, CacheError> {
    CacheMedium::new(device).map_err(|source| failed(device.path(), "read", source))
}

fn damaged(path: &Path, why: &RecoverError) -> CacheError {
    CacheError::Damaged { path: path.into(), why: why.to_string() }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
