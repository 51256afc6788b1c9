use super::*;
use crate::fixtures::{quotas, tenant};
use crate::{Findings, Goals, Measured, Reservation, Timed};
use larder_locality::{Counted, EpochFindings, PolicyCurves, SizeCurve};
use proptest::prelude::*;

mod properties;
mod qos;

/// Seconds of the epochs.
const SECONDS: f64 = 100.0;

/// An epoch of so many reads and writes of a block each, of which `hits` become hits at sizes (`(blocks, reads)`). Hits and cached writes take
/// 0.1 ms, everything else 5 ms.
fn epoch(hits: &[(u64, u64)], reads: u64, writes: u64) -> Findings {
    let hits = SizeCurve::rising(hits.iter().copied());
    let counted = Counted {
        reads,
        writes,
        requests: reads + writes,
        read_requests: reads,
        read_hits: hits.clone(),
        request_hits: hits.clone(),
        read_request_hits: hits,
        ..Counted::default()
    };
    let curves = [CurvePolicy::WriteBack, CurvePolicy::ReadOnly];
    let accesses = reads + writes;
    Findings {
        seconds: SECONDS,
        measured_seconds: SECONDS,
        curves: curves.map(|policy| PolicyCurves::new(policy, counted.clone())).to_vec(),
        ..EpochFindings { requests: accesses, accesses, ..EpochFindings::default() }.into()
    }
}

/// A cache of so many blocks; changes have so long to pay that they cost nothing.
fn cache(cache_blocks: u32) -> Constraints {
    Constraints { cache_blocks, epoch_seconds: 1e12, ..Constraints::default() }
}

