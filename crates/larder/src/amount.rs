//! Lengths of trace as people write them: `100000` requests, `20%` of them, `10min` of the trace's time.

use std::str::FromStr;

use larder_sim::Span;

/// What may be written.
const FORM: &str = "requests (\"100000\") or trace time (\"500ms\", \"30s\", \"10min\", \"2h\", \"1d\")";

/// Units of time and their nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// When counting starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmup {
    /// After so much.
    After(Span),
    /// After this share of the requests.
    Share(f64),
}

/// The length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval(
    /// More than nothing.
    pub Span,
);

impl FromStr for Warmup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().strip_suffix('%') {
            Some(number) => {
                share(number).map(Self::Share).ok_or_else(|| format!("{text} is no share; write \"20%\""))
            }
            None => span(text).map(Self::After),
        }
    }
}

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match span(text)? {
            Span::Requests(0) | Span::TimeNs(0) => Err(format!("{text} is no length; write {FORM}")),
            span => Ok(Self(span)),
        }
    }
}

/// A number of per cent, from 0 to 100, as a share.
pub fn share(number: &str) -> Option<f64> {
    let percent: f64 = number.trim().parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// A hundred years: simulated nanoseconds are 64 bits.
const LONGEST_SECONDS: f64 = 100.0 * 365.25 * 86_400.0;

/// A time in seconds, with a unit: `500us`, `1.5s`, `10min`.
pub fn seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let wrong = || format!("{text} is no time; write \"500us\", \"2ms\", \"1.5s\", \"10min\" or \"2h\"");
    let number_ends = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_ends);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
    let seconds = number * (*ns as f64) / 1e9;
    if seconds <= LONGEST_SECONDS { Ok(seconds) } else { Err(format!("{text} is more than a hundred years")) }
}

/// A time in seconds that is longer than nothing.
pub fn some_seconds(text: &str) -> Result<f64, String> {
    let seconds = seconds(text)?;
    if seconds > 0.0 { Ok(seconds) } else { Err(format!("{text} is no time at all")) }
}

/// A time in seconds between two decisions, or two batches: not so short that nothing else is done.
pub fn between_seconds(text: &str) -> Result<f64, String> {
    let seconds = seconds(text)?;
    if seconds >= 1e-3 { Ok(seconds) } else { Err(format!("{text} is less than a millisecond")) }
}

/// How many times as fast: from a millionth to a million.
pub fn factor(text: &str) -> Result<f64, String> {
    let factor = positive(text)?;
    let is_sane = (1e-6..=1e6).contains(&factor);
    if is_sane { Ok(factor) } else { Err(format!("{text} is not from 0.000001 to 1000000")) }
}

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{text} is no number above 0"))
}

fn span(text: &str) -> Result<Span, String> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let wrong = || format!("{text} is no length of trace; write {FORM}");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    if unit.is_empty() {
        return Ok(Span::Requests(number));
    }
    let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
    number.checked_mul(*ns).map(Span::TimeNs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_people_write() {
        for (text, span) in [
            ("0", Span::Requests(0)),
            ("100000", Span::Requests(100_000)),
            ("10min", Span::TimeNs(600_000_000_000)),
            ("10m", Span::TimeNs(600_000_000_000)),
            ("500ms", Span::TimeNs(500_000_000)),
            ("2 h", Span::TimeNs(7_200_000_000_000)),
            ("1d", Span::TimeNs(86_400_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(Warmup::After(span)), "{text}");
        }
        assert_eq!("20%".parse(), Ok(Warmup::Share(0.2)));
        assert_eq!("0.5 %".parse(), Ok(Warmup::Share(0.005)));
        assert_eq!("7".parse(), Ok(Interval(Span::Requests(7))));
    }

    #[test]
    fn times_and_numbers() {
        for (text, expected) in
            [("2ms", 0.002), ("1.5 s", 1.5), ("500us", 5e-4), ("10min", 600.0), ("0s", 0.0)]
        {
            assert!((seconds(text).expect(text) - expected).abs() < 1e-12, "{text}");
        }
        for text in ["", "2", "ms", "-1s", "1.2.3s", "1 parsec", "nans"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(some_seconds("0s").is_err());
        assert_eq!((some_seconds("3s"), positive("0.5")), (Ok(3.0), Ok(0.5)));
        for text in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(positive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_that_are_refused() {
        for text in [
            "",
            "x",
            "-1",
            "1.5h",
            "10 parsec",
            "101%",
            "-1%",
            "nan%",
            "%",
            "99999999999999999999",
            "9999999999d",
        ] {
            assert!(text.parse::<Warmup>().is_err(), "{text}");
        }
        for text in ["0", "0s", "5%"] {
            assert!(text.parse::<Interval>().is_err(), "{text}");
        }
    }
}
