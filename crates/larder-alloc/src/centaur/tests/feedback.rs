//! Shares where curves are wrong: what was measured corrects them.

use super::*;

/// The file of both tenants, and the cache that they have together, in blocks.
const FILE: u64 = 1000;

fn share(share: f64) -> Goals {
    Goals { share: Some(share), ..Goals::default() }
}

/// Random reads of a file, of which `missed` of 10,000 missed, at 10 ms each.
fn reads(missed: f64) -> Workload {
    Workload { ssd: 0.0, disk: 0.010, missed: (missed * 10_000.0) as u64, ..line(10_000, FILE) }
}

/// What the curve says of so many blocks.
fn curve(blocks: u32) -> f64 {
    1.0 - f64::from(blocks) / FILE as f64
}

/// Run epochs with shares of 1, each tenant's misses being this part of what its curve says, and its partition full at once.
fn run(parts: [f64; 2], epochs: usize) -> (Vec<u32>, Vec<Decision>) {
    let mut centaur = Centaur::default();
    let limits = constraints(FILE as u32, Objective::MeanLatency);
    let mut sizes = vec![500, 500];
    let mut decisions = Vec::new();
    for _ in 0..epochs {
        let findings = [0, 1].map(|at| reads(parts[at] * curve(sizes[at])).findings());
        let tenants = [0, 1].map(|at| with(vm(["a", "b"][at], &findings[at], sizes[at]), share(1.0)));
        decisions = allocate(&mut centaur, &tenants, &limits);
        sizes = quotas(&decisions);
    }
    (sizes, decisions)
}

#[test]
fn measured_latencies_meet_where_the_curves_are_wrong() {
    // By the curves alone both would keep 500 blocks, and the second have 70 % of the first's latency.
    let (sizes, decisions) = run([1.0, 0.7], 8);
    let latencies = [curve(sizes[0]), 0.7 * curve(sizes[1])];
    assert!((latencies[1] / latencies[0] - 1.0).abs() < 0.05, "{sizes:?}");
    // What is expected is what was measured, and the operator is told.
    let expected = decisions[1].predicted.map_or(0.0, |predicted| predicted.latency);
    assert!((expected / (latencies[1] * 0.010) - 1.0).abs() < 0.05, "{decisions:?}");
    assert!(
        decisions[1].reason.contains("its curve corrected, 70 % of the misses that it says having come"),
        "{}",
        decisions[1].reason
    );
    assert!(!decisions[0].reason.contains("corrected"), "{}", decisions[0].reason);
}

#[test]
fn curves_that_are_right_stay_as_they_are() {
    let (sizes, decisions) = run([1.0, 1.0], 4);
    assert_eq!(sizes, [500, 500]);
    assert!(!decisions[1].reason.contains("corrected"), "{}", decisions[1].reason);
}

/// What is learned of a tenant that holds 600 of its 800 blocks, and held `before`, where this part of its requests missed.
fn lesson(before: u64, missed: f64) -> Option<(f64, f64)> {
    let mut findings = reads(missed).findings();
    findings.usage.resident_blocks = 600;
    let lesson = Vm::of(&vm("a", &findings, 800)).expect("it did something").lesson(before)?;
    assert_eq!(lesson.part, 1.0);
    let thousandth = |part: f64| (part * 1000.0).round() / 1000.0;
    Some((thousandth(lesson.measured), thousandth(lesson.expected)))
}

#[test]
fn a_partition_that_was_being_filled_teaches_only_what_that_does_not_explain() {
    // Full all the while, or larger before: 40 % should have missed.
    for before in [600, 700] {
        assert_eq!(lesson(before, 0.3), Some((0.3, 0.4)));
        assert_eq!(lesson(before, 0.5), Some((0.5, 0.4)));
    }
    // It held 200 at first: between 40 % and 80 % anything might have.
    for missed in [0.4, 0.6, 0.8] {
        assert_eq!(lesson(200, missed), None);
    }
    assert_eq!(lesson(200, 0.3), Some((0.3, 0.4)));
    assert_eq!(lesson(200, 0.9), Some((0.9, 0.8)));
}

#[test]
fn only_what_came_after_the_decision_is_held_against_the_curve() {
    let mut findings = reads(0.8).findings();
    let since = SinceDecision { measured: reads(0.2).findings().measured, seconds: 15.0, part: 0.25 };
    findings.since_decision = Some(since);
    let lesson =
        Vm::of(&vm("a", &findings, 600)).and_then(|vm| vm.lesson(600)).expect("requests were measured");
    assert_eq!(lesson.part, 0.25);
    assert!((lesson.measured - 0.2).abs() < 1e-9 && (lesson.expected - 0.4).abs() < 1e-9, "{lesson:?}");
}

#[test]
fn no_miss_at_all_is_learned_too() {
    // All of the second's requests hit, where its curve says that half of them miss.
    let (sizes, decisions) = run([1.0, 0.0], 8);
    assert!(decisions[1].reason.contains("50 % of the misses"), "{}", decisions[1].reason);
    assert!(sizes[0] > 600, "{sizes:?}");
}

#[test]
fn reservations_go_by_the_curves_alone() {
    // Section VI-A: a plan that does not bring what was predicted is tried again, and given up in the end.
    let mut centaur = Centaur::default();
    let limits = constraints(FILE as u32, Objective::MeanLatency);
    for _ in 0..3 {
        let findings = [reads(0.35).findings(), reads(0.5).findings()];
        let tenants = [with(vm("a", &findings[0], 500), latency(0.004)), vm("b", &findings[1], 500)];
        let decisions = allocate(&mut centaur, &tenants, &limits);
        assert!(decisions[0].reason.contains("needs 600 blocks"), "{}", decisions[0].reason);
    }
}
