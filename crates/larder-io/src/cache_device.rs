//! The SSD: a file or block device that is checked, locked, and marked as a Larder cache before the first block goes on it.
//!
//! Checking ([`CachePlan::check`], [`CachePlan::check_kept`]) and writing ([`CachePlan::format`]) are apart, so that a daemon can look
//! at everything that it was configured with before it writes anything. There are two kinds of cache. One keeps nothing: [`HEADER_BYTES`]
//! of header, then slots of one block each; it is cold at each start. One is kept over stops and crashes (`docs/FORMAT.md`): its metadata
//! comes before the slots, and a start goes on with what it recovers.

mod again;
mod error;
mod header;
mod kept;
mod medium;

use crate::file::{Access, Creation, FileDevice, OpenError};
use crate::{Buffer, sys};
use header::{Found, Header};
use kept::Sound;
use larder_engine::SessionMark;
use larder_engine::format::{Layout, Recovered};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use error::CacheError;
pub use header::HEADER_BYTES;
pub use kept::new_uuid;

/// What the cache is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// A block device or a file; a file is created where it is absent.
    pub path: PathBuf,
    /// Bytes of cached data: a file that is created is longer, by its header or its metadata.
    pub size: u64,
    /// Bytes in a block: a power of two, at least 4096.
    pub block_bytes: u32,
}

/// A cache device that passed every check; an existing one is locked. Nothing is written yet.
#[derive(Debug)]
pub struct CachePlan {
    spec: CacheSpec,
    room: Room,
    /// `None` where the file is to be created.
    device: Option<FileDevice>,
    next: Next,
}

/// What a device has room for.
#[derive(Clone, Copy, Debug)]
struct Room {
    slots: u32,
    /// That may be cached at a time.
    blocks: u32,
}

impl Room {
    /// That of a cache that keeps nothing: a slot is free as soon as its block leaves.
    fn cold(blocks: u32) -> Self {
        Self { slots: blocks, blocks }
    }

    fn kept(layout: &Layout, spec: &CacheSpec) -> Self {
        Self { slots: layout.slots(), blocks: layout.blocks(spec.size) }
    }
}

/// What is to be written before the cache can be used.
#[derive(Debug)]
enum Next {
    /// The header of a cache that keeps nothing.
    Header,
    /// An empty cache that is kept. A file of ours may grow.
    Make { may_grow: bool },
    /// Nothing: it goes on with this.
    GoOn(Box<Recovered>),
    /// A repair that gives up clean blocks.
    Mend(Box<Recovered>),
    /// A repair that gives up all clean blocks; of this session it is known what was durable.
    Distrust(Box<Recovered>, SessionMark),
}

impl CachePlan {
    /// Look at what is there, for a cache that keeps nothing.
    pub fn check(spec: CacheSpec) -> Result<Self, CacheError> {
        Self::check_for(spec, false)
    }

    /// Look at what is there, for a cache that is kept: what one holds already is read, and found sound or refused.
    pub fn check_kept(spec: CacheSpec) -> Result<Self, CacheError> {
        Self::check_for(spec, true)
    }

    fn check_for(spec: CacheSpec, keep: bool) -> Result<Self, CacheError> {
        if spec.path.symlink_metadata().is_ok_and(|there| !there.file_type().is_symlink())
            || spec.path.exists()
        {
            Self::check_existing(spec, keep)
        } else {
            Self::check_new(spec, keep)
        }
    }

    fn check_existing(spec: CacheSpec, keep: bool) -> Result<Self, CacheError> {
        let device = match FileDevice::open(&spec.path, Access::Exclusive, Creation::Existing) {
            Err(OpenError::Busy { path }) => return Err(CacheError::InUse { path }),
            opened => opened?,
        };
        lock(device.file(), &spec.path)?;
        let next = match header::find(device.file()).map_err(|source| failed(&spec.path, "read", source))? {
            Found::Nothing => Next::Make { may_grow: false },
            Found::Cold => {
                if keep {
                    tracing::info!(cache = %spec.path.display(), "it kept nothing so far: it will be made anew, and kept from then on");
                }
                Next::Make { may_grow: !device.is_block_device() }
            }
            Found::Kept => after(Sound::read(&device)?, &spec, &device, keep)?,
            Found::Newer(version) => return Err(CacheError::Newer { path: spec.path, version }),
            Found::Damaged(why) => {
                return Err(CacheError::NoSuperblock { path: spec.path, why: why.to_string() });
            }
            Found::Overwritten => return Err(CacheError::Overwritten { path: spec.path }),
            Found::Foreign => return Err(CacheError::Foreign { path: spec.path }),
        };
        let next = if keep { next } else { Next::Header };
        let room = room_on(&spec, &device, &next)?;
        Ok(Self { spec, room, device: Some(device), next })
    }

