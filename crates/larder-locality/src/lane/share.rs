//! The share of the blocks that stays when a sample is thinned out: of what belongs to no block, and of sizes, the same share
//! stays.

use crate::BlockId;

use super::NEVER;

/// A share of a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    kept: u64,
    of: u64,
}

impl Share {
    /// The share that stays of the blocks, by their new numbers.
    pub(crate) fn of(renumbered: &[BlockId]) -> Self {
        let kept = renumbered.iter().filter(|&&block| block != NEVER).count();
        Self { kept: kept as u64, of: renumbered.len() as u64 }
    }

    /// The blocks that stay.
    pub(crate) fn kept(self) -> usize {
        self.kept as usize
    }

    /// Whether the `at`th of several things stays: as many as there are in the share, evenly from all.
    pub(crate) fn keeps(self, at: u32) -> bool {
        self.part(at) < self.part(at + 1)
    }

    /// A size among the blocks that stay; that of no block stays [`NEVER`].
    pub(crate) fn size(self, size: u32) -> u32 {
        if size == NEVER { NEVER } else { 1 + self.part(size - 1) }
    }

    /// How many of so many things stay.
    pub(crate) fn part(self, of: u32) -> u32 {
        (u64::from(of) * self.kept / self.of.max(1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept_of_things_and_sizes() {
        let quarter = Share::of(&[NEVER, NEVER, 0, NEVER, 1, NEVER, NEVER, NEVER]);
        assert_eq!((quarter.kept(), (0..21).filter(|&at| quarter.keeps(at)).count()), (2, 5));
        assert_eq!([1, 4, 5, 101, NEVER].map(|size| quarter.size(size)), [1, 1, 2, 26, NEVER]);
    }

    #[test]
    fn all_or_none_is_a_share_too() {
        let (all, none) = (Share::of(&[1, 0]), Share::of(&[]));
        assert!((0..9).all(|at| all.keeps(at) && !none.keeps(at)));
        assert_eq!((all.size(7), none.size(7)), (7, 1));
    }
}
