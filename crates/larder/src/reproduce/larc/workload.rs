//! What the experiment runs on: traces that are named, traces that are known by name in a folder, or generated workloads.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use larder_trace::GeneratorSpec;

use super::options::Options;
use super::stream::{BelowPageCache, Joined, Limited, SingleBlocks, Stream};
use crate::input::TraceName;
use crate::problem::Problem;
use crate::reproduce::guests::none_known;

/// The name of what changes its popularity suddenly, as in the paper.
const CHANGE: &str = "ws_con";

/// The traces that are known by name, and how they are called. Whether reads or writes dominate in one is counted, not listed.
const KNOWN: [(&str, &str); 9] = [
    ("web", "recorded/web.csv.zst"),
    ("rocksdb", "recorded/rocksdb.csv.zst"),
    ("backup", "recorded/backup.csv.zst"),
    ("dtrs", "mspc_DTRS1K.trace.zst"),
    ("websearch", "mqsim_wsrch-small.trace.zst"),
    ("web_1", "msr_web_1.csv.gz"),
    ("pgbench", "recorded/pgbench.csv.zst"),
    ("mail", "recorded/mail.csv.zst"),
    ("fileserver", "recorded/fileserver.csv.zst"),
];

/// The two of them that follow each other in `ws_con`: nearly all of the paper's are reads, so the two with most reads that bring new popular blocks.
const KNOWN_CHANGE: [&str; 2] = ["recorded/web.csv.zst", "recorded/rocksdb.csv.zst"];

/// Blocks of the page cache above the generated workloads: 8 MiB, less than the smallest cache below it ("the second level SSD cache is always larger than the
/// first level page cache", section V-C).
const PAGE_CACHE_BLOCKS: u32 = 2048;

/// The generated workloads: 98 % and 20 % reads of a volume of 1 GiB, about the paper's `ads` (97.59 %) and `homes` (19.15 %).
const GENERATED: [(&str, &str); 2] = [
    ("zipf-reads", "zipf:theta=0.9,blocks=262144,requests=4000000,read=0.98,seed=1"),
    ("zipf-writes", "zipf:theta=0.9,blocks=262144,requests=2000000,read=0.2,seed=2"),
];

/// The same law over the same kind of volume, its popular blocks elsewhere: by half a volume, so that half of the places are common.
const GENERATED_CHANGE: [&str; 2] = [
    "zipf:theta=0.9,blocks=262144,requests=3000000,read=0.9999,seed=3",
    "zipf:theta=0.9,blocks=262144,requests=3000000,read=0.9999,seed=4,first=131072",
];

/// One workload of the experiment.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How it is called.
    pub name: String,
    /// What it consists of.
    pub parts: Parts,
}

/// What a workload consists of.
#[derive(Clone, Debug)]
pub enum Parts {
    /// One stream of requests.
    One(Part),
    /// Two, one after the other on the same disks: a sudden change of popularity.
    Two(Part, Part),
}

/// A stream of requests.
#[derive(Clone, Debug)]
pub enum Part {
    /// A trace.
    Trace(TraceName),
    /// A generated workload below a page cache.
    Generated(Box<GeneratorSpec>),
}

impl Part {
    /// Open it; at most `limit` reads and writes.
    pub fn open(&self, limit: Option<u64>) -> Result<Stream, Problem> {
        Ok(Stream(match self {
            Self::Trace(trace) => Box::new(Limited::new(trace.open(None)?, limit)),
            Self::Generated(spec) => Box::new(BelowPageCache::new(spec.open(), PAGE_CACHE_BLOCKS, limit)),
        }))
    }
}

impl Workload {
    fn trace(name: impl Into<String>, trace: TraceName) -> Self {
        Self { name: name.into(), parts: Parts::One(Part::Trace(trace)) }
    }

    fn change(first: Part, second: Part) -> Self {
        Self { name: CHANGE.into(), parts: Parts::Two(first, second) }
    }

    /// Open it; at most `limit` reads and writes of each part. Two parts come in requests of one block each.
    pub fn open(&self, limit: Option<u64>) -> Result<Stream, Problem> {
        match &self.parts {
            Parts::One(part) => part.open(limit),
            Parts::Two(first, second) => {
                let joined = Joined::new(first.open(limit)?, second.open(limit)?);
                Ok(Stream(Box::new(SingleBlocks::new(joined))))
            }
        }
    }

    /// True if it comes from a generator of this program's, not from a trace that was named.
    pub fn is_generated(&self) -> bool {
        self.parts.each().any(|part| matches!(part, Part::Generated(_)))
    }

    fn traces(&self) -> impl Iterator<Item = &TraceName> {
        self.parts.each().filter_map(|part| match part {
            Part::Trace(trace) => Some(trace),
            Part::Generated(_) => None,
        })
    }
}

impl Parts {
    /// One after the other.
    pub fn each(&self) -> impl Iterator<Item = &Part> {
        let (first, second) = match self {
            Self::One(part) => (part, None),
            Self::Two(first, second) => (first, Some(second)),
        };
        [first].into_iter().chain(second)
    }
}

impl fmt::Display for Part {
    /// Where it comes from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(trace) => trace.fmt(f),
            Self::Generated(spec) => write!(f, "gen:{spec} below a page cache of {PAGE_CACHE_BLOCKS} blocks"),
        }
    }
}

impl fmt::Display for Parts {
    /// Where it comes from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(part) => part.fmt(f),
            Self::Two(first, second) => write!(f, "{first}, then {second}"),
        }
    }
}

