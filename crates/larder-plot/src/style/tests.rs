//! The styles are distinct, and the colours stay so for colour-blind eyes.

use super::*;
use crate::{Axis, Panel, Series, Unit};

fn panel() -> Panel {
    Panel::new(Axis::new("x", Unit::Bytes), Axis::new("y", Unit::Ratio))
}

/// How the two kinds of red-green blindness see linear RGB: Machado, Oliveira, Fernandes, "A Physiologically-based Model for
/// Simulation of Color Vision Deficiency" (2009), severity 1.0.
const PROTANOPIA: [[f64; 3]; 3] =
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]];
const DEUTERANOPIA: [[f64; 3]; 3] =
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];
const NORMAL: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

fn times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
}

fn linear(Colour(r, g, b): Colour) -> [f64; 3] {
    [r, g, b].map(|channel| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    })
}

/// CIE L*a*b* of linear RGB, white point D65.
fn lab(rgb: [f64; 3]) -> [f64; 3] {
    let to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ];
    let xyz = times(&to_xyz, rgb.map(|c| c.clamp(0.0, 1.0)));
    let [x, y, z] = [xyz[0] / 0.95047, xyz[1], xyz[2] / 1.08883]
        .map(|t| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// How different two colours look to eyes of this kind; 2.3 is the least difference one sees side by side.
fn distance(eyes: &[[f64; 3]; 3], a: Colour, b: Colour) -> f64 {
    let [a, b] = [a, b].map(|colour| lab(times(eyes, linear(colour))));
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn colours_differ_for_all_eyes() {
    for (eyes, bound) in [(NORMAL, 25.0), (PROTANOPIA, 15.0), (DEUTERANOPIA, 15.0)] {
        for (at, &a) in COLOURS.iter().enumerate() {
            for &b in &COLOURS[at + 1..] {
                let apart = distance(&eyes, a, b);
                assert!(apart >= bound, "{a:?} and {b:?} are {apart:.1} apart");
            }
            let apart = distance(&eyes, a, PAPER);
            assert!(apart >= 30.0, "{a:?} and the paper are {apart:.1} apart");
        }
    }
}

#[test]
fn the_simulation_of_eyes_can_fail() {
    let (red, green) = (Colour(0xa0, 0x40, 0x20), Colour(0x50, 0x60, 0x20));
    assert!(distance(&NORMAL, red, green) > 2.0 * distance(&DEUTERANOPIA, red, green));
    assert!(distance(&NORMAL, PAPER, Colour(0, 0, 0)) > 99.9, "L* runs from 0 to 100");
}

/// How light a colour is to these eyes, from 0 to 100. With normal eyes, this is how a grey printer sees it.
fn lightness(eyes: &[[f64; 3]; 3], colour: Colour) -> f64 {
    lab(times(eyes, linear(colour)))[0]
}

#[test]
fn six_areas_have_six_greys() {
    let names = ["CR", "CW", "RAR", "RAW", "WAR", "WAW"];
    let series = names.iter().map(|name| Series::new(*name, []).filled());
    let chart = Chart::new("t").panel(series.fold(panel(), Panel::series));
    let styles = styles(&chart);
    let shades: Vec<Colour> = names.iter().filter_map(|name| styles[&(*name, "")].shade).collect();
    assert_eq!(shades.len(), 6);
    for eyes in [NORMAL, PROTANOPIA, DEUTERANOPIA] {
        let greys: Vec<f64> = shades.iter().map(|&shade| lightness(&eyes, shade)).collect();
        assert!(greys.windows(2).all(|pair| pair[0] - pair[1] >= 8.0), "{greys:?}");
        assert!(lightness(&eyes, PAPER) - greys[0] >= 10.0, "{greys:?}");
    }
}

#[test]
fn the_ramp_darkens_evenly() {
    for eyes in [NORMAL, PROTANOPIA, DEUTERANOPIA] {
        let greys: Vec<f64> =
            (0..=20).map(|at| lightness(&eyes, ramp::shade(f64::from(at) / 20.0))).collect();
        assert!(greys.windows(2).all(|pair| (0.5..8.0).contains(&(pair[0] - pair[1]))), "{greys:?}");
    }
    assert_eq!(ramp::shade(-1.0), ramp::shade(0.0));
    assert_eq!(ramp::shade(2.0), ramp::shade(1.0));
}

#[test]
fn only_areas_have_a_shade_and_only_lines_a_line() {
    let (a, b) = (Series::new("a", []), Series::new("b", []));
    let both = Series::new("both", []);
    let chart = Chart::new("t")
        .panel(panel().series(a).series(both.clone()))
        .panel(panel().series(b).series(both).stacked());
    let styles = styles(&chart);
    let look = |name| (styles[&(name, "")].shade.is_some(), styles[&(name, "")].lined);
    assert_eq!([look("a"), look("b"), look("both")], [(false, true), (true, false), (true, true)]);
}

#[test]
fn series_without_variants_are_all_distinct() {
    let names: Vec<String> = (0..280).map(|number| format!("p{number}")).collect();
    let chart =
        Chart::new("t").panel(names.iter().fold(panel(), |panel, name| panel.series(Series::new(name, []))));
    let (keys, styles) = (chart.keys(), styles(&chart));
    for (at, a) in keys.iter().enumerate() {
        for b in &keys[at + 1..] {
            assert_ne!(styles[a], styles[b]);
        }
    }
    for pair in keys.windows(2) {
        let (a, b) = (styles[&pair[0]], styles[&pair[1]]);
        assert!(a.colour != b.colour && a.marker != b.marker && a.dash != b.dash, "neighbours differ in all");
    }
}

#[test]
fn variants_share_all_but_the_dash() {
    let keys = [("LRU", "wb"), ("LRU", "ro"), ("ARC", "wb"), ("ARC", "ro")];
    let series = keys.map(|(name, variant)| Series::new(name, []).variant(variant));
    let chart = Chart::new("t").panel(series.into_iter().fold(panel(), Panel::series));
    let styles = styles(&chart);
    let [lru_wb, lru_ro, arc_wb, arc_ro] = keys.map(|key| styles[&key]);
    assert!(lru_wb.colour == lru_ro.colour && lru_wb.marker == lru_ro.marker && lru_wb.dash != lru_ro.dash);
    assert!(lru_wb.dash == arc_wb.dash && lru_ro.dash == arc_ro.dash);
    assert!(lru_wb.colour != arc_wb.colour && lru_wb.marker != arc_wb.marker);
}

#[test]
fn markers_lie_about_their_place() {
    for marker in MARKERS {
        let outline = marker.form.outline((100.0, 50.0));
        let places: Vec<Place> = outline
            .iter()
            .filter_map(|segment| match *segment {
                Segment::Move(to) | Segment::Line(to) | Segment::Cubic(_, _, to) => Some(to),
                Segment::Close => None,
            })
            .collect();
        assert!(places.iter().all(|(x, y)| (x - 100.0).hypot(y - 50.0) < 1.5 * REACH), "{marker:?}");
        assert!(
            places.iter().any(|&(x, _)| x > 100.0) && places.iter().any(|&(x, _)| x < 100.0),
            "{marker:?}"
        );
        assert!(places.iter().any(|&(_, y)| y > 50.0) && places.iter().any(|&(_, y)| y < 50.0), "{marker:?}");
    }
}
