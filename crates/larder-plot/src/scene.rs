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

    /// A filled rectangle.
    pub fn rect(class: &'static str, (x, y): Place, (width, height): (f64, f64), fill: Colour) -> Self {
        let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)];
        Shape { class, outline: polygon(&corners), fill: Some(fill), stroke: None }
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
                    Item::Shape(_) => {}
                }
            }
        }
        let mut out = Vec::new();
        collect(&self.items, &mut out);
        out
    }
}
