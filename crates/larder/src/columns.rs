//! Tables of text: columns of words flush left, of numbers flush right, and no lines but one below the headings.
//!
//! Where a table is wider than it may be, its widest columns share what the others leave, and their texts are wrapped between words: numbers only where there
//! is no room for them beside words of a few letters.

use std::iter::repeat_n;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A word that fits into no line begins in the line before where more columns than this are left there.
const FEW: usize = 2;

/// A column whose texts, once they are wrapped, leave so many columns of its part leaves them to the others.
const SPARE: usize = 3;

/// Numbers stay whole where each column of words keeps so many columns, or all that it needs.
const WORDS_MIN: usize = 16;

/// Rows of cells below headings; either may be of several lines.
#[derive(Clone, Debug)]
pub struct Columns {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// By column: it is flush left.
    words: Vec<bool>,
    /// Spaces before and behind each cell.
    padding: (usize, usize),
    /// There is a line below the headings.
    ruled: bool,
}

impl Columns {
    /// Without rows, all columns flush right, with a space before and behind each cell.
    pub fn new<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Self {
        let headings: Vec<String> = headings.into_iter().map(Into::into).collect();
        let words = vec![false; headings.len()];
        Self { headings, rows: Vec::new(), words, padding: (1, 1), ruled: true }
    }

    /// These columns are flush left.
    pub fn words(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        columns.into_iter().for_each(|column| self.words[column] = true);
        self
    }

    /// So many spaces before and behind each cell, beside the one between two.
    pub fn padded(mut self, before: usize, behind: usize) -> Self {
        self.padding = (before, behind);
        self
    }

    /// Without the line below the headings, and the space between two cells that goes with it.
    pub fn plain(mut self) -> Self {
        self.ruled = false;
        self
    }

    /// One row more, a cell for each heading.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// There are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// In lines of at most `width` columns where the words allow it.
    pub fn text(&self, width: impl Into<usize>) -> String {
        let widths = self.widths(width.into());
        let mut text = String::new();
        self.put(&mut text, &self.headings, &widths);
        if self.ruled {
            text.extend(repeat_n('─', widths.iter().sum::<usize>() + self.gaps()));
            text.push('\n');
        }
        self.rows.iter().for_each(|row| self.put(&mut text, row, &widths));
        text
    }

    /// Columns that are no cell's.
    fn gaps(&self) -> usize {
        let columns = self.headings.len();
        let between = if self.ruled { columns.saturating_sub(1) } else { 0 };
        columns * (self.padding.0 + self.padding.1) + between
    }

    /// All cells of a column, the heading first.
    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        let cells = self.rows.iter().filter_map(move |row| row.get(column));
        self.headings.get(column).into_iter().chain(cells).map(String::as_str)
    }

    /// How wide each column's cells are.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut shares = Shares {
            widths: vec![None; self.headings.len()],
            left: width.saturating_sub(self.gaps()),
            open: self.headings.len(),
        };
        let longest = |column, most| {
            let lines = self.cells(column).flat_map(|cell| lines(cell, most));
            lines.map(UnicodeWidthStr::width).max().unwrap_or(0)
        };
        let natural: Vec<_> = (0..shares.open).map(|column| longest(column, usize::MAX)).collect();
        let least = |column: usize| match self.words[column] {
            true => natural[column].min(WORDS_MIN),
            false => natural[column],
        };
        if (0..natural.len()).map(least).sum::<usize>() <= shares.left {
            shares.take(|column| Some(natural[column]).filter(|_| !self.words[column]));
        }
        shares.settle(|column, part| Some(natural[column]).filter(|&needed| needed <= part));
        shares.settle(|column, part| Some(longest(column, part)).filter(|needed| needed + SPARE <= part));
        shares.divide()
    }

    /// A row's lines.
    fn put(&self, text: &mut String, row: &[String], widths: &[usize]) {
        let cells: Vec<Vec<&str>> =
            row.iter().zip(widths).map(|(cell, &width)| lines(cell, width).collect()).collect();
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let begin = text.len();
            for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
                let line = cell.get(at).copied().unwrap_or_default();
                let free = width.saturating_sub(line.width());
                let (before, behind) = if self.words[column] { (0, free) } else { (free, 0) };
                let gap = usize::from(self.ruled && column > 0);
                text.extend(repeat_n(' ', gap + self.padding.0 + before));
                text.push_str(line);
                text.extend(repeat_n(' ', behind + self.padding.1));
            }
            text.truncate(begin + text[begin..].trim_end().len());
            text.push('\n');
        }
    }
}

/// What columns take of a width.
struct Shares {
    /// Of those that are settled.
    widths: Vec<Option<usize>>,
    /// What is left for the others.
    left: usize,
    /// How many these are.
    open: usize,
}

impl Shares {
    /// Give these columns what they need, which is there.
    fn take(&mut self, needed: impl Fn(usize) -> Option<usize>) {
        for column in 0..self.widths.len() {
            if let Some(width) = needed(column) {
                self.widths[column] = Some(width);
                (self.left, self.open) = (self.left - width, self.open - 1);
            }
        }
    }

