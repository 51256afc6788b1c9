//! One panel: heading, frame, gridlines, ticks, and what lies between its axes.

mod areas;
mod curves;
mod map;

use std::collections::BTreeMap;

use crate::axis::{Axis, Scale};
use crate::chart::{Key, Panel};
use crate::furniture::{self, HEADING, PLOT_WIDTH, SMALL, label};
use crate::scene::{Anchor, Group, Item, Place, Shape, Stroke};
use crate::style::{FRAME, GRID, Style};
use crate::ticks::Ruler;

/// The more curves, the more height they need to be told apart; up to a limit, for one screen to show two panels.
const HEIGHT_MIN: f64 = 260.0;
const HEIGHT_PER_SERIES: f64 = 6.0;
const HEIGHT_MAX: f64 = 380.0;
/// What the heading takes above the plot area.
const HEAD: f64 = 22.0;
/// The least distance of two gridlines across the y axis.
const Y_SPACING: f64 = 32.0;

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
    panel: &'a Panel,
    left: f64,
    top: f64,
}

impl<'a> Fitted<'a> {
    pub fn new(panel: &'a Panel) -> Self {
        let height = match panel.map() {
            Some(_) => HEIGHT_MAX,
            None => HEIGHT_MIN + HEIGHT_PER_SERIES * panel.series.len().saturating_sub(4) as f64,
        };
        let height = height.min(HEIGHT_MAX);
        let map = panel.map();
        let (map_x, map_y) = (map.map(|heat| heat.x), map.map(|heat| heat.y));
        let x_fits = |ruler: &Ruler| furniture::x_labels_fit(ruler, PLOT_WIDTH);
        let y_fits = |ruler: &Ruler| y_labels_fit(ruler, height);
        let x = fit(&panel.x, xs(panel), map_x, map.is_some() || panel.stacked, x_fits);
        let y = fit(&panel.y, areas::ys(panel), map_y, map.is_some(), y_fits);
        Fitted { panel, x, y, height }
    }

    /// The room that labels need left and right of the plot area.
    pub fn sides(&self) -> (f64, f64) {
        let labels = furniture::widest(self.y.ticks.iter().map(|tick| tick.label.as_str())) + 8.0;
        let (left, right) = furniture::overhang(&self.x, PLOT_WIDTH);
        let scale = self.panel.map().map_or(0.0, map::overhang);
        (labels.max(left), right.max(scale))
    }

    /// From the upper edge of the heading to the lower edge of the x axis' title or the note.
    pub fn height(&self) -> f64 {
        self.head() + self.height + self.depth()
    }

    /// The panel with its upper edge at `top` and its plot area right of `left`.
    pub fn draw(&self, (left, top): Place, styles: &BTreeMap<Key<'_>, Style>) -> Item {
        let placed = Placed { fitted: self, panel: self.panel, left, top: top + self.head() };
        let items = placed.items(styles);
        Item::Group(Group { class: "panel", tip: self.panel.caption(), items })
    }

    /// What lies above the plot area: the heading, and the scale of a map.
    fn head(&self) -> f64 {
        if self.panel.map().is_some() { HEAD + map::SCALE_HEIGHT } else { HEAD }
    }

    /// What lies below the plot area: tick labels, the label of the axis, the note on points left out.
    fn depth(&self) -> f64 {
        if self.panel.left_out() > 0 { 64.0 } else { 44.0 }
    }
}

/// Everything that the x axis must show, but for a map.
fn xs(panel: &Panel) -> impl Iterator<Item = f64> {
    let ends = panel.series.iter().filter_map(|series| series.until);
    panel.all_shown().map(|point| point.0).chain(ends)
}

fn fit(
    axis: &Axis,
    data: impl Iterator<Item = f64>,
    map: Option<(f64, f64)>,
    tight: bool,
    fits: impl Fn(&Ruler) -> bool,
) -> Ruler {
    let extent = axis.extent(data.chain(map.into_iter().flat_map(|(lo, hi)| [lo, hi])));
    if tight || axis.tight { Ruler::tight(axis, extent, fits) } else { Ruler::fit(axis, extent, fits) }
}

