//! Block requests: reading traces, writing them, and generating them.
//!
//! [`open`] reads an MSR Cambridge trace as a stream of [`Request`]s, plain or compressed with gzip or zstd (told by
//! the first bytes, not by the name). [`MsrWriter`] writes one. [`Generator`] makes seeded workloads: the same phases
//! and the same seed give the same requests.
//!
//! Readers hold one line and the names of the volumes, whatever the length of the trace. What a trace holds can make
//! them return an error, which names the file, the line, what stood there and what was expected; never a panic.

mod error;
mod generate;
mod input;
mod msr;
mod request;
mod rng;
mod zipf;

pub use error::{TraceError, WriteError};
pub use generate::{Generator, Pattern, Workload, WorkloadError, two_phase};
pub use msr::{MsrReader, MsrWriter, open};
pub use request::{Request, RequestKind, Volume};
pub use rng::Rng;
pub use zipf::Zipf;
