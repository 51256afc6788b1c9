//! A map: amounts over two axes, as shades of a colour.

use crate::axis::{MAX, MIN_LOG};
use crate::unit::Unit;

/// Amounts in cells over two axes, drawn as shades from light (few) to dark (many) on a logarithmic scale. A cell that holds
/// nothing is left as paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    pub(crate) rows: Vec<Vec<f64>>,
}

/// One cell that holds something: its column, its row from the lower edge, its amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub column: usize,
    pub row: usize,
    pub amount: f64,
}

impl Heat {
    /// A map of what `label` names ("Accesses"). `x` and `y` are the ranges that the cells divide into equal lengths of the axes; `rows` begin at the lower
    /// end of `y`, and each goes from the lower end of `x` upwards. A shorter row ends in empty cells, and so is a cell whose amount
    /// is not finite or not above zero. 128 by 128 cells are more than the eye tells apart in a panel.
    pub fn new(
        label: impl Into<String>,
        unit: Unit,
        x: (f64, f64),
        y: (f64, f64),
        rows: impl IntoIterator<Item = Vec<f64>>,
    ) -> Self {
        let (x, y) = (spread(x), spread(y));
        Heat { label: label.into(), unit, x, y, rows: rows.into_iter().collect() }
    }

    pub(crate) fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The cells that hold something, row by row.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell> {
        let in_row = |(row, amounts): (usize, &'_ Vec<f64>)| {
            let cell = move |(column, &amount): (usize, &f64)| Cell { column, row, amount };
            amounts.iter().enumerate().map(cell).collect::<Vec<_>>()
        };
        self.rows.iter().enumerate().flat_map(in_row).filter(|cell| (MIN_LOG..=MAX).contains(&cell.amount))
    }

    /// The smallest and the largest amount.
    pub(crate) fn extent(&self) -> Option<(f64, f64)> {
        self.cells().map(|cell| (cell.amount, cell.amount)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

/// A range that is no single point: what happened at one moment has a cell to show it in.
fn spread((lo, hi): (f64, f64)) -> (f64, f64) {
    if hi > lo { (lo, hi) } else { (lo, lo + f64::max(1.0, lo.abs() * 1e-3)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(rows: Vec<Vec<f64>>) -> Heat {
        Heat::new("Accesses", Unit::count(""), (0.0, 1.0), (5.0, 5.0), rows)
    }

    #[test]
    fn empty_cells_are_no_cells() {
        let heat = heat(vec![vec![0.0, 3.0], vec![f64::NAN, -1.0, f64::INFINITY, 7.0], vec![]]);
        let cells: Vec<_> = heat.cells().map(|cell| (cell.row, cell.column, cell.amount)).collect();
        assert_eq!(cells, [(0, 1, 3.0), (1, 3, 7.0)]);
        assert_eq!((heat.columns(), heat.extent()), (4, Some((3.0, 7.0))));
    }

    #[test]
    fn one_moment_has_some_length() {
        assert_eq!(heat(vec![]).y, (5.0, 6.0));
        assert_eq!((heat(vec![]).columns(), heat(vec![]).extent()), (0, None));
    }
}
