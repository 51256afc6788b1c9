//! What a daemon says to a client that records: JSON, a line each; and the client's side of it.
//!
//! The client's line is `record`, or `record NAME …` for the requests to some tenants or volumes only. The daemon answers with a [`Begun`], or says why not (`error`, `help`). Then come
//! [`Line`]s: how the daemon stands, what it decides, and a round of requests several times a second, also where there were none. When the client closes its sending side one more round follows, which is the last.

use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::{Decided, Setup};
use crate::control_socket::{AskError, connect};

/// The longest line that a client takes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// How long a client waits for a line: the daemon sends several a second, unless a reactor is stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first line: it has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Version of the daemon.
    pub recording: String,
}

/// Each later line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// A volume, before the first request to it.
    Volume(VolumeLine),
    /// How the daemon stands, before anything else; not over HTTP.
    Setup(Box<Setup>),
    /// A decision, where all tenants do not fit in several lines; likewise.
    Decided(Decided),
    /// Requests.
    Round(Round),
}

/// What a number stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeLine {
    /// The number, from 0 on in the order of the lines.
    pub number: u32,
    /// Whose volume it is.
    pub tenant: String,
    /// Its name.
    pub name: String,
}

/// Requests in the order of their times, none of them earlier than those of the round before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Everything up to this time has been told, in nanoseconds since the recording began.
    pub until_ns: u64,
    /// Requests, to any volume, that are missing so far, since this daemon or the client was too slow for them.
    pub dropped: u64,
    /// Nothing more comes.
    pub last: bool,
    /// The requests.
    pub requests: Vec<Recorded>,
}

/// A request: nanoseconds since the recording began, number of the volume, what was asked, first byte, number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded(pub u64, pub u32, pub RecordedKind, pub u64, pub u64);

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Flush.
    Flush,
    /// Discard.
    Discard,
    /// Write zeroes.
    Zero,
}

/// The line of a request to record what goes to these tenants and volumes; all where there are none.
pub fn request_line(names: &[String]) -> String {
    names.iter().fold("record".to_owned(), |line, name| line + " " + name)
}

/// The lines of a daemon that records for us.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Lines {
    /// Ask the daemon behind a control socket; its first line, which may be a refusal, and those to come.
    ///
    /// # Errors
    /// When nobody listens there, or says nothing.
    pub fn ask(path: &Path, request: &str) -> Result<(String, Self), AskError> {
        let stream = connect(path, request)?;
        let failed = |source| AskError::NoAnswer { path: path.to_owned(), source };
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut lines = Self { path: path.to_owned(), stream: BufReader::new(stream) };
        let first = lines.line()?.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        Ok((first, lines))
    }

    /// The next line; `None` where the daemon has ended.
    ///
    /// # Errors
    /// When none comes, or one that is not understood.
    pub fn read(&mut self) -> Result<Option<Line>, AskError> {
        let Some(text) = self.line()? else { return Ok(None) };
        let line = serde_json::from_str(&text).map_err(|error| self.failed(error.into()))?;
        Ok(Some(line))
    }

    /// Have the daemon come to the end.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn finish(&self) -> Result<(), AskError> {
        self.stream.get_ref().shutdown(Shutdown::Write).map_err(|error| self.failed(error))
    }

    fn line(&mut self) -> Result<Option<String>, AskError> {
        let mut text = String::new();
        let read = (&mut self.stream).take(LINE_BYTES_MAX).read_line(&mut text);
        match read.map_err(|error| self.failed(error))? {
            // What a daemon that was killed had begun to say is no line.
            _ if !text.ends_with('\n') => Ok(None),
            _ => Ok(Some(text)),
        }
    }

    fn failed(&self, source: io::Error) -> AskError {
        AskError::NoAnswer { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_documented() {
        let requests = vec![Recorded(5, 0, RecordedKind::Zero, 4096, 512)];
        let round = Line::Round(Round { until_ns: 9, dropped: 0, last: false, requests });
        let text = r#"{"round":{"until_ns":9,"dropped":0,"last":false,"requests":[[5,0,"zero",4096,512]]}}"#;
        assert_eq!(serde_json::to_string(&round).expect("JSON"), text);
        assert_eq!(serde_json::from_str::<Line>(text).expect("a line"), round);
        assert_eq!(request_line(&["a".into(), "b/c".into()]), "record a b/c");
    }
}
