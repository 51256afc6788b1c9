//! The backings that dirty blocks are saved to, read and written with blocking calls.

use crate::file::{OpenError, check_kind};
use crate::identity::of_file;
use crate::nbd_backing::BlockingNbd;
use crate::{BackingError, NbdBacking, sys};
use larder_nbd::Uri;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A backing while nobody else is at it.
pub trait Disk {
    /// Its size in bytes.
    fn bytes(&self) -> u64;

    /// Write `bytes` at `offset`. Durable only after [`Disk::flush`].
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Make all earlier writes durable.
    fn flush(&mut self) -> io::Result<()>;
}

/// A backing cannot be written to.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// It cannot be opened, or connected to.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// The server takes no writes.
    #[error("{0} is read-only")]
    ReadOnly(Uri),
}

impl DiskError {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Backing(error) => error.remedy(),
            Self::ReadOnly(_) => "let the server take writes (nbdkit: without --readonly)".into(),
        }
    }
}

/// An open backing.
#[derive(Debug)]
pub struct OpenDisk {
    kind: Kind,
    identity: String,
}

#[derive(Debug)]
enum Kind {
    File { file: File, bytes: u64 },
    Nbd(BlockingNbd),
}

impl OpenDisk {
    /// Open what a configuration names: a path, or (with `://` in it) an NBD URI. A block device that is mounted, or part of
    /// something else, is refused.
    pub fn open(text: &str) -> Result<Self, DiskError> {
        if !text.contains("://") {
            return Ok(open_file(Path::new(text)).map_err(BackingError::File)?);
        }
        let uri: Uri = text.parse().map_err(|source| BackingError::Uri { text: text.into(), source })?;
        let nbd = NbdBacking::connect(&uri).map_err(BackingError::Nbd)?;
        match nbd.is_read_only() {
            true => Err(DiskError::ReadOnly(uri)),
            false => {
                let identity = nbd.uri().to_string();
                Ok(Self { kind: Kind::Nbd(BlockingNbd::new(nbd)), identity })
            }
        }
    }

    /// What tells it from any other backing ([`crate::is_same_disk`]).
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

fn open_file(path: &Path) -> Result<OpenDisk, OpenError> {
    let block_device = check_kind(path)?;
    let exclusive = if block_device { libc::O_EXCL } else { 0 };
    let fail = |action| move |source| OpenError::from_os(path.into(), action, source);
    let opened = OpenOptions::new().read(true).write(true).custom_flags(exclusive).open(path);
    let file = opened.map_err(fail("open"))?;
    let size = || if block_device { sys::block_device_bytes(&file) } else { Ok(file.metadata()?.len()) };
    let bytes = size().map_err(fail("look at"))?;
    let identity = of_file(path, &file, block_device);
    Ok(OpenDisk { kind: Kind::File { file, bytes }, identity })
}

impl Disk for OpenDisk {
    fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::File { bytes, .. } => *bytes,
            Kind::Nbd(nbd) => nbd.bytes(),
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &mut self.kind {
            Kind::File { file, .. } => file.write_all_at(bytes, offset),
            Kind::Nbd(nbd) => nbd.write(offset, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.kind {
            Kind::File { file, .. } => file.sync_all(),
            Kind::Nbd(nbd) => nbd.flush(),
        }
    }
}
