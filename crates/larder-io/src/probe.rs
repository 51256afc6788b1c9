//! What this host lets a reactor have, tried without keeping anything.

use crate::lane::Lane;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Make a ring as a reactor does, and let go of it.
///
/// # Errors
/// Where the kernel has no io_uring, is too old for what is needed of it, or forbids it.
pub fn ring_works() -> io::Result<()> {
    Lane::new().map(drop)
}

/// True where a file or block device cannot be read past the page cache.
///
/// # Errors
/// Where it cannot be opened for reading at all.
pub fn refuses_direct(path: &Path) -> io::Result<bool> {
    match OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path) {
        Ok(_) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(true),
        Err(error) => Err(error),
    }
}
