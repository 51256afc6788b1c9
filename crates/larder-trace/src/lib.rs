//! Block requests: reading traces, writing them, and generating them.
//!
//! [`open`] reads a trace in any [`Format`] as a stream of [`Request`]s, plain or compressed with gzip, zstd, xz or
//! bzip2; format and compression are told by the content, not by the name. [`TraceWriter`] writes one. [`Generator`] makes seeded workloads: the same phases
//! and the same seed give the same requests. [`ClassMix`] makes one with given shares of the six request classes, and
//! [`GeneratorSpec`] either from a line of text.
//!
//! Readers hold one line or record (of a Parquet table, a page of each column) and the names of the volumes, whatever the length of the trace. What a trace holds can make
//! them return an error, which names the file, the line or byte, what stood there and what was expected; never a panic.

mod error;
mod format;
mod generate;
mod input;
mod read;
mod request;
mod rng;
mod source;
mod trace;
mod volumes;
mod write;
mod zipf;

pub use error::{TraceError, WriteError};
pub use format::{Format, UnknownFormat};
pub use generate::{
    ClassMix, ClassShares, Distances, Generated, Generator, GeneratorSpec, MixError, MixWorkload, Pattern,
    SpecError, SpecProblem, Workload, WorkloadError, two_phase,
};
pub use request::{Request, RequestKind, Volume};
pub use rng::Rng;
pub use source::Place;
pub use trace::{Trace, open};
pub use write::{FioWriter, MsrWriter, OracleGeneralWriter, ParquetWriter, TraceWriter};
pub use zipf::Zipf;
