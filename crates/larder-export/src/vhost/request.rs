//! What a chain of descriptors asks of the disk (virtio 1.2, section 5.2.6).

use super::chain::{BrokenChain, Chain, total};
use super::limits::{CLEAR_SECTORS_MAX, REQUEST_BYTES_MAX};
use super::view::Memory;
use larder_engine::{IoError, RequestKind, SECTOR_BYTES};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH,
    VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
    VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
};
use vm_memory::GuestAddress;

/// Bytes of the answer to a question for the device's name.
pub(super) const ID_BYTES: usize = 20;
const HEADER_BYTES: usize = 16;
const RANGE_BYTES: usize = 16;

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    Failed,
    Unsupported,
}

impl Status {
    /// As the driver knows it.
    pub fn to_byte(self) -> u8 {
        let code = match self {
            Self::Ok => VIRTIO_BLK_S_OK,
            Self::Failed => VIRTIO_BLK_S_IOERR,
            Self::Unsupported => VIRTIO_BLK_S_UNSUPP,
        };
        code as u8
    }
}

impl From<Result<(), IoError>> for Status {
    fn from(result: Result<(), IoError>) -> Self {
        match result {
            Ok(()) => Self::Ok,
            Err(IoError::NotSupported) => Self::Unsupported,
            Err(_) => Self::Failed,
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Something of the volume: bytes, not sectors.
    Volume { kind: RequestKind, offset: u64, len: u64 },
    /// The device's name.
    Id,
    /// Nothing that can be done; the answer.
    Refused(Status),
}

/// A request, with the place for its status. What data it moves is left in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub asked: Asked,
    pub status: GuestAddress,
}

/// Read what a chain that was walked asks.
pub(super) fn parse(chain: &mut Chain, memory: &Memory) -> Result<Parsed, BrokenChain> {
    let status = chain.take_status()?;
    let asked = read(chain, memory).unwrap_or_else(Asked::Refused);
    Ok(Parsed { asked, status })
}

fn read(chain: &mut Chain, memory: &Memory) -> Result<Asked, Status> {
    let mut header = [0; HEADER_BYTES];
    if !chain.take_front(memory, &mut header) {
        return Err(Status::Failed);
    }
    let [t0, t1, t2, t3, _, _, _, _, sector @ ..] = header;
    let sector = u64::from_le_bytes(sector);
    match u32::from_le_bytes([t0, t1, t2, t3]) {
        VIRTIO_BLK_T_IN => transfer(RequestKind::Read, sector, total(&chain.writable)),
        VIRTIO_BLK_T_OUT => transfer(RequestKind::Write, sector, total(&chain.readable)),
        VIRTIO_BLK_T_FLUSH => Ok(Asked::Volume { kind: RequestKind::Flush, offset: 0, len: 0 }),
        VIRTIO_BLK_T_GET_ID => Ok(Asked::Id),
        VIRTIO_BLK_T_DISCARD => clear(chain, memory, false),
        VIRTIO_BLK_T_WRITE_ZEROES => clear(chain, memory, true),
        _ => Err(Status::Unsupported),
    }
}

fn transfer(kind: RequestKind, sector: u64, len: u64) -> Result<Asked, Status> {
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or(Status::Failed)?;
    if len > REQUEST_BYTES_MAX as u64 {
        return Err(Status::Failed);
    }
    Ok(Asked::Volume { kind, offset, len })
}

/// A discard or writing zeroes: one range, as the configuration space says.
fn clear(chain: &mut Chain, memory: &Memory, zeroes: bool) -> Result<Asked, Status> {
    let mut range = [0; RANGE_BYTES];
    if !chain.take_front(memory, &mut range) || !chain.readable.is_empty() {
        return Err(Status::Failed);
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3, flags @ ..] = range;
    let sector = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
    let (sectors, flags) = (u32::from_le_bytes([n0, n1, n2, n3]), u32::from_le_bytes(flags));
    let unmap = flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0;
    let kind = match zeroes {
        true => RequestKind::WriteZeroes { no_hole: !unmap },
        false => RequestKind::Discard,
    };
    if flags & !VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0 || unmap && !zeroes {
        return Err(Status::Unsupported);
    }
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or(Status::Failed)?;
    if sectors > CLEAR_SECTORS_MAX {
        return Err(Status::Failed);
    }
    Ok(Asked::Volume { kind, offset, len: u64::from(sectors) * SECTOR_BYTES })
}

#[cfg(test)]
mod tests {
    use super::super::chain::Segment;
    use super::*;
    use vm_memory::Bytes;

