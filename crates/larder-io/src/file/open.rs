//! Opening a file or a block device: how large it is, which alignment it wants, and whether it is worth a ring.

use super::OpenError;
use crate::sys;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An open file or block device, probed and ready for a reactor.
#[derive(Debug)]
pub struct FileDevice {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) align: u32,
    pub(super) inline: bool,
    pub(super) block_device: bool,
}

/// Whether somebody else may have a block device open at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// As any program opens it.
    Shared,
    /// `O_EXCL`: refused while mounted or opened likewise elsewhere. No effect on files.
    Exclusive,
    /// As any program opens it, for reading alone.
    Reading,
}

/// Whether the file must exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creation {
    /// It must.
    Existing,
    /// It must not.
    New,
}

impl FileDevice {
    /// Open a backing: a file or block device with at least one sector and a size in whole sectors.
    pub fn open_backing(path: &Path) -> Result<Self, OpenError> {
        Self::open(path, Access::Shared, Creation::Existing)?.checked()
    }

    /// The same, refused while somebody else is at it: a block device that is mounted or part of something else, a file that is
    /// locked (a daemon locks its files). The lock lives as long as the device.
    pub(crate) fn open_alone(path: &Path) -> Result<Self, OpenError> {
        let device = Self::open(path, Access::Exclusive, Creation::Existing)?;
        // Block devices are left alone: udev takes the same lock on them.
        match device.block_device || sys::try_lock(&device.file).unwrap_or(true) {
            true => device.checked(),
            false => Err(OpenError::Busy { path: path.to_path_buf() }),
        }
    }

    /// The same for reading alone.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, OpenError> {
        Self::open(path, Access::Reading, Creation::Existing)?.checked()
    }

    /// It makes a disk.
    fn checked(self) -> Result<Self, OpenError> {
        let path = || self.path.clone();
        match self.bytes {
            0 => Err(OpenError::Empty { path: path() }),
            bytes if bytes % 512 != 0 => Err(OpenError::OddSize { path: path(), bytes }),
            _ => Ok(self),
        }
    }

    /// Open for reading and (but for [`Access::Reading`]) writing, past the page cache where the file system can.
    pub(crate) fn open(path: &Path, access: Access, creation: Creation) -> Result<Self, OpenError> {
        let block_device = creation == Creation::Existing && check_kind(path)?;
        let exclusive = if block_device && access == Access::Exclusive { libc::O_EXCL } else { 0 };
        let fail = |source| OpenError::from_os(path.to_path_buf(), "open", source);
        let new = creation == Creation::New;
        let open = |flags: i32, new: bool| {
            OpenOptions::new()
                .read(true)
                .write(access != Access::Reading)
                .create_new(new)
                .mode(0o600)
                .custom_flags(flags)
                .open(path)
        };
        let (file, direct) = match open(libc::O_DIRECT | exclusive, new) {
            Ok(file) => (file, true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                (open(exclusive, new && !path.exists()).map_err(fail)?, false)
            }
            Err(error) => return Err(fail(error)),
        };
        Self::probe(file, path, block_device, direct).map_err(fail)
    }

    fn probe(file: File, path: &Path, block_device: bool, direct: bool) -> io::Result<Self> {
        let bytes = if block_device { sys::block_device_bytes(&file)? } else { file.metadata()?.len() };
        let inline = !block_device && sys::is_memory_backed(&file)?;
        let wanted = if direct { direct_align(&file, block_device)? } else { Some(512) };
        let mut device = Self { file, path: path.to_path_buf(), bytes, align: 512, inline, block_device };
        match wanted {
            Some(align) if bytes % u64::from(align) == 0 => device.align = align,
            _ => device.use_page_cache()?,
        }
        if !direct {
            tracing::warn!(path = %path.display(), "the file system refuses O_DIRECT: using the page cache");
        }
        Ok(device)
    }

    /// The device's alignment does not suit sector requests: let the kernel's page cache do what is needed.
    fn use_page_cache(&mut self) -> io::Result<()> {
        sys::clear_direct(&self.file)?;
        tracing::warn!(path = %self.path.display(), "size or alignment does not suit O_DIRECT: using the page cache");
        Ok(())
    }

    /// Another handle on the same open file, for another reactor. A lock on it is shared.
    pub fn try_clone(&self) -> io::Result<Self> {
        let Self { ref path, bytes, align, inline, block_device, .. } = *self;
        Ok(Self { file: self.file.try_clone()?, path: path.clone(), bytes, align, inline, block_device })
    }

    /// One whose first block is never read, and which cannot be flushed; for as long as the other end is there.
    #[cfg(test)]
    pub(crate) fn hanging(bytes: u64) -> (Self, std::os::unix::net::UnixStream) {
        let (ours, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(ours));
        let path = PathBuf::from("/hanging");
        (Self { file, path, bytes, align: 512, inline: false, block_device: false }, other)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size that it has now, in bytes.
    pub(crate) fn measure(&self) -> io::Result<u64> {
        match self.block_device {
            true => sys::block_device_bytes(&self.file),
            false => Ok(self.file.metadata()?.len()),
        }
    }

    /// Smallest unit of a request in bytes: 512 or 4096.
    pub fn align(&self) -> u32 {
        self.align
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True for a block device, false for a file.
    pub fn is_block_device(&self) -> bool {
        self.block_device
    }

    /// The open file, for blocking calls at start-up.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The size has been changed by who created the file.
    pub(crate) fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
    }
}

