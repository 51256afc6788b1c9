//! The exact solution held against trying everything, and what becomes of reservations and budgets.

use super::*;
use crate::fixtures::{quotas, tenant};
use crate::{Candidates, Constraints, Findings, Goals, Measured, Reservation, Timed};
use larder_locality::{Counted, EpochFindings, PolicyCurves, SizeCurve};
use proptest::prelude::*;

fn choice(most_blocks: u64) -> impl Strategy<Value = Choice> {
    (0..most_blocks, 0u8..50, 0u16..1000, 0u32..4).prop_map(|(blocks, writes, cost, way)| Choice {
        blocks,
        writes: f64::from(writes) / 7.0,
        cost: f64::from(cost) / 13.0,
        way,
    })
}

/// Up to five tenants with up to seven choices, and room for some of them.
fn instance() -> impl Strategy<Value = (Vec<Vec<Choice>>, Room)> {
    let tenant = proptest::collection::vec(choice(40), 1..8);
    let room = (0u64..120, proptest::option::of(0.0f64..25.0));
    (proptest::collection::vec(tenant, 0..6), room.prop_map(|(blocks, writes)| Room { blocks, writes }))
}

fn candidates(lists: &[Vec<Choice>], room: Room) -> Vec<Candidates> {
    lists.iter().map(|list| Candidates::new(list.clone(), room.writes.is_some())).collect()
}

