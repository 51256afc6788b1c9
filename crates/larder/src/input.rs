//! What a command line names as a trace, opened: a file, `-` for stdin, or `gen:SPEC` for a workload made on the spot.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use larder_trace::{Format, Generated, GeneratorSpec, Request, Trace, TraceError, Volume};

use crate::problem::Problem;

/// What stands before the description of a workload.
const GENERATED: &str = "gen:";

/// A trace as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceName(OsString);

impl From<OsString> for TraceName {
    fn from(name: OsString) -> Self {
        Self(name)
    }
}

impl fmt::Display for TraceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_stdin() { f.write_str("stdin") } else { self.0.display().fmt(f) }
    }
}

impl TraceName {
    /// True for `-`.
    pub fn is_stdin(&self) -> bool {
        self.0 == "-"
    }

    /// True where it gives the same requests each time it is opened: not for stdin and other pipes.
    pub fn is_repeatable(&self) -> bool {
        self.workload().is_some() || self.path().is_some_and(Path::is_file)
    }

    /// The description of a workload after `gen:`.
    fn workload(&self) -> Option<&str> {
        self.0.to_str()?.strip_prefix(GENERATED)
    }

    /// The workload that it describes, where it is no file; none if the description is wrong too, which opening it tells.
    pub fn generator(&self) -> Option<GeneratorSpec> {
        self.workload()?.parse().ok()
    }

    /// The file, where it is one.
    pub fn path(&self) -> Option<&Path> {
        (!self.is_stdin() && self.workload().is_none()).then(|| Path::new(&self.0))
    }

    /// A short name: the file's, up to its first dot.
    pub fn stem(&self) -> String {
        let name = self.path().and_then(Path::file_name).map(OsStr::to_string_lossy);
        let fallback = if self.is_stdin() { "stdin" } else { "gen" };
        match name.as_deref().and_then(|name| name.split('.').find(|part| !part.is_empty())) {
            Some(stem) => stem.to_owned(),
            None => fallback.to_owned(),
        }
    }

    /// Open it, in the given format or, with `None`, in the one that its content tells.
    pub fn open(&self, format: Option<Format>) -> Result<Input, Problem> {
        if let Some(spec) = self.workload() {
            return generated(spec);
        }
        let trace = match self.path() {
            Some(path) => Trace::open(path, format)?,
            None => Trace::new(self.to_string(), io::stdin(), format)?,
        };
        Ok(Input::Trace(Box::new(trace)))
    }
}

fn generated(spec: &str) -> Result<Input, Problem> {
    let spec: GeneratorSpec = spec.parse().map_err(|error| {
        let help = "write it as in gen:zipf:theta=1.0,blocks=100000,requests=1000000,read=0.7";
        Problem::new(format_args!("{GENERATED}{spec}: no such workload: {error}"), help)
    })?;
    let volumes = spec.volumes();
    Ok(Input::Generated(Box::new(spec.open()), volumes))
}

/// An open trace: a stream of requests.
pub enum Input {
    /// Of a file or stdin.
    Trace(Box<Trace>),
    /// Of one tenant in a file.
    OfTenant(Box<Trace>, PartOf),
    /// Made on the spot, for these volumes.
    Generated(Box<Generated>, Vec<Volume>),
    /// In memory, and how many of them are read.
    Held(Arc<[Request]>, usize),
}

/// One tenant's part of a trace.
#[derive(Clone, Debug)]
pub struct PartOf {
    /// Whose.
    pub tenant: String,
    /// What volumes of these names are to count as in [`Request::volume`]; others, if there are any, count above all of these. Without any, volumes count as in the trace.
    pub numbers: Arc<HashMap<String, u16>>,
}

impl PartOf {
    /// A request of the trace, if it is of this part.
    fn take(&self, volumes: &[Volume], request: &Request) -> Option<Request> {
        let volume = volumes.get(request.volume as usize).filter(|volume| volume.tenant == self.tenant)?;
        if self.numbers.is_empty() {
            return Some(*request);
        }
        let above = || request.volume.saturating_add(u32::from(u16::MAX) + 1);
        let number = self.numbers.get(&volume.disk).copied().map_or_else(above, u32::from);
        Some(Request { volume: number, ..*request })
    }
}

