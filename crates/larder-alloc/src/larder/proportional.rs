//! Shares: latencies in given proportions.
//!
//! Tenants with shares form a group. It has the blocks that the least total latency gives to its members together, and what
//! nobody gains from; the others keep what that gives them. Within the group the lowest level is sought at which every member's latency
//! times its share comes down to it, each with the smallest size that does: Centaur's goal (section VI-B), with the level found by bisection
//! instead of block by block. Between two points of its curve a tenant is taken to lie on the straight line, but not where the next is another way to run a partition of nearly the same size.
//!
//! A member whose lowest latency lies above the level gets the smallest size that brings it, and one that is below it with its
//! least size stays there: proportions hold among the others.

use super::memory::Known;
use super::solver::Prices;
use crate::optimal::Room;
use crate::{Candidates, Choice, Tenant};

/// Halvings of the range in which the level lies.
const HALVINGS: u32 = 60;
/// Doublings of the price of a write until a group keeps to its part of the budget.
const DOUBLINGS: u32 = 40;
/// Sizes that are closer than this part lie beside each other: what differs between them in another way to run the partition is a step, not a slope.
const BESIDE: u64 = 64;
/// A proportion that is missed by less than this part is kept.
const NEARLY: f64 = 0.01;
/// The price to begin with, unless the plan's is higher: seconds of latency for a write.
const PRICE_MIN: f64 = 1e-9;

/// What a member of the group gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Its index among the tenants.
    pub(super) tenant: usize,
    pub(super) choice: Choice,
    /// What it is to wait, in seconds a request.
    pub(super) latency: f64,
    /// What it would wait in proportion.
    pub(super) wanted: f64,
    pub(super) kept: Kept,
}

/// Whether a member's proportion can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    /// It would have to be faster, and is not with more blocks.
    TooSlow,
    /// It would have to be slower, and is not with the fewest blocks that it may get.
    TooFast,
}

/// One point of a member's curve.
#[derive(Clone, Copy)]
struct Point {
    latency: f64,
    choice: Choice,
}

impl Point {
    /// The next larger size is hardly larger, and another way to run the partition.
    fn is_a_step_from(&self, next: &Choice) -> bool {
        self.choice.way != next.way && (next.blocks - self.choice.blocks) * BESIDE <= next.blocks
    }
}

/// A member's curve: the sizes rise, the latencies fall.
struct Curve {
    tenant: usize,
    share: f64,
    points: Vec<Point>,
}

