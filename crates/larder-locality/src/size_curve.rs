//! A count as a function of the cache size: constant between steps.

/// A count over cache size, in blocks. Exact: its value changes at its steps and nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeCurve {
    /// Before the first step.
    start: u64,
    /// `(blocks, value)`: from `blocks` on. Sizes rise strictly; each value differs from the one before it.
    steps: Vec<(u64, u64)>,
}

impl SizeCurve {
    /// A curve that rises by each count at its size: pairs `(blocks, count)` in rising order of size.
    pub fn rising(pairs: impl IntoIterator<Item = (u64, u64)>) -> Self {
        Self::of(pairs.into_iter().map(|(blocks, count)| (blocks, count.into())))
    }

    /// A curve that changes by each count at its size: pairs `(blocks, change)` in rising order of size. A size of 0 tells
    /// the start. A curve that would fall below zero stays there (an estimate may).
    pub fn changing(pairs: impl IntoIterator<Item = (u64, i64)>) -> Self {
        Self::of(pairs.into_iter().map(|(blocks, change)| (blocks, change.into())))
    }

    /// Wide enough for the sum of any counts; a value that does not fit is the largest that does.
    fn of(pairs: impl Iterator<Item = (u64, i128)>) -> Self {
        let (mut curve, mut now) = (Self::default(), 0i128);
        for (blocks, change) in pairs {
            now += change;
            curve.push(blocks, now.clamp(0, u64::MAX.into()) as u64);
        }
        curve
    }

    fn push(&mut self, blocks: u64, value: u64) {
        if blocks == 0 {
            self.start = value;
            return;
        }
        if self.steps.last().is_some_and(|&(last, _)| last == blocks) {
            self.steps.pop();
        }
        if value != self.last() {
            self.steps.push((blocks, value));
        }
    }

    /// The value at a size.
    pub fn at(&self, blocks: u64) -> u64 {
        let until = self.steps.partition_point(|&(size, _)| size <= blocks);
        until.checked_sub(1).map_or(self.start, |last| self.steps[last].1)
    }

    /// The value of the largest caches.
    pub fn last(&self) -> u64 {
        self.steps.last().map_or(self.start, |&(_, value)| value)
    }

    /// The size from which on the value stays the same: 0 where it is the same at all sizes.
    pub fn full_blocks(&self) -> u64 {
        self.steps.last().map_or(0, |&(blocks, _)| blocks)
    }

    /// The steps `(blocks, value)`, in rising order of size.
    pub fn steps(&self) -> &[(u64, u64)] {
        &self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_value_is_the_sum_of_the_changes_so_far(
            changes in prop::collection::btree_map(0u64..40, -5i64..9, 0..20), blocks in 0u64..50,
        ) {
            let curve = SizeCurve::changing(changes.iter().map(|(&size, &change)| (size, change)));
            let sum: i64 = changes.range(..=blocks).map(|(_, change)| change).sum();
            prop_assert_eq!(curve.at(blocks), sum.max(0) as u64);
            prop_assert!(curve.steps().windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1));
        }
    }

    #[test]
    fn steps_of_the_same_size_are_one() {
        let curve = SizeCurve::rising([(0, 1), (3, 2), (3, 4), (9, 0)]);
        assert_eq!((curve.at(0), curve.at(2), curve.steps(), curve.last()), (1, 1, &[(3, 7)][..], 7));
        assert_eq!((curve.full_blocks(), SizeCurve::rising([(0, 1)]).full_blocks()), (3, 0));
    }

    #[test]
    fn what_does_not_fit_is_as_large_as_can_be() {
        let curve = SizeCurve::rising([(1, u64::MAX - 1), (2, 5), (3, 7)]);
        assert_eq!(curve.steps(), [(1, u64::MAX - 1), (2, u64::MAX)]);
    }
}
