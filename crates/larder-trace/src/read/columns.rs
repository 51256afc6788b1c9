//! The columns of a line of text: cut apart, and read as numbers, times, kinds and extents.
//!
//! Nothing here takes memory unless it finds a mistake, and no number passes through floating point.

use crate::RequestKind;
use crate::error::Wrong;

/// Bytes of a sector, wherever a format counts in sectors.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Nanoseconds in the units in which formats tell the time.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const MICROSECOND_NS: u64 = 1_000;

/// A column: what errors call it, and what it must hold.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) expected: &'static str,
}

/// A device's number, in formats that number devices.
pub(crate) const DEVICE: Column = Column { name: "device", expected: "a whole number" };

impl Column {
    #[cold]
    pub(crate) fn wrong(&self, found: &[u8]) -> Wrong {
        Wrong::new(self.name, found, self.expected)
    }

    /// A whole number.
    #[inline]
    pub(crate) fn number(&self, text: &[u8]) -> Result<u64, Wrong> {
        number(text).ok_or_else(|| self.wrong(text))
    }

    /// A time in units of so many nanoseconds (a power of ten), with decimals; what is below a nanosecond is
    /// cut off.
    pub(crate) fn time(&self, text: &[u8], unit_ns: u64) -> Result<u64, Wrong> {
        decimal(text, unit_ns).ok_or_else(|| self.wrong(text))
    }

    /// Checked to be a number, for a name that is one.
    #[inline]
    pub(crate) fn digits<'a>(&self, text: &'a [u8]) -> Result<&'a [u8], Wrong> {
        let good = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        if good { Ok(text) } else { Err(self.wrong(text)) }
    }

    /// One word for a read, another for a write, in capitals or not.
    #[inline]
    pub(crate) fn kind(&self, text: &[u8], read: &str, write: &str) -> Result<RequestKind, Wrong> {
        if text.eq_ignore_ascii_case(read.as_bytes()) {
            Ok(RequestKind::Read)
        } else if text.eq_ignore_ascii_case(write.as_bytes()) {
            Ok(RequestKind::Write)
        } else {
            Err(self.wrong(text))
        }
    }
}

/// A column that holds a place or a length, in units of so many bytes.
pub(crate) struct Measure {
    pub(crate) column: Column,
    pub(crate) unit_bytes: u64,
}

impl Measure {
    /// In sectors, for the column of this name. The length of a request stays below 4 GiB.
    pub(crate) const fn sectors(name: &'static str) -> Self {
        Self {
            column: Column {
                name,
                expected: "a whole number of sectors, in a request below 4 GiB that ends below 2^64 bytes",
            },
            unit_bytes: SECTOR_BYTES,
        }
    }

    /// In bytes, for the column of this name.
    pub(crate) const fn bytes(name: &'static str) -> Self {
        Self {
            column: Column {
                name,
                expected: "a whole number of bytes, in a request below 4 GiB that ends below 2^64 bytes",
            },
            unit_bytes: 1,
        }
    }

    fn bytes_of(&self, text: &[u8]) -> Option<u64> {
        number(text)?.checked_mul(self.unit_bytes)
    }
}

/// Offset and length in bytes of a request that starts and is as long as the texts of these columns say.
#[inline]
pub(crate) fn extent(start: (&Measure, &[u8]), count: (&Measure, &[u8])) -> Result<(u64, u32), Wrong> {
    let offset = start.0.bytes_of(start.1).ok_or_else(|| start.0.column.wrong(start.1))?;
    let len = count.0.bytes_of(count.1).and_then(|len| u32::try_from(len).ok());
    let len = len.ok_or_else(|| count.0.column.wrong(count.1))?;
    match offset.checked_add(len.into()) {
        Some(_) => Ok((offset, len)),
        None => Err(start.0.column.wrong(start.1)),
    }
}

/// A whole number below 2^64 in decimal digits and nothing else.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    leading_number(text).filter(|&(_, digits)| digits == text.len()).map(|(value, _)| value)
}

