//! The pictures as their readers get them: what the SVG holds, and that the page needs nothing else.

use larder_plot::{Axis, Chart, Panel, Series, Unit};
use roxmltree::{Document, Node};

const SVG: &str = "http://www.w3.org/2000/svg";
const NASTY: &str = "</svg><script src=\"http://x/\">&amp;'\u{0}";

fn hit_ratio() -> Panel {
    Panel::new(
        Axis::new("Cache size", Unit::Bytes).log(),
        Axis::new("Hit ratio", Unit::Ratio).covering(0.0, 1.0),
    )
}

fn ssd_writes() -> Panel {
    Panel::new(Axis::new("Cache size", Unit::Bytes).log(), Axis::new("SSD writes", Unit::count("blocks")))
}

/// Two panels of curves over 1 to 16 GiB, one for each name.
fn chart(names: &[&str]) -> Chart {
    let sizes = [1u32, 2, 4, 8, 16].map(|gib| f64::from(gib) * 2f64.powi(30));
    let curve = |name: &str, factor: f64| {
        let points =
            sizes.iter().enumerate().map(|(at, &size)| (size, factor * (at + 1 + name.len()) as f64));
        Series::new(name, points.collect::<Vec<_>>())
    };
    let hits = names.iter().fold(hit_ratio(), |panel, name| panel.series(curve(name, 0.02)));
    let writes = names.iter().fold(ssd_writes(), |panel, name| panel.series(curve(name, 1e6)));
    Chart::new("Hits & <writes>").subtitle("a trace, 4 KiB blocks").panel(hits).panel(writes)
}

fn groups<'a>(root: Node<'a, 'a>, class: &'static str) -> Vec<Node<'a, 'a>> {
    root.descendants().filter(|node| node.attribute("class") == Some(class)).collect()
}

fn tip<'a>(node: Node<'a, 'a>) -> &'a str {
    node.first_element_child()
        .filter(|child| child.has_tag_name((SVG, "title")))
        .and_then(|t| t.text())
        .unwrap_or("")
}

#[test]
fn every_series_has_its_line_markers_and_label() {
    let names =
        ["FIFO", "LRU", "CLOCK", "ARC", "2Q", "LIRS", "LARC", "S3-FIFO", "SIEVE", "W-TinyLFU", "MQ", "LFU"];
    let svg = chart(&names).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let root = document.root_element();
    let curves = groups(root, "series");
    assert_eq!(curves.iter().map(|&curve| tip(curve)).collect::<Vec<_>>(), [names, names].concat());
    for curve in &curves {
        assert_eq!(groups(*curve, "line").len(), 1);
        assert_eq!(groups(*curve, "marker").len(), 5);
        assert!(
            groups(*curve, "point")
                .iter()
                .all(|&point| tip(point).starts_with(&format!("{}: ", tip(*curve))))
        );
    }
    let labels: Vec<_> = groups(root, "name").iter().filter_map(Node::text).collect();
    assert_eq!(labels, names);
    let looks = groups(root, "entry").into_iter().map(|entry| {
        let line = groups(entry, "line")[0];
        [line.attribute("stroke"), line.attribute("stroke-dasharray")]
            .map(Option::unwrap_or_default)
            .join(" ")
    });
    let looks: std::collections::BTreeSet<String> = looks.collect();
    assert_eq!(looks.len(), names.len(), "no two lines look alike, even without their markers");
}

#[test]
fn labels_stay_in_the_picture_and_apart() {
    let long = "a replacement policy whose name goes on and on, with an admission policy of its own";
    let names: Vec<String> = (0..45).map(|at| format!("{at} {long}")).collect();
    let svg = chart(&names.iter().map(String::as_str).collect::<Vec<_>>()).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let root = document.root_element();
    let number =
        |node: Node, name| node.attribute(name).and_then(|n| n.parse::<f64>().ok()).expect("a number");
    let (width, height) = (number(root, "width"), number(root, "height"));
    let mut places = Vec::new();
    for text in root.descendants().filter(|node| node.has_tag_name((SVG, "text"))) {
        let (x, y) = (number(text, "x"), number(text, "y"));
        assert!(x > 0.0 && x < width && y > 0.0 && y < height);
        if text.attribute("class") == Some("name") {
            places.push((x, y));
        }
    }
    places.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    assert_eq!(places.len(), 45);
    assert!(
        places.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[1].1 - pair[0].1 >= 16.0),
        "a line each"
    );
}

