//! Kinds of requests that are told apart.

use super::seen::LEVELS;

/// Sizes that are told apart: 1, 2, up to 4, up to 8 … blocks.
const SIZES: usize = 8;

/// Sizes, each of requests that go on where another one ended and of those that do not: what devices take depends on that.
pub const SHAPES: usize = SIZES * 2;

/// Kinds of requests.
pub const KINDS: usize = 2 * SHAPES * LEVELS;

/// What a request is like: a read or a write, of about so many blocks, that goes on where another one ended or not, of blocks that were accessed so often lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    write: bool,
    size: u8,
    sequential: bool,
    level: u8,
}

impl Kind {
    /// Of a request of so many blocks, which were accessed that often lately: 0 for never, n for up to 2ⁿ - 1 times, 5 for more than 15 times.
    pub fn of(write: bool, blocks: usize, sequential: bool, level: usize) -> Self {
        let size = blocks.max(1).next_power_of_two().trailing_zeros().min(SIZES as u32 - 1);
        Self { write, size: size as u8, sequential, level: level.min(LEVELS - 1) as u8 }
    }

    /// All kinds, in the order of their indices.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..KINDS).map(|at| Self {
            write: at >= KINDS / 2,
            size: (at / LEVELS / 2 % SIZES) as u8,
            sequential: at / LEVELS % 2 == 1,
            level: (at % LEVELS) as u8,
        })
    }

    /// Its number, below [`KINDS`].
    pub fn index(self) -> usize {
        (usize::from(self.write) * SHAPES + self.shape()) * LEVELS + usize::from(self.level)
    }

    /// The number of its size and whether it goes on, below [`SHAPES`].
    pub fn shape(self) -> usize {
        usize::from(self.size) * 2 + usize::from(self.sequential)
    }

    /// A write.
    pub fn is_write(self) -> bool {
        self.write
    }

    /// Blocks of the largest request of its size; larger ones count as 128.
    pub fn blocks(self) -> u64 {
        1 << self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_numbers() {
        assert!(Kind::all().map(Kind::index).eq(0..KINDS));
        let blocks = |blocks| Kind::of(true, blocks, false, 0).blocks();
        assert_eq!([1, 2, 3, 4, 5, 64, 65, 5000].map(blocks), [1, 2, 4, 4, 8, 64, 128, 128]);
    }
}
