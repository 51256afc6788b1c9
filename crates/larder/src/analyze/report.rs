//! What was found of a trace, as a summary for people.

use std::fmt::Write;

use super::found::Found;
use super::line::Line;
use super::rows::Rows;
use super::verdict::Verdict;
use crate::columns::Columns;
use crate::number::percent;

/// Beyond it, lines of words are hard to read.
const WORDS_WIDTH: usize = 100;

/// Columns behind each cell: its padding, and the empty line that parts it from the next cell.
const GAP: usize = 2;

/// What stands over a size, its share of the footprint, and what begins there.
const SIZE_HEADINGS: [&str; 3] = ["\n\nsize", "\nof foot-\nprint", ""];

/// Everything, in lines of at most `width` columns where the words allow it.
pub fn render(found: &Found, width: u16) -> String {
    let mut text = found.head().to_string();
    let words = usize::from(width).min(WORDS_WIDTH);
    let note = found.sampling_note();
    text += &classes(found).into_iter().chain(note).map(|line| wrapped("", &line, words)).collect::<String>();
    text.push('\n');
    for (about, sentence) in Verdict::new(found).sentences() {
        text += &wrapped(&format!("{about:<6}"), sentence, words);
    }
    if found.classes.total() == 0 {
        return text;
    }
    let rows = Rows::new(found);
    for groups in beside(&rows, rows.groups(), width.into()) {
        text.push('\n');
        text.push_str(&table(&rows, &groups).text(width));
    }
    text + "\n" + &wrapped("", &rows.legend(), words)
}

/// Accesses by request class; none where there are no accesses.
fn classes(found: &Found) -> Option<String> {
    let classes = &found.classes;
    let total = classes.total();
    let share = |count: u64| percent(Some(count as f64 / total as f64));
    (total > 0).then(|| {
        format!(
            "Block accesses: first reads {} (CR), first writes {} (CW), reads after a read {} (RAR), after a write {} (RAW), writes after a read {} (WAR), after a write {} (WAW)",
            share(classes.cr),
            share(classes.cw),
            share(classes.rar),
            share(classes.raw),
            share(classes.war),
            share(classes.waw),
        )
    })
}

/// Policies whose columns fit beside each other.
fn beside<'a>(
    rows: &Rows<'_>,
    groups: Vec<(String, &'a Line)>,
    width: usize,
) -> Vec<Vec<(String, &'a Line)>> {
    let of_size = rows.sizes.iter().map(|&blocks| rows.size(blocks));
    let sizes = columns_width(of_size.chain([SIZE_HEADINGS.map(str::to_owned)]));
    let (mut tables, mut left): (Vec<Vec<_>>, usize) = (Vec::new(), 0);
    for group in groups {
        let cells = rows.sizes.iter().map(|&blocks| rows.cells(group.1, blocks));
        let own = columns_width(cells.chain([headings(rows, &group.0)]));
        match tables.last_mut() {
            Some(table) if own <= left => table.push(group),
            _ => {
                tables.push(vec![group]);
                left = width.saturating_sub(sizes);
            }
        }
        left = left.saturating_sub(own);
    }
    tables
}

/// What columns with these cells take, each as wide as its widest one, and the gaps behind them.
fn columns_width<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> usize {
    let width = |cell: String| cell.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let widths = rows.map(|cells| cells.map(width)).fold([0; N], |mut widest: [usize; N], widths| {
        widest.iter_mut().zip(widths).for_each(|(most, width)| *most = width.max(*most));
        widest
    });
    widths.iter().sum::<usize>() + N * GAP
}

fn headings(rows: &Rows<'_>, names: &str) -> [String; 2] {
    let [first, second] = rows.headings().map(|[above, below]| format!("{above}\n{below}"));
    [format!("{names}\n{first}"), format!("\n{second}")]
}

fn table(rows: &Rows<'_>, groups: &[(String, &Line)]) -> Columns {
    let fixed = SIZE_HEADINGS.map(str::to_owned);
    let headings = fixed.into_iter().chain(groups.iter().flat_map(|(names, _)| headings(rows, names)));
    let mut table = Columns::new(headings).words([2]).padded(0, GAP - 1);
    for &blocks in &rows.sizes {
        let of_group = |(_, line): &(String, &Line)| rows.cells(line, blocks);
        table.row(rows.size(blocks).into_iter().chain(groups.iter().flat_map(of_group)));
    }
    table
}

/// Lines of at most `width` columns where the words allow it, the first one behind a label and the others below its text.
fn wrapped(label: &str, text: &str, width: usize) -> String {
    let indent = label.chars().count();
    let (mut out, mut column) = (label.to_owned(), indent);
    for (at, word) in words(text).enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > width {
            // Writing to a String cannot fail.
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out + "\n"
}

/// Words, a number with its unit being one: `1.9 GiB`, `41.25 %`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_unit = |rest: &str| rest.starts_with(['%', 'B', 'K', 'M', 'G', 'T', 'P', 'E']);
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let is_number = rest.starts_with(|letter: char| letter.is_ascii_digit());
        let mut end = rest.find(' ').unwrap_or(rest.len());
        if is_number && rest.get(end + 1..).is_some_and(is_unit) {
            end = rest[end + 1..].find(' ').map_or(rest.len(), |more| end + 1 + more);
        }
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}
