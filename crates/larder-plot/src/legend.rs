//! The legend: a sample of each series and its name, right of the panels or, if the names are long, above them.

use std::collections::BTreeMap;

use crate::chart::{self, Key};
use crate::scene::{Anchor, Group, Item, Place, Text};
use crate::style::{INK, Style};
use crate::text::{self, Weight};

const ROW: f64 = 20.0;
const SIZE: f64 = 13.0;
/// Length of the line of a sample, and the gap between it and the name.
const SAMPLE: f64 = 44.0;
const GAP: f64 = 8.0;
/// The sample of an area.
const SWATCH: (f64, f64) = (30.0, 13.0);
/// Longer names are cut; their tooltips and the tables have them in full.
const NAME_MAX: f64 = 260.0;
const COLUMN_GAP: f64 = 20.0;
const COLUMNS: usize = 2;

/// Columns of this width leave the panels their size on paper; wider ones stand above the panels, if they are few.
const NARROW: f64 = 180.0;
const ROWS_ABOVE: usize = 3;

/// A legend that has been made to measure, not yet in its place.
pub(crate) struct Legend<'a> {
    entries: Vec<(Key<'a>, String)>,
    rows: usize,
    column_width: f64,
    /// Whether it stands above the panels, not beside them.
    pub above: bool,
}

impl<'a> Legend<'a> {
    /// A legend for panels of this size. Beside them it has one column while the height suffices, then two, as long as need be.
    pub fn new(keys: &[Key<'a>], (width, height): (f64, f64)) -> Self {
        let name = |key: Key<'a>| (key, text::fit(&chart::label(key), NAME_MAX, SIZE, Weight::Regular));
        let entries: Vec<_> = keys.iter().map(|&key| name(key)).collect();
        let names =
            entries.iter().map(|(_, name)| text::room(name, SIZE, Weight::Regular)).fold(0.0, f64::max);
        let column_width = SAMPLE + GAP + names;
        let columns_above = ((width + COLUMN_GAP) / (column_width + COLUMN_GAP)) as usize;
        let above = column_width > NARROW && entries.len() <= ROWS_ABOVE * columns_above;
        let columns_beside = if entries.len() > (height / ROW) as usize { COLUMNS } else { 1 };
        let columns = if above { columns_above } else { columns_beside };
        let rows = entries.len().div_ceil(columns).max(1);
        Legend { entries, rows, column_width, above }
    }

    pub fn width(&self) -> f64 {
        match self.columns() {
            0 => 0.0,
            columns => columns as f64 * (self.column_width + COLUMN_GAP) - COLUMN_GAP,
        }
    }

    pub fn height(&self) -> f64 {
        self.rows.min(self.entries.len()) as f64 * ROW
    }

    fn columns(&self) -> usize {
        self.entries.len().div_ceil(self.rows)
    }

    /// The legend with its upper left corner at this place.
    pub fn draw(&self, (left, top): Place, styles: &BTreeMap<Key<'_>, Style>) -> Item {
        let place = |at: usize| {
            let (column, row) = (at / self.rows, at % self.rows);
            (left + column as f64 * (self.column_width + COLUMN_GAP), top + row as f64 * ROW + ROW / 2.0)
        };
        let entries = self.entries.iter().enumerate();
        let items = entries
            .map(|(at, (key, name))| entry(place(at), &styles[key], chart::label(*key), name))
            .collect();
        Item::Group(Group { class: "legend", tip: "Legend".to_owned(), items })
    }
}

/// One entry; `y` is its middle.
fn entry((x, y): Place, style: &Style, tip: String, name: &str) -> Item {
    let at = (x + SAMPLE + GAP, y + 0.35 * SIZE);
    let (anchor, weight) = (Anchor::Start, Weight::Regular);
    let text = Text { class: "name", at, anchor, size: SIZE, weight, colour: INK, text: name.to_owned() };
    let swatch = style.swatch((x + (SAMPLE - SWATCH.0) / 2.0, y - SWATCH.1 / 2.0), SWATCH);
    let mut items: Vec<Item> = swatch.map(Item::Shape).into_iter().collect();
    if style.lined {
        items.push(Item::Shape(style.line(&[(x, y), (x + SAMPLE, y)])));
        items.push(Item::Shape(style.marker((x + SAMPLE / 2.0, y))));
    }
    items.push(Item::Text(text));
    Item::Group(Group { class: "entry", tip, items })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: (f64, f64) = (640.0, 600.0);

    fn legend(entries: usize, height: f64) -> (usize, usize) {
        let names: Vec<String> = (0..entries).map(|at| format!("name {at}")).collect();
        let keys: Vec<Key> = names.iter().map(|name| (name.as_str(), "")).collect();
        let legend = Legend::new(&keys, (640.0, height));
        assert!(!legend.above);
        (legend.columns(), legend.rows)
    }

    #[test]
    fn a_second_column_opens_when_the_first_is_full() {
        assert_eq!(legend(15, 600.0), (1, 15));
        assert_eq!(legend(30, 600.0), (1, 30));
        assert_eq!(legend(31, 600.0), (2, 16));
        assert_eq!(legend(99, 600.0), (2, 50), "never a third: it grows longer");
        assert_eq!(legend(1, 0.0), (1, 1));
    }

    #[test]
    fn an_empty_legend_takes_no_room() {
        let legend = Legend::new(&[], WIDE);
        assert_eq!((legend.width(), legend.height()), (0.0, 0.0));
    }

    #[test]
    fn long_names_are_cut() {
        let long = "w".repeat(500);
        let legend = Legend::new(&[(&long, "wb"), ("LRU", "wb")], (0.0, 600.0));
        assert!(!legend.above && legend.width() <= SAMPLE + GAP + NAME_MAX);
        assert!(legend.entries[0].1.ends_with('…'));
        assert_eq!(legend.entries[1].1, "LRU, wb");
    }

    #[test]
    fn a_few_long_names_stand_above() {
        let name = "Reads of blocks seen before";
        let variants: Vec<String> = (0..7).map(|at| at.to_string()).collect();
        let keys: Vec<Key> = variants.iter().map(|variant| (name, variant.as_str())).collect();
        let shape = |count: usize| {
            let legend = Legend::new(&keys[..count], WIDE);
            assert!(!legend.above || legend.width() <= WIDE.0);
            (legend.above, legend.columns(), legend.rows)
        };
        assert_eq!(shape(1), (true, 1, 1));
        assert_eq!(shape(2), (true, 2, 1));
        assert_eq!(shape(6), (true, 2, 3));
        assert_eq!(shape(7), (false, 1, 7), "too many rows");
    }
}
