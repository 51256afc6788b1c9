//! The PNG has the size of the scene and shows what the scene holds, where it holds it.

use super::*;
use crate::scene::{Anchor, Colour};
use crate::text::Weight;
use crate::{Axis, Panel, Series, Unit};

const RED: Colour = Colour(0xd0, 0x10, 0x10);

fn painted(items: Vec<Item>) -> Pixmap {
    let scene = Scene { width: 100.0, height: 60.0, summary: String::new(), items };
    let mut canvas = blank(&scene).expect("small");
    paint(
        &[Item::Shape(Shape::rect("paper", (0.0, 0.0), (100.0, 60.0), Colour(255, 255, 255)))],
        &mut canvas,
    );
    paint(&scene.items, &mut canvas);
    canvas
}

/// The box of all pixels that are not white, in CSS pixels: left, top, right, bottom.
fn inked(canvas: &Pixmap) -> Option<[f32; 4]> {
    let places = (0..canvas.height()).flat_map(|y| (0..canvas.width()).map(move |x| (x, y)));
    let is_ink =
        |&(x, y): &(u32, u32)| canvas.pixel(x, y).is_some_and(|p| p.red().min(p.green()).min(p.blue()) < 200);
    places
        .filter(is_ink)
        .map(|(x, y)| [x, y, x + 1, y + 1].map(|side| side as f32 / DENSITY))
        .reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])])
}

fn chart(series: usize) -> Chart {
    let empty = Panel::new(Axis::new("Cache size", Unit::Bytes).log(), Axis::new("Hit ratio", Unit::Ratio));
    let curves = (0..series).map(|at| Series::new(format!("policy {at}"), [(1024.0, 0.1), (4096.0, 0.9)]));
    Chart::new("A title").panel(curves.fold(empty, Panel::series))
}

#[test]
fn shapes_are_painted_in_their_place() {
    let ink = inked(&painted(vec![Item::Shape(Shape::rect("", (10.0, 20.0), (30.0, 5.0), RED))]));
    assert_eq!(ink, Some([10.0, 20.0, 40.0, 25.0]));
    assert_eq!(inked(&painted(vec![])), None);
}

#[test]
fn cells_are_painted_in_their_place_without_seams() {
    let rows = vec![vec![None, Some(RED), Some(RED)], vec![Some(RED), Some(Colour(0xcf, 0x10, 0x10)), None]];
    let mosaic = Mosaic { class: "", at: (10.0, 20.0), size: (50.0, 7.0), rows };
    let canvas = painted(vec![Item::Mosaic(mosaic)]);
    assert_eq!(inked(&canvas), Some([10.0, 20.0, 60.0, 27.0]));
    let red = |x: u32, y: u32| canvas.pixel(x, y).expect("inside").green() < 0x20;
    assert!(!red(30, 43) && red(70, 43) && red(30, 50) && !red(100, 50), "empty cells are paper");
    assert!((54..120).all(|x| red(x, 41)) && (20..86).all(|x| red(x, 53)), "no seam between neighbours");
}

#[test]
fn dashes_leave_gaps() {
    let dashed = Stroke { colour: RED, width: 4.0, dash: &[10.0, 10.0] };
    let canvas = painted(vec![Item::Shape(Shape::line("", &[(0.0, 30.0), (100.0, 30.0)], dashed))]);
    let green = |x| canvas.pixel(x, 60).expect("inside").green();
    assert!(green(10) < 50 && green(30) > 250 && green(50) < 50 && green(70) > 250);
}

#[test]
fn text_is_as_wide_as_measured_and_anchored() {
    let width = text::width("HIT", 14.0, Weight::Bold) as f32;
    for (anchor, left) in
        [(Anchor::Start, 50.0), (Anchor::Middle, 50.0 - width / 2.0), (Anchor::End, 50.0 - width)]
    {
        let text = Text {
            class: "",
            at: (50.0, 30.0),
            anchor,
            size: 14.0,
            weight: Weight::Bold,
            colour: RED,
            text: "HIT".to_owned(),
        };
        let [l, top, r, bottom] = inked(&painted(vec![Item::Text(text)])).expect("ink");
        assert!((l - left).abs() < 3.0 && (r - left - width).abs() < 3.0, "{anchor:?}: {l} to {r}");
        assert!(
            (bottom - 30.0).abs() <= 1.0 && (15.0..22.0).contains(&top),
            "the letters stand on the baseline"
        );
    }
}

#[test]
fn the_image_has_the_size_of_the_scene_twice() {
    let chart = chart(4);
    let scene = layout::scene(&chart);
    let image = Pixmap::decode_png(&chart.png().expect("small")).expect("a PNG");
    assert_eq!((image.width(), image.height()), ((scene.width * 2.0) as u32, (scene.height * 2.0) as u32));
    assert!(image.pixels().iter().all(|pixel| pixel.alpha() == 255), "the paper covers all of it");
    let blue =
        image.pixels().iter().filter(|pixel| (pixel.red(), pixel.green(), pixel.blue()) == (0, 0x72, 0xb2));
    assert!(blue.count() > 100, "the first curve is there");
}

#[test]
fn the_same_chart_gives_the_same_bytes() {
    assert_eq!(chart(9).png().expect("small"), chart(9).png().expect("small"));
    assert_ne!(chart(9).png().expect("small"), chart(8).png().expect("small"));
}

#[test]
fn a_picture_too_large_is_refused() {
    let error = chart(4000).png().expect_err("a legend of 2000 rows");
    assert!(matches!(error, Error::TooLarge { height: 80_000.., .. }), "{error}");
}