/// The least cost of all combinations, one after the other.
fn by_trying_all(lists: &[Vec<Choice>], room: Room) -> Option<f64> {
    let mut all = vec![(0u64, 0.0f64, 0.0f64)];
    for list in lists {
        let with = |&(blocks, writes, cost): &(u64, f64, f64)| {
            list.iter().map(move |one| (blocks + one.blocks, writes + one.writes, cost + one.cost))
        };
        all = all.iter().flat_map(with).collect();
    }
    let fits = |one: &&(u64, f64, f64)| one.0 <= room.blocks && room.writes.is_none_or(|most| one.1 <= most);
    all.iter().filter(fits).map(|one| one.2).min_by(f64::total_cmp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_solution_is_the_best_of_all_combinations((lists, room) in instance()) {
        let candidates = candidates(&lists, room);
        match (solve(&candidates, room), by_trying_all(&lists, room)) {
            (Err(Unsolved::Infeasible), None) => {}
            (Ok(solution), Some(best)) => {
                prop_assert!((solution.cost - best).abs() <= 1e-9 * best, "{} for {}", solution.cost, best);
                let taken: Vec<_> =
                    candidates.iter().zip(&solution.picks).map(|(one, &pick)| one.choices[pick]).collect();
                prop_assert_eq!(taken.len(), lists.len());
                prop_assert_eq!(taken.iter().map(|one| one.blocks).sum::<u64>(), solution.blocks);
                let sum = |of: fn(&Choice) -> f64| taken.iter().fold(0.0, |sum, one| sum + of(one));
                prop_assert_eq!((sum(|one| one.writes), sum(|one| one.cost)), (solution.writes, solution.cost));
                prop_assert!(solution.blocks <= room.blocks);
                prop_assert!(room.writes.is_none_or(|most| solution.writes <= most));
            }
            (found, best) => prop_assert!(false, "{:?} for {:?}", found, best),
        }
    }

    /// Whatever the prices: what they say no solution can cost less than is no more than what the best one costs.
    #[test]
    fn prices_give_a_lower_bound(
        (lists, room) in instance(), block in 0.0f64..20.0, write in 0.0f64..20.0,
    ) {
        let candidates = candidates(&lists, room);
        if let Some(best) = by_trying_all(&lists, room) {
            let write = if room.writes.is_some() { write } else { 0.0 };
            for prices in [prices::Prices { block, write }, prices::Prices::of(&candidates, room)] {
                prop_assert!(prices.bound(&candidates, room) <= best + 1e-9 * (1.0 + best));
            }
        }
    }

    #[test]
    fn what_writes_the_least_is_found((lists, room) in instance()) {
        let unlimited = Room { writes: None, ..room };
        let writing = |list: &Vec<Choice>| list.iter().map(|one| Choice { cost: one.writes, ..*one }).collect();
        let least = by_trying_all(&lists.iter().map(writing).collect::<Vec<_>>(), unlimited);
        let found = solve(&thrifty(&candidates(&lists, Room { writes: Some(0.0), ..room })), unlimited);
        match (found, least) {
            (Ok(found), Some(least)) => prop_assert!((found.cost - least).abs() < 1e-9),
            (found, least) => prop_assert!(found == Err(Unsolved::Infeasible) && least.is_none()),
        }
    }
}

#[test]
fn what_cannot_be_combined_in_time_is_said() {
    let choice = |blocks: u64| Choice { blocks, writes: 0.0, cost: 100.0 - blocks as f64, way: 0 };
    let tenants = vec![Candidates { choices: (0..50).map(choice).collect() }; 3];
    let room = Room { blocks: 70, writes: None };
    assert_eq!(solve(&tenants, room).map(|solution| solution.cost), Ok(230.0));
    assert_eq!(solve_within(&tenants, room, 5, COMBINATIONS_MAX), Err(Unsolved::TooLarge));
    assert_eq!(solve_within(&tenants, room, FRONT_MAX, 100), Err(Unsolved::TooLarge));
}

#[test]
fn nobody_needs_nothing() {
    let nothing = Solution { picks: vec![], blocks: 0, writes: 0.0, cost: 0.0 };
    assert_eq!(solve(&[], Room { blocks: 0, writes: Some(0.0) }), Ok(nothing));
    let one = [Candidates { choices: vec![Choice::unknown(5)] }];
    assert_eq!(solve(&one, Room { blocks: 4, writes: None }), Err(Unsolved::Infeasible));
}

/// 100 requests, all of them reads of one block; with `sizes[n]` blocks `hits[n]` are hits. One second. Under `wb`
/// and under `ro` the same hits; each hit is one fill less. A hit takes no time, a miss a second.
fn reader(hits: &[(u64, u64)]) -> Findings {
    let mut before = 0;
    let steps = hits.iter().map(|&(blocks, hits)| (blocks, hits - std::mem::replace(&mut before, hits)));
    let curve = SizeCurve::rising(steps);
    let counted = Counted {
        reads: 100,
        requests: 100,
        read_requests: 100,
        read_hits: curve.clone(),
        request_hits: curve.clone(),
        read_request_hits: curve,
        ..Counted::default()
    };
    let curves = [CurvePolicy::WriteBack, CurvePolicy::ReadOnly];
    Findings {
        seconds: 1.0,
        curves: curves.map(|policy| PolicyCurves::new(policy, counted.clone())).to_vec(),
        latencies: crate::Latencies {
            read_hit: 0.0,
            read_miss: 1.0,
            cached_write: 0.0,
            backing_write: 1.0,
            write_back: 0.0,
        },
        measured: Measured { read_misses: Timed { count: 100, seconds: 100.0 }, ..Measured::default() },
        ..EpochFindings { requests: 100, accesses: 100, ..EpochFindings::default() }.into()
    }
}

fn decide(tenants: &[Tenant<'_>], cache_blocks: u32, budget: Option<f64>) -> Vec<Decision> {
    let constraints = Constraints { cache_blocks, ssd_writes_per_second: budget, ..Constraints::default() };
    Optimal.allocate(tenants, &constraints).expect("they are few")
}

fn promised<'a>(tenant: Tenant<'a>, reservation: Reservation) -> Tenant<'a> {
    Tenant { goals: Goals { reservation: Some(reservation), ..tenant.goals }, ..tenant }
}

/// Ten blocks: the first gains 30 hits from 4 and 40 from 8, the second 35 from 6, and 60 from 10.
#[test]
fn the_best_combination_is_taken_and_weights_count() {
    let (first, second) = (reader(&[(4, 30), (8, 40)]), reader(&[(6, 35), (10, 60)]));
    let tenants = [tenant("a", Some(&first)), tenant("b", Some(&second))];
    let decisions = decide(&tenants, 10, None);
    assert_eq!(quotas(&decisions), [4, 6]);
    assert_eq!(
        decisions[0].reason,
        "4 blocks as lru under wb, and 0 spare ones: 700.000 ms and 70 SSD writes/s expected; \
         the tenants' requests wait 135.000 s per second in all, weighted: the least"
    );
    let expected = Prediction { latency: 0.65, request_hit_ratio: 0.35, ssd_writes_per_second: 65.0 };
    assert_eq!(decisions[1].predicted, Some(expected));

    let weighty = Tenant { goals: Goals { weight: 2.0, ..Goals::default() }, ..tenants[1] };
    assert_eq!(quotas(&decide(&[tenants[0], weighty], 10, None)), [0, 10]);
}

