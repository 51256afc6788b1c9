//! The HTML writer: what all pages have in common, and the page of one chart: the picture and, below it, its numbers as tables.
//!
//! A page loads nothing: its content policy forbids it. A picture keeps its white paper on dark screens.

use std::fmt::{self, Write as _};

use crate::chart::Chart;
use crate::numbers::{self, Numbers};
use crate::page::Table;
use crate::svg::Escaped;

const HEAD: &str = include_str!("html/head.html");
const STYLE: &str = include_str!("html/style.css");
/// What a page that is one picture has otherwise.
const ALONE: &str = include_str!("html/alone.css");

impl Chart {
    /// The chart as a web page: the picture, and a table of its numbers for each panel. One file, without scripts, that refers to
    /// nothing outside itself; it follows the reader's choice of dark or light, and prints.
    pub fn html(&self) -> String {
        let mut out = String::new();
        self.write_page(&mut out).expect("writing to a string cannot fail");
        out
    }

    fn write_page(&self, out: &mut String) -> fmt::Result {
        begin(&self.title, ALONE, out)?;
        write_figure(self, out)?;
        self.parts.iter().try_for_each(|part| write_numbers(&numbers::of(part), out))?;
        end(out)
    }
}

/// Everything before the content. `style` comes after the style of all pages.
pub(crate) fn begin(title: &str, style: &str, out: &mut String) -> fmt::Result {
    let title = Escaped(title);
    write!(out, "{HEAD}<style>\n{STYLE}{style}</style>\n<title>{title}</title>\n</head>\n")?;
    write!(out, "<body>\n<main>\n<h1>{title}</h1>\n")
}

/// Everything after the content.
pub(crate) fn end(out: &mut String) -> fmt::Result {
    out.write_str("</main>\n</body>\n</html>\n")
}

/// The picture. The SVG holds no `id`, so that a page can hold many.
pub(crate) fn write_figure(chart: &Chart, out: &mut String) -> fmt::Result {
    write!(out, "<figure>\n{}</figure>\n", chart.svg())
}

/// The numbers of a part of a chart, and what is missing from them.
pub(crate) fn write_numbers(numbers: &Numbers, out: &mut String) -> fmt::Result {
    if let Some(table) = &numbers.table {
        table.write(out)?;
    }
    numbers.notes.iter().try_for_each(|note| writeln!(out, "<p>{}</p>", Escaped(note)))
}

impl Table {
    /// The table; its first row and its first column are headings.
    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "<div class=\"scroll\" tabindex=\"0\">\n<table>")?;
        if !self.caption.is_empty() {
            writeln!(out, "<caption>{}</caption>", Escaped(&self.caption))?;
        }
        let columns = self.rows.iter().map(Vec::len).fold(self.headings.len(), usize::max);
        let classes: Vec<&str> = (0..columns).map(|column| self.class(column)).collect();
        out.write_str("<thead>\n<tr>")?;
        let cell = |cells: &'_ [String], at: usize| cells.get(at).cloned().unwrap_or_default();
        for (at, class) in classes.iter().enumerate() {
            write!(out, r#"<th scope="col"{class}>{}</th>"#, Escaped(&cell(&self.headings, at)))?;
        }
        out.write_str("</tr>\n</thead>\n<tbody>\n")?;
        for row in &self.rows {
            write!(out, r#"<tr><th scope="row">{}</th>"#, Escaped(&cell(row, 0)))?;
            for (at, class) in classes.iter().enumerate().skip(1) {
                write!(out, "<td{class}>{}</td>", Escaped(&cell(row, at)))?;
            }
            out.write_str("</tr>\n")?;
        }
        out.write_str("</tbody>\n</table>\n</div>\n")
    }

    /// The attribute of the cells of a column: those of words stand at the left.
    fn class(&self, column: usize) -> &'static str {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        let is_number = |cell: &String| {
            cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "-–+.<>≈".contains(c))
        };
        if column == 0 || cells.all(is_number) { "" } else { r#" class="text""# }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table) -> String {
        let mut out = String::new();
        table.write(&mut out).expect("a string");
        out
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let table = Table::new("", ["a", "b", "c"]).row(["x", "1", "wb"]).row(["y", "–", "2"]);
        let html = written(&table);
        assert!(
            html.contains(r#"<tr><th scope="row">x</th><td>1</td><td class="text">wb</td></tr>"#),
            "{html}"
        );
        assert!(!html.contains("<caption>"));
    }

    #[test]
    fn ragged_rows_are_filled_up() {
        let html = written(&Table::new("c", ["a"]).row(["x", "1", "2"]).row(["y"]));
        assert_eq!(html.matches("<th scope=\"col\"").count(), 3);
        assert_eq!(html.matches("<td>").count(), 4);
    }
}
