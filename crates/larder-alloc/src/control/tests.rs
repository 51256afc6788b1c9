//! The loop from request to decision.

use super::*;
use crate::{Goals, Timed};

const BLOCKS: u32 = 1000;

/// A cache of a thousand blocks.
pub(super) fn config(epoch_seconds: f64) -> ControlConfig {
    ControlConfig {
        block_bytes: 4096,
        cache_blocks: BLOCKS,
        min_blocks: 10,
        write_threshold: 0.5,
        write_back: true,
        objective: Objective::default(),
        budget: None,
        epoch_seconds,
        nominal: Latencies::default(),
        sampling: Sampling::Exact,
        bank_blocks: 1 << 12,
        seed: 1,
    }
}

/// A tenant of whom nothing is said.
pub(super) fn tenant(name: &str) -> ControlTenant {
    let (quota_blocks, write_policy) = (None, ConfiguredPolicy::Auto);
    ControlTenant { name: name.into(), quota_blocks, write_policy, goals: Goals::default() }
}

fn control(name: &str, tenants: &[&str]) -> ControlLoop {
    let allocator = crate::by_name(name).expect("known");
    let profile = allocator.profile();
    ControlLoop::new(config(100.0), allocator, profile, tenants.iter().map(|name| tenant(name)).collect())
}

fn quotas(control: &ControlLoop) -> Vec<u32> {
    control.positions().iter().map(|position| position.decision.quota_blocks).collect()
}

fn read_twice(control: &mut ControlLoop, tenant: usize, blocks: u64) {
    for _ in 0..2 {
        (0..blocks).for_each(|block| {
            if control.observe(tenant, Op::Read, block..block + 1) {
                control.analyze(tenant);
            }
        });
    }
}

#[test]
fn a_newcomer_has_an_equal_part_and_the_others_make_room() {
    let mut control = control("eci", &["a", "b", "c"]);
    control.arrive(&[0, 1], 0.0).expect("fits");
    assert_eq!(quotas(&control), [500, 500, 0]);
    control.arrive(&[2], 50.0).expect("fits");
    assert_eq!(quotas(&control), [333, 333, 333]);
    // What was decided was of more blocks.
    let told = |at: usize| {
        let position = &control.positions()[at];
        (position.decision.reason.as_str(), position.is_provisional())
    };
    assert_eq!(told(0), ("333 of 500 blocks until the next decision: room for who has come", true));
    assert!(told(2).0.starts_with("333 blocks: an equal share of the 1,000") && told(1).1, "{:?}", told(2));
    control.leave(0);
    assert_eq!(quotas(&control), [0, 333, 333]);
    control.decide(100.0, &[]).expect("decided");
    assert!(!control.positions().iter().any(Position::is_provisional));
}

#[test]
fn of_one_cache_for_all_nobody_makes_room() {
    let mut control = control("unified", &["a", "b"]);
    control.arrive(&[0], 0.0).expect("fits");
    control.decide(100.0, &[]).expect("decided");
    let decided = control.positions()[0].decision.reason.clone();
    control.arrive(&[1], 110.0).expect("fits");
    assert_eq!(control.positions()[0].decision.reason, decided);
}

#[test]
fn who_was_promised_something_gives_a_newcomer_its_least_at_first() {
    let allocator = crate::by_name("larder").expect("known");
    let profile = allocator.profile();
    let goals = Goals { reservation: Some(crate::Reservation::Latency(1e-3)), ..Goals::default() };
    let promised = ControlTenant { goals, ..tenant("promised") };
    let tenants = vec![promised, tenant("free"), tenant("late"), tenant("later")];
    let mut control = ControlLoop::new(config(100.0), allocator, profile, tenants);
    control.arrive(&[0], 0.0).expect("fits");
    control.arrive(&[1], 10.0).expect("fits");
    assert_eq!(quotas(&control), [990, 10, 0, 0]);
    control.arrive(&[2, 3], 20.0).expect("fits");
    assert_eq!(quotas(&control), [970, 10, 10, 10]);
    assert_eq!(
        control.positions()[2].decision.reason,
        "10 blocks until more is known, by what promises and least sizes leave"
    );
}

