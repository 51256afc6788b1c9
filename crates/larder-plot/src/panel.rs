//! One panel: heading, frame, gridlines, ticks, curves.

use std::collections::BTreeMap;

use crate::chart::{Key, Panel, Series};
use crate::scene::{Anchor, Group, Item, Place, Shape, Stroke, Text};
use crate::style::{FAINT_INK, FRAME, GRID, INK, Style};
use crate::text::{self, Weight};
use crate::ticks::Ruler;

pub(crate) const PLOT_WIDTH: f64 = 640.0;
/// The more curves, the more height they need to be told apart; up to a limit, for one screen to show two panels.
const HEIGHT_MIN: f64 = 260.0;
const HEIGHT_PER_SERIES: f64 = 6.0;
const HEIGHT_MAX: f64 = 380.0;
/// Of tick labels and notes.
const SMALL: f64 = 12.0;
const HEADING: f64 = 13.0;
/// The least distance of two gridlines across the y axis.
const Y_SPACING: f64 = 32.0;
/// The least gap between two labels along the x axis.
const X_GAP: f64 = 14.0;
/// Curves of more points get markers on some of them only.
const MARKERS_MAX: usize = 24;

/// A panel whose axes have been made to measure, not yet in its place.
pub(crate) struct Fitted<'a> {
    panel: &'a Panel,
    x: Ruler,
    y: Ruler,
    /// Of the plot area.
    height: f64,
}

/// A fitted panel in its place: the upper left corner of the plot area.
struct Placed<'a> {
    fitted: &'a Fitted<'a>,
    left: f64,
    top: f64,
}

impl<'a> Fitted<'a> {
    pub fn new(panel: &'a Panel) -> Self {
        let height =
            (HEIGHT_MIN + HEIGHT_PER_SERIES * panel.series.len().saturating_sub(4) as f64).min(HEIGHT_MAX);
        let x = Ruler::fit(&panel.x, panel.x.extent(panel.all_shown().map(|point| point.0)), x_labels_fit);
        let y = Ruler::fit(&panel.y, panel.y.extent(panel.all_shown().map(|point| point.1)), |ruler| {
            y_labels_fit(ruler, height)
        });
        Fitted { panel, x, y, height }
    }

    /// The room that the labels of the y axis need left of the plot area.
    pub fn gutter(&self) -> f64 {
        8.0 + self
            .y
            .ticks
            .iter()
            .map(|tick| text::room(&tick.label, SMALL, Weight::Regular))
            .fold(0.0, f64::max)
    }

    /// The panel with its upper edge at `top` and its plot area right of `left`, and where its lower edge is.
    pub fn draw(&self, (left, top): Place, styles: &BTreeMap<Key<'_>, Style>) -> (Item, f64) {
        let placed = Placed { fitted: self, left, top: top + 22.0 };
        let mut items = placed.furniture();
        items.extend(self.panel.series.iter().map(|series| placed.curve(series, &styles[&series.key()])));
        items.extend(placed.notes());
        (
            Item::Group(Group { class: "panel", tip: self.panel.caption(), items }),
            placed.bottom() + placed.depth(),
        )
    }
}

