//! Kinds of requests that are told apart.

use super::seen::LEVELS;

/// Sizes that are told apart: 1, 2, up to 4, up to 8 … blocks.
const SIZES: usize = 8;

/// Sizes, each of requests that go on where another one ended and of those that do not: what devices take depends on that.
pub const SHAPES: usize = SIZES * 2;

/// What was done to a block lately: nothing, or so many accesses, of which the last was a read or a write.
const HISTORIES: usize = 1 + 2 * (LEVELS - 1);

/// Kinds of requests.
pub const KINDS: usize = 2 * SHAPES * HISTORIES;

/// The request that it goes on from went another way.
const APART: u8 = 1;

/// What it brings in takes room that nothing else wants as yet.
const LEAVES_FIRST: u8 = 2;

/// What a request is like: a read or a write, of about so many blocks, that goes on where another one ended or not, of blocks that were accessed so often lately, and read or written last:
/// a read after a write, say. What is written again and again is hardly ever read; what was read before it was written often is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    write: bool,
    size: u8,
    sequential: bool,
    history: u8,
    /// Of no account for what the kind is worth: [`APART`] and [`LEAVES_FIRST`].
    flags: u8,
}

impl Kind {
    /// Of a request of so many blocks, which were accessed that often lately: 0 for never, n for up to 2ⁿ - 1 times, 4 for more than 7 times. `written`: by a write last.
    pub fn of(write: bool, blocks: usize, sequential: bool, level: usize, written: bool) -> Self {
        let size = blocks.max(1).next_power_of_two().trailing_zeros().min(SIZES as u32 - 1);
        let history = match level.min(LEVELS - 1) {
            0 => 0,
            level => 2 * level - usize::from(written),
        };
        Self { write, size: size as u8, sequential, history: history as u8, ..Self::default() }
    }

    /// All kinds, in the order of their indices.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..KINDS).map(|at| Self {
            write: at >= KINDS / 2,
            size: (at / HISTORIES / 2 % SIZES) as u8,
            sequential: at / HISTORIES % 2 == 1,
            history: (at % HISTORIES) as u8,
            ..Self::default()
        })
    }

    /// Its number, below [`KINDS`].
    pub fn index(self) -> usize {
        (usize::from(self.write) * SHAPES + self.shape()) * HISTORIES + usize::from(self.history)
    }

    /// The number of its size and whether it goes on, below [`SHAPES`].
    pub fn shape(self) -> usize {
        usize::from(self.size) * 2 + usize::from(self.sequential)
    }

    /// The same; did the request that it goes on from go the same way, to the SSD or past it?
    pub(super) fn with_its_stream(self, same: bool) -> Self {
        self.with_flag(APART, !same)
    }

    /// The number of the shape that a device sees, below [`SHAPES`]: what begins there goes on from nothing, though for the tenant it does.
    pub fn shape_served(self) -> usize {
        Self { sequential: self.sequential && self.flags & APART == 0, ..self }.shape()
    }

    /// The same; do its blocks enter only as long as there is room?
    pub(super) fn leaving_first(self, leaves_first: bool) -> Self {
        self.with_flag(LEAVES_FIRST, leaves_first)
    }

    /// Its blocks enter as long as there is room, and are to leave before others.
    pub fn leaves_first(self) -> bool {
        self.flags & LEAVES_FIRST != 0
    }

    fn with_flag(self, flag: u8, is_set: bool) -> Self {
        Self { flags: self.flags & !flag | if is_set { flag } else { 0 }, ..self }
    }

    /// A write.
    pub fn is_write(self) -> bool {
        self.write
    }

    /// Its blocks were accessed lately.
    pub fn is_known(self) -> bool {
        self.history > 0
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
        let blocks = |blocks| Kind::of(true, blocks, false, 0, false).blocks();
        assert_eq!([1, 2, 3, 4, 5, 64, 65, 5000].map(blocks), [1, 2, 4, 4, 8, 64, 128, 128]);
    }

    #[test]
    fn what_is_taken_out_of_a_stream_goes_on_from_nothing() {
        let kind = Kind::of(true, 2, true, 0, false);
        let apart = kind.with_its_stream(false);
        assert_eq!((apart.index(), apart.shape()), (kind.index(), kind.shape()));
        assert_eq!(apart.shape_served(), Kind::of(true, 2, false, 0, false).shape());
        assert_eq!(kind.shape_served(), kind.shape());
    }

    #[test]
    fn what_leaves_first_is_told_apart_from_what_is_taken_out_of_a_stream() {
        let kind = Kind::of(false, 2, true, 0, false);
        for (same, first) in [(true, true), (true, false), (false, true), (false, false)] {
            let told = kind.leaving_first(first).with_its_stream(same);
            assert_eq!((told.leaves_first(), told.shape_served() == told.shape()), (first, same));
        }
    }

    #[test]
    fn what_was_read_last_is_told_from_what_was_written() {
        let of = |level, written| Kind::of(true, 1, false, level, written).history;
        assert_eq!([of(0, false), of(0, true), of(1, true), of(1, false), of(2, true)], [0, 0, 1, 2, 3]);
        assert_eq!([of(4, false), of(9, false), of(9, true)], [8, 8, 7]);
    }
}
