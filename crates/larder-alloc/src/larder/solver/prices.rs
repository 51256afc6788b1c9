//! The relaxed problem: blocks and writes are bought at a price, and a tenant may take a mixture of two of its choices.
//!
//! At a given price of a write, each tenant's choices form a lower convex hull over blocks; the steepest segments of all
//! hulls are taken first until the blocks are used up, and the slope of the segment that no longer fits is the price of a
//! block. What the mixture costs, less the price of the writes allowed, is a lower bound of what any plan costs (the Lagrangian
//! dual; Sinha and Zoltners 1979 for one resource). The bound is concave in the price of a write: its highest
//! point is found where tangents from both sides meet.

use crate::{Candidates, Choice};

/// What the resources cost, in seconds per second of latency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Of a block.
    pub block: f64,
    /// Of a block written to the SSD per second.
    pub write: f64,
}

impl Prices {
    /// What a choice costs if it has to pay.
    pub fn of(self, choice: &Choice) -> f64 {
        choice.cost + self.block * choice.blocks as f64 + self.write * choice.writes
    }

    /// What the cheapest of some choices costs, if there is one.
    pub fn cheapest(self, choices: &[Choice]) -> Option<f64> {
        choices.iter().map(|choice| self.of(choice)).min_by(f64::total_cmp)
    }
}

/// What a choice is worth in a relaxed problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    /// Factor of its cost: 1, or 0 where writes alone count.
    pub(super) cost: f64,
    /// Price of a write.
    pub(super) write: f64,
}

impl Worth {
    fn of(self, choice: &Choice) -> f64 {
        self.cost * choice.cost + self.write * choice.writes
    }
}

/// The solution of a relaxed problem.
#[derive(Clone, Debug)]
pub(super) struct Relaxed {
    /// For each tenant one of its choices: what the mixture comes to where none is mixed. Fits the cache.
    pub(super) picks: Vec<u32>,
    /// What the mixture is worth.
    pub(super) value: f64,
    /// What the mixture writes.
    pub(super) writes: f64,
    /// The price of a block.
    pub(super) block_price: f64,
}

/// A step along a hull.
struct Segment {
    tenant: u32,
    /// The choice that it leads to.
    to: u32,
    blocks: u64,
    /// Value saved, and the writes added, which may be below 0.
    gain: f64,
    writes: f64,
}

impl Segment {
    fn slope(&self) -> f64 {
        self.gain / self.blocks as f64
    }
}

/// Solve the relaxed problem. None where even the smallest choices exceed the cache.
pub(super) fn relax(lists: &[Candidates], cache: u64, worth: Worth) -> Option<Relaxed> {
    let mut segments = Vec::new();
    let mut corners = Vec::new();
    let mut relaxed =
        Relaxed { picks: Vec::with_capacity(lists.len()), value: 0.0, writes: 0.0, block_price: 0.0 };
    let mut left = cache;
    for (tenant, list) in (0u32..).zip(lists) {
        hull(&list.choices, worth, &mut corners);
        let first = *corners.first()?;
        left = left.checked_sub(first.blocks)?;
        relaxed.value += first.value;
        relaxed.writes += list.choices[first.at as usize].writes;
        relaxed.picks.push(first.at);
        segments.extend(corners.windows(2).map(|pair| {
            let writes = |at: usize| list.choices[pair[at].at as usize].writes;
            Segment {
                tenant,
                to: pair[1].at,
                blocks: pair[1].blocks - pair[0].blocks,
                gain: pair[0].value - pair[1].value,
                writes: writes(1) - writes(0),
            }
        }));
    }
    // The sort keeps the order of equals: a tenant's segments stay in theirs, being ever flatter.
    segments.sort_by(|a, b| b.slope().total_cmp(&a.slope()));
    take(&segments, left, &mut relaxed);
    Some(relaxed)
}

/// The steepest segments first, as far as the blocks reach. A tenant whose next segment does not fit stays where it is.
fn take(segments: &[Segment], mut left: u64, relaxed: &mut Relaxed) {
    let mut stuck = vec![false; relaxed.picks.len()];
    let mut broken = false;
    for segment in segments {
        let tenant = segment.tenant as usize;
        if !broken {
            let part = if segment.blocks > left { left as f64 / segment.blocks as f64 } else { 1.0 };
            relaxed.value -= segment.gain * part;
            relaxed.writes += segment.writes * part;
        }
        if segment.blocks > left && !broken {
            relaxed.block_price = segment.slope();
            broken = true;
        }
        if segment.blocks > left {
            stuck[tenant] = true;
        }
        if !stuck[tenant] {
            left -= segment.blocks;
            relaxed.picks[tenant] = segment.to;
        }
    }
}

