//! Words and columns for people.

use std::fmt::Write;

/// Longest name of a volume or a tenant that is shown whole.
const NAME_CHARS_MAX: usize = 32;

/// A number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 file`, `2,000 files`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A name out of a trace, fit for a terminal: short, and without control characters.
pub fn name(name: &str) -> String {
    if name.is_empty() {
        return "-".to_owned();
    }
    let visible = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let mut text: String = name.chars().take(NAME_CHARS_MAX).map(visible).collect();
    if text.len() < name.len() && name.chars().nth(NAME_CHARS_MAX).is_some() {
        text.pop();
        text.push('…');
    }
    text
}

/// A time in seconds, with all its nanoseconds that are not zeroes at the end.
pub fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Which side of its column a cell is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Columns as wide as their widest cell. Rows may be laid out in portions: the columns only grow.
#[derive(Debug)]
pub struct Columns<const N: usize> {
    headings: [&'static str; N],
    sides: [Side; N],
    widths: [usize; N],
}

impl<const N: usize> Columns<N> {
    /// Columns with these headings, which the first rows that are laid out come below.
    pub fn new(headings: [(&'static str, Side); N]) -> Self {
        let widths = headings.map(|(heading, _)| heading.chars().count());
        Self { headings: headings.map(|heading| heading.0), sides: headings.map(|heading| heading.1), widths }
    }

    /// The headings, over columns wide enough for `rows`.
    pub fn head(&mut self, rows: &[[String; N]]) -> String {
        self.widen(rows);
        self.line(&self.headings)
    }

    /// The lines of `rows`.
    pub fn lines(&mut self, rows: &[[String; N]]) -> String {
        self.widen(rows);
        rows.iter().map(|row| self.line(&row.each_ref().map(String::as_str))).collect()
    }

    fn widen(&mut self, rows: &[[String; N]]) {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }

    fn line(&self, cells: &[&str; N]) -> String {
        let mut line = String::new();
        for ((cell, side), &width) in cells.iter().zip(self.sides).zip(&self.widths) {
            // Writing to a String cannot fail.
            let _ = match side {
                Side::Left => write!(line, "  {cell:<width$}"),
                Side::Right => write!(line, "  {cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let numbers = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, text) in numbers {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(
            (counted(1, "file", "files"), counted(2000, "file", "files")),
            ("1 file".into(), "2,000 files".into())
        );
    }

    #[test]
    fn names_fit_a_terminal() {
        assert_eq!((name("").as_str(), name("web_1").as_str()), ("-", "web_1"));
        assert_eq!(name("\u{1b}[31m\n"), "\u{fffd}[31m\u{fffd}");
        assert_eq!(name(&"é".repeat(32)), "é".repeat(32));
        assert_eq!(name(&"é".repeat(33)), format!("{}…", "é".repeat(31)));
    }

    #[test]
    fn seconds_are_exact() {
        for (ns, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_500_000_000, "1.5"),
            (100_000_000_000, "100"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(seconds(ns), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut columns = Columns::new([("name", Side::Left), ("n", Side::Right)]);
        let rows = [["a", "1"], ["longer", "200"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns.head(&rows), "  name      n\n");
        assert_eq!(columns.lines(&rows), "  a         1\n  longer  200\n");
        assert_eq!(columns.lines(&[["b".into(), "".into()]]), "  b\n");
    }
}
