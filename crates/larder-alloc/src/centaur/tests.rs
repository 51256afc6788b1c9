//! Workloads for Centaur's tests, and its decisions on hand-worked cases.

use larder_locality::{Counted, CurvePolicy, EpochFindings, PolicyCurves, SizeCurve};

use super::*;
use crate::fixtures::{quotas, tenant};
use crate::{Findings, Goals, Latencies, Measured, Reservation, SinceDecision, Timed};

/// Seconds of an epoch.
pub(in crate::centaur) const SECONDS: f64 = 10.0;

/// What a tenant did in an epoch of [`SECONDS`]: reads of one block.
#[derive(Clone, Debug)]
pub(in crate::centaur) struct Workload {
    pub requests: u64,
    /// `(blocks, hits)`: so many more from that size on.
    pub steps: Vec<(u64, u64)>,
    /// Of the requests, those that missed in the epoch.
    pub missed: u64,
    /// Seconds of a hit.
    pub ssd: f64,
    /// Seconds of a miss.
    pub disk: f64,
}

/// Random reads of a file: every block brings as much as the one before. All missed.
pub(in crate::centaur) fn line(requests: u64, file_blocks: u64) -> Workload {
    let per_block = requests / file_blocks;
    let steps = (1..=file_blocks).map(|blocks| (blocks, per_block)).collect();
    Workload { requests, steps, missed: requests, ssd: 1.0, disk: 5.0 }
}

/// Sequential reads of a file, over and over: all of it, or nothing. All missed.
pub(in crate::centaur) fn cliff(requests: u64, file_blocks: u64) -> Workload {
    Workload { steps: vec![(file_blocks, requests)], ..line(requests, 1) }
}

impl Workload {
    pub(in crate::centaur) fn findings(&self) -> Findings {
        let counted = Counted {
            reads: self.requests,
            requests: self.requests,
            read_requests: self.requests,
            request_hits: SizeCurve::rising(self.steps.iter().copied()),
            ..Counted::default()
        };
        let hit = self.requests - self.missed;
        let timed = |count: u64, each: f64| Timed { count, seconds: count as f64 * each };
        Findings {
            epoch: EpochFindings {
                requests: self.requests,
                accesses: self.requests,
                ..EpochFindings::default()
            },
            seconds: SECONDS,
            curves: vec![PolicyCurves::new(CurvePolicy::Batched, counted)],
            measured: Measured {
                read_hits: timed(hit, self.ssd),
                read_misses: timed(self.missed, self.disk),
                ..Measured::default()
            },
            latencies: Latencies {
                read_hit: self.ssd,
                read_miss: self.disk,
                cached_write: self.ssd,
                backing_write: self.disk,
                write_back: 0.0,
            },
            ..Findings::default()
        }
    }
}

fn vm<'a>(name: &'a str, findings: &'a Findings, quota_blocks: u32) -> Tenant<'a> {
    Tenant { quota_blocks, mode: profile().mode, ..tenant(name, Some(findings)) }
}

