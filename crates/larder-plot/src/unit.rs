//! Units: how a number on an axis is written.

pub(crate) mod duration;

/// What the numbers of an axis count, and so how they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// A plain number, of what the string names ("blocks"; may be empty). Written with SI prefixes: `20 M`.
    Count(String),
    /// A share, 1.0 being the whole. Written in per cent: `10 %`.
    Ratio,
    /// Bytes. Written with binary prefixes: `512 MiB`.
    Bytes,
    /// A time in seconds. Written in the units of clocks: `250 ms`, `1 h 30 min`, `7 d`.
    Seconds,
}

const SI: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Significant digits that no tick and no table cell needs more of.
const DIGITS: usize = 6;

impl Unit {
    /// A plain number of `things`.
    pub fn count(things: impl Into<String>) -> Self {
        Unit::Count(things.into())
    }

    /// Writes a value for a tick, to six significant digits.
    pub(crate) fn label(&self, value: f64) -> String {
        match self {
            Unit::Ratio => format!("{} %", digits(value * 100.0)),
            Unit::Bytes => bytes(value),
            Unit::Count(_) => prefixed(value, 1000.0, &SI).unwrap_or_else(|| digits(value)),
            Unit::Seconds => duration::label(value),
        }
    }

    /// Writes a value for a table or a tooltip: counts in full, shares to a hundredth of a per cent.
    pub(crate) fn cell(&self, value: f64) -> String {
        match self {
            Unit::Ratio if value.abs() < 1e6 => format!("{:.2} %", value * 100.0),
            Unit::Count(_) if value.abs() >= 1000.0 && value.abs() < 1e15 => grouped(value),
            Unit::Seconds => duration::label(duration::to_two_units(value)),
            _ => self.label(value),
        }
    }
}

fn bytes(value: f64) -> String {
    prefixed(value, 1024.0, &BINARY).unwrap_or_else(|| match digits(value).as_str() {
        "0" => "0".to_owned(),
        number => format!("{number} B"),
    })
}

/// The value with the largest prefix that leaves at least 1 before it; none for values too small or too large for any.
fn prefixed(value: f64, base: f64, prefixes: &[&str]) -> Option<String> {
    let mut scaled = value / base;
    // The prefix is chosen for the number as it is written: 1023.9999999 KiB is "1 MiB".
    let rounded = |v: f64| digits(v).parse::<f64>().map_or(v, f64::abs);
    if rounded(scaled) < 1.0 {
        return None;
    }
    for prefix in prefixes {
        if rounded(scaled) < base {
            return Some(format!("{} {prefix}", digits(scaled)));
        }
        scaled /= base;
    }
    None
}

/// Six significant digits, without trailing zeros; powers of ten for what would be long.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&exponent) {
        return format!("{value:.5e}").replacen(".00000e", "e", 1);
    }
    let decimals = (DIGITS as f64 - 1.0 - exponent).max(0.0) as usize;
    let written = format!("{value:.decimals$}");
    if written.contains('.') { trim_zeros(&written).to_owned() } else { written }
}

/// A number with a decimal point, less its trailing zeros (and the point, and the sign of a zero).
pub(crate) fn trim_zeros(number: &str) -> &str {
    match number.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0",
        trimmed => trimmed,
    }
}

/// A whole number with a comma at every thousand.
fn grouped(value: f64) -> String {
    let number = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in number.chars().enumerate() {
        if at > 0 && (number.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1048576.0;

    #[test]
    fn bytes_take_binary_prefixes() {
        let cases = [
            (0.0, "0"),
            (512.0, "512 B"),
            (4096.0, "4 KiB"),
            (512.0 * MIB, "512 MiB"),
            (1536.0 * MIB, "1.5 GiB"),
            (-2.0 * MIB, "-2 MiB"),
            (1048575.9999999, "1 MiB"),
            (2f64.powi(60), "1 EiB"),
        ];
        for (value, text) in cases {
            assert_eq!(Unit::Bytes.label(value), text);
        }
    }

    #[test]
    fn ratios_are_per_cent_without_rounding_dust() {
        for (value, text) in
            [(0.1, "10 %"), (0.3 - 0.1, "20 %"), (0.455, "45.5 %"), (1.0, "100 %"), (0.0, "0 %")]
        {
            assert_eq!(Unit::Ratio.label(value), text);
        }
        assert_eq!(Unit::Ratio.cell(0.4561538), "45.62 %");
        assert_eq!(Unit::Ratio.cell(0.1), "10.00 %");
    }

    #[test]
    fn counts_are_short_on_axes_and_whole_in_tables() {
        let blocks = Unit::count("blocks");
        for (value, label, cell) in [
            (0.25, "0.25", "0.25"),
            (999.0, "999", "999"),
            (20_000_000.0, "20 M", "20,000,000"),
            (1_234_567.0, "1.23457 M", "1,234,567"),
            (-1500.0, "-1.5 k", "-1,500"),
            (1e30, "1e30", "1e30"),
            (1e-7, "1e-7", "1e-7"),
        ] {
            assert_eq!(blocks.label(value), label);
            assert_eq!(blocks.cell(value), cell);
        }
    }

    proptest::proptest! {
        /// What is written reads back as the value, to the digits promised.
        #[test]
        fn written_numbers_are_right(value in -1e12f64..1e12) {
            let read: f64 = digits(value).parse().expect("a number");
            proptest::prop_assert!((read - value).abs() <= value.abs() * 1e-5);
            let read: f64 = grouped(value).replace(',', "").parse().expect("a number");
            proptest::prop_assert!((read - value).abs() <= 0.5);
        }
    }
}
