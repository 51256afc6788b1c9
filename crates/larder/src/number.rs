//! Counts and ratios as people read them.

/// A count with its thousands apart: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 block`, `1,234 blocks`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A count in at most seven characters: in full below a million, with four digits and a prefix from there on: `12.34 M`.
pub fn compact(count: u64) -> String {
    const PREFIXES: [char; 5] = ['M', 'G', 'T', 'P', 'E'];
    if count < 1_000_000 {
        return grouped(count);
    }
    let mut scaled = count as f64 / 1e6;
    let mut prefixes = PREFIXES.iter().peekable();
    // What would be rounded to 1000 is 1 of the next prefix.
    while scaled >= 999.95 && prefixes.next_if(|&&prefix| prefix != 'E').is_some() {
        scaled /= 1000.0;
    }
    let digits = if scaled < 9.9995 {
        3
    } else if scaled < 99.995 {
        2
    } else {
        1
    };
    format!("{scaled:.digits$} {}", prefixes.next().unwrap_or(&'E'))
}

/// A ratio in per cent: `41.25 %`.
pub fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{:.2} %", ratio * 100.0))
}

/// A time in four digits: `812.3 µs`, `1.234 ms`.
pub fn time(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        s if s < 0.999_95e-3 => (s * 1e6, "µs"),
        s if s < 0.999_95 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = match scaled {
        s if s < 9.9995 => 3,
        s if s < 99.995 => 2,
        s if s < 999.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits() {
        let told = [0.0, 8.123e-4, 9.9999e-4, 1.23449e-3, 0.02, 0.99996, 61.5, 12_345.6].map(time);
        let expected =
            ["0.000 µs", "812.3 µs", "1.000 ms", "1.234 ms", "20.00 ms", "1.000 s", "61.50 s", "12346 s"];
        assert_eq!(told, expected);
    }

    #[test]
    fn numbers_are_easy_to_read() {
        let full = [0, 999, 1000, 123_456, 1_234_567].map(grouped);
        assert_eq!(full, ["0", "999", "1,000", "123,456", "1,234,567"]);
        let short =
            [0, 999_999, 1_000_000, 9_999_400, 9_999_600, 12_345_678, 999_940_000, 999_960_000, u64::MAX]
                .map(compact);
        let expected =
            ["0", "999,999", "1.000 M", "9.999 M", "10.00 M", "12.35 M", "999.9 M", "1.000 G", "18.45 E"];
        assert_eq!(short, expected);
        assert_eq!(
            [None, Some(0.0), Some(0.41254), Some(1.0)].map(percent),
            ["-", "0.00 %", "41.25 %", "100.00 %"]
        );
    }
}
