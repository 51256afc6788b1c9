//! Workloads as a line of text: what stands on a command line where a trace could.

mod fields;

use std::fmt;
use std::str::FromStr;

use super::{ClassMix, ClassShares, Generator, MixError, MixWorkload, Pattern, Workload, WorkloadError};
use crate::{Request, Volume};
use fields::{BYTES, COUNT, DISTANCES, Fields, NUMBER, TIME};

/// Bytes of a block where nothing else is said.
const BLOCK_BYTES: u32 = 4096;

/// Nanoseconds between requests where nothing else is said.
const INTERVAL_NS: u64 = 1_000_000;

/// A workload of one volume, written as phases joined by `+`, each a pattern with its fields:
///
/// ```text
/// zipf:theta=1.0,blocks=2000000,requests=20000000,read=0.7,seed=1
/// gaussian:centre=0.5,deviation=0.1,blocks=100000,requests=1000000 + sequential:blocks=100000,requests=100000
/// mix:cr=0.1,cw=0.1,rar=0.3,raw=0.2,war=0.2,waw=0.1,requests=100000,distance=uniform(1,1000)
/// ```
///
/// | pattern | its own fields |
/// | --- | --- |
/// | `zipf`, `ycsb` | `theta` ([`Pattern::Zipf`], [`Pattern::Ycsb`]) |
/// | `uniform`, `sequential` | |
/// | `gaussian` | `centre`, `deviation`: shares of the blocks ([`Pattern::Gaussian`]) |
/// | `loop` | `length`: blocks (all, if absent) |
/// | `mix` | `cr`, `cw`, `rar`, `raw`, `war`, `waw`: shares (0 if absent); `distance`; `footprint`: blocks |
///
/// The `distance` of a mix is `fixed(d)`, `uniform(low,high)`, `exponential(mean)`, `lognormal(median,sigma)` or
/// `histogram(d:weight,...)` ([`Distances`](crate::Distances)); its `footprint` is what the shares give, if absent.
///
/// Every phase has `requests`; all but `mix` have `blocks`, how many blocks the pattern chooses from. What may be left
/// out: `read` (share of reads: 1; for `mix`, what the classes give), `block` (size of a block and of a request:
/// 4KiB), `first` (the block at which the phase begins: 0), `interval` (time between requests: 1ms), `seed` (the
/// number of the phase, from 1).
///
/// Each phase draws from its own seed, and a mix knows nothing of the phases before it; the time runs on.
#[derive(Clone, Debug)]
pub struct GeneratorSpec {
    text: String,
    phases: Vec<Phase>,
}

impl GeneratorSpec {
    /// The requests, for volume 0, from the first. The same text gives the same requests.
    pub fn open(&self) -> Generated {
        Generated { phases: self.phases.clone().into_iter(), current: None, start_ns: 0 }
    }

    /// How many requests there are.
    pub fn requests(&self) -> u64 {
        self.phases.iter().fold(0, |sum, phase| sum.saturating_add(phase.requests))
    }

    /// The volumes that [`Request::volume`] counts: one, `gen_0`.
    pub fn volumes(&self) -> Vec<Volume> {
        vec![Volume::new("gen", 0)]
    }
}

impl fmt::Display for GeneratorSpec {
    /// The text that it was made from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for GeneratorSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let phase =
            |(number, text)| Phase::new(number, text).map_err(|problem| SpecError { phase: number, problem });
        let phases = (1..).zip(fields::split(text, '+')).map(phase).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), phases })
    }
}

/// Why a text describes no workload.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("phase {phase}: {problem}")]
pub struct SpecError {
    /// Which phase, from 1.
    pub phase: u64,
    /// What is wrong with it.
    pub problem: SpecProblem,
}

/// What is wrong with a phase.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecProblem {
    /// No such pattern.
    #[error("{found:?} is no pattern; there are zipf, ycsb, uniform, gaussian, sequential, loop and mix")]
    Pattern {
        /// What stood before the colon.
        found: String,
    },
    /// Not a field.
    #[error("{found:?} is not of the form key=value")]
    Field {
        /// What stood between the commas.
        found: String,
    },
    /// The pattern has no such key.
    #[error("there is no key {found:?} here; there are {known}")]
    Key {
        /// What stood there.
        found: String,
        /// The keys that the pattern has.
        known: String,
    },
    /// The same key a second time.
    #[error("{key} is given twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// A key that cannot be left out.
    #[error("{key} is missing")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Not a value for its key.
    #[error("{key} is {found:?}, expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What stood there.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The values do not make a workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The values do not make a mix.
    #[error(transparent)]
    Mix(#[from] MixError),
}

/// The requests of a [`GeneratorSpec`].
#[derive(Clone, Debug)]
pub struct Generated {
    phases: std::vec::IntoIter<Phase>,
    current: Option<Phase>,
    /// When the phase began.
    start_ns: u64,
}