/// Divide the `room` among the tenants with shares. Empty where there are none, or where no proportions keep to the
/// budget of writes.
pub(super) fn divide(
    tenants: &[Tenant<'_>],
    known: &[&Known],
    lists: &[Candidates],
    room: Room,
    prices: Prices,
) -> Vec<Member> {
    let mut price = 0.0;
    for _ in 0..DOUBLINGS {
        let mut members = level(&curves(tenants, known, lists, price), room.blocks);
        for Member { tenant, choice, .. } in &mut members {
            let way = known[*tenant].menu.ways.get(choice.way as usize);
            choice.writes = way.map_or(0.0, |way| way.at(choice.blocks).ssd_writes);
        }
        let written: f64 = members.iter().map(|member| member.choice.writes).sum();
        let blocks: u64 = members.iter().map(|member| member.choice.blocks).sum();
        if blocks <= room.blocks && room.writes.is_none_or(|most| written <= most) {
            return members;
        }
        price = if price > 0.0 { price * 2.0 } else { prices.write.max(PRICE_MIN) };
    }
    Vec::new()
}

/// Whether a tenant is in the group.
pub(super) fn takes_part(tenant: &Tenant<'_>, known: &Known) -> bool {
    tenant.goals.share.is_some() && tenant.found().is_some() && !known.says_nothing_of(tenant)
}

fn curves(tenants: &[Tenant<'_>], known: &[&Known], lists: &[Candidates], price: f64) -> Vec<Curve> {
    let all = tenants.iter().zip(known).zip(lists).enumerate();
    let members = all.filter(|(_, ((tenant, known), _))| takes_part(tenant, known));
    let curve = |(tenant, ((given, known), list)): (usize, ((&Tenant<'_>, &&Known), &Candidates))| {
        let share = given.goals.share?;
        Some(Curve { tenant, share, points: points(known, list, given.goals.weight, price) })
    };
    members.filter_map(curve).collect()
}

/// The lowest latencies over rising sizes, where a write costs so much.
fn points(known: &Known, list: &Candidates, weight: f64, price: f64) -> Vec<Point> {
    let per_second = (weight * known.menu.requests_per_second).max(f64::MIN_POSITIVE);
    let (mut points, mut best) = (Vec::<Point>::new(), f64::INFINITY);
    for &choice in &list.choices {
        let Some(way) = known.menu.ways.get(choice.way as usize) else { continue };
        let latency = known.factor() * way.at(choice.blocks).latency;
        let worth = latency + price * choice.writes / per_second;
        if worth >= best {
            continue;
        }
        best = worth;
        // Of one size the best; a choice that is slower than a smaller one, but writes less, takes its place.
        while points.last().is_some_and(|last| last.choice.blocks == choice.blocks || last.latency <= latency)
        {
            points.pop();
        }
        points.push(Point { latency, choice });
    }
    points
}

/// The lowest level that the blocks allow.
fn level(curves: &[Curve], blocks: u64) -> Vec<Member> {
    let needed = |level: f64| curves.iter().map(|curve| curve.at(level).choice.blocks).sum::<u64>();
    let highest = curves.iter().filter_map(|curve| Some(curve.points.first()?.latency * curve.share));
    let mut high = highest.fold(0.0, f64::max);
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if needed(middle) <= blocks { high = middle } else { low = middle }
    }
    curves.iter().map(|curve| curve.at(high)).collect()
}

impl Curve {
    /// The smallest size that brings the tenant's latency times its share down to the level.
    fn at(&self, level: f64) -> Member {
        let latency = level / self.share;
        let until = self.points.partition_point(|point| point.latency > latency);
        let member = |choice: Choice, is: f64, kept: Kept| Member {
            tenant: self.tenant,
            choice,
            latency: is,
            wanted: latency,
            kept,
        };
        let reached = self.points.get(until);
        let Some(&Point { latency: lowest, choice }) = reached.or(self.points.last()) else {
            return member(Choice::unknown(0), 0.0, Kept::TooSlow);
        };
        let before = until.checked_sub(1).and_then(|before| self.points.get(before));
        match before.filter(|_| reached.is_some()) {
            // On a step there is the one or the other, whichever is nearer to the level.
            Some(before) if before.is_a_step_from(&choice) => {
                let nearer = if latency * latency > before.latency * lowest {
                    *before
                } else {
                    Point { latency: lowest, choice }
                };
                member(nearer.choice, nearer.latency, Kept::Yes)
            }
            None if reached.is_none() => member(choice, lowest, Kept::TooSlow),
            None if lowest < latency * (1.0 - NEARLY) => member(choice, lowest, Kept::TooFast),
            None => member(choice, lowest, Kept::Yes),
            Some(before) => {
                let part = (before.latency - latency) / (before.latency - lowest);
                let gap = choice.blocks - before.choice.blocks;
                let blocks = before.choice.blocks + ((gap as f64 * part).ceil() as u64).min(gap);
                member(Choice { blocks, ..choice }, latency, Kept::Yes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(blocks: u64, latency: f64, way: u32) -> Point {
        Point { latency, choice: Choice { blocks, way, ..Choice::unknown(blocks) } }
    }

    #[test]
    fn what_keeps_a_member_from_its_proportion_is_told() {
        let points = vec![point(1000, 2.0, 0), point(2000, 1.0, 0)];
        let curve = Curve { tenant: 0, share: 2.0, points };
        let kept = [5.0, 4.01, 4.0, 3.0, 2.0, 1.0].map(|level| curve.at(level).kept);
        assert_eq!(kept, [Kept::TooFast, Kept::Yes, Kept::Yes, Kept::Yes, Kept::Yes, Kept::TooSlow]);
        assert_eq!((curve.at(5.0).wanted, curve.at(5.0).latency), (2.5, 2.0));
    }

    #[test]
    fn another_way_at_nearly_the_same_size_is_a_step_and_no_slope() {
        let points = vec![point(1000, 2.0, 0), point(1919, 1.0, 0), point(1920, 0.8, 1), point(2080, 0.7, 1)];
        let curve = Curve { tenant: 0, share: 1.0, points };
        let got = |level: f64| {
            let Member { choice, latency, .. } = curve.at(level);
            (choice.blocks, choice.way, latency)
        };
        // Nearer to the one, and to the other: neither waits what it would on a line between them.
        assert_eq!((got(0.95), got(0.85)), ((1919, 0, 1.0), (1920, 1, 0.8)));
        // Where sizes lie apart, and within one way, a line it is.
        assert_eq!((got(1.5), got(0.75)), ((1460, 0, 1.5), (2000, 1, 0.75)));
    }
}
