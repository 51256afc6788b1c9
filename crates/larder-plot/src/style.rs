//! Styles: colour, marker and dash of each series.
//!
//! The colours are those of Okabe and Ito ("Color Universal Design", 2008) without the yellow, which is lost on white. The numbers
//! of colours, markers and dashes have no common divisor, so that counting through all three at once tells many series apart, and
//! neighbours differ in all three.

use std::collections::BTreeMap;

pub(crate) mod ramp;

use crate::chart::{Chart, Key};
use crate::scene::{Colour, Place, Segment, Shape, Stroke, polygon};

pub(crate) const INK: Colour = Colour(0x22, 0x22, 0x22);
pub(crate) const FAINT_INK: Colour = Colour(0x55, 0x55, 0x55);
pub(crate) const GRID: Colour = Colour(0xe4, 0xe4, 0xe4);
pub(crate) const FRAME: Colour = Colour(0x9a, 0x9a, 0x9a);
pub(crate) const PAPER: Colour = Colour(0xff, 0xff, 0xff);

/// Bars that need not be told apart.
pub(crate) const BAR: Colour = Colour(0x00, 0x72, 0xb2);

const COLOURS: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2), // blue
    Colour(0xd5, 0x5e, 0x00), // vermilion
    Colour(0x00, 0x9e, 0x73), // bluish green
    Colour(0x00, 0x00, 0x00), // black
    Colour(0xe6, 0x9f, 0x00), // orange
    Colour(0xcc, 0x79, 0xa7), // reddish purple
    Colour(0x56, 0xb4, 0xe9), // sky blue
];

const DASHES: [&[f32]; 5] = [&[], &[9.0, 4.0], &[2.5, 3.0], &[10.0, 3.0, 2.5, 3.0], &[5.0, 3.0]];

const MARKERS: [Marker; 8] = [
    Marker { form: Form::Circle, filled: true },
    Marker { form: Form::Square, filled: true },
    Marker { form: Form::Up, filled: true },
    Marker { form: Form::Diamond, filled: true },
    Marker { form: Form::Circle, filled: false },
    Marker { form: Form::Down, filled: false },
    Marker { form: Form::Square, filled: false },
    Marker { form: Form::Cross, filled: false },
];

/// How far a marker reaches from its middle, in pixels.
const REACH: f64 = 4.2;
const LINE_WIDTH: f64 = 1.8;

const OUTLINE_WIDTH: f64 = 1.2;
/// How far the paper beside an outline reaches, for it to be seen on dark areas.
const HALO_WIDTH: f64 = 3.0;

/// The look of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Style {
    colour: Colour,
    marker: Marker,
    dash: &'static [f32],
    /// What its area is filled with, if it is an area somewhere.
    shade: Option<Colour>,
    /// Whether it is a line somewhere.
    pub lined: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marker {
    form: Form,
    filled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Circle,
    Square,
    Up,
    Down,
    Diamond,
    Cross,
}

impl Style {
    fn nth(name: usize, dash: usize) -> Self {
        Style {
            colour: COLOURS[name % COLOURS.len()],
            marker: MARKERS[name % MARKERS.len()],
            dash: DASHES[dash % DASHES.len()],
            shade: None,
            lined: true,
        }
    }

    /// The curve through `places`.
    pub fn line(&self, places: &[Place]) -> Shape {
        Shape::line("line", places, Stroke { colour: self.colour, width: LINE_WIDTH, dash: self.dash })
    }

    /// The area with this outline, if the series is an area. A line of paper keeps it apart from its neighbours.
    pub fn area(&self, outline: Vec<Segment>) -> Option<Shape> {
        let fill = Some(self.shade?);
        Some(Shape { class: "area", outline, fill, stroke: Some(Stroke::solid(PAPER, 0.6)) })
    }

    /// The upper edge of an area that others may hide.
    pub fn outline(&self, places: &[Place]) -> [Shape; 2] {
        let ink = Stroke { colour: INK, width: OUTLINE_WIDTH, dash: self.dash };
        [Shape::line("halo", places, Stroke::solid(PAPER, HALO_WIDTH)), Shape::line("line", places, ink)]
    }

