//! CRC-32C, salted: with the cache's UUID, with what kind of thing it covers, and with where that belongs.
//!
//! So a sector of another cache, of an earlier life of this device, or of another place is told from the one that is
//! wanted, although its own bytes are whole. The salt takes no space: it is hashed before the bytes.

use super::entry::BlockId;
use crc_fast::{CrcAlgorithm, Digest};
use std::fmt;
use std::str::FromStr;

/// The name of one cache, drawn when it is formatted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e] = [&self.0[..4], &self.0[4..6], &self.0[6..8], &self.0[8..10], &self.0[10..]];
        for (at, part) in [a, b, c, d, e].into_iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "-" })?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = &'static str;

    fn from_str(words: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a UUID has 32 hexadecimal digits";
        let digits: Option<Vec<u8>> =
            words.chars().filter(|&c| c != '-').map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len() == 32).ok_or(WRONG)?;
        let mut uuid = [0; 16];
        for (byte, pair) in uuid.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(uuid))
    }
}

/// What a checksum covers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A record of the journal; its place follows from its sequence.
    Record,
    /// A page of this copy of the slot table; its number is in its header.
    Page { copy: u8 },
    /// This copy of the volume table.
    Volumes { copy: u8 },
}

/// The start of every checksum of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(u32);

impl Salt {
    /// The salt of the cache of this name.
    pub fn new(uuid: Uuid) -> Self {
        Self(crc32c(&uuid.0))
    }

    /// The checksum of a block's data, which is all of the block that lies within its volume. A block that landed in
    /// a wrong slot fails it.
    pub fn block(self, block: BlockId, data: &[u8]) -> u32 {
        let mut identity = [b'B'; 9];
        identity[1..].copy_from_slice(&block.pack().to_le_bytes());
        append(append(self.0, &identity), data)
    }

    /// The checksum of a piece of metadata.
    pub(super) fn metadata(self, kind: Kind, bytes: &[u8]) -> u32 {
        let kind = match kind {
            Kind::Record => [b'J', 0],
            Kind::Page { copy } => [b'T', copy],
            Kind::Volumes { copy } => [b'V', copy],
        };
        append(append(self.0, &kind), bytes)
    }
}

/// CRC-32C without salt: of the superblock, which says what the salt is, and of the header of a cache that keeps nothing.
pub fn crc32c(bytes: &[u8]) -> u32 {
    append(0, bytes)
}

/// The checksum of what has `checksum`, followed by these bytes.
fn append(checksum: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!checksum));
    digest.update(bytes);
    // Of 32 bits.
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one_and_depends_on_all_that_salts_it() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let salts = [Salt::new(Uuid([1; 16])), Salt::new(Uuid([2; 16]))];
        let blocks = [(1, 7), (1, 8), (2, 7)].map(|(volume, block)| BlockId { volume, block });
        let mut seen = std::collections::BTreeSet::new();
        for salt in salts {
            seen.extend(blocks.map(|block| salt.block(block, &[5; 512])));
            let kinds =
                [Kind::Record, Kind::Page { copy: 0 }, Kind::Page { copy: 1 }, Kind::Volumes { copy: 1 }];
            seen.extend(kinds.map(|kind| salt.metadata(kind, &[5; 512])));
        }
        assert_eq!(seen.len(), 14);
    }

    /// How a processor computes it depends on how long the bytes are, and on the processor.
    #[test]
    fn the_checksum_is_that_of_the_definition_whatever_the_length_and_wherever_it_is_cut() {
        let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        let defined = |bytes: &[u8]| {
            !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
        };
        let bytes: Vec<u8> = (0..8192u32).map(|at| (at * at / 8) as u8).collect();
        for len in (0..600).chain([1023, 1024, 1031, 4092, 4096, 4105, 8192]) {
            let bytes = &bytes[..len];
            let expected = defined(bytes);
            for cut in [0, 1, 9, 256, len / 2, len].map(|cut| cut.min(len)) {
                assert_eq!(
                    append(crc32c(&bytes[..cut]), &bytes[cut..]),
                    expected,
                    "{len} bytes, cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn a_uuid_is_written_and_read() {
        let uuid = Uuid(std::array::from_fn(|at| at as u8 * 17));
        assert_eq!(uuid.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(uuid.to_string().parse(), Ok(uuid));
        assert!("00112233".parse::<Uuid>().is_err() && "x".repeat(32).parse::<Uuid>().is_err());
    }
}
