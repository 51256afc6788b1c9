//! Nothing overlaps and nothing leaves the picture, whatever the chart holds.

use proptest::prelude::*;

use super::*;
use crate::{Axis, Bars, Heat, Panel, Series, Unit};

/// Every text lies inside the picture, and no two touch one another.
fn check(chart: &Chart) -> Result<Scene, TestCaseError> {
    let scene = scene(chart);
    let texts = scene.texts();
    for (at, text) in texts.iter().enumerate() {
        let [left, top, right, bottom] = text.bounds();
        let inside = left >= 0.0 && top >= 0.0 && right <= scene.width && bottom <= scene.height;
        prop_assert!(inside, "{:?} leaves the picture", text.text);
        for other in &texts[at + 1..] {
            let [l, t, r, b] = other.bounds();
            let apart = right <= l || r <= left || bottom <= t || b <= top;
            prop_assert!(apart || text.text.is_empty(), "{:?} lies on {:?}", text.text, other.text);
        }
    }
    Ok(scene)
}

fn texts<'a>(scene: &'a Scene, class: &str) -> Vec<&'a str> {
    scene.texts().into_iter().filter(|text| text.class == class).map(|text| text.text.as_str()).collect()
}

fn curve(name: &str, places: usize) -> Series {
    Series::new(name, (1..=places).map(|at| (at as f64, 0.1 * at as f64)))
}

fn panel(series: impl IntoIterator<Item = Series>) -> Panel {
    let empty = Panel::new(Axis::new("Cache size", Unit::Bytes).log(), Axis::new("Hit ratio", Unit::Ratio));
    series.into_iter().fold(empty, Panel::series)
}

#[test]
fn the_legend_names_each_series_once() {
    let chart =
        Chart::new("t").panel(panel([curve("LRU", 3), curve("ARC", 3)])).panel(panel([curve("LRU", 3)]));
    let scene = check(&chart).expect("sound");
    assert_eq!(texts(&scene, "name"), ["LRU", "ARC"]);
    assert_eq!(
        scene.summary,
        "t. Curves of Hit ratio over cache size; Hit ratio over cache size for LRU; ARC."
    );
}

#[test]
fn a_chart_without_points_says_so() {
    for chart in [
        Chart::new("t"),
        Chart::new("t").panel(panel([])),
        Chart::new("").panel(panel([curve("LRU", 0)])),
        Chart::new("").panel(panel([Series::new("LRU", [(f64::NAN, 1.0), (0.0, 1.0)])])),
    ] {
        let scene = check(&chart).expect("sound");
        assert_eq!(texts(&scene, "note")[0], "No points to draw");
    }
}

#[test]
fn points_left_out_are_told() {
    let chart = Chart::new("t").panel(panel([Series::new("LRU", [(0.0, 0.5), (1.0, 0.5), (2.0, f64::NAN)])]));
    let scene = check(&chart).expect("sound");
    let note = "2 points are not shown: not a finite number, or not above zero on a log axis";
    assert_eq!(texts(&scene, "note"), [note]);
}

#[test]
fn many_series_make_the_picture_higher_not_wider() {
    let chart = |count| Chart::new("t").panel(panel((0..count).map(|at| curve(&format!("policy {at}"), 2))));
    let [some, many, more] = [40, 100, 400].map(|count| check(&chart(count)).expect("sound"));
    assert!(many.height > some.height && more.height > many.height);
    assert!(more.width < some.width + 20.0, "{} and {}", some.width, more.width);
}

#[test]
fn a_map_is_told_in_words() {
    let heat = Heat::new("Accesses", Unit::count(""), (1.0, 4.0), (0.0, 1.0), [vec![1.0, 2.0, 3.0]]);
    let scene = check(&Chart::new("t").panel(panel([]).heat(heat))).expect("sound");
    assert!(
        scene.summary.starts_with("t. Accesses by hit ratio and cache size. The darkest cell"),
        "{}",
        scene.summary
    );
    assert_eq!(texts(&scene, "scale-title"), ["Accesses"]);
    assert!(texts(&scene, "note").is_empty());
}

