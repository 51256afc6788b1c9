//! The PNG painter: a scene as pixels.

use tiny_skia::{FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, StrokeDash, Transform};
use ttf_parser::OutlineBuilder;

use crate::chart::Chart;
use crate::layout;
use crate::save::Error;
use crate::scene::{Colour, Item, Mosaic, Scene, Segment, Shape, Stroke, Text};
use crate::text;

/// Pixels of the PNG per CSS pixel: sharp on dense screens and on paper.
const DENSITY: f32 = 2.0;
/// A picture of more pixels is refused: at 4 bytes each, it would take 256 MiB to paint.
const PIXELS_MAX: u64 = 64 << 20;

impl Chart {
    /// The chart as a PNG image, at two pixels for each CSS pixel of the SVG, on white.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] when thousands of series make the legend too long to paint.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        let scene = layout::scene(self);
        let mut canvas = blank(&scene)?;
        paint(&scene.items, &mut canvas);
        canvas.encode_png().map_err(|source| Error::Encode(Box::new(source)))
    }
}

fn blank(scene: &Scene) -> Result<Pixmap, Error> {
    let side = |length: f64| (length * f64::from(DENSITY)) as u32;
    let (width, height) = (side(scene.width), side(scene.height));
    let too_large = Error::TooLarge { width, height };
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(too_large);
    }
    Pixmap::new(width, height).ok_or(too_large)
}

fn paint(items: &[Item], canvas: &mut Pixmap) {
    for item in items {
        match item {
            Item::Group(group) => paint(&group.items, canvas),
            Item::Shape(shape) => paint_shape(shape, canvas),
            Item::Text(text) => paint_text(text, canvas),
            Item::Mosaic(mosaic) => paint_mosaic(mosaic, canvas),
        }
    }
}

fn paint_shape(shape: &Shape, canvas: &mut Pixmap) {
    // A path of no length has nothing to paint.
    let Some(path) = path(&shape.outline) else { return };
    if let Some(colour) = shape.fill {
        canvas.fill_path(&path, &ink(colour), FillRule::Winding, zoom(), None);
    }
    if let Some(stroke) = &shape.stroke {
        canvas.stroke_path(&path, &ink(stroke.colour), &pen(stroke), zoom(), None);
    }
}

fn paint_text(text: &Text, canvas: &mut Pixmap) {
    let shift = text.anchor.shift(text::width(&text.text, text.size, text.weight));
    let scale = text::scale(text.size, text.weight) as f32;
    let mut pen = Pen { out: PathBuilder::new(), x: (text.at.0 - shift) as f32, y: text.at.1 as f32, scale };
    for (glyph, advance) in text::glyphs(&text.text, text.weight) {
        // Blanks have no outline.
        let _ = text::face(text.weight).outline_glyph(glyph, &mut pen);
        pen.x += f32::from(advance) * scale;
    }
    if let Some(path) = pen.out.finish() {
        canvas.fill_path(&path, &ink(text.colour), FillRule::Winding, zoom(), None);
    }
}

/// Cells end at whole pixels, so that neighbours leave no seam.
fn paint_mosaic(mosaic: &Mosaic, canvas: &mut Pixmap) {
    let edge = |from: f64, length: f64, at: usize, cells: usize| {
        ((from + length * at as f64 / cells as f64) * f64::from(DENSITY)).round() as f32
    };
    for run in mosaic.runs() {
        let x = |column| edge(mosaic.at.0, mosaic.size.0, column, mosaic.columns());
        let y = |row| edge(mosaic.at.1, mosaic.size.1, row, mosaic.rows.len());
        // A cell smaller than a pixel may have no area.
        let area = Rect::from_ltrb(x(run.column), y(run.row), x(run.column + run.length), y(run.row + 1));
        if let Some(area) = area {
            canvas.fill_rect(area, &ink(run.colour), Transform::identity(), None);
        }
    }
}

fn zoom() -> Transform {
    Transform::from_scale(DENSITY, DENSITY)
}

fn ink(Colour(red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn pen(stroke: &Stroke) -> tiny_skia::Stroke {
    tiny_skia::Stroke {
        width: stroke.width as f32,
        line_join: LineJoin::Round,
        dash: StrokeDash::new(stroke.dash.to_vec(), 0.0),
        ..tiny_skia::Stroke::default()
    }
}

fn path(outline: &[Segment]) -> Option<Path> {
    let mut out = PathBuilder::new();
    let at = |(x, y): (f64, f64)| (x as f32, y as f32);
    for &segment in outline {
        match segment {
            Segment::Move(to) => out.move_to(at(to).0, at(to).1),
            Segment::Line(to) => out.line_to(at(to).0, at(to).1),
            Segment::Cubic(a, b, to) => {
                out.cubic_to(at(a).0, at(a).1, at(b).0, at(b).1, at(to).0, at(to).1);
            }
            Segment::Close => out.close(),
        }
    }
    out.finish()
}

/// Puts the outlines of glyphs one after the other. In fonts, y grows upwards.
struct Pen {
    out: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.out.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.out.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.out.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.out.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.out.close();
    }
}

#[cfg(test)]
mod tests;
