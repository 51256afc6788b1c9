//! Counters by cache size, several for each size side by side.
//!
//! What is to be counted waits until there is some of it, and is counted together: the sizes lie anywhere in many megabytes,
//! and the processor overlaps memory accesses that do not depend on each other, but only those close together.

use std::collections::BTreeMap;

use crate::SizeCurve;

use super::NEVER;

/// What is counted together.
const TOGETHER: usize = 128;

/// `N` counters for every size up to the largest counted, and for [`NEVER`]. They take four bytes each; every 2^32nd count
/// of one is kept elsewhere. [`BySize::flush`] before they are read.
#[derive(Clone, Debug)]
pub(crate) struct BySize<const N: usize> {
    counts: Vec<[u32; N]>,
    /// Times that a counter ran over.
    overflows: BTreeMap<(u32, usize), u64>,
    never: [u64; N],
    /// Sizes and counters of what is yet to be counted.
    waiting: Vec<(u32, u32)>,
}

impl<const N: usize> Default for BySize<N> {
    fn default() -> Self {
        Self { counts: Vec::new(), overflows: BTreeMap::new(), never: [0; N], waiting: Vec::new() }
    }
}

impl<const N: usize> BySize<N> {
    /// Count one.
    #[inline]
    pub(crate) fn add(&mut self, size: u32, which: usize) {
        self.waiting.push((size, which as u32));
        if self.waiting.len() >= TOGETHER {
            self.flush();
        }
    }

    /// Count what waits.
    #[inline(never)]
    pub(crate) fn flush(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (size, which) in waiting.drain(..) {
            self.add_now(size, which as usize);
        }
        self.waiting = waiting;
    }

    /// True if nothing waits.
    pub(crate) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    #[inline]
    fn add_now(&mut self, size: u32, which: usize) {
        if size as usize >= self.counts.len() {
            return self.add_beyond(size, which);
        }
        let count = &mut self.counts[size as usize][which];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.overflow(size, which, 1);
        }
    }

    /// Add the counts of others.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), [0; N]);
        }
        let both = (0..).zip(self.counts.iter_mut().zip(&other.counts));
        let mut overflows = other.overflows.clone();
        for (size, (mine, theirs)) in both {
            for which in 0..N {
                let (sum, over) = mine[which].overflowing_add(theirs[which]);
                mine[which] = sum;
                if over {
                    *overflows.entry((size, which)).or_default() += 1;
                }
            }
        }
        overflows.into_iter().for_each(|((size, which), times)| self.overflow(size, which, times));
        self.never.iter_mut().zip(other.never).for_each(|(mine, theirs)| *mine += theirs);
        other.waiting.iter().for_each(|&(size, which)| self.add(size, which as usize));
    }

    /// Sizes from 0 to below this have counters.
    pub(crate) fn sizes(&self) -> u32 {
        self.counts.len() as u32
    }

    /// What was counted at a size other than [`NEVER`].
    pub(crate) fn count(&self, size: u32, which: usize) -> u64 {
        let count = self.counts.get(size as usize).map_or(0, |counts| counts[which]);
        let times = if self.overflows.is_empty() { None } else { self.overflows.get(&(size, which)) };
        u64::from(count) + (times.copied().unwrap_or(0) << u32::BITS)
    }

    /// What was counted at all sizes and [`NEVER`].
    pub(crate) fn total(&self, which: usize) -> u64 {
        let overflows = self.overflows.iter().filter(|((_, other), _)| *other == which);
        let overflows: u64 = overflows.map(|(_, times)| times << u32::BITS).sum();
        self.counts.iter().map(|counts| u64::from(counts[which])).sum::<u64>() + overflows + self.never[which]
    }

    /// The curve that rises by each count at its size.
    pub(crate) fn rising(&self, which: usize) -> SizeCurve {
        let counts = (0..self.sizes()).map(|size| (size.into(), self.count(size, which)));
        SizeCurve::rising(counts.filter(|&(_, count)| count > 0))
    }

    /// The curve of ranges of sizes, counted by their begins and their ends.
    pub(crate) fn ranges(&self, begins: usize, ends: usize) -> SizeCurve {
        let change =
            |size| (u64::from(size), self.count(size, begins) as i64 - self.count(size, ends) as i64);
        SizeCurve::changing((0..self.sizes()).map(change).filter(|&(_, change)| change != 0))
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<[u32; N]>()
            + self.overflows.len() * size_of::<((u32, usize), u64)>()
    }

    #[cold]
    #[inline(never)]
    fn add_beyond(&mut self, size: u32, which: usize) {
        if size == NEVER {
            self.never[which] += 1;
            return;
        }
        // Sizes grow with the footprint, one after the other: by an eighth more, so that it happens rarely.
        let sizes = size as usize + 1;
        self.counts.reserve_exact(sizes + sizes / 8 - self.counts.len());
        self.counts.resize(self.counts.capacity(), [0; N]);
        self.counts[size as usize][which] += 1;
    }

    #[cold]
    #[inline(never)]
    fn overflow(&mut self, size: u32, which: usize, times: u64) {
        *self.overflows.entry((size, which)).or_default() += times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(adds: &[(u32, usize)], start: u32) -> BySize<2> {
        let mut counts = BySize { counts: vec![[start; 2]; 8], ..BySize::default() };
        adds.iter().for_each(|&(size, which)| counts.add(size, which));
        counts
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map_beyond_32_bits_too(
            adds in prop::collection::vec((prop_oneof![0u32..40, Just(NEVER)], 0usize..2), 0..200),
            more in prop::collection::vec((0u32..60, 0usize..2), 0..200), near in prop::bool::ANY,
        ) {
            let start = if near { u32::MAX - 2 } else { 0 };
            let mut counts = filled(&adds, start);
            counts.merge(&filled(&more, start));
            counts.flush();
            let all: Vec<_> = adds.iter().chain(&more).collect();
            for which in 0..2 {
                let at = |size: u32| all.iter().filter(|&&&add| add == (size, which)).count() as u64;
                let before = |size: u32| if size < 8 { 2 * u64::from(start) } else { 0 };
                for size in 0..70 {
                    prop_assert_eq!(counts.count(size, which), at(size) + before(size));
                }
                let total: u64 = (0..70).map(|size| at(size) + before(size)).sum();
                prop_assert_eq!(counts.total(which), total + at(NEVER));
            }
        }
    }
}
