//! What every format's reader is to the rest: a source of requests, in batches.

use std::{fmt, io};

use crate::Request;
use crate::error::Wrong;
use crate::volumes::Volumes;

/// Where in a trace something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, from 1.
    Line(u64),
    /// A byte of the (decompressed) file, from 0.
    Byte(u64),
    /// A row of a table, from 0.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// Why a source gives no more requests.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The trace is not what its format demands.
    Wrong(Place, Wrong),
    /// Reading failed after this place.
    Io(Place, io::Error),
}

/// A trace in one format, read from the beginning to the end once.
///
/// Memory stays bounded whatever the input: a line, a record or (Parquet) a page at a time.
pub(crate) trait Source: Send {
    /// Append the next requests to `out`, at most `max`, in the order of the file; nothing at the end. On an
    /// error, what came before it has been appended. Not called again after the end or an error.
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop>;
}
