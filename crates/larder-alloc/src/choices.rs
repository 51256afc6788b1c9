//! What a tenant may be given, as a plain list: so many blocks in such a mode, what it writes to the SSD, what its
//! requests then wait in all. All that the operator wants for the tenant is in the list already; what is left is to
//! take one choice of each tenant under the size of the cache and the budget of writes ([`crate::optimal::solve`]).

use crate::menu::{Menu, Point};
use crate::staircase::Staircase;
use crate::{ConfiguredPolicy, Constraints, Findings, Reservation, Tenant};

/// One size in one mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Blocks of the partition.
    pub blocks: u64,
    /// Blocks written to the SSD per second.
    pub writes: f64,
    /// What the tenant's requests wait: its weight times its requests per second times their mean latency. Weighted
    /// seconds per second. `larder` adds what the change to it costs.
    pub cost: f64,
    /// The way that is gone: an index into [`Menu::ways`], or [`Self::NO_WAY`].
    pub way: u32,
}

impl Choice {
    /// The way of a tenant of which nothing is known: it goes on as it is.
    pub const NO_WAY: u32 = u32::MAX;

    /// `blocks` for a tenant of which nothing is known.
    pub fn unknown(blocks: u64) -> Self {
        Self { blocks, writes: 0.0, cost: 0.0, way: Self::NO_WAY }
    }
}

/// The choices of one tenant: at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    /// In rising order of blocks, and of writes among those of equal blocks. For none is there another that is at least as good in
    /// all that counts: blocks, cost and, under a budget of writes, those.
    pub choices: Vec<Choice>,
}

impl Candidates {
    /// Those of the choices that no other is at least as good as. Writes count only where there is a `budget`.
    ///
    /// Without one, the fewer writes decide among equals; of wholly equal ones the first stays. Quick where the list consists of few lists in order, one behind the other.
    pub fn new(mut choices: Vec<Choice>, budget: bool) -> Self {
        let order = |a: &Choice, b: &Choice| {
            let (writes, cost) = (a.writes.total_cmp(&b.writes), a.cost.total_cmp(&b.cost));
            a.blocks.cmp(&b.blocks).then(if budget { writes.then(cost) } else { cost.then(writes) })
        };
        choices.sort_by(order);
        let mut front = Staircase::default();
        choices.retain(|choice| front.admit(if budget { choice.writes } else { 0.0 }, choice.cost));
        Self { choices }
    }
}

/// A reservation that the whole cache does not meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unmet {
    /// What was promised.
    pub promised: Reservation,
    /// The best of its kind that can be had, were there no other tenant.
    pub best: Reservation,
    /// The smallest partition that brings it, in blocks.
    pub blocks: u64,
}

/// The choices of a tenant, from its menu.
///
/// - A choice has from the tenant's minimum to its maximum of blocks, and no more than the cache. The maximum goes before
///   the minimum. A partition that the tenant would be content with below its minimum is paid, and used, as the minimum.
/// - Of a tenant with a configured write policy only the ways with that policy are looked at.
/// - Of a tenant with a reservation only what meets it ([`latency_limit`]).
/// - A tenant without findings, or without a way to go, has one choice: its minimum, at no cost ([`Choice::unknown`]).
///
/// # Errors
/// [`Unmet`] where no choice meets the reservation.
pub fn of(tenant: &Tenant<'_>, menu: &Menu, constraints: &Constraints) -> Result<Candidates, Unmet> {
    let most = tenant.goals.max_blocks.unwrap_or(u32::MAX).min(constraints.cache_blocks).into();
    let least = u64::from(tenant.min_blocks).min(most);
    let unknown = Candidates { choices: vec![Choice::unknown(least)] };
    let Some(findings) = tenant.found() else { return Ok(unknown) };
    let points = || points(tenant, menu, least, most);
    if points().next().is_none() {
        return Ok(unknown);
    }
    let limit = tenant.goals.reservation.map_or(f64::INFINITY, |promised| latency_limit(promised, findings));
    let per_second = tenant.goals.weight * menu.requests_per_second;
    let met = points().filter(|(_, point)| point.latency <= limit);
    let choices: Vec<_> = met
        .map(|(way, point)| Choice {
            blocks: point.blocks,
            writes: point.ssd_writes,
            cost: per_second * point.latency,
            way,
        })
        .collect();
    match tenant.goals.reservation {
        Some(promised) if choices.is_empty() => Err(unmet(promised, points(), findings, least)),
        _ => Ok(Candidates::new(choices, constraints.ssd_writes_per_second.is_some())),
    }
}

/// The points of the ways that the tenant may go, from `least` to `most` blocks, way by way.
pub(crate) fn points<'a>(
    tenant: &Tenant<'_>,
    menu: &'a Menu,
    least: u64,
    most: u64,
) -> impl Iterator<Item = (u32, Point)> + 'a {
    let configured = tenant.configured_policy;
    let allowed = move |write| match configured {
        ConfiguredPolicy::Auto => true,
        ConfiguredPolicy::Fixed(policy) => policy == write,
    };
    let ways = (0u32..).zip(&menu.ways).filter(move |(_, way)| allowed(way.mode.write));
    ways.flat_map(move |(index, way)| {
        let from = way.points.partition_point(|point| point.blocks <= least);
        let until = way.points.partition_point(|point| point.blocks <= most);
        let smallest = Point { blocks: least, ..way.at(least) };
        let larger = way.points[from..until.max(from)].iter().copied();
        std::iter::once(smallest).chain(larger).map(move |point| (index, point))
    })
}

/// The highest mean latency, in seconds, at which the tenant has what it was promised.
///
/// Requests per second are its outstanding requests by their mean latency (Little's law). How many it has outstanding is what it
/// had in the epoch, its requests per second times their measured mean latency, and one at least. Centaur's equation 2,
/// `IOPS = IOPS_disk / MR`, is the same where hits take no time: `MR` requests of each wait for the disk, which
/// has them all outstanding.
pub fn latency_limit(promised: Reservation, findings: &Findings) -> f64 {
    match promised {
        Reservation::Latency(seconds) => seconds,
        Reservation::Iops(iops) => outstanding(findings) / iops,
    }
}

/// Requests that the tenant had outstanding in the mean, 1 at least.
pub fn outstanding(findings: &Findings) -> f64 {
    let measured = &findings.measured;
    let waited = measured.mean_latency().unwrap_or(0.0) * measured.requests() as f64;
    let seconds = if findings.measured_seconds > 0.0 { findings.measured_seconds } else { findings.seconds };
    if seconds > 0.0 { (waited / seconds).max(1.0) } else { 1.0 }
}

/// What can be had in the place of what was promised. There is at least one point.
fn unmet(
    promised: Reservation,
    points: impl Iterator<Item = (u32, Point)>,
    findings: &Findings,
    least: u64,
) -> Unmet {
    let order = |a: &Point, b: &Point| a.latency.total_cmp(&b.latency).then(a.blocks.cmp(&b.blocks));
    let fastest = points.map(|(_, point)| point).min_by(order);
    let (latency, blocks) = fastest.map_or((0.0, least), |point| (point.latency, point.blocks));
    let best = match promised {
        Reservation::Latency(_) => Reservation::Latency(latency),
        Reservation::Iops(_) => Reservation::Iops(outstanding(findings) / latency),
    };
    Unmet { promised, best, blocks }
}

#[cfg(test)]
mod tests;
