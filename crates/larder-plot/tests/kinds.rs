//! Steps, areas, maps and bars lie where their numbers say.

use larder_plot::{Axis, Bars, Chart, Heat, Panel, Series, Unit};
use roxmltree::{Document, Node};

/// The nodes of a class.
fn all<'a>(document: &'a Document<'a>, class: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.attribute("class") == Some(class)).collect()
}

/// The corners of a path.
fn corners(path: Node) -> Vec<[f64; 2]> {
    let outline = path.attribute("d").expect("an outline");
    let places = outline.split(['M', 'L', 'Z']).filter(|place| !place.is_empty());
    let numbers = |place: &str| place.split(' ').map(|n| n.parse().expect("a number")).collect::<Vec<f64>>();
    places.map(numbers).map(|place| [place[0], place[1]]).collect()
}

/// Left, top, right, bottom of what the corners enclose.
fn bounds(path: Node) -> [f64; 4] {
    let corners = corners(path);
    let fold =
        |at: usize, pick: fn(f64, f64) -> f64| corners.iter().map(|c| c[at]).reduce(pick).expect("corners");
    [fold(0, f64::min), fold(1, f64::min), fold(0, f64::max), fold(1, f64::max)]
}

fn tips(document: &Document, class: &str) -> Vec<String> {
    let title =
        |node: Node| node.first_element_child().and_then(|tip| tip.text()).unwrap_or_default().to_owned();
    all(document, class).into_iter().map(title).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.02
}

fn shares() -> Panel {
    Panel::new(Axis::new("Time", Unit::Seconds), Axis::new("Share", Unit::Ratio).covering(0.0, 1.0))
}

#[test]
fn steps_go_across_and_up_only() {
    let curve = Series::new("LRU", [(0.0, 0.9), (60.0, 0.5), (120.0, 0.4)]).steps_until(240.0);
    let svg = Chart::new("t").panel(shares().series(curve)).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let series = all(&document, "series")[0];
    let line = series.descendants().find(|node| node.attribute("class") == Some("line")).expect("a line");
    let places = corners(line);
    assert_eq!(places.len(), 6, "three points, two steps down, and the end of the last");
    assert!(places.windows(2).all(|pair| pair[0][0] == pair[1][0] || pair[0][1] == pair[1][1]), "{places:?}");
    let [left, _, right, _] = bounds(all(&document, "frame")[0]);
    assert!(near(places[1][0] - left, (right - left) / 4.0), "the first step ends where the second point is");
    assert!(near(places[5][0], right));
    assert_eq!(all(&document, "marker").len(), 4, "one for each point, one in the legend");
}

#[test]
fn bands_fill_the_whole() {
    let names = ["CR", "RAR", "WAW"];
    let shares_of = [[0.2, 0.5], [0.3, 0.5], [0.5, 0.0]];
    let panel = names.iter().zip(shares_of).fold(shares().stacked(), |panel, (name, [first, second])| {
        panel.series(Series::new(*name, [(0.0, first), (60.0, second)]).steps_until(180.0))
    });
    let svg = Chart::new("t").panel(panel).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let [left, top, right, bottom] = bounds(all(&document, "frame")[0]);
    let up = |share: f64| bottom - share * (bottom - top);
    let areas = all(&document, "area");
    for (area, [[over, under], [over_2, under_2]]) in
        areas.iter().zip([[[1.0, 0.8], [1.0, 0.5]], [[0.8, 0.5], [0.5, 0.0]], [[0.5, 0.0], [0.0, 0.0]]])
    {
        let places = corners(*area);
        let wanted = [over, over, over_2, over_2, under_2, under_2, under, under].map(up);
        assert!(places.iter().zip(wanted).all(|(place, y)| near(place[1], y)), "{places:?} {wanted:?}");
        let across =
            [0.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 0.0].map(|minute| left + minute / 3.0 * (right - left));
        assert!(places.iter().zip(across).all(|(place, x)| near(place[0], x)), "{places:?} {across:?}");
    }
    assert_eq!(
        tips(&document, "column"),
        ["0: CR 20.00 %; RAR 30.00 %; WAW 50.00 %", "1 min: CR 50.00 %; RAR 50.00 %; WAW 0.00 %"]
    );
    let hits: Vec<[f64; 4]> = all(&document, "hit").into_iter().map(bounds).collect();
    assert!(near(hits[0][0], left) && near(hits[0][2], hits[1][0]) && near(hits[1][2], right), "{hits:?}");
    let labels: Vec<_> = all(&document, "name").iter().filter_map(Node::text).collect();
    assert_eq!((areas.len(), labels), (3, names.to_vec()), "the legend goes down as the bands do");
    assert_eq!(all(&document, "swatch").len(), 3);
    assert_eq!(all(&document, "marker").len(), 0);
}

#[test]
fn points_below_zero_do_not_stack() {
    let panel = shares().stacked().series(Series::new("CR", [(0.0, 0.5), (60.0, -0.1)]));
    let svg = Chart::new("t").panel(panel).svg();
    assert!(svg.contains("1 point is not shown") && svg.contains("or below zero"), "{svg}");
}