    /// Give columns what they need, as long as that is told of any, beside what an equal part of what is left would be.
    fn settle(&mut self, needed: impl Fn(usize, usize) -> Option<usize>) {
        let mut again = true;
        while std::mem::take(&mut again) {
            for column in 0..self.widths.len() {
                if self.open == 0 || self.widths[column].is_some() {
                    continue;
                }
                let part = self.left / self.open;
                if let Some(width) = needed(column, part).filter(|_| part > 0) {
                    self.widths[column] = Some(width);
                    (self.left, self.open, again) = (self.left - width, self.open - 1, true);
                }
            }
        }
    }

    /// The others have equal parts of what is left, and one column each at least.
    fn divide(self) -> Vec<usize> {
        let Self { widths, left, open } = self;
        let mut more = left.checked_rem(open).unwrap_or(0);
        let part = left.checked_div(open).unwrap_or(0);
        let mut equal = || {
            let one = usize::from(more > 0);
            more -= one;
            (part + one).max(1)
        };
        widths.into_iter().map(|width| width.unwrap_or_else(&mut equal)).collect()
    }
}

/// The lines of a cell, wrapped where they are longer than `width`.
fn lines(cell: &str, width: usize) -> impl Iterator<Item = &str> {
    cell.split('\n').flat_map(move |line| {
        let mut rest = Some(line);
        std::iter::from_fn(move || {
            let text = rest.take()?;
            if text.len() <= width || text.width() <= width {
                return Some(text);
            }
            let text = text.trim_start_matches(' ');
            let end = first_line(text, width);
            rest = Some(text[end..].trim_start_matches(' ')).filter(|rest| !rest.is_empty());
            Some(text[..end].trim_end_matches(' '))
        })
    })
}

/// Bytes of a text that make a line: the words that fit, and the begin of one that would fit into no line.
fn first_line(text: &str, width: usize) -> usize {
    let mut column = 0;
    let fits = text.char_indices().find(|(_, char)| {
        column += char.width().unwrap_or(1);
        column > width
    });
    let Some((end, _)) = fits else { return text.len() };
    // A character wider than all of the line makes one.
    let end = end.max(text.chars().next().map_or(0, char::len_utf8));
    let line = &text[..end];
    if text[end..].starts_with(' ') {
        return end;
    }
    let Some(space) = line.rfind(' ') else { return end };
    let word = text[space + 1..].split(' ').next().unwrap_or_default();
    if word.width() > width && width.saturating_sub(text[..=space].width()) > FEW { end } else { space }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<&str> {
        lines(text, width).collect()
    }

    #[test]
    fn texts_are_wrapped_between_words_and_long_words_are_cut() {
        assert_eq!(wrapped("one two three", 20), ["one two three"]);
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(wrapped("a unbreakable", 5), ["a unb", "reaka", "ble"]);
        assert_eq!(wrapped("abc unbreakable", 6), ["abc", "unbrea", "kable"]);
        assert_eq!(wrapped("two\nlines", 9), ["two", "lines"]);
        assert_eq!(wrapped("µµ µµ", 2), ["µµ", "µµ"]);
        assert_eq!(wrapped("漢字", 1), ["漢", "字"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("  x y", 1), ["x", "y"]);
        assert_eq!(wrapped("    ", 2), [""]);
    }

    #[test]
    fn a_table_that_fits_takes_no_more_than_it_needs() {
        let mut table = Columns::new(["name", "n"]).words([0]);
        table.row(["a", "100"]);
        assert!(!table.is_empty());
        assert_eq!(table.text(80_usize), " name     n\n────────────\n a      100\n");
        assert_eq!(table.clone().padded(0, 1).text(80_usize), "name    n\n──────────\na     100\n");
        assert_eq!(table.plain().text(80_usize), " name    n\n a     100\n");
    }

    #[test]
    fn the_widest_columns_share_what_the_others_leave() {
        let mut table = Columns::new(["a", "b", "c"]).words([0, 1, 2]);
        table.row(["1", "one two three four", "five six seven eight nine"]);
        let expected = concat!(
            " a   b              c\n",
            "─────────────────────────────────\n",
            " 1   one two        five six\n",
            "     three four     seven eight\n",
            "                    nine\n",
        );
        assert_eq!(table.text(33_usize), expected, "{}", table.text(33_usize));
        assert!(table.text(33_usize).lines().all(|line| line.width() <= 33));
    }

    #[test]
    fn numbers_stay_whole_where_words_can_be_wrapped() {
        let mut table = Columns::new(["size", "why"]).words([1]);
        table.row(["153.7 MiB (of 1.0 GiB)", "one two three four five six"]);
        let expected = concat!(
            "                   size   why\n",
            "────────────────────────────────────────\n",
            " 153.7 MiB (of 1.0 GiB)   one two three\n",
            "                          four five six\n",
        );
        assert_eq!(table.text(44_usize), expected, "{}", table.text(44_usize));
    }

    #[test]
    fn no_width_is_too_small() {
        let mut table = Columns::new(["a", "bcd"]);
        table.row(["12 34", "漢"]);
        assert!((0..20_usize).all(|width| table.text(width).contains('漢')));
        assert_eq!(Columns::new(Vec::<String>::new()).text(10_usize), "\n");
    }
}
