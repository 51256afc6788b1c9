//! One choice for each tenant, so that all together cost the least under the size of the cache and the budget of writes: a
//! multiple-choice knapsack with two resources.
//!
//! 1. Prices of a block and of a write give a bound that no plan goes below, and plans close to it (`prices`).
//! 2. What such a plan leaves unused goes to the choices that fit and save the most (`fill`).
//! 3. Combinations that could lie between the bound and the best plan are searched (`search`). Where none had to be left out the
//!    plan is the optimum; else the bound tells how far it may be from it.

mod corners;
mod fill;
mod prices;
mod search;

pub use corners::{bound, corners};
pub use prices::Prices;

use crate::Candidates;
use crate::optimal::Room;
use prices::{Worth, dual, relax};

/// Combinations that are looked at in all: some tenths of a second at most.
const PAIRS: usize = 1 << 20;
/// Of more tenants than this, a quarter of them: their plans are close to the bound as it is.
const FEW_TENANTS: usize = 64;
/// Searches; each begins at the plan that the last one found.
const ROUNDS: u32 = 3;
/// Costs that differ by so little, relatively, are the same: they are sums of rounded numbers.
const ROUNDING: f64 = 1e-10;

/// Whether so much is within.
fn holds(room: Room, blocks: u64, writes: f64) -> bool {
    blocks <= room.blocks && room.writes.is_none_or(|most| writes <= most)
}

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// For each tenant the index of its choice.
    pub picks: Vec<u32>,
    /// What the choices cost together.
    pub cost: f64,
    /// No plan costs less. Equal to the cost where the plan is the optimum.
    pub bound: f64,
    /// What one more block, or one more write per second, would save, about.
    pub prices: Prices,
}

impl Solved {
    /// The plan is the optimum.
    pub fn is_exact(&self) -> bool {
        self.bound >= self.cost
    }

    /// The most by which the optimum may cost less, as a share of the cost.
    pub fn gap(&self) -> f64 {
        if self.cost > 0.0 { ((self.cost - self.bound) / self.cost).max(0.0) } else { 0.0 }
    }
}

/// Blocks, writes and cost of a plan.
fn totals(lists: &[Candidates], picks: &[u32]) -> (u64, f64, f64) {
    let chosen = lists.iter().zip(picks).map(|(list, &pick)| &list.choices[pick as usize]);
    chosen.fold((0, 0.0, 0.0), |(blocks, writes, cost), choice| {
        (blocks + choice.blocks, writes + choice.writes, cost + choice.cost)
    })
}

/// The plan that writes the least, about, among those that fit the cache. None where even the smallest choices do not.
pub fn least_writes(lists: &[Candidates], cache: u64) -> Option<Vec<u32>> {
    relax(lists, cache, Worth { cost: 0.0, write: 1.0 }).map(|relaxed| relaxed.picks)
}

/// Solve it. `start` is a plan to begin with, if it is within the room.
///
/// None where no plan within the room was found. Without a budget of writes that is where the smallest choices exceed the
/// cache; with one, a plan that just keeps to it may be missed.
pub fn solve(lists: &[Candidates], room: Room, start: Option<Vec<u32>>) -> Option<Solved> {
    let dual = dual(lists, room.blocks, room.writes)?;
    let thrifty = room.writes.and_then(|_| least_writes(lists, room.blocks));
    let within = |picks: &Vec<u32>| {
        let (blocks, writes, _) = totals(lists, picks);
        holds(room, blocks, writes)
    };
    let first =
        dual.plans.into_iter().chain(thrifty).filter(within).map(|picks| fill::fill(lists, room, picks));
    let plans = first.chain(start.filter(within));
    let cost = |picks: &[u32]| totals(lists, picks).2;
    let best = plans.min_by(|a, b| cost(a).total_cmp(&cost(b)));
    improve(lists, room, dual.prices, dual.bound, best)
}

/// Search for better plans than the one known, if one is.
fn improve(
    lists: &[Candidates],
    room: Room,
    prices: Prices,
    bound: f64,
    best: Option<Vec<u32>>,
) -> Option<Solved> {
    let mut best = best;
    let most = if lists.len() > FEW_TENANTS { PAIRS / 4 } else { PAIRS };
    let cost_of =
        |picks: &Option<Vec<u32>>| picks.as_ref().map_or(f64::INFINITY, |picks| totals(lists, picks).2);
    for round in 1..=ROUNDS {
        let cost = cost_of(&best);
        if best.is_some() && cost - bound <= cost.abs() * ROUNDING {
            let cost = cost_of(&best);
            return best.map(|picks| Solved { picks, cost, bound: cost, prices });
        }
        let pairs = most >> (2 * (ROUNDS - round));
        let found = search::search(lists, room, prices, cost - bound, pairs);
        let better = cost_of(&found.picks) < cost;
        if better {
            best = found.picks;
        }
        if found.complete {
            let cost = cost_of(&best);
            return best.map(|picks| Solved { picks, cost, bound: cost, prices });
        }
    }
    let cost = cost_of(&best);
    best.map(|picks| Solved { picks, cost, bound: bound.min(cost), prices })
}

#[cfg(test)]
mod tests;
