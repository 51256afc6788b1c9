//! The least and the most that each tenant may get, and what is set aside for those of whom nothing is known.
//!
//! Where SSD writes have a price, a tenant of which little is worth it gets little more than that would take ([`most_at_price`]): its curves tell what it would gain were all written that it asks for.

use super::memory::Known;
use crate::bounds::{Bounds, bounds};
use crate::shares::share_out;
use crate::{Constraints, Tenant};

/// A tenant gets no more than so many times what its blocks would take at the price of SSD writes,
const TIMES: f64 = 2.0;

/// and such a part of the cache besides.
const BESIDES: f64 = 0.1;

/// The most that a tenant can use at the price of SSD writes, among others that can use the rest. One for which a promise is wanted gets what that takes.
pub(super) fn most_at_price(tenant: &Tenant<'_>, cache_blocks: u32) -> Option<u64> {
    let held = tenant.found()?.held_at_price.filter(|_| !tenant.goals.is_promise())?;
    Some((TIMES * f64::from(held) + BESIDES * f64::from(cache_blocks)) as u64)
}

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
        let priced = most_at_price(&tenants[at], constraints.cache_blocks).unwrap_or(u64::MAX);
        let most = if unknown(at) { size } else { ranges[at].most.min(priced).max(size) };
        ranges[at] = Bounds { least: size, most };
    }
    ranges
}
