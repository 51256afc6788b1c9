//! What is to be drawn: charts, panels, series.

use std::collections::BTreeSet;

use crate::axis::Axis;

/// One point of a curve: (x, y).
pub type Point = (f64, f64);

/// A picture: a title and panels above one another, with one legend for all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) panels: Vec<Panel>,
}

/// One pair of axes and the curves between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// One curve. It is known by its name and its variant: the same pair has the same style in all panels of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) variant: String,
    pub(crate) points: Vec<Point>,
}

/// Name and variant of a series.
pub(crate) type Key<'a> = (&'a str, &'a str);

impl Chart {
    /// A chart without panels yet.
    pub fn new(title: impl Into<String>) -> Self {
        Chart { title: title.into(), subtitle: String::new(), panels: Vec::new() }
    }

    /// A line under the title: the trace, the block size, what else the reader must know.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Adds a panel below those there are.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The different series of all panels, in the order of their first appearance.
    pub(crate) fn keys(&self) -> Vec<Key<'_>> {
        let mut seen = BTreeSet::new();
        let all = self.panels.iter().flat_map(|panel| &panel.series).map(Series::key);
        all.filter(|&key| seen.insert(key)).collect()
    }
}

impl Panel {
    /// A panel without curves yet.
    pub fn new(x: Axis, y: Axis) -> Self {
        Panel { x, y, series: Vec::new() }
    }

    /// Adds a curve.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// What the panel shows: "Hit ratio over cache size".
    pub(crate) fn caption(&self) -> String {
        format!("{} over {}", self.y.title(), inside_a_line(&self.x.title()))
    }

    /// Whether a point has a place in this panel.
    pub(crate) fn takes(&self, &(x, y): &Point) -> bool {
        self.x.takes(x) && self.y.takes(y)
    }

    /// The points of a series that have a place in this panel.
    pub(crate) fn shown<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = Point> + 'a {
        series.points.iter().copied().filter(|point| self.takes(point))
    }

    /// How many points have no place in this panel.
    pub(crate) fn left_out(&self) -> usize {
        self.series.iter().flat_map(|series| &series.points).filter(|point| !self.takes(point)).count()
    }

    /// The points of all series that have a place.
    pub(crate) fn all_shown(&self) -> impl Iterator<Item = Point> {
        self.series.iter().flat_map(|series| self.shown(series))
    }
}

impl Series {
    /// A curve through `points`, which are put in the order of their x. One point alone is drawn as a marker. A point that has no
    /// place (not finite, or not above zero on a log axis) is left out, and the picture says how many were.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let mut points: Vec<Point> = points.into_iter().collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series { name: name.into(), variant: String::new(), points }
    }

    /// Makes this one of several variants of what the name says: "LRU" with write policy "wb", say. Variants of one name share
    /// colour and marker, and the same variant has the same dashes under all names.
    pub fn variant(mut self, variant: impl Into<String>) -> Self {
        self.variant = variant.into();
        self
    }

    pub(crate) fn key(&self) -> Key<'_> {
        (&self.name, &self.variant)
    }

    pub(crate) fn label(&self) -> String {
        label(self.key())
    }
}

/// A title as it is written inside a line: without its capital, unless the word has more of them.
fn inside_a_line(title: &str) -> String {
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
    fn points_are_ordered_by_x() {
        let series = Series::new("a", [(3.0, 0.3), (1.0, 0.1), (2.0, 0.2)]);
        assert_eq!(series.points, [(1.0, 0.1), (2.0, 0.2), (3.0, 0.3)]);
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