/// The whole number that a text begins with, and how many digits it has; none where it begins with no digit,
/// or with 2^64 or more.
#[inline]
pub(crate) fn leading_number(text: &[u8]) -> Option<(u64, usize)> {
    let (mut value, mut digits) = (0u64, 0);
    // Sixteen digits at most: they fit.
    while digits < 16
        && let Some(eight) = text.get(digits..).and_then(<[u8]>::first_chunk)
    {
        let (part, count) = leading_digits(u64::from_le_bytes(*eight));
        value = value * TENS[count] + part;
        digits += count;
        if count < 8 {
            return (digits > 0).then_some((value, digits));
        }
    }
    for &byte in &text[digits..] {
        let Some(digit) = digit(byte) else { break };
        value = value.checked_mul(10)?.checked_add(digit)?;
        digits += 1;
    }
    (digits > 0).then_some((value, digits))
}

/// Powers of ten.
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The number that eight bytes (the first is the lowest) begin with, and how many digits it has. All at
/// once: each step joins neighbours, to four numbers of two digits, two of four, one of eight.
#[inline]
fn leading_digits(bytes: u64) -> (u64, usize) {
    let values = bytes ^ 0x3030_3030_3030_3030;
    // The high half of a byte is not zero, with or without six added, unless the byte is a digit. A carry
    // only comes from what is none.
    let others = (values.wrapping_add(0x0606_0606_0606_0606) | values) & 0xf0f0_f0f0_f0f0_f0f0;
    let count = others.trailing_zeros() as usize / 8;
    if count == 0 {
        return (0, 0);
    }
    // Zeros before the first digit; what comes after the last falls off.
    let digits = values << (64 - 8 * count);
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    ((fours * 10_000 + (fours >> 32)) & 0xffff_ffff, count)
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit.into())
}

/// A decimal fraction of a unit, in nanoseconds.
fn decimal(text: &[u8], unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &text[..0]),
    };
    let whole = if whole.is_empty() && !fraction.is_empty() { 0 } else { number(whole)? };
    let mut place = unit_ns;
    fraction.iter().try_fold(whole.checked_mul(unit_ns)?, |ns, &byte| {
        place /= 10;
        ns.checked_add(digit(byte)? * place)
    })
}

/// The first `N` fields of a line, without spaces around them, and whether there are more; none where there
/// are fewer.
#[inline]
pub(crate) fn fields<const N: usize>(line: &[u8], separator: u8) -> Option<([&[u8]; N], bool)> {
    let mut found = [&line[..0]; N];
    let mut rest = Some(line);
    for field in &mut found {
        let text = rest?;
        let end = text.iter().position(|&byte| byte == separator);
        *field = text[..end.unwrap_or(text.len())].trim_ascii();
        rest = end.map(|end| &text[end + 1..]);
    }
    Some((found, rest.is_some()))
}

/// The fields of a line that must have just `N`. `columns` is what an error expects.
#[inline]
pub(crate) fn exact_fields<'a, const N: usize>(
    line: &'a [u8],
    columns: &'static str,
) -> Result<[&'a [u8]; N], Wrong> {
    match fields(line, b',') {
        Some((found, false)) => Ok(found),
        _ => Err(Wrong::new("the line", line, columns)),
    }
}

/// The words of a line, up to `N` of them, and how many there are; none where there are more.
#[inline]
pub(crate) fn words<const N: usize>(line: &[u8]) -> Option<([&[u8]; N], usize)> {
    let mut found = [&line[..0]; N];
    let mut count = 0;
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        *found.get_mut(count)? = &rest[..end];
        count += 1;
        rest = rest[end..].trim_ascii_start();
    }
    Some((found, count))
}

