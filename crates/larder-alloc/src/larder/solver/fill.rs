//! Spending what a plan leaves unused.

use super::totals;
use crate::Candidates;
use crate::optimal::Room;

/// Give what is left to the tenants' choices that fit and save the most, the largest savings first.
pub(super) fn fill(lists: &[Candidates], room: Room, mut picks: Vec<u32>) -> Vec<u32> {
    let saving = |tenant: usize, from: u32, to: u32| {
        let choices = &lists[tenant].choices;
        choices[from as usize].cost - choices[to as usize].cost
    };
    let (blocks, writes, _) = totals(lists, &picks);
    let mut left = Left { blocks: room.blocks - blocks, writes: room.writes.map(|most| most - writes) };
    let reach: Vec<u32> = (0..lists.len()).map(|tenant| left.reach(&lists[tenant], picks[tenant])).collect();
    let mut order: Vec<usize> = (0..lists.len()).filter(|&tenant| reach[tenant] != picks[tenant]).collect();
    order.sort_by(|&a, &b| saving(b, picks[b], reach[b]).total_cmp(&saving(a, picks[a], reach[a])));
    for tenant in order {
        let (from, to) = (picks[tenant], left.reach(&lists[tenant], picks[tenant]));
        let choices = &lists[tenant].choices;
        left.blocks = left.blocks + choices[from as usize].blocks - choices[to as usize].blocks;
        let more = choices[to as usize].writes - choices[from as usize].writes;
        left.writes = left.writes.map(|writes| writes - more);
        picks[tenant] = to;
    }
    picks
}

/// What no tenant has.
struct Left {
    blocks: u64,
    writes: Option<f64>,
}

impl Left {
    /// The cheapest choice that a tenant can change to.
    fn reach(&self, list: &Candidates, from: u32) -> u32 {
        let now = &list.choices[from as usize];
        let until = list.choices.partition_point(|choice| choice.blocks <= now.blocks + self.blocks);
        let within =
            |at: &u32| self.writes.is_none_or(|left| list.choices[*at as usize].writes - now.writes <= left);
        let cost = |at: u32| list.choices[at as usize].cost;
        let fitting = (0..until as u32).filter(within);
        let best = fitting.min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        best.filter(|&best| cost(best) < now.cost).unwrap_or(from)
    }
}
