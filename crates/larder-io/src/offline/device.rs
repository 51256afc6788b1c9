//! The file or block device of a stopped cache: opened, locked, and read and written at given places.

use crate::file::{Access, Creation, FileDevice, OpenError, check_kind};
use crate::sys;
use larder_engine::format::{Medium, MediumError, MediumMut, Superblock, Unusable, Uuid};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes at either end of a device that are zero where it holds nothing: no file system, partition table, RAID or volume
/// manager leaves both alone.
const EDGE_BYTES: u64 = 1 << 20;
/// Zeroes written at a time where the system cannot zero a range by itself.
const ZEROES_BYTES: usize = 1 << 20;

/// How long to wait for somebody else to let go of a cache.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A stopped cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoppedError {
    /// It cannot be opened, or created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Somebody else has it: most likely a daemon.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The cache.
        path: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Os {
        /// The cache.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl StoppedError {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Open(OpenError::Missing { .. }) => {
                "check the path; larder cache format makes a new cache".into()
            }
            Self::Open(error) => error.remedy(),
            Self::InUse { path } => {
                format!("stop the daemon that has it (fuser -v {}), and try again", path.display())
            }
            Self::Os { .. } => "see the system's message; the kernel log (dmesg) may say more".into(),
        }
    }
}

/// A cache that nobody else has open: locked as long as this lives.
#[derive(Debug)]
pub struct StoppedCache {
    file: File,
    path: PathBuf,
    bytes: u64,
    sector: u32,
    block_device: bool,
}

impl StoppedCache {
    /// Open it to look at it alone; others may look at a file at the same time.
    pub fn open_to_read(path: &Path) -> Result<Self, StoppedError> {
        patiently(|| Self::try_to_read(path))
    }

    fn try_to_read(path: &Path) -> Result<Self, StoppedError> {
        let block_device = check_kind(path)?;
        let exclusive = if block_device { libc::O_EXCL } else { 0 };
        let opened = OpenOptions::new().read(true).custom_flags(exclusive).open(path);
        let file = opened.map_err(|source| busy(OpenError::from_os(path.into(), "open", source)))?;
        let size = || if block_device { sys::block_device_bytes(&file) } else { Ok(file.metadata()?.len()) };
        let bytes = size().map_err(|source| failed(path, "look at", source))?;
        locked(file.try_lock_shared(), path)?;
        Ok(Self { file, path: path.into(), bytes, sector: 512, block_device })
    }

    /// Open it to change it.
    pub fn open(path: &Path) -> Result<Self, StoppedError> {
        patiently(|| Self::take(FileDevice::open(path, Access::Exclusive, Creation::Existing).map_err(busy)?))
    }

    /// Create an empty file, for [`StoppedCache::grow`].
    pub fn create(path: &Path) -> Result<Self, StoppedError> {
        Self::take(FileDevice::open(path, Access::Exclusive, Creation::New).map_err(busy)?)
    }

    fn take(device: FileDevice) -> Result<Self, StoppedError> {
        let path = device.path();
        let fail = |action| move |source| failed(path, action, source);
        let file = device.file().try_clone().map_err(fail("open"))?;
        sys::clear_direct(&file).map_err(fail("open"))?;
        locked(file.try_lock(), path)?;
        let (bytes, sector, block_device) = (device.bytes(), device.align(), device.is_block_device());
        Ok(Self { file, path: path.into(), bytes, sector, block_device })
    }

    /// Allocate the first `bytes` of a file, and make it as long as that if it is shorter. Nothing where a device is long
    /// enough.
    pub fn grow(&mut self, bytes: u64) -> Result<(), StoppedError> {
        if self.block_device {
            return Ok(());
        }
        let fail = |source| failed(&self.path, "allocate", source);
        // Some file systems fill up before they say that there is no room.
        let missing = bytes.saturating_sub(self.file.metadata().map_err(fail)?.blocks() * 512);
        if missing > sys::free_bytes(&self.file).map_err(fail)? {
            return Err(fail(io::Error::from_raw_os_error(libc::ENOSPC)));
        }
        sys::preallocate(&self.file, bytes).map_err(fail)?;
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The smallest unit, in bytes, that a daemon can read and write past the page cache; 512 where it is open to be read
    /// alone.
    pub fn sector_bytes(&self) -> u32 {
        self.sector
    }

    /// True for a block device, false for a file.
    pub fn is_block_device(&self) -> bool {
        self.block_device
    }
}

impl Medium for StoppedCache {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.file.read_exact_at(into, offset).map_err(|error| at(offset, &error))
    }
}

