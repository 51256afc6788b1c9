//! A digest of all that happens in a simulation: two runs that differ anywhere have different ones.

use super::FaultKind;
use super::contract::extent;
use larder_engine::{DeviceOp, IoError, RequestId, Target};

/// A running digest. It tells accidents apart, not attacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Add a number.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Add bytes, and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|&word| self.word(u64::from_le_bytes(word)));
        rest.iter().for_each(|&byte| self.word(u64::from(byte)));
    }

    /// Add an operation that starts, and the bytes of its memory.
    pub(super) fn op(&mut self, op: &DeviceOp, data: Option<&[u8]>) {
        let target = match op.target {
            Target::Cache => 0,
            Target::CacheMeta => 1,
            Target::Backing(volume) => 2 + u64::from(volume.0),
        };
        let (class, (start, len)) = (FaultKind::of(&op.kind), extent(&op.kind));
        for word in [u64::from(op.id.0), target << 8 | class as u64, start, len] {
            self.word(word);
        }
        if class == FaultKind::Write {
            data.into_iter().for_each(|data| self.bytes(data));
        }
    }

    /// Add a reply, and the guest's buffer.
    pub(super) fn reply(&mut self, id: RequestId, result: Result<(), IoError>, data: &[u8]) {
        let code = result.map_or_else(|error| 1 + error as u64, |()| 0);
        self.word(u64::from(id.0) << 8 | code);
        self.bytes(data);
    }

    /// The digest of all that was added.
    pub fn value(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> u64 {
        let mut digest = Digest::default();
        digest.bytes(bytes);
        digest.value()
    }

    #[test]
    fn every_byte_counts_and_their_order() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        for at in 0..bytes.len() {
            let mut other = bytes;
            other[at] ^= 0x80;
            assert_ne!(of(&bytes), of(&other));
        }
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0; 8]), of(&[0; 16]));
    }
}