    fn check_new(spec: CacheSpec, keep: bool) -> Result<Self, CacheError> {
        let (room, needed, next) = match keep {
            true => {
                // The sector is not known before there is a file; larger ones take more.
                let layout = kept::layout(&spec, 4096, None)?;
                (Room::kept(&layout, &spec), layout.device_bytes(), Next::Make { may_grow: true })
            }
            false => {
                let room = Room::cold(block_count(&spec, spec.size)?);
                (room, spec.size.saturating_add(HEADER_BYTES), Next::Header)
            }
        };
        check_free(&spec.path, needed)?;
        Ok(Self { spec, room, device: None, next })
    }

    /// Blocks that it will hold.
    pub fn blocks(&self) -> u32 {
        self.room.blocks
    }

    /// What it goes on with; `None` where it will be empty.
    pub fn recovered(&self) -> Option<&Recovered> {
        match &self.next {
            Next::GoOn(recovered) | Next::Mend(recovered) | Next::Distrust(recovered, _) => Some(recovered),
            Next::Header | Next::Make { .. } => None,
        }
    }

    /// Create the file where it is absent, allocate its space, and write what makes it a cache. Unless it is one that is gone
    /// on with, what was in it is gone.
    pub fn format(self) -> Result<CacheDevice, CacheError> {
        let Self { spec, room, device, next } = self;
        let created = device.is_none();
        let device = match device {
            Some(device) => device,
            None => FileDevice::open(&spec.path, Access::Exclusive, Creation::New)?,
        };
        let written = lock(device.file(), &spec.path).and_then(|()| match next {
            Next::Header => Ok((write_header(&spec, room.blocks, device)?, None)),
            Next::Make { may_grow } => make(&spec, device, may_grow, created),
            Next::GoOn(recovered) => Ok((device, Some(recovered))),
            Next::Mend(_) => {
                let recovered = kept::mend(&device, None)?;
                Ok((device, Some(Box::new(recovered))))
            }
            Next::Distrust(recovered, mark) => {
                let recovered = again::distrust(&device, &recovered, mark)?;
                Ok((device, Some(Box::new(recovered))))
            }
        });
        if written.is_err() && created {
            // The error that led here is the one to tell.
            let _ = std::fs::remove_file(&spec.path);
        }
        let (device, recovered) = written?;
        let is_kept = recovered.is_some();
        Ok(CacheDevice { device, block_bytes: spec.block_bytes, room, is_kept, recovered })
    }
}

/// What becomes of a sound cache: it is gone on with if it is to be kept, and is what was configured.
fn after(sound: Sound, spec: &CacheSpec, device: &FileDevice, keep: bool) -> Result<Next, CacheError> {
    let (path, dropped) = (spec.path.display(), sound.blocks());
    if keep && sound.is_as_configured(spec, device) {
        let repair = sound.repair_first;
        return Ok(if repair { Next::Mend(sound.recovered) } else { Next::GoOn(sound.recovered) });
    }
    sound.give_up(&spec.path)?;
    if !keep {
        tracing::warn!(cache = %path, dropped, "what the cache kept will be dropped: it is configured to keep nothing");
    } else {
        let made = sound.recovered.superblock().layout;
        tracing::warn!(
            cache = %path,
            dropped,
            "the cache was made with {} blocks of {} bytes, which is not what is configured: it will be made anew, and cold",
            made.slots(),
            made.block_bytes(),
        );
    }
    Ok(Next::Make { may_grow: !device.is_block_device() })
}

/// What a device will have room for, if it is large enough and can grow as far as it has to.
fn room_on(spec: &CacheSpec, device: &FileDevice, next: &Next) -> Result<Room, CacheError> {
    let bytes = device.bytes();
    if let Next::GoOn(recovered) | Next::Mend(recovered) | Next::Distrust(recovered, _) = next {
        return Ok(Room::kept(&recovered.superblock().layout, spec));
    }
    if let Next::Make { may_grow: true } = next {
        let layout = kept::layout(spec, device.align(), None)?;
        if layout.device_bytes() > bytes {
            check_free(&spec.path, layout.device_bytes() - bytes)?;
        }
        return Ok(Room::kept(&layout, spec));
    }
    if bytes < spec.size {
        return Err(CacheError::TooSmall { path: spec.path.clone(), bytes, size: spec.size });
    }
    match next {
        Next::Header => block_count(spec, spec.size.min(bytes.saturating_sub(HEADER_BYTES))).map(Room::cold),
        _ => Ok(Room::kept(&kept::layout(spec, device.align(), Some(bytes))?, spec)),
    }
}

