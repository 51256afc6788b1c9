//! The first 4 KiB of a cache device.
//!
//! | bytes | content (little endian) |
//! | --- | --- |
//! | 0..8 | `LARDERCD` |
//! | 8..12 | format version: 1 |
//! | 12..16 | bytes in a block |
//! | 16..20 | blocks |
//! | 20..4092 | zero |
//! | 4092..4096 | CRC-32C of what is before |

use crate::Buffer;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a cache device before its first slot.
pub const HEADER_BYTES: u64 = 4096;

const PAGE: usize = HEADER_BYTES as usize;
const MAGIC: &[u8; 8] = b"LARDERCD";
const VERSION: u32 = 1;
/// btrfs is the one common file system that leaves the first 4 KiB alone.
const BTRFS_MAGIC: (u64, &[u8; 8]) = (0x1_0040, b"_BHRfS_M");

/// What the header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub block_bytes: u32,
    pub blocks: u32,
}

/// What a device begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Zeroes.
    Nothing,
    /// A header of this format.
    Ours(Header),
    /// A whole header of a later format.
    Newer(u32),
    /// Anything else.
    Foreign,
}

impl Header {
    pub fn encode(&self) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[0..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[12..16].copy_from_slice(&self.block_bytes.to_le_bytes());
        page[16..20].copy_from_slice(&self.blocks.to_le_bytes());
        let checksum = crc32c(&page[..PAGE - 4]);
        page[PAGE - 4..].copy_from_slice(&checksum.to_le_bytes());
        page
    }
}

/// Read what a device begins with. A device shorter than a header holds nothing where it is zero so far.
pub(super) fn find(file: &File) -> io::Result<Found> {
    let mut buffer = Buffer::alloc(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
    let count = file.read_at(&mut buffer, 0)?;
    Ok(match classify(&buffer[..count]) {
        Found::Nothing if has_btrfs(file)? => Found::Foreign,
        found => found,
    })
}

fn classify(page: &[u8]) -> Found {
    if page.iter().all(|&byte| byte == 0) {
        return Found::Nothing;
    }
    let Ok(page) = <&[u8; PAGE]>::try_from(page) else { return Found::Foreign };
    let field = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    if &page[0..8] != MAGIC || field(PAGE - 4) != crc32c(&page[..PAGE - 4]) {
        return Found::Foreign;
    }
    match field(8) {
        VERSION => Found::Ours(Header { block_bytes: field(12), blocks: field(16) }),
        version => Found::Newer(version),
    }
}

fn has_btrfs(file: &File) -> io::Result<bool> {
    let (offset, magic) = BTRFS_MAGIC;
    let mut buffer = Buffer::alloc(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
    let start = offset / HEADER_BYTES * HEADER_BYTES;
    let count = file.read_at(&mut buffer, start)?;
    let at = (offset - start) as usize;
    Ok(buffer[..count].get(at..at + magic.len()) == Some(&magic[..]))
}

/// CRC-32C (Castagnoli), bit by bit: for one page at start.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { block_bytes: 8192, blocks: 77 };

    #[test]
    fn checksum_is_the_known_one() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_header_survives_and_any_flipped_bit_is_noticed() {
        let page = HEADER.encode();
        assert_eq!(classify(&page), Found::Ours(HEADER));
        for at in [0, 9, 12, 16, 100, 4091, 4095] {
            let mut damaged = page;
            damaged[at] ^= 4;
            assert_eq!(classify(&damaged), Found::Foreign, "byte {at}");
        }
    }

    #[test]
    fn other_contents_are_told_apart() {
        assert_eq!(classify(&[0; PAGE]), Found::Nothing);
        assert_eq!(classify(&[]), Found::Nothing);
        assert_eq!(classify(&HEADER.encode()[..4000]), Found::Foreign);
        let mut newer = HEADER.encode();
        newer[8] = 2;
        let checksum = crc32c(&newer[..PAGE - 4]);
        newer[PAGE - 4..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(classify(&newer), Found::Newer(2));
    }
}
