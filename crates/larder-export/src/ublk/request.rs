//! From a descriptor of the driver's to what is asked of the volume.

use super::abi::{
    Descriptor, IO_F_FUA, IO_F_NOUNMAP, OP_DISCARD, OP_FLUSH, OP_MASK, OP_READ, OP_WRITE, OP_WRITE_ZEROES,
};
use super::limits::REQUEST_BYTES_MAX;
use larder_engine::{IoError, RequestKind, SECTOR_BYTES};

/// What is asked: bytes, not sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
    /// Answer when it is durable.
    pub fua: bool,
}

impl Asked {
    /// Bytes of data that come or go with it.
    pub fn data_bytes(&self) -> usize {
        match self.kind {
            RequestKind::Read | RequestKind::Write => self.len as usize,
            _ => 0,
        }
    }
}

/// Understand a descriptor; the error is the number to answer with.
pub(super) fn parse(descriptor: &Descriptor) -> Result<Asked, i32> {
    let kind = match descriptor.op_flags & OP_MASK {
        OP_READ => RequestKind::Read,
        OP_WRITE => RequestKind::Write,
        OP_FLUSH => RequestKind::Flush,
        OP_DISCARD => RequestKind::Discard,
        OP_WRITE_ZEROES => RequestKind::WriteZeroes { no_hole: descriptor.op_flags & IO_F_NOUNMAP != 0 },
        _ => return Err(-libc::EOPNOTSUPP),
    };
    if kind == RequestKind::Flush {
        return Ok(Asked { kind, offset: 0, len: 0, fua: false });
    }
    let offset = descriptor.sector.checked_mul(SECTOR_BYTES).ok_or(-libc::EINVAL)?;
    let len = u64::from(descriptor.sectors) * SECTOR_BYTES;
    let asked = Asked { kind, offset, len, fua: descriptor.op_flags & IO_F_FUA != 0 };
    if len == 0 || asked.data_bytes() > REQUEST_BYTES_MAX as usize {
        return Err(-libc::EINVAL);
    }
    Ok(asked)
}

/// The end of a request as the driver takes it: bytes of data, or an error number.
pub(super) fn answer(result: Result<(), IoError>, data_bytes: usize) -> i32 {
    match result {
        Ok(()) => data_bytes as i32,
        Err(IoError::Io) => -libc::EIO,
        Err(IoError::NoSpace) => -libc::ENOSPC,
        Err(IoError::Invalid) => -libc::EINVAL,
        Err(IoError::NotSupported) => -libc::EOPNOTSUPP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(op_flags: u32, sector: u64, sectors: u32) -> Result<Asked, i32> {
        parse(&Descriptor { op_flags, sectors, sector, address: 0 })
    }

    #[test]
    fn requests_are_in_sectors_of_512_bytes() {
        let plain = |kind, offset, len| Ok(Asked { kind, offset, len, fua: false });
        assert_eq!(asked(OP_READ, 3, 2), plain(RequestKind::Read, 1536, 1024));
        assert_eq!(asked(OP_WRITE, 8, 8), plain(RequestKind::Write, 4096, 4096));
        assert_eq!(
            asked(OP_WRITE | IO_F_FUA, 0, 1),
            Ok(Asked { kind: RequestKind::Write, offset: 0, len: 512, fua: true })
        );
        assert_eq!(asked(OP_FLUSH, 77, 0), plain(RequestKind::Flush, 0, 0));
        assert_eq!(asked(OP_DISCARD, 0, 1 << 21), plain(RequestKind::Discard, 0, 1 << 30));
        for (flags, no_hole) in [(0, false), (IO_F_NOUNMAP, true)] {
            let zeroes = RequestKind::WriteZeroes { no_hole };
            assert_eq!(asked(OP_WRITE_ZEROES | flags, 1, 1), plain(zeroes, 512, 512));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(asked(15, 0, 8), Err(-libc::EOPNOTSUPP));
        assert_eq!(asked(OP_READ, u64::MAX / 512 + 1, 1), Err(-libc::EINVAL));
        assert_eq!(asked(OP_WRITE, 0, REQUEST_BYTES_MAX / 512 + 1), Err(-libc::EINVAL));
        assert_eq!(asked(OP_DISCARD, 0, 0), Err(-libc::EINVAL));
    }

    #[test]
    fn ends_are_told_in_bytes_or_error_numbers() {
        assert_eq!(answer(Ok(()), 4096), 4096);
        assert_eq!(answer(Ok(()), 0), 0);
        assert_eq!(answer(Err(IoError::Io), 4096), -libc::EIO);
        assert_eq!(answer(Err(IoError::NoSpace), 0), -libc::ENOSPC);
    }
}
