//! Traces opened with a meter that tells how much of the file has been read, for long passes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_sim::Source;
use larder_trace::{Format, GeneratorSpec, Request, Trace, TraceError, Volume};

use crate::input::{Input, TraceName};
use crate::problem::Problem;

/// How a Parquet file begins. It is read from its end, so there is no telling how far one has come.
const PARQUET: [u8; 4] = *b"PAR1";

/// How much of a file has been read.
#[derive(Clone, Debug)]
pub struct Meter {
    done: Arc<AtomicU64>,
    /// Bytes in the file, compressed as they are.
    pub total: u64,
}

impl Meter {
    /// Bytes read.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// An opened trace.
pub struct Opened {
    /// The requests.
    pub source: Requests,
    /// How the trace is written.
    pub format: String,
    /// How far it has been read, where that can be told.
    pub meter: Option<Meter>,
}

/// The requests of a trace.
pub enum Requests {
    /// Of a file under a meter.
    Metered(Box<Trace>),
    /// Of anything else.
    Other(Input),
}

impl Source for Requests {
    type Error = TraceError;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, TraceError> {
        match self {
            Self::Metered(trace) => trace.read_batch(out, max),
            Self::Other(input) => input.read_batch(out, max),
        }
    }
}

impl Source for &mut Requests {
    type Error = TraceError;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, TraceError> {
        (**self).read(out, max)
    }
}

impl Requests {
    /// The volumes met so far: those that [`Request::volume`] counts.
    pub fn volumes(&self) -> &[Volume] {
        match self {
            Self::Metered(trace) => trace.volumes(),
            Self::Other(input) => input.volumes(),
        }
    }
}

/// Open a trace from its beginning.
pub fn open(name: &TraceName, format: Option<Format>) -> Result<Opened, Problem> {
    // A file that cannot be read tells so when it is opened without a meter.
    if let Some((file, meter)) = name.path().and_then(|path| metered(path).ok().flatten()) {
        let trace = Trace::new(name.to_string(), file, format)?;
        let format = trace.format().to_string();
        return Ok(Opened { source: Requests::Metered(Box::new(trace)), format, meter: Some(meter) });
    }
    let input = name.open(format)?;
    let format = input.format().map_or_else(|| "generated".into(), |format| format.to_string());
    Ok(Opened { source: Requests::Other(input), format, meter: None })
}

/// True for stdin, and for a pipe: what is there, but gives its requests only once.
pub fn is_passing(name: &TraceName) -> bool {
    !name.is_repeatable() && name.path().is_none_or(Path::exists)
}

/// What to call a trace where there is little room: a file without its folder.
pub fn short_name(name: &TraceName) -> String {
    match name.path().and_then(Path::file_name) {
        Some(file) => file.display().to_string(),
        None => name.to_string(),
    }
}

/// Requests in the trace, where that can be told without reading it.
pub fn requests(name: &TraceName) -> Option<u64> {
    let spec: GeneratorSpec = name.to_string().strip_prefix("gen:")?.parse().ok()?;
    Some(spec.requests())
}

/// The file with a meter; none for a pipe, a device or a table.
fn metered(path: &Path) -> io::Result<Option<(Metered<File>, Meter)>> {
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let mut magic = Vec::new();
    File::open(path)?.take(PARQUET.len() as u64).read_to_end(&mut magic)?;
    if magic == PARQUET {
        return Ok(None);
    }
    let file = File::open(path)?;
    let meter = Meter { done: Arc::default(), total: file.metadata()?.len() };
    Ok(Some((Metered { inner: file, done: Arc::clone(&meter.done) }, meter)))
}

/// Counts what is read.
struct Metered<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::io::Write;

    #[test]
    fn a_meter_reaches_the_end_of_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for at in 0..10_000 {
            writeln!(file, "{at},vm,0,Read,4096,4096,0").unwrap();
        }
        let name = TraceName::from(OsString::from(file.path()));
        let mut opened = open(&name, None).unwrap();
        let (meter, mut requests) = (opened.meter.unwrap(), Vec::new());
        assert!(meter.done() < meter.total);
        while opened.source.read(&mut requests, 512).unwrap() {}
        assert_eq!((requests.len(), opened.format.as_str()), (10_000, "msr"));
        assert_eq!(meter.done(), meter.total);
        assert_eq!(short_name(&name), file.path().file_name().unwrap().to_str().unwrap());
    }

    #[test]
    fn a_workload_tells_its_requests() {
        let name = TraceName::from(OsString::from(
            "gen:uniform:blocks=9,requests=50 + sequential:blocks=9,requests=5",
        ));
        assert_eq!((requests(&name), short_name(&name)), (Some(55), name.to_string()));
        let opened = open(&name, None).unwrap();
        assert!(opened.meter.is_none() && opened.format == "generated");
        assert_eq!(requests(&TraceName::from(OsString::from("-"))), None);
    }
}
