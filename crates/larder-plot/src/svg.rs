//! The SVG writer: a scene as an SVG element, with a tooltip on each point.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::chart::Chart;
use crate::layout;
use crate::scene::{Anchor, Colour, Group, Item, Mosaic, Place, Run, Scene, Segment, Shape, Text};
use crate::text::Weight;
use crate::unit::trim_zeros;

/// The font that the layout measured, then such as are no wider than it allows for.
const FONTS: &str =
    "'Noto Sans','Open Sans','Helvetica Neue',Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif";

impl Chart {
    /// The chart as an SVG document: one `<svg>` element, which an HTML page can hold too. It has a white background, refers to
    /// nothing outside itself, and scales without loss.
    pub fn svg(&self) -> String {
        let mut out = String::new();
        write(&layout::scene(self), &mut out).expect("writing to a string cannot fail");
        out
    }
}

fn write(scene: &Scene, out: &mut String) -> fmt::Result {
    let (width, height) = (Number(scene.width), Number(scene.height));
    write!(out, r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" "#)?;
    write!(out, r#"viewBox="0 0 {width} {height}" role="img" aria-label="{}" "#, Escaped(&scene.summary))?;
    writeln!(out, r#"font-family="{FONTS}">"#)?;
    scene.items.iter().try_for_each(|item| item.write(out))?;
    writeln!(out, "</svg>")
}

impl Item {
    fn write(&self, out: &mut String) -> fmt::Result {
        match self {
            Item::Group(group) => group.write(out),
            Item::Shape(shape) => shape.write(out),
            Item::Text(text) => text.write(out),
            Item::Mosaic(mosaic) => mosaic.write(out),
        }
    }
}

impl Group {
    fn write(&self, out: &mut String) -> fmt::Result {
        write!(out, r#"<g class="{}"><title>{}</title>"#, self.class, Escaped(&self.tip))?;
        self.items.iter().try_for_each(|item| item.write(out))?;
        writeln!(out, "</g>")
    }
}

impl Shape {
    fn write(&self, out: &mut String) -> fmt::Result {
        write!(out, r#"<path class="{}" d=""#, self.class)?;
        self.outline.iter().try_for_each(|segment| segment.write(out))?;
        match self.fill {
            // Without an ink, only the pointer finds it.
            None if self.stroke.is_none() => write!(out, r#"" fill="none" pointer-events="all""#)?,
            None => write!(out, r#"" fill="none""#)?,
            Some(colour) => write!(out, r#"" fill="{colour}""#)?,
        }
        if let Some(stroke) = &self.stroke {
            write!(out, r#" stroke="{}" stroke-width="{}""#, stroke.colour, Number(stroke.width))?;
            write!(out, r#" stroke-linejoin="round""#)?;
            if !stroke.dash.is_empty() {
                let lengths: Vec<String> = stroke.dash.iter().map(f32::to_string).collect();
                write!(out, r#" stroke-dasharray="{}""#, lengths.join(" "))?;
            }
        }
        writeln!(out, "/>")
    }
}

impl Mosaic {
    /// A path for each colour, its runs as strokes one cell wide: a few bytes each.
    fn write(&self, out: &mut String) -> fmt::Result {
        let mut paths: BTreeMap<Colour, Vec<Run>> = BTreeMap::new();
        for run in self.runs() {
            paths.entry(run.colour).or_default().push(run);
        }
        let scale = (self.size.0 / self.columns() as f64, self.size.1 / self.rows.len() as f64);
        let at = (self.at.0, self.at.1 + scale.1 / 2.0);
        // Cells overlap by a hair: renderers that smooth edges would let the paper shine through the seams.
        write!(out, r#"<g class="{}" transform="translate({}) "#, self.class, Pair(at))?;
        writeln!(
            out,
            r#"scale({:.5} {:.5})" fill="none" stroke-width="1.04" shape-rendering="crispEdges">"#,
            scale.0, scale.1
        )?;
        for (colour, runs) in paths {
            out.write_str(r#"<path d=""#)?;
            runs.iter().try_for_each(|run| write!(out, "M{} {}h{}", run.column, run.row, run.length))?;
            writeln!(out, r#"" stroke="{colour}"/>"#)?;
        }
        writeln!(out, "</g>")
    }
}

impl Segment {
    fn write(&self, out: &mut String) -> fmt::Result {
        match self {
            Segment::Move(to) => write!(out, "M{}", Pair(*to)),
            Segment::Line(to) => write!(out, "L{}", Pair(*to)),
            Segment::Cubic(a, b, to) => write!(out, "C{} {} {}", Pair(*a), Pair(*b), Pair(*to)),
            Segment::Close => out.write_char('Z'),
        }
    }
}

impl Text {
    fn write(&self, out: &mut String) -> fmt::Result {
        let anchor = match self.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (Number(self.at.0), Number(self.at.1));
        write!(out, r#"<text class="{}" x="{x}" y="{y}" text-anchor="{anchor}" "#, self.class)?;
        write!(out, r#"font-size="{}" fill="{}""#, Number(self.size), self.colour)?;
        if self.weight == Weight::Bold {
            write!(out, r#" font-weight="bold""#)?;
        }
        writeln!(out, ">{}</text>", Escaped(&self.text))
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// A length, to a hundredth of a pixel.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(trim_zeros(&format!("{:.2}", self.0)))
    }
}

struct Pair(Place);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Number(self.0.0), Number(self.0.1))
    }
}

/// Text as content or attribute of XML and HTML. Characters that XML cannot hold at all become U+FFFD.
pub(crate) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' | '\r' => f.write_char(' ')?,
                '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                    f.write_char('\u{fffd}')?
                }
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(0.0, "0"), (-0.001, "0"), (1.5, "1.5"), (100.0, "100"), (2.345678, "2.35")] {
            assert_eq!(Number(value).to_string(), text);
        }
    }

    #[test]
    fn an_outline_becomes_a_path() {
        let shape = Shape::rect("paper", (1.0, 2.0), (3.0, 4.5), Colour(255, 0, 16));
        let mut out = String::new();
        shape.write(&mut out).expect("a string");
        assert_eq!(out, "<path class=\"paper\" d=\"M1 2L4 2L4 6.5L1 6.5Z\" fill=\"#ff0010\"/>\n");
    }

    #[test]
    fn a_mosaic_is_a_path_for_each_colour() {
        let (light, dark) = (Some(Colour(255, 255, 0)), Some(Colour(0, 0, 16)));
        let rows = vec![vec![light, light, None], vec![dark, light, light]];
        let mosaic = Mosaic { class: "cells", at: (10.0, 20.0), size: (30.0, 8.0), rows };
        let mut out = String::new();
        mosaic.write(&mut out).expect("a string");
        let paths: Vec<&str> = out.lines().collect();
        assert!(paths[0].contains(r#"transform="translate(10 22) scale(10.00000 4.00000)""#), "{}", paths[0]);
        assert_eq!(
            paths[1..],
            [
                r##"<path d="M0 1h1" stroke="#000010"/>"##,
                r##"<path d="M0 0h2M1 1h2" stroke="#ffff00"/>"##,
                "</g>"
            ]
        );
    }

    #[test]
    fn what_is_not_seen_is_found_by_the_pointer() {
        let mut out = String::new();
        Shape::hit((1.0, 2.0), (3.0, 4.0)).write(&mut out).expect("a string");
        assert!(out.contains(r#"fill="none" pointer-events="all"/>"#), "{out}");
    }

    proptest::proptest! {
        /// Whatever stands in a name reads back from the XML, but for blanks and characters that XML has no way to hold.
        #[test]
        fn escaped_text_reads_back(text in "(\\PC|[\0-\u{1f}<>&\"'\u{fffe}]){0,40}") {
            let xml = format!("<a b=\"{0}\">{0}</a>", Escaped(&text));
            let document = roxmltree::Document::parse(&xml).expect("well-formed");
            let kept = |text: &str| text.replace(|c: char| c.is_control() || ('\u{fffd}'..='\u{ffff}').contains(&c), "?");
            let plain = kept(&text.replace(['\t', '\n', '\r'], " "));
            let root = document.root_element();
            proptest::prop_assert_eq!(kept(root.text().unwrap_or("")), &*plain);
            proptest::prop_assert_eq!(kept(root.attribute("b").unwrap_or("")), &*plain);
        }
    }
}
