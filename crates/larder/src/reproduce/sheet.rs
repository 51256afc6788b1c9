//! A table of an experiment, as text and as Markdown.

use crate::columns::Columns;

/// Rows of cells below headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// What it shows.
    pub caption: String,
    headings: Vec<String>,
    /// The first so many columns hold words, flush left; the others numbers, flush right.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Without rows; the first `words` columns hold words. A heading may be of several lines.
    pub fn new<T: Into<String>>(
        caption: impl Into<String>,
        words: usize,
        headings: impl IntoIterator<Item = T>,
    ) -> Self {
        let headings = headings.into_iter().map(Into::into).collect();
        Self { caption: caption.into(), headings, words, rows: Vec::new() }
    }

    /// One row more, a cell for each heading.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// As text, in lines of at most `width` columns where the words allow it.
    pub fn text(&self, width: u16) -> String {
        let mut table = Columns::new(&self.headings).words(0..self.words).padded(0, 1);
        self.rows.iter().for_each(|row| table.row(row));
        format!("{}\n{}", wrapped(&self.caption, width), table.text(width))
    }

    /// As Markdown; what is marked with a `*` is bold.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let headings: Vec<_> = self.headings.iter().map(|heading| flat(heading)).collect();
        let rule = |at| if at < self.words { "---" } else { "---:" };
        let rules: Vec<_> = (0..headings.len()).map(|at| rule(at).to_owned()).collect();
        let rows = self.rows.iter().map(|row| line(&row.iter().map(|cell| bold(cell)).collect::<Vec<_>>()));
        format!("{}\n\n{}{}{}", self.caption, line(&headings), line(&rules), rows.collect::<String>())
    }
}

/// A heading in one line.
fn flat(heading: &str) -> String {
    heading.replace("-\n", "-").replace('\n', " ")
}

fn bold(cell: &str) -> String {
    let cell = cell.trim_end().replace('|', "\\|");
    match cell.strip_suffix('*') {
        Some(best) => format!("**{best}**"),
        None => cell,
    }
}

/// A paragraph in lines of at most `width` columns, where its words allow it.
pub fn wrapped(paragraph: &str, width: u16) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if column > 0 {
            let fits = column + 1 + length <= usize::from(width);
            text.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new("Latencies.", 1, ["who", "convex-\nhull", "ms"]);
        sheet.row(["a|b", "10.5*", "7"]);
        sheet.row(["c", "8.25 ", "-"]);
        sheet
    }

    #[test]
    fn paragraphs_keep_their_words() {
        assert_eq!(wrapped("one two three  four", 9), "one two\nthree\nfour\n");
        assert_eq!(wrapped("unbreakable", 3), "unbreakable\n");
        assert_eq!(wrapped("", 3), "\n");
    }

    #[test]
    fn numbers_are_flush_right() {
        let text = sheet().text(40);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "Latencies.");
        let ends = [5, 6].map(|at: usize| lines[at].find('7').or(lines[at].find('-')));
        assert_eq!(ends[0], ends[1], "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }

    #[test]
    fn marks_are_bold_in_markdown() {
        let expected = "Latencies.\n\n| who | convex-hull | ms |\n| --- | ---: | ---: |\n\
                        | a\\|b | **10.5** | 7 |\n| c | 8.25 | - |\n";
        assert_eq!(sheet().markdown(), expected);
    }
}