#[test]
fn spare_blocks_are_shared_and_bounds_are_kept() {
    let found = reader(&[(4, 30)]);
    let bounded = Tenant {
        min_blocks: 5,
        goals: Goals { max_blocks: Some(6), ..Goals::default() },
        ..tenant("a", Some(&found))
    };
    let idle = Tenant { min_blocks: 3, ..tenant("b", None) };
    let decisions = decide(&[bounded, idle], 20, None);
    assert_eq!(quotas(&decisions), [6, 14]);
    assert!(decisions[0].reason.starts_with("5 blocks as lru under wb, and 1 spare ones: "));
    assert_eq!(
        decisions[1].reason,
        "idle in this epoch: the minimum of 3 blocks, and 11 spare ones; lru under wb as before"
    );
    // Minima of 8 in a cache of 6: equal parts of it at most.
    assert_eq!(quotas(&decide(&[bounded, idle], 6, None)), [3, 3]);
    assert_eq!(quotas(&decide(&[bounded, idle], 0, None)), [0, 0]);
}

/// With 4 blocks 70 reads of a second miss and fill the cache, with 8 blocks 60; without a cache nothing is written.
#[test]
fn a_budget_of_writes_is_kept_where_it_can_be() {
    let found = reader(&[(4, 30), (8, 40)]);
    let tenants = [tenant("a", Some(&found)), tenant("b", Some(&found))];
    let writes = |decisions: &[Decision]| -> f64 {
        decisions.iter().filter_map(|one| one.predicted).map(|one| one.ssd_writes_per_second).sum()
    };
    let free = decide(&tenants, 12, None);
    assert_eq!((quotas(&free), writes(&free)), (vec![8, 4], 130.0));
    // One of both: with all that it can use.
    let bound = decide(&tenants, 12, Some(100.0));
    assert_eq!(writes(&bound), 60.0);
    let minima = tenants.map(|tenant| Tenant { min_blocks: 4, ..tenant });
    let over = decide(&minima, 12, Some(100.0));
    assert_eq!(writes(&over), 130.0);
    assert!(
        over[0].reason.ends_with("exceeds the budget of SSD writes, this one by the least"),
        "{}",
        over[0].reason
    );
}

/// 100 requests of a second each were outstanding; with 40 hits of 100 a request takes 0.6 s.
#[test]
fn reservations_are_met_or_refused_with_the_best_that_can_be_had() {
    let found = reader(&[(4, 30), (8, 40)]);
    let [first, second] = [tenant("a", Some(&found)), tenant("b", Some(&found))];
    let reasons = |tenants: &[Tenant<'_>]| -> Vec<String> {
        let last = |decision: &Decision| decision.reason.rsplit("; ").next().unwrap_or("").to_owned();
        decide(tenants, 10, None).iter().map(last).collect()
    };
    let large = promised(second, Reservation::Latency(0.6));
    assert_eq!(quotas(&decide(&[first, large], 10, None)), [1, 9]);
    assert_eq!(reasons(&[first, large])[1], "the reservation of 600.000 ms is met");
    let iops = promised(second, Reservation::Iops(160.0));
    assert_eq!(reasons(&[first, iops])[1], "the reservation of 160 IOPS is met");

    let impossible = promised(second, Reservation::Latency(0.5));
    assert_eq!(quotas(&decide(&[first, impossible], 10, None)), quotas(&decide(&[first, second], 10, None)));
    let refused = "the reservation of 500.000 ms is refused: 600.000 ms is the best that can be had";
    assert_eq!(reasons(&[first, impossible])[1], refused);

    // Either alone, but not both: eight blocks of ten are promised already.
    let both = [promised(first, Reservation::Latency(0.6)), iops];
    let refused = "the reservation of 160 IOPS is refused: 100 IOPS is the best that can be had";
    assert_eq!(reasons(&both), ["the reservation of 600.000 ms is met", refused]);
}
