//! Tables of text without lines but the one below the headings.

use crate::columns::Columns;

/// A table of at most `width` columns where the words allow it; the columns `words` are flush left, the others flush right.
pub fn table<const N: usize>(
    headings: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    words: &[usize],
    width: u16,
) -> String {
    let mut table = Columns::new(headings).words(words.iter().copied()).padded(0, 1);
    rows.into_iter().for_each(|row| table.row(row));
    table.text(width)
}

/// The cells of a column with a `*` behind each that is best, unless all are. Equal texts are equally good.
pub fn marked(cells: Vec<String>, values: &[f64], lowest: bool) -> Vec<String> {
    let order = |a: &&f64, b: &&f64| a.total_cmp(b);
    let best = if lowest { values.iter().min_by(order) } else { values.iter().max_by(order) };
    let best =
        values.iter().zip(&cells).find(|(value, _)| Some(*value) == best).map(|(_, cell)| cell.clone());
    let tells = cells.iter().any(|cell| Some(cell) != best.as_ref());
    let mark = |cell: String| {
        let mark = if !tells {
            ""
        } else if Some(&cell) == best.as_ref() {
            "*"
        } else {
            " "
        };
        cell + mark
    };
    cells.into_iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], lowest: bool) -> Vec<String> {
        marked(values.iter().map(|value| format!("{value:.1}")).collect(), values, lowest)
    }

    #[test]
    fn the_best_is_marked_where_there_is_a_difference() {
        assert_eq!(of(&[2.0, 1.0, 1.04], true), ["2.0 ", "1.0*", "1.0*"]);
        assert_eq!(of(&[2.0, 1.0], false), ["2.0*", "1.0 "]);
        assert_eq!(of(&[1.0, 1.01], true), ["1.0", "1.0"]);
        assert!(of(&[], true).is_empty());
    }

    #[test]
    fn columns_of_numbers_are_flush_right() {
        let rows = [["a".into(), "100".into()], ["bcdef".into(), "1".into()]];
        let text = table(["name", "n"], rows, &[0], 80);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        let widths = [0, 2, 3].map(|at| lines[at].chars().count());
        assert_eq!(widths, [widths[0]; 3], "{text}");
        assert!(lines[3].trim_start().starts_with("bcdef "), "{text}");
    }
}
