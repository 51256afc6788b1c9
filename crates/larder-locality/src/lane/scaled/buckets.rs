//! Buckets of cache sizes: exact for small sizes, of a bounded relative width above.

/// Buckets for each doubling of the size: none is wider than this part of its sizes.
const PER_DOUBLING: u64 = 1 << BITS;
const BITS: u32 = 6;

/// The bucket of a size: sizes below twice [`PER_DOUBLING`] have their own.
pub(super) fn bucket_of(size: u64) -> usize {
    let shift = (u64::BITS - BITS - 1).saturating_sub((size | 1).leading_zeros());
    ((u64::from(shift) << BITS) + (size >> shift)) as usize
}

/// The size that stands for a bucket: its largest. A cache that is one block short of a loop serves nothing of it, so a
/// curve had better promise hits too late than too early.
pub(super) fn size_of_bucket(bucket: usize) -> u64 {
    let shift = ((bucket >> BITS) as u32).saturating_sub(1);
    let first = (bucket as u64 - (u64::from(shift) << BITS)) << shift;
    first + ((1 << shift) - 1)
}

/// What was counted at a bucket of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// How many accesses the samples stand for.
    pub(super) weight: f64,
    /// The same, each counted by how hot its block is.
    pub(super) heat: f64,
}

impl Cell {
    pub(super) fn add(&mut self, other: Self) {
        self.weight += other.weight;
        self.heat += other.heat;
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.weight *= factor;
        self.heat *= factor;
    }
}

/// Counts by size.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    cells: Vec<Cell>,
    /// What no size has.
    never: Cell,
}

impl Buckets {
    /// Count at a size; none where no cache is large enough.
    #[inline]
    pub(super) fn add(&mut self, size: Option<u64>, cell: Cell) {
        match size {
            Some(size) => self.cell(bucket_of(size)).add(cell),
            None => self.never.add(cell),
        }
    }

    /// The sum of the cells up to each bucket.
    pub(super) fn sums(&self) -> impl Iterator<Item = Cell> {
        self.cells.iter().scan(Cell::default(), |sum, &cell| {
            sum.add(cell);
            Some(*sum)
        })
    }

    /// The sum of all that was counted.
    pub(super) fn total(&self) -> Cell {
        let mut total = self.never;
        self.cells.iter().for_each(|&cell| total.add(cell));
        total
    }

    /// Add what another one counted.
    pub(super) fn merge(&mut self, other: &Self) {
        if let Some(last) = other.cells.len().checked_sub(1) {
            self.cell(last);
        }
        self.cells.iter_mut().zip(&other.cells).for_each(|(cell, &other)| cell.add(other));
        self.never.add(other.never);
    }

    /// Multiply all counts.
    pub(super) fn scale(&mut self, factor: f64) {
        self.cells.iter_mut().chain([&mut self.never]).for_each(|cell| cell.scale(factor));
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }

    #[inline]
    fn cell(&mut self, bucket: usize) -> &mut Cell {
        if bucket >= self.cells.len() {
            // Whole doublings, so that it is done some fifty times at most.
            let cells = (bucket + 1).next_multiple_of(PER_DOUBLING as usize);
            self.cells.reserve_exact(cells - self.cells.len());
            self.cells.resize(cells, Cell::default());
        }
        &mut self.cells[bucket]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_sizes_have_buckets_of_their_own() {
        for size in 0..2 * PER_DOUBLING {
            assert_eq!((bucket_of(size), size_of_bucket(bucket_of(size))), (size as usize, size));
        }
    }

    #[test]
    fn buckets_follow_each_other_up_to_the_largest_size() {
        for bucket in 0..bucket_of(u64::MAX) {
            let (size, next) = (size_of_bucket(bucket), size_of_bucket(bucket + 1));
            assert!(size < next && bucket_of(size) == bucket);
        }
    }

    proptest! {
        #[test]
        fn a_bucket_stands_for_sizes_within_two_hundredths(bits in 0u32..64, size: u64) {
            let size = size >> bits;
            let stands = size_of_bucket(bucket_of(size));
            prop_assert!(stands >= size && (stands - size) as f64 <= size as f64 / PER_DOUBLING as f64, "{} for {}", stands, size);
            prop_assert!(bucket_of(size) <= bucket_of(size.saturating_add(1)));
        }

        #[test]
        fn sums_are_those_of_a_plain_list(counts in prop::collection::vec((0u64..500, 1u64..9), 0..40), never in 0u64..9) {
            let mut buckets = Buckets::default();
            let cell = |count: u64| Cell { weight: count as f64, heat: 2.0 * count as f64 };
            counts.iter().for_each(|&(size, count)| buckets.add(Some(size), cell(count)));
            buckets.add(None, cell(never));
            for (bucket, sum) in buckets.sums().enumerate() {
                let below = counts.iter().filter(|(size, _)| bucket_of(*size) <= bucket).map(|(_, count)| count).sum();
                prop_assert_eq!(sum, cell(below));
            }
            prop_assert_eq!(buckets.total(), cell(counts.iter().map(|(_, count)| count).sum::<u64>() + never));
        }
    }
}
