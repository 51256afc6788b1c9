//! What was found: runs by workload and by the size of the cache.

use larder_alloc::Goals;
use larder_sim::BlockSize;
use larder_sim::tenants::TenantsResult;

use super::workload::Workload;

/// The runs of one workload at one size of the cache, one for each allocator.
pub struct Group<'a> {
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// The runs.
    pub runs: &'a [TenantsResult],
}

/// The runs of one workload.
pub struct Found<'a> {
    /// Who shared the cache.
    pub workload: &'a Workload,
    /// What was wanted for each of them.
    pub goals: Vec<Goals>,
    /// Bytes of all tenants' blocks together, where they were counted.
    pub footprint_bytes: Option<u64>,
    /// The runs, by size.
    pub groups: Vec<Group<'a>>,
}

impl Found<'_> {
    /// The cache as a share of the footprint, where that is known.
    pub fn share(&self, cache_bytes: u64) -> Option<f64> {
        self.footprint_bytes.filter(|&bytes| bytes > 0).map(|bytes| cache_bytes as f64 / bytes as f64)
    }

    /// All runs.
    pub fn runs(&self) -> impl Iterator<Item = &TenantsResult> {
        self.groups.iter().flat_map(|group| group.runs)
    }
}

/// Some blocks in bytes.
pub fn bytes(result: &TenantsResult, blocks: u64) -> u64 {
    blocks.saturating_mul(result.block_bytes.into())
}

/// The blocks that footprints are counted in, unless something else is said.
pub const FOOTPRINT_BLOCK: BlockSize = BlockSize::DEFAULT;