/// A corner of a hull.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corner {
    blocks: u64,
    value: f64,
    /// Which choice it is.
    pub(super) at: u32,
}

impl Corner {
    /// Whether the middle one of three lies on or above the line between the others.
    fn is_above(before: Self, middle: Self, after: Self) -> bool {
        (before.value - middle.value) * ((after.blocks - middle.blocks) as f64)
            <= (middle.value - after.value) * ((middle.blocks - before.blocks) as f64)
    }
}

/// The corners of the lower convex hull of the choices' worth over blocks, from the smallest choice to the best one.
pub(super) fn hull(choices: &[Choice], worth: Worth, corners: &mut Vec<Corner>) {
    corners.clear();
    let mut best = f64::INFINITY;
    for (at, choice) in (0u32..).zip(choices) {
        let corner = Corner { blocks: choice.blocks, value: worth.of(choice), at };
        if corner.value >= best {
            continue;
        }
        best = corner.value;
        if corners.last().is_some_and(|last| last.blocks == corner.blocks) {
            corners.pop();
        }
        while let [.., before, last] = corners[..] {
            if !Corner::is_above(before, last, corner) {
                break;
            }
            corners.pop();
        }
        corners.push(corner);
    }
}

/// The highest bound that was found, and the plans met on the way there.
#[derive(Clone, Debug)]
pub(super) struct Dual {
    /// No plan costs less.
    pub(super) bound: f64,
    /// The prices that give the bound.
    pub(super) prices: Prices,
    /// Plans that fit the cache; they may write too much.
    pub(super) plans: Vec<Vec<u32>>,
}

/// Steps towards the highest bound: each is one pass over all choices.
const STEPS_MAX: usize = 24;

/// One price of a write, and what came of it.
#[derive(Clone, Copy)]
struct Tangent {
    price: f64,
    bound: f64,
    /// Writes above the budget.
    slope: f64,
    block_price: f64,
}

impl Tangent {
    fn at(&self, price: f64) -> f64 {
        self.bound + self.slope * (price - self.price)
    }
}

/// Look for the prices with the highest bound. None where even the smallest choices exceed the cache.
pub(super) fn dual(lists: &[Candidates], cache: u64, budget: Option<f64>) -> Option<Dual> {
    let mut plans = Vec::new();
    let mut touch = |price: f64| {
        let relaxed = relax(lists, cache, Worth { cost: 1.0, write: price })?;
        plans.push(relaxed.picks);
        let allowed = budget.unwrap_or(f64::INFINITY);
        let bound = if price > 0.0 { relaxed.value - price * allowed } else { relaxed.value };
        Some(Tangent { price, bound, slope: relaxed.writes - allowed, block_price: relaxed.block_price })
    };
    let mut best = touch(0.0)?;
    if best.slope > 0.0 {
        best = highest(best, first_price(lists), &mut touch)?;
    }
    let prices = Prices { block: best.block_price, write: best.price };
    Some(Dual { bound: best.bound, prices, plans })
}

/// A price of a write to begin with: all latency by all writes.
fn first_price(lists: &[Candidates]) -> f64 {
    let all = lists.iter().flat_map(|list| &list.choices);
    let (cost, writes) = all.fold((0.0, 0.0), |(cost, writes), one| (cost + one.cost, writes + one.writes));
    if cost > 0.0 && writes > 0.0 { cost / writes } else { 1.0 }
}

/// From a price that is too low, raise it until the writes keep to the budget, then close in from both sides.
fn highest(mut low: Tangent, first: f64, touch: &mut impl FnMut(f64) -> Option<Tangent>) -> Option<Tangent> {
    let mut best = low;
    let mut high: Option<Tangent> = None;
    let mut price = first;
    for _ in 0..STEPS_MAX {
        let here = touch(price)?;
        let higher = here.bound > best.bound;
        if higher {
            best = here;
        }
        match here.slope > 0.0 {
            true => low = here,
            false => high = Some(here),
        }
        let Some(high) = high else {
            price *= 8.0;
            continue;
        };
        price = (high.bound - high.slope * high.price - low.bound + low.slope * low.price)
            / (low.slope - high.slope);
        let promised = low.at(price);
        let inside = price > low.price && price < high.price;
        if !inside || promised - best.bound <= promised.abs() * 1e-9 {
            break;
        }
    }
    Some(best)
}
