//! The writer of pages: sections, their numbers, and the table of contents.

use std::fmt::{self, Write as _};
use std::path::Path;

use super::{Block, Page, Section};
use crate::html;
use crate::numbers::{self, Numbers};
use crate::save::{self, Error};
use crate::svg::Escaped;

/// Headings go no deeper.
const DEEPEST: usize = 4;

impl Page {
    /// The page as HTML: one file, without scripts, that refers to nothing outside itself and prints on A4.
    pub fn html(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("writing to a string cannot fail");
        out
    }

    /// Writes the page to a file, whatever its name. An existing file is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] when the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        save::write(path.as_ref(), self.html().as_bytes())
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        html::begin(&self.title, "", out)?;
        self.lead.iter().try_for_each(|block| block.write(out))?;
        if self.sections.len() > 1 {
            out.write_str("<nav aria-label=\"Contents\">\n")?;
            write_contents(&self.sections, "s", out)?;
            out.write_str("</nav>\n")?;
        }
        write_sections(&self.sections, "s", 2, out)?;
        html::end(out)
    }
}

/// The sections' names by their place: the second section of the first one is `s1-2`.
fn ids<'a>(sections: &'a [Section], parent: &str) -> impl Iterator<Item = (String, &'a Section)> {
    let prefix = if parent == "s" { "s".to_owned() } else { format!("{parent}-") };
    sections.iter().enumerate().map(move |(at, section)| (format!("{prefix}{}", at + 1), section))
}

fn write_contents(sections: &[Section], parent: &str, out: &mut String) -> fmt::Result {
    out.write_str("<ul>\n")?;
    for (id, section) in ids(sections, parent) {
        write!(out, "<li><a href=\"#{id}\">{}</a>", Escaped(&section.heading))?;
        if !section.sections.is_empty() {
            out.write_char('\n')?;
            write_contents(&section.sections, &id, out)?;
        }
        out.write_str("</li>\n")?;
    }
    out.write_str("</ul>\n")
}

fn write_sections(sections: &[Section], parent: &str, level: usize, out: &mut String) -> fmt::Result {
    for (id, section) in ids(sections, parent) {
        let level = level.min(DEEPEST);
        writeln!(out, "<section aria-labelledby=\"{id}\">")?;
        writeln!(out, "<h{level} id=\"{id}\">{}</h{level}>", Escaped(&section.heading))?;
        section.blocks.iter().try_for_each(|block| block.write(out))?;
        write_sections(&section.sections, &id, level + 1, out)?;
        out.write_str("</section>\n")?;
    }
    Ok(())
}

impl Block {
    fn write(&self, out: &mut String) -> fmt::Result {
        match self {
            Block::Paragraph(text) => writeln!(out, "<p>{}</p>", Escaped(text)),
            Block::List(items) => {
                out.write_str("<ul>\n")?;
                items.iter().try_for_each(|item| writeln!(out, "<li>{}</li>", Escaped(item)))?;
                out.write_str("</ul>\n")
            }
            Block::Table(table) => table.write(out),
            Block::Chart(chart) => {
                html::write_figure(chart, out)?;
                write_folded(&chart.parts.iter().map(numbers::of).collect::<Vec<_>>(), out)
            }
        }
    }
}

/// Numbers that the reader may unfold.
fn write_folded(numbers: &[Numbers], out: &mut String) -> fmt::Result {
    if numbers.iter().all(Numbers::is_empty) {
        return Ok(());
    }
    out.write_str("<details>\n<summary>Numbers</summary>\n")?;
    numbers.iter().try_for_each(|numbers| html::write_numbers(numbers, out))?;
    out.write_str("</details>\n")
}
