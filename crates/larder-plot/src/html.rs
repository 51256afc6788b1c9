//! The HTML writer: a page with the picture and, below it, its numbers as tables.
//!
//! The page loads nothing: its content policy forbids it. The picture keeps its white paper on dark screens.

use std::fmt::{self, Write as _};

use crate::chart::{Chart, Panel, Series};
use crate::panel;
use crate::svg::Escaped;

const HEAD: &str = include_str!("html/head.html");

/// No reader goes through more numbers than this, and no page should hold them.
const CELLS_MAX: usize = 100_000;

impl Chart {
    /// The chart as a web page: the picture, and a table of its numbers for each panel. One file, without scripts, that refers to
    /// nothing outside itself; it follows the reader's choice of dark or light, and prints.
    pub fn html(&self) -> String {
        let mut out = String::new();
        self.write_page(&mut out).expect("writing to a string cannot fail");
        out
    }

    fn write_page(&self, out: &mut String) -> fmt::Result {
        let title = Escaped(&self.title);
        write!(out, "{HEAD}<title>{title}</title>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n")?;
        write!(out, "<figure>\n{}</figure>\n", self.svg())?;
        self.panels.iter().try_for_each(|panel| write_panel(panel, out))?;
        out.write_str("</main>\n</body>\n</html>\n")
    }
}

/// The numbers of a panel, and what is missing from them.
fn write_panel(panel: &Panel, out: &mut String) -> fmt::Result {
    let xs = xs(panel);
    match xs.len() * panel.series.len() {
        0 => {}
        1..=CELLS_MAX => write_table(panel, &cells(panel, &xs), out)?,
        many => writeln!(out, "<p>No table: it would have {many} cells.</p>")?,
    }
    panel::left_out(panel).map_or(Ok(()), |note| writeln!(out, "<p>{}.</p>", Escaped(&note)))
}

/// A table; its first row and its first column are headings.
fn write_table(panel: &Panel, rows: &[Vec<String>], out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<caption>{}</caption>",
        Escaped(&panel.caption())
    )?;
    let (head, body) = rows.split_at(1);
    writeln!(out, "<thead>")?;
    head.iter().try_for_each(|row| write_row(row, r#"th scope="col""#, "th", out))?;
    writeln!(out, "</thead>\n<tbody>")?;
    body.iter().try_for_each(|row| write_row(row, "td", "td", out))?;
    writeln!(out, "</tbody>\n</table>\n</div>")
}

fn write_row(row: &[String], open: &str, close: &str, out: &mut String) -> fmt::Result {
    out.write_str("<tr>")?;
    for (column, cell) in row.iter().enumerate() {
        match (column, open) {
            (0, "td") => write!(out, r#"<th scope="row">{}</th>"#, Escaped(cell))?,
            _ => write!(out, "<{open}>{}</{close}>", Escaped(cell))?,
        }
    }
    writeln!(out, "</tr>")
}

/// The different x of all points that have a place, in order.
fn xs(panel: &Panel) -> Vec<f64> {
    let mut xs: Vec<f64> = panel.all_shown().map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    xs
}

/// The text of all cells, with headings. Series go down and x across, or the other way round if there are more x.
fn cells(panel: &Panel, xs: &[f64]) -> Vec<Vec<String>> {
    let at_x = xs.iter().map(|&x| panel.x.unit.cell(x));
    let mut rows = vec![std::iter::once(panel.x.title()).chain(at_x).collect::<Vec<_>>()];
    rows.extend(panel.series.iter().map(|series| row(panel, series, xs)));
    if xs.len() <= panel.series.len().max(12) {
        return rows;
    }
    (0..rows[0].len()).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect()
}

/// The name of a series and its y at each of the `xs`; "–" where it has no point.
fn row(panel: &Panel, series: &Series, xs: &[f64]) -> Vec<String> {
    let mut points = panel.shown(series).peekable();
    let mut row = vec![series.label()];
    for &x in xs {
        let mut cell = None;
        while let Some((_, y)) = points.next_if(|point| point.0 == x) {
            cell = Some(panel.y.unit.cell(y));
        }
        row.push(cell.unwrap_or_else(|| "–".to_owned()));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Unit};

    fn panel() -> Panel {
        Panel::new(Axis::new("Cache size", Unit::Bytes), Axis::new("SSD writes", Unit::count("blocks")))
    }

    #[test]
    fn few_sizes_go_across() {
        let panel = panel()
            .series(Series::new("LRU", [(1024.0, 12345.0), (4096.0, 7.0)]))
            .series(Series::new("ARC", [(2048.0, 0.0), (4096.0, 8.0), (4096.0, 9.0), (8192.0, f64::NAN)]));
        assert_eq!(
            cells(&panel, &xs(&panel)),
            [["Cache size", "1 KiB", "2 KiB", "4 KiB"], ["LRU", "12,345", "–", "7"], ["ARC", "–", "0", "9"],]
        );
    }

    #[test]
    fn many_sizes_go_down() {
        let panel = panel().series(Series::new("LRU", (1..=40).map(|at| (f64::from(at), 1.0))));
        let cells = cells(&panel, &xs(&panel));
        assert_eq!((cells.len(), cells[0].len()), (41, 2));
        assert_eq!(cells[0], ["Cache size", "LRU"]);
        assert_eq!(cells[40], ["40 B", "1"]);
    }

    #[test]
    fn what_is_missing_is_told() {
        let page = |panel| Chart::new("t").panel(panel).html();
        assert!(!page(panel()).contains("<table"));
        let nowhere = page(panel().series(Series::new("LRU", [(f64::NAN, 1.0)])));
        assert!(!nowhere.contains("<table") && nowhere.contains("<p>1 point is not shown"));
        let many = page(panel().series(Series::new("LRU", (0..=CELLS_MAX).map(|at| (at as f64, 1.0)))));
        assert!(!many.contains("<table") && many.contains("100001 cells"));
    }
}
