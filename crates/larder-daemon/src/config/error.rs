//! How a configuration is refused: the file, the line, what is wrong there, the line itself with a caret, the remedy.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why no configuration could be had.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration: {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file says something that we cannot serve.
    #[error("{0}")]
    Invalid(Box<Complaint>),
}

impl ConfigError {
    /// What the operator can do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Read { path, source } if source.kind() == io::ErrorKind::IsADirectory => {
                format!("name a file with --config, such as {}", path.join("larder.toml").display())
            }
            Self::Read { path, .. } => {
                format!("name an existing file with --config, or create {}", path.display())
            }
            Self::Invalid(complaint) => complaint.help.clone(),
        }
    }
}

impl From<Complaint> for ConfigError {
    fn from(complaint: Complaint) -> Self {
        Self::Invalid(Box::new(complaint))
    }
}

/// What is wrong at one place of the file. Displayed as `file:line: message`, then the line with a caret under it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Complaint {
    /// The file, as the operator named it.
    pub file: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    /// Characters before the place, on its line.
    pub column: usize,
    /// Characters to mark; at least 1.
    pub width: usize,
    /// What is wrong.
    pub message: String,
    /// The line as it stands.
    pub source_line: String,
    /// The remedy.
    pub help: String,
}

impl Complaint {
    /// A complaint about the bytes `span` of `text`. Only the first line of the span is shown.
    pub(super) fn new(file: &Path, text: &str, span: Range<usize>, message: String, help: String) -> Self {
        let at = floor_boundary(text, span.start);
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let marked_end = floor_boundary(text, span.end).clamp(at, line_end);
        Self {
            file: file.to_owned(),
            line: text[..at].matches('\n').count() + 1,
            column: text[line_start..at].chars().count(),
            width: text[at..marked_end].chars().count().max(1),
            message,
            source_line: text[line_start..line_end].trim_end().to_owned(),
            help,
        }
    }
}

/// The last character boundary of `text` that is not after `index`.
fn floor_boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.line.to_string().len();
        // Tabs are kept before the caret, so that it stands under its place whatever their width.
        let indent: String =
            self.source_line.chars().take(self.column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "{}:{}: {}", self.file.display(), self.line, self.message)?;
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{} | {}", self.line, self.source_line)?;
        write!(f, "{:gutter$} | {indent}{}", "", "^".repeat(self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        Complaint::new(Path::new("f"), text, span, "bad".into(), "fix".into()).to_string()
    }

    #[test]
    fn the_place_is_marked() {
        assert_eq!(shown("a = 1\n\tb = 22\n", 11..13), "f:2: bad\n  |\n2 | \tb = 22\n  | \t    ^^");
    }

    #[test]
    fn a_place_at_the_end_of_the_file_is_shown() {
        assert_eq!(shown("a =", 3..3), "f:1: bad\n  |\n1 | a =\n  |    ^");
        assert_eq!(shown("", 0..0), "f:1: bad\n  |\n1 | \n  | ^");
    }

    #[test]
    fn a_span_over_lines_marks_the_first() {
        assert_eq!(shown("ab\ncd\n", 1..5), "f:1: bad\n  |\n1 | ab\n  |  ^");
    }

    #[test]
    fn a_span_beyond_or_inside_a_character_does_not_panic() {
        assert_eq!(shown("ä", 1..99), "f:1: bad\n  |\n1 | ä\n  | ^");
    }
}
