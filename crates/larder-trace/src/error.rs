//! What can be wrong with a trace, told so that a person can find the place and mend it.

use std::io;

use crate::{Format, Place, RequestKind, Volume};

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
    /// The content is in no format that is known.
    #[error(
        "{file}: the content fits none of the trace formats ({}); it begins with {found:?}; if it is in one of \
         them, name it",
        crate::format::names()
    )]
    Unknown {
        /// The trace.
        file: String,
        /// What it begins with.
        found: String,
    },
    /// Reading failed further on: the device, or damaged or truncated compressed data.
    #[error("{file}: cannot be read after {place}: {source}")]
    Read {
        /// The trace.
        file: String,
        /// The last place that could be read.
        place: Place,
        /// Why.
        source: io::Error,
    },
    /// A line or a record is not what the format demands.
    #[error("{file}: {place}: {field} is {found:?}, expected {expected} (format {format})")]
    Syntax {
        /// The trace.
        file: String,
        /// The format that it was named to be in, or that its content told.
        format: Format,
        /// Where it stands.
        place: Place,
        /// The part of the line or record.
        field: &'static str,
        /// What stood there (its beginning where it is long).
        found: String,
        /// What the format demands.
        expected: &'static str,
    },
}

impl TraceError {
    /// A trace that begins so, in no format that is known.
    pub(crate) fn unknown(file: &str, start: &[u8]) -> Self {
        let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
        Self::Unknown { file: file.to_owned(), found: quoted(line) }
    }
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
        Self { field, found: quoted(found), expected }
    }
}

/// The beginning of a field, as it is put into errors.
fn quoted(found: &[u8]) -> String {
    // A character takes at most four bytes: more need not be looked at.
    let text = String::from_utf8_lossy(&found[..found.len().min((QUOTED_CHARS_MAX + 1) * 4)]);
    let mut quoted: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if text.chars().count() > QUOTED_CHARS_MAX {
        quoted.push('…');
    }
    quoted
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Writing failed.
    #[error("the trace cannot be written: {0}")]
    Io(#[from] io::Error),
    /// There is no writer for the format.
    #[error("traces are not written in the format {0}, but in {formats}", formats = crate::TraceWriter::FORMATS.map(Format::as_str).join(", "))]
    Format(Format),
    /// The format goes back in its output, which is a stream.
    #[error("a trace in the format {0} is written to a file, not to a pipe, and not compressed")]
    Streamed(Format),
    /// The format has no such requests.
    #[error("a trace in the format {format} holds no request of the kind {}", kind.as_str())]
    Kind {
        /// The format.
        format: Format,
        /// The kind of the request.
        kind: RequestKind,
    },
    /// The format has no name for the volume.
    #[error("the volume {volume} has no name in the format {format}: {why}")]
    Name {
        /// The format.
        format: Format,
        /// The volume.
        volume: Volume,
        /// The rule for names that it breaks.
        why: &'static str,
    },
    /// A number is too large for the format.
    #[error("a trace in the format {format} holds no {field} of {value}, {most} at most")]
    Range {
        /// The format.
        format: Format,
        /// What the number is.
        field: &'static str,
        /// The number.
        value: u64,
        /// The largest one.
        most: u64,
    },
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
}
