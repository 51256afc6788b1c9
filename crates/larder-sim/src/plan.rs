//! What is to be simulated: the runs, and what they have in common.

use std::num::NonZero;

use larder_policy::spec::CachingSpec;

use crate::{BlockSize, Span, WritePolicy};

/// Blocks of the largest cache: 4 TiB in blocks of 4 KiB. Policies count blocks, and what they remember beside them, in 32 bits.
pub const CACHE_BLOCKS_MAX: u64 = 1 << 30;

/// Runs in one pass: each holds its own cache.
pub const RUNS_MAX: usize = 10_000;

/// One run: a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpec {
    /// Which block may enter, and which leaves.
    pub caching: CachingSpec,
    /// What a write does.
    pub write: WritePolicy,
    /// How many blocks it holds; from 1 to [`CACHE_BLOCKS_MAX`].
    pub blocks: u64,
}

/// Many runs over one trace.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runs.
    pub runs: Vec<RunSpec>,
    /// The unit of caching.
    pub block: BlockSize,
    /// What comes before counting starts; the caches fill in it.
    pub warmup: Span,
    /// The length of the intervals whose counts are kept apart.
    pub every: Option<Span>,
    /// How many reads and writes to take; all, where absent.
    pub limit: Option<u64>,
    /// For the policies that draw lots; each run draws from it alone.
    pub seed: u64,
    /// Threads to work on it.
    pub threads: NonZero<usize>,
}

impl Plan {
    /// These runs in blocks of 4 KiB over the whole trace, without a warm-up or intervals, on one thread.
    pub fn new(runs: Vec<RunSpec>) -> Self {
        Self {
            runs,
            block: BlockSize::DEFAULT,
            warmup: Span::Requests(0),
            every: None,
            limit: None,
            seed: 1,
            threads: NonZero::<usize>::MIN,
        }
    }
}
