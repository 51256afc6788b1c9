//! An axis of equal bins over places that only grow, however far they go: when the last bin is passed, two neighbours become one.

/// The shortest bin of a time axis: 2^9 of them are a second, so that once there are enough, bins are whole seconds.
pub(crate) const SHORTEST_NS: u64 = 1_953_125;

/// True if a trace of this length is better told by time than by requests: not if all its times are the same, or nearly.
pub(crate) fn is_told_by_time(elapsed_ns: u64) -> bool {
    elapsed_ns >= 16 * SHORTEST_NS
}

/// The axis. Its bins are all as wide as the first, and as many as [`Axis::bins`] says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    width: u64,
    most: u64,
    /// The bin of the last place.
    bin: u64,
    /// Where that bin ends.
    end: u64,
}

/// What became of the bins on the way to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The bin is still the same.
    Stay,
    /// A later bin. Before that, neighbours became one so many times.
    On {
        /// How many times.
        folds: u32,
    },
}

impl Axis {
    /// Bins of `width`, which is not 0, for now; never more than `most`, an even number.
    pub(crate) fn new(width: u64, most: usize) -> Self {
        Self { width, most: most as u64, bin: 0, end: width }
    }

    /// The width of a bin.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// The bin of the last place.
    pub(crate) fn bin(&self) -> usize {
        self.bin as usize
    }

    /// Bins up to that of the last place.
    pub(crate) fn bins(&self) -> usize {
        self.bin() + 1
    }

    /// True for a place that is not in the bin of the last one.
    #[inline]
    pub(crate) fn leaves(&self, place: u64) -> bool {
        place >= self.end
    }

    /// Go to a place, no smaller than the last one.
    #[inline]
    pub(crate) fn go(&mut self, place: u64) -> Step {
        if self.leaves(place) { self.go_on(place) } else { Step::Stay }
    }

    fn go_on(&mut self, place: u64) -> Step {
        let mut folds = 0;
        while place / self.width >= self.most {
            // No more than `most` bins are as wide as all places, so this ends before the width overflows.
            self.width *= 2;
            folds += 1;
        }
        self.bin = place / self.width;
        self.end = (self.bin + 1).saturating_mul(self.width);
        Step::On { folds }
    }
}

/// Neighbours become one, `folds` times: what the bins hold.
pub(crate) fn fold<T>(bins: &mut Vec<T>, folds: u32, mut join: impl FnMut(&mut T, T)) {
    for _ in 0..folds.min(usize::BITS) {
        let mut rest = std::mem::take(bins).into_iter();
        while let Some(mut first) = rest.next() {
            if let Some(second) = rest.next() {
                join(&mut first, second);
            }
            bins.push(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_hold_what_lies_in_them(
            steps in prop::collection::vec(prop_oneof![3 => 0u64..5, 1 => 0u64..400, 1 => 0u64..1 << 50], 0..60), width in 1u64..9,
        ) {
            let mut axis = Axis::new(width, 8);
            let (mut place, mut places, mut bins) = (0, Vec::new(), vec![0]);
            for step in steps {
                place += step;
                places.push(place);
                let left = axis.leaves(place);
                match axis.go(place) {
                    Step::Stay => prop_assert!(!left),
                    Step::On { folds } => {
                        prop_assert!(left);
                        fold(&mut bins, folds, |first, second| *first += second);
                        bins.resize(axis.bins(), 0);
                    }
                }
                bins[axis.bin()] += 1;
            }
            prop_assert!(bins.len() <= 8 && bins.len() == axis.bins());
            // Bins are no wider than need be.
            prop_assert!(axis.width() == width || place >= 8 * (axis.width() / 2));
            for (bin, &count) in bins.iter().enumerate() {
                let within = |&&place: &&u64| place / axis.width() == bin as u64;
                prop_assert_eq!(count, places.iter().filter(within).count());
            }
        }
    }

    #[test]
    fn the_last_place_of_all_has_a_bin() {
        let mut axis = Axis::new(1, 96);
        assert!(matches!(axis.go(u64::MAX), Step::On { folds: 58 }));
        assert_eq!((axis.bin(), axis.width()), (63, 1 << 58));
        assert_eq!(axis.go(u64::MAX), Step::On { folds: 0 });
    }
}
