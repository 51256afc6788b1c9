//! What a cache device begins with, and the header of a cache that keeps nothing.
//!
//! That header is format 1: 4 KiB, then the slots.
//!
//! | bytes | content (little endian) |
//! | --- | --- |
//! | 0..8 | `LARDERCD` |
//! | 8..12 | format version: 1 |
//! | 12..16 | bytes in a block |
//! | 16..20 | blocks |
//! | 20..4092 | zero |
//! | 4092..4096 | CRC-32C of what is before |
//!
//! A cache that is kept (format 2 or 3, `docs/FORMAT.md`) begins with two superblocks of 4 KiB.

use crate::Buffer;
use larder_engine::format::{Superblock, Unusable, crc32c};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a cache device before its first slot, where the cache keeps nothing.
pub const HEADER_BYTES: u64 = 4096;

const PAGE: usize = HEADER_BYTES as usize;
const MAGIC: &[u8; 8] = b"LARDERCD";
const VERSION: u32 = 1;
/// btrfs is the one common file system that leaves the first 8 KiB alone.
const BTRFS_MAGIC: (u64, &[u8; 8]) = (0x1_0040, b"_BHRfS_M");

/// What the header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub block_bytes: u32,
    pub blocks: u32,
}

/// What a device begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Zeroes.
    Nothing,
    /// A header of format 1: nothing was kept.
    Cold,
    /// A superblock of a cache that is kept.
    Kept,
    /// A whole header of a later format.
    Newer(u32),
    /// A cache of which neither superblock can be used, and why the first cannot.
    Damaged(Unusable),
    /// Something else, over the first half of what was a cache.
    Overwritten,
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

/// Read what a device begins with. A device shorter than two superblocks holds nothing where it is zero so far.
pub(super) fn find(file: &File) -> io::Result<Found> {
    let mut buffer = Buffer::alloc(2 * PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
    let (first, second) = buffer.split_at_mut(PAGE);
    let first_bytes = file.read_at(first, 0)?;
    // A copy that cannot be read is one that cannot be used.
    let second_bytes = file.read_at(second, HEADER_BYTES).unwrap_or(0);
    Ok(match classify(&first[..first_bytes], &second[..second_bytes]) {
        Found::Nothing if has_btrfs(file)? => Found::Foreign,
        found => found,
    })
}

/// What the places of the two superblocks hold. Behind a header of format 1 the second one is a slot, whatever a guest may
/// have written there.
fn classify(first: &[u8], second: &[u8]) -> Found {
    let blank = |page: &[u8]| page.iter().all(|&byte| byte == 0);
    let copies = if blank(first) {
        (Err(Unusable::Blank), Superblock::decode(second, 1))
    } else {
        (Superblock::decode(first, 0), Superblock::decode(second, 1))
    };
    match copies {
        (Err(Unusable::VersionOne), _) => Found::Cold,
        (Err(Unusable::Newer(version)), _) | (_, Err(Unusable::Newer(version))) => Found::Newer(version),
        (Err(Unusable::Foreign), Ok(_)) => Found::Overwritten,
        (Ok(_), _) | (_, Ok(_)) => Found::Kept,
        (Err(Unusable::Blank), Err(_)) if blank(second) => Found::Nothing,
        (Err(Unusable::Foreign), _) | (Err(Unusable::Blank), Err(Unusable::Foreign)) => Found::Foreign,
        (Err(why), _) => Found::Damaged(why),
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

#[cfg(test)]
mod tests {
    use super::*;
    use larder_engine::format::{Layout, Uuid};

    const HEADER: Header = Header { block_bytes: 8192, blocks: 77 };
    const ZERO: [u8; PAGE] = [0; PAGE];

    /// Both superblocks of a cache: the second one has generation 1.
    fn superblocks() -> [Vec<u8>; 2] {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let first = Superblock::new(Uuid([7; 16]), layout);
        [first.successor().encode(), first.encode()]
    }

    fn with_checksum(mut page: Vec<u8>) -> Vec<u8> {
        let checksum = crc32c(&page[..PAGE - 4]);
        page[PAGE - 4..].copy_from_slice(&checksum.to_le_bytes());
        page
    }

    #[test]
    fn a_header_is_known_whatever_is_in_the_first_slot_and_any_flipped_bit_is_noticed() {
        let (page, [_, forged]) = (HEADER.encode(), superblocks());
        assert_eq!([&ZERO[..], &forged].map(|slot| classify(&page, slot)), [Found::Cold, Found::Cold]);
        for at in [0, 9, 12, 16, 100, 4091, 4095] {
            let mut damaged = page;
            damaged[at] ^= 4;
            let expected = if at == 0 { Found::Foreign } else { Found::Damaged(Unusable::Checksum) };
            assert_eq!(classify(&damaged, &ZERO), expected, "byte {at}");
        }
    }

    #[test]
    fn other_contents_are_told_apart() {
        assert_eq!(classify(&ZERO, &ZERO), Found::Nothing);
        assert_eq!(classify(&[], &[]), Found::Nothing);
        assert_eq!(classify(&HEADER.encode()[..4000], &[]), Found::Foreign);
        assert_eq!(classify(&ZERO, &[1; PAGE]), Found::Foreign);
        let mut newer = HEADER.encode().to_vec();
        newer[8] = 6;
        let newer = with_checksum(newer);
        assert_eq!(classify(&newer, &ZERO), Found::Newer(6));
    }

    #[test]
    fn one_good_superblock_makes_a_cache_unless_something_else_is_over_the_other() {
        let [a, b] = superblocks();
        let mut torn = a.clone();
        torn[3000] = 1;
        for (first, second) in [(&a, &b), (&a, &torn), (&torn, &b)] {
            assert_eq!(classify(first, second), Found::Kept);
        }
        assert_eq!((classify(&a, &ZERO), classify(&ZERO, &b)), (Found::Kept, Found::Kept));
        assert_eq!(classify(&a, &[9; PAGE]), Found::Kept);
        assert_eq!(classify(&[9; PAGE], &b), Found::Overwritten);
        assert_eq!(classify(&torn, &torn), Found::Damaged(Unusable::Checksum));
        assert_eq!(classify(&ZERO, &torn), Found::Damaged(Unusable::Blank));
        let mut newer = b.clone();
        newer[8] = 6;
        assert_eq!(classify(&a, &with_checksum(newer)), Found::Newer(6));
        let mut older = b.clone();
        older[8] = 2;
        assert_eq!(classify(&a, &with_checksum(older)), Found::Kept);
    }
}