/// The workloads that are asked for; generated ones where none are.
pub fn choose(options: &Options) -> Result<Vec<Workload>, Problem> {
    let mut workloads = options.folder.as_deref().map_or(Ok(Vec::new()), known)?;
    workloads.extend(options.traces.iter().map(|named| Workload::trace(&named.name, named.trace.clone())));
    if let [first, second] = &options.change[..] {
        // It takes the place of the one that is known.
        workloads.retain(|workload| matches!(workload.parts, Parts::One(_)));
        workloads.push(Workload::change(Part::Trace(first.clone()), Part::Trace(second.clone())));
    }
    if workloads.is_empty() {
        return generated();
    }
    check(&workloads)?;
    Ok(workloads)
}

/// What is known in a folder, in the order of the list.
fn known(folder: &Path) -> Result<Vec<Workload>, Problem> {
    let trace = |file: &str| {
        Some(folder.join(file)).filter(|path| path.exists()).map(|path| path.into_os_string().into())
    };
    let found = KNOWN.into_iter().filter_map(|(name, file)| Some(Workload::trace(name, trace(file)?)));
    let mut workloads: Vec<_> = found.collect();
    if let [Some(first), Some(second)] = KNOWN_CHANGE.map(trace) {
        workloads.push(Workload::change(Part::Trace(first), Part::Trace(second)));
    }
    if workloads.is_empty() {
        let files = KNOWN.map(|(_, file)| file);
        return Err(none_known(
            folder,
            &files,
            "`larder reproduce larc` takes others with --trace NAME=TRACE",
        ));
    }
    Ok(workloads)
}

fn generated() -> Result<Vec<Workload>, Problem> {
    let part = |text: &str| -> Result<Part, Problem> {
        let spec = text
            .parse()
            .map_err(|error| Problem::new(error, "tell the authors: this workload is built in"))?;
        Ok(Part::Generated(Box::new(spec)))
    };
    let mut workloads = Vec::new();
    for (name, text) in GENERATED {
        workloads.push(Workload { name: name.into(), parts: Parts::One(part(text)?) });
    }
    let [first, second] = GENERATED_CHANGE;
    workloads.push(Workload::change(part(first)?, part(second)?));
    Ok(workloads)
}

fn check(workloads: &[Workload]) -> Result<(), Problem> {
    let mut names = BTreeSet::new();
    for workload in workloads {
        if !names.insert(workload.name.as_str()) {
            let what = format!("two traces are called {}", workload.name);
            return Err(Problem::new(what, "give each --trace a NAME of its own"));
        }
        // Each is read twice, the first time for its footprint. What is not there is told when it is opened.
        let piped = |trace: &&TraceName| !trace.is_repeatable() && trace.path().is_none_or(Path::exists);
        if let Some(trace) = workload.traces().find(piped) {
            let what = format!("{trace} can be read only once, but its footprint must be known beforehand");
            return Err(Problem::new(what, "give a trace in a file"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn chosen(arguments: &[&str]) -> Result<Vec<String>, String> {
        let line = Line::parse_from([&["larc"], arguments].concat());
        match choose(&line.options) {
            Ok(workloads) => Ok(workloads.iter().map(|w| format!("{}: {}", w.name, w.parts)).collect()),
            Err(problem) => Err(problem.to_string()),
        }
    }

    #[test]
    fn generated_workloads_are_valid_and_told_as_such() {
        let workloads = generated().expect("workloads");
        assert!(workloads.iter().all(Workload::is_generated));
        let names: Vec<_> = workloads.iter().map(|workload| workload.name.as_str()).collect();
        assert_eq!(names, ["zipf-reads", "zipf-writes", "ws_con"]);
        assert_eq!(chosen(&[]).expect("workloads").len(), 3);
        let mut requests = Vec::new();
        assert!(workloads[2].open(Some(10)).expect("a stream").0.read(&mut requests, 4).expect("requests"));
    }

    #[test]
    fn what_is_named_is_taken() {
        let named = chosen(&["--trace", "a=x.csv", "--trace=b=gen:uniform", "--change", "y", "z"]);
        assert_eq!(named, Ok(vec!["a: x.csv".into(), "b: gen:uniform".into(), "ws_con: y, then z".into()]));
    }

    #[test]
    fn a_folder_is_looked_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |file: &str| folder.path().join(file);
        let text = folder.path().to_str().expect("UTF-8");
        let error = chosen(&["--traces", text]).expect_err("nothing there");
        assert!(error.contains("no trace is there") && error.contains("recorded/web.csv.zst"), "{error}");
        std::fs::create_dir(path("recorded")).expect("a folder");
        for file in ["recorded/web.csv.zst", "recorded/rocksdb.csv.zst", "msr_web_1.csv.gz"] {
            std::fs::write(path(file), "").expect("a file");
        }
        let found = chosen(&["--traces", text, "--change", "y", "z"]).expect("three, and the change");
        let names: Vec<_> =
            found.iter().filter_map(|text| text.split_once(':')).map(|(name, _)| name).collect();
        assert_eq!(names, ["web", "rocksdb", "web_1", "ws_con"]);
        assert_eq!(found[3], "ws_con: y, then z");
        let change = chosen(&["--traces", text]).expect("four").pop().expect("the change");
        assert_eq!(
            change,
            format!("ws_con: {text}/recorded/web.csv.zst, then {text}/recorded/rocksdb.csv.zst")
        );
    }

    #[test]
    fn what_cannot_be_run_on_is_refused() {
        let twice = chosen(&["--trace", "a=x", "--trace", "a=y"]).expect_err("the same name");
        assert!(twice.starts_with("error: two traces are called a\n"), "{twice}");
        let piped = chosen(&["--trace", "a=-"]).expect_err("stdin");
        assert!(piped.starts_with("error: stdin can be read only once"), "{piped}");
    }
}
