//! One choice of each tenant, at the least cost in all: exactly.
//!
//! Dynamic programming over the tenants: of the combinations of the first tenants' choices those are kept that no other
//! is as good as, in blocks, writes and cost. That is their Pareto front, and the best solution's beginning is in it, or
//! one as good.
//!
//! Fronts grow quickly. So combinations that are too dear are left out: [`Prices`] tell of any beginning how far above
//! the lower bound every solution with it is at least. That distance is limited, to little at first. Where a solution
//! within the limit is found, every combination that was left out is dearer, and the solution is the best; else the
//! limit rises, until nothing is left out.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::prices::Prices;
use crate::staircase::Staircase;
use crate::{Candidates, Choice};

/// Combinations in a front at most: 48 MB.
pub const FRONT_MAX: usize = 1 << 20;
/// Combinations looked at, in all, before giving up: half a minute or so.
pub const COMBINATIONS_MAX: usize = 1 << 26;

/// The first limit, as a part of the highest cost, and the factor by which limits rise.
const NARROWEST: f64 = 1e-6;
const WIDER: f64 = 8.0;
/// What rounding may do to a sum of costs, as a part of the highest.
const ROUNDING: f64 = 1e-9;

/// What all tenants together may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Blocks.
    pub blocks: u64,
    /// Blocks written to the SSD per second; none for no limit.
    pub writes: Option<f64>,
}

/// One choice of each tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// By tenant, which of its choices.
    pub picks: Vec<usize>,
    /// What they take and cost together, added up in the order of the tenants.
    pub blocks: u64,
    /// Blocks written to the SSD per second.
    pub writes: f64,
    /// Weighted seconds of latency per second.
    pub cost: f64,
}

/// Why there is no solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsolved {
    /// Even what takes the least takes too much.
    #[error("no choice of each tenant fits the cache and the budget of SSD writes together")]
    Infeasible,
    /// There may be one, but not within [`FRONT_MAX`] and [`COMBINATIONS_MAX`].
    #[error("there are too many combinations for an exact solution")]
    TooLarge,
}

/// The solution with the least cost; of several the one with the fewest blocks, as far as rounding tells them apart.
///
/// Costs and writes are finite and not negative.
///
/// # Errors
/// [`Unsolved`]
pub fn solve(candidates: &[Candidates], room: Room) -> Result<Solution, Unsolved> {
    solve_within(candidates, room, FRONT_MAX, COMBINATIONS_MAX)
}

/// As [`solve`], with other limits: for those who can do with less than an exact solution where that takes long.
///
/// # Errors
/// [`Unsolved`]
pub fn solve_within(
    candidates: &[Candidates],
    room: Room,
    front_max: usize,
    combinations_max: usize,
) -> Result<Solution, Unsolved> {
    let mut work = Work { room, front_max, left: combinations_max };
    if let Some(budget) = room.writes {
        // Whether anything fits at all is a question of two resources alone, and answered soon.
        let least = work.cheapest(&thrifty(candidates), Room { writes: None, ..room })?;
        if least.cost > budget {
            return Err(Unsolved::Infeasible);
        }
    }
    work.cheapest(candidates, room)
}

/// The same choices with what they write as their cost, and without those that are then as good as none: their best
/// solution writes the least.
pub fn thrifty(candidates: &[Candidates]) -> Vec<Candidates> {
    let thrifty = |choice: &Choice| Choice { cost: choice.writes, ..*choice };
    candidates.iter().map(|one| Candidates::new(one.choices.iter().map(thrifty).collect(), false)).collect()
}

/// A choice of each of the first tenants.
#[derive(Clone, Copy, Debug, Default)]
struct Combination {
    blocks: u64,
    writes: f64,
    cost: f64,
    /// How far above the bound every solution with it is, at least.
    excess: f64,
    /// Of the tenants before the last one: their place in the front before.
    from: u32,
    /// The last one's choice.
    pick: u32,
}

/// A tenant's choice, and how much dearer than its cheapest it is at the going prices.
struct Priced {
    choice: Choice,
    pick: u32,
    excess: f64,
}

/// What is left to do it with.
struct Work {
    room: Room,
    front_max: usize,
    left: usize,
}

impl Work {
    fn cheapest(&mut self, candidates: &[Candidates], room: Room) -> Result<Solution, Unsolved> {
        self.room = room;
        let least = |one: &Candidates| one.choices.iter().map(|choice| choice.blocks).min();
        let blocks: Option<u64> = candidates.iter().map(least).sum();
        if blocks.is_none_or(|blocks| blocks > room.blocks) {
            return Err(Unsolved::Infeasible);
        }
        let prices = Prices::of(candidates, room);
        let bound = prices.bound(candidates, room);
        let highest: f64 = candidates.iter().filter_map(highest).sum();
        let slack = ROUNDING * (highest + bound.abs());
        let mut limit = NARROWEST * highest;
        loop {
            // No solution costs more than the highest costs.
            let last = limit >= highest - bound;
            let within = if last { f64::INFINITY } else { limit + slack };
            let found = self.within(candidates, prices, within)?;
            match found {
                Some(solution) if last || solution.cost <= bound + limit => return Ok(solution),
                None if last => return Err(Unsolved::Infeasible),
                _ => limit *= WIDER,
            }
        }
    }