impl Input {
    /// The format; none where the requests are generated.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Trace(trace) | Self::OfTenant(trace, _) => Some(trace.format()),
            Self::Generated(..) | Self::Held(..) => None,
        }
    }

    /// The name of the compression, if there is one.
    pub fn compression(&self) -> Option<&'static str> {
        match self {
            Self::Trace(trace) | Self::OfTenant(trace, _) => trace.compression(),
            Self::Generated(..) | Self::Held(..) => None,
        }
    }

    /// The volumes met so far: those that [`Request::volume`] counts; nobody kept them of requests in memory.
    pub fn volumes(&self) -> &[Volume] {
        match self {
            Self::Trace(trace) | Self::OfTenant(trace, _) => trace.volumes(),
            Self::Generated(_, volumes) => volumes,
            Self::Held(..) => &[],
        }
    }

    /// Append the next requests to `out`, at most `max` and at least one; false at the end.
    pub fn read_batch(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, TraceError> {
        match self {
            Self::Trace(trace) => trace.read_batch(out, max),
            Self::OfTenant(trace, part) => read_of(trace, part, out, max),
            Self::Generated(requests, _) => {
                let before = out.len();
                out.extend(requests.by_ref().take(max.max(1)));
                Ok(out.len() > before)
            }
            Self::Held(requests, read) => {
                let end = requests.len().min(read.saturating_add(max.max(1)));
                let more = &requests[*read..end];
                out.extend_from_slice(more);
                *read = end;
                Ok(!more.is_empty())
            }
        }
    }
}

/// Append the next requests of a tenant: at least one, unless there is none any more.
fn read_of(trace: &mut Trace, part: &PartOf, out: &mut Vec<Request>, max: usize) -> Result<bool, TraceError> {
    let mut all = Vec::new();
    let before = out.len();
    while out.len() == before {
        all.clear();
        if !trace.read_batch(&mut all, max)? {
            return Ok(false);
        }
        let volumes = trace.volumes();
        out.extend(all.iter().filter_map(|request| part.take(volumes, request)));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TraceName {
        OsString::from(text).into()
    }

    #[test]
    fn names_tell_files_from_the_rest() {
        for (text, stem, is_file) in [
            ("a/web.csv.gz", "web", true),
            ("web", "web", true),
            ("/x/.hidden.csv", "hidden", true),
            ("..", "gen", true),
            ("-", "stdin", false),
            ("gen:zipf:theta=1", "gen", false),
        ] {
            let name = name(text);
            assert_eq!((name.stem().as_str(), name.path().is_some()), (stem, is_file), "{text}");
        }
        assert_eq!((name("-").to_string(), name("a b").to_string()), ("stdin".into(), "a b".into()));
    }

    #[test]
    fn a_workload_is_read_in_batches() {
        let mut input = name("gen:sequential:blocks=5,requests=5").open(None).unwrap();
        let mut requests = Vec::new();
        assert!(input.read_batch(&mut requests, 3).unwrap());
        assert_eq!(requests.len(), 3);
        assert!(input.read_batch(&mut requests, 3).unwrap());
        assert!(!input.read_batch(&mut requests, 3).unwrap());
        assert_eq!(
            requests.iter().map(|request| request.offset).collect::<Vec<_>>(),
            [0, 4096, 8192, 12288, 16384]
        );
        assert_eq!(
            (input.format(), input.compression(), input.volumes()),
            (None, None, &[Volume::new("gen", 0)][..])
        );
    }

    #[test]
    fn what_is_no_trace_says_what_to_do() {
        let problem = |text| name(text).open(None).err().expect("a problem").to_string();
        let workload = problem("gen:zipf:requests=1");
        assert!(
            workload.starts_with("error: gen:zipf:requests=1: no such workload: phase 1: "),
            "{workload}"
        );
        assert!(workload.contains("\nhelp: write it as in gen:zipf:"), "{workload}");
        let missing = problem("/nonexistent/trace.csv");
        assert!(missing.starts_with("error: /nonexistent/trace.csv: cannot be opened: "), "{missing}");
    }
}