/// The words of a line that must have just `N`. `columns` is what an error expects.
#[inline]
pub(crate) fn exact_words<'a, const N: usize>(
    line: &'a [u8],
    columns: &'static str,
) -> Result<[&'a [u8]; N], Wrong> {
    match words(line) {
        Some((found, count)) if count == N => Ok(found),
        _ => Err(Wrong::new("the line", line, columns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_digits_and_bounded() {
        for (text, value) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("00000000000000000000000000001", Some(1)),
            ("99999999999999999999999999999", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1 ", None),
            ("1e3", None),
            ("1234567890123456789x1", None),
        ] {
            assert_eq!(number(text.as_bytes()), value, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, unit, value) in [
            ("1456095145.133076000", SECOND_NS, Some(1_456_095_145_133_076_000)),
            ("0.000000001", SECOND_NS, Some(1)),
            ("0.0000000019", SECOND_NS, Some(1)),
            ("12", SECOND_NS, Some(12_000_000_000)),
            ("223.412", MILLISECOND_NS, Some(223_412_000)),
            (".5", MICROSECOND_NS, Some(500)),
            ("5.", MICROSECOND_NS, Some(5_000)),
            ("18446744073.709551615", SECOND_NS, Some(u64::MAX)),
            ("18446744073.709551616", SECOND_NS, None),
            ("18446744074", SECOND_NS, None),
            (".", SECOND_NS, None),
            ("", SECOND_NS, None),
            ("-0.1", SECOND_NS, None),
            ("1.2.3", SECOND_NS, None),
            ("1.x", SECOND_NS, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), unit), value, "{text:?}");
        }
    }

    #[test]
    fn extents_end_below_2_to_the_64() {
        let (lba, count) = (Measure::sectors("lba"), Measure::sectors("count"));
        let find = |start: &str, len: &str| extent((&lba, start.as_bytes()), (&count, len.as_bytes()));
        assert_eq!(find("18014398509481984", "8").unwrap(), (1 << 63, 4096));
        assert_eq!(find("36028797018963967", "0").unwrap(), (u64::MAX - 511, 0));
        for (start, len, wrong) in [
            ("36028797018963968", "0", "lba"),
            ("36028797018963967", "1", "lba"),
            ("0", "8388608", "count"),
            ("x", "1", "lba"),
            ("1", "", "count"),
        ] {
            assert_eq!(find(start, len).unwrap_err().field, wrong, "{start} {len}");
        }
        assert_eq!(find("0", "8388607").unwrap(), (0, 4_294_966_784));
    }

    #[test]
    fn fields_are_cut_and_trimmed() {
        let exact = |line: &'static str| exact_fields::<3>(line.as_bytes(), "3 fields").ok();
        assert_eq!(exact("a, b ,c"), Some([&b"a"[..], b"b", b"c"]));
        assert_eq!(exact(",,"), Some([&b""[..]; 3]));
        assert_eq!((exact("a,b"), exact("a,b,c,")), (None, None));
        assert_eq!(fields::<1>(b"a,b,c", b','), Some(([&b"a"[..]], true)));
    }

    #[test]
    fn words_are_cut_at_any_white_space() {
        assert_eq!(words::<3>(b" a\t bc "), Some(([&b"a"[..], b"bc", b""], 2)));
        assert_eq!(words::<1>(b"a b"), None);
        assert_eq!(words::<1>(b"  "), Some(([&b""[..]], 0)));
        assert!(exact_words::<2>(b"a b", "2").is_ok());
        assert_eq!(exact_words::<3>(b"a b", "3 words").unwrap_err().expected, "3 words");
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_it_is_written(value: u64) {
            prop_assert_eq!(number(value.to_string().as_bytes()), Some(value));
            let text = format!("{}.{:09}", value / SECOND_NS, value % SECOND_NS);
            prop_assert_eq!(decimal(text.as_bytes(), SECOND_NS), Some(value));
        }

        #[test]
        fn a_number_ends_where_its_digits_do(value: u64, zeros in 0usize..12, after in "[^0-9].{0,9}") {
            let digits = format!("{:0>zeros$}{value}", "");
            let text = format!("{digits}{after}");
            prop_assert_eq!(leading_number(text.as_bytes()), Some((value, digits.len())));
            prop_assert_eq!(leading_number(after.as_bytes()), None);
        }

        #[test]
        fn eight_bytes_are_read_as_one_by_one(bytes in proptest::collection::vec(prop_oneof![b'0'..=b'9', any::<u8>()], 8)) {
            let text = bytes.split(|byte| !byte.is_ascii_digit()).next().unwrap();
            let value = text.iter().fold(0, |value, &byte| value * 10 + u64::from(byte - b'0'));
            let eight = u64::from_le_bytes(bytes[..].try_into().unwrap());
            prop_assert_eq!(leading_digits(eight), (value, text.len()));
        }

        #[test]
        fn fields_joined_again_are_the_line(parts in proptest::collection::vec("[a-z0-9]{0,5}", 4)) {
            let line = parts.join(",");
            let found = exact_fields::<4>(line.as_bytes(), "").unwrap();
            prop_assert_eq!(found.join(&b','), line.as_bytes());
        }
    }
}
