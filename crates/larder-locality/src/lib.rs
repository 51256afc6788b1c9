//! What accesses say about the cache that could serve them: how many hits and SSD writes a cache of each size would bring,
//! reuse distances and request classes, from one pass over the accesses.
//!
//! - A [`lane::Lane`] is one kind of LRU cache of all sizes at once: a [`lane::Model`] (the stack of a [`CurvePolicy`])
//!   tells of each access the smallest cache that serves it, a [`lane::Record`] counts that by size, exactly
//!   ([`lane::Exact`]) or for a sample ([`lane::Scaled`]). Lanes take blocks as [`Blocks`] numbers them.
//! - [`PolicyCurves`] are the counts of a lane over the cache size: what a simulation of each size would count.
//! - [`Analyzer`] gives the same from a sample of the blocks, in bounded memory and at any time, and [`EpochFindings`] at the
//!   end of every epoch.
//! - [`Bank`] runs scaled-down caches, for policies that are no stacks.
//! - [`recs`] tells how much of a cache that is there already is in use.
//!
//! ```
//! use larder_locality::lane::{Exact, Lane, LruModel};
//! use larder_locality::{Blocks, CurvePolicy, Op, Piece, PolicyCurves, Stretch};
//!
//! // Blocks 7, 8 and 9 are read, then 7 again, then 8 is written: one request each.
//! let (mut blocks, mut numbers) = (Blocks::new(1), Vec::new());
//! blocks.number_all(&[7, 8, 9, 7, 8], &mut numbers)?;
//! let request = |(end, op)| Piece { op, last: true, end };
//! let pieces: Vec<_> = (1..).zip([Op::Read, Op::Read, Op::Read, Op::Read, Op::Write]).map(request).collect();
//!
//! let mut lane = Lane::new(LruModel::new(), Exact::new());
//! lane.process(&Stretch { blocks: &numbers, pieces: &pieces });
//! let curves = PolicyCurves::new(CurvePolicy::WriteBack, lane.counted());
//!
//! // Two other blocks were accessed since block 7, and since block 8: a cache of two blocks is too small.
//! assert_eq!((curves.at(2).read_hits, curves.at(3).read_hits), (0, 1));
//! assert_eq!((curves.at(3).write_hits, curves.at(3).ssd_writes()), (1, 4));
//! # Ok::<(), larder_locality::TooManyBlocks>(())
//! ```
//!
//! # Words
//!
//! The reuse distance of an access is the number of *other* distinct blocks accessed since the last access to the same
//! block: an LRU cache of `distance + 1` blocks still holds it. The traditional distance (TRD) is recorded for every
//! access to a known block, the useful one (URD; ECI-Cache, section 4) only for those that a cache can serve: reads of
//! a block that was read or written before. Both are counted over all accesses.
//!
//! [`HitCurve`] is the hit ratio over cache size that follows from useful distances (ECI-Cache, Algorithm 2).
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
pub use block::{block_key, block_keys, blocks_of};
pub use blocks::{Blocks, MAX_BLOCKS, TooManyBlocks};
pub use class::{AccessKind, ClassCounts, RequestClass};
pub use curve::HitCurve;
pub use curves::{AtSize, Counted, CurvePolicy, PolicyCurves};
pub use findings::{DistanceHistogram, EpochFindings};
pub use sampled::{Analyzer, AnalyzerConfig, BlockRequest, PoliciesDiffer, SampledCounts};
pub use sampling::Sampling;
pub use size_curve::SizeCurve;
pub use stretch::{BlockId, Op, Piece, Stretch};
