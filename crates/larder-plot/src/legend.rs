//! The legend: a sample of each series and its name, right of the panels.

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
/// Longer names are cut; their tooltips and the tables have them in full.
const NAME_MAX: f64 = 260.0;
const COLUMN_GAP: f64 = 20.0;
const COLUMNS: usize = 2;

/// A legend that has been made to measure, not yet in its place.
pub(crate) struct Legend<'a> {
    entries: Vec<(Key<'a>, String)>,
    rows: usize,
    column_width: f64,
}

impl<'a> Legend<'a> {
    /// A legend of one column while `height` suffices; then of two, as long as need be.
    pub fn new(keys: &[Key<'a>], height: f64) -> Self {
        let name = |key: Key<'a>| (key, text::fit(&chart::label(key), NAME_MAX, SIZE, Weight::Regular));
        let entries: Vec<_> = keys.iter().map(|&key| name(key)).collect();
        let names =
            entries.iter().map(|(_, name)| text::room(name, SIZE, Weight::Regular)).fold(0.0, f64::max);
        let fitting = (height / ROW) as usize;
        let columns = if entries.len() > fitting { COLUMNS } else { 1 };
        let rows = entries.len().div_ceil(columns).max(1);
        Legend { entries, rows, column_width: SAMPLE + GAP + names }
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
    let line = style.line(&[(x, y), (x + SAMPLE, y)]);
    let marker = style.marker((x + SAMPLE / 2.0, y));
    Item::Group(Group {
        class: "entry",
        tip,
        items: vec![Item::Shape(line), Item::Shape(marker), Item::Text(text)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legend(entries: usize, height: f64) -> (usize, usize) {
        let names: Vec<String> = (0..entries).map(|at| format!("name {at}")).collect();
        let keys: Vec<Key> = names.iter().map(|name| (name.as_str(), "")).collect();
        let legend = Legend::new(&keys, height);
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
        let legend = Legend::new(&[], 600.0);
        assert_eq!((legend.width(), legend.height()), (0.0, 0.0));
    }

    #[test]
    fn long_names_are_cut() {
        let long = "w".repeat(500);
        let legend = Legend::new(&[(&long, "wb"), ("LRU", "wb")], 600.0);
        assert!(legend.width() <= SAMPLE + GAP + NAME_MAX);
        assert!(legend.entries[0].1.ends_with('…'));
        assert_eq!(legend.entries[1].1, "LRU, wb");
    }
}
