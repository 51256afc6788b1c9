//! A scene: shapes and texts at fixed places, which the SVG writer and the PNG painter both draw.
//!
//! Lengths are in CSS pixels, y grows downwards, and later items lie over earlier ones.

use crate::text::Weight;

/// A colour, opaque: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Colour(pub u8, pub u8, pub u8);

/// A place: (x, y).
pub(crate) type Place = (f64, f64);

/// All that is drawn.
#[derive(Debug)]
pub(crate) struct Scene {
    pub width: f64,
    pub height: f64,
    /// What the picture shows, in one line, for readers that cannot see it.
    pub summary: String,
    pub items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) enum Item {
    Group(Group),
    Shape(Shape),
    Text(Text),
    Mosaic(Mosaic),
}

/// Items that belong together; `tip` is what they stand for, as a tooltip.
#[derive(Debug)]
pub(crate) struct Group {
    pub class: &'static str,
    pub tip: String,
    pub items: Vec<Item>,
}

/// A line or an area.
#[derive(Debug)]
pub(crate) struct Shape {
    pub class: &'static str,
    pub outline: Vec<Segment>,
    pub fill: Option<Colour>,
    pub stroke: Option<Stroke>,
}

/// A rectangle of equal cells; a cell without a colour shows what lies under it.
#[derive(Debug)]
pub(crate) struct Mosaic {
    pub class: &'static str,
    /// The upper left corner.
    pub at: Place,
    pub size: (f64, f64),
    /// From the top; all of one length.
    pub rows: Vec<Vec<Option<Colour>>>,
}

/// Neighbouring cells of one colour in a row of a mosaic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub row: usize,
    pub column: usize,
    pub length: usize,
    pub colour: Colour,
}

/// One step of an outline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Segment {
    Move(Place),
    Line(Place),
    Cubic(Place, Place, Place),
    Close,
}

/// How a line is drawn. `dash` holds the lengths of strokes and gaps in turn; empty for a solid line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub dash: &'static [f32],
}

/// One line of text.
#[derive(Debug)]
pub(crate) struct Text {
    pub class: &'static str,
    /// Where the baseline starts, has its middle or ends, as `anchor` says.
    pub at: Place,
    pub anchor: Anchor,
    pub size: f64,
    pub weight: Weight,
    pub colour: Colour,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Stroke {
    pub fn solid(colour: Colour, width: f64) -> Self {
        Stroke { colour, width, dash: &[] }
    }
}

impl Shape {
    /// An open line through `places`.
    pub fn line(class: &'static str, places: &[Place], stroke: Stroke) -> Self {
        let outline = match places.split_first() {
            None => Vec::new(),
            Some((&first, rest)) => {
                std::iter::once(Segment::Move(first)).chain(rest.iter().copied().map(Segment::Line)).collect()
            }
        };
        Shape { class, outline, fill: None, stroke: Some(stroke) }
    }

    /// A rectangle that is not seen, but has a tooltip of its own.
    pub fn hit(at: Place, size: (f64, f64)) -> Self {
        Shape { fill: None, ..Shape::rect("hit", at, size, Colour(0, 0, 0)) }
    }

    /// A filled rectangle.
    pub fn rect(class: &'static str, (x, y): Place, (width, height): (f64, f64), fill: Colour) -> Self {
        let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)];
        Shape { class, outline: polygon(&corners), fill: Some(fill), stroke: None }
    }
}

impl Mosaic {
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The coloured cells, row by row, as long as their runs are.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (row, cells) in self.rows.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let Some(colour) = *cell else { continue };
                match runs.last_mut() {
                    Some(run) if (run.row, run.column + run.length, run.colour) == (row, column, colour) => {
                        run.length += 1;
                    }
                    _ => runs.push(Run { row, column, length: 1, colour }),
                }
            }
        }
        runs
    }
}

impl Text {
    /// The box that the text takes: left, top, right, bottom.
    #[cfg(test)]
    pub fn bounds(&self) -> [f64; 4] {
        let width = crate::text::width(&self.text, self.size, self.weight);
        let left = self.at.0 - self.anchor.shift(width);
        [left, self.at.1 - 0.8 * self.size, left + width, self.at.1 + 0.25 * self.size]
    }
}

impl Anchor {
    /// How far left of its place a text of this width begins.
    pub fn shift(self, width: f64) -> f64 {
        match self {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        }
    }
}

/// A closed outline with these corners.
pub(crate) fn polygon(corners: &[Place]) -> Vec<Segment> {
    let mut outline = Shape::line("", corners, Stroke::solid(Colour(0, 0, 0), 0.0)).outline;
    outline.push(Segment::Close);
    outline
}

impl Scene {
    /// All texts, those in groups too.
    #[cfg(test)]
    pub fn texts(&self) -> Vec<&Text> {
        fn collect<'a>(items: &'a [Item], out: &mut Vec<&'a Text>) {
            for item in items {
                match item {
                    Item::Group(group) => collect(&group.items, out),
                    Item::Text(text) => out.push(text),
                    Item::Shape(_) | Item::Mosaic(_) => {}
                }
            }
        }
        let mut out = Vec::new();
        collect(&self.items, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell() -> impl Strategy<Value = Option<Colour>> {
        prop_oneof![Just(None), (0u8..3).prop_map(|shade| Some(Colour(shade, shade, shade)))]
    }

    proptest! {
        /// Laid out again, the runs give the cells; and no run could be longer.
        #[test]
        fn runs_are_the_cells(rows in (1usize..6).prop_flat_map(|columns| {
            prop::collection::vec(prop::collection::vec(cell(), columns), 1..6)
        })) {
            let mosaic = Mosaic { class: "", at: (0.0, 0.0), size: (1.0, 1.0), rows };
            let mut again = vec![vec![None; mosaic.columns()]; mosaic.rows.len()];
            let runs = mosaic.runs();
            for run in &runs {
                again[run.row][run.column..run.column + run.length].fill(Some(run.colour));
            }
            prop_assert_eq!(&again, &mosaic.rows);
            for pair in runs.windows(2) {
                let touching = pair[0].row == pair[1].row && pair[0].column + pair[0].length == pair[1].column;
                prop_assert!(!touching || pair[0].colour != pair[1].colour);
            }
        }
    }
}