    /// The best solution whose excess is within a limit.
    fn within(
        &mut self,
        candidates: &[Candidates],
        prices: Prices,
        limit: f64,
    ) -> Result<Option<Solution>, Unsolved> {
        let priced: Vec<Vec<Priced>> = candidates.iter().map(|one| priced(one, prices, limit)).collect();
        let mut needed: u64 = priced.iter().map(|list| least_blocks(list)).sum();
        let mut front = vec![Combination::default()];
        // The way back: where each combination came from, and its pick.
        let mut trail: Vec<Vec<(u32, u32)>> = Vec::with_capacity(candidates.len());
        for list in &priced {
            needed -= least_blocks(list);
            let room = Room { blocks: self.room.blocks.saturating_sub(needed), ..self.room };
            front = self.extended(&front, list, room, limit)?;
            trail.push(front.iter().map(|one| (one.from, one.pick)).collect());
        }
        let best = (0..front.len()).min_by(|&a, &b| front[a].cost.total_cmp(&front[b].cost));
        Ok(best.map(|best| {
            let Combination { blocks, writes, cost, .. } = front[best];
            Solution { picks: walk_back(&trail, best), blocks, writes, cost }
        }))
    }

    /// The front of all combinations of `front` with the next tenant's choices, in the order of [`Ahead`].
    fn extended(
        &mut self,
        front: &[Combination],
        list: &[Priced],
        room: Room,
        limit: f64,
    ) -> Result<Vec<Combination>, Unsolved> {
        let counts = room.writes.is_some();
        let combined = |from: usize, with: &Priced| {
            let before = front.get(from)?;
            let (blocks, writes) = (before.blocks + with.choice.blocks, before.writes + with.choice.writes);
            let (cost, excess) = (before.cost + with.choice.cost, before.excess + with.excess);
            (blocks <= room.blocks).then_some(Combination {
                blocks,
                writes,
                cost,
                excess,
                from: from as u32,
                pick: with.pick,
            })
        };
        // Each choice with the whole front is a list in order; they are merged.
        let mut heads: BinaryHeap<Reverse<Ahead>> = BinaryHeap::with_capacity(list.len());
        heads.extend(
            (0..)
                .zip(list)
                .filter_map(|(at, with)| Some(Reverse(Ahead { one: combined(0, with)?, list: at, counts }))),
        );
        let (mut staircase, mut kept) = (Staircase::default(), Vec::new());
        while let Some(mut head) = heads.peek_mut() {
            self.left = self.left.checked_sub(1).ok_or(Unsolved::TooLarge)?;
            let Ahead { one, list: at, .. } = head.0;
            match combined(one.from as usize + 1, &list[at]) {
                Some(next) => head.0.one = next,
                None => drop(std::collections::binary_heap::PeekMut::pop(head)),
            }
            let fits = one.excess <= limit && room.writes.is_none_or(|budget| one.writes <= budget);
            if fits && staircase.admit(if counts { one.writes } else { 0.0 }, one.cost) {
                if kept.len() == self.front_max {
                    return Err(Unsolved::TooLarge);
                }
                kept.push(one);
            }
        }
        Ok(kept)
    }
}

/// The next combination of a list, to be taken in the order in which none is beaten by a later one: of fewer blocks
/// first, then of fewer writes where they count, then of less cost.
struct Ahead {
    one: Combination,
    list: usize,
    counts: bool,
}

impl Ord for Ahead {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.one, &other.one);
        let writes = if self.counts { a.writes.total_cmp(&b.writes) } else { Ordering::Equal };
        let order = a.blocks.cmp(&b.blocks).then(writes).then(a.cost.total_cmp(&b.cost));
        order.then(self.list.cmp(&other.list)).then(a.from.cmp(&b.from))
    }
}

impl PartialOrd for Ahead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ahead {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ahead {}

fn highest(one: &Candidates) -> Option<f64> {
    one.choices.iter().map(|choice| choice.cost).max_by(f64::total_cmp)
}

fn least_blocks(list: &[Priced]) -> u64 {
    list.iter().map(|one| one.choice.blocks).min().unwrap_or(0)
}

/// A tenant's choices that are dearer than its cheapest by no more than `limit`.
fn priced(one: &Candidates, prices: Prices, limit: f64) -> Vec<Priced> {
    let Some(cheapest) = prices.cheapest(one).map(|choice| prices.full(choice)) else { return Vec::new() };
    let priced = (0..).zip(&one.choices).map(|(pick, choice)| Priced {
        choice: *choice,
        pick,
        excess: prices.full(choice) - cheapest,
    });
    priced.filter(|one| one.excess <= limit).collect()
}

/// The picks of the combination at `last` of the last front.
fn walk_back(trail: &[Vec<(u32, u32)>], last: usize) -> Vec<usize> {
    let mut at = last;
    let mut picks: Vec<_> = trail
        .iter()
        .rev()
        .map(|front| {
            let (from, pick) = front[at];
            at = from as usize;
            pick as usize
        })
        .collect();
    picks.reverse();
    picks
}
