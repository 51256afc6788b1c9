//! Numbers of few bits: Parquet's hybrid of runs and packed bits, and its packed differences.
//!
//! Decoders hold positions in a page, which is handed to each call, so that a column can own both.

use super::thrift::Compact;

/// The `width` bits (at most 64) of `data` that begin at bit `at`, the lowest first.
fn bits(data: &[u8], at: usize, width: u32) -> Option<u64> {
    if at.checked_add(width as usize)? > data.len().checked_mul(8)? {
        return None;
    }
    let from = &data[at / 8..];
    let mut word = [0; 16];
    let count = from.len().min(word.len());
    word[..count].copy_from_slice(&from[..count]);
    let value = (u128::from_le_bytes(word) >> (at % 8)) as u64;
    Some(if width == 64 { value } else { value & ((1 << width) - 1) })
}

/// The hybrid: runs of one value, and stretches of packed values. Used for levels and for the numbers of dictionary entries.
#[derive(Clone, Debug)]
pub(super) struct Hybrid {
    width: u32,
    /// The byte after the run.
    at: usize,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Same { value: u64, left: u64 },
    Packed { bit: usize, left: u64 },
}

impl Hybrid {
    /// Values of `width` bits, at most 32, from byte `at` on.
    pub(super) fn new(width: u32, at: usize) -> Option<Self> {
        (width <= 32).then_some(Self { width, at, run: Run::Same { value: 0, left: 0 } })
    }

    /// The next value; none where the data is damaged or at its end.
    pub(super) fn next(&mut self, data: &[u8]) -> Option<u64> {
        loop {
            match &mut self.run {
                Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => self.run = self.next_run(data)?,
                Run::Same { value, left } => {
                    *left -= 1;
                    return Some(*value);
                }
                Run::Packed { bit, left } => {
                    let value = bits(data, *bit, self.width)?;
                    (*bit, *left) = (*bit + self.width as usize, *left - 1);
                    return Some(value);
                }
            }
        }
    }

    /// The run that begins at the current byte. It has at least that one byte, so that runs without values end.
    fn next_run(&mut self, data: &[u8]) -> Option<Run> {
        let mut reader = Compact::new(data, self.at);
        let head = reader.unsigned().ok()?;
        let start = reader.at();
        let (run, bytes) = if head & 1 == 1 {
            let groups = head >> 1;
            let bytes = groups.checked_mul(self.width.into())?;
            (Run::Packed { bit: start.checked_mul(8)?, left: groups.checked_mul(8)? }, bytes)
        } else {
            let value = bits(data, start.checked_mul(8)?, self.width.div_ceil(8) * 8)?;
            (Run::Same { value, left: head >> 1 }, self.width.div_ceil(8).into())
        };
        // The last packed group may be cut off after the last value: what is read is checked as it is read.
        self.at = start.saturating_add(usize::try_from(bytes).ok()?);
        Some(run)
    }
}

/// Packed differences (DELTA_BINARY_PACKED): blocks of a least difference, and of miniblocks that pack what is above it.
#[derive(Clone, Debug)]
pub(super) struct Delta {
    /// The byte after what has been looked at.
    at: usize,
    miniblocks: u64,
    per_miniblock: u64,
    /// Values that are still to come.
    left: u64,
    /// The next value, while some are left.
    value: i64,
    least: i64,
    /// Where the widths of the block's miniblocks stand, and how many have been used.
    widths: usize,
    used: u64,
    /// The bit and the width of the next difference, and how many the miniblock still holds.
    bit: usize,
    width: u32,
    in_miniblock: u64,
}

impl Delta {
    /// The values that begin at byte `at`.
    pub(super) fn new(data: &[u8], at: usize) -> Option<Self> {
        let mut reader = Compact::new(data, at);
        let [block, miniblocks, left] = [reader.unsigned(), reader.unsigned(), reader.unsigned()];
        let (block, miniblocks, left) = (block.ok()?, miniblocks.ok()?, left.ok()?);
        let value = reader.int().ok()?;
        let per_miniblock = block.checked_div(miniblocks)?;
        if per_miniblock == 0 || per_miniblock % 8 != 0 || block % miniblocks != 0 {
            return None;
        }
        let (at, widths, used) = (reader.at(), 0, miniblocks);
        let (least, bit, width, in_miniblock) = (0, 0, 0, 0);
        Some(Self {
            at,
            miniblocks,
            per_miniblock,
            left,
            value,
            least,
            widths,
            used,
            bit,
            width,
            in_miniblock,
        })
    }