    const DATA: u32 = 1024;

    /// What a header, and the bytes behind it, ask.
    fn asked(kind: u32, sector: u64, behind: &[u8], writable: u32) -> Asked {
        let memory = Memory::from_ranges(&[(GuestAddress(0), 0x10000)]).unwrap();
        let mut bytes = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
        bytes.extend(behind);
        memory.write_slice(&bytes, GuestAddress(0x100)).unwrap();
        let mut chain = Chain {
            readable: vec![Segment { start: GuestAddress(0x100), len: bytes.len() as u32 }],
            writable: vec![Segment { start: GuestAddress(0x8000), len: writable + 1 }],
        };
        let parsed = parse(&mut chain, &memory).unwrap();
        assert_eq!(parsed.status, GuestAddress(0x8000 + u64::from(writable)));
        parsed.asked
    }

    fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
        [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
    }

    fn volume(kind: RequestKind, offset: u64, len: u64) -> Asked {
        Asked::Volume { kind, offset, len }
    }

    #[test]
    fn requests_are_in_sectors_of_512_bytes() {
        assert_eq!(asked(VIRTIO_BLK_T_IN, 3, &[], DATA), volume(RequestKind::Read, 1536, 1024));
        assert_eq!(asked(VIRTIO_BLK_T_OUT, 2, &[7; 512], 0), volume(RequestKind::Write, 1024, 512));
        assert_eq!(asked(VIRTIO_BLK_T_FLUSH, 9, &[], 0), volume(RequestKind::Flush, 0, 0));
        assert_eq!(asked(VIRTIO_BLK_T_GET_ID, 0, &[], 20), Asked::Id);
        assert_eq!(
            asked(VIRTIO_BLK_T_DISCARD, 0, &range(8, 16, 0), 0),
            volume(RequestKind::Discard, 4096, 8192)
        );
        for (flags, no_hole) in [(0, true), (1, false)] {
            let zeroes = RequestKind::WriteZeroes { no_hole };
            assert_eq!(asked(VIRTIO_BLK_T_WRITE_ZEROES, 0, &range(1, 1, flags), 0), volume(zeroes, 512, 512));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (failed, unsupported) = (Asked::Refused(Status::Failed), Asked::Refused(Status::Unsupported));
        assert_eq!(asked(VIRTIO_BLK_T_IN, u64::MAX / 512 + 1, &[], DATA), failed);
        assert_eq!(asked(VIRTIO_BLK_T_IN, 0, &[], REQUEST_BYTES_MAX as u32 + 512), failed);
        assert_eq!(asked(VIRTIO_BLK_T_DISCARD, 0, &range(0, 8, 0)[..15], 0), failed);
        assert_eq!(asked(VIRTIO_BLK_T_DISCARD, 0, &[range(0, 8, 0), range(8, 8, 0)].concat(), 0), failed);
        assert_eq!(asked(VIRTIO_BLK_T_DISCARD, 0, &range(0, CLEAR_SECTORS_MAX + 1, 0), 0), failed);
        assert_eq!(asked(VIRTIO_BLK_T_DISCARD, 0, &range(0, 8, 1), 0), unsupported);
        assert_eq!(asked(VIRTIO_BLK_T_WRITE_ZEROES, 0, &range(0, 8, 2), 0), unsupported);
        assert_eq!(asked(0x77, 0, &[], 0), unsupported);
        assert_eq!(asked(VIRTIO_BLK_T_DISCARD, 0, &range(u64::MAX, 8, 0), 0), failed);
    }

    #[test]
    fn a_short_header_fails() {
        let memory = Memory::from_ranges(&[(GuestAddress(0), 0x1000)]).unwrap();
        let mut chain = Chain {
            readable: vec![Segment { start: GuestAddress(0), len: 15 }],
            writable: vec![Segment { start: GuestAddress(0x800), len: 1 }],
        };
        assert_eq!(parse(&mut chain, &memory).unwrap().asked, Asked::Refused(Status::Failed));
    }
}