#[test]
fn bars_say_their_amounts() {
    let bars = Bars::new("Region", Axis::new("Accesses", Unit::count("blocks")).log());
    let bars = bars.bar("a", 1500.0).bar("b", 0.0).bar("c", f64::NAN).bar("d", -2.0);
    let scene = check(&Chart::new("t").bars(bars)).expect("sound");
    assert_eq!(texts(&scene, "name"), ["a", "b", "c", "d"]);
    assert_eq!(texts(&scene, "amount"), ["1,500", "0", "–", "-2"]);
    assert_eq!(scene.summary, "t. Accesses (blocks) by region.");
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![Just("LRU".to_owned()), "[A-Z0-9]{1,9}(-[a-z]{2,5})?", "\\PC{0,120}"]
}

fn units() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Ratio), Just(Unit::Bytes), "\\PC{0,200}".prop_map(Unit::Count)]
}

fn axes() -> impl Strategy<Value = Axis> {
    (names(), units(), any::<bool>()).prop_map(|(label, unit, log)| {
        let axis = Axis::new(label, unit);
        if log { axis.log() } else { axis }
    })
}

fn coordinates() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0f64..1.0, (0i32..60).prop_map(|power| 2f64.powi(power)), Just(0.0)]
}

fn series() -> impl Strategy<Value = Series> {
    let points = prop::collection::vec((coordinates(), coordinates()), 0..8);
    let until = prop::option::of(coordinates());
    (names(), "(|wb|ro)", points, until, any::<[bool; 2]>()).prop_map(
        |(name, variant, points, until, [steps, fill])| {
            let series = Series::new(name, points).variant(variant);
            let series = if steps { series.steps() } else { series };
            let series = until.into_iter().fold(series, Series::steps_until);
            if fill { series.filled() } else { series }
        },
    )
}

fn heats() -> impl Strategy<Value = Heat> {
    let range = || (coordinates(), coordinates());
    let rows = prop::collection::vec(prop::collection::vec(coordinates(), 0..5), 0..5);
    (names(), units(), range(), range(), rows)
        .prop_map(|(label, unit, x, y, rows)| Heat::new(label, unit, x, y, rows))
}

fn bars() -> impl Strategy<Value = Bars> {
    let amounts = prop::collection::vec((names(), coordinates()), 0..9);
    (names(), axes(), amounts).prop_map(|(things, axis, amounts)| {
        amounts.into_iter().fold(Bars::new(things, axis), |bars, (name, amount)| bars.bar(name, amount))
    })
}

fn panels() -> impl Strategy<Value = Panel> {
    let series = prop::collection::vec(series(), 0..20);
    (axes(), axes(), series, any::<bool>(), prop::option::weighted(0.3, heats())).prop_map(
        |(x, y, series, stacked, heat)| {
            let panel = series.into_iter().fold(Panel::new(x, y), Panel::series);
            let panel = if stacked { panel.stacked() } else { panel };
            heat.into_iter().fold(panel, Panel::heat)
        },
    )
}

fn charts() -> impl Strategy<Value = Chart> {
    let panels = prop::collection::vec(panels(), 0..3);
    (names(), names(), panels, prop::option::weighted(0.3, bars())).prop_map(
        |(title, subtitle, panels, bars)| {
            let chart = panels.into_iter().fold(Chart::new(title).subtitle(subtitle), Chart::panel);
            bars.into_iter().fold(chart, Chart::bars)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_chart_overlaps_itself(chart in charts()) {
        check(&chart)?;
    }

    /// Any chart at all is well-formed XML with numbers for places, and comes out the same twice.
    #[test]
    fn every_svg_is_sound(chart in charts()) {
        let svg = chart.svg();
        prop_assert_eq!(&svg, &chart.clone().svg());
        let document = roxmltree::Document::parse(&svg).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for node in document.descendants() {
            for place in ["d", "x", "y", "width", "height", "transform"].into_iter().filter_map(|name| node.attribute(name)) {
                prop_assert!(!place.contains("NaN") && !place.contains("inf"), "{}", place);
            }
        }
    }
}
