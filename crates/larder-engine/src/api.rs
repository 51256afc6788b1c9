//! The engine's vocabulary: what a guest asks, what a device is asked, and who owns the bytes in between.
//!
//! The engine never sees a byte. It names memory by owner and offset ([`Buf`]); the driver (a reactor of `larder-io`, or a
//! simulation) owns the memory and carries out the [`Action`]s in the order in which they come.

use crate::durable::Sums;

/// A volume: one virtual disk. Chosen by the engine, dense from zero, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeId(pub u16);

/// A tenant: one or more volumes that share a partition. Chosen by the engine, dense from zero, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(pub u16);

/// A guest request in flight. Chosen by the driver; may be reused once its [`Action::Reply`] has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u32);

/// A device operation in flight. Chosen by the engine; may be reused after [`crate::Engine::complete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u32);

/// A staging buffer: memory that a fill needs beyond the life of the request that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageId(pub u32);

/// What a guest asks of a volume. Offsets and lengths are in bytes, multiples of [`SECTOR_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The driver's name for it, echoed in the reply.
    pub id: RequestId,
    /// The volume asked.
    pub volume: VolumeId,
    /// What is asked.
    pub kind: RequestKind,
    /// First byte. Ignored for a flush.
    pub offset: u64,
    /// Number of bytes. Zero completes at once. Ignored for a flush.
    pub len: u64,
    /// Force unit access: the reply waits until the write is durable. Ignored for reads, flushes and discards.
    pub fua: bool,
}

/// The kinds of guest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Fill the request's buffer from the volume.
    Read,
    /// Write the request's buffer to the volume.
    Write,
    /// Make every write completed before this durable.
    Flush,
    /// The contents are no longer needed (advisory: NBD trim).
    Discard,
    /// Make the range read as zeroes.
    WriteZeroes {
        /// The range must stay allocated (NBD `NO_HOLE`).
        no_hole: bool,
    },
}

/// A place in memory that the driver owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buf {
    /// Whose memory it is.
    pub owner: BufOwner,
    /// Bytes from its start.
    pub offset: u32,
}

/// Who owns a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufOwner {
    /// The data of a guest request: valid from `submit` until its `Reply` is taken.
    /// No device operation on it is in flight when the `Reply` is handed out.
    Guest(RequestId),
    /// A staging buffer: valid from its `AllocStage` until its `FreeStage`.
    Stage(StageId),
}

/// Which device an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The cache device. Offset 0 is the first byte of slot 0: the driver adds the header.
    Cache,
    /// The cache device's metadata. Offset 0 is the first byte of the device; a flush is one of the whole device.
    CacheMeta,
    /// The backing of a volume.
    Backing(VolumeId),
}

/// One operation on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOp {
    /// To be given back in [`crate::Engine::complete`].
    pub id: OpId,
    /// The device.
    pub target: Target,
    /// What to do there.
    pub kind: OpKind,
    /// Checksums to be computed over its memory when it has ended well, and given back in [`crate::Engine::complete_summed`].
    pub sums: Option<Sums>,
}

/// What a device is asked to do. Offsets and lengths are in bytes. A read or write either transfers everything or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Read `len` bytes at `offset` into `buf`.
    Read {
        /// First byte on the device.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Where they go.
        buf: Buf,
    },
    /// Write `len` bytes from `buf` at `offset`.
    Write {
        /// First byte on the device.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Where they come from.
        buf: Buf,
        /// Complete only when durable.
        fua: bool,
    },
    /// Make every write completed before this durable.
    Flush,
    /// Contents no longer needed; a device that cannot do it completes with success.
    Discard {
        /// First byte on the device.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Make the range read as zeroes.
    WriteZeroes {
        /// First byte on the device.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Complete only when durable.
        fua: bool,
        /// Keep the range allocated.
        no_hole: bool,
    },
}

/// What the engine wants done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Provide `bytes` of block-aligned memory under this name. Its content is read only after it was written.
    AllocStage {
        /// Its name.
        stage: StageId,
        /// Its size.
        bytes: u32,
    },
    /// Put the bytes that [`crate::Engine::take_load`] gives at the start of this staging buffer, now.
    Load {
        /// Its name.
        stage: StageId,
    },
    /// Start a device operation; its end is told by [`crate::Engine::complete`], in any order.
    Device(DeviceOp),
    /// Copy memory, now.
    Copy {
        /// Source.
        from: Buf,
        /// Destination; never the same owner as the source.
        to: Buf,
        /// Number of bytes.
        len: u32,
    },
    /// The memory is no longer needed; no device operation on it is in flight.
    FreeStage {
        /// Its name.
        stage: StageId,
    },
    /// The guest's request has ended.
    Reply {
        /// Its name.
        request: RequestId,
        /// How it ended.
        result: Result<(), IoError>,
    },
}

/// How a device operation or a guest request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IoError {
    /// The device failed (EIO).
    #[error("input/output error")]
    Io,
    /// The backing is out of space (ENOSPC).
    #[error("no space left on the backing")]
    NoSpace,
    /// Misaligned, or beyond the end of the volume (EINVAL).
    #[error("request is misaligned or beyond the end of the volume")]
    Invalid,
    /// The backing cannot do this (ENOTSUP, EROFS).
    #[error("not supported by the backing")]
    NotSupported,
}

/// Smallest unit of a guest request.
pub const SECTOR_BYTES: u64 = 512;

/// What happens to writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// Write-back: a write goes to the cache alone, and to the backing later. Only where the cache is kept
    /// ([`crate::Engine::open_cache`]); elsewhere it is write-through.
    WriteBack,
    /// Write-through: a write goes to the backing and to the cache.
    WriteThrough,
    /// Write-through without allocation: a write goes to the backing, and to the cache where its block is cached.
    WriteThroughNoAllocate,
    /// Read-only: a write goes to the backing and invalidates.
    ReadOnly,
}

impl WritePolicy {
    /// The name used in configuration and status: `wb`, `wt`, `wt-noalloc`, `ro`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WriteBack => "wb",
            Self::WriteThrough => "wt",
            Self::WriteThroughNoAllocate => "wt-noalloc",
            Self::ReadOnly => "ro",
        }
    }
}
