//! Thrift's compact protocol, as far as Parquet's metadata needs it.
//!
//! Nothing is trusted: lengths are held against the bytes that are there, and structures nest only so deep.

/// Deepest nesting of structures that are skipped. Parquet's own have five levels.
const DEPTH_MAX: u32 = 24;

/// Why bytes are no Thrift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// They end too early: with more of them it could be.
    Short,
    /// They break a rule.
    Wrong,
}

/// What comes next in a structure or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    True,
    False,
    Byte,
    /// 16, 32 or 64 bits: all are written alike.
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(code: u8) -> Result<Self, Bad> {
        Ok(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4..=6 => Self::Int,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return Err(Bad::Wrong),
        })
    }
}

/// Bytes, read from the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    /// Reads `bytes` from `at` on.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, Bad> {
        let byte = *self.bytes.get(self.at).ok_or(Bad::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Bad> {
        let rest = self.bytes.get(self.at..).ok_or(Bad::Short)?;
        let count = usize::try_from(count).map_err(|_| Bad::Short)?;
        let taken = rest.get(..count).ok_or(Bad::Short)?;
        self.at += count;
        Ok(taken)
    }

    /// A number of up to 64 bits, seven in each byte.
    pub(super) fn unsigned(&mut self) -> Result<u64, Bad> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Bad::Wrong);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Bad::Wrong)
    }

    /// A number with its sign in the lowest bit.
    pub(super) fn int(&mut self) -> Result<i64, Bad> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Bytes after their number.
    pub(super) fn binary(&mut self) -> Result<&'a [u8], Bad> {
        let count = self.unsigned()?;
        self.take(count)
    }

    /// The elements of a list: how many, and of what kind.
    pub(super) fn list(&mut self) -> Result<(u64, Kind), Bad> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
        Ok((count, Kind::of(head & 15)?))
    }

    /// Each field of a structure: `each` gets its number and its kind, and tells whether it read it; it is skipped otherwise.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, Kind) -> Result<bool, Bad>,
    ) -> Result<(), Bad> {
        let mut number = 0;
        while let Some((next, kind)) = self.field(number)? {
            number = next;
            if !each(self, number, kind)? {
                self.skip(kind, DEPTH_MAX)?;
            }
        }
        Ok(())
    }

    /// The number and the kind of the field after field `last`, or none at the end.
    fn field(&mut self, last: i64) -> Result<Option<(i64, Kind)>, Bad> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let number = match i64::from(head >> 4) {
            0 => self.int()?,
            step => last.checked_add(step).ok_or(Bad::Wrong)?,
        };
        Ok(Some((number, Kind::of(head & 15)?)))
    }

    /// Skip a field of this kind.
    pub(super) fn skip(&mut self, kind: Kind, depth: u32) -> Result<(), Bad> {
        let depth = depth.checked_sub(1).ok_or(Bad::Wrong)?;
        match kind {
            Kind::True | Kind::False => Ok(()),
            Kind::Byte => self.byte().map(drop),
            Kind::Int => self.unsigned().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Binary => self.binary().map(drop),
            Kind::List => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            Kind::Map => self.skip_map(depth),
            Kind::Struct => {
                let mut number = 0;
                while let Some((next, kind)) = self.field(number)? {
                    number = next;
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    /// Skip an element of a list, where a truth value takes a byte: so every element takes one at least, and a count that is
    /// too high ends at the end of the bytes.
    fn skip_element(&mut self, kind: Kind, depth: u32) -> Result<(), Bad> {
        match kind {
            Kind::True | Kind::False => self.byte().map(drop),
            _ => self.skip(kind, depth),
        }
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), Bad> {
        let count = self.unsigned()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 15)?);
        (0..count).try_for_each(|_| {
            self.skip_element(key, depth)?;
            self.skip_element(value, depth)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers() {
        let read = |bytes: &[u8]| Compact::new(bytes, 0).unsigned();
        assert_eq!(read(&[0x7f]), Ok(127));
        assert_eq!(read(&[0x80, 0x01]), Ok(128));
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(read(&most), Ok(u64::MAX));
        most[9] = 2;
        assert_eq!(read(&most), Err(Bad::Wrong));
        assert_eq!(read(&[0xff; 11]), Err(Bad::Wrong));
        assert_eq!(read(&[0xff; 3]), Err(Bad::Short));
        for (bytes, value) in [([0u8], 0), ([1], -1), ([2], 1), ([3], -2)] {
            assert_eq!(Compact::new(&bytes, 0).int(), Ok(value));
        }
    }

    #[test]
    fn unknown_fields_are_skipped_whatever_they_hold() {
        // 1: true; 2: i32; 3: double; 4: list of truths; 5: map of byte to binary; 6: struct of one int; 8: 7.
        let bytes = [
            0x11, 0x15, 0x0e, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x19, 0x21, 1, 2, 0x1b, 0x01, 0x38, 9, 0x02,
            b'a', b'b', 0x1c, 0x15, 0x02, 0x00, 0x25, 0x0e, 0x00, 0xff,
        ];
        let mut found = None;
        let mut reader = Compact::new(&bytes, 0);
        let each = |reader: &mut Compact<'_>, number, kind| {
            if (number, kind) == (8, Kind::Int) {
                found = Some(reader.int()?);
            }
            Ok(number == 8)
        };
        assert_eq!(reader.fields(each), Ok(()));
        assert_eq!((found, reader.at()), (Some(7), bytes.len() - 1));
        for end in 0..bytes.len() - 1 {
            assert_eq!(Compact::new(&bytes[..end], 0).fields(|_, _, _| Ok(false)), Err(Bad::Short), "{end}");
        }
    }

    #[test]
    fn nesting_is_bounded_and_so_is_a_count_without_elements() {
        assert_eq!(Compact::new(&[0x1c; 500], 0).fields(|_, _, _| Ok(false)), Err(Bad::Wrong));
        let endless = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Compact::new(&endless, 0).fields(|_, _, _| Ok(false)), Err(Bad::Short));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut reader = Compact::new(&bytes, 0);
            let _ = reader.fields(|_, _, _| Ok(false));
            prop_assert!(reader.at() <= bytes.len());
        }
    }
}
