//! Which blocks were accessed lately, about: a filter of two generations.

/// Bits for each block of the cache in a generation.
const BITS: u64 = 8;

/// Blocks remembered at least.
const BLOCKS_MIN: u64 = 1 << 10;

/// The filter. It may take a block for another that was accessed, one in four at most.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    young: Vec<u64>,
    old: Vec<u64>,
    shift: u32,
    count: u64,
    most: u64,
}

impl Seen {
    /// A filter that remembers the last accesses to as many blocks as the cache has, up to twice as many.
    pub(super) fn new(cache_blocks: u32) -> Self {
        let most = u64::from(cache_blocks).max(BLOCKS_MIN);
        let bits = (most * BITS).next_power_of_two();
        let words = (bits / 64) as usize;
        Self { young: vec![0; words], old: vec![0; words], shift: 64 - bits.trailing_zeros(), count: 0, most }
    }

    /// A block is accessed: was it lately?
    pub(super) fn see(&mut self, key: u64) -> bool {
        let bit = spread(key) >> self.shift;
        let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
        if self.young[word] & mask != 0 {
            return true;
        }
        self.young[word] |= mask;
        let known = self.old[word] & mask != 0;
        self.count += 1;
        if self.count == self.most {
            self.count = 0;
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.fill(0);
        }
        known
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.young.capacity() + self.old.capacity()) * size_of::<u64>()
    }
}

/// All bits of a key reach the upper ones.
pub(super) fn spread(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accessed_lately_is_known_and_what_was_long_ago_is_not() {
        let mut seen = Seen::new(4096);
        let mut known = |keys: std::ops::Range<u64>| keys.filter(|&key| seen.see(key)).count();
        assert!(known(0..2000) < 100);
        assert_eq!(known(0..2000), 2000);
        // Two caches' worth of others, and more, since some of them are taken for known.
        assert!(known(1 << 32..(1 << 32) + 10_000) < 2500);
        assert!(known(0..2000) < 600);
    }
}
