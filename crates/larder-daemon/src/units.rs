//! Sizes and durations as people write them: `10GiB`, `4096`, `500ms`, `10m`; exact in both directions.
//!
//! A size is a number with an optional unit (`1.92TB`), a duration a whole number with a unit. Formatting uses the
//! largest unit that loses nothing, so that what is written parses back to the same value.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// Why a size or a duration could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}; write {form}")]
pub struct UnitError {
    /// What is wrong with the text.
    pub problem: String,
    /// What would have been understood.
    pub form: &'static str,
}

impl UnitError {
    /// No digits at the start, a sign, or a fraction where there can be none.
    fn not_a_number(text: &str, form: &'static str) -> Self {
        Self { problem: format!("{text} does not start with a whole number"), form }
    }

    fn parts_of_a_byte(text: &str, form: &'static str) -> Self {
        Self { problem: format!("{text} is no whole number of bytes"), form }
    }

    fn unknown_unit(text: &str, unit: &str, form: &'static str) -> Self {
        let problem = if unit.is_empty() {
            format!("{text} has no unit")
        } else {
            format!("{text} has the unknown unit \"{unit}\"")
        };
        Self { problem, form }
    }

    fn too_large(text: &str, form: &'static str) -> Self {
        Self { problem: format!("{text} is too large to be meant"), form }
    }
}

/// What a size may look like, for messages.
pub const SIZE_FORM: &str =
    "a size such as \"10GiB\", \"512MiB\", \"4KiB\", \"500GB\", \"1.92TB\" or \"4096\" (bytes)";

/// What a duration may look like, for messages.
pub const DURATION_FORM: &str = "a duration such as \"10m\", \"20s\", \"500ms\" or \"1h\"";

/// Units of sizes and their bytes, largest first among the binary ones: formatting takes the first that divides.
const SIZE_UNITS: [(&str, u64); 13] = [
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("PB", 1_000_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("kB", 1_000),
    ("B", 1),
    ("", 1),
];

/// How many entries of [`SIZE_UNITS`] are powers of two.
const BINARY_UNITS: usize = 5;

/// Units of durations and their microseconds, largest first.
const DURATION_UNITS: [(&str, u64); 5] =
    [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// Read a size in bytes. Of a fraction (`1.92TB`, `0.3GiB`) whole bytes are taken.
///
/// # Errors
/// When it is not a number followed by a known unit or nothing, has parts of a byte where the unit is a byte, or exceeds 64 bits.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, fraction, unit) = split(text, SIZE_FORM)?;
    let Some((_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::unknown_unit(text, unit, SIZE_FORM));
    };
    if *bytes == 1 && fraction.is_some() {
        return Err(UnitError::parts_of_a_byte(text, SIZE_FORM));
    }
    let whole = number.checked_mul(*bytes);
    let part = fraction.map_or(0, |digits| part_of(digits, *bytes));
    whole.and_then(|whole| whole.checked_add(part)).ok_or_else(|| UnitError::too_large(text, SIZE_FORM))
}

/// These digits behind the point, of so many bytes; rounded down.
fn part_of(digits: &str, bytes: u64) -> u64 {
    // Beyond so many digits they are parts of a byte, of the largest unit too, and the product stays within 128 bits.
    let digits = &digits[..digits.len().min(18)];
    let number = digits.bytes().fold(0, |number, digit| number * 10 + u128::from(digit - b'0'));
    let part = number * u128::from(bytes) / 10_u128.pow(digits.len() as u32);
    // It is less than `bytes`.
    part as u64
}

/// Read a duration.
///
/// # Errors
/// When it is not a whole number followed by `us`, `ms`, `s`, `m` or `h`, or exceeds 64 bits of microseconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let (number, fraction, unit) = split(text, DURATION_FORM)?;
    if fraction.is_some() {
        return Err(UnitError::not_a_number(text, DURATION_FORM));
    }
    let Some((_, micros)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::unknown_unit(text, unit, DURATION_FORM));
    };
    let total = number.checked_mul(*micros).ok_or_else(|| UnitError::too_large(text, DURATION_FORM))?;
    Ok(Duration::from_micros(total))
}

/// The number at the start, the digits behind a point, where there is one, and the unit after them.
fn split<'a>(text: &'a str, form: &'static str) -> Result<(u64, Option<&'a str>, &'a str), UnitError> {
    let digits_of =
        |text: &'a str| text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (digits, rest) = digits_of(text.trim());
    let (fraction, unit) = match rest.strip_prefix('.').map(digits_of) {
        Some((fraction, unit)) => (Some(fraction), unit),
        None => (None, rest),
    };
    if digits.is_empty() || fraction == Some("") || unit.starts_with(['.', ',']) {
        return Err(UnitError::not_a_number(text, form));
    }
    let number = digits.parse().map_err(|_| UnitError::too_large(text, form))?;
    Ok((number, fraction, unit.trim_start()))
}

