//! Stretches of the volumes that a trace touches, of one length, in a bounded number: when they are too many, they become twice as long.

use larder_policy::index::{Index, hash};

use crate::BlockSize;

/// The largest length, as a power of two: half of all that a volume can be.
const SHIFT_MAX: u32 = 63;

/// The stretches, numbered as they come.
#[derive(Debug)]
pub(crate) struct Stretches {
    /// Their length in bytes, as a power of two.
    shift: u32,
    most: usize,
    index: Index,
    /// Volume, and number in it.
    list: Vec<(u32, u64)>,
    /// The stretch that was asked for last, and its number.
    last: Option<((u32, u64), usize)>,
}

impl Stretches {
    /// None so far, of `1 << shift` bytes for now; never more than `most`.
    pub(crate) fn new(shift: u32, most: usize) -> Self {
        Self { shift, most, index: Index::new(), list: Vec::new(), last: None }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Their length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        1 << self.shift
    }

    /// Volumes from this one on cannot be told apart: the others may need all stretches there may be.
    pub(crate) fn volumes_max(&self) -> u32 {
        (self.most / 2) as u32
    }

    /// Volume and first byte of a stretch.
    pub(crate) fn place(&self, number: usize) -> (u32, u64) {
        let (volume, at) = self.list[number];
        (volume, at << self.shift)
    }

    /// The number of the stretch with this byte of a volume (below [`Stretches::volumes_max`]): the next one, if it is new.
    #[inline]
    pub(crate) fn number(&mut self, volume: u32, offset: u64) -> usize {
        let place = (volume, offset >> self.shift);
        match self.last {
            Some((last, number)) if last == place => number,
            _ => {
                let number = self.find_or_add(place);
                self.last = Some((place, number));
                number
            }
        }
    }

    /// True if there is one more than there may be: [`Stretches::fold`] is due.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.list.len() > self.most
    }

    /// True if so many bytes in a row take more stretches than there may be, whatever else there is: [`Stretches::fold`] is due before they are numbered.
    #[inline]
    pub(crate) fn are_short_for(&self, bytes: u64) -> bool {
        bytes >> self.shift > self.most as u64
    }

    /// Make them twice as long. Returns the new numbers by the old ones; none is larger than its old one.
    pub(crate) fn fold(&mut self) -> Vec<usize> {
        self.shift = (self.shift + 1).min(SHIFT_MAX);
        self.renumber(|(volume, at)| (volume, at / 2))
    }

    /// Take two volumes for one. Returns the new numbers by the old ones; none is larger than its old one.
    pub(crate) fn pair_volumes(&mut self) -> Vec<usize> {
        self.renumber(|(volume, at)| (volume / 2, at))
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.list.capacity() * size_of::<(u32, u64)>()
    }

    fn renumber(&mut self, now: impl Fn((u32, u64)) -> (u32, u64)) -> Vec<usize> {
        self.last = None;
        self.index = Index::new();
        let before = std::mem::take(&mut self.list);
        before.into_iter().map(|place| self.find_or_add(now(place))).collect()
    }

    fn find_or_add(&mut self, place: (u32, u64)) -> usize {
        let hash = hash(place.1.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ u64::from(place.0));
        let list = &self.list;
        if let Some(found) = self.index.find(hash, |number| list[number as usize] == place) {
            return found as usize;
        }
        let number = self.list.len();
        self.list.push(place);
        self.index.insert(hash, number as u32);
        number
    }
}

/// The parts of a run of blocks that lie in one stretch each: first byte and number of blocks. A stretch is no shorter than a block.
pub(crate) fn parts(
    blocks: std::ops::Range<u64>,
    block: BlockSize,
    stretch_bytes: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let bytes = u64::from(block.bytes());
    let each = stretch_bytes / bytes;
    let mut first = blocks.start;
    std::iter::from_fn(move || {
        let end = blocks.end.min((first / each + 1) * each);
        let part = (first < end).then(|| (first * bytes, end - first));
        first = end;
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn counts_follow_their_stretches(
            touched in prop::collection::vec((0u32..5, prop_oneof![0u64..1 << 16, any::<u64>()]), 0..200), pair in any::<bool>(),
        ) {
            let mut stretches = Stretches::new(12, 16);
            let mut counts: Vec<u64> = Vec::new();
            let move_to = |counts: &mut Vec<u64>, numbers: Vec<usize>| {
                let before = std::mem::take(counts);
                counts.resize(numbers.iter().max().map_or(0, |most| most + 1), 0);
                before.into_iter().zip(numbers).for_each(|(count, number)| counts[number] += count);
            };
            for &(volume, offset) in &touched {
                let number = stretches.number(volume, offset);
                counts.resize(stretches.len(), 0);
                counts[number] += 1;
                while stretches.is_over() {
                    let numbers = stretches.fold();
                    move_to(&mut counts, numbers);
                }
            }
            if pair {
                let numbers = stretches.pair_volumes();
                move_to(&mut counts, numbers);
            }
            prop_assert!(stretches.len() <= 16 && stretches.len() == counts.len());
            let mut expected = BTreeMap::new();
            for (volume, offset) in touched {
                let volume = if pair { volume / 2 } else { volume };
                *expected.entry((volume, offset / stretches.bytes() * stretches.bytes())).or_insert(0) += 1;
            }
            let found: BTreeMap<_, _> = (0..stretches.len()).map(|number| (stretches.place(number), counts[number])).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn parts_make_the_whole(first in 0u64..100, count in 0u64..100, shift in 12u32..18) {
            let found: Vec<_> = parts(first..first + count, BlockSize::DEFAULT, 1 << shift).collect();
            let mut expected = BTreeMap::new();
            for block in first..first + count {
                expected.entry((block << 12) >> shift).or_insert(((block << 12), 0)).1 += 1;
            }
            prop_assert_eq!(found, expected.into_values().collect::<Vec<_>>());
        }
    }
}