#[test]
fn nobody_falls_below_its_least_for_a_newcomer() {
    let mut control = control("eci", &["a", "b", "c"]);
    control.arrive(&[0, 1], 0.0).expect("fits");
    read_twice(&mut control, 0, 2000);
    control.decide(100.0, &[]).expect("decided");
    assert_eq!(quotas(&control), [990, 10, 0]);
    control.arrive(&[2], 110.0).expect("fits");
    assert_eq!(quotas(&control), [657, 10, 333]);
}

#[test]
fn fixed_quotas_are_what_is_configured_whoever_comes() {
    let allocator = crate::by_name("static").expect("known");
    let profile = allocator.profile();
    let fixed = ControlTenant { quota_blocks: Some(500), ..tenant("fixed") };
    let tenants = vec![fixed, tenant("free"), tenant("late")];
    let mut control = ControlLoop::new(config(100.0), allocator, profile, tenants);
    control.arrive(&[0, 1], 0.0).expect("fits");
    assert_eq!(quotas(&control), [500, 500, 0]);
    control.arrive(&[2], 10.0).expect("fits");
    assert_eq!(quotas(&control), [500, 250, 250]);
    let reason = &control.positions()[1].decision.reason;
    assert!(reason.starts_with("250 blocks: an equal share of the 500"), "{reason}");
    let before = control.positions().to_vec();
    let decided = control.decide(100.0, &[]).expect("decided");
    let quotas = |of: &[Position]| of.iter().map(|it| it.decision.quota_blocks).collect::<Vec<_>>();
    assert_eq!(quotas(decided), quotas(&before), "the decision is the same");
}

#[test]
fn decisions_follow_what_was_read_again() {
    let mut control = control("eci", &["a", "b"]);
    control.arrive(&[0, 1], 0.0).expect("fits");
    read_twice(&mut control, 0, 40);
    read_twice(&mut control, 1, 300);
    assert_eq!(control.due_seconds(), 100.0);
    control.decide(100.0, &[]).expect("decided");
    assert_eq!((quotas(&control), control.epoch(), control.due_seconds()), (vec![40, 300], 1, 200.0));
    // An epoch of nothing: both fall back to the minimum.
    control.decide(200.0, &[]).expect("decided");
    assert_eq!(quotas(&control), [10, 10]);
}

#[test]
fn those_who_are_not_there_are_not_decided_about() {
    let mut control = control("eci", &["a", "b"]);
    control.arrive(&[1], 0.0).expect("fits");
    read_twice(&mut control, 0, 40);
    read_twice(&mut control, 1, 30);
    control.decide(100.0, &[]).expect("decided");
    assert_eq!(quotas(&control), [0, 30]);
    assert!(control.positions()[0].findings.is_none());
}

