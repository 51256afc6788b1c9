//! Sector contents that say what they are: volume, sector and generation, in all 512 bytes.
//!
//! Every sector written by a test holds a stamp of its own, so any sector read back names the write that it came from, and
//! a sector of the wrong place, a mixture of two, or memory that nobody wrote is told from all of them.

use larder_engine::{SECTOR_BYTES, VolumeId};

/// Which write a sector's content came from. Zero: the sector is all zeroes.
pub type Generation = u64;

/// The generation of a sector that holds zeroes.
pub const ZEROES: Generation = 0;

/// Write the stamps of `generation` to `bytes`, whole sectors from `sector` on.
pub fn fill(volume: VolumeId, sector: u64, generation: Generation, bytes: &mut [u8]) {
    if generation == ZEROES {
        return bytes.fill(0);
    }
    for (n, chunk) in bytes.chunks_exact_mut(SECTOR_BYTES as usize).enumerate() {
        for (word, value) in chunk.chunks_exact_mut(8).zip(words(volume, sector + n as u64, generation)) {
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// The generation that one sector's `bytes` hold; none where they are not a stamp of this very sector.
pub fn read(volume: VolumeId, sector: u64, bytes: &[u8]) -> Option<Generation> {
    if bytes.iter().all(|&b| b == 0) {
        return Some(ZEROES);
    }
    let generation = u64::from_le_bytes(*bytes.first_chunk()?);
    let mut expected = words(volume, sector, generation);
    let same = bytes.chunks_exact(8).all(|word| expected.next().is_some_and(|w| word == w.to_le_bytes()));
    (same && bytes.len() as u64 == SECTOR_BYTES).then_some(generation)
}

/// The generation itself, then words that depend on volume, sector, generation and place.
fn words(volume: VolumeId, sector: u64, generation: Generation) -> impl Iterator<Item = u64> {
    let key = (u64::from(volume.0) << 48) ^ (sector << 20) ^ generation;
    let key = (key ^ (key >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1;
    let rest = (1..SECTOR_BYTES / 8).map(move |n| key.wrapping_mul(2 * n + 1));
    std::iter::once(generation).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_names_its_write_and_nothing_else() {
        let mut bytes = vec![7; 1024];
        fill(VolumeId(3), 10, 42, &mut bytes);
        assert_eq!(read(VolumeId(3), 10, &bytes[..512]), Some(42));
        assert_eq!(read(VolumeId(3), 11, &bytes[512..]), Some(42));
        assert_eq!(read(VolumeId(3), 11, &bytes[..512]), None, "another sector's content");
        assert_eq!(read(VolumeId(2), 10, &bytes[..512]), None, "another volume's content");
        let mut torn = bytes.clone();
        fill(VolumeId(3), 10, 43, &mut torn);
        torn[256..512].copy_from_slice(&bytes[256..512]);
        assert_eq!(read(VolumeId(3), 10, &torn[..512]), None, "torn inside the sector");
        assert_eq!(read(VolumeId(3), 10, &[0; 512]), Some(ZEROES));
        assert_eq!(read(VolumeId(3), 10, &[0xee; 512]), None, "garbage");
    }
}
