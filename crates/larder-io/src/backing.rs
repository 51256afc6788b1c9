//! The slow device behind a volume, whatever it is.

use crate::command::{Command, Ended};
use crate::file::{FileDevice, FileRunner, OpenError};
use crate::frontend::VolumeInfo;
use crate::lane::Lane;
use crate::mailbox::Waker;
use crate::nbd_backing::{NbdBacking, NbdError, NbdRunner};
use larder_engine::IoError;
use larder_nbd::{Uri, UriError};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A backing, opened and checked, ready for a reactor.
#[derive(Debug)]
pub enum Backing {
    /// A file or a block device.
    File(FileDevice),
    /// An export of an NBD server.
    Nbd(NbdBacking),
}

/// A backing cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// A file or a block device.
    #[error(transparent)]
    File(#[from] OpenError),
    /// An NBD export.
    #[error(transparent)]
    Nbd(#[from] NbdError),
    /// Looks like a URI, and is none that can be used.
    #[error("{text}: {source}")]
    Uri {
        /// What was given.
        text: String,
        /// Why not.
        source: UriError,
    },
}

impl BackingError {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::File(error) => error.remedy(),
            Self::Nbd(error) => error.remedy(),
            Self::Uri { .. } => "write nbd+unix:///EXPORT?socket=PATH or nbd://HOST:PORT/EXPORT".into(),
        }
    }
}

impl Backing {
    /// Open what a configuration names: a path, or (with `://` in it) an NBD URI. Blocks while connecting, 10 seconds at most.
    pub fn open(text: &str) -> Result<Self, BackingError> {
        Self::open_with(text, FileDevice::open_backing)
    }

    /// The same for somebody who writes to it and wants nobody else there: a block device that is mounted or part of something
    /// else, and a file that a daemon or another such program has, are refused. A server's other clients cannot be seen.
    pub fn open_alone(text: &str) -> Result<Self, BackingError> {
        Self::open_with(text, FileDevice::open_alone)
    }

    /// The same for reading alone: writes fail.
    pub fn open_to_read(text: &str) -> Result<Self, BackingError> {
        Self::open_with(text, FileDevice::open_to_read)
    }

    fn open_with(
        text: &str,
        file: impl FnOnce(&Path) -> Result<FileDevice, OpenError>,
    ) -> Result<Self, BackingError> {
        if !text.contains("://") {
            return Ok(Self::File(file(Path::new(text))?));
        }
        match text.parse::<Uri>() {
            Ok(uri) => Ok(Self::Nbd(NbdBacking::connect(&uri)?)),
            Err(source) => Err(BackingError::Uri { text: text.into(), source }),
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::File(file) => file.bytes(),
            Self::Nbd(nbd) => nbd.bytes(),
        }
    }

    /// Its path or URI.
    pub fn name(&self) -> String {
        match self {
            Self::File(file) => file.path().display().to_string(),
            Self::Nbd(nbd) => nbd.uri().to_string(),
        }
    }

    /// What a volume on it looks like to a guest, behind a cache of this block size (bytes).
    pub(crate) fn info(&self, block_bytes: u32) -> VolumeInfo {
        let (min_block, read_only) = match self {
            Self::File(file) => (file.align(), false),
            Self::Nbd(nbd) => (nbd.align(), nbd.is_read_only()),
        };
        VolumeInfo { bytes: self.bytes(), min_block, preferred_block: block_bytes, read_only }
    }

    pub(crate) fn into_device(self, index: usize, lane: &mut Lane, waker: &Arc<Waker>) -> io::Result<Device> {
        match self {
            Self::File(file) => Ok(Device::file(file, index, lane)),
            Self::Nbd(nbd) => Ok(Device::Nbd(Box::new(NbdRunner::new(nbd, index, lane, waker)?))),
        }
    }
}

/// A device at work on a reactor.
pub(crate) enum Device {
    File(Box<FileRunner>),
    Nbd(Box<NbdRunner>),
    /// One that was let go of: a cache device, or the backing of a volume that has left.
    Gone {
        /// The reactor's name for it.
        index: usize,
        /// Where it was.
        name: String,
    },
}

impl Device {
    pub fn file(file: FileDevice, index: usize, lane: &mut Lane) -> Self {
        Self::File(Box::new(FileRunner::new(file, index, lane)))
    }

    /// Start a command; its end, where it comes at once.
    #[inline]
    pub fn start(&mut self, command: Command, lane: &mut Lane) -> Option<Ended> {
        match self {
            Self::File(file) => file.start(command, lane),
            Self::Nbd(nbd) => nbd.start(command),
            Self::Gone { index, .. } => {
                let Command { ticket, kind, .. } = command;
                Some(Ended { device: *index, ticket, kind, result: Err(IoError::Io), again: None })
            }
        }
    }

    /// Its path or URI.
    pub fn name(&self) -> String {
        match self {
            Self::File(file) => file.device.path().display().to_string(),
            Self::Nbd(nbd) => nbd.name(),
            Self::Gone { name, .. } => name.clone(),
        }
    }

    /// True where commands run without the ring, in memory.
    #[inline]
    pub fn is_inline(&self) -> bool {
        matches!(self, Self::File(file) if file.is_inline())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_uri_is_told_with_its_remedy() {
        for text in ["nbds://host/x", "http://host/", "nbd+unix:///x"] {
            let error = Backing::open(text).unwrap_err();
            assert!(matches!(error, BackingError::Uri { .. }), "{error}");
            assert!(error.to_string().starts_with(text) && error.remedy().contains("?socket="));
        }
        assert!(matches!(Backing::open("/nowhere/at all").unwrap_err(), BackingError::File(_)));
    }
}