#[test]
fn latencies_are_those_measured_and_else_those_known_before() {
    let mut control = control("eci", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    read_twice(&mut control, 0, 40);
    (0..40).for_each(|_| control.served(0, ServedBy::ReadHit, 0.5));
    control.decide(100.0, &[]).expect("decided");
    let latencies = |control: &ControlLoop| {
        control.positions()[0].findings.as_ref().map(|findings| findings.latencies).expect("found")
    };
    assert_eq!(latencies(&control), Latencies { read_hit: 0.5, ..Latencies::default() });
    control.decide(200.0, &[]).expect("decided");
    assert_eq!(latencies(&control).read_hit, 0.5);
    // Ten requests of twenty: half of the way.
    (0..10).for_each(|_| control.served(0, ServedBy::ReadHit, 1.5));
    control.decide(300.0, &[]).expect("decided");
    assert_eq!(latencies(&control).read_hit, 1.0);
}

#[test]
fn where_the_method_has_a_memory_latencies_are_means_over_some_epochs() {
    let mut control = control("larder", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    let mut at = 0.0;
    let mut epoch = |count: u32, seconds: f64| {
        read_twice(&mut control, 0, 40);
        (0..count).for_each(|_| control.served(0, ServedBy::ReadMiss, seconds));
        at += 600.0;
        control.decide(at, &[]).expect("decided");
        let found = control.positions()[0].findings.as_ref().expect("found");
        (found.latencies.read_miss * 1e9).round() / 1e9
    };
    // What was before counts two thirds.
    assert_eq!(epoch(450, 1.0), 1.0);
    assert_eq!(epoch(600, 4.0), 3.0);
    assert_eq!(epoch(0, 0.0), 3.0);
    // 400 of 3 s each are left of 600 and 300 that were, after two epochs.
    assert_eq!(epoch(200, 12.0), 6.0);
}

#[test]
fn a_loop_that_is_longer_than_an_epoch_counts_over_more_epochs() {
    // 40 blocks an epoch: of 40 in turn, and of 100.
    let seconds_counted = |blocks: u64| {
        let mut control = control("larder", &["a"]);
        control.arrive(&[0], 0.0).expect("fits");
        let mut next = 0;
        for epoch in 1..=200 {
            (0..40).for_each(|_| {
                control.observe(0, Op::Read, next..next + 1);
                next = (next + 1) % blocks;
            });
            control.decide(f64::from(epoch) * 100.0, &[]).expect("decided");
        }
        control.positions()[0].findings.as_ref().map_or(0.0, |findings| findings.seconds)
    };
    assert!((seconds_counted(40) - 300.0).abs() < 1.0);
    // Five rounds of two and a half epochs, less the one block that comes again itself.
    assert!((seconds_counted(100) - 5.0 * 2.475 * 100.0).abs() < 1.0);
}

#[test]
fn a_burst_that_the_ssd_met_does_not_speak_for_it_once_it_takes_no_writes() {
    let mut control = control("larder", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    let mut at = 0.0;
    let mut epoch = |cached: (u32, f64), backing: (u32, f64)| {
        read_twice(&mut control, 0, 40);
        (0..cached.0).for_each(|_| control.served(0, ServedBy::CachedWrite, cached.1));
        (0..backing.0).for_each(|_| control.served(0, ServedBy::BackingWrite, backing.1));
        at += 600.0;
        control.decide(at, &[]).expect("decided");
        control.positions()[0].findings.as_ref().map(|findings| findings.latencies.cached_write)
    };
    let nominal = Latencies::default();
    assert_eq!(epoch((3000, 1.0), (100, 1.0)), Some(1.0));
    // Too few of either to tell.
    assert_eq!(epoch((0, 0.0), (99, nominal.backing_write)), Some(1.0));
    // What the backing takes, as crowded as it was in the mean, the SSD would take sooner.
    let later = epoch((0, 0.0), (1000, nominal.backing_write)).expect("found");
    assert!((nominal.cached_write..0.1).contains(&later), "{later}");
    // It takes some again: of the burst nothing is remembered.
    let again = epoch((20, nominal.cached_write), (1000, nominal.backing_write)).expect("found");
    assert!(again < 0.5, "{again}");
}

#[test]
fn a_tenant_with_a_promise_is_measured_in_the_last_epoch_alone() {
    let mut control = control("larder", &["a"]);
    let share = Goals { share: Some(2.0), ..Goals::default() };
    control.change(0, ControlTenant { goals: share, ..control.tenants()[0].clone() }, 0.0);
    control.arrive(&[0], 0.0).expect("fits");
    let missed = [1.0, 4.0, 9.0].map(|seconds| {
        read_twice(&mut control, 0, 40);
        (0..400).for_each(|_| control.served(0, ServedBy::ReadMiss, seconds));
        control.decide(600.0 * seconds, &[]).expect("decided");
        control.positions()[0].findings.as_ref().map(|findings| findings.latencies.read_miss)
    });
    assert_eq!(missed, [Some(1.0), Some(4.0), Some(9.0)]);
}

#[test]
fn first_accesses_are_soon_forgotten_of_a_tenant_with_a_reservation() {
    // A first epoch reads 400 blocks for the first time; then they come again.
    let missed = |goals: Goals| {
        let mut control = control("larder", &["a"]);
        control.change(0, ControlTenant { goals, ..control.tenants()[0].clone() }, 0.0);
        control.arrive(&[0], 0.0).expect("fits");
        for epoch in 1..=3 {
            (0..400).for_each(|block| {
                control.observe(0, Op::Read, block..block + 1);
            });
            control.decide(f64::from(epoch) * 100.0, &[]).expect("decided");
        }
        let found = control.positions()[0].findings.as_ref().expect("found");
        let hits = found.curves[0].at(1000).read_request_hits as f64;
        1.0 - hits / found.epoch.requests as f64
    };
    let reserved = Goals { reservation: Some(crate::Reservation::Latency(1e-3)), ..Goals::default() };
    let (promised, free) = (missed(reserved), missed(Goals::default()));
    assert!((promised - 0.04 / 1.24).abs() < 0.01 && free > 0.15, "{promised} {free}");
}

#[test]
fn what_came_under_the_last_decision_is_told_apart_from_the_epoch() {
    let mut control = control("larder", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    let mut since = |count: u64, at: f64| {
        read_twice(&mut control, 0, 40);
        (0..count).for_each(|_| control.served(0, ServedBy::ReadMiss, 1.0));
        control.decide(at, &[]).expect("decided");
        let found = control.positions()[0].findings.clone().expect("it was there");
        let since = found.since_decision.expect("there was one");
        (found.measured.read_misses.count, since.measured.read_misses.count, since.part)
    };
    assert_eq!(since(10, 25.0), (10, 10, 0.25));
    assert_eq!(since(20, 50.0), (30, 20, 0.25));
    assert_eq!(since(30, 100.0), (60, 30, 0.5));
    assert_eq!(since(40, 200.0), (40, 40, 1.0));
}

#[test]
fn a_tenant_that_does_far_more_is_taken_for_a_newcomer() {
    let mut control = control("larder", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    let request = |control: &mut ControlLoop, count: u64| {
        (0..count).for_each(|block| {
            if control.observe(0, Op::Read, block..block + 1) {
                control.analyze(0);
            }
        });
    };
    // 10 requests a second, and then 100.
    let mut decisions = Vec::new();
    let mut last = 0.0;
    while last < 300.0 {
        let now = control.due_seconds();
        request(&mut control, ((now - last) * if now <= 200.0 { 10.0 } else { 100.0 }) as u64);
        last = now;
        if control.must_decide(now) {
            decisions.push(now);
            control.decide(now, &[]).expect("decided");
        } else {
            let changed = control.changed(now);
            control.look(now, &changed, Some(0));
        }
    }
    let at_first = [6.25, 12.5, 25.0, 50.0, 100.0];
    let after_change = [200.0, 212.5, 218.75, 231.25, 256.25, 300.0];
    assert_eq!(decisions, [&at_first[..], &after_change[..]].concat());
}

#[test]
fn tenants_that_come_one_after_the_other_are_decided_about_together() {
    let names: Vec<String> = (0..100).map(|at| format!("t{at}")).collect();
    let allocator = crate::by_name("larder").expect("known");
    let profile = Profile { epoch_seconds: 600.0, ..allocator.profile() };
    let tenants = names.iter().map(|name| tenant(name)).collect();
    let mut control = ControlLoop::new(config(600.0), allocator, profile, tenants);
    let (mut decisions, mut came) = (Vec::new(), 0);
    while control.epoch() == 0 {
        let now = control.decision_seconds();
        match f64::from(came) * 1.3 {
            comes if came < 100 && comes <= now => {
                control.arrive(&[came as usize], comes).expect("fits");
                came += 1;
            }
            _ => {
                control.decide(now, &[]).expect("decided");
                decisions.push(now);
            }
        }
    }
    assert_eq!((came, decisions[0], decisions.last()), (100, 37.5, Some(&600.0)));
    // A sixty-fourth of an epoch is the least between two.
    let closest = decisions.windows(2).map(|two| two[1] - two[0]).fold(f64::INFINITY, f64::min);
    assert!(closest >= 600.0 / 64.0 && decisions.len() < 50, "{} s, {}", closest, decisions.len());
}

#[test]
fn who_comes_just_before_the_end_of_an_epoch_waits_for_that() {
    let mut control = control("larder", &["a", "b"]);
    control.arrive(&[0], 0.0).expect("fits");
    control.decide(50.0, &[]).expect("decided");
    // After a sixteenth: about the same time.
    control.arrive(&[1], 93.0).expect("fits");
    assert_eq!(control.early, [105.5, 118.0, 143.0]);
    // Nobody is new: nothing is due for that.
    control.arrive(&[], 94.0).expect("nobody");
    assert_eq!(control.early, [105.5, 118.0, 143.0]);
}

#[test]
fn a_tenant_of_whom_nothing_is_told_holds_what_it_did() {
    let mut control = control("larder", &["a", "b"]);
    control.arrive(&[0, 1], 0.0).expect("fits");
    let usage = |resident_blocks| CacheUse { resident_blocks, effective: Some(0.5), missed_blocks: 7 };
    let found =
        |control: &ControlLoop| [0, 1].map(|at| control.positions()[at].findings.as_ref().map(|it| it.usage));
    control.decide(100.0, &[usage(300), usage(500)]).expect("decided");
    for now in [150.0, 200.0] {
        control.decide(now, &[usage(310)]).expect("decided");
        assert_eq!(found(&control), [Some(usage(310)), Some(usage(500).held())], "{now}");
    }
    // Who has come again holds nothing.
    control.leave(1);
    control.arrive(&[1], 210.0).expect("fits");
    control.decide(220.0, &[usage(310)]).expect("decided");
    assert_eq!(found(&control)[1], Some(CacheUse::default()));
}

#[test]
fn a_decision_is_a_look_and_the_look_that_is_due_with_it_is_left_to_it() {
    let allocator = crate::by_name("larder").expect("known");
    let profile = Profile { epoch_seconds: 32.0, ..allocator.profile() };
    let mut control = ControlLoop::new(config(32.0), allocator, profile, vec![tenant("a")]);
    control.arrive(&[0], 0.0).expect("fits");
    // A machine that comes late, by more each time: looks are due a bit after decisions in the end.
    let (mut decisions, mut looks, mut late) = (Vec::new(), Vec::new(), 0.0);
    while control.due_seconds() < 33.0 {
        let now = control.due_seconds() + late;
        late += 0.001;
        control.observe(0, Op::Read, 0..1);
        match control.must_decide(now) {
            true => {
                control.decide(now, &[]).expect("decided");
                decisions.push(now.round());
            }
            false => {
                control.look(now, &[], Some(0));
                looks.push(now.round());
            }
        }
        assert!(!control.finds_prices(now) && control.finds_prices(now + 1.0), "{now}");
    }
    assert_eq!(decisions, [2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(looks, [6.0, 10.0, 12.0, 14.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0]);
    // Where hardly anything came, or only a mover, prices stay. What came counts until they are found.
    let mut look = |op: Op, times: u64| {
        (0..times).for_each(|_| _ = control.observe(0, op, 0..1));
        let now = control.due_seconds();
        control.look_at_rates(now, None);
        let asked = control.asked;
        control.look_at_rates(now, Some(0));
        assert!(control.due_seconds() > now);
        (asked, control.asked)
    };
    assert_eq!(look(Op::Populate, 1000), (0, 0));
    assert_eq!(look(Op::Read, PRICE_REQUESTS - 1), (63, 63));
    assert_eq!(look(Op::Read, 0), (63, 63));
    assert_eq!(look(Op::Read, 1), (64, 0));
}

#[test]
fn a_load_may_be_over_long_before_an_epoch_is() {
    // A day's budget of a million blocks, at the very begin: in four times so many seconds.
    let seconds = |epoch_seconds: f64| {
        let allocator = crate::by_name("larder").expect("known");
        let profile = allocator.profile();
        let budget = Some(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 });
        let config = ControlConfig { budget, ..config(epoch_seconds) };
        let control = ControlLoop::new(config, allocator, profile, vec![tenant("a")]);
        let rate = control.pace.as_ref().map_or(0.0, |pace| pace.rate(0.0, 1.0));
        (1e6 / rate).round()
    };
    assert_eq!([5.0, 10.0, 60.0, 600.0].map(seconds), [20.0, 40.0, 40.0, 40.0]);
}

#[test]
fn a_configured_policy_holds_from_the_start() {
    let allocator = crate::by_name("static").expect("known");
    let profile = allocator.profile();
    let fixed = ControlTenant { write_policy: ConfiguredPolicy::Fixed(WritePolicy::ReadOnly), ..tenant("a") };
    let mut control = ControlLoop::new(config(10.0), allocator, profile, vec![fixed, tenant("b")]);
    let positions = control.arrive(&[0, 1], 0.0).expect("fits");
    let writes: Vec<_> = positions.iter().map(|position| position.decision.mode.write.as_str()).collect();
    assert_eq!(writes, ["ro", "wb"]);
}

#[test]
fn the_budget_closes_and_opens() {
    let allocator = crate::by_name("static").expect("known");
    let profile = allocator.profile();
    let budget = Some(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 });
    let mut control =
        ControlLoop::new(ControlConfig { budget, ..config(10.0) }, allocator, profile, vec![tenant("a")]);
    control.arrive(&[0], 0.0).expect("fits");
    control.ssd_written(0, 100);
    assert!(!control.may_write(0, 1.0) && control.may_write(0, 6.0));
}

#[test]
fn the_budgets_periods_begin_on_time_whatever_the_epochs() {
    let allocator = crate::by_name("static").expect("known");
    let profile = allocator.profile();
    let budget = Some(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 30.0 });
    let mut control =
        ControlLoop::new(ControlConfig { budget, ..config(70.0) }, allocator, profile, vec![tenant("a")]);
    control.arrive(&[0], 0.0).expect("fits");
    // All that may be written just before something is due is written; what may be right after it?
    let mut seen = Vec::new();
    for _ in 0..5 {
        let now = control.due_seconds();
        let written = control.blocks_to_write(now - 1.0);
        control.ssd_written(0, written);
        match control.must_decide(now) {
            true => control.decide(now, &[]).map(|_| ()).expect("decided"),
            false => control.look(now, &[], Some(0)),
        }
        seen.push((now, written, control.blocks_to_write(now)));
    }
    assert_eq!(
        seen,
        [(30.0, 1000, 50), (60.0, 1000, 50), (70.0, 650, 66), (90.0, 350, 50), (120.0, 1000, 50)]
    );
}

#[test]
fn predicted_writes_keep_to_the_budget() {
    let predicted = |budget: Option<WriteBudget>| {
        let allocator = crate::by_name("larder").expect("known");
        let profile = allocator.profile();
        let tenants = vec![tenant("a"), tenant("b")];
        let mut control =
            ControlLoop::new(ControlConfig { budget, ..config(100.0) }, allocator, profile, tenants);
        control.arrive(&[0, 1], 0.0).expect("fits");
        read_twice(&mut control, 0, 400);
        read_twice(&mut control, 1, 300);
        let positions = control.decide(100.0, &[]).expect("decided");
        let each = positions.iter().map(|position| position.decision.predicted.expect("learned"));
        each.map(|predicted| predicted.ssd_writes_per_second).sum::<f64>()
    };
    let free = predicted(None);
    assert!(free > 2.0, "{free}");
    let held = predicted(Some(WriteBudget { bytes: 4096.0 * 100.0, period_seconds: 100.0 }));
    assert!(held > 0.0 && held <= 2.0, "{held} of {free}: a block a second, and what may be made up for");
}

#[test]
fn tenants_come_for_the_first_time_and_go_for_good() {
    let mut control = control("eci", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    let b = control.add(tenant("b"));
    control.arrive(&[b], 10.0).expect("fits");
    assert_eq!(quotas(&control), [500, 500]);
    read_twice(&mut control, b, 30);
    control.remove(b, 20.0);
    control.remove(b, 20.0);
    let c = control.add(tenant("c"));
    assert_eq!((b, c, control.tenants().len()), (1, 1, 2));
    control.arrive(&[c], 20.0).expect("fits");
    control.decide(100.0, &[]).expect("decides");
    let found = control.positions()[c].findings.as_ref().expect("there");
    assert_eq!(found.epoch.accesses, 0, "nothing is known of who was there before");
    assert!((found.seconds - 80.0).abs() < 1e-9);
}

#[test]
fn another_allocator_goes_on_from_the_same_quotas_with_what_it_needs() {
    let mut control = control("eci", &["a", "b"]);
    control.arrive(&[0, 1], 0.0).expect("fits");
    read_twice(&mut control, 0, 40);
    control.decide(100.0, &[]).expect("decides");
    assert_eq!(quotas(&control), [40, 10]);
    let larder = crate::by_name("larder").expect("known");
    let profile = Profile { epoch_seconds: 160.0, ..larder.profile() };
    control.switch(larder, profile, 110.0);
    assert_eq!((control.allocator(), quotas(&control)), ("larder", vec![40, 10]));
    assert_eq!(control.positions()[0].decision.mode, profile.mode);
    assert!((control.due_seconds() - 120.0).abs() < 1e-9, "it learns quickly");
    read_twice(&mut control, 1, 400);
    control.decide(120.0, &[]).expect("decides");
    assert!(quotas(&control)[1] > 400, "{:?}", quotas(&control));
    // And back: the first decision is one epoch later.
    let eci = crate::by_name("eci").expect("known");
    let profile = Profile { epoch_seconds: 100.0, ..eci.profile() };
    control.switch(eci, profile, 130.0);
    assert!((control.due_seconds() - 230.0).abs() < 1e-9);
}

#[test]
fn what_is_wanted_for_a_tenant_changes() {
    let mut control = control("larder", &["a", "b"]);
    control.arrive(&[0, 1], 0.0).expect("fits");
    let goals = Goals { max_blocks: Some(100), ..Goals::default() };
    let write_policy = ConfiguredPolicy::Fixed(WritePolicy::ReadOnly);
    control.change(0, ControlTenant { goals, write_policy, ..tenant("a") }, 1.0);
    let policies: Vec<_> = control.positions().iter().map(|it| it.decision.mode.write).collect();
    assert_eq!(policies, [WritePolicy::ReadOnly, WritePolicy::WriteBack], "it does not wait for a decision");
    (0..2).for_each(|at| read_twice(&mut control, at, 500));
    control.decide(100.0, &[]).expect("decides");
    assert!(quotas(&control)[0] <= 100 && quotas(&control)[1] > 500, "{:?}", quotas(&control));
}

#[test]
fn what_is_measured_elsewhere_counts() {
    let mut control = control("larder", &["a"]);
    control.arrive(&[0], 0.0).expect("fits");
    let timed = |count, seconds| Timed { count, seconds };
    let first = Measured { read_hits: timed(4, 0.4), ..Measured::default() };
    let all = Measured { read_hits: timed(6, 1.0), read_misses: timed(6, 6.0), ..Measured::default() };
    control.absorb(0, &first);
    control.absorb(0, &all.since(&first));
    assert_eq!(control.measured(0), all);
    assert_eq!((all.request_hit_ratio(), all.mean_latency()), (Some(0.5), Some(7.0 / 12.0)));
}

#[test]
fn without_a_cache_that_can_be_dirty_nobody_begins_with_write_back() {
    let allocator = crate::by_name("larder").expect("known");
    let config = ControlConfig { write_back: false, ..config(100.0) };
    let profile = allocator.profile();
    let mut control = ControlLoop::new(config, allocator, profile, vec![tenant("a")]);
    control.arrive(&[0], 0.0).expect("fits");
    assert_eq!(control.positions()[0].decision.mode.write, WritePolicy::WriteThrough);
}

/// A thousand of them on a host may take less than 64 MiB, whether they ever did something or not.
#[test]
fn an_idle_tenant_takes_little_memory() {
    const IDLE_BYTES: usize = 64 << 10;
    let budget = Some(WriteBudget { bytes: 1e9, period_seconds: 86_400.0 });
    for (name, budget) in crate::NAMES.into_iter().flat_map(|name| [(name, None), (name, budget)]) {
        let mut control = control(name, &["busy", "idle", "was busy"]);
        control.set_budget(budget, 0.0);
        control.arrive(&[0, 1, 2], 0.0).expect("fits");
        read_twice(&mut control, 2, 5000);
        control.analyze(2);
        let worked = control.memory_bytes();
        let mut now = 0.0;
        for _ in 0..=observer::FORGOTTEN_EPOCHS + 1 {
            control.populate();
            now += 100.0;
            control.decide(now, &[]).expect("decides");
        }
        let left = control.memory_bytes();
        assert!(left < IDLE_BYTES, "{name}: {left} bytes of three idle tenants");
        assert!(
            crate::by_name(name).is_some_and(|it| it.needs(false).curves.is_empty()) || worked > IDLE_BYTES
        );
        // It is back, and is known again.
        read_twice(&mut control, 2, 100);
        control.analyze(2);
        assert!(control.memory_bytes() > left, "{name}");
    }
}

#[test]
fn epochs_in_which_nobody_asks_are_passed_over() {
    let mut control = control("larder", &["a"]);
    control.set_budget(Some(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 250.0 }), 0.0);
    control.arrive(&[0], 0.0).expect("fits");
    read_twice(&mut control, 0, 50);
    control.decide(100.0, &[]).expect("decides");
    control.ssd_written(0, 100);
    // The epoch that is under way is not over by then.
    assert!(!control.pass_over(199.0) && !control.pass_over(299.9));
    assert_eq!((control.epoch(), control.due_seconds() < 110.0), (1, true));
    assert!(control.pass_over(1e9 + 50.0));
    assert_eq!((control.epoch(), control.due_seconds()), (10_000_000 - 1, 1e9));
    let view = control.budget_view(1e9).expect("a budget");
    assert_eq!((view.written_bytes, view.rest_seconds), (0.0, 250.0));
    control.decide(1e9, &[]).expect("decides");
    // What was passed over is no time in which little was asked for.
    let seconds = control.positions()[0].findings.as_ref().map(|findings| findings.seconds);
    assert!(seconds.is_some_and(|seconds| seconds < 200.0), "{seconds:?}");
    assert!(!control.pass_over(1e9 + 50.0));
    assert_eq!((control.epoch(), quotas(&control)), (10_000_000, vec![BLOCKS]));
}