fn decide(tenants: &[Tenant<'_>], constraints: &Constraints) -> Vec<Decision> {
    Larder::default().allocate(tenants, constraints).expect("it always decides")
}

fn latency(decision: &Decision) -> f64 {
    decision.predicted.expect("there are curves").latency
}

#[test]
fn blocks_go_where_they_save_the_most() {
    // 10 reads a second saved by 100 blocks, and 6 by 60; 110 blocks do for one of them.
    let (large, small) = (epoch(&[(100, 1000)], 2000, 0), epoch(&[(60, 600)], 2000, 0));
    let tenants = [tenant("large", Some(&large)), tenant("small", Some(&small))];
    let decisions = decide(&tenants, &cache(110));
    assert_eq!(quotas(&decisions).iter().sum::<u32>(), 110);
    assert!(decisions[0].quota_blocks >= 100);
    // Half of the reads hit.
    assert!((latency(&decisions[0]) - 2.55e-3).abs() < 1e-12);
    assert!((latency(&decisions[1]) - 5e-3).abs() < 1e-12);
    assert!(decisions[0].reason.contains("the best plan there is"), "{}", decisions[0].reason);
}

/// What a newcomer reads for the first time hits at no size; that says nothing yet.
#[test]
fn a_newcomer_keeps_its_part_for_a_whole_epoch() {
    let (known, cold) = (epoch(&[(100, 1000)], 1000, 0), epoch(&[], 1000, 0));
    let constraints = Constraints { cache_blocks: 100, epoch_seconds: 20.0, ..Constraints::default() };
    let mut larder = Larder::default();
    let mut decide =
        |tenants: &[Tenant<'_>]| quotas(&larder.allocate(tenants, &constraints).expect("it always decides"));
    let old = Tenant { quota_blocks: 50, ..tenant("old", Some(&known)) };
    assert_eq!(decide(&[old]), [100]);
    let since = |measured_seconds| Findings { measured_seconds, ..cold.clone() };
    let (just_now, long_ago) = (since(5.0), since(20.0));
    let new = |findings| Tenant { quota_blocks: 40, ..tenant("new", Some(findings)) };
    assert_eq!(decide(&[old, new(&just_now)]), [55, 45]);
    assert_eq!(decide(&[old, new(&long_ago)]), [100, 0]);
}

#[test]
fn weight_counts() {
    let (large, small) = (epoch(&[(100, 1000)], 2000, 0), epoch(&[(60, 600)], 2000, 0));
    let goals = Goals { weight: 2.0, ..Goals::default() };
    let tenants = [tenant("large", Some(&large)), Tenant { goals, ..tenant("small", Some(&small)) }];
    let decisions = decide(&tenants, &cache(110));
    assert!(decisions[1].quota_blocks >= 60 && decisions[0].quota_blocks < 100);
}

#[test]
fn a_budget_makes_writes_pass_the_ssd() {
    // As wb: 10 writes and up to 10 fills a second. As ro: the fills alone.
    let found = epoch(&[(50, 1000)], 1000, 1000);
    let tenants = [tenant("t", Some(&found))];
    let free = &decide(&tenants, &cache(50))[0];
    assert_eq!(free.mode.write, WritePolicy::WriteBack);
    assert!((latency(free) - 1e-4).abs() < 1e-12);
    let budget = Constraints { ssd_writes_per_second: Some(9.9), ..cache(50) };
    let tight = &decide(&tenants, &budget)[0];
    assert_eq!(tight.mode.write, WritePolicy::ReadOnly);
    assert!((latency(tight) - (1e-4 + 5e-3) / 2.0).abs() < 1e-12);
    assert!(tight.predicted.expect("there are curves").ssd_writes_per_second <= 9.9);
}

/// Both would gain by every block, but little of what the one writes is worth its price.
#[test]
fn who_writes_little_at_its_price_gets_little_more_than_that_takes() {
    let by_tens = |hits: u64| (1..=10).map(|at| (at * 10, hits)).collect::<Vec<_>>();
    let (gains, other) = (epoch(&by_tens(200), 2000, 0), epoch(&by_tens(100), 2000, 0));
    let with = |held| Findings { held_at_price: held, ..gains.clone() };
    let (few, many) = (with(Some(10)), with(Some(80)));
    let decided = |found, goals, max_blocks| {
        let one = Tenant { goals, quota_blocks: 100, ..tenant("one", Some(found)) };
        let goals = Goals { max_blocks, ..Goals::default() };
        decide(&[one, Tenant { goals, ..tenant("other", Some(&other)) }], &cache(100))
    };
    let nothing = Goals::default();
    assert_eq!(quotas(&decided(&gains, nothing, None)), [100, 0]);
    assert_eq!(quotas(&decided(&many, nothing, None)), [100, 0]);
    // Twice ten blocks, and a tenth of the cache.
    let little = decided(&few, nothing, None);
    assert_eq!(quotas(&little), [30, 70]);
    assert!(little[0].reason.ends_with("its blocks take about 10 of the cache"), "{}", little[0].reason);
    assert!(!little[1].reason.contains("price"));
    // What was promised is kept; and what the other may not have goes to who can use little of it.
    let reservation = Some(Reservation::Latency(1e-3));
    assert!(decided(&few, Goals { reservation, ..nothing }, None)[0].quota_blocks > 80);
    assert_eq!(quotas(&decided(&few, nothing, Some(40))), [60, 40]);
}

#[test]
fn a_newcomer_gets_an_equal_part() {
    let found = epoch(&[(90, 1000)], 2000, 0);
    let old = |name| Tenant { quota_blocks: 45, ..tenant(name, Some(&found)) };
    let mut larder = Larder::default();
    larder.allocate(&[old("a"), old("b")], &cache(90)).expect("it always decides");
    let decisions =
        larder.allocate(&[old("a"), old("b"), tenant("c", None)], &cache(90)).expect("it always decides");
    assert_eq!(decisions[2].quota_blocks, 30);
    assert_eq!(decisions[2].predicted, None);
    assert_eq!(quotas(&decisions).iter().sum::<u32>(), 90);
}

#[test]
fn an_idle_tenant_keeps_what_nobody_gains_from_and_fades() {
    let (found, greedy) = (epoch(&[(40, 1000)], 1000, 0), epoch(&[(60, 800)], 1000, 0));
    let idle = Tenant { quota_blocks: 40, ..tenant("idle", None) };
    let other = |found| Tenant { quota_blocks: 60, ..tenant("other", Some(found)) };
    let mut larder = Larder::default();
    let both = [Tenant { findings: Some(&found), ..idle }, other(&greedy)];
    assert_eq!(quotas(&larder.allocate(&both, &cache(100)).expect("it always decides")), [40, 60]);
    let decisions = larder.allocate(&[idle, other(&greedy)], &cache(100)).expect("it always decides");
    assert_eq!(quotas(&decisions), [40, 60]);
    // Another 20 blocks would serve 300 reads more: less than the idle tenant's 1000, until these are forgotten.
    let grown = epoch(&[(60, 600), (80, 900)], 1000, 0);
    let mut epochs = 0;
    while larder.allocate(&[idle, other(&grown)], &cache(100)).expect("it always decides")[1].quota_blocks
        < 80
    {
        epochs += 1;
    }
    assert_eq!(epochs, 0, "1000 halved twice is less than 300");
}

#[test]
fn how_long_a_tenant_is_known_does_not_make_it_count_more() {
    let (old, new) = (epoch(&[(50, 1000)], 2000, 0), epoch(&[(50, 1100)], 2000, 0));
    let old = Tenant { quota_blocks: 50, ..tenant("old", Some(&old)) };
    let mut larder = Larder::default();
    for _ in 0..3 {
        larder.allocate(&[old], &cache(50)).expect("it always decides");
    }
    let both = [old, tenant("new", Some(&new))];
    assert_eq!(quotas(&larder.allocate(&both, &cache(50)).expect("it always decides")), [0, 50]);
}

#[test]
fn those_that_are_gone_are_forgotten() {
    let found = epoch(&[(90, 1000)], 2000, 0);
    let mut larder = Larder::default();
    larder.allocate(&[tenant("a", Some(&found)), tenant("b", Some(&found))], &cache(90)).expect("decides");
    assert!(larder.allocate(&[], &cache(90)).expect("decides").is_empty());
    let again = larder.allocate(&[tenant("a", None)], &cache(90)).expect("decides");
    assert_eq!(again[0].predicted, None, "{}", again[0].reason);
    assert_eq!(again[0].quota_blocks, 90);
}

#[test]
fn a_cache_of_nothing_is_divided() {
    let found = epoch(&[(90, 1000)], 2000, 0);
    let min = Tenant { min_blocks: 1000, ..tenant("a", Some(&found)) };
    assert_eq!(quotas(&decide(&[min, tenant("b", None)], &cache(0))), [0, 0]);
}

/// A tenant of 1,000 misses in 100 s may take 10 blocks from another: counted twice, it fills them in 2 s, and half of what they save in that time is lost.
#[test]
fn a_change_must_pay_within_the_next_epoch() {
    let changes = |gained: u64| {
        let (a, b) = (epoch(&[(10, 100)], 1000, 0), epoch(&[(10, 100 + gained)], 1000, 0));
        let tenants = [Tenant { quota_blocks: 10, ..tenant("a", Some(&a)) }, tenant("b", Some(&b))];
        let constraints = Constraints { epoch_seconds: SECONDS, ..cache(10) };
        decide(&tenants, &constraints)[1].quota_blocks == 10
    };
    // 99 % of 101 hits are less than 100, and of 102 more.
    assert!(!changes(1) && changes(2));
}

#[test]
fn a_tenant_known_for_long_has_longer_to_pay() {
    let (a, b) = (epoch(&[(10, 20)], 40, 0), epoch(&[(10, 25)], 40, 0));
    let tenants = [Tenant { quota_blocks: 10, ..tenant("a", Some(&a)) }, tenant("b", Some(&b))];
    let constraints = Constraints { epoch_seconds: SECONDS, ..cache(10) };
    let mut larder = Larder::default();
    let mut quota = || larder.allocate(&tenants, &constraints).expect("decides")[1].quota_blocks;
    // 10 blocks take 25 s, counted twice: of one epoch a quarter of the 25 hits is lost, of two an eighth.
    assert_eq!([quota(), quota()], [0, 10]);
}

/// Where tenants come all the time, who decides is asked again and again within an epoch.
#[test]
fn decisions_that_stand_for_a_part_of_an_epoch_leave_a_change_as_long_to_pay() {
    let (a, b) = (epoch(&[(10, 20)], 40, 0), epoch(&[(10, 25)], 40, 0));
    let tenants = [Tenant { quota_blocks: 10, ..tenant("a", Some(&a)) }, tenant("b", Some(&b))];
    let part = Some(SECONDS / 16.0);
    let constraints = Constraints { epoch_seconds: SECONDS, passed_seconds: part, ..cache(10) };
    let mut larder = Larder::default();
    let quotas = [(); 32].map(|()| larder.allocate(&tenants, &constraints).expect("decides")[1].quota_blocks);
    // As with whole epochs: of one a quarter of what is gained is lost, of two an eighth; a fifth is gained.
    let first = quotas.iter().position(|&quota| quota == 10);
    assert!(first.is_some_and(|at| (16..32).contains(&at)), "{quotas:?}");
}

/// What is known of a tenant that nothing is found of any more fades with the time that passed, however long the decisions were to stand.
#[test]
fn who_is_idle_keeps_its_blocks_for_as_long_however_often_is_decided() {
    let (a, b) = (epoch(&[(10, 20)], 40, 0), epoch(&[(1000, 30)], 40, 0));
    let kept = |passed: f64, decisions: usize| {
        let constraints = Constraints { epoch_seconds: SECONDS, passed_seconds: Some(passed), ..cache(1000) };
        let mut larder = Larder::default();
        larder.allocate(&[tenant("a", Some(&a)), tenant("b", Some(&b))], &constraints).expect("decides");
        let idle = [tenant("a", None), tenant("b", Some(&b))];
        (0..decisions).for_each(|_| drop(larder.allocate(&idle, &constraints).expect("decides")));
        larder.memory.of(&idle)[0].weight
    };
    assert!((kept(SECONDS / 16.0, 16) - 0.5).abs() < 1e-9 && (kept(SECONDS, 1) - 0.5).abs() < 1e-9);
}

/// However long the new holder needs to fill them, blocks that do nothing for the old one go to it.
#[test]
fn blocks_of_no_use_change_hands_at_once() {
    let (idle, slow) = (epoch(&[(10, 100)], 1000, 0), epoch(&[(100_000, 5)], 100, 0));
    let tenants =
        [Tenant { quota_blocks: 100_000, ..tenant("idle", Some(&idle)) }, tenant("slow", Some(&slow))];
    let constraints = Constraints { epoch_seconds: SECONDS, ..cache(100_010) };
    assert!(decide(&tenants, &constraints)[1].quota_blocks >= 100_000);
}

#[test]
fn measurements_correct_predictions() {
    let mut found = epoch(&[(10, 1000)], 1000, 0);
    // All hits are predicted to take 0.1 ms; they took 0.15 ms.
    found.measured = Measured { read_hits: Timed { count: 1000, seconds: 0.15 }, ..Measured::default() };
    let tenants = [Tenant { quota_blocks: 10, ..tenant("a", Some(&found)) }];
    let decision = &decide(&tenants, &cache(10))[0];
    assert!((latency(decision) - 1.5e-4).abs() < 1e-12, "{}", decision.reason);
}
