//! Why a cache device cannot be used, with what the operator can do.

use crate::file::OpenError;
use std::io;
use std::path::PathBuf;

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
        /// The file to be created, or to grow.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// It begins with something that is no Larder cache.
    #[error("{} holds something else: it is neither empty nor a Larder cache", path.display())]
    Foreign {
        /// The device.
        path: PathBuf,
    },
    /// It was a Larder cache, and something else is over its first superblock.
    #[error("{} begins with something else, over what was a Larder cache", path.display())]
    Overwritten {
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
    /// It cannot be gone on with as it is, and may hold data that the backings do not have.
    #[error("the cache on {} is damaged: {why}", path.display())]
    Damaged {
        /// The device.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It was a cache, and nothing tells where its blocks are.
    #[error("the cache on {} is damaged: no usable superblock: A {why}", path.display())]
    NoSuperblock {
        /// The device.
        path: PathBuf,
        /// Why the first one cannot be used.
        why: String,
    },
    /// Its metadata could not be written at some time, so nobody knows what it says of its blocks.
    #[error("the cache on {} needs a check: its device failed while metadata was written", path.display())]
    NeedsCheck {
        /// The device.
        path: PathBuf,
    },
    /// It holds blocks that their backings do not have, and a start as configured would lose them.
    #[error("the cache on {} holds {blocks} dirty blocks, which their backings do not have", path.display())]
    Dirty {
        /// The device.
        path: PathBuf,
        /// How many.
        blocks: u64,
    },
    /// It is not the cache that was given up.
    #[error("{} is not the cache that was in use when its device failed", path.display())]
    Another {
        /// The device.
        path: PathBuf,
    },
    /// It is that cache, as it was some time before it was given up.
    #[error("the cache on {} is an older state of the one that was in use when its device failed", path.display())]
    Older {
        /// The device.
        path: PathBuf,
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
                "if it was a cache, and there is a dump of it: larder cache restore --force DUMP {0}; if it can go: wipefs -a {0}, then dd if=/dev/zero of={0} bs=4096 count=2 conv=notrunc",
                path.display()
            ),
            Self::Overwritten { path } => format!(
                "find out what uses it; if nothing does, larder cache check {0} tells what is left, and larder cache repair {0} keeps it: copy the device first",
                path.display()
            ),
            Self::Newer { path, .. } => {
                format!(
                    "use that version: it may hold data that no backing has; {} can be removed once that version's `larder cache writeback` has saved them",
                    path.display()
                )
            }
            Self::NoSuperblock { path, .. } => format!(
                "if there is a dump of it: larder cache restore --force DUMP {0}; without one nothing tells where its blocks are, and larder cache format --force {0} gives them up (larder cache check {0} says the same)",
                path.display()
            ),
            Self::Damaged { path, .. } | Self::NeedsCheck { path } => format!(
                "larder cache check {0} tells what is wrong, and larder cache repair {0} keeps what is sound",
                path.display()
            ),
            Self::Dirty { path, .. } => {
                format!("larder cache writeback {} writes them to their backings", path.display())
            }
            Self::Another { .. } => "bring back the device that was in use".into(),
            Self::Older { .. } => {
                "bring back the device itself, not a copy or a snapshot of it: newer data would be missing"
                    .into()
            }
            Self::BlockCount { .. } => "configure a size of at least one block, and of less than 2^32".into(),
            Self::Os { .. } => "see the system's message; the kernel log (dmesg) may say more".into(),
        }
    }
}
