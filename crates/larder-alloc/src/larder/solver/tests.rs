use super::*;
use crate::Choice;
use proptest::prelude::*;

fn choice((blocks, writes, cost): (u64, u32, u32)) -> Choice {
    Choice { blocks, writes: f64::from(writes), cost: f64::from(cost), way: 0 }
}

/// Choices that need not be convex, nor monotone in writes.
fn lists(tenants: std::ops::Range<usize>, budget: bool) -> impl Strategy<Value = Vec<Candidates>> {
    let list = proptest::collection::vec((0u64..30, 0u32..30, 0u32..1000).prop_map(choice), 1..9);
    proptest::collection::vec(list.prop_map(move |list| Candidates::new(list, budget)), tenants)
}

/// One way: sizes that rise, from 0, with writes and a cost that falls.
fn steps() -> impl Strategy<Value = Vec<Choice>> {
    proptest::collection::vec((1u64..9, 0u32..30, 0u32..200), 1..8).prop_map(|steps| {
        let (mut blocks, mut cost) = (0, 1000);
        let step = |(more, writes, less): (u64, u32, u32)| {
            let choice = choice((blocks, writes, cost));
            (blocks, cost) = (blocks + more, cost - less.min(cost));
            choice
        };
        steps.into_iter().map(step).collect()
    })
}

fn way_by_way(ways: Vec<Vec<Choice>>) -> Vec<Choice> {
    let way =
        |(way, choices): (u32, Vec<Choice>)| choices.into_iter().map(move |choice| Choice { way, ..choice });
    (0..).zip(ways).flat_map(way).collect()
}

/// The least cost of all plans within the room, one by one.
fn least_cost(lists: &[Candidates], room: Room) -> Option<f64> {
    let mut best: Option<f64> = None;
    let mut picks = vec![0u32; lists.len()];
    loop {
        let (blocks, writes, cost) = totals(lists, &picks);
        if holds(room, blocks, writes) && best.is_none_or(|best| cost < best) {
            best = Some(cost);
        }
        let Some(at) = (0..lists.len()).find(|&at| picks[at] as usize + 1 < lists[at].choices.len()) else {
            return best;
        };
        picks[..at].fill(0);
        picks[at] += 1;
    }
}

/// The prices lead to plans that write too much, and so does the plan that writes the least of those on hulls: 12 writes in 5
/// blocks.
#[test]
fn a_plan_that_just_keeps_to_the_budget_is_searched_for() {
    let list =
        |choices: &[(u64, u32, u32)]| Candidates::new(choices.iter().copied().map(choice).collect(), true);
    let lists = [list(&[(0, 10, 5), (2, 8, 6), (4, 0, 7)]), list(&[(0, 10, 5), (3, 4, 6), (4, 0, 7)])];
    let room = Room { blocks: 5, writes: Some(12.0) };
    let thrifty = least_writes(&lists, 5).map(|picks| totals(&lists, &picks).1);
    assert_eq!(thrifty, Some(10.0));
    let room = |writes| Room { writes: Some(writes), ..room };
    assert_eq!(solve(&lists, room(10.0), None).map(|solved| solved.cost), Some(12.0));
    assert_eq!(solve(&lists, room(9.9), None), None);
    // Below what the hulls give: only in between there is a plan.
    let lists = [list(&[(0, 26, 0), (7, 17, 188), (17, 1, 300)]), list(&[(0, 0, 0)])];
    let room = Room { blocks: 10, writes: Some(17.0) };
    assert_eq!(least_writes(&lists, 10), Some(vec![0, 0]));
    assert_eq!(solve(&lists, room, None).map(|solved| solved.cost), Some(188.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_plan_is_the_best_of_all(lists in lists(0..5, false), blocks in 0u64..100) {
        let room = Room { blocks, writes: None };
        let solved = solve(&lists, room, None);
        prop_assert_eq!(solved.as_ref().map(|solved| solved.cost), least_cost(&lists, room));
        prop_assert!(solved.is_none_or(|solved| solved.is_exact()));
    }

    #[test]
    fn a_plan_is_the_best_of_all_within_a_budget(
        lists in lists(0..5, true), blocks in 0u64..100, writes in 0u32..80,
    ) {
        let room = Room { blocks, writes: Some(f64::from(writes)) };
        let solved = solve(&lists, room, None);
        prop_assert_eq!(solved.as_ref().map(|solved| solved.cost), least_cost(&lists, room));
        if let Some(solved) = solved {
            prop_assert!(solved.is_exact());
            let (blocks, writes, cost) = totals(&lists, &solved.picks);
            prop_assert!(holds(room, blocks, writes));
            prop_assert_eq!(cost, solved.cost);
        }
    }

    /// The bound of the prices alone, before any search.
    #[test]
    fn the_bound_is_one(lists in lists(1..5, true), blocks in 0u64..100, writes in 0u32..80) {
        let room = Room { blocks, writes: Some(f64::from(writes)) };
        if let (Some(dual), Some(least)) = (dual(&lists, blocks, room.writes), least_cost(&lists, room)) {
            prop_assert!(dual.bound <= least + 1e-9 * least, "{} {}", dual.bound, least);
        }
    }

    /// A plan made of corners is one of all plans, and the bound of all choices is below them all.
    #[test]
    fn corners_and_the_bound_hold_the_best_plan_between_them(
        ways in proptest::collection::vec(proptest::collection::vec(steps(), 1..4), 1..4),
        blocks in 0u64..100, writes in 0u32..80, held in 0u64..30, budget in any::<bool>(),
    ) {
        let all: Vec<Vec<Choice>> = ways.into_iter().map(way_by_way).collect();
        let room = Room { blocks, writes: budget.then_some(f64::from(writes)) };
        let lists: Vec<Candidates> = all.iter().map(|choices| corners(choices, held, budget)).collect();
        let full: Vec<Candidates> = all.iter().map(|choices| Candidates::new(choices.clone(), budget)).collect();
        let Some(solved) = solve(&lists, room, None) else { return Ok(()) };
        let least = least_cost(&full, room).expect("the plan of corners is one");
        let cheapest = all.iter().filter_map(|choices| solved.prices.cheapest(choices));
        let bound = bound(cheapest, room, solved.prices);
        prop_assert!(bound <= least * (1.0 + 1e-9) && least <= solved.cost, "{} {} {}", bound, least, solved.cost);
        for (choices, list) in all.iter().zip(&lists) {
            let standing = choices.iter().filter(|choice| choice.blocks <= held).map(|choice| choice.cost).min_by(f64::total_cmp);
            let kept = list.choices.iter().filter(|choice| choice.blocks <= held).map(|choice| choice.cost).min_by(f64::total_cmp);
            prop_assert!(kept <= standing);
        }
    }

    /// A search that may look at few combinations finds a plan within the room, and says so where it is not proven.
    #[test]
    fn a_narrow_search_claims_nothing_false(
        lists in lists(3..5, true), blocks in 0u64..100, writes in 0u32..80, pairs in 1usize..60,
    ) {
        let room = Room { blocks, writes: Some(f64::from(writes)) };
        let Some(dual) = dual(&lists, blocks, room.writes) else { return Ok(()) };
        let found = search::search(&lists, room, dual.prices, f64::INFINITY, pairs);
        let least = least_cost(&lists, room);
        match found.picks {
            Some(picks) => {
                let (blocks, writes, cost) = totals(&lists, &picks);
                prop_assert!(holds(room, blocks, writes));
                prop_assert!(!found.complete || Some(cost) == least);
            }
            None => prop_assert!(!found.complete || least.is_none()),
        }
    }
}
