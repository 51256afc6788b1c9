//! An open trace: the requests of any format as one stream.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Wrong;
use crate::format::{self, Format};
use crate::input::{Compression, decompressed};
use crate::read::parquet::Opened;
use crate::source::{Source, Stop};
use crate::volumes::Volumes;
use crate::{Request, TraceError, Volume};

/// Requests read at a time for the iterator: few enough to stay in the processor's cache.
const BATCH: usize = 1024;

/// Open a trace, plain or compressed (gzip, zstd, xz, bzip2): format and compression are told by the content.
pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
    Trace::open(path, None)
}

/// The requests of a trace, in the order of the file, whatever their times. Ends after the first error.
pub struct Trace {
    file: String,
    format: Format,
    compression: Compression,
    source: Box<dyn Source>,
    volumes: Volumes,
    batch: std::vec::IntoIter<Request>,
    /// The error that the source ended with, told after what came before it.
    stopped: Option<Stop>,
    ended: bool,
}

impl Trace {
    /// Open a file in the given format; `None` to tell it from the content.
    pub fn open(path: impl AsRef<Path>, format: Option<Format>) -> Result<Self, TraceError> {
        let file = path.as_ref().display().to_string();
        match File::open(path).and_then(|raw| Opened::new(raw, format)) {
            Ok(Opened::Table(source)) => Ok(Self::of(file, Format::Parquet, Compression::None, source)),
            Ok(Opened::Other(raw)) => Self::new(file, raw, format),
            Err(source) => Err(TraceError::Open { file, source }),
        }
    }

    /// The trace in `raw`, which may be compressed. `file` is how errors call it.
    pub fn new(
        file: impl Into<String>,
        raw: impl Read + Send + 'static,
        format: Option<Format>,
    ) -> Result<Self, TraceError> {
        let file = file.into();
        let (compression, input) = match decompressed(raw) {
            Ok(told) => told,
            Err(source) => return Err(TraceError::Open { file, source }),
        };
        let (format, source) = format::source(&file, input, format)?;
        Ok(Self::of(file, format, compression, source))
    }

    fn of(file: String, format: Format, compression: Compression, source: Box<dyn Source>) -> Self {
        let (volumes, batch) = (Volumes::default(), Vec::new().into_iter());
        Self { file, format, compression, source, volumes, batch, stopped: None, ended: false }
    }

    /// The format it is in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How the file is compressed, if it is: `gzip`, `zstd`, `xz` or `bzip2`.
    pub fn compression(&self) -> Option<&'static str> {
        self.compression.name()
    }

    /// The volumes met so far: those that [`Request::volume`] counts.
    pub fn volumes(&self) -> &[Volume] {
        self.volumes.list()
    }

    /// Append the next requests to `out`, at most `max` and at least one; false at the end. The way for
    /// whole traces: the iterator costs more per request.
    pub fn read_batch(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, TraceError> {
        if let Some(stop) = self.stopped.take() {
            return Err(stop.of(&self.file, self.format));
        }
        if self.ended {
            return Ok(false);
        }
        let before = out.len();
        // Sources add the two.
        let max = max.clamp(1, usize::MAX - before);
        let read = self.source.read(&mut self.volumes, out, max);
        self.ended = read.is_err() || out.len() == before;
        match read {
            Err(stop) if out.len() == before => Err(stop.of(&self.file, self.format)),
            Err(stop) => {
                self.stopped = Some(stop);
                Ok(true)
            }
            Ok(()) => Ok(out.len() > before),
        }
    }
}

impl Iterator for Trace {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(request) = self.batch.next() {
            return Some(Ok(request));
        }
        let mut batch = Vec::with_capacity(BATCH);
        match self.read_batch(&mut batch, BATCH) {
            Ok(false) => None,
            Ok(true) => {
                self.batch = batch.into_iter();
                self.batch.next().map(Ok)
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stop {
    fn of(self, file: &str, format: Format) -> TraceError {
        let file = file.to_owned();
        match self {
            Self::Io(place, source) => TraceError::Read { file, place, source },
            Self::Wrong(place, Wrong { field, found, expected }) => {
                TraceError::Syntax { file, format, place, field, found, expected }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn plain(text: &'static str) -> Trace {
        Trace::new("t", Cursor::new(text), Some(Format::Plain)).unwrap()
    }

    #[test]
    fn batches_are_appended_and_end() {
        let mut trace = plain("R 1\nR 2\nR 3\n");
        let mut requests = Vec::new();
        assert!(trace.read_batch(&mut requests, 2).unwrap());
        assert_eq!(requests.len(), 2);
        // None is too few to ask for: one comes.
        assert!(trace.read_batch(&mut requests, 0).unwrap());
        assert_eq!(requests.len(), 3);
        assert!(!trace.read_batch(&mut requests, 2).unwrap());
        assert!(!trace.read_batch(&mut requests, 2).unwrap());
        assert_eq!(requests.iter().map(|request| request.offset).collect::<Vec<_>>(), [4096, 8192, 12_288]);
    }

    #[test]
    fn no_number_of_requests_is_too_many_to_ask_for() {
        for format in Format::ALL {
            let mut trace = Trace::new("t", Cursor::new(""), Some(format)).unwrap();
            let mut requests =
                vec![Request { time_ns: 0, volume: 0, kind: crate::RequestKind::Read, offset: 0, len: 0 }];
            assert!(!trace.read_batch(&mut requests, usize::MAX).unwrap(), "{format}");
        }
        let mut requests = Vec::new();
        assert!(plain("R 1\nR 2\n").read_batch(&mut requests, usize::MAX).unwrap());
        assert_eq!(requests.len(), 2);
    }

    #[test]
    fn an_error_comes_once_after_the_requests_before_it() {
        let mut requests = Vec::new();
        let mut trace = plain("R 1\nR 2\nX 3\nR 4\n");
        assert!(trace.read_batch(&mut requests, 10).unwrap());
        assert_eq!(requests.len(), 2);
        let error = trace.read_batch(&mut requests, 10).unwrap_err().to_string();
        assert_eq!(error, r#"t: line 3: kind is "X", expected R or W (format plain)"#);
        assert!(!trace.read_batch(&mut requests, 10).unwrap());
        assert!(plain("X 3\n").read_batch(&mut requests, 10).is_err());
        assert_eq!(requests.len(), 2);
    }

    #[test]
    fn the_iterator_gives_more_than_a_batch() {
        let text = Cursor::new("R 1\n".repeat(3 * BATCH + 1));
        let mut trace = Trace::new("t", text, None).unwrap();
        assert_eq!(trace.by_ref().filter(Result::is_ok).count(), 3 * BATCH + 1);
        assert_eq!(trace.volumes(), [Volume::new("", 0)]);
    }
}
