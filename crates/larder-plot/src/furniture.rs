//! What panels and bars have in common around their plot area: headings, ticks, titles of axes.

use crate::axis::Axis;
use crate::scene::{Anchor, Item, Place, Shape, Stroke, Text};
use crate::style::{FAINT_INK, GRID, INK};
use crate::text::{self, Weight};
use crate::ticks::{Ruler, Tick};

pub(crate) const PLOT_WIDTH: f64 = 640.0;
/// Size of tick labels and notes.
pub(crate) const SMALL: f64 = 12.0;
pub(crate) const HEADING: f64 = 13.0;
/// The least gap between two labels along an x axis.
const X_GAP: f64 = 14.0;

pub(crate) fn label(class: &'static str, at: Place, anchor: Anchor, size: f64, text: String) -> Item {
    Item::Text(Text { class, at, anchor, size, weight: Weight::Regular, colour: FAINT_INK, text })
}

/// The title of an axis as the heading of what lies below it.
pub(crate) fn heading(axis: &Axis, at: Place, width: f64) -> Item {
    let (size, weight, colour) = (HEADING, Weight::Bold, INK);
    let text = text::fit(&axis.title(), width, size, weight);
    Item::Text(Text { class: "axis-title", at, anchor: Anchor::Start, size, weight, colour, text })
}

/// The title of an x axis whose left end is at this place.
pub(crate) fn x_title(axis: &Axis, (left, bottom): Place, width: f64) -> Item {
    let title = text::fit(&axis.title(), width, HEADING, Weight::Regular);
    label("axis-title", (left + width / 2.0, bottom + 38.0), Anchor::Middle, HEADING, title)
}

/// Gridlines and labels of an x axis; the plot area has its lower left corner here, and this size.
pub(crate) fn x_ticks(ruler: &Ruler, (left, bottom): Place, (width, height): (f64, f64)) -> Vec<Item> {
    let tick = |tick: &Tick| {
        let x = left + ruler.place(tick.value) * width;
        let line = Shape::line("grid", &[(x, bottom - height), (x, bottom)], Stroke::solid(GRID, 1.0));
        [Item::Shape(line), label("tick", (x, bottom + 17.0), Anchor::Middle, SMALL, tick.label.clone())]
    };
    ruler.ticks.iter().flat_map(tick).collect()
}

/// Whether the labels of an x axis of this length have room.
pub(crate) fn x_labels_fit(ruler: &Ruler, width: f64) -> bool {
    ruler.ticks.windows(2).all(|pair| {
        let [a, b] = [&pair[0], &pair[1]];
        let apart = (ruler.place(b.value) - ruler.place(a.value)) * width;
        let half = |label: &str| text::room(label, SMALL, Weight::Regular) / 2.0;
        apart >= half(&a.label) + half(&b.label) + X_GAP
    })
}

/// How far the labels of an x axis of this length hang over its left and its right end.
pub(crate) fn overhang(ruler: &Ruler, width: f64) -> (f64, f64) {
    let half = |tick: &Tick| text::room(&tick.label, SMALL, Weight::Regular) / 2.0;
    let at = |tick: &Tick| ruler.place(tick.value) * width;
    let most = |beyond: &dyn Fn(&Tick) -> f64| ruler.ticks.iter().map(beyond).fold(0.0, f64::max);
    (most(&|tick| half(tick) - at(tick)), most(&|tick| at(tick) + half(tick) - width))
}

/// The room that the widest of these labels needs.
pub(crate) fn widest<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(|label| text::room(label, SMALL, Weight::Regular)).fold(0.0, f64::max)
}
