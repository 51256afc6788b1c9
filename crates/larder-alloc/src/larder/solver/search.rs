//! Looking for a better plan between the bound and the best plan known.
//!
//! At the prices of the bound every choice of a tenant costs so much more than the tenant's cheapest one: its *regret*. What
//! a plan costs is the bound, and the regrets of its choices, and the price of what it leaves unused. So a choice, or
//! the beginning of a plan, whose regrets reach the distance from the bound to the best plan known cannot be part of a better one. What
//! is left is combined tenant by tenant; of the combinations, those stay that no other is as good as in
//! blocks, writes and cost. Where there are too many, those with the least regret stay, and the search proves nothing.

use super::prices::Prices;
use crate::optimal::Room;
use crate::staircase::Staircase;
use crate::{Candidates, Choice};

/// What a search came to.
pub(super) struct Found {
    /// A better plan, if one was found: one choice of each tenant.
    pub(super) picks: Option<Vec<u32>>,
    /// Nothing was left out: no plan is better than this one, or than the one known where none was found.
    pub(super) complete: bool,
}

/// A choice that may be part of a better plan.
struct Possible {
    pick: u32,
    choice: Choice,
    regret: f64,
}

/// One tenant's, and what the tenants after it need at least.
struct Stage {
    tenant: usize,
    possible: Vec<Possible>,
    blocks_after: u64,
    writes_after: f64,
}

/// Choices of the first tenants.
#[derive(Clone, Copy)]
struct Combination {
    blocks: u64,
    writes: f64,
    cost: f64,
    regret: f64,
    /// The combination of the tenants before the last one.
    from: u32,
    /// The last one's choice.
    pick: u32,
}

/// Look for a plan that is better than one that lies `gap` above the bound, looking at about `pairs` combinations.
pub(super) fn search(lists: &[Candidates], room: Room, prices: Prices, gap: f64, pairs: usize) -> Found {
    let stages = stages(lists, prices, gap);
    let start = Combination { blocks: 0, writes: 0.0, cost: 0.0, regret: 0.0, from: 0, pick: 0 };
    let mut fronts = vec![vec![start]];
    let mut complete = true;
    for stage in &stages {
        let all = combine(&fronts[fronts.len() - 1], stage, room, gap);
        let mut front = undominated(all, room.writes.is_some());
        let width = pairs / lists.len().max(1) / stage.possible.len().max(1);
        complete &= truncate(&mut front, width.max(1));
        fronts.push(front);
    }
    let last = &fronts[fronts.len() - 1];
    let best = (0..last.len()).min_by(|&a, &b| last[a].cost.total_cmp(&last[b].cost));
    Found { picks: best.map(|best| follow(&stages, &fronts, best, lists.len())), complete }
}

/// The tenants with the fewest possible choices first, so that combinations grow late.
fn stages(lists: &[Candidates], prices: Prices, gap: f64) -> Vec<Stage> {
    let mut stages: Vec<Stage> =
        (0..).zip(lists).map(|(tenant, list)| stage(tenant, list, prices, gap)).collect();
    stages.sort_by_key(|stage| stage.possible.len());
    let (mut blocks, mut writes) = (0, 0.0);
    for stage in stages.iter_mut().rev() {
        (stage.blocks_after, stage.writes_after) = (blocks, writes);
        let choices = || stage.possible.iter().map(|possible| &possible.choice);
        blocks += choices().map(|choice| choice.blocks).min().unwrap_or(0);
        let least = choices().map(|choice| choice.writes).min_by(f64::total_cmp);
        writes += least.unwrap_or(0.0);
    }
    stages
}

fn stage(tenant: usize, list: &Candidates, prices: Prices, gap: f64) -> Stage {
    let cheapest = prices.cheapest(&list.choices).unwrap_or(0.0);
    let all = (0u32..).zip(&list.choices);
    let possible = all
        .map(|(pick, &choice)| Possible { pick, choice, regret: prices.of(&choice) - cheapest })
        .filter(|possible| possible.regret < gap)
        .collect();
    Stage { tenant, possible, blocks_after: 0, writes_after: 0.0 }
}

/// Every combination with every choice, as far as it can become a better plan.
fn combine(before: &[Combination], stage: &Stage, room: Room, gap: f64) -> Vec<Combination> {
    let most_writes = room.writes.map_or(f64::INFINITY, |writes| writes - stage.writes_after);
    let mut all = Vec::new();
    for (from, one) in (0u32..).zip(before) {
        for possible in &stage.possible {
            let combination = Combination {
                blocks: one.blocks + possible.choice.blocks,
                writes: one.writes + possible.choice.writes,
                cost: one.cost + possible.choice.cost,
                regret: one.regret + possible.regret,
                from,
                pick: possible.pick,
            };
            if combination.blocks + stage.blocks_after > room.blocks {
                // The choices rise in blocks.
                break;
            }
            if combination.regret < gap && combination.writes <= most_writes {
                all.push(combination);
            }
        }
    }
    all
}

fn undominated(mut all: Vec<Combination>, budget: bool) -> Vec<Combination> {
    all.sort_by(|a, b| {
        a.blocks.cmp(&b.blocks).then(a.cost.total_cmp(&b.cost)).then(a.writes.total_cmp(&b.writes))
    });
    let mut front = Staircase::default();
    all.retain(|one| front.admit(if budget { one.writes } else { 0.0 }, one.cost));
    all
}

/// Keep `width` of them; true where none had to go.
fn truncate(front: &mut Vec<Combination>, width: usize) -> bool {
    let fits = front.len() <= width;
    if !fits {
        front.sort_by(|a, b| a.regret.total_cmp(&b.regret));
        front.truncate(width);
    }
    fits
}

/// The choices that make up the last front's combination `at`, by tenant.
fn follow(stages: &[Stage], fronts: &[Vec<Combination>], mut at: usize, tenants: usize) -> Vec<u32> {
    let mut picks = vec![0; tenants];
    for (stage, front) in stages.iter().zip(&fronts[1..]).rev() {
        picks[stage.tenant] = front[at].pick;
        at = front[at].from as usize;
    }
    picks
}
