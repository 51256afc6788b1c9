//! What is to be drawn: charts and their panels.

use std::collections::BTreeSet;

use crate::axis::Axis;
use crate::bars::Bars;
use crate::heat::Heat;
use crate::series::Series;

/// One point of a curve: (x, y).
pub type Point = (f64, f64);

/// A picture: a title and panels above one another, with one legend for all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) parts: Vec<Part>,
}

/// What stands under the title of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Panel(Panel),
    Bars(Bars),
}

/// One pair of axes and what lies between them: curves, areas on one another, a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) stacked: bool,
    pub(crate) heat: Option<Heat>,
}

/// Name and variant of a series.
pub(crate) type Key<'a> = (&'a str, &'a str);

impl Chart {
    /// A chart without panels yet.
    pub fn new(title: impl Into<String>) -> Self {
        Chart { title: title.into(), subtitle: String::new(), parts: Vec::new() }
    }

    /// A line under the title: the trace, the block size, what else the reader must know.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Adds a panel below those there are.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.parts.push(Part::Panel(panel));
        self
    }

    /// Adds bars below what there is.
    pub fn bars(mut self, bars: Bars) -> Self {
        self.parts.push(Part::Bars(bars));
        self
    }

    pub(crate) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.parts.iter().filter_map(|part| match part {
            Part::Panel(panel) => Some(panel),
            Part::Bars(_) => None,
        })
    }

    /// The different series of all panels, in the order of their first appearance.
    pub(crate) fn keys(&self) -> Vec<Key<'_>> {
        let mut seen = BTreeSet::new();
        let all = self.panels().flat_map(|panel| &panel.series).map(Series::key);
        all.filter(|&key| seen.insert(key)).collect()
    }

    /// The series that are an area in some panel.
    pub(crate) fn areas(&self) -> BTreeSet<Key<'_>> {
        self.drawn(|panel, series| panel.is_area(series))
    }

    /// The series that are a line in some panel.
    pub(crate) fn lines(&self) -> BTreeSet<Key<'_>> {
        self.drawn(|panel, series| !panel.is_area(series))
    }

    fn drawn(&self, as_wanted: impl Fn(&Panel, &Series) -> bool) -> BTreeSet<Key<'_>> {
        let mut keys = BTreeSet::new();
        for panel in self.panels() {
            keys.extend(panel.series.iter().filter(|series| as_wanted(panel, series)).map(Series::key));
        }
        keys
    }
}

impl Part {
    /// What the part shows, in a few words.
    pub(crate) fn caption(&self) -> String {
        match self {
            Part::Panel(panel) => panel.caption(),
            Part::Bars(bars) => bars.caption(),
        }
    }
}

impl Panel {
    /// A panel without curves yet.
    pub fn new(x: Axis, y: Axis) -> Self {
        Panel { x, y, series: Vec::new(), stacked: false, heat: None }
    }

    /// Adds a curve.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Puts the curves on one another as areas, the first on top, as in the legend: shares of a whole over time, say. The series
    /// should have the same x; one that lacks an x counts as zero there. If one of them is drawn in steps, all are.
    pub fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    /// Lays a map under the curves, in place of the one there is.
    pub fn heat(mut self, heat: Heat) -> Self {
        self.heat = Some(heat);
        self
    }

    /// What the panel shows: "Hit ratio over cache size".
    pub(crate) fn caption(&self) -> String {
        let (x, y) = (inside_a_line(&self.x.title()), self.y.title());
        match &self.heat {
            None => format!("{y} over {x}"),
            Some(heat) => format!("{} by {} and {x}", heat.label, inside_a_line(&y)),
        }
    }

    /// Whether a series is an area here, and so stands on zero.
    pub(crate) fn is_area(&self, series: &Series) -> bool {
        self.stacked || series.filled
    }

    /// Whether a point of a series has a place in this panel. An area of no height has one on a log axis too.
    fn takes(&self, series: &Series, (x, y): Point) -> bool {
        let flat = y == 0.0 && self.is_area(series);
        self.x.takes(x) && (self.y.takes(y) || flat) && (y >= 0.0 || !self.stacked)
    }

    /// The map, if there is one with something in it and the axes can show where it lies.
    pub(crate) fn map(&self) -> Option<&Heat> {
        let has_place = |heat: &&Heat| {
            let (x, y) = (heat.x, heat.y);
            self.x.takes(x.0) && self.x.takes(x.1) && self.y.takes(y.0) && self.y.takes(y.1)
        };
        self.heat.as_ref().filter(has_place).filter(|heat| heat.extent().is_some())
    }

    /// The points of a series that have a place in this panel.
    pub(crate) fn shown<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = Point> + 'a {
        series.points.iter().copied().filter(|&point| self.takes(series, point))
    }

    /// How many points have no place in this panel.
    pub(crate) fn left_out(&self) -> usize {
        let left_out = |series: &Series| series.points.len() - self.shown(series).count();
        self.series.iter().map(left_out).sum()
    }

    /// The points of all series that have a place.
    pub(crate) fn all_shown(&self) -> impl Iterator<Item = Point> {
        self.series.iter().flat_map(|series| self.shown(series))
    }

    /// The different x of all points that have a place, in order.
    pub(crate) fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self.all_shown().map(|point| point.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// The y of a series at each of the `xs`, none where it has no point. Of several points at one x, the last counts.
    pub(crate) fn ys(&self, series: &Series, xs: &[f64]) -> Vec<Option<f64>> {
        let mut points = self.shown(series).peekable();
        let mut at = |&x: &f64| {
            let mut y = None;
            while let Some(point) = points.next_if(|point| point.0 == x) {
                y = Some(point.1);
            }
            y
        };
        xs.iter().map(&mut at).collect()
    }
}

/// A title as it is written inside a line: without its capital, unless the word has more of them.
pub(crate) fn inside_a_line(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        _ => title.to_owned(),
    }
}

/// How a series is called in the legend: "LRU", or "LRU, wb".
pub(crate) fn label((name, variant): Key<'_>) -> String {
    if variant.is_empty() { name.to_owned() } else { format!("{name}, {variant}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;

    fn panel() -> Panel {
        Panel::new(Axis::new("x", Unit::Bytes).log(), Axis::new("y", Unit::Ratio))
    }

    #[test]
    fn captions_keep_capitals_that_matter() {
        let over = |label: &str| Panel { x: Axis::new(label, Unit::Bytes), ..panel() }.caption();
        assert_eq!(over("Cache size"), "y over cache size");
        assert_eq!(over("SSD size"), "y over SSD size");
        assert_eq!(over("x"), "y over x");
    }

    #[test]
    fn points_without_a_place_are_counted_not_shown() {
        let panel =
            panel().series(Series::new("a", [(0.0, 0.5), (1.0, f64::NAN), (2.0, 0.5), (f64::INFINITY, 0.5)]));
        assert_eq!(panel.all_shown().collect::<Vec<_>>(), [(2.0, 0.5)]);
        assert_eq!(panel.left_out(), 3);
    }

    #[test]
    fn a_series_in_two_panels_is_one_key() {
        let chart = Chart::new("t")
            .panel(panel().series(Series::new("b", [])).series(Series::new("a", []).variant("wb")))
            .panel(panel().series(Series::new("a", []).variant("wt")).series(Series::new("b", [])));
        assert_eq!(chart.keys(), [("b", ""), ("a", "wb"), ("a", "wt")]);
        assert_eq!(chart.keys().into_iter().map(label).collect::<Vec<_>>(), ["b", "a, wb", "a, wt"]);
    }
}
