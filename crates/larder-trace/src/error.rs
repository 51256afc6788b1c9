//! What can be wrong with a trace, told so that a person can find the place and mend it.

use std::io;

use crate::RequestKind;

/// Characters of a trace quoted in an error.
const QUOTED_CHARS_MAX: usize = 60;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, or its beginning cannot be read.
    #[error("{file}: cannot be opened: {source}")]
    Open {
        /// The trace.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Reading failed further on: the device, or damaged or truncated compressed data.
    #[error("{file}: cannot be read after line {line}: {source}")]
    Read {
        /// The trace.
        file: String,
        /// Last line that could be read.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// A line is not what the format demands.
    #[error("{file}:{line}: {field} is {found:?}, expected {expected}")]
    Syntax {
        /// The trace.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The part of the line.
        field: &'static str,
        /// What stood there (its beginning where it is long).
        found: String,
        /// What the format demands.
        expected: &'static str,
    },
}

/// What is wrong with a part of a line, before it is known which line of which file that is.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) expected: &'static str,
}

impl Wrong {
    pub(crate) fn new(field: &'static str, found: &[u8], expected: &'static str) -> Self {
        // A character takes at most four bytes: more need not be looked at.
        let text = String::from_utf8_lossy(&found[..found.len().min(QUOTED_CHARS_MAX * 4)]);
        let mut quoted: String = text.chars().take(QUOTED_CHARS_MAX).collect();
        if quoted.len() < found.len() && text.chars().count() > QUOTED_CHARS_MAX {
            quoted.push('…');
        }
        Self { field, found: quoted, expected }
    }

    pub(crate) fn at(self, file: &str, line: u64) -> TraceError {
        let Self { field, found, expected } = self;
        TraceError::Syntax { file: file.to_owned(), line, field, found, expected }
    }
}

/// Why a request could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Writing failed.
    #[error("the trace cannot be written: {0}")]
    Io(#[from] io::Error),
    /// The format has no such requests.
    #[error("an MSR trace holds reads and writes, and no {}", .0.as_str())]
    Kind(RequestKind),
    /// The name would break the line apart.
    #[error(
        "host name {0:?} holds a comma, a line end or a space at its edge, or is empty or longer than 255 bytes"
    )]
    Host(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_binary_field_is_quoted_in_part() {
        assert_eq!(Wrong::new("x", b"short", "y").found, "short");
        let long = Wrong::new("x", &[b'a'; 500], "y").found;
        assert_eq!((long.chars().count(), long.chars().last()), (61, Some('…')));
        assert_eq!(Wrong::new("x", &[0xff, b'1'], "y").found, "\u{fffd}1");
    }

    #[test]
    fn a_syntax_error_names_the_place() {
        let error = Wrong::new("Offset", b"-5", "a whole number of bytes").at("web.csv", 17);
        assert_eq!(error.to_string(), r#"web.csv:17: Offset is "-5", expected a whole number of bytes"#);
    }
}
