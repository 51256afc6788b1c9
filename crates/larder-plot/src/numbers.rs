//! The numbers behind a picture, for those who want to read them: a table for each panel.

use crate::axis::Axis;
use crate::bars::Bars;
use crate::chart::{Panel, Part};
use crate::page::Table;
use crate::panel;
use crate::series::Series;

/// No reader goes through more numbers than this, and no page should hold them.
const CELLS_MAX: usize = 100_000;

/// The numbers of a panel or of bars.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub table: Option<Table>,
    /// What the table does not hold, in sentences.
    pub notes: Vec<String>,
}

impl Numbers {
    pub fn is_empty(&self) -> bool {
        self.table.is_none() && self.notes.is_empty()
    }
}

/// The numbers of a part of a chart.
pub(crate) fn of(part: &Part) -> Numbers {
    match part {
        Part::Panel(panel) => of_panel(panel),
        Part::Bars(bars) => Numbers { table: Some(of_bars(bars)), notes: Vec::new() },
    }
}

fn of_panel(panel: &Panel) -> Numbers {
    let xs = panel.xs();
    let mut numbers = Numbers::default();
    match xs.len() * panel.series.len() {
        0 => {}
        1..=CELLS_MAX => numbers.table = Some(table(panel, &xs)),
        many => numbers.notes.push(format!("No table: it would have {many} cells.")),
    }
    numbers.notes.extend(panel::left_out(panel).map(|note| format!("{note}.")));
    numbers.notes.extend(fullest(panel));
    numbers
}

/// What a map has to say in words: where its fullest cell lies.
pub(crate) fn fullest(panel: &Panel) -> Option<String> {
    let heat = panel.map()?;
    let top = heat.cells().max_by(|a, b| a.amount.total_cmp(&b.amount))?;
    let span = |axis: &Axis, range: (f64, f64), at: usize, cells: usize| {
        let edge = |at: usize| axis.unit.cell(axis.between(range, at as f64 / cells as f64));
        format!("{} to {}", edge(at), edge(at + 1))
    };
    let x = span(&panel.x, heat.x, top.column, heat.columns());
    let y = span(&panel.y, heat.y, top.row, heat.rows.len());
    let amount = heat.unit.cell(top.amount);
    Some(format!("The darkest cell ({}: {x}; {}: {y}) holds {amount}.", panel.x.label, panel.y.label))
}

fn of_bars(bars: &Bars) -> Table {
    let table = Table::new(bars.caption(), [bars.things.clone(), bars.amount.title()]);
    let row = |table: Table, (name, amount): &(String, f64)| table.row([name.clone(), bars.written(*amount)]);
    bars.bars.iter().fold(table, row)
}

/// Series go down and x across, or the other way round if there are more x.
fn table(panel: &Panel, xs: &[f64]) -> Table {
    let mut rows = cells(panel, xs).into_iter();
    let table = Table::new(panel.caption(), rows.next().unwrap_or_default());
    rows.fold(table, Table::row)
}

/// The text of all cells, with headings.
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
    let cell = |y: Option<f64>| y.map_or_else(|| "–".to_owned(), |y| panel.y.unit.cell(y));
    std::iter::once(series.label()).chain(panel.ys(series, xs).into_iter().map(cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chart, Heat, Unit};

    fn panel() -> Panel {
        Panel::new(Axis::new("Cache size", Unit::Bytes), Axis::new("SSD writes", Unit::count("blocks")))
    }

    #[test]
    fn few_sizes_go_across() {
        let panel = panel()
            .series(Series::new("LRU", [(1024.0, 12345.0), (4096.0, 7.0)]))
            .series(Series::new("ARC", [(2048.0, 0.0), (4096.0, 8.0), (4096.0, 9.0), (8192.0, f64::NAN)]));
        assert_eq!(
            cells(&panel, &panel.xs()),
            [["Cache size", "1 KiB", "2 KiB", "4 KiB"], ["LRU", "12,345", "–", "7"], ["ARC", "–", "0", "9"],]
        );
    }

    #[test]
    fn many_sizes_go_down() {
        let panel = panel().series(Series::new("LRU", (1..=40).map(|at| (f64::from(at), 1.0))));
        let cells = cells(&panel, &panel.xs());
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

    #[test]
    fn a_map_tells_its_darkest_cell() {
        let cells = [vec![1.0, 2.0], vec![0.0, 1500.0]];
        let heat = Heat::new("Accesses", Unit::count("blocks"), (0.0, 120.0), (0.0, 8192.0), cells);
        let panel = Panel::new(Axis::new("Time", Unit::Seconds), Axis::new("Address", Unit::Bytes));
        assert_eq!(
            of_panel(&panel.heat(heat)).notes,
            ["The darkest cell (Time: 1 min to 2 min; Address: 4 KiB to 8 KiB) holds 1,500."]
        );
    }
}
