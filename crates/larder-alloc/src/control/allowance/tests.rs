//! What is granted is what the budget lets be written, whoever wants it.

use super::*;
use crate::control::ControlConfig;
use crate::control::tests::{config, tenant};
use larder_locality::Sampling;
use proptest::prelude::*;

const BLOCK: u64 = 4096;

fn control(allocator: &str, tenants: usize, budget: Option<WriteBudget>) -> ControlLoop {
    let config = ControlConfig {
        min_blocks: 1,
        budget,
        sampling: Sampling::Blocks(1000),
        bank_blocks: 100,
        ..config(10.0)
    };
    let allocator = crate::by_name(allocator).expect("known");
    let profile = allocator.profile();
    let mut control = ControlLoop::new(
        config,
        allocator,
        profile,
        (0..tenants).map(|at| tenant(&format!("t{at}"))).collect(),
    )
    .granting();
    control.arrive(&(0..tenants).collect::<Vec<_>>(), 0.0).expect("fits");
    control
}

fn blocks(blocks: u64, seconds: f64) -> Option<WriteBudget> {
    Some(WriteBudget { bytes: (blocks * BLOCK) as f64, period_seconds: seconds })
}

/// Tenants that write all they may, each in its own way, over periods: what all have written in each.
fn run(control: &mut ControlLoop, wants: &[u64], periods: usize, seconds: f64) -> Vec<u64> {
    let mut spent = vec![Spent::default(); wants.len()];
    let (mut records, mut in_period) = (0, vec![0; periods]);
    let steps = (seconds / GRANT_SECONDS) as usize;
    for step in 0..periods * steps {
        let now = step as f64 * GRANT_SECONDS;
        let told: Vec<_> = spent.iter().copied().enumerate().collect();
        let before: u64 = spent.iter().map(|it| it.bytes).sum::<u64>() + records;
        for (at, limit) in control.grant(now, &told, records).expect("there is a budget") {
            for wanted in 0..wants[at] {
                let limit = if wanted % 2 == 0 { limit.admit_bytes } else { limit.bytes };
                match spent[at].bytes + BLOCK <= limit {
                    true => spent[at].bytes += BLOCK,
                    false if wanted % 2 == 0 => spent[at].refused_blocks += 1,
                    false => spent[at].diverted_blocks += 1,
                }
            }
        }
        let after: u64 = spent.iter().map(|it| it.bytes).sum();
        // The cache's own records take a hundredth more.
        records += (after.saturating_sub(before - records)) / 100;
        in_period[step / steps] += after + records - before;
    }
    in_period
}

#[test]
fn no_period_is_overdrawn_and_none_is_left_unused() {
    for allocator in ["larder", "centaur", "eci", "static"] {
        let mut control = control(allocator, 3, blocks(10_000, 100.0));
        let bytes = 10_000 * BLOCK;
        for written in run(&mut control, &[5, 500, 3000], 3, 100.0) {
            assert!(written <= bytes + bytes / 50, "{allocator}: {written} of {bytes}");
            assert!(written >= bytes - bytes / 50, "{allocator}: {written} of {bytes}");
        }
        let view = control.budget_view(299.0).expect("there is a budget");
        assert!(
            (view.rest_seconds - 1.0).abs() < 1e-9 && view.written_bytes > 0.98 * bytes as f64,
            "{view:?}"
        );
    }
}

#[test]
fn without_a_budget_nothing_is_granted_or_limited() {
    let mut control = control("larder", 1, None);
    assert_eq!(control.grant(0.0, &[(0, Spent::default())], 0), None);
    assert!(control.budget_view(0.0).is_none() && control.due_seconds() <= 10.0);
    control.set_budget(blocks(1000, 100.0), 7.0);
    let limits = control.grant(7.0, &[(0, Spent { bytes: 55, ..Spent::default() })], 1 << 40).expect("now");
    // A twentieth at once; what was before does not count.
    assert_eq!(limits, [(0, Limit { admit_bytes: 55 + 3 * 50 * BLOCK / 4, bytes: 55 + 50 * BLOCK })]);
}

#[test]
fn a_budget_that_is_set_while_guests_are_served_finds_no_cold_cache() {
    // A twentieth at once, and up to twice as fast as evenly: four times from the start.
    let room = |control: &ControlLoop, now: f64| control.blocks_to_write(now);
    for allocator in ["larder", "eci"] {
        let mut control = control(allocator, 1, None);
        for (period, now) in [(100.0, 7.0), (200.0, 7.0)] {
            control.set_budget(blocks(1000, period), now);
            let view = control.budget_view(now).expect("there is one");
            assert_eq!((view.first, view.room_bytes), (false, (50 * BLOCK) as f64), "{allocator}");
            let later = now + period / 10.0;
            assert_eq!(room(&control, later), 250, "{allocator}: {period}");
        }
    }
    assert_eq!(room(&control("eci", 1, blocks(1000, 100.0)), 10.0), 450);
}

#[test]
fn another_budget_does_not_begin_anew() {
    let mut control = control("larder", 1, blocks(1000, 100.0));
    control.grant(0.0, &[(0, Spent::default())], 0);
    control.grant(50.0, &[(0, Spent { bytes: 600 * BLOCK, ..Spent::default() })], 0);
    control.set_budget(blocks(2000, 100.0), 50.0);
    let view = control.budget_view(50.0).expect("there is one");
    assert_eq!((view.written_bytes, view.rest_seconds), ((600 * BLOCK) as f64, 50.0));
    control.set_budget(blocks(500, 100.0), 50.0);
    assert_eq!(control.budget_view(50.0).expect("there is one").room_bytes, 0.0);
    control.set_budget(None, 50.0);
    assert!(control.budget_view(50.0).is_none());
    control.set_budget(blocks(1000, 100.0), 60.0);
    control.resume_budget((700 * BLOCK) as f64, 20.0, false, None);
    let view = control.budget_view(60.0).expect("there is one");
    assert_eq!((view.written_bytes, view.rest_seconds, view.room_bytes), ((700 * BLOCK) as f64, 80.0, 0.0));
    // Of a first period more may be written by then.
    control.set_budget(None, 60.0);
    control.set_budget(blocks(1000, 100.0), 60.0);
    control.resume_budget((700 * BLOCK) as f64, 20.0, true, None);
    let view = control.budget_view(60.0).expect("there is one");
    assert_eq!((view.first, view.rest_seconds, view.room_bytes), (true, 80.0, (150 * BLOCK) as f64));
}

proptest! {
    #[test]
    fn shares_are_no_more_than_there_is(
        room in 0.0..1e9_f64,
        of in prop::collection::vec((prop_oneof![Just(0.0), 0.0..1e9_f64], 1e-3..1e3_f64), 1..20)
    ) {
        let (wanted, weights): (Vec<f64>, Vec<f64>) = of.into_iter().unzip();
        let shares = share(room, &wanted, &weights);
        let sum: f64 = shares.iter().sum();
        prop_assert!(sum <= room * (1.0 + 1e-9) && sum >= room * (1.0 - 1e-9) || wanted.iter().sum::<f64>() == 0.0);
        prop_assert!(shares.iter().all(|&share| share >= 0.0));
        // Whoever has less than it wants has no less for its weight than any other that wants more than it has.
        if wanted.iter().sum::<f64>() <= room {
            prop_assert!(shares.iter().zip(&wanted).all(|(share, wanted)| *share >= wanted * (1.0 - 1e-9)));
        }
    }
}