#[test]
fn a_histogram_stands_on_the_axis_and_ends_with_its_last_bin() {
    let x = Axis::new("Reuse distance", Unit::count("blocks")).log();
    let bins =
        |scale: f64| (0..4).map(move |at| (2f64.powi(at), scale * [10.0, 0.0, 40.0, 30.0][at as usize]));
    for y in [Axis::new("Accesses", Unit::count("")), Axis::new("Accesses", Unit::count("")).log()] {
        let panel = Panel::new(x.clone(), y)
            .series(Series::new("TRD", bins(2.0)).steps_until(16.0).filled())
            .series(Series::new("URD", bins(1.0)).steps_until(16.0).filled());
        let svg = Chart::new("t").panel(panel).svg();
        assert!(!svg.contains("not shown"), "an empty bin has a place on a log axis too");
        let document = Document::parse(&svg).expect("well-formed");
        let [left, top, right, bottom] = bounds(all(&document, "frame")[0]);
        for area in all(&document, "area") {
            let [l, t, r, b] = bounds(area);
            assert!(near(b, bottom) && t >= top && near(l - left, right - r), "{:?}", [l, t, r, b]);
            let empty_bin = &corners(area)[2..4];
            assert!(empty_bin.iter().all(|place| near(place[1], bottom)), "{empty_bin:?}");
        }
        let outlines = all(&document, "halo");
        assert_eq!(outlines.len(), 2);
        assert_eq!(tips(&document, "column")[2], "4: TRD 80; URD 40");
    }
}

#[test]
fn areas_show_zero_even_far_from_it() {
    let curve = Series::new("CR", [(0.0, 0.9), (60.0, 0.8)]);
    let panel = || Panel::new(Axis::new("Time", Unit::Seconds), Axis::new("Share", Unit::Ratio));
    for (panel, from_zero) in [
        (panel().series(curve.clone()), false),
        (panel().series(curve.clone().filled()), true),
        (panel().series(curve).stacked(), true),
    ] {
        let svg = Chart::new("t").panel(panel).svg();
        let document = Document::parse(&svg).expect("well-formed");
        let ticks: Vec<_> = all(&document, "tick").iter().filter_map(Node::text).collect();
        assert_eq!(ticks.contains(&"0 %"), from_zero, "{ticks:?}");
    }
}

fn map(rows: impl Iterator<Item = Vec<f64>>) -> String {
    let heat = Heat::new("Accesses", Unit::count("blocks"), (60.0, 180.0), (4096.0, 12288.0), rows);
    let panel = Panel::new(Axis::new("Time", Unit::Seconds), Axis::new("Address", Unit::Bytes));
    Chart::new("t").panel(panel.heat(heat)).svg()
}

#[test]
fn a_map_fills_its_panel_from_the_lower_left() {
    let svg = map([vec![1.0, 0.0, 100.0], vec![0.0, 10.0, 10.0]].into_iter());
    let document = Document::parse(&svg).expect("well-formed");
    let [left, top, right, bottom] = bounds(all(&document, "frame")[0]);
    let cells = all(&document, "cells")[0];
    let (width, height) = ((right - left) / 3.0, (bottom - top) / 2.0);
    let transform = cells.attribute("transform").expect("its place");
    let numbers: Vec<f64> = transform.split(['(', ')', ' ']).filter_map(|word| word.parse().ok()).collect();
    assert!(
        numbers.iter().zip([left, top + height / 2.0, width, height]).all(|(&a, b)| near(a, b)),
        "{transform}"
    );
    let mut paths: Vec<_> = cells.children().filter_map(|path| path.attribute("d")).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["M0 1h1", "M1 0h2", "M2 1h1"], "the first row lies below");
    let ticks: Vec<_> = all(&document, "tick").iter().filter_map(Node::text).collect();
    for tick in ["1 min", "3 min", "4 KiB", "12 KiB", "1", "10", "100"] {
        assert!(ticks.contains(&tick), "{ticks:?}");
    }
}

#[test]
fn the_largest_map_is_small_enough_for_a_report() {
    let noise = |row: usize, column: usize| ((row * 7919 + column * 104_729) % 1013) as f64;
    let svg = map((0..128).map(|row| (0..128).map(|column| noise(row, column)).collect()));
    assert!(svg.len() < 200_000, "{}", svg.len());
    let even = map((0..128).map(|row| vec![1.0 + row as f64; 128]));
    assert!(even.len() < 10_000, "{}", even.len());
}

#[test]
fn bars_are_as_long_as_their_amounts() {
    let bars = Bars::new("Region", Axis::new("Accesses", Unit::count("blocks")));
    let svg = Chart::new("t").bars(bars.bar("a", 4000.0).bar("b", 1000.0).bar("c", 0.0)).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let lengths: Vec<f64> = all(&document, "bar").into_iter().map(bounds).map(|[l, _, r, _]| r - l).collect();
    assert!(lengths[0] > 400.0 && near(lengths[1], lengths[0] / 4.0) && near(lengths[2], 0.0), "{lengths:?}");
    assert_eq!(tips(&document, "row"), ["a: 4,000", "b: 1,000", "c: 0"]);
}