/// A size written so that [`parse_size`] gives the same number of bytes: `2GiB`, `4KiB`, `4097`.
#[derive(Clone, Copy, Debug)]
pub struct ExactSize(
    /// Bytes.
    pub u64,
);

impl fmt::Display for ExactSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, bytes): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*bytes);
        match SIZE_UNITS[..BINARY_UNITS].iter().find(fits) {
            Some((name, bytes)) => write!(f, "{}{name}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A duration written so that [`parse_duration`] gives the same one back, to the microsecond: `10m`, `500ms`.
#[derive(Clone, Copy, Debug)]
pub struct ExactDuration(
    /// What to write.
    pub Duration,
);

impl fmt::Display for ExactDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX);
        let fits = |(_, unit): &&(&str, u64)| micros != 0 && micros.is_multiple_of(*unit);
        match DURATION_UNITS.iter().find(fits) {
            Some((name, unit)) => write!(f, "{}{name}", micros / unit),
            None => write!(f, "{micros}ms"),
        }
    }
}

/// A size for people, rounded to one decimal: `1.5 GiB`, `512 B`. Respects width and alignment.
#[derive(Clone, Copy, Debug)]
pub struct HumanSize(
    /// Bytes.
    pub u64,
);

impl fmt::Display for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match SIZE_UNITS[..BINARY_UNITS].iter().find(|(_, bytes)| self.0 >= *bytes) {
            Some((name, bytes)) if self.0.is_multiple_of(*bytes) => format!("{} {name}", self.0 / bytes),
            Some((name, bytes)) => format!("{:.1} {name}", self.0 as f64 / *bytes as f64),
            None => format!("{} B", self.0),
        };
        f.pad(&text)
    }
}

/// A duration for people, in its two largest units: `3d 4h`, `2m 5s`, `45s`.
#[derive(Clone, Copy, Debug)]
pub struct HumanDuration(
    /// What to write; parts of a second are left out.
    pub Duration,
);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(f, "{seconds}s"),
            (0, 0, _) => write!(f, "{minutes}m {}s", seconds % 60),
            (0, ..) => write!(f, "{hours}h {minutes}m"),
            _ => write!(f, "{days}d {hours}h"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_that_people_write() {
        for (text, bytes) in [
            ("10GiB", 10 << 30),
            ("512MiB", 512 << 20),
            ("4KiB", 4096),
            ("2TiB", 2 << 40),
            ("3PiB", 3 << 50),
            ("1PB", 1_000_000_000_000_000),
            ("4 KiB", 4096),
            ("1KB", 1000),
            ("1kB", 1000),
            ("3MB", 3_000_000),
            ("500GB", 500_000_000_000),
            ("4096", 4096),
            ("4096B", 4096),
            ("1.92TB", 1_920_000_000_000),
            ("1.5 GiB", 3 << 29),
            ("0.3KiB", 307),
            ("0.9999999999999999999999KiB", 1023),
            ("1.000000000000000001PiB", 1 << 50),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_are_refused() {
        for text in [
            "",
            "GiB",
            "-1",
            ".5GiB",
            "1.GiB",
            "1.5",
            "1.0B",
            "1.5.5GiB",
            "1,5GiB",
            "1gib",
            "1 Gi B",
            "99999999999999999999",
            "20000000TiB",
            "16384.5PiB",
        ] {
            let error = parse_size(text).expect_err(text).to_string();
            assert!(error.contains(SIZE_FORM), "{text}: {error}");
        }
    }

    #[test]
    fn durations_that_people_write() {
        for (text, millis) in [("10m", 600_000), ("20s", 20_000), ("500ms", 500), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn durations_that_are_refused() {
        for text in ["", "10", "1d", "m", "-1s", "0.5s", "99999999999999999999s", "18446744073709551615h"] {
            let error = parse_duration(text).expect_err(text).to_string();
            assert!(error.contains(DURATION_FORM), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1536, "1.5 KiB"),
            (2 << 30, "2 GiB"),
            (3 << 40, "3 TiB"),
            (5 << 50, "5 PiB"),
        ] {
            assert_eq!(HumanSize(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>8}", HumanSize(4096)), "   4 KiB");
    }

    #[test]
    fn durations_for_people() {
        for (seconds, text) in [(0, "0s"), (45, "45s"), (125, "2m 5s"), (7260, "2h 1m"), (273_700, "3d 4h")] {
            assert_eq!(HumanDuration(Duration::from_secs(seconds)).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_written_size_reads_back(bytes: u64, shift in 0_u32..50) {
            let bytes = bytes >> shift << (shift / 2);
            prop_assert_eq!(parse_size(&ExactSize(bytes).to_string()), Ok(bytes));
        }

        #[test]
        fn a_written_duration_reads_back(micros: u64, scale in 0_usize..5) {
            let unit = DURATION_UNITS[scale].1;
            let duration = Duration::from_micros(micros / unit * unit);
            prop_assert_eq!(parse_duration(&ExactDuration(duration).to_string()), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = parse_size(&text);
            let _ = parse_duration(&text);
        }
    }
}
