//! Why a file or a block device cannot be used, each with the path and what to do about it.

use std::io;
use std::path::PathBuf;

/// Opening a backing or a cache device failed. `Display` names the path; [`OpenError::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is there.
    #[error("{} does not exist", path.display())]
    Missing {
        /// What was to be opened.
        path: PathBuf,
    },
    /// A directory, a socket, a pipe, a terminal.
    #[error("{} is {what}, not a file or a block device", path.display())]
    WrongKind {
        /// What was to be opened.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
    /// The daemon's user may not read and write it.
    #[error("no permission to read and write {}", path.display())]
    Permission {
        /// What was to be opened.
        path: PathBuf,
    },
    /// The file system that it is on takes no writes.
    #[error("{} is on a read-only file system", path.display())]
    ReadOnly {
        /// What was to be opened.
        path: PathBuf,
    },
    /// It has no bytes.
    #[error("{} is empty", path.display())]
    Empty {
        /// What was opened.
        path: PathBuf,
    },
    /// Its size is not a whole number of sectors.
    #[error("the size of {}, {bytes} bytes, is not a multiple of 512", path.display())]
    OddSize {
        /// What was opened.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
    },
    /// Another process holds it.
    #[error("{} is in use by another process", path.display())]
    Busy {
        /// What was to be opened.
        path: PathBuf,
    },
    /// Anything else that the system said.
    #[error("cannot {action} {}: {source}", path.display())]
    Os {
        /// What was to be opened.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl OpenError {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { path } => {
                format!("check the path; if it is a new disk: truncate -s 10G {}", path.display())
            }
            Self::WrongKind { .. } => "name a regular file or a block device".into(),
            Self::Permission { path } => {
                format!(
                    "run as a user who may read and write it, or change its owner: ls -lL {}",
                    path.display()
                )
            }
            Self::ReadOnly { path } => {
                let place = path.display();
                format!(
                    "mount it so that it can be written: mount -o remount,rw \"$(findmnt -no TARGET -T {place})\"; where errors made it read-only, dmesg says so, and it wants a check (fsck) first"
                )
            }
            Self::Empty { path } => format!("give it a size: truncate -s 10G {}", path.display()),
            Self::OddSize { path, bytes } => {
                format!(
                    "pad it to whole sectors: truncate -s {} {}",
                    bytes.next_multiple_of(512),
                    path.display()
                )
            }
            Self::Busy { path } => {
                format!("find out who uses it (fuser -v {}) and stop that first", path.display())
            }
            Self::Os { .. } => "see the system's message; the kernel log (dmesg) may say more".into(),
        }
    }

    /// The kind of error behind a failed system call.
    pub(crate) fn from_os(path: PathBuf, action: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => Self::Missing { path },
            Some(libc::EACCES | libc::EPERM) => Self::Permission { path },
            Some(libc::EROFS) => Self::ReadOnly { path },
            Some(libc::EISDIR) => Self::WrongKind { path, what: "a directory" },
            Some(libc::EBUSY) => Self::Busy { path },
            Some(libc::ENXIO) => Self::WrongKind { path, what: "a socket or a device without a driver" },
            _ => Self::Os { path, action, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_file_system_is_no_matter_of_permission() {
        let told = |number| {
            let error =
                OpenError::from_os("/srv/db.img".into(), "open", io::Error::from_raw_os_error(number));
            format!("{error}: {}", error.remedy())
        };
        let (read_only, denied) = (told(libc::EROFS), told(libc::EACCES));
        assert!(read_only.starts_with("/srv/db.img is on a read-only file system: "), "{read_only}");
        assert!(read_only.contains("mount -o remount,rw") && !read_only.contains("run as"), "{read_only}");
        assert!(denied.starts_with("no permission to read and write /srv/db.img: run as a user"), "{denied}");
    }
}
