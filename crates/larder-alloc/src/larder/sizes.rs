//! The least and the most that each tenant may get, and what is set aside for those of whom nothing is known.

use super::memory::Known;
use crate::bounds::{Bounds, bounds};
use crate::shares::share_out;
use crate::{Constraints, Tenant};

/// The bounds of each tenant. The least sizes never exceed the cache together.
///
/// A tenant of which nothing is known gets an equal part of the cache, as far as the others' least sizes leave it, and no less
/// than its own.
pub(super) fn ranges(tenants: &[Tenant<'_>], known: &[&Known], constraints: &Constraints) -> Vec<Bounds> {
    let cache = u64::from(constraints.cache_blocks);
    let mut ranges = bounds(tenants, cache);
    let part = cache / (tenants.len() as u64).max(1);
    let unknown = |at: usize| known[at].says_nothing_of(&tenants[at]);
    let mut sizes: Vec<u64> = ranges.iter().map(|range| range.least).collect();
    let fair = ranges.iter().enumerate();
    let fair: Vec<u64> =
        fair.map(|(at, range)| if unknown(at) { range.clamp(part) } else { range.least }).collect();
    share_out(cache - sizes.iter().sum::<u64>(), &mut sizes, &fair);
    for (at, size) in sizes.into_iter().enumerate().filter(|&(at, _)| unknown(at)) {
        ranges[at] = Bounds { least: size, most: size };
    }
    ranges
}