/// Refuse where the file system of a file has less room than it needs.
fn check_free(path: &Path, needed: u64) -> Result<(), CacheError> {
    let parent = directory(path);
    let missing = |source| OpenError::from_os(parent.to_path_buf(), "open the directory", source);
    let opened = File::open(parent).map_err(missing)?;
    let free = sys::free_bytes(&opened).map_err(missing)?;
    if needed > free {
        return Err(CacheError::NoRoom { path: path.into(), needed, free });
    }
    Ok(())
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

type Made = (FileDevice, Option<Box<Recovered>>);

/// Make a cache that is kept.
fn make(spec: &CacheSpec, mut device: FileDevice, may_grow: bool, created: bool) -> Result<Made, CacheError> {
    let room = if may_grow { None } else { Some(device.bytes()) };
    let layout = kept::layout(spec, device.align(), room)?;
    allocate(&mut device, layout.device_bytes())?;
    // Where a superblock goes, a cache of format 1 has a slot, and a guest may have written anything there.
    erase(&device, HEADER_BYTES)?;
    let recovered = kept::make(&device, layout)?;
    if created {
        // What it will hold is worth no more than its name.
        let synced = File::open(directory(&spec.path)).and_then(|directory| directory.sync_all());
        synced.map_err(|source| failed(&spec.path, "create", source))?;
    }
    Ok((device, Some(Box::new(recovered))))
}

/// Make a cache that keeps nothing. The second superblock of one that was kept goes first: it would be found again.
fn write_header(spec: &CacheSpec, blocks: u32, mut device: FileDevice) -> Result<FileDevice, CacheError> {
    allocate(&mut device, u64::from(blocks) * u64::from(spec.block_bytes) + HEADER_BYTES)?;
    erase(&device, HEADER_BYTES)?;
    let header = Header { block_bytes: spec.block_bytes, blocks };
    write_page(&device, 0, &header.encode())?;
    Ok(device)
}

/// Allocate a file's first `bytes`.
fn allocate(device: &mut FileDevice, bytes: u64) -> Result<(), CacheError> {
    if !device.is_block_device() {
        let allocated = sys::preallocate(device.file(), bytes);
        allocated.map_err(|source| failed(device.path(), "allocate", source))?;
        device.set_bytes(bytes.max(device.bytes()));
    }
    Ok(())
}

/// Zero a page, durably.
fn erase(device: &FileDevice, offset: u64) -> Result<(), CacheError> {
    write_page(device, offset, &[0; HEADER_BYTES as usize])
}

fn write_page(
    device: &FileDevice,
    offset: u64,
    bytes: &[u8; HEADER_BYTES as usize],
) -> Result<(), CacheError> {
    let write = || {
        let mut page = Buffer::alloc(HEADER_BYTES as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        page.copy_from_slice(bytes);
        device.file().write_all_at(&page, offset)?;
        device.file().sync_all()
    };
    write().map_err(|source| failed(device.path(), "write", source))
}

fn lock(file: &File, path: &Path) -> Result<(), CacheError> {
    match sys::try_lock(file) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CacheError::InUse { path: path.into() }),
        Err(source) => Err(failed(path, "lock", source)),
    }
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> CacheError {
    CacheError::Os { path: path.into(), action, source }
}

fn block_count(spec: &CacheSpec, bytes: u64) -> Result<u32, CacheError> {
    let blocks = bytes.checked_div(u64::from(spec.block_bytes)).unwrap_or(0);
    match u32::try_from(blocks) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(CacheError::BlockCount { path: spec.path.clone(), blocks, block_bytes: spec.block_bytes }),
    }
}

/// A cache device in use: locked as long as this or a reactor's handle on it lives.
#[derive(Debug)]
pub struct CacheDevice {
    device: FileDevice,
    block_bytes: u32,
    room: Room,
    is_kept: bool,
    recovered: Option<Box<Recovered>>,
}

impl CacheDevice {
    /// Bytes in a block.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Blocks that it holds.
    pub fn blocks(&self) -> u32 {
        self.room.blocks
    }

    /// Places for blocks: one that is kept has some to spare, since a slot that is freed cannot be used at once.
    pub fn slots(&self) -> u32 {
        self.room.slots
    }

    /// Bytes of cached data that it holds.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.room.blocks) * u64::from(self.block_bytes)
    }

    /// True for a cache that is kept over stops and crashes.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// What a cache that is kept goes on with, once: it takes 12 bytes of memory for a block.
    pub fn take_recovered(&mut self) -> Option<Box<Recovered>> {
        self.recovered.take()
    }

    /// The open file or block device.
    pub fn device(&self) -> &FileDevice {
        &self.device
    }
}

#[cfg(test)]
#[path = "cache_device_tests.rs"]
mod tests;
