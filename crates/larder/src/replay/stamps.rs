//! What a replay writes: sectors that say which write they come from, in all of their 512 bytes.
//!
//! A stamp is made of the replay's seed, the sector and the write's number (its version), so a sector of another place, of an
//! older write, of another replay or damaged in a single bit is told from what should be there. The bytes look random: no device
//! gains by compressing them.

use std::fmt;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

/// How every stamp begins.
const MAGIC: u64 = u64::from_le_bytes(*b"larder\0r");

/// Words of eight bytes in a sector.
const WORDS: usize = SECTOR as usize / 8;

/// Makes and reads the stamps of one replay.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    /// What tells them from those of another replay.
    pub seed: u64,
}

/// What a sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A stamp of this very sector, whole, by this write.
    Version(u64),
    /// A whole stamp of another place.
    Elsewhere { sector: u64, version: u64 },
    /// A stamp by this write, with a wrong byte.
    Damaged { version: u64, at: usize },
    /// A stamp of another replay.
    OtherReplay { seed: u64 },
    /// Nothing but zeroes.
    Zeroes,
    /// No stamp; how it begins.
    Foreign([u8; 8]),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "write {version}"),
            Self::Elsewhere { sector, version } => {
                write!(f, "what write {version} put at byte {}", sector * SECTOR)
            }
            Self::Damaged { version, at } => {
                write!(f, "write {version} with damage from byte {at} of the sector on")
            }
            Self::OtherReplay { seed } => write!(f, "a write of another replay, with the seed {seed}"),
            Self::Zeroes => f.write_str("zeroes"),
            Self::Foreign(bytes) => {
                f.write_str("no stamp, but bytes that begin with")?;
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
        }
    }
}

impl Stamps {
    /// Fill `bytes`, whole sectors from `sector` on, with the stamps of a write.
    pub fn fill(self, sector: u64, version: u64, bytes: &mut [u8]) {
        for (sector, bytes) in (sector..).zip(bytes.chunks_exact_mut(SECTOR as usize)) {
            for (word, value) in bytes.chunks_exact_mut(8).zip(words(self.seed, sector, version)) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
    }

    /// What one sector holds.
    pub fn read(self, sector: u64, bytes: &[u8]) -> Found {
        let [magic, seed, place, version] = std::array::from_fn(|at| word(bytes, at));
        if magic != MAGIC {
            return match bytes.iter().all(|&byte| byte == 0) {
                true => Found::Zeroes,
                false => Found::Foreign(word(bytes, 0).to_le_bytes()),
            };
        }
        if seed != self.seed {
            return Found::OtherReplay { seed };
        }
        match first_wrong(words(seed, place, version), bytes) {
            None if place == sector => Found::Version(version),
            None => Found::Elsewhere { sector: place, version },
            Some(at) => Found::Damaged { version, at },
        }
    }
}

/// The word at a place, of zeroes where the bytes end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at * 8..).and_then(|rest| rest.first_chunk());
    u64::from_le_bytes(word.copied().unwrap_or_default())
}

/// The first byte that is not as it should be.
fn first_wrong(expected: impl Iterator<Item = u64>, bytes: &[u8]) -> Option<usize> {
    let wrong = expected.enumerate().find(|&(at, value)| word(bytes, at) != value);
    wrong.map(|(at, value)| at * 8 + ((word(bytes, at) ^ value).trailing_zeros() / 8) as usize)
}

/// A stamp's words: what it says, then words that depend on all of it and on their place.
fn words(seed: u64, sector: u64, version: u64) -> impl Iterator<Item = u64> {
    let key = mixed(seed ^ mixed(sector ^ mixed(version)));
    let rest = (4..WORDS as u64).map(move |at| mixed(key.wrapping_add(at)));
    [MAGIC, seed, sector, version].into_iter().chain(rest)
}

/// Every bit of the result depends on every bit of the number (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OURS: Stamps = Stamps { seed: 5 };

    fn stamp(stamps: Stamps, sector: u64, version: u64) -> Vec<u8> {
        let mut bytes = vec![0xaa; SECTOR as usize];
        stamps.fill(sector, version, &mut bytes);
        bytes
    }

    #[test]
    fn a_sector_tells_what_it_is() {
        let mut two = vec![0; 1024];
        OURS.fill(10, 42, &mut two);
        assert_eq!(OURS.read(10, &two[..512]), Found::Version(42));
        assert_eq!(OURS.read(11, &two[512..]), Found::Version(42));
        assert_eq!(OURS.read(11, &two[..512]), Found::Elsewhere { sector: 10, version: 42 });
        assert_eq!(OURS.read(10, &stamp(Stamps { seed: 6 }, 10, 42)), Found::OtherReplay { seed: 6 });
        assert_eq!(OURS.read(10, &[0; 512]), Found::Zeroes);
        assert_eq!(OURS.read(10, &[7; 512]), Found::Foreign([7; 8]));
        let torn = [&stamp(OURS, 10, 42)[..256], &stamp(OURS, 10, 43)[256..]].concat();
        assert_eq!(OURS.read(10, &torn), Found::Damaged { version: 42, at: 256 });
    }

    #[test]
    fn what_was_found_is_told_in_words() {
        for (found, told) in [
            (Found::Version(3), "write 3"),
            (Found::Elsewhere { sector: 8, version: 3 }, "what write 3 put at byte 4096"),
            (
                Found::Foreign([0, 1, 2, 3, 4, 5, 6, 255]),
                "no stamp, but bytes that begin with 00 01 02 03 04 05 06 ff",
            ),
        ] {
            assert_eq!(found.to_string(), told);
        }
    }

    proptest! {
        #[test]
        fn no_flipped_bit_goes_unseen(sector in any::<u64>(), version in any::<u64>(), bit in 0_usize..4096) {
            let mut bytes = stamp(OURS, sector, version);
            prop_assert_eq!(OURS.read(sector, &bytes), Found::Version(version));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!matches!(OURS.read(sector, &bytes), Found::Version(_) | Found::Zeroes));
        }
    }
}