impl Iterator for Generated {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        loop {
            if let Some(phase) = &mut self.current {
                if let Some(request) = phase.stream.next() {
                    return Some(Request {
                        time_ns: self.start_ns.saturating_add(request.time_ns),
                        ..request
                    });
                }
                self.start_ns = self.start_ns.saturating_add(phase.length_ns);
            }
            self.current = Some(self.phases.next()?);
        }
    }
}

#[derive(Clone, Debug)]
struct Phase {
    stream: Stream,
    requests: u64,
    length_ns: u64,
}

#[derive(Clone, Debug)]
enum Stream {
    Pattern(Generator),
    Mix(Box<ClassMix>),
}

impl Stream {
    fn next(&mut self) -> Option<Request> {
        match self {
            Self::Pattern(generator) => generator.next(),
            Self::Mix(mix) => mix.next(),
        }
    }
}

/// The fields that every phase has.
struct Common {
    requests: u64,
    block_bytes: u32,
    first_byte: u64,
    interval_ns: u64,
    read_share: Option<f64>,
    seed: u64,
}

impl Common {
    fn take(number: u64, fields: &mut Fields) -> Result<Self, SpecProblem> {
        let block_bytes = fields.optional("block", BYTES)?.unwrap_or(BLOCK_BYTES);
        Ok(Self {
            requests: fields.required("requests", COUNT)?,
            block_bytes,
            // What is too much is found to be outside of any volume.
            first_byte: fields.optional("first", COUNT)?.unwrap_or(0).saturating_mul(block_bytes.into()),
            interval_ns: fields.optional("interval", TIME)?.unwrap_or(INTERVAL_NS),
            read_share: fields.optional("read", NUMBER)?,
            seed: fields.optional("seed", COUNT)?.unwrap_or(number),
        })
    }
}

impl Phase {
    fn new(number: u64, text: &str) -> Result<Self, SpecProblem> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let (name, mut fields) = (name.trim(), Fields::new(rest)?);
        if name == "mix" {
            return mix(number, fields);
        }
        let blocks = fields.optional("blocks", COUNT)?;
        let pattern = pattern(name, blocks, &mut fields)?;
        let blocks = blocks.ok_or(SpecProblem::Missing { key: "blocks" })?;
        let common = Common::take(number, &mut fields)?;
        fields.finish()?;
        let workload = Workload {
            pattern,
            requests: common.requests,
            first_byte: common.first_byte,
            bytes: blocks.saturating_mul(common.block_bytes.into()),
            request_bytes: common.block_bytes,
            read_share: common.read_share.unwrap_or(1.0),
            interval_ns: common.interval_ns,
        };
        Ok(Self::of(Stream::Pattern(Generator::new(&[workload], 0, common.seed)?), &common))
    }

    fn of(stream: Stream, common: &Common) -> Self {
        let length_ns = common.requests.saturating_mul(common.interval_ns);
        Self { stream, requests: common.requests, length_ns }
    }
}

fn pattern(name: &str, blocks: Option<u64>, fields: &mut Fields) -> Result<Pattern, SpecProblem> {
    Ok(match name {
        "zipf" => Pattern::Zipf { theta: fields.required("theta", NUMBER)? },
        "ycsb" => Pattern::Ycsb { theta: fields.required("theta", NUMBER)? },
        "uniform" => Pattern::Uniform,
        "gaussian" => Pattern::Gaussian {
            centre: fields.required("centre", NUMBER)?,
            deviation: fields.required("deviation", NUMBER)?,
        },
        "sequential" => Pattern::Sequential,
        "loop" => Pattern::Loop { places: fields.optional("length", COUNT)?.or(blocks).unwrap_or(0) },
        _ => return Err(SpecProblem::Pattern { found: name.to_owned() }),
    })
}

fn mix(number: u64, mut fields: Fields) -> Result<Phase, SpecProblem> {
    let mut share = |key| Ok::<_, SpecProblem>(fields.optional(key, NUMBER)?.unwrap_or(0.0));
    let shares = ClassShares {
        cr: share("cr")?,
        cw: share("cw")?,
        rar: share("rar")?,
        raw: share("raw")?,
        war: share("war")?,
        waw: share("waw")?,
    };
    let footprint = fields.optional("footprint", COUNT)?;
    let distances = fields.required("distance", DISTANCES)?;
    let common = Common::take(number, &mut fields)?;
    fields.finish()?;
    let workload = MixWorkload {
        shares,
        footprint_blocks: footprint.unwrap_or((shares.first() * common.requests as f64).round() as u64),
        requests: common.requests,
        read_share: common.read_share,
        distances,
        block_bytes: common.block_bytes,
        first_byte: common.first_byte,
        interval_ns: common.interval_ns,
    };
    let mix = ClassMix::new(&workload, 0, common.seed)?;
    Ok(Phase::of(Stream::Mix(Box::new(mix)), &common))
}

#[cfg(test)]
mod tests;
