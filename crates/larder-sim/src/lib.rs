//! Trace-driven simulation of an SSD cache: what a cache of a given size under given policies would bring, and what it would cost the SSD.
//!
//! [`simulate`] takes many runs (replacement × admission × write policy × size, [`RunSpec`]) over a trace in one pass, on several threads; the same policy code as
//! the running daemon's decides. [`survey`] only tells what a trace holds. [`analyze`] tells what LRU caches of every size would do, and what the accesses are like.
//!
//! # The model
//!
//! A request is cut into blocks, which are accessed one after the other. A request *hits* if all of its blocks hit; one of zero bytes has none, so it hits.
//!
//! | access | resident | absent |
//! | --- | --- | --- |
//! | read | `read_hits` | `backing_reads`; enters clean if admitted (`fills`), but not under `wo` |
//! | write, `wb` or `wo` | `write_hits`, `guest_writes`; dirty now | enters dirty if admitted (`guest_writes`), else `backing_writes` |
//! | write, `wt` | `write_hits`, `guest_writes`, `backing_writes` | `backing_writes`; enters clean if admitted (`guest_writes`) |
//! | write, `wt-noalloc` | `write_hits`, `guest_writes`, `backing_writes` | `backing_writes` |
//! | write, `ro` | `invalidations`, `backing_writes`; leaves; no hit | `backing_writes` |
//!
//! * A block that enters a full cache makes another leave (`evictions`); a dirty one is written to the backing first (`dirty_evictions`, `backing_writes`).
//! * The SSD is written at every fill and every write of a guest that goes to it; what a policy keeps in memory costs no writes.
//! * A write of a part of a block counts as one of the whole block, and needs no read of the rest.
//! * A discard makes the blocks that it covers whole leave, dirty ones unwritten (`discarded`). A flush is only counted.
//! * Dirty blocks are written back when they are evicted, and at no other time; what is dirty at the end stays so (`dirty_blocks`).
//! * The admission policy hears of every hit, and is asked for each absent block that would enter.
//! * Requests are taken in the trace's order, whatever their times say; where time is asked for (warm-up, intervals), it is the latest so far.
//! * Counting starts after the warm-up, with the caches as they are then.
//!
//! Memory is bounded by the caches and the trace's footprint (eight bytes a block), whatever the trace's length, but for Belady's policy, which has to know all
//! accesses.

mod analysis;
mod analyze;
mod batch;
mod block;
mod build;
mod clock;
mod feed;
mod footprint;
mod foresight;
mod plan;
mod pool;
mod result;
mod run;
mod simulate;
mod source;
pub mod tenants;

pub use analysis::{AddressMap, Analysis, AnalysisPlan, Region, Window};
pub use analyze::analyze;
pub use block::{BlockSize, BlockSizeError, TooManySegments};
pub use clock::Span;
pub use feed::Summary;
pub use foresight::Futures;
pub use larder_locality::{BankCurve, BankError};
pub use larder_policy::trial::Counters;
pub use larder_policy::write_policy::{UnknownWritePolicy, WritePolicy};
pub use plan::{CACHE_BLOCKS_MAX, Plan, RUNS_MAX, RunSpec};
pub use result::{IntervalResult, RunResult, SsdWrites, Totals};
pub use simulate::{Progress, SERIES_ROWS_MAX, SimError, Simulated, Survey, simulate, survey};
pub use source::{Requests, Source};
