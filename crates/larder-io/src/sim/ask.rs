//! Short ways to write down a request; whoever submits it gives it its name.

use larder_engine::{Request, RequestId, RequestKind, VolumeId};

/// Read `len` bytes at `offset`.
pub fn read(volume: VolumeId, offset: u64, len: u64) -> Request {
    of(RequestKind::Read, volume, offset, len)
}

/// Write `len` bytes at `offset`.
pub fn write(volume: VolumeId, offset: u64, len: u64) -> Request {
    of(RequestKind::Write, volume, offset, len)
}

/// Flush a volume.
pub fn flush(volume: VolumeId) -> Request {
    of(RequestKind::Flush, volume, 0, 0)
}

/// Discard `len` bytes at `offset`.
pub fn discard(volume: VolumeId, offset: u64, len: u64) -> Request {
    of(RequestKind::Discard, volume, offset, len)
}

/// Make `len` bytes at `offset` zero.
pub fn write_zeroes(volume: VolumeId, offset: u64, len: u64) -> Request {
    of(RequestKind::WriteZeroes { no_hole: false }, volume, offset, len)
}

/// A request of any kind.
pub fn of(kind: RequestKind, volume: VolumeId, offset: u64, len: u64) -> Request {
    Request { id: RequestId(0), volume, kind, offset, len, fua: false }
}
