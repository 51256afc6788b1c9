//! From bytes to blocks: which blocks a request touches, and one number for a block of any volume.

use std::ops::Range;

/// The blocks that a request of `len` bytes at `offset` touches, partly or wholly. Empty where `len` is zero.
///
/// `block_bytes` is the size of a block, above zero. A range that would pass the end of the address space ends there.
pub fn blocks_of(offset: u64, len: u64, block_bytes: u32) -> Range<u64> {
    let block_bytes = u64::from(block_bytes.max(1));
    let first = offset / block_bytes;
    match len {
        0 => first..first,
        _ => first..offset.saturating_add(len - 1) / block_bytes + 1,
    }
}

/// One key for a block of one of a tenant's volumes.
///
/// No two blocks share a key while block numbers stay below 2^48 (1 EiB of 4 KiB blocks).
pub fn block_key(volume: u16, block: u64) -> u64 {
    block ^ (u64::from(volume) << 48)
}

/// The keys of consecutive blocks: as many, in a row.
///
/// Counted from the first: where blocks pass 2^48, the key of the end may lie anywhere.
pub fn block_keys(volume: u16, blocks: Range<u64>) -> Range<u64> {
    let first = block_key(volume, blocks.start);
    first..first.saturating_add(blocks.end.saturating_sub(blocks.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_cover_partly_touched_blocks() {
        assert_eq!(blocks_of(0, 4096, 4096), 0..1);
        assert_eq!(blocks_of(4095, 2, 4096), 0..2);
        assert_eq!(blocks_of(8192, 512, 4096), 2..3);
        assert_eq!(blocks_of(512, 0, 4096), 0..0);
    }

    #[test]
    fn the_end_of_the_address_space_is_no_trap() {
        assert_eq!(blocks_of(u64::MAX, u64::MAX, 4096), (u64::MAX / 4096)..(u64::MAX / 4096 + 1));
        assert_eq!(blocks_of(1 << 63, 4096, 4096), (1 << 51)..(1 << 51) + 1);
    }

    #[test]
    fn keys_are_as_many_as_blocks_wherever_those_lie() {
        assert_eq!(block_keys(3, 5..9), block_key(3, 5)..block_key(3, 9));
        let far = (1 << 49) - 1;
        assert_eq!(block_keys(1, far..far + 2).count(), 2);
        assert!(block_keys(1, far..far).is_empty());
    }

    proptest! {
        #[test]
        fn a_byte_is_covered_exactly_when_it_is_in_the_request(
            offset in 0u64..100_000, len in 1u64..50_000, shift in 9u32..16, byte in 0u64..200_000,
        ) {
            let blocks = blocks_of(offset, len, 1 << shift);
            let touched = (offset..offset + len).map(|at| at >> shift);
            prop_assert_eq!(blocks.clone(), offset >> shift..((offset + len - 1) >> shift) + 1);
            prop_assert_eq!(blocks.contains(&(byte >> shift)), touched.clone().any(|b| b == byte >> shift));
        }

        #[test]
        fn keys_are_unique(a in any::<u16>(), b in any::<u16>(), x in 0u64..1 << 48, y in 0u64..1 << 48) {
            prop_assert_eq!(block_key(a, x) == block_key(b, y), (a, x) == (b, y));
        }
    }
}