impl AsFd for FileDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// True for a block device, false for a file, an error for anything else. Looks before opening, since opening a pipe or
/// a tape has effects.
pub(crate) fn check_kind(path: &Path) -> Result<bool, OpenError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| OpenError::from_os(path.into(), "look at", source))?;
    let kind = metadata.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(false),
        () if kind.is_block_device() => return Ok(true),
        () if kind.is_dir() => "a directory",
        () if kind.is_socket() => "a socket",
        () if kind.is_fifo() => "a pipe",
        () => "a character device",
    };
    Err(OpenError::WrongKind { path: path.into(), what })
}

/// The unit of direct I/O (512 or 4096), or `None` where it or the memory alignment is beyond what guests' requests keep.
fn direct_align(file: &File, block_device: bool) -> io::Result<Option<u32>> {
    let align = if block_device { sys::logical_block_bytes(file)? } else { file_align(file)? };
    Ok((align <= 4096).then_some(align.max(512)))
}

fn file_align(file: &File) -> io::Result<u32> {
    match sys::direct_io_align(file)? {
        Some(align) if align.memory <= 512 && align.offset > 0 => Ok(align.offset),
        Some(_) => Ok(u32::MAX),
        None => Ok(probe_align(file)),
    }
}

/// Kernels before 6.1 do not tell: try to read one sector. An empty file reads nothing whatever the alignment.
fn probe_align(file: &File) -> u32 {
    let Some(mut buffer) = crate::Buffer::alloc(4096) else { return 4096 };
    let refused = |result: io::Result<usize>| result.is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL));
    if refused(std::os::unix::fs::FileExt::read_at(file, &mut buffer[512..1024], 512)) { 4096 } else { 512 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(bytes: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.as_file().set_len(bytes).unwrap();
        file
    }

    #[test]
    fn a_good_file_opens_with_its_size() {
        let file = sized(1 << 20);
        let device = FileDevice::open_backing(file.path()).unwrap();
        assert_eq!(device.bytes(), 1 << 20);
        assert!(device.align() == 512 || device.align() == 4096);
        assert!(!device.is_block_device());
    }

    #[test]
    fn an_uneven_tail_falls_back_to_sector_requests() {
        let file = sized((1 << 20) + 512);
        assert_eq!(FileDevice::open_backing(file.path()).unwrap().align(), 512);
    }

    #[test]
    fn errors_name_the_path_and_the_remedy() {
        let directory = tempfile::tempdir_in(".").unwrap();
        let missing = FileDevice::open_backing(&directory.path().join("absent.img")).unwrap_err();
        assert!(matches!(missing, OpenError::Missing { .. }) && missing.to_string().contains("absent.img"));
        let wrong = FileDevice::open_backing(directory.path()).unwrap_err();
        assert!(wrong.to_string().ends_with("is a directory, not a file or a block device"), "{wrong}");
        let character = FileDevice::open_backing(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(character, OpenError::WrongKind { .. }));
        assert!(missing.remedy().contains("truncate -s"));
    }

    #[test]
    fn sizes_that_are_no_disk_are_refused() {
        let odd = sized(1000);
        let error = FileDevice::open_backing(odd.path()).unwrap_err();
        assert!(matches!(error, OpenError::OddSize { bytes: 1000, .. }));
        assert!(error.remedy().contains("truncate -s 1024"));
        assert!(matches!(FileDevice::open_backing(sized(0).path()).unwrap_err(), OpenError::Empty { .. }));
    }

    #[test]
    fn memory_backed_files_are_inline() {
        let memory = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        memory.as_file().set_len(8192).unwrap();
        assert!(FileDevice::open_backing(memory.path()).unwrap().inline);
        assert!(!FileDevice::open_backing(sized(8192).path()).unwrap().inline);
    }
}
