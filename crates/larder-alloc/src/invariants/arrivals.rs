//! What must hold when tenants come and go between decisions, whatever the allocator.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::WORLDS;
use crate::control::{ControlConfig, ControlLoop, ControlTenant};
use crate::*;
use larder_locality::{Op, Sampling};

const TENANTS: usize = 6;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// These tenants come that are not there.
    Come(Vec<usize>),
    Leave(usize),
    /// A tenant reads so many blocks twice.
    Read(usize, u64),
    Decide,
}

/// A cache, its tenants, and what becomes of them.
#[derive(Clone, Debug)]
struct Course {
    cache_blocks: u32,
    min_blocks: u32,
    /// Maxima, promises and configured quotas.
    wanted: Vec<(Option<u32>, bool, Option<u32>)>,
    steps: Vec<Step>,
}

fn courses() -> impl Strategy<Value = Course> {
    let step = prop_oneof![
        4 => prop::collection::vec(0..TENANTS, 1..3).prop_map(Step::Come),
        1 => (0..TENANTS).prop_map(Step::Leave),
        2 => (0..TENANTS, 1..600_u64).prop_map(|(tenant, blocks)| Step::Read(tenant, blocks)),
        2 => Just(Step::Decide),
    ];
    let wanted =
        (prop::option::weighted(0.2, 0..300_u32), any::<bool>(), prop::option::weighted(0.2, 0..100_u32));
    let steps = prop::collection::vec(step, 1..20);
    (600..1000_u32, 0..200_u32, prop::collection::vec(wanted, TENANTS), steps).prop_map(
        |(cache_blocks, min_blocks, wanted, steps)| Course { cache_blocks, min_blocks, wanted, steps },
    )
}

#[test]
fn who_comes_takes_no_more_than_there_is_and_nobodys_least() {
    for name in NAMES {
        let config = Config { cases: WORLDS, ..Config::with_source_file(file!()) };
        let run = TestRunner::new(config).run(&courses(), |course| live(name, &course));
        run.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}

fn control(name: &str, course: &Course) -> Option<ControlLoop> {
    let allocator = by_name(name)?;
    let profile = Profile { epoch_seconds: 100.0, ..allocator.profile() };
    let config = ControlConfig {
        block_bytes: 4096,
        cache_blocks: course.cache_blocks,
        min_blocks: course.min_blocks,
        write_threshold: 0.5,
        write_back: true,
        objective: Objective::default(),
        budget: None,
        epoch_seconds: 100.0,
        nominal: Latencies::default(),
        sampling: Sampling::Exact,
        bank_blocks: 100,
        seed: 1,
    };
    let tenant = |(at, &(max_blocks, promised, quota_blocks)): (usize, &(Option<u32>, bool, Option<u32>))| {
        let reservation = promised.then_some(Reservation::Latency(1e-3));
        let goals = Goals { max_blocks, reservation, ..Goals::default() };
        ControlTenant { name: format!("t{at}"), quota_blocks, write_policy: ConfiguredPolicy::Auto, goals }
    };
    let tenants = course.wanted.iter().enumerate().map(tenant).collect();
    Some(ControlLoop::new(config, allocator, profile, tenants))
}

fn live(name: &str, course: &Course) -> Result<(), TestCaseError> {
    let mut control =
        control(name, course).ok_or_else(|| TestCaseError::fail("there is none of that name"))?;
    let mut now = 0.0;
    for step in &course.steps {
        now += 1.0;
        match step {
            Step::Come(who) => {
                let mut new: Vec<usize> =
                    who.iter().copied().filter(|&at| !control.positions()[at].present).collect();
                new.dedup();
                let all = control.positions().iter().all(|position| !position.present);
                control.arrive(&new, now).map_err(|error| TestCaseError::fail(error.to_string()))?;
                // Where nobody is new all is as it was.
                if !new.is_empty() {
                    check(&control, course, all)?;
                }
            }
            Step::Leave(at) => control.leave(*at),
            Step::Read(at, blocks) => {
                (0..2).for_each(|_| _ = control.observe(*at, Op::Read, 0..*blocks));
                control.analyze(*at);
            }
            Step::Decide => {
                now = control.due_seconds().max(now);
                // Small as they are, an exact reference may give up on some.
                _ = control.decide(now, &[]);
            }
        }
    }
    Ok(())
}

/// Those who begin together have what is configured, be it below their least.
fn check(control: &ControlLoop, course: &Course, all_began: bool) -> Result<(), TestCaseError> {
    let there = || control.positions().iter().enumerate().filter(|(_, position)| position.present);
    let cache = match control.profile().layout {
        Layout::Combined { partitioned } => (f64::from(course.cache_blocks) * partitioned) as u32,
        _ => course.cache_blocks,
    };
    let sum: u64 = there().map(|(_, position)| u64::from(position.decision.quota_blocks)).sum();
    prop_assert!(sum <= cache.into(), "{} of {}", sum, cache);
    let fixed = control.static_quotas().map_err(|error| TestCaseError::fail(error.to_string()))?;
    for (at, position) in there() {
        let (quota, (max_blocks, _, _)) = (position.decision.quota_blocks, course.wanted[at]);
        if control.profile().fixed_quotas {
            prop_assert_eq!(quota, fixed[at]);
        } else if !all_began {
            let part = cache / there().count() as u32;
            let least = course.min_blocks.min(part).min(max_blocks.unwrap_or(u32::MAX));
            prop_assert!(quota >= least, "{}: {} of {}", at, quota, least);
        }
    }
    Ok(())
}
