//! The least and the most that each tenant may get, and what is set aside for those of whom nothing is known.

use super::memory::Known;
use crate::bounds::{Bounds, bounds};
use crate::shares::share_out;
use crate::{Constraints, Tenant};

/// The bounds of each tenant. The least sizes never exceed the cache together.
///
/// A tenant of which nothing is known gets an equal part of the cache, as far as the others' least sizes leave it, and no less
/// than its own. One that has come lately, to others, keeps its equal part for a whole epoch, if it has it: what it accesses for the first time says nothing about whether it
/// will come back. (Not under a budget of writes: a partition that must not be empty writes.)
pub(super) fn ranges(tenants: &[Tenant<'_>], known: &[&Known], constraints: &Constraints) -> Vec<Bounds> {
    let cache = u64::from(constraints.cache_blocks);
    let mut ranges = bounds(tenants, cache);
    let part = cache / (tenants.len() as u64).max(1);
    let unknown = |at: usize| known[at].says_nothing_of(&tenants[at]);
    let mut sizes: Vec<u64> = ranges.iter().map(|range| range.least).collect();
    let unlimited = constraints.ssd_writes_per_second.is_none();
    let fair = |(at, range): (usize, &Bounds)| match (unknown(at), unlimited && known[at].fresh) {
        (true, _) => range.clamp(part),
        (false, true) => range.clamp(part.min(tenants[at].quota_blocks.into())),
        (false, false) => range.least,
    };
    let fair: Vec<u64> = ranges.iter().enumerate().map(fair).collect();
    share_out(cache - sizes.iter().sum::<u64>(), &mut sizes, &fair);
    for (at, size) in sizes.into_iter().enumerate() {
        let most = if unknown(at) { size } else { ranges[at].most };
        ranges[at] = Bounds { least: size, most };
    }
    ranges
}