    /// The next value; none where the data is damaged or at its end.
    pub(super) fn next(&mut self, data: &[u8]) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let value = self.value;
        if self.left > 0 {
            if self.in_miniblock == 0 {
                self.next_miniblock(data)?;
            }
            let above = bits(data, self.bit, self.width)?;
            (self.bit, self.in_miniblock) = (self.bit + self.width as usize, self.in_miniblock - 1);
            self.value = value.wrapping_add(self.least).wrapping_add(above as i64);
        }
        Some(value)
    }

    /// The byte after the last value: what it takes to find what follows, without decoding every value.
    pub(super) fn end(mut self, data: &[u8]) -> Option<usize> {
        let mut differences = self.left.saturating_sub(1);
        while differences > 0 {
            self.next_miniblock(data)?;
            differences = differences.saturating_sub(self.per_miniblock);
        }
        (self.at <= data.len()).then_some(self.at)
    }

    fn next_miniblock(&mut self, data: &[u8]) -> Option<()> {
        if self.used == self.miniblocks {
            let mut reader = Compact::new(data, self.at);
            self.least = reader.int().ok()?;
            self.widths = reader.at();
            self.at = self.widths.checked_add(usize::try_from(self.miniblocks).ok()?)?;
            self.used = 0;
        }
        let width = *data.get(self.widths + usize::try_from(self.used).ok()?)?;
        self.width = u32::from(width).min(65);
        let bytes = (self.per_miniblock / 8).checked_mul(self.width.into())?;
        (self.bit, self.in_miniblock) = (self.at.checked_mul(8)?, self.per_miniblock);
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        self.used += 1;
        (self.width <= 64).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packed_values_and_runs_alternate() {
        // The example of Parquet's documentation: 0 to 7 in three bits each; then five times 6, no times 1, and twice 2.
        let data = [0xff, 0x03, 0x88, 0xc6, 0xfa, 0x0a, 0x06, 0x00, 0x01, 0x04, 0x02];
        let mut hybrid = Hybrid::new(3, 1).unwrap();
        let found: Vec<u64> = std::iter::from_fn(|| hybrid.next(&data)).collect();
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7, 6, 6, 6, 6, 6, 2, 2]);
        assert!(Hybrid::new(33, 0).is_none());
    }

    #[test]
    fn values_of_no_bits_are_zero() {
        let mut hybrid = Hybrid::new(0, 0).unwrap();
        let data = [0x06, 0x03];
        assert_eq!(std::iter::from_fn(|| hybrid.next(&data)).collect::<Vec<_>>(), [0; 11]);
    }

    #[test]
    fn a_run_that_is_longer_than_the_data_ends_with_it() {
        let mut hybrid = Hybrid::new(8, 0).unwrap();
        let data = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2];
        assert_eq!(std::iter::from_fn(|| hybrid.next(&data)).collect::<Vec<_>>(), [1, 2]);
    }

    /// 7, 5, 3, 1, 2, 3, 4, 5 in blocks of 128, of four miniblocks: the example of Parquet's documentation.
    const DIFFERENCES: [u8; 18] = [0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0];

    #[test]
    fn differences_add_up() {
        let mut delta = Delta::new(&DIFFERENCES, 0).unwrap();
        assert_eq!(delta.clone().end(&DIFFERENCES), Some(18));
        let found: Vec<i64> = std::iter::from_fn(|| delta.next(&DIFFERENCES)).collect();
        assert_eq!(found, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(Delta::new(&DIFFERENCES, 0).unwrap().end(&DIFFERENCES[..17]), None);
    }

    #[test]
    fn differences_that_make_no_sense_are_refused() {
        for (at, bad) in [(2, 0), (2, 3), (2, 127)] {
            let mut data = DIFFERENCES;
            data[at] = bad;
            assert!(Delta::new(&data, 0).is_none(), "{bad} miniblocks");
        }
        let mut wide = DIFFERENCES;
        wide[6] = 65;
        let mut delta = Delta::new(&wide, 0).unwrap();
        assert_eq!(delta.next(&wide), None, "wider than 64 bits");
        // 2^63 values of no bits each: not walked one by one.
        let many = [128, 1, 1, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0, 0, 0];
        assert_eq!(Delta::new(&many, 0).unwrap().end(&many), None);
    }

    /// The same, a bit at a time.
    fn slow_bits(data: &[u8], at: usize, width: u32) -> Option<u64> {
        (0..width as usize).try_fold(0, |value, bit| {
            let byte = data.get((at + bit) / 8)?;
            Some(value | u64::from(byte >> ((at + bit) % 8) & 1) << bit)
        })
    }

    proptest! {
        #[test]
        fn bits_are_those_of_the_data(
            data in proptest::collection::vec(any::<u8>(), 0..40), at in 0usize..340, width in 1u32..=64,
        ) {
            prop_assert_eq!(bits(&data, at, width), slow_bits(&data, at, width));
        }

        #[test]
        fn arbitrary_data_ends(data in proptest::collection::vec(any::<u8>(), 0..60), width in 0u32..=32) {
            let mut hybrid = Hybrid::new(width, 0).unwrap();
            let mut left = 10_000;
            while left > 0 && hybrid.next(&data).is_some() {
                left -= 1;
            }
            if let Some(mut delta) = Delta::new(&data, 0) {
                let end = delta.clone().end(&data);
                prop_assert!(end.is_none_or(|end| end <= data.len()));
                while left > 0 && delta.next(&data).is_some() {
                    left -= 1;
                }
            }
        }
    }
}