impl MediumMut for StoppedCache {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.file.write_all_at(bytes, offset).map_err(|error| at(offset, &error))
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.file.sync_all().map_err(|error| at(0, &error))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<(), MediumError> {
        match sys::zero_range(&self.file, offset, bytes) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) => {}
            outcome => return outcome.map_err(|error| at(offset, &error)),
        }
        let zeroes = vec![0; ZEROES_BYTES];
        for start in (offset..offset + bytes).step_by(ZEROES_BYTES) {
            let len = (offset + bytes - start).min(ZEROES_BYTES as u64) as usize;
            self.write(start, &zeroes[..len])?;
        }
        Ok(())
    }
}

/// What a device holds, as far as its superblocks and its ends tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Zeroes at both ends.
    Nothing,
    /// A cache of format 1, which keeps nothing over a stop.
    VersionOne,
    /// A cache, or what is left of one.
    Cache,
    /// Something else.
    Foreign,
}

/// What a device holds.
pub fn content(medium: &mut impl Medium) -> Result<Content, MediumError> {
    let edge = medium.bytes().min(EDGE_BYTES);
    let mut bytes = vec![0; edge as usize];
    medium.read(0, &mut bytes)?;
    let looked_at = [0, 1].map(|copy: u8| {
        let start = usize::from(copy) * larder_engine::format::SUPERBLOCK_BYTES;
        Superblock::decode(bytes.get(start..).unwrap_or_default(), copy)
    });
    let is_ours = |one: &Result<_, _>| !matches!(one, Err(Unusable::Blank | Unusable::Foreign));
    match looked_at {
        // It has one header, and slots behind it.
        [Err(Unusable::VersionOne), _] => return Ok(Content::VersionOne),
        all if all.iter().any(is_ours) => return Ok(Content::Cache),
        _ => {}
    }
    let is_blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    let start_is_blank = is_blank(&bytes);
    medium.read(medium.bytes() - edge, &mut bytes)?;
    Ok(if start_is_blank && is_blank(&bytes) { Content::Nothing } else { Content::Foreign })
}

/// True if the cache at this path was stopped, and no block of it is dirty. False also where that cannot be told.
pub fn is_clean(path: &Path) -> bool {
    let Ok(mut cache) = StoppedCache::open_to_read(path) else { return false };
    let mut bytes = [0; 2 * larder_engine::format::SUPERBLOCK_BYTES];
    let read = cache.read(0, &mut bytes);
    let copies = [0, 1].map(|copy: u8| {
        let start = usize::from(copy) * larder_engine::format::SUPERBLOCK_BYTES;
        Superblock::decode(&bytes[start..], copy).ok()
    });
    let newest = copies.into_iter().flatten().max_by_key(|superblock| superblock.generation);
    read.is_ok()
        && newest.is_some_and(|newest| newest.clean_stop && !newest.may_hold_dirty && !newest.needs_check)
}

/// A random name for a new cache.
pub fn new_uuid() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // Version 4, variant 1, as RFC 9562 has them.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
}

/// The kernel closes the files of a daemon that was killed some moments after its process is gone.
fn patiently<T>(open: impl Fn() -> Result<T, StoppedError>) -> Result<T, StoppedError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match open() {
            Err(StoppedError::InUse { .. }) if Instant::now() < until => thread::sleep(LOOK_EVERY),
            outcome => return outcome,
        }
    }
}

fn locked(outcome: Result<(), TryLockError>, path: &Path) -> Result<(), StoppedError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoppedError::InUse { path: path.into() }),
        Err(TryLockError::Error(source)) => Err(failed(path, "lock", source)),
    }
}

fn busy(error: OpenError) -> StoppedError {
    match error {
        OpenError::Busy { path } => StoppedError::InUse { path },
        other => other.into(),
    }
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> StoppedError {
    StoppedError::Os { path: path.into(), action, source }
}

fn at(offset: u64, error: &io::Error) -> MediumError {
    MediumError { offset, reason: error.to_string() }
}
