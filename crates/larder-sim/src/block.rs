//! Requests cut into blocks, and the number that stands for a block of a volume.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use larder_trace::{Request, RequestKind};

/// The unit of caching: a power of two from 512 bytes to 128 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    shift: u32,
}

/// Not a size that a block can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes is no block size: a power of two from 512 bytes to 128 KiB is")]
pub struct BlockSizeError(
    /// The bytes.
    pub u64,
);

impl BlockSize {
    /// 4 KiB.
    pub const DEFAULT: Self = Self { shift: 12 };

    /// A block of so many bytes.
    pub fn new(bytes: u64) -> Result<Self, BlockSizeError> {
        match bytes.is_power_of_two() && (512..=128 << 10).contains(&bytes) {
            true => Ok(Self { shift: bytes.trailing_zeros() }),
            false => Err(BlockSizeError(bytes)),
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> u32 {
        1 << self.shift
    }

    /// The blocks that a request is about: those that a read or a write touches, those that a discard covers whole. None for a flush.
    pub fn blocks_of(self, request: &Request) -> Range<u64> {
        let Request { kind, offset, len, .. } = *request;
        let end = offset.saturating_add(len.into());
        match kind {
            RequestKind::Read | RequestKind::Write if len > 0 => {
                offset >> self.shift..((end - 1) >> self.shift) + 1
            }
            RequestKind::Discard => {
                let first = (offset >> self.shift) + u64::from(!offset.is_multiple_of(self.bytes().into()));
                first..first.max(end >> self.shift)
            }
            _ => 0..0,
        }
    }
}

impl Default for BlockSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for BlockSize {
    /// Its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes())
    }
}

/// Blocks of a volume that share the upper half of their keys.
const SEGMENT_BLOCKS: u64 = 1 << 32;

/// The trace touches more segments than keys can tell apart: each is 2^32 blocks of one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than 2^32 - 1 stretches of 2^32 blocks are touched: choose larger blocks")]
pub struct TooManySegments;

/// Gives every block of every volume a key of its own in 64 bits: a volume may have up to 2^55 blocks, so its number and the block's do not fit as they are.
///
/// A *segment* is 2^32 blocks of one volume. Those that a trace touches are numbered as they come; a key is the segment's number and the block in it. No key is
/// `u64::MAX`.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Only looked up, never walked: its order shows nowhere.
    segments: HashMap<(u32, u64), u32>,
    /// The segment that was asked for last: most requests are for the same.
    last: (u32, u64),
    last_number: u32,
}

impl Keys {
    pub(crate) fn new() -> Self {
        // No segment has this number: a volume's blocks are fewer than 2^64.
        Self { segments: HashMap::new(), last: (0, u64::MAX), last_number: 0 }
    }

    /// Append the keys of the first of `blocks`, at most `room`; returns how many.
    pub(crate) fn extend(
        &mut self,
        keys: &mut Vec<u64>,
        volume: u32,
        blocks: &Range<u64>,
        room: usize,
    ) -> Result<u64, TooManySegments> {
        let end = blocks.end.min(blocks.start.saturating_add(room as u64));
        let mut block = blocks.start;
        while block < end {
            let segment = block / SEGMENT_BLOCKS;
            let base = u64::from(self.number(volume, segment)?) * SEGMENT_BLOCKS;
            let stretch = end.min((segment + 1) * SEGMENT_BLOCKS);
            keys.extend((block..stretch).map(|block| base | (block % SEGMENT_BLOCKS)));
            block = stretch;
        }
        Ok(end.saturating_sub(blocks.start))
    }

    fn number(&mut self, volume: u32, segment: u64) -> Result<u32, TooManySegments> {
        if self.last != (volume, segment) {
            let next = u32::try_from(self.segments.len()).ok().filter(|&next| next < u32::MAX);
            let next = next.ok_or(TooManySegments)?;
            self.last_number = *self.segments.entry((volume, segment)).or_insert(next);
            self.last = (volume, segment);
        }
        Ok(self.last_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn request(kind: RequestKind, offset: u64, len: u32) -> Request {
        Request { time_ns: 0, volume: 0, kind, offset, len }
    }

    #[test]
    fn block_sizes_are_powers_of_two_in_range() {
        for bytes in [512, 4096, 131_072] {
            assert_eq!(u64::from(BlockSize::new(bytes).unwrap().bytes()), bytes);
        }
        for bytes in [0, 1, 256, 4095, 5000, 262_144, u64::MAX] {
            assert_eq!(BlockSize::new(bytes), Err(BlockSizeError(bytes)));
        }
    }

    #[test]
    fn a_read_touches_and_a_discard_covers() {
        let blocks = |kind, offset, len| BlockSize::DEFAULT.blocks_of(&request(kind, offset, len));
        for kind in [RequestKind::Read, RequestKind::Write] {
            assert_eq!(blocks(kind, 0, 1), 0..1);
            assert_eq!(blocks(kind, 4095, 2), 0..2);
            assert_eq!(blocks(kind, 4096, 4096), 1..2);
            assert_eq!(blocks(kind, 1 << 63, 8192), 1 << 51..(1 << 51) + 2);
            assert_eq!(blocks(kind, u64::MAX - 1, 1), (1 << 52) - 1..1 << 52);
            assert!(blocks(kind, 9000, 0).is_empty());
        }
        assert!(blocks(RequestKind::Flush, 0, 0).is_empty());
        assert_eq!(blocks(RequestKind::Discard, 0, 8192), 0..2);
        assert_eq!(blocks(RequestKind::Discard, 1, 12_287), 1..3);
        assert!(blocks(RequestKind::Discard, 1, 4096).is_empty());
        assert!(blocks(RequestKind::Discard, 100, 200).is_empty());
        assert!(blocks(RequestKind::Discard, u64::MAX - 10, 10).is_empty());
    }

    #[test]
    fn keys_are_taken_in_portions() {
        let (mut keys, mut out) = (Keys::new(), Vec::new());
        let blocks = SEGMENT_BLOCKS - 2..SEGMENT_BLOCKS + 3;
        assert_eq!(keys.extend(&mut out, 7, &blocks, 4), Ok(4));
        assert_eq!(keys.extend(&mut out, 7, &(blocks.start + 4..blocks.end), 4), Ok(1));
        assert_eq!(
            out,
            [u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 32, (1 << 32) + 1, (1 << 32) + 2]
        );
        assert_eq!(keys.extend(&mut out, 7, &(5..5), 4), Ok(0));
    }

    proptest! {
        #[test]
        fn a_key_belongs_to_one_block(
            blocks in prop::collection::btree_set((0u32..4, prop_oneof![0u64..9, (1u64 << 32) - 2..(1 << 32) + 2, (1u64 << 55) - 3..1 << 55]), 1..60),
            order in any::<prop::sample::Index>(),
        ) {
            let (mut keys, mut out) = (Keys::new(), Vec::new());
            let mut blocks: Vec<_> = blocks.into_iter().collect();
            let middle = order.index(blocks.len());
            blocks.rotate_left(middle);
            for &(volume, block) in blocks.iter().chain(&blocks) {
                prop_assert_eq!(keys.extend(&mut out, volume, &(block..block + 1), 1), Ok(1));
            }
            let (first, second) = out.split_at(blocks.len());
            prop_assert_eq!(first, second);
            prop_assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), blocks.len());
        }
    }
}