impl Placed<'_> {
    fn right(&self) -> f64 {
        self.left + PLOT_WIDTH
    }

    fn bottom(&self) -> f64 {
        self.top + self.fitted.height
    }

    /// What lies below the plot area: tick labels, the label of the axis, the note on points left out.
    fn depth(&self) -> f64 {
        if self.fitted.panel.left_out() > 0 { 64.0 } else { 44.0 }
    }

    fn place(&self, (x, y): (f64, f64)) -> Place {
        let along = self.fitted.x.place(x) * PLOT_WIDTH;
        (self.left + along, self.bottom() - self.fitted.y.place(y) * self.fitted.height)
    }

    /// All but the curves: it lies under them.
    fn furniture(&self) -> Vec<Item> {
        let mut items = vec![self.heading()];
        items.extend(self.x_ticks());
        items.extend(self.y_ticks());
        let corners = [(self.left, self.top), (self.left, self.bottom()), (self.right(), self.bottom())];
        items.push(Item::Shape(Shape::line("frame", &corners, Stroke::solid(FRAME, 1.0))));
        let middle = ((self.left + self.right()) / 2.0, self.bottom() + 38.0);
        let title = text::fit(&self.fitted.panel.x.title(), PLOT_WIDTH, HEADING, Weight::Regular);
        items.push(label("axis-title", middle, Anchor::Middle, HEADING, title));
        items
    }

    /// What the y axis shows. It stands over the axis, upright, to be read without turning the head.
    fn heading(&self) -> Item {
        let title = text::fit(&self.fitted.panel.y.title(), PLOT_WIDTH, HEADING, Weight::Bold);
        let at = (self.left, self.top - 10.0);
        let (size, weight, colour) = (HEADING, Weight::Bold, INK);
        Item::Text(Text { class: "axis-title", at, anchor: Anchor::Start, size, weight, colour, text: title })
    }

    fn x_ticks(&self) -> Vec<Item> {
        let tick = |tick: &crate::ticks::Tick| {
            let x = self.left + self.fitted.x.place(tick.value) * PLOT_WIDTH;
            let line = Shape::line("grid", &[(x, self.top), (x, self.bottom())], Stroke::solid(GRID, 1.0));
            let at = (x, self.bottom() + 17.0);
            [Item::Shape(line), label("tick", at, Anchor::Middle, SMALL, tick.label.clone())]
        };
        self.fitted.x.ticks.iter().flat_map(tick).collect()
    }

    fn y_ticks(&self) -> Vec<Item> {
        let tick = |tick: &crate::ticks::Tick| {
            let y = self.bottom() - self.fitted.y.place(tick.value) * self.fitted.height;
            let line = Shape::line("grid", &[(self.left, y), (self.right(), y)], Stroke::solid(GRID, 1.0));
            let at = (self.left - 7.0, y + 0.35 * SMALL);
            [Item::Shape(line), label("tick", at, Anchor::End, SMALL, tick.label.clone())]
        };
        self.fitted.y.ticks.iter().flat_map(tick).collect()
    }

    fn curve(&self, series: &Series, style: &Style) -> Item {
        let panel = self.fitted.panel;
        let points: Vec<_> = panel.shown(series).collect();
        let places: Vec<Place> = points.iter().map(|&point| self.place(point)).collect();
        let name = series.label();
        let mut items = Vec::new();
        if places.len() > 1 {
            items.push(Item::Shape(style.line(&places)));
        }
        let every = points.len().div_ceil(MARKERS_MAX).max(1);
        items.extend(points.iter().zip(&places).step_by(every).map(|(&(x, y), &at)| {
            let tip = format!("{name}: {}, {}", panel.x.unit.cell(x), panel.y.unit.cell(y));
            Item::Group(Group { class: "point", tip, items: vec![Item::Shape(style.marker(at))] })
        }));
        Item::Group(Group { class: "series", tip: name, items })
    }

    /// What is missing from the panel, if anything is.
    fn notes(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let middle = (self.left + self.right()) / 2.0;
        if self.fitted.panel.all_shown().next().is_none() {
            let at = (middle, (self.top + self.bottom()) / 2.0);
            items.push(label("note", at, Anchor::Middle, HEADING, "No points to draw".to_owned()));
        }
        if let Some(note) = left_out(self.fitted.panel) {
            items.push(label("note", (self.left, self.bottom() + 58.0), Anchor::Start, SMALL, note));
        }
        items
    }
}

/// Tells how many points have no place in the panel.
pub(crate) fn left_out(panel: &Panel) -> Option<String> {
    let points = match panel.left_out() {
        0 => return None,
        1 => "1 point is".to_owned(),
        many => format!("{many} points are"),
    };
    Some(format!("{points} not shown: not a finite number, or not above zero on a log axis"))
}

fn label(class: &'static str, at: Place, anchor: Anchor, size: f64, text: String) -> Item {
    Item::Text(Text { class, at, anchor, size, weight: Weight::Regular, colour: FAINT_INK, text })
}

fn x_labels_fit(ruler: &Ruler) -> bool {
    ruler.ticks.windows(2).all(|pair| {
        let [a, b] = [&pair[0], &pair[1]];
        let apart = (ruler.place(b.value) - ruler.place(a.value)) * PLOT_WIDTH;
        let half = |label: &str| text::room(label, SMALL, Weight::Regular) / 2.0;
        apart >= half(&a.label) + half(&b.label) + X_GAP
    })
}

fn y_labels_fit(ruler: &Ruler, height: f64) -> bool {
    let apart = |a: f64, b: f64| (ruler.place(b) - ruler.place(a)) * height;
    ruler.ticks.windows(2).all(|pair| apart(pair[0].value, pair[1].value) >= Y_SPACING)
}
