//! What a tenant's accesses say about the cache it could use: request classes and exact reuse distances.
//!
//! The reuse distance of an access is the number of *other* distinct blocks accessed since the last access to the same
//! block: an LRU cache of `distance + 1` blocks still holds it. The traditional distance (TRD) is recorded for every
//! access to a known block, the useful one (URD; ECI-Cache, section 4) only for those that a cache can serve: reads of
//! a block that was read or written before. Both are counted over all accesses.
//!
//! [`Analyzer`] observes a sample of the accesses as they come, and gives curves at any time, and [`EpochFindings`] at the
//! end of every epoch; [`HitCurve`] is the hit ratio over cache size that follows from those (ECI-Cache, Algorithm 2).
//!
//! The crate is pure: no clock, no I/O, and the same accesses always give the same findings.

pub mod bank;
pub mod lane;
pub mod recs;

mod block;
mod blocks;
mod class;
mod curve;
mod curves;
mod findings;
mod sampled;
mod sampling;
mod size_curve;
mod stretch;
mod timeline;

pub use bank::{Bank, BankCurve, BankError, Reach};
pub use block::{block_key, blocks_of};
pub use blocks::{Blocks, MAX_BLOCKS, TooManyBlocks};
pub use class::{AccessKind, ClassCounts, RequestClass};
pub use curve::HitCurve;
pub use curves::{AtSize, Counted, CurvePolicy, PolicyCurves};
pub use findings::{DistanceHistogram, EpochFindings};
pub use sampled::{Analyzer, AnalyzerConfig, BlockRequest, PoliciesDiffer, SampledCounts};
pub use sampling::Sampling;
pub use size_curve::SizeCurve;
pub use stretch::{BlockId, Op, Piece, Stretch};
