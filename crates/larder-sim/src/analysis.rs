//! What an analysis of a trace found.

use larder_locality::{BankCurve, ClassCounts, CurvePolicy, PolicyCurves, Sampling};
use larder_policy::spec::CachingSpec;

use crate::{BlockSize, Span, Summary, WritePolicy};

/// What is to be analyzed, and how.
#[derive(Clone, Debug)]
pub struct AnalysisPlan {
    /// The unit of caching.
    pub block: BlockSize,
    /// How many reads and writes to take; all, where absent.
    pub limit: Option<u64>,
    /// Which blocks the curves are made of.
    pub sampling: Sampling,
    /// The caches whose curves are wanted.
    pub policies: Vec<CurvePolicy>,
    /// Length of a mover epoch of [`CurvePolicy::Batched`]: one minute in Centaur (section IX).
    pub mover_epoch: Span,
    /// Caches that obey no stack, for the bank of scaled-down caches.
    pub bank: Vec<(CachingSpec, WritePolicy)>,
    /// Blocks that the bank samples at most: from [`larder_locality::bank::MINI_BLOCKS_MIN`] to [`larder_locality::bank::SAMPLE_BLOCKS_MAX`].
    pub bank_blocks: u32,
    /// Chooses the sampled blocks, and what policies draw lots for.
    pub seed: u64,
    /// Threads to work on it.
    pub threads: std::num::NonZero<usize>,
}

/// What an analysis found. Counts of accesses, classes and curves are estimates where blocks are sampled; those of requests are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// What the trace holds. The footprint is exact without sampling, else an estimate.
    pub summary: Summary,
    /// The unit of caching.
    pub block: BlockSize,
    /// Share of the blocks that the curves are made of, at the end: 1 where all are.
    pub rate: f64,
    /// Blocks that the curves are made of.
    pub sampled_blocks: u64,
    /// Block accesses by request class.
    pub classes: ClassCounts,
    /// One for each policy of the plan, in its order; none twice.
    pub curves: Vec<PolicyCurves>,
    /// One for each cache of the plan's bank, in its order.
    pub bank: Vec<BankCurve>,
    /// The trace in windows of equal length, the last one maybe shorter; at most some hundred. By time where the trace has times, else by requests.
    pub windows: Vec<Window>,
    /// Where requests went, and when.
    pub map: AddressMap,
    /// Where most of the accesses went, the hottest first.
    pub hot: Vec<Region>,
    /// Bytes of memory that the analysis held at its end.
    pub memory_bytes: u64,
}

/// A window of the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Reads and writes of the trace before it.
    pub first_request: u64,
    /// From the trace's first request to its begin.
    pub start_ns: u64,
    /// Its length.
    pub ns: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Block accesses by request class; CR + CW are the blocks not seen in any window before.
    pub classes: ClassCounts,
}

/// A stretch of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The trace's volume.
    pub volume: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Blocks read in it.
    pub reads: u64,
    /// Blocks written in it.
    pub writes: u64,
}

/// Accesses over time (columns) and address (rows). Volumes lie one behind the other along the addresses, each as long as its last access says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddressMap {
    /// Nanoseconds of a column; 0 where the trace has no times, and columns are stretches of requests.
    pub column_ns: u64,
    /// Requests of a column, where the trace has no times.
    pub column_requests: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Columns.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
    /// Blocks read: `reads[row * columns + column]`.
    pub reads: Vec<u64>,
    /// Blocks written, likewise.
    pub writes: Vec<u64>,
    /// Where each volume begins along the addresses: `(volume, bytes)`, in rising order.
    pub volumes: Vec<(u32, u64)>,
}
