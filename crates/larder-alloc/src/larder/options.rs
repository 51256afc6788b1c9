//! What each tenant can be given: its menu, with what measurements correct, what a change costs, and what it was promised.

use super::hysteresis::{Change, Standing};
use super::memory::Known;
use super::solver::corners;
use crate::bounds::Bounds;
use crate::choices::points;
use crate::menu::Point;
use crate::{Candidates, Choice, Constraints, Tenant};

/// More choices than this, over all tenants, are thinned out ([`corners`]).
const MANY: usize = 1 << 19;

/// Whether there are too many choices to look at all together.
pub(super) fn are_many(known: &[&Known]) -> bool {
    known.iter().flat_map(|known| &known.menu.ways).map(|way| way.points.len()).sum::<usize>() > MANY
}

/// The choices of a tenant of which at most `limit` seconds of latency are demanded, thinned out where there are `many`; none where no
/// choice keeps to it.
pub(super) fn options(
    tenant: &Tenant<'_>,
    known: &Known,
    range: Bounds,
    constraints: &Constraints,
    limit: f64,
    many: bool,
) -> Option<Candidates> {
    let choices = choices(tenant, known, range, constraints, limit);
    let budget = constraints.ssd_writes_per_second.is_some();
    (!choices.is_empty()).then(|| match many {
        true => corners(&choices, tenant.quota_blocks.into(), budget),
        false => Candidates::new(choices, budget),
    })
}

/// All choices of a tenant of which at most `limit` seconds of latency are demanded, way by way.
pub(super) fn choices(
    tenant: &Tenant<'_>,
    known: &Known,
    range: Bounds,
    constraints: &Constraints,
    limit: f64,
) -> Vec<Choice> {
    let standing = Standing::of(tenant, known, constraints);
    let per_second = tenant.goals.weight * known.menu.requests_per_second * known.weight * known.factor();
    let changes: Vec<Change> = known.menu.ways.iter().map(|way| standing.to(way)).collect();
    let all = points(tenant, &known.menu, range.least, range.most);
    let met = all.filter(|(_, point)| known.factor() * point.latency <= limit);
    let choice = |(way, point): (u32, Point)| Choice {
        blocks: point.blocks,
        writes: point.ssd_writes,
        cost: per_second * (point.latency + changes[way as usize].cost(&point)),
        way,
    };
    met.map(choice).collect()
}

/// The least latency that the tenant can have, and the smallest partition that brings it.
pub(super) fn best(tenant: &Tenant<'_>, known: &Known, range: Bounds) -> Option<(f64, u64)> {
    let all = points(tenant, &known.menu, range.least, range.most).map(|(_, point)| point);
    let order = |a: &Point, b: &Point| a.latency.total_cmp(&b.latency).then(a.blocks.cmp(&b.blocks));
    all.min_by(order).map(|point| (known.factor() * point.latency, point.blocks))
}
