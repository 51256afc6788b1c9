//! How an allocator's system is run where the plan says otherwise.

use larder_alloc::{Layout, Population, Profile};

use super::super::TenantsPlan;
use crate::BlockSize;

/// How an allocator's system is run here.
pub(super) fn profile(plan: &TenantsPlan, theirs: Profile) -> Profile {
    let caching = &plan.caching;
    let epoch_seconds = caching.epoch_seconds.filter(|_| !theirs.own_epoch).unwrap_or(theirs.epoch_seconds);
    let population = match theirs.population {
        Population::Batched { seconds } => Population::Batched {
            seconds: caching
                .mover_seconds
                .or(caching.epoch_seconds.map(|epoch| epoch / 5.0))
                .unwrap_or(seconds),
        },
        Population::OnDemand => Population::OnDemand,
    };
    let layout = match (theirs.layout, caching.partitioned) {
        (Layout::Combined { .. }, Some(partitioned)) => Layout::Combined { partitioned },
        (layout, _) => layout,
    };
    let mut mode = theirs.mode;
    mode.caching = caching.caching.unwrap_or(mode.caching);
    mode.write = caching.write.unwrap_or(mode.write);
    let block_bytes = caching.block.map_or(theirs.block_bytes, BlockSize::bytes);
    Profile { layout, population, mode, block_bytes, epoch_seconds, ..theirs }
}
