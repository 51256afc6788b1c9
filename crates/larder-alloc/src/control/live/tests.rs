//! What an operator changes costs nothing that is still true.

use super::super::*;
use crate::{ConfiguredPolicy, Goals};

fn config(epoch_seconds: f64) -> ControlConfig {
    ControlConfig {
        block_bytes: 4096,
        cache_blocks: 1000,
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

fn tenant(name: &str, write_policy: ConfiguredPolicy) -> ControlTenant {
    ControlTenant { name: name.into(), quota_blocks: None, write_policy, goals: Goals::default() }
}

fn auto(name: &str) -> ControlTenant {
    tenant(name, ConfiguredPolicy::Auto)
}

fn read_only(name: &str) -> ControlTenant {
    tenant(name, ConfiguredPolicy::Fixed(WritePolicy::ReadOnly))
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
