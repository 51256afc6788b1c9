//! Which choices a tenant has, by hand, and that none is lost that could be the best.

use super::*;
use crate::menu::Way;
use crate::{Goals, Measured, Mode, Timed, WritePolicy};
use larder_locality::EpochFindings;
use larder_policy::spec::CachingSpec;
use proptest::prelude::*;

/// Ten requests per second; `wb` halves the latency at every step and writes much, `ro` does little and writes little.
fn menu() -> Menu {
    let way = |write, points: &[(u64, f64, f64)]| Way {
        mode: Mode { caching: CachingSpec::default(), write },
        points: points
            .iter()
            .map(|&(blocks, latency, ssd_writes)| point(blocks, latency, ssd_writes))
            .collect(),
    };
    Menu {
        ways: vec![
            way(WritePolicy::WriteBack, &[(0, 0.8, 0.0), (10, 0.4, 50.0), (20, 0.2, 40.0), (30, 0.1, 30.0)]),
            way(WritePolicy::ReadOnly, &[(0, 0.8, 0.0), (10, 0.7, 5.0), (25, 0.6, 2.0)]),
        ],
        requests_per_second: 10.0,
    }
}

fn point(blocks: u64, latency: f64, ssd_writes: f64) -> Point {
    Point { blocks, latency, ssd_writes, request_hit_ratio: 0.0 }
}

/// 100 requests in 10 seconds, each of which took 0.4: four outstanding.
fn findings() -> Findings {
    Findings {
        seconds: 10.0,
        measured: Measured { read_misses: Timed { count: 100, seconds: 40.0 }, ..Measured::default() },
        ..EpochFindings { requests: 100, accesses: 100, ..EpochFindings::default() }.into()
    }
}

fn tenant(findings: Option<&Findings>) -> Tenant<'_> {
    Tenant {
        name: "t",
        quota_blocks: 0,
        mode: Mode { caching: CachingSpec::default(), write: WritePolicy::WriteBack },
        findings,
        configured_policy: ConfiguredPolicy::Auto,
        configured_quota_blocks: None,
        min_blocks: 0,
        goals: Goals::default(),
    }
}

fn constraints(cache_blocks: u32, budget: Option<f64>) -> Constraints {
    Constraints { cache_blocks, ssd_writes_per_second: budget, ..Constraints::default() }
}

/// `(blocks, writes, cost, way)` of all choices.
fn list(candidates: &Candidates) -> Vec<(u64, f64, f64, u32)> {
    candidates.choices.iter().map(|c| (c.blocks, c.writes, (c.cost * 10.0).round() / 10.0, c.way)).collect()
}

#[test]
fn with_a_budget_what_writes_less_is_a_choice_too() {
    let found = findings();
    let free =
        of(&tenant(Some(&found)), &menu(), &constraints(100, None)).expect("what is promised can be had");
    assert_eq!(list(&free), [(0, 0.0, 8.0, 0), (10, 50.0, 4.0, 0), (20, 40.0, 2.0, 0), (30, 30.0, 1.0, 0)]);
    let bound = of(&tenant(Some(&found)), &menu(), &constraints(100, Some(1.0)))
        .expect("what is promised can be had");
    assert_eq!(
        list(&bound),
        [
            (0, 0.0, 8.0, 0),
            (10, 5.0, 7.0, 1),
            (10, 50.0, 4.0, 0),
            (20, 40.0, 2.0, 0),
            (25, 2.0, 6.0, 1),
            (30, 30.0, 1.0, 0)
        ]
    );
}

#[test]
fn the_minimum_is_paid_and_the_maximum_and_the_cache_bound_it() {
    let found = findings();
    let within = |min_blocks, max_blocks, cache| {
        let goals = Goals { max_blocks, weight: 2.0, ..Goals::default() };
        let tenant = Tenant { min_blocks, goals, ..tenant(Some(&found)) };
        list(&of(&tenant, &menu(), &constraints(cache, None)).expect("what is promised can be had"))
    };
    // 15 blocks do what 10 do. A weight of 2 doubles the costs.
    assert_eq!(within(15, Some(29), 100), [(15, 50.0, 8.0, 0), (20, 40.0, 4.0, 0)]);
    assert_eq!(within(15, None, 12), [(12, 50.0, 8.0, 0)]);
    assert_eq!(within(1000, Some(20), 100), [(20, 40.0, 4.0, 0)]);
    assert_eq!(within(0, Some(0), 100), [(0, 0.0, 16.0, 0)]);
}

