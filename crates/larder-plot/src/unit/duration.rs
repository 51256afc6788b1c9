//! Times: seconds in the units of clocks, and the round ones among them.

use super::digits;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86400.0;

/// Times that people think of as round, from a minute to a day. Below and above, 1, 2 and 5 times powers of ten of seconds and days are.
const STEPS: [f64; 12] = [
    10.0,
    20.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
];
/// Rungs of a log axis between 10 seconds and a day.
const RUNGS: [f64; 4] = [MINUTE, 10.0 * MINUTE, HOUR, 6.0 * HOUR];

/// Writes a time in at most two units: `2 min 30 s`. The smaller one may have two decimals.
pub(super) fn label(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    // Six digits, so that 59.9999999 s is a minute.
    let time = digits(value.abs()).parse::<f64>().unwrap_or(value.abs());
    let written = match time {
        0.0 => "0".to_owned(),
        ..1e-6 => format!("{} s", digits(time)),
        ..1e-3 => format!("{} µs", digits(time * 1e6)),
        ..1.0 => format!("{} ms", digits(time * 1e3)),
        ..MINUTE => format!("{} s", digits(time)),
        ..HOUR => two_units(time, (MINUTE, "min"), (1.0, "s")),
        ..DAY => two_units(time, (HOUR, "h"), (MINUTE, "min")),
        _ => two_units(time, (DAY, "d"), (HOUR, "h")),
    };
    format!("{sign}{written}")
}

fn two_units(time: f64, (large, large_name): (f64, &str), (small, small_name): (f64, &str)) -> String {
    let smalls = (time / small * 100.0).round() / 100.0;
    let larges = (smalls * small / large).floor();
    let rest = (smalls - larges * (large / small)).max(0.0);
    match digits((rest * 100.0).round() / 100.0).as_str() {
        "0" => format!("{} {large_name}", digits(larges)),
        rest => format!("{} {large_name} {rest} {small_name}", digits(larges)),
    }
}

/// The time without what its two largest units do not tell: whole seconds from a minute on, whole minutes from an hour, whole
/// hours from a day. Below a minute, four digits.
pub(super) fn to_two_units(value: f64) -> f64 {
    if value.abs() < MINUTE {
        return format!("{value:.3e}").parse().unwrap_or(value);
    }
    // One after the other: 59 min 59.7 s is an hour.
    [(MINUTE, 1.0), (HOUR, MINUTE), (DAY, HOUR)].iter().fold(value, |time, &(from, unit)| {
        if time.abs() >= from { (time / unit).round() * unit } else { time }
    })
}

/// The round time at or above `step`, as the distance of ticks.
pub(crate) fn round_step(step: f64, round: impl Fn(f64) -> f64) -> f64 {
    if step > STEPS[STEPS.len() - 1] {
        return DAY * round(step / DAY);
    }
    let at_least = |&&round: &&f64| round >= step * (1.0 - 1e-9);
    if step <= 5.0 { round(step) } else { STEPS.iter().find(at_least).copied().unwrap_or(DAY) }
}

/// Round times for the ticks of a log axis, in rising order, that cover `lo` to `hi`.
pub(crate) fn rungs(lo: f64, hi: f64) -> Vec<f64> {
    let powers = |unit: f64, from: i32, to: i32| (from..=to).map(move |power| unit * 10f64.powi(power));
    let all = powers(1.0, -12, 1).chain(RUNGS).chain(powers(DAY, 0, 12));
    all.filter(|rung| (lo..=hi).contains(rung)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    #[test]
    fn times_are_written_as_people_say_them() {
        for (value, text) in [
            (0.0, "0"),
            (2e-7, "2e-7 s"),
            (0.000_25, "250 µs"),
            (0.25, "250 ms"),
            (1.5, "1.5 s"),
            (59.999_999_9, "1 min"),
            (90.0, "1 min 30 s"),
            (-5400.0, "-1 h 30 min"),
            (3599.99, "59 min 59.99 s"),
            (86400.0 * 7.25, "7 d 6 h"),
            (86400.0 * 365.0, "365 d"),
        ] {
            assert_eq!(Unit::Seconds.label(value), text);
        }
    }

    #[test]
    fn cells_have_two_units_at_most() {
        for (value, text) in [
            (0.123_456, "123.5 ms"),
            (61.4, "1 min 1 s"),
            (3599.7, "1 h"),
            (86399.9, "1 d"),
            (100_000.0, "1 d 4 h"),
        ] {
            assert_eq!(Unit::Seconds.cell(value), text);
        }
    }

    proptest::proptest! {
        /// What is written reads back as the time, to a hundredth of the smaller unit or six digits.
        #[test]
        fn written_times_are_right(power in -5.0f64..8.0) {
            let value = 10f64.powf(power);
            let label = label(value);
            let words: Vec<&str> = label.split(' ').collect();
            let read: f64 = words.chunks(2).map(|pair| {
                let unit = match pair[1] {
                    "µs" => 1e-6,
                    "ms" => 1e-3,
                    "s" => 1.0,
                    "min" => MINUTE,
                    "h" => HOUR,
                    _ => DAY,
                };
                pair[0].parse::<f64>().expect("a number") * unit
            }).sum();
            let smaller = if value < HOUR { 1.0 } else if value < DAY { MINUTE } else { HOUR };
            let allowed = value * 1e-5 + if value < MINUTE { 0.0 } else { 0.006 * smaller };
            proptest::prop_assert!((read - value).abs() <= allowed, "{value}: {label}");
        }
    }
}