    /// The area as the legend shows it, if the series is one.
    pub fn swatch(&self, at: Place, size: (f64, f64)) -> Option<Shape> {
        let edge = Some(Stroke::solid(FAINT_INK, 0.8));
        self.shade.map(|shade| Shape { stroke: edge, ..Shape::rect("swatch", at, size, shade) })
    }

    /// The marker of one point.
    pub fn marker(&self, at: Place) -> Shape {
        let outline = self.marker.form.outline(at);
        let (fill, edge) = match self.marker {
            Marker { form: Form::Cross, .. } => (None, self.colour),
            // A white edge keeps a filled marker apart from the lines and markers it lies on.
            Marker { filled: true, .. } => (Some(self.colour), PAPER),
            Marker { filled: false, .. } => (Some(PAPER), self.colour),
        };
        let width = if self.marker.filled { 0.8 } else { LINE_WIDTH };
        Shape { class: "marker", outline, fill, stroke: Some(Stroke::solid(edge, width)) }
    }
}

impl Form {
    fn outline(self, (x, y): Place) -> Vec<Segment> {
        let r = REACH;
        match self {
            Form::Circle => circle((x, y), r * 0.95),
            Form::Square => {
                let r = r * 0.86;
                polygon(&[(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)])
            }
            Form::Up => polygon(&[(x, y - 1.15 * r), (x + r, y + 0.75 * r), (x - r, y + 0.75 * r)]),
            Form::Down => polygon(&[(x, y + 1.15 * r), (x + r, y - 0.75 * r), (x - r, y - 0.75 * r)]),
            Form::Diamond => {
                let r = r * 1.2;
                polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)])
            }
            Form::Cross => {
                let r = r * 0.8;
                let strokes = [[(x - r, y - r), (x + r, y + r)], [(x - r, y + r), (x + r, y - r)]];
                strokes.iter().flat_map(|&[from, to]| [Segment::Move(from), Segment::Line(to)]).collect()
            }
        }
    }
}

/// A circle of four cubic curves.
fn circle((x, y): Place, r: f64) -> Vec<Segment> {
    // The length of the handles with which a cubic is nearest to a quarter of a circle.
    let k = 0.5523 * r;
    vec![
        Segment::Move((x + r, y)),
        Segment::Cubic((x + r, y + k), (x + k, y + r), (x, y + r)),
        Segment::Cubic((x - k, y + r), (x - r, y + k), (x - r, y)),
        Segment::Cubic((x - r, y - k), (x - k, y - r), (x, y - r)),
        Segment::Cubic((x + k, y - r), (x + r, y - k), (x + r, y)),
        Segment::Close,
    ]
}

/// The styles of all series of a chart. Beyond 280 series, or 56 names where there are variants, styles come again. The shades of
/// areas run from light to dark in their order.
pub(crate) fn styles(chart: &Chart) -> BTreeMap<Key<'_>, Style> {
    let keys = chart.keys();
    let (lines, areas) = (chart.lines(), chart.areas());
    let shaded: Vec<Key<'_>> = keys.iter().copied().filter(|key| areas.contains(key)).collect();
    let (names, variants) = (numbered(keys.iter().map(|key| key.0)), numbered(keys.iter().map(|key| key.1)));
    let style = |&key: &Key<'_>| {
        let name = names[key.0];
        // Where there are variants, the dash tells them, and nothing else.
        let style = Style::nth(name, if variants.len() > 1 { variants[key.1] } else { name });
        let place = shaded.iter().position(|&area| area == key);
        let shade = place.map(|at| ramp::shade((at as f64 + 0.5) / shaded.len() as f64));
        Style { shade, lined: lines.contains(&key), ..style }
    };
    keys.iter().zip(keys.iter().map(style)).map(|(&key, style)| (key, style)).collect()
}

/// The different strings, numbered in the order of their first appearance.
fn numbered<'a>(strings: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut numbers = BTreeMap::new();
    for string in strings {
        let next = numbers.len();
        numbers.entry(string).or_insert(next);
    }
    numbers
}

#[cfg(test)]
mod tests;
