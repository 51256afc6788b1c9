//! Ticks are round, in range, and as many as fit.

use proptest::prelude::*;

use super::*;

fn ruler(axis: &Axis, extent: (f64, f64), most: usize) -> Ruler {
    Ruler::fit(axis, Some(extent), |ruler| ruler.ticks.len() <= most)
}

fn labels(ruler: &Ruler) -> Vec<&str> {
    ruler.ticks.iter().map(|tick| tick.label.as_str()).collect()
}

#[test]
fn ratios_have_round_per_cents() {
    let axis = Axis::new("y", Unit::Ratio);
    assert_eq!(labels(&ruler(&axis, (0.08, 0.93), 6)), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
    let close = ruler(&axis, (0.901, 0.949), 6);
    assert_eq!(labels(&close), ["90 %", "91 %", "92 %", "93 %", "94 %", "95 %"], "zero is far: not shown");
}

#[test]
fn sizes_are_powers_of_two() {
    let axis = Axis::new("x", Unit::Bytes).log();
    let (mib, gib) = (2f64.powi(20), 2f64.powi(30));
    let ticks = ruler(&axis, (256.0 * mib, 4.0 * gib), 8);
    assert_eq!(labels(&ticks), ["256 MiB", "512 MiB", "1 GiB", "2 GiB", "4 GiB"]);
    let decades = ruler(&axis, (mib, 1024.0 * gib), 6);
    assert_eq!(labels(&decades), ["1 MiB", "16 MiB", "256 MiB", "4 GiB", "64 GiB", "1 TiB"]);
    let linear = Axis::new("x", Unit::Bytes);
    assert_eq!(labels(&ruler(&linear, (0.0, 3.0 * gib), 5)), ["0", "1 GiB", "2 GiB", "3 GiB"]);
}

#[test]
fn a_short_log_axis_still_has_ticks() {
    let axis = Axis::new("x", Unit::Bytes).log();
    let gib = 2f64.powi(30);
    let ticks = ruler(&axis, (1.1 * gib, 1.9 * gib), 8);
    assert!(ticks.ticks.len() >= 3, "{:?}", labels(&ticks));
    let one = ruler(&axis, (gib, gib), 8);
    assert!(labels(&one).contains(&"1 GiB"), "{:?}", labels(&one));
    assert!((one.place(gib) - 0.5).abs() < 1e-9, "a point alone stands in the middle");
}

#[test]
fn counts_over_decades_have_powers_of_ten() {
    let axis = Axis::new("y", Unit::count("blocks")).log();
    assert_eq!(labels(&ruler(&axis, (1.0, 1e6), 8)), ["1", "10", "100", "1 k", "10 k", "100 k", "1 M"]);
    let close = ruler(&axis, (100.0, 1000.0), 8);
    assert_eq!(labels(&close), ["100", "200", "500", "1 k"]);
}

#[test]
fn times_have_round_ticks() {
    let axis = Axis::new("x", Unit::Seconds);
    for (to, most, wanted) in [
        (0.5, 6, &["0", "100 ms", "200 ms", "300 ms", "400 ms", "500 ms"][..]),
        (60.0, 5, &["0", "20 s", "40 s", "1 min"]),
        (5400.0, 5, &["0", "30 min", "1 h", "1 h 30 min"]),
        (86400.0, 5, &["0", "6 h", "12 h", "18 h", "1 d"]),
        (7.0 * 86400.0, 8, &["0", "1 d", "2 d", "3 d", "4 d", "5 d", "6 d", "7 d"]),
    ] {
        assert_eq!(labels(&ruler(&axis, (0.0, to), most)), wanted);
    }
    let log = ruler(&axis.log(), (0.001, 1e7), 20);
    assert_eq!(
        labels(&log),
        ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "10 d", "100 d"]
    );
}