#[test]
fn a_configured_policy_leaves_only_its_ways() {
    let found = findings();
    let fixed = |policy| {
        let tenant = Tenant {
            configured_policy: ConfiguredPolicy::Fixed(policy),
            min_blocks: 3,
            ..tenant(Some(&found))
        };
        list(&of(&tenant, &menu(), &constraints(100, None)).expect("what is promised can be had"))
    };
    assert_eq!(fixed(WritePolicy::ReadOnly), [(3, 0.0, 8.0, 1), (10, 5.0, 7.0, 1), (25, 2.0, 6.0, 1)]);
    assert_eq!(fixed(WritePolicy::WriteThrough), [(3, 0.0, 0.0, Choice::NO_WAY)]);
}

#[test]
fn of_a_tenant_that_did_nothing_only_the_minimum_is_known() {
    let idle = Findings::default();
    for findings in [None, Some(&idle)] {
        let tenant = Tenant { min_blocks: 7, ..tenant(findings) };
        let candidates = of(&tenant, &menu(), &constraints(100, None)).expect("what is promised can be had");
        assert_eq!(candidates.choices, [Choice::unknown(7)]);
    }
}

#[test]
fn a_reservation_leaves_what_meets_it() {
    let found = findings();
    let reserved = |promised, max_blocks| {
        let goals = Goals { reservation: Some(promised), max_blocks, ..Goals::default() };
        of(&Tenant { goals, ..tenant(Some(&found)) }, &menu(), &constraints(100, None))
    };
    let sizes = |promised| {
        list(&reserved(promised, None).expect("what is promised can be had"))
            .iter()
            .map(|c| c.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(Reservation::Latency(0.4)), [10, 20, 30]);
    // Four outstanding that take 0.2 seconds each are 20 per second.
    assert_eq!(sizes(Reservation::Iops(20.0)), [20, 30]);

    let promised = Reservation::Latency(0.05);
    let unmet = Unmet { promised, best: Reservation::Latency(0.1), blocks: 30 };
    assert_eq!(reserved(promised, None), Err(unmet));
    let promised = Reservation::Iops(20.5);
    let unmet = Unmet { promised, best: Reservation::Iops(20.0), blocks: 20 };
    assert_eq!(reserved(promised, Some(29)), Err(unmet));
}

/// One request at a time is the least: a tenant that asks rarely is not refused for it.
#[test]
fn one_request_is_outstanding_at_least() {
    assert_eq!(outstanding(&Findings::default()), 1.0);
    let rare = Findings { seconds: 1000.0, ..findings() };
    assert_eq!(outstanding(&rare), 1.0);
    assert_eq!(latency_limit(Reservation::Iops(50.0), &rare), 0.02);
}

fn choice() -> impl Strategy<Value = Choice> {
    (0u64..8, 0u8..8, 0u8..8, 0u32..3).prop_map(|(blocks, writes, cost, way)| Choice {
        blocks,
        writes: writes.into(),
        cost: cost.into(),
        way,
    })
}

proptest! {
    #[test]
    fn what_is_left_is_as_good_as_all_and_none_is_as_good_as_another(
        choices in proptest::collection::vec(choice(), 1..40), budget: bool,
    ) {
        let as_good = |a: &Choice, b: &Choice| {
            a.blocks <= b.blocks && a.cost <= b.cost && (!budget || a.writes <= b.writes)
        };
        let left = Candidates::new(choices.clone(), budget).choices;
        prop_assert!(choices.iter().all(|choice| left.iter().any(|one| as_good(one, choice))));
        for (at, one) in left.iter().enumerate() {
            prop_assert!(choices.contains(one));
            prop_assert!(left.iter().enumerate().all(|(other, two)| at == other || !as_good(two, one)));
        }
        prop_assert!(left.is_sorted_by_key(|choice| choice.blocks));
    }
}
