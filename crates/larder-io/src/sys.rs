//! System calls that the standard library does not have, each behind a safe function.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What direct I/O on a file asks of requests, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectAlign {
    /// Of the memory.
    pub memory: u32,
    /// Of offset and length.
    pub offset: u32,
}

/// `-1` means that `errno` tells.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Give memory that was freed back to the system: glibc keeps what other threads have freed for later.
pub fn give_memory_back() {
    // SAFETY: the allocator looks after its own locks; nothing that is in use moves.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Size of a block device.
pub(crate) fn block_device_bytes(file: &File) -> io::Result<u64> {
    const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
    let mut bytes = 0_u64;
    // SAFETY: the request writes one u64 to the place given.
    check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut bytes) })?;
    Ok(bytes)
}

/// Logical block size of a block device, in bytes.
pub(crate) fn logical_block_bytes(file: &File) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one int to the place given.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &mut bytes) })?;
    Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// True for file systems that live in memory: io_uring would send every operation to a worker thread there.
pub(crate) fn is_memory_backed(file: &File) -> io::Result<bool> {
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    let mut info = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the call fills the whole structure when it succeeds.
    let info = unsafe {
        check(libc::fstatfs(file.as_raw_fd(), info.as_mut_ptr()))?;
        info.assume_init()
    };
    Ok(info.f_type == libc::TMPFS_MAGIC || info.f_type == RAMFS_MAGIC)
}

/// Bytes free to this user on the file system of a directory or a file; `EROFS` where it takes no writes.
pub(crate) fn free_bytes(directory: &File) -> io::Result<u64> {
    let mut info = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the call fills the whole structure when it succeeds.
    let info = unsafe {
        check(libc::fstatvfs(directory.as_raw_fd(), info.as_mut_ptr()))?;
        info.assume_init()
    };
    match info.f_flag & libc::ST_RDONLY {
        0 => Ok(info.f_bavail.saturating_mul(info.f_frsize)),
        _ => Err(io::Error::from_raw_os_error(libc::EROFS)),
    }
}

/// What direct I/O on this file asks, `None` where the kernel does not tell (before 6.1).
pub(crate) fn direct_io_align(file: &File) -> io::Result<Option<DirectAlign>> {
    let mut info = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty C string, and the call fills the structure, all of which may be zero.
    let info = unsafe {
        let flags = libc::AT_EMPTY_PATH;
        check(libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_DIOALIGN, info.as_mut_ptr()))?;
        info.assume_init()
    };
    let told = info.stx_mask & libc::STATX_DIOALIGN != 0 && info.stx_dio_offset_align != 0;
    Ok(told.then_some(DirectAlign { memory: info.stx_dio_mem_align, offset: info.stx_dio_offset_align }))
}

/// Let reads and writes go through the page cache.
pub(crate) fn clear_direct(file: &File) -> io::Result<()> {
    change_flags(file.as_raw_fd(), libc::O_DIRECT)
}

/// Let operations wait. The ring then waits for us; on a non-blocking descriptor it would give up at once.
pub(crate) fn clear_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    change_flags(fd.as_raw_fd(), libc::O_NONBLOCK)
}

fn change_flags(fd: RawFd, clear: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open; these requests touch no memory.
    unsafe {
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        if flags & clear != 0 {
            check(libc::fcntl(fd, libc::F_SETFL, flags & !clear))?;
        }
    }
    Ok(())
}

/// Take the exclusive lock of an open file without waiting; false where somebody else holds it.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: the descriptor is open.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Allocate the first `bytes` of a file, and make it that long.
pub(crate) fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = i64::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) })?;
    Ok(())
}

/// Zero a range of a file or a block device without writing it, where the file system or the device can.
pub(crate) fn zero_range(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let too_large = |_| io::Error::from_raw_os_error(libc::EFBIG);
    let (offset, bytes) =
        (i64::try_from(offset).map_err(too_large)?, i64::try_from(bytes).map_err(too_large)?);
    // SAFETY: the descriptor is open.
    check(unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_ZERO_RANGE, offset, bytes) })?;
    Ok(())
}

/// A counter to wake a sleeping thread with.
pub(crate) fn eventfd() -> io::Result<File> {
    // SAFETY: creates a descriptor that nobody else knows; File takes it over.
    unsafe { Ok(File::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC))?)) }
}

/// For tests: operations on the descriptor never wait.
#[cfg(test)]
pub(crate) fn set_nonblocking_for_test(file: &File) {
    // SAFETY: the descriptor is open; this request touches no memory.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK) }).unwrap();
}

/// True for an event counter (eventfd).
pub(crate) fn is_event_counter(fd: &OwnedFd) -> bool {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::read_link(link).is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}

/// Send both directions of a socket to their end; what waits on it ends.
pub(crate) fn shutdown(fd: &OwnedFd) {
    // SAFETY: the descriptor is open. An unconnected socket answers with an error that changes nothing.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// The next data (`SEEK_DATA`) or hole (`SEEK_HOLE`) at or behind `offset`; `None` behind the last data.
pub(crate) fn seek(file: &File, offset: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    let offset = i64::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: the descriptor is open; nobody uses its position.
    let found = unsafe { libc::lseek(file.as_raw_fd(), offset, whence) };
    match u64::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}