fn with(tenant: Tenant<'_>, goals: Goals) -> Tenant<'_> {
    Tenant { goals, ..tenant }
}

fn constraints(cache_blocks: u32, objective: Objective) -> Constraints {
    Constraints { cache_blocks, objective, ..Constraints::default() }
}

fn allocate(
    centaur: &mut impl Allocator,
    tenants: &[Tenant<'_>],
    constraints: &Constraints,
) -> Vec<Decision> {
    centaur.allocate(tenants, constraints).expect("centaur always decides")
}

/// A first decision.
fn decide(tenants: &[Tenant<'_>], cache_blocks: u32, objective: Objective) -> Vec<Decision> {
    allocate(&mut Centaur::default(), tenants, &constraints(cache_blocks, objective))
}

#[test]
fn figure_3_one_unit_for_each() {
    // Random reads of files of 2 and 1 units, and a cache of 2: 0.5 + 0 of their requests miss.
    let (first, second) = (line(100, 2).findings(), line(100, 1).findings());
    let tenants = [vm("first", &first, 2), vm("second", &second, 0)];
    let decisions = decide(&tenants, 2, Objective::TotalMisses);
    assert_eq!(quotas(&decisions), [1, 1]);
    let misses: f64 = decisions.iter().filter_map(|d| Some(1.0 - d.predicted?.request_hit_ratio)).sum();
    assert_eq!(misses, 0.5);
    assert_eq!(
        decisions[0].reason,
        "1 of 2 blocks, 3.00 s expected (miss ratio 0.50, SSD 1.00 s, disk 5.00 s): for the fewest misses; \
         planned for the first time with these tenants; write policy wb, the method's own"
    );
}

#[test]
fn a_sequential_workload_gets_blocks_for_latency_and_none_for_iops() {
    // Figure 10: sequential reads of 50 blocks, 0.648 ms on the SSD and 1.548 ms on the SAN, 1689 IOPS there; random reads
    // of 100 blocks at 200 IOPS. 60 blocks save the sequential one all, or the random one 60 %.
    let sequential = Workload { ssd: 0.000_648, disk: 0.001_548, ..cliff(16_890, 50) };
    let random = Workload { ssd: 0.001, disk: 0.0012, ..line(2000, 100) };
    let (sequential, random) = (sequential.findings(), random.findings());
    let tenants = [vm("sequential", &sequential, 30), vm("random", &random, 30)];
    assert_eq!(quotas(&decide(&tenants, 60, Objective::SumOfLatencies)), [50, 10]);
    // 1/1689 s is less than 60 % of 1/200 s.
    assert_eq!(quotas(&decide(&tenants, 60, Objective::Iops)), [0, 60]);
}

#[test]
fn the_objective_says_whose_requests_count() {
    // The slow tenant waits more for each request, the busy one has more of them, and the third has the most weight.
    let busy = Workload { disk: 2.0, ..cliff(1000, 10) }.findings();
    let slow = Workload { disk: 9.0, ..cliff(10, 10) }.findings();
    let tenants = [vm("busy", &busy, 0), vm("slow", &slow, 0)];
    assert_eq!(quotas(&decide(&tenants, 10, Objective::TotalMisses)), [10, 0]);
    assert_eq!(quotas(&decide(&tenants, 10, Objective::MeanLatency)), [10, 0]);
    assert_eq!(quotas(&decide(&tenants, 10, Objective::SumOfLatencies)), [0, 10]);
    let heavy = with(tenants[0], Goals { weight: 10.0, ..Goals::default() });
    assert_eq!(quotas(&decide(&[heavy, tenants[1]], 10, Objective::SumOfLatencies)), [10, 0]);
}

#[test]
fn the_hull_gives_half_a_cliff_and_centaur_does_not() {
    // Steps 1 to 4 by hand: the minorants of a loop over 8 blocks and of random reads of 10 fall by 1/8 and 1/10 for
    // each block, so that the loop gets all 6. They bring nothing. The random reads would miss 60 % less with them.
    let (looped, random) = (cliff(100, 8).findings(), line(100, 10).findings());
    let tenants = [vm("looped", &looped, 3), vm("random", &random, 3)];
    let by_misses = constraints(6, Objective::TotalMisses);
    let decisions = allocate(&mut ConvexHull, &tenants, &by_misses);
    assert_eq!(quotas(&decisions), [6, 0]);
    assert_eq!(decisions[0].predicted.map(|predicted| predicted.request_hit_ratio), Some(0.0));
    assert_eq!(quotas(&decide(&tenants, 6, Objective::TotalMisses)), [0, 6]);
    // With 9 blocks the first 8 go to the loop, the last one to the other.
    assert_eq!(quotas(&allocate(&mut ConvexHull, &tenants, &constraints(9, Objective::TotalMisses))), [8, 1]);
    // What nobody gains by is shared out: one more than all.
    assert_eq!(
        quotas(&allocate(&mut ConvexHull, &tenants, &constraints(20, Objective::TotalMisses))),
        [9, 11]
    );
    let least = Tenant { min_blocks: 2, ..tenants[1] };
    assert_eq!(quotas(&allocate(&mut ConvexHull, &[tenants[0], least], &by_misses)), [4, 2]);
}

#[test]
fn a_partitioning_stands_while_predictions_hold_and_nothing_is_to_gain() {
    let mut centaur = Centaur::default();
    let limits = constraints(12, Objective::SumOfLatencies);
    let mut sizes = [6, 6];
    let mut epoch = |workloads: [Workload; 2]| {
        let findings = workloads.map(|workload| workload.findings());
        let tenants = [vm("line", &findings[0], sizes[0]), vm("loop", &findings[1], sizes[1])];
        let decisions = allocate(&mut centaur, &tenants, &limits);
        sizes = [decisions[0].quota_blocks, decisions[1].quota_blocks];
        (sizes, decisions[0].reason.clone())
    };
    // The loop gets its 5 blocks, the line the rest: 2.2 s are expected of it, at 5 s on the disk.
    let (planned, reason) = epoch([line(100, 10), cliff(100, 5)]);
    assert_eq!(planned, [7, 5]);
    assert!(reason.contains("2.20 s expected") && reason.contains("planned for the first time"), "{reason}");
    // It misses as expected, but the disk takes 4 s now: 1.9 s.
    let as_planned =
        [Workload { missed: 30, disk: 4.0, ..line(100, 10) }, Workload { missed: 0, ..cliff(100, 5) }];
    let (planned, reason) = epoch(as_planned.clone());
    assert_eq!(planned, [7, 5]);
    assert!(
        reason.contains("planned anew, measured latencies being up to 14 % off the predicted ones"),
        "{reason}"
    );
    let (stood, reason) = epoch(as_planned.clone());
    assert_eq!(stood, [7, 5]);
    assert!(reason.contains("stands, measured latencies being within 5 %"), "{reason}");
    assert!(reason.contains("measured 1.90 s where 1.90 s were predicted"), "{reason}");
    // The loop is too long by now: there is something to gain, whatever was predicted.
    let [line, looped] = as_planned;
    let (planned, reason) = epoch([line, Workload { steps: vec![(50, 100)], ..looped }]);
    assert_eq!(planned, [11, 1]);
    assert!(reason.contains("planned anew for a gain of 13 %"), "{reason}");
}

#[test]
fn a_size_out_of_bounds_does_not_stand() {
    let mut centaur = Centaur::default();
    let findings = cliff(100, 5).findings();
    let limits = constraints(10, Objective::MeanLatency);
    let decisions = allocate(&mut centaur, &[vm("a", &findings, 10)], &limits);
    assert_eq!(quotas(&decisions), [10]);
    // The half of the cache is gone, and what was measured is as predicted.
    let half = constraints(5, Objective::MeanLatency);
    let hits = Workload { missed: 0, ..cliff(100, 5) }.findings();
    let decisions = allocate(&mut centaur, &[vm("a", &hits, 10)], &half);
    assert_eq!(quotas(&decisions), [5]);
    assert!(decisions[0].reason.contains("the old sizes being out of bounds"), "{}", decisions[0].reason);
}

fn latency(seconds: f64) -> Goals {
    Goals { reservation: Some(Reservation::Latency(seconds)), ..Goals::default() }
}

#[test]
fn a_reservation_takes_from_the_others_what_it_needs() {
    // 2 s need three quarters of 8 blocks, whatever the other could gain with them.
    let promised = line(80, 8).findings();
    let other = Workload { disk: 100.0, ..line(8000, 8) }.findings();
    let tenants = [with(vm("promised", &promised, 4), latency(2.0)), vm("other", &other, 4)];
    let decisions = decide(&tenants, 8, Objective::MeanLatency);
    assert_eq!(quotas(&decisions), [6, 2]);
    assert!(
        decisions[0].reason.contains("the reservation of 2.00 s needs 6 blocks"),
        "{}",
        decisions[0].reason
    );
    let without = [vm("promised", &promised, 4), tenants[1]];
    assert_eq!(quotas(&decide(&without, 8, Objective::MeanLatency)), [0, 8]);
    // 16 IOPS are twice those of the disk: half of the hits.
    let iops = Goals { reservation: Some(Reservation::Iops(16.0)), ..Goals::default() };
    let tenants = [with(tenants[0], iops), tenants[1]];
    assert_eq!(quotas(&decide(&tenants, 8, Objective::MeanLatency)), [4, 4]);
}

#[test]
fn a_reservation_that_does_not_fit_is_refused_and_the_others_stay() {
    let findings = line(80, 8).findings();
    let first = with(vm("first", &findings, 4), latency(2.0));
    let second = with(vm("second", &findings, 4), latency(3.0));
    let small = Tenant { min_blocks: 1, ..vm("small", &findings, 0) };
    let mut centaur = Centaur::default();
    let limits = constraints(10, Objective::SumOfLatencies);
    let decisions = allocate(&mut centaur, &[first, small], &limits);
    assert!(decisions[0].quota_blocks >= 6);
    // The second asks later: it needs 4, and 3 are left beside the 6 and the minimum of 1, although it stands first.
    let decisions = allocate(&mut centaur, &[second, first, small], &limits);
    let reason = &decisions[0].reason;
    assert!(
        reason.contains("the reservation of 3.00 s is refused: the best that can be had is 3.50 s"),
        "{reason}"
    );
    assert!(decisions[1].reason.contains("the reservation of 2.00 s needs 6 blocks"));
    assert!(decisions[1].quota_blocks >= 6 && decisions[2].quota_blocks >= 1);
    // Asked together, the order is that of the tenants.
    let decisions = decide(&[second, first, small], 10, Objective::SumOfLatencies);
    assert!(decisions[0].reason.contains("needs 4 blocks") && decisions[1].reason.contains("is refused"));
    // No size at all would do for 0.5 s, nor 4 blocks for 2 s.
    let decisions = decide(&[with(first, latency(0.5))], 10, Objective::SumOfLatencies);
    assert!(decisions[0].reason.contains("the best that can be had is 1.00 s"), "{}", decisions[0].reason);
    let limited = Goals { max_blocks: Some(4), ..latency(2.0) };
    let decisions = decide(&[with(first, limited)], 10, Objective::SumOfLatencies);
    assert!(decisions[0].reason.contains("the best that can be had is 3.00 s"), "{}", decisions[0].reason);
}

#[test]
fn a_reservation_that_is_never_met_is_declared_unmet() {
    // The curve says that 6 blocks are enough. Whatever it gets, all of its requests miss.
    let findings = line(80, 8).findings();
    let mut centaur = Centaur::default();
    let limits = constraints(10, Objective::SumOfLatencies);
    let mut quota = 5;
    let mut epoch = |other: &Tenant<'_>, reservation: f64| {
        let tenants = [with(vm("promised", &findings, quota), latency(reservation)), *other];
        let decisions = allocate(&mut centaur, &tenants, &limits);
        quota = decisions[0].quota_blocks;
        decisions[0].reason.clone()
    };
    let other = Tenant { min_blocks: 2, ..vm("other", &findings, 5) };
    for _ in 0..6 {
        let reason = epoch(&other, 2.0);
        assert!(reason.contains("needs 6 blocks"), "{reason}");
    }
    for _ in 0..3 {
        let reason = epoch(&other, 2.0);
        assert!(reason.contains("is declared unmet after 6 epochs without convergence"), "{reason}");
    }
    // Another neighbour, another promise: it asks again.
    assert!(epoch(&Tenant { name: "new", ..other }, 2.0).contains("needs 6 blocks"));
    (0..6).for_each(|_| drop(epoch(&Tenant { name: "new", ..other }, 2.0)));
    assert!(epoch(&Tenant { name: "new", ..other }, 2.0).contains("declared unmet"));
    assert!(
        epoch(&Tenant { name: "new", ..other }, 3.0).contains("the reservation of 3.00 s needs 4 blocks")
    );
}

#[test]
fn shares_of_one_and_two_halve_the_latency_of_the_second() {
    // The latencies of both fall from 8 s at nothing to 0 at 1000 blocks: 333 of them and 667 make 2 to 1.
    let findings = Workload { ssd: 0.0, disk: 8.0, ..line(2000, 1000) }.findings();
    let share = |share: f64| Goals { share: Some(share), ..Goals::default() };
    let other = vm("other", &findings, 300);
    let tenants =
        [with(vm("one", &findings, 500), share(1.0)), other, with(vm("two", &findings, 500), share(2.0))];
    let decisions = decide(&tenants, 1300, Objective::MeanLatency);
    assert_eq!(decisions[1].quota_blocks, 300);
    let predicted = |at: usize| decisions[at].predicted.map_or(0.0, |predicted| predicted.latency);
    assert!((predicted(0) / predicted(2) - 2.0).abs() < 0.05, "{decisions:?}");
    assert_eq!(quotas(&decisions).iter().sum::<u32>(), 1300);
    assert!(
        decisions[0].reason.contains("for its share of 1: scaled by the shares, the tenants' curves meet")
    );
    assert!(decisions[1].reason.contains("no share configured: keeps its quota"), "{}", decisions[1].reason);
    // A share beside a reservation: the share counts.
    let both = Goals { share: Some(1.0), ..latency(0.1) };
    let again = decide(&[with(tenants[0], both), other, tenants[2]], 1300, Objective::MeanLatency);
    assert_eq!(quotas(&again), quotas(&decisions));
    assert!(again[0].reason.contains("its reservation is not looked at while there are shares"));
}

#[test]
fn idle_tenants_get_their_minimum_and_a_part_of_what_is_left() {
    let findings = cliff(100, 5).findings();
    let idle = Tenant { min_blocks: 2, ..tenant("idle", None) };
    let decisions = decide(&[idle, vm("busy", &findings, 0)], 7, Objective::MeanLatency);
    assert_eq!((quotas(&decisions), decisions[0].predicted), (vec![2, 5], None));
    assert!(decisions[0].reason.contains("idle, or its curve unknown"), "{}", decisions[0].reason);
    let decisions = decide(&[idle, vm("busy", &findings, 0)], 11, Objective::MeanLatency);
    assert_eq!(quotas(&decisions), [4, 7]);
    let mut unknown = findings.clone();
    unknown.curves.clear();
    assert_eq!(decide(&[vm("odd", &unknown, 3)], 7, Objective::Iops)[0].predicted, None);
    assert_eq!(decide(&[], 7, Objective::Iops), []);
}

#[test]
fn the_profile_is_the_papers() {
    let profile = Centaur::default().profile();
    assert_eq!(
        (profile.mode.caching.to_string(), profile.mode.write),
        ("aging-lfu".to_owned(), WritePolicy::WriteBack)
    );
    assert_eq!((profile.block_bytes, profile.epoch_seconds), (131_072, 300.0));
    assert_eq!(profile.population, Population::Batched { seconds: 60.0 });
    assert_eq!(ConvexHull.profile(), Profile { keeps_promises: false, ..profile });
    assert_eq!(Centaur::default().needs(false).curves, [CurvePolicy::Batched]);
}

mod feedback;
mod properties;
mod unreachable;