impl Placed<'_> {
    fn right(&self) -> f64 {
        self.left + PLOT_WIDTH
    }

    fn bottom(&self) -> f64 {
        self.top + self.fitted.height
    }

    fn place(&self, (x, y): (f64, f64)) -> Place {
        // On a log axis, zero lies infinitely far down.
        let up = self.fitted.y.place(y).clamp(0.0, 1.0);
        (self.left + self.fitted.x.place(x) * PLOT_WIDTH, self.bottom() - up * self.fitted.height)
    }

    /// A map covers the gridlines, and so do areas; the frame lies over them.
    fn items(&self, styles: &BTreeMap<Key<'_>, Style>) -> Vec<Item> {
        let mut items = vec![self.heading()];
        items.extend(self.x_ticks());
        items.extend(self.y_ticks());
        items.extend(self.map());
        items.extend(self.areas(styles));
        let corners = [(self.left, self.top), (self.left, self.bottom()), (self.right(), self.bottom())];
        items.push(Item::Shape(Shape::line("frame", &corners, Stroke::solid(FRAME, 1.0))));
        items.push(furniture::x_title(&self.panel.x, (self.left, self.bottom()), PLOT_WIDTH));
        let lines = self.panel.series.iter().filter(|series| !self.panel.is_area(series));
        items.extend(lines.map(|series| self.curve(series, &styles[&series.key()])));
        items.extend(self.columns());
        items.extend(self.notes());
        items
    }

    /// What the y axis shows. It stands over the axis, upright, to be read without turning the head.
    fn heading(&self) -> Item {
        let width = if self.panel.map().is_some() { map::HEADING_WIDTH } else { PLOT_WIDTH };
        furniture::heading(&self.panel.y, (self.left, self.top - 10.0), width)
    }

    fn x_ticks(&self) -> Vec<Item> {
        let corner = (self.left, self.bottom());
        furniture::x_ticks(&self.fitted.x, corner, (PLOT_WIDTH, self.fitted.height))
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

    /// What is missing from the panel, if anything is.
    fn notes(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let middle = (self.left + self.right()) / 2.0;
        if self.panel.map().is_none() && self.panel.all_shown().next().is_none() {
            let at = (middle, (self.top + self.bottom()) / 2.0);
            items.push(label("note", at, Anchor::Middle, HEADING, "No points to draw".to_owned()));
        }
        if let Some(note) = left_out(self.panel) {
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
    let below = if panel.stacked { ", or below zero" } else { "" };
    Some(format!("{points} not shown: not a finite number, or not above zero on a log axis{below}"))
}

fn y_labels_fit(ruler: &Ruler, height: f64) -> bool {
    let apart = |a: f64, b: f64| (ruler.place(b) - ruler.place(a)) * height;
    ruler.ticks.windows(2).all(|pair| apart(pair[0].value, pair[1].value) >= Y_SPACING)
}

/// The value that areas stand on.
fn ground(axis: &Axis) -> f64 {
    match axis.scale {
        Scale::Linear => 0.0,
        // Anything below the axis is clamped to its lower end.
        Scale::Log => f64::MIN_POSITIVE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Series;
    use crate::unit::Unit;

    #[test]
    fn a_tight_axis_ends_where_the_data_do() {
        let end = |x: Axis| {
            let panel = Panel::new(x, Axis::new("y", Unit::Ratio)).series(Series::new("a", [(0.0, 0.5)]));
            Fitted::new(&panel).x.place(331.0)
        };
        let time = || Axis::new("Time", Unit::Seconds).covering(0.0, 331.0);
        assert!(end(time()) < 1.0);
        assert_eq!(end(time().tight()), 1.0);
    }
}
