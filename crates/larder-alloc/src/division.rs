//! Dividing a budget of blocks among tenants so that their hit ratios add up to the most: a multiple-choice knapsack.
//!
//! Two ways are tried, and the better result is taken:
//!
//! 1. *Hulls*: the steepest segments of the tenants' concave hulls first; a tenant whose next segment does not fit is
//!    left where it is. This is at most one segment's gain below the optimum, which is little where curves are smooth.
//! 2. *Table*, where the first way is more than one part in a thousand below the bound that the hulls give: the best
//!    combinations of the first tenant, of the first two, and so on. With up to `limit` choices of each tenant and
//!    `limit` combinations it is exact. Beyond that, neighbours in size are merged: with N tenants it is then no worse
//!    than the optimum for a budget that is smaller by 2 N (budget / limit + 1) blocks.
//!
//! What is left over goes to the largest steps that still fit.

use std::cmp::Reverse;

use crate::hull::{Choice, Segment, hull};

/// Pairs of a combination and a choice that the table looks at, over all tenants: some tenths of a second.
const TABLE_PAIRS: usize = 1 << 22;
/// With fewer choices for each tenant a table is too coarse to be of use.
const TABLE_LIMIT_MIN: usize = 32;

/// For each tenant the blocks that it gets above its minimum: one of its choices. In sum at most `budget`.
///
/// Each tenant's choices rise strictly in blocks and in gain, and begin with [`Choice::NOTHING`].
pub(crate) fn divide(choices: &[Vec<Choice>], budget: u64) -> Vec<u64> {
    let (mut steep, bound) = by_hulls(choices, budget);
    spend_rest(choices, &mut steep, budget);
    let gain = total_gain(&steep);
    if u128::from(bound - gain.min(bound)) * 1000 > u128::from(bound) {
        let limit = (TABLE_PAIRS / choices.len().max(1)).isqrt();
        if limit >= TABLE_LIMIT_MIN {
            let mut tabled = by_table(choices, budget, limit);
            spend_rest(choices, &mut tabled, budget);
            if total_gain(&tabled) > gain {
                steep = tabled;
            }
        }
    }
    steep.iter().map(|choice| choice.blocks).collect()
}

fn total_gain(chosen: &[Choice]) -> u64 {
    chosen.iter().map(|choice| choice.gain).sum()
}

/// The first way, and the most that any division could gain.
fn by_hulls(choices: &[Vec<Choice>], budget: u64) -> (Vec<Choice>, u64) {
    let mut chosen = vec![Choice::NOTHING; choices.len()];
    let mut stuck = vec![false; choices.len()];
    let mut left = budget;
    let mut bound = None;
    for segment in steepest_first(choices) {
        let tenant = segment.tenant;
        if segment.blocks > left {
            bound.get_or_insert_with(|| total_gain(&chosen) + gain_of_part(&segment, left));
            stuck[tenant] = true;
        }
        if !stuck[tenant] {
            left -= segment.blocks;
            chosen[tenant].blocks += segment.blocks;
            chosen[tenant].gain += segment.gain;
        }
    }
    let bound = bound.unwrap_or_else(|| total_gain(&chosen));
    (chosen, bound)
}

/// All tenants' hulls. The sort keeps the order of equals: a tenant's segments stay in theirs, being ever flatter.
pub(crate) fn steepest_first(choices: &[Vec<Choice>]) -> Vec<Segment> {
    let mut segments: Vec<_> =
        choices.iter().enumerate().flat_map(|(tenant, list)| hull(tenant, list)).collect();
    segments.sort_by(|a, b| b.steeper_than(a).cmp(&a.steeper_than(b)));
    segments
}

/// What the first `blocks` of a longer segment bring, rounded up.
fn gain_of_part(segment: &Segment, blocks: u64) -> u64 {
    // A part of a gain is no larger than a gain.
    (u128::from(segment.gain) * u128::from(blocks)).div_ceil(u128::from(segment.blocks)) as u64
}

/// While some tenant's next step fits: the step that brings the most, as far as the blocks reach.
fn spend_rest(choices: &[Vec<Choice>], chosen: &mut [Choice], budget: u64) {
    let mut left = budget - chosen.iter().map(|choice| choice.blocks).sum::<u64>();
    // Ends after one round for each tenant at most: it goes as far as it can, and the rest only shrinks.
    for _ in 0..choices.len() {
        let reach = |tenant: usize| {
            let end = choices[tenant].partition_point(|choice| choice.blocks <= chosen[tenant].blocks + left);
            choices[tenant][end - 1]
        };
        let best = (0..choices.len()).rev().max_by_key(|&tenant| reach(tenant).gain - chosen[tenant].gain);
        let Some((tenant, step)) = best.map(|tenant| (tenant, reach(tenant))) else { return };
        left -= step.blocks - chosen[tenant].blocks;
        chosen[tenant] = step;
    }
}

/// A combination of choices of the first tenants.
#[derive(Clone, Copy, Debug)]
struct Combination {
    total: Choice,
    /// The combination of the tenants before the last one, in the list before.
    from: u32,
    /// The last one's choice.
    pick: Choice,
}

/// The second way.
fn by_table(choices: &[Vec<Choice>], budget: u64, limit: usize) -> Vec<Choice> {
    let cell = budget / limit as u64 + 1;
    let nothing = Combination { total: Choice::NOTHING, from: 0, pick: Choice::NOTHING };
    let mut lists = vec![vec![nothing]];
    for list in choices {
        let picks = merge_neighbours(list.clone(), |choice| choice.blocks, cell, limit);
        let combined = combine(&lists[lists.len() - 1], &picks, budget);
        lists.push(merge_neighbours(combined, |combination| combination.total.blocks, cell, limit));
    }
    // In rising order of gain, and never empty: choosing nothing fits every budget.
    let mut at = lists[lists.len() - 1].len() - 1;
    let mut chosen = Vec::with_capacity(choices.len());
    for list in lists[1..].iter().rev() {
        chosen.push(list[at].pick);
        at = list[at].from as usize;
    }
    chosen.reverse();
    chosen
}

/// Every combination with every choice, without those that take as much as another and bring no more.
fn combine(combinations: &[Combination], picks: &[Choice], budget: u64) -> Vec<Combination> {
    let mut all: Vec<Combination> = Vec::with_capacity(combinations.len() * picks.len());
    for (from, before) in (0u32..).zip(combinations) {
        let fitting = picks.iter().take_while(|pick| before.total.blocks + pick.blocks <= budget);
        all.extend(fitting.map(|&pick| {
            let (blocks, gain) = (before.total.blocks + pick.blocks, before.total.gain + pick.gain);
            Combination { total: Choice { blocks, gain }, from, pick }
        }));
    }
    all.sort_unstable_by_key(|one| (one.total.blocks, Reverse(one.total.gain), one.from));
    let mut best = None;
    all.retain(|one| {
        let better = best.is_none_or(|gain| one.total.gain > gain);
        best = best.max(Some(one.total.gain));
        better
    });
    all
}

/// Where there are more than `limit`: of each cell of sizes only the last one, which is the best, and the very first.
fn merge_neighbours<T: Copy>(list: Vec<T>, blocks: impl Fn(&T) -> u64, cell: u64, limit: usize) -> Vec<T> {
    if list.len() <= limit {
        return list;
    }
    let is_last =
        |at: usize| list.get(at + 1).is_none_or(|next| blocks(next) / cell > blocks(&list[at]) / cell);
    (0..list.len()).filter(|&at| at == 0 || is_last(at)).map(|at| list[at]).collect()
}

#[cfg(test)]
mod tests;
