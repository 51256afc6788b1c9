//! What an operator changes costs nothing that is still true.

use super::super::tests::{config, tenant as auto};
use super::super::*;
use crate::ConfiguredPolicy;

fn read_only(name: &str) -> ControlTenant {
    ControlTenant { write_policy: ConfiguredPolicy::Fixed(WritePolicy::ReadOnly), ..auto(name) }
}

/// These tenants, who are there from the start.
fn control(allocator: &str, budget: Option<WriteBudget>, tenants: Vec<ControlTenant>) -> ControlLoop {
    let allocator = crate::by_name(allocator).expect("known");
    let profile = Profile { epoch_seconds: 100.0, ..allocator.profile() };
    let all: Vec<usize> = (0..tenants.len()).collect();
    let config = ControlConfig { budget, ..config(100.0) };
    let mut control = ControlLoop::new(config, allocator, profile, tenants);
    control.arrive(&all, 0.0).expect("fits");
    control
}

fn switch(control: &mut ControlLoop, allocator: &str, epoch_seconds: f64, now: f64) {
    let allocator = crate::by_name(allocator).expect("known");
    let profile = Profile { epoch_seconds, ..allocator.profile() };
    control.switch(allocator, profile, now);
}

#[test]
fn another_epoch_or_allocator_forgets_no_rhythm_of_the_budget() {
    let budget = WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 1000.0 };
    let mut control = control("larder", Some(budget), vec![auto("a")]);
    let before = vec![(3, 40, 500.0)];
    let kept = BudgetRhythm { before: before.clone(), ..BudgetRhythm::default() };
    control.resume_budget(0.0, 0.0, false, Some(&kept));
    switch(&mut control, "larder", 50.0, 10.0);
    assert_eq!(control.budget_rhythm(10.0), Some(BudgetRhythm { seen: 0.01, ..kept.clone() }));
    // Nobody prices anything for a while.
    for allocator in ["eci", "larder"] {
        switch(&mut control, allocator, 50.0, 20.0);
        let known = BudgetRhythm { seen: 0.02, partial: true, ..kept.clone() };
        assert_eq!(control.budget_rhythm(20.0), Some(known), "{allocator}");
    }
}

/// A tenant that reads this many blocks twice, which takes so long each time, and as many of them hits.
fn read(control: &mut ControlLoop, tenant: usize, blocks: u64, seconds: f64) {
    for by in [ServedBy::ReadMiss, ServedBy::ReadHit] {
        for block in 0..blocks {
            control.observe(tenant, Op::Read, block..block + 1);
            control.served(tenant, by, seconds);
        }
    }
    control.analyze(tenant);
}

fn found(control: &ControlLoop, tenant: usize) -> &Findings {
    control.positions()[tenant].findings.as_ref().expect("it is there")
}

#[test]
fn what_requests_take_is_known_though_something_else_is_observed() {
    type Change = fn(&mut ControlLoop);
    let budget = |control: &mut ControlLoop| {
        control.set_budget(Some(WriteBudget { bytes: 1e9, period_seconds: 86_400.0 }), 130.0);
    };
    let read_only_too = |control: &mut ControlLoop| {
        control.change(1, read_only("b"), 130.0);
        control.arrive(&[], 130.0).expect("fits");
    };
    let changes: [Change; 2] = [budget, read_only_too];
    for change in changes {
        let mut control = control("larder", None, vec![auto("a"), auto("b")]);
        // In an epoch that is over, and in the one that is under way.
        read(&mut control, 0, 300, 1.0);
        control.decide(100.0, &[]).expect("decides");
        read(&mut control, 0, 200, 4.0);
        let needs = control.needs().clone();
        change(&mut control);
        assert_ne!(control.needs(), &needs);
        (0..70).for_each(|_| _ = control.observe(0, Op::Read, 0..1));
        control.decide(150.0, &[]).expect("decides");
        let found = found(&control, 0);
        // 200 reads of 300 count still, and 200 of four seconds: two and a half.
        for taken in [found.latencies.read_miss, found.latencies.read_hit] {
            assert!((taken - 2.5).abs() < 1e-9, "{:?}", found.latencies);
        }
        // What is counted is counted anew.
        assert_eq!(
            (found.seconds, found.measured_seconds, found.measured),
            (20.0, 20.0, Measured::default())
        );
        assert_eq!(found.epoch.accesses, 70);
        assert!(found.curves.len() > 2, "{}", found.curves.len());
    }
}

#[test]
fn a_rate_that_was_decided_by_is_known_though_something_else_is_observed() {
    let mut control = control("larder", None, vec![auto("a"), auto("b")]);
    read(&mut control, 0, 500, 1.0);
    control.decide(100.0, &[]).expect("decides");
    control.change(1, read_only("b"), 103.0);
    control.arrive(&[], 103.0).expect("fits");
    read(&mut control, 0, 500, 1.0);
    assert_eq!(control.changed(106.25), [0], "ten requests a second, and then more than a hundred");
}

#[test]
fn for_who_is_gone_for_good_nothing_is_observed() {
    let mut control = control("larder", None, vec![auto("a"), read_only("b")]);
    let with = control.needs().clone();
    read(&mut control, 0, 100, 1.0);
    // Somebody else comes in the same moment for whom as much is needed: nothing that was counted is lost.
    control.remove(1, 10.0);
    let (b, c) = (control.add(auto("b")), control.add(read_only("c")));
    control.arrive(&[b, c], 10.0).expect("fits");
    assert_eq!((b, c, control.needs()), (1, 2, &with));
    control.decide(50.0, &[]).expect("decides");
    assert_eq!(found(&control, 0).epoch.accesses, 200);
    control.remove(c, 60.0);
    control.arrive(&[], 60.0).expect("fits");
    let without = control.needs().clone();
    assert!(without.curves.len() < with.curves.len() && without.bank.len() < with.bank.len());
    control.add(auto("d"));
    assert_eq!(control.needs(), &without);
}

#[test]
fn of_who_is_gone_for_good_nothing_is_priced() {
    let mut control = control("larder", None, vec![auto("a"), auto("b")]);
    let blank = control.memory_bytes();
    let kind = Kind::of(false, 1, false, 0, false);
    for at in 0..5000 {
        control.asked(1, kind, at..at + 1, 1.0);
        let blocks = Offer { offered: 1, ..Offer::default() };
        control.offered(1, kind, ServedBy::ReadMiss, blocks, 1e-3);
    }
    control.decide(100.0, &[CacheUse { resident_blocks: 1000, ..CacheUse::default() }]).expect("decides");
    let worked = control.memory_bytes();
    assert!(worked > blank && control.terms(1) != Some(&Terms::default()));
    control.remove(1, 110.0);
    assert_eq!(control.terms(1), Some(&Terms::default()));
    assert!(control.memory_bytes() < worked, "{} of {worked} bytes", control.memory_bytes());
}
