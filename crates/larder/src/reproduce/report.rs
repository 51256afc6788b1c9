//! What an experiment with tenants found: for people as text or Markdown, for programs as JSON.

use serde_json::{Value, json};

use super::claim::{self, Claim};
use super::sheet::{Sheet, wrapped};

/// Columns that text never passes: it is read in files, too.
pub const WIDTH_MAX: u16 = 110;

/// All that an experiment found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was done: the paper, and where in it.
    pub title: String,
    /// What has to be known to read the tables: stand-ins, sizes, devices.
    pub notes: Vec<String>,
    /// The tables.
    pub sheets: Vec<Sheet>,
    /// The paper's claims.
    pub claims: Vec<Claim>,
    /// What it comes to.
    pub closing: Vec<String>,
    /// The figures, for programs.
    pub figures: Value,
}

impl Report {
    /// Text in lines of at most `width` columns.
    pub fn text(&self, width: u16) -> String {
        let width = width.min(WIDTH_MAX);
        let notes = self.notes.iter().map(|note| wrapped(note, width));
        let head = format!("{}\n{}", wrapped(&self.title, width), notes.collect::<String>());
        let sheets = self.all_sheets().into_iter().map(|sheet| sheet.text(width));
        let closing: String = self.closing.iter().map(|line| wrapped(line, width)).collect();
        let closing = (!closing.is_empty()).then_some(closing);
        [head].into_iter().chain(sheets).chain(closing).collect::<Vec<_>>().join("\n")
    }

    /// The same as Markdown.
    pub fn markdown(&self) -> String {
        let paragraph = |line: &String| format!("{line}\n");
        let head = [&self.title].into_iter().chain(&self.notes).map(paragraph);
        let sheets = self.all_sheets().into_iter().map(|sheet| sheet.markdown());
        let closing = self.closing.iter().map(paragraph);
        head.chain(sheets).chain(closing).collect::<Vec<_>>().join("\n")
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let claims: Vec<_> = self.claims.iter().map(Claim::json).collect();
        json!({ "title": self.title, "notes": self.notes, "figures": self.figures, "claims": claims, "closing": self.closing })
    }

    fn all_sheets(&self) -> Vec<Sheet> {
        let claims = (!self.claims.is_empty()).then(|| claim::sheet(&self.claims));
        self.sheets.iter().cloned().chain(claims).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_told_in_both() {
        let mut sheet = Sheet::new("A table.", 1, ["a"]);
        sheet.row(["cell"]);
        let report = Report {
            title: "Title".into(),
            notes: vec!["A note.".into()],
            sheets: vec![sheet],
            closing: vec!["The end.".into()],
            ..Report::default()
        };
        for text in [report.text(80), report.markdown()] {
            let places = ["Title", "A note.", "A table.", "cell", "The end."].map(|part| text.find(part));
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
        }
    }
}
