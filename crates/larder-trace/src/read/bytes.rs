//! Binary formats: records of a fixed size, and the numbers in them.

use std::io::{BufRead, ErrorKind};

use crate::error::Wrong;
use crate::input::Input;
use crate::source::{Place, Stop};
use crate::volumes::Volumes;

/// Records of a binary trace, and where they begin.
pub(crate) struct Records {
    input: Input,
    /// Bytes read so far.
    at: u64,
}

impl Records {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, at: 0 }
    }

    /// The byte that is read next.
    pub(crate) fn place(&self) -> Place {
        Place::Byte(self.at)
    }

    /// The next `N` bytes, and where they stand; none at the end of the input. An end within them is an error at their first byte.
    pub(crate) fn next<const N: usize>(
        &mut self,
        expected: &'static str,
    ) -> Result<Option<(Place, [u8; N])>, Stop> {
        let place = self.place();
        let mut record = [0; N];
        match self.fill(&mut record)? {
            0 => Ok(None),
            filled if filled < N => Err(cut_off(place, filled, expected)),
            _ => Ok(Some((place, record))),
        }
    }

    /// The next `N` bytes, which must be there: the rest of a record that began at `start`.
    pub(crate) fn rest<const N: usize>(
        &mut self,
        start: Place,
        expected: &'static str,
    ) -> Result<[u8; N], Stop> {
        let mut rest = [0; N];
        if self.fill(&mut rest)? < N {
            return Err(cut_off(start, read_since(start, self.at), expected));
        }
        Ok(rest)
    }

    /// Leave out the next `count` bytes of the record that began at `start`.
    pub(crate) fn skip(&mut self, start: Place, count: u64, expected: &'static str) -> Result<(), Stop> {
        let mut left = count;
        while left > 0 {
            let mut scrap = [0; 512];
            let wanted = left.min(scrap.len() as u64) as usize;
            let filled = self.fill(&mut scrap[..wanted])?;
            if filled < wanted {
                return Err(cut_off(start, read_since(start, self.at), expected));
            }
            left -= filled as u64;
        }
        Ok(())
    }

    /// Fill `record` as far as the input goes: the number of bytes.
    fn fill(&mut self, record: &mut [u8]) -> Result<usize, Stop> {
        let mut filled = 0;
        while filled < record.len() {
            let ready = match self.input.fill_buf() {
                Ok(ready) => ready,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stop::Io(self.place(), error)),
            };
            let count = ready.len().min(record.len() - filled);
            if count == 0 {
                break;
            }
            record[filled..filled + count].copy_from_slice(&ready[..count]);
            self.input.consume(count);
            self.at += count as u64;
            filled += count;
        }
        Ok(filled)
    }
}

/// Bytes between the place of a record and `at`.
fn read_since(start: Place, at: u64) -> usize {
    match start {
        Place::Byte(byte) => at.saturating_sub(byte) as usize,
        Place::Line(_) | Place::Row(_) => 0,
    }
}

/// The input ends within a record.
fn cut_off(place: Place, found: usize, expected: &'static str) -> Stop {
    Stop::Wrong(place, Wrong::new("the record", format!("{found} bytes").as_bytes(), expected))
}

/// A wrong number in a record at `place`.
pub(crate) fn wrong(place: Place, field: &'static str, found: u64, expected: &'static str) -> Stop {
    Stop::Wrong(place, wrong_number(field, found, expected))
}

/// A number that is not what a field demands, quoted as a person would look for it.
pub(crate) fn wrong_number(field: &'static str, found: u64, expected: &'static str) -> Wrong {
    Wrong::new(field, format!("{found} ({found:#x})").as_bytes(), expected)
}

/// The order of the bytes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// The fields of a record, one after the other. They must not go past its end.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, order }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.bytes.split_first_chunk().expect("a record holds all of its fields");
        self.bytes = rest;
        *field
    }

    pub(crate) fn u16(&mut self) -> u16 {
        let bytes = self.take();
        match self.order {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(&mut self) -> u32 {
        let bytes = self.take();
        match self.order {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u64(&mut self) -> u64 {
        let bytes = self.take();
        match self.order {
            Order::Little => u64::from_le_bytes(bytes),
            Order::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// The volume of a device that a format numbers. The last one is found without a search: most requests are for the same.
#[derive(Default)]
pub(crate) struct DeviceVolume {
    last: Option<(u64, u32)>,
}

impl DeviceVolume {
    /// The volume of `device`, which is called `name`.
    pub(crate) fn index(
        &mut self,
        volumes: &mut Volumes,
        device: u64,
        name: impl FnOnce() -> String,
    ) -> Result<u32, Wrong> {
        if let Some((last, volume)) = self.last
            && last == device
        {
            return Ok(volume);
        }
        let volume = volumes.index("device", b"", name().as_bytes())?;
        self.last = Some((device, volume));
        Ok(volume)
    }
}

/// The first byte of a request in sectors of `unit` bytes, if it ends below 2^64.
pub(crate) fn start(sector: u64, unit: u64, len: u32) -> Option<u64> {
    let start = sector.checked_mul(unit)?;
    start.checked_add(u64::from(len)).map(|_| start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn records(bytes: &[u8]) -> Records {
        Records::new(Box::new(Cursor::new(bytes.to_vec())))
    }

    fn error(stop: Stop) -> (Place, Wrong) {
        match stop {
            Stop::Wrong(place, wrong) => (place, wrong),
            Stop::Io(place, error) => panic!("{place}: {error}"),
        }
    }

    #[test]
    fn a_record_that_is_cut_off_is_an_error_at_its_first_byte() {
        let mut records = records(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(records.next::<4>("4 bytes").unwrap(), Some((Place::Byte(0), [1, 2, 3, 4])));
        let (place, wrong) = error(records.next::<4>("4 bytes").unwrap_err());
        assert_eq!((place, wrong.found.as_str(), wrong.expected), (Place::Byte(4), "2 bytes", "4 bytes"));
    }

    #[test]
    fn a_missing_rest_is_told_from_the_beginning_of_the_record() {
        let mut records = records(&[0; 600]);
        let (start, _) = records.next::<40>("more").unwrap().unwrap();
        records.skip(start, 530, "more").unwrap();
        assert_eq!(records.place(), Place::Byte(570));
        let (place, wrong) = error(records.skip(start, 31, "more").unwrap_err());
        assert_eq!((place, wrong.found.as_str()), (Place::Byte(0), "600 bytes"));
        let (place, wrong) = error(records.rest::<1>(start, "more").unwrap_err());
        assert_eq!((place, wrong.found.as_str()), (Place::Byte(0), "600 bytes"));
        assert!(records.next::<1>("more").unwrap().is_none());
    }

    #[test]
    fn numbers_are_read_in_either_order() {
        let bytes: Vec<u8> = (1..=14).collect();
        let mut little = Fields::new(&bytes, Order::Little);
        assert_eq!((little.u16(), little.u32(), little.u64()), (0x0201, 0x0605_0403, 0x0e0d_0c0b_0a09_0807));
        let mut big = Fields::new(&bytes, Order::Big);
        assert_eq!((big.u16(), big.u32(), big.u64()), (0x0102, 0x0304_0506, 0x0708_090a_0b0c_0d0e));
    }

    #[test]
    fn a_range_ends_below_2_to_the_64() {
        assert_eq!(start(1 << 54, 512, 4096), Some(1 << 63));
        assert_eq!(start(u64::MAX / 512, 512, 511), Some(u64::MAX - 511));
        assert_eq!(start(u64::MAX / 512, 512, 512), None);
        assert_eq!(start(1 << 55, 512, 0), None);
    }
}