#[test]
fn axes_are_labelled_for_humans() {
    let svg = chart(&["LRU"]).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let texts =
        |class| groups(document.root_element(), class).iter().filter_map(Node::text).collect::<Vec<_>>();
    let sizes = ["1 GiB", "2 GiB", "4 GiB", "8 GiB", "16 GiB"];
    assert_eq!(texts("tick")[..5], sizes);
    assert!(texts("tick").contains(&"100 %") && texts("tick").contains(&"4 M"), "{:?}", texts("tick"));
    assert_eq!(texts("axis-title"), ["Hit ratio", "Cache size", "SSD writes (blocks)", "Cache size"]);
    assert_eq!(texts("title"), ["Hits & <writes>"]);
}

#[test]
fn one_point_is_a_marker_without_a_line() {
    let panel = hit_ratio().series(Series::new("LRU", [(1e9, 0.4), (2e9, f64::NAN)]));
    let svg = Chart::new("t").panel(panel).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let curve = groups(document.root_element(), "series")[0];
    assert_eq!((groups(curve, "line").len(), groups(curve, "marker").len()), (0, 1));
}

#[test]
fn names_cannot_break_out() {
    let chart = chart(&[NASTY]);
    let svg = chart.svg();
    let document = Document::parse(&svg).expect("well-formed");
    assert!(
        groups(document.root_element(), "series").iter().all(|&curve| tip(curve).contains("</svg><script"))
    );
    for text in [svg.clone(), chart.html()] {
        assert!(!text.contains("<script") && !text.contains('\0'));
    }
}

#[test]
fn the_page_refers_to_nothing_outside() {
    let html = chart(&["LRU", "LARC", NASTY]).html();
    for reference in ["href", "url(", "@import", "<script", "<link", "<img", "<iframe", " src="] {
        let escaped = html.replace("&lt;script src=&quot;", "");
        assert!(!escaped.contains(reference), "{reference}");
    }
    let addresses = html.matches("http://").count() - html.matches("http://x/").count();
    assert_eq!(addresses, 1, "the name of the SVG namespace, which is no address");
}

#[test]
fn the_page_has_the_numbers_in_tables() {
    let html = chart(&["LRU", "LARC"]).html();
    let body = html.split_once("<div class=\"scroll\"").expect("a table").1;
    assert_eq!(body.matches("<caption>").count(), 2);
    assert!(body.contains("<caption>Hit ratio over cache size</caption>"));
    assert!(body.contains(r#"<tr><th scope="row">LRU</th><td>8.00 %</td><td>10.00 %</td>"#), "{body}");
    assert!(body.contains("<td>4,000,000</td>"));
}

#[test]
fn a_page_is_the_same_twice() {
    assert_eq!(chart(&["LRU", "LARC"]).html(), chart(&["LRU", "LARC"]).html());
}

#[test]
fn long_curves_have_few_markers_but_all_their_points() {
    let points = (1..=1000).map(|at| (f64::from(at), 1.0 / f64::from(at)));
    let svg = Chart::new("t").panel(hit_ratio().series(Series::new("LRU", points))).svg();
    let document = Document::parse(&svg).expect("well-formed");
    let curve = groups(document.root_element(), "series")[0];
    assert!((8..=24).contains(&groups(curve, "marker").len()));
    let line = groups(curve, "line")[0].attribute("d").expect("an outline");
    assert_eq!(line.matches(['M', 'L']).count(), 1000);
}
