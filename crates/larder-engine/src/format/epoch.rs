//! Epochs: of a volume with ordered write-back, each dirty block says between which two flushes it was written.
//!
//! Epochs are counted from the volume's first, and written in six bits: the number modulo [`PERIOD`], plus one; zero says that the block has none. The blocks
//! that a crash may leave dirty are of at most [`SPAN`] epochs in a row, and one more for each start since. So the six bits tell their order: among them is one gap
//! that is wider than all others together, and behind it is the oldest.

use std::collections::{BTreeMap, BTreeSet};

/// Epochs after which the six bits repeat.
pub const PERIOD: u64 = 63;

/// Epochs that a volume's dirty blocks may be of while guests are served.
pub const SPAN: u64 = 31;

/// An epoch as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u8);

impl Epoch {
    /// Of a block whose volume has no order.
    pub const NONE: Self = Self(0);

    /// The epoch of this number.
    pub fn of(number: u64) -> Self {
        Self((number % PERIOD) as u8 + 1)
    }

    /// True if the block is of a volume with ordered write-back.
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// The six bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// `None` if it takes more than six bits.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (u64::from(bits) <= PERIOD).then_some(Self(bits))
    }

    /// Numbers for the epochs of one volume's dirty blocks, from [`PERIOD`] on, so that each is written as it was, and the older ones are lower.
    pub fn number(epochs: impl Iterator<Item = Self>) -> BTreeMap<Self, u64> {
        let epochs: BTreeSet<Self> = epochs.filter(|epoch| epoch.is_some()).collect();
        let places: Vec<u64> = epochs.iter().map(|epoch| u64::from(epoch.0) - 1).collect();
        let before = |at: usize| places[(at + places.len() - 1) % places.len()];
        // The step from the one before, around the circle: a lone epoch is a whole turn behind itself.
        let step = |at: usize| (places[at] + PERIOD - before(at) - 1) % PERIOD;
        let Some(oldest) = (0..places.len()).max_by_key(|&at| step(at)).map(|at| places[at]) else {
            return BTreeMap::new();
        };
        let numbers = places.iter().map(|&place| PERIOD + oldest + (place + PERIOD - oldest) % PERIOD);
        epochs.iter().copied().zip(numbers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_tells_the_order(first in 0u64..1000, offsets in prop::collection::btree_set(0..=SPAN, 0..20)) {
            let numbers: Vec<u64> = offsets.iter().map(|offset| first + offset).collect();
            let again = Epoch::number(numbers.iter().map(|&number| Epoch::of(number)));
            prop_assert_eq!(again.len(), numbers.len());
            let found: Vec<u64> = numbers.iter().map(|&number| again[&Epoch::of(number)]).collect();
            prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            for (&number, found) in numbers.iter().zip(found) {
                prop_assert_eq!((Epoch::of(number), found >= PERIOD), (Epoch::of(found), true));
            }
        }

        #[test]
        fn any_bits_have_an_order(bits in prop::collection::vec(any::<u8>(), 0..80)) {
            let epochs: Vec<Epoch> = bits.iter().filter_map(|&bits| Epoch::from_bits(bits)).collect();
            let numbers = Epoch::number(epochs.iter().copied());
            prop_assert!(numbers.iter().all(|(&epoch, &number)| Epoch::of(number) == epoch));
        }
    }
}