#[test]
fn a_tight_axis_ends_where_its_data_end() {
    let axis = Axis::new("x", Unit::Bytes);
    let ruler = Ruler::tight(&axis, Some((3.0, 37.0)), |ruler| ruler.ticks.len() <= 5);
    assert_eq!(labels(&ruler), ["8 B", "16 B", "24 B", "32 B"]);
    assert!(ruler.place(3.0).abs() < 1e-9 && (ruler.place(37.0) - 1.0).abs() < 1e-9);
    let log = Ruler::tight(&axis.clone().log(), Some((3.0, 37.0)), |_| true);
    assert!(log.place(3.0).abs() < 1e-9 && (log.place(37.0) - 1.0).abs() < 1e-9);
    let point = Ruler::tight(&axis, Some((5.0, 5.0)), |_| true);
    assert!(point.place(5.0).is_finite());
}

#[test]
fn ticks_are_left_out_where_nothing_fits() {
    let axis = Axis::new("x", Unit::Bytes).log();
    for most in [0, 1] {
        assert_eq!(ruler(&axis, (1.0, 1e9), most).ticks.len(), 1);
    }
}

#[test]
fn an_empty_axis_has_a_range_all_the_same() {
    for axis in [Axis::new("y", Unit::Ratio), Axis::new("y", Unit::Bytes).log()] {
        let ruler = Ruler::fit(&axis, None, |_| true);
        assert!(ruler.ticks.len() >= 2);
    }
}

#[test]
fn equal_values_do_not_collapse_the_axis() {
    for value in [0.0, 1.0, -3.0, 1e-95, 1e100, -1e100] {
        let ruler = ruler(&Axis::new("y", Unit::count("")), (value, value), 8);
        assert!((0.0..=1.0).contains(&ruler.place(value)), "{value}");
        assert!((2..=12).contains(&ruler.ticks.len()), "{value}: {}", ruler.ticks.len());
    }
}

fn units() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Ratio), Just(Unit::Bytes), Just(Unit::count("blocks"))]
}

/// A number of any size that an axis takes.
fn values() -> impl Strategy<Value = f64> {
    (-1.0f64..1.0, -90i32..100).prop_map(|(mantissa, power)| mantissa * 10f64.powi(power))
}

fn check(ruler: &Ruler, lo: f64, hi: f64) -> Result<(), TestCaseError> {
    for value in [lo, hi].into_iter().chain(ruler.ticks.iter().map(|tick| tick.value)) {
        let place = ruler.place(value);
        prop_assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{value} lies at {place}");
    }
    prop_assert!(ruler.ticks.len() <= 64, "{}", ruler.ticks.len());
    for pair in ruler.ticks.windows(2) {
        prop_assert!(pair[0].value < pair[1].value);
        prop_assert_ne!(&pair[0].label, &pair[1].label);
    }
    Ok(())
}

proptest! {
    #[test]
    fn linear_rulers_hold_their_data(unit in units(), a in values(), b in values()) {
        let (lo, hi) = (a.min(b), a.max(b));
        let ruler = ruler(&Axis::new("x", unit), (lo, hi), 7);
        check(&ruler, lo, hi)?;
        prop_assert!(ruler.ticks.len() >= 2);
    }

    #[test]
    fn log_rulers_hold_their_data(unit in units(), a in values(), b in values()) {
        let (a, b) = (a.abs().max(1e-95), b.abs().max(1e-95));
        let (lo, hi) = (a.min(b), a.max(b));
        check(&ruler(&Axis::new("x", unit).log(), (lo, hi), 7), lo, hi)?;
    }

    /// Data that differ little must not give an axis without length, or ticks that read the same.
    #[test]
    fn narrow_data_are_told_apart(unit in units(), at in values(), ppm in 0.0f64..5000.0) {
        let other = at * (1.0 + ppm / 1e6);
        let (lo, hi) = (at.min(other), at.max(other));
        check(&ruler(&Axis::new("x", unit), (lo, hi), 7), lo, hi)?;
    }
}
