//! The SSD: a file or block device that is checked, locked, and marked as a Larder cache before the first block goes on it.
//!
//! Checking ([`CachePlan::check`]) and marking ([`CachePlan::format`]) are apart, so that a daemon can look at everything that it was
//! configured with before it writes anything. The layout: [`HEADER_BYTES`] of header, then slots of one block each.

mod header;

use crate::file::{Access, Creation, FileDevice, OpenError};
use crate::{Buffer, sys};
use header::{Found, Header};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use header::HEADER_BYTES;

/// What the cache is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// A block device or a file; a file is created where it is absent.
    pub path: PathBuf,
    /// Bytes of cached data: a file that is created is [`HEADER_BYTES`] longer.
    pub size: u64,
    /// Bytes in a block: a power of two, at least 4096.
    pub block_bytes: u32,
}

/// A cache device cannot be used. Nothing has been written to it.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be opened.
    #[error("cache device: {0}")]
    Open(#[from] OpenError),
    /// Somebody else has it: most likely another daemon.
    #[error("the cache device {} is in use by another process", path.display())]
    InUse {
        /// The device.
        path: PathBuf,
    },
    /// Smaller than configured.
    #[error("the cache device {} has {bytes} bytes, less than the configured {size}", path.display())]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The configured size in bytes.
        size: u64,
    },
    /// The file system has no room for the file.
    #[error("no room for the cache file {}: {needed} bytes needed, {free} free", path.display())]
    NoRoom {
        /// The file to be created.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// It begins with something that is not a Larder header.
    #[error("{} holds something else: it is neither empty nor a Larder cache", path.display())]
    Foreign {
        /// The device.
        path: PathBuf,
    },
    /// Written by a later version, which may keep data there that this one does not understand.
    #[error("{} was written by a newer version of Larder (format {version})", path.display())]
    Newer {
        /// The device.
        path: PathBuf,
        /// The format found.
        version: u32,
    },
    /// The size makes no cache.
    #[error("{} has room for {blocks} blocks of {block_bytes} bytes; a cache has from 1 to {}", path.display(), u32::MAX)]
    BlockCount {
        /// The device.
        path: PathBuf,
        /// Blocks that would fit.
        blocks: u64,
        /// Bytes in a block.
        block_bytes: u32,
    },
    /// The system refused something.
    #[error("cannot {action} the cache device {}: {source}", path.display())]
    Os {
        /// The device.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl CacheError {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Open(error) => error.remedy(),
            Self::InUse { path } => {
                format!("stop the other daemon (fuser -v {}), or use another path", path.display())
            }
            Self::TooSmall { path, bytes, .. } => format!(
                "configure a size of at most {bytes}, or remove the file (rm {}) so that it is created with the right size",
                path.display()
            ),
            Self::NoRoom { .. } => "configure a smaller size, or free some space".into(),
            Self::Foreign { path } => format!(
                "if it can go: wipefs -a {0}, then dd if=/dev/zero of={0} bs=4096 count=1 conv=notrunc",
                path.display()
            ),
            Self::Newer { path, .. } => {
                format!("use that version, or give up the cache: rm {}", path.display())
            }
            Self::BlockCount { .. } => "configure a size of at least one block, and of less than 2^32".into(),
            Self::Os { .. } => "see the system's message; the kernel log (dmesg) may say more".into(),
        }
    }
}

/// A cache device that passed every check; an existing one is locked. Nothing is written yet.
#[derive(Debug)]
pub struct CachePlan {
    spec: CacheSpec,
    blocks: u32,
    /// `None` where the file is to be created.
    device: Option<FileDevice>,
}

impl CachePlan {
    /// Look at what is there.
    pub fn check(spec: CacheSpec) -> Result<Self, CacheError> {
        if spec.path.symlink_metadata().is_ok_and(|there| !there.file_type().is_symlink())
            || spec.path.exists()
        {
            Self::check_existing(spec)
        } else {
            Self::check_new(spec)
        }
    }

    fn check_existing(spec: CacheSpec) -> Result<Self, CacheError> {
        let device = match FileDevice::open(&spec.path, Access::Exclusive, Creation::Existing) {
            Err(OpenError::Busy { path }) => return Err(CacheError::InUse { path }),
            opened => opened?,
        };
        lock(device.file(), &spec.path)?;
        let bytes = device.bytes();
        if bytes < spec.size {
            return Err(CacheError::TooSmall { path: spec.path, bytes, size: spec.size });
        }
        match header::find(device.file()).map_err(|source| failed(&spec.path, "read", source))? {
            Found::Nothing | Found::Ours(_) => {}
            Found::Newer(version) => return Err(CacheError::Newer { path: spec.path, version }),
            Found::Foreign => return Err(CacheError::Foreign { path: spec.path }),
        }
        let blocks = block_count(&spec, spec.size.min(bytes.saturating_sub(HEADER_BYTES)))?;
        Ok(Self { spec, blocks, device: Some(device) })
    }

    fn check_new(spec: CacheSpec) -> Result<Self, CacheError> {
        let blocks = block_count(&spec, spec.size)?;
        let parent = match spec.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let missing = |source| OpenError::from_os(parent.to_path_buf(), "open the directory", source);
        let directory = File::open(parent).map_err(missing)?;
        let free = sys::free_bytes(&directory).map_err(missing)?;
        let needed = spec.size.saturating_add(HEADER_BYTES);
        if needed > free {
            return Err(CacheError::NoRoom { path: spec.path, needed, free });
        }
        Ok(Self { spec, blocks, device: None })
    }

    /// Blocks that it will hold.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Create the file where it is absent, allocate its space, and write the header. What was in the cache is gone.
    pub fn format(self) -> Result<CacheDevice, CacheError> {
        let Self { spec, blocks, device } = self;
        let created = device.is_none();
        let device = match device {
            Some(device) => device,
            None => FileDevice::open(&spec.path, Access::Exclusive, Creation::New)?,
        };
        let written = write(&spec, blocks, device);
        if written.is_err() && created {
            // The error that led here is the one to tell.
            let _ = std::fs::remove_file(&spec.path);
        }
        Ok(CacheDevice { device: written?, block_bytes: spec.block_bytes, blocks })
    }
}

fn write(spec: &CacheSpec, blocks: u32, mut device: FileDevice) -> Result<FileDevice, CacheError> {
    lock(device.file(), &spec.path)?;
    if !device.is_block_device() {
        let bytes = u64::from(blocks) * u64::from(spec.block_bytes) + HEADER_BYTES;
        sys::preallocate(device.file(), bytes).map_err(|source| failed(&spec.path, "allocate", source))?;
        device.set_bytes(bytes.max(device.bytes()));
    }
    let header = Header { block_bytes: spec.block_bytes, blocks };
    let mut page = Buffer::alloc(HEADER_BYTES as usize)
        .ok_or_else(|| failed(&spec.path, "write", io::ErrorKind::OutOfMemory.into()))?;
    page.copy_from_slice(&header.encode());
    let written = device.file().write_all_at(&page, 0).and_then(|()| device.file().sync_all());
    written.map_err(|source| failed(&spec.path, "write", source))?;
    Ok(device)
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
    blocks: u32,
}

impl CacheDevice {
    /// Bytes in a block.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Blocks that it holds.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of cached data that it holds.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.block_bytes)
    }

    /// The open file or block device.
    pub fn device(&self) -> &FileDevice {
        &self.device
    }
}

#[cfg(test)]
#[path = "cache_device_tests.rs"]
mod tests;
