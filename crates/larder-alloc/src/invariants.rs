//! What must hold for every allocator, whatever the tenants do: some come and go, are idle, read everything once, or loop
//! over more than the cache holds, for several epochs on end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::*;
use world::{Doing, Host, Member, World, worlds};

mod arrivals;
mod world;

/// Worlds that each allocator is tried in.
const WORLDS: u32 = 24;

/// Allocators that take no notice of minima and maxima, and say so.
const WITHOUT_BOUNDS: [&str; 2] = [Static::NAME, Unified::NAME];

/// Allocators that give the whole cache away where anybody may have it. `larder` keeps back what would write more to the
/// SSD than it may.
const FILLING: [&str; 4] = [Unified::NAME, Centaur::NAME, ConvexHull::NAME, Larder::NAME];

#[test]
fn decisions_hold_for_every_allocator() {
    let mut all: Vec<(&str, New)> = NAMES.map(|name| (name, by_name as New)).to_vec();
    all.push((Eci::NAME, corrected));
    for (name, new) in all {
        let config = Config { cases: WORLDS, ..Config::with_source_file(file!()) };
        let run = TestRunner::new(config).run(&worlds(), |world| live(name, new, &world));
        run.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}

/// Makes an allocator by its name.
type New = fn(&str) -> Option<Box<dyn Allocator + Send>>;

/// Where a tenant stands between epochs.
struct Standing {
    quota_blocks: u32,
    mode: Mode,
}

/// Run a world's epochs.
fn live(name: &str, new: New, world: &World) -> Result<(), TestCaseError> {
    let new = || new(name).ok_or_else(|| TestCaseError::fail("there is none of that name"));
    let (mut allocator, mut twin) = (new()?, new()?);
    let mut hosts: BTreeMap<&str, Host> = BTreeMap::new();
    let mut standings: BTreeMap<&str, Standing> = BTreeMap::new();
    let (needs, start) = (allocator.needs(true), allocator.profile().mode);
    for epoch in &world.epochs {
        let present = || world.members.iter().zip(epoch).filter(|(_, doing)| !matches!(doing, Doing::Gone));
        hosts.retain(|name, _| present().any(|(member, _)| member.name == *name));
        standings.retain(|name, _| present().any(|(member, _)| member.name == *name));
        let findings: Vec<Option<Findings>> = present()
            .map(|(member, doing)| {
                let quota = standings.get(member.name).map_or(0, |standing| standing.quota_blocks);
                hosts.entry(member.name).or_insert_with(|| Host::new(&needs, member.seed)).epoch(doing, quota)
            })
            .collect();
        let tenants: Vec<Tenant<'_>> = present()
            .zip(&findings)
            .map(|((member, _), findings)| {
                tenant(member, findings.as_ref(), standings.get(member.name), start, &world.constraints)
            })
            .collect();
        let decided = allocator.allocate(&tenants, &world.constraints);
        prop_assert_eq!(&decided, &twin.allocate(&tenants, &world.constraints), "not the same twice");
        match decided {
            Ok(decisions) => {
                check(allocator.as_ref(), &tenants, &world.constraints, &decisions)?;
                for ((member, _), decision) in present().zip(decisions) {
                    let standing = Standing { quota_blocks: decision.quota_blocks, mode: decision.mode };
                    standings.insert(member.name, standing);
                }
            }
            Err(AllocError::QuotasExceedCache { wanted_blocks, cache_blocks }) => {
                prop_assert_eq!(name, Static::NAME);
                prop_assert!(wanted_blocks > cache_blocks.into());
            }
            // Small as the worlds are, an exact reference may give up on one.
            Err(AllocError::TooLarge { .. }) => prop_assert_eq!(name, Optimal::NAME),
        }
    }
    Ok(())
}

/// A tenant as the control loop shows it: a new one has nothing, and is in the mode of the start.
fn tenant<'a>(
    member: &'a Member,
    findings: Option<&'a Findings>,
    standing: Option<&Standing>,
    start: Mode,
    constraints: &Constraints,
) -> Tenant<'a> {
    let write = match start.write {
        WritePolicy::WriteBack if !constraints.write_back => WritePolicy::WriteThrough,
        write => write,
    };
    Tenant {
        name: member.name,
        quota_blocks: standing.map_or(0, |standing| standing.quota_blocks),
        mode: standing.map_or(Mode { write, ..start }, |standing| standing.mode),
        findings,
        configured_policy: member.policy,
        configured_quota_blocks: member.quota_blocks,
        min_blocks: member.min_blocks,
        goals: member.goals,
    }
}

fn check(
    allocator: &(dyn Allocator + Send),
    tenants: &[Tenant<'_>],
    constraints: &Constraints,
    decisions: &[Decision],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(decisions.len(), tenants.len());
    check_sum(allocator, tenants, constraints, decisions)?;
    for (tenant, decision) in tenants.iter().zip(decisions) {
        if !WITHOUT_BOUNDS.contains(&allocator.name()) {
            check_bounds(tenant, divided(allocator, constraints) / tenants.len() as u32, decision)?;
        }
        check_mode(tenant, constraints, decision)?;
        check_words(decision)?;
    }
    Ok(())
}

/// The blocks that an allocator divides.
fn divided(allocator: &(dyn Allocator + Send), constraints: &Constraints) -> u32 {
    let cache = constraints.cache_blocks;
    match allocator.profile().layout {
        Layout::Combined { partitioned } => (f64::from(cache) * partitioned) as u32,
        // What the cleaner keeps free is nobody's.
        Layout::Pooled { high, .. } => (f64::from(cache) * (1.0 - high)) as u32,
        Layout::Unified | Layout::Partitioned | Layout::Lending => cache,
    }
}

fn check_sum(
    allocator: &(dyn Allocator + Send),
    tenants: &[Tenant<'_>],
    constraints: &Constraints,
    decisions: &[Decision],
) -> Result<(), TestCaseError> {
    let sum: u64 = decisions.iter().map(|decision| u64::from(decision.quota_blocks)).sum();
    let unlimited = tenants.iter().zip(decisions).all(|(tenant, decision)| {
        let most = tenant.goals.max_blocks.unwrap_or(u32::MAX);
        decision.quota_blocks == most.min(constraints.cache_blocks)
    });
    if unlimited && matches!(allocator.profile().layout, Layout::Pooled { .. }) {
        return Ok(());
    }
    prop_assert!(sum <= u64::from(divided(allocator, constraints)), "{} blocks in all", sum);
    let anybody = tenants.iter().any(|tenant| tenant.goals.max_blocks.is_none());
    let keeps_back = allocator.name() == Larder::NAME && constraints.ssd_writes_per_second.is_some();
    if anybody && !keeps_back && FILLING.contains(&allocator.name()) {
        prop_assert_eq!(sum, u64::from(constraints.cache_blocks), "not all is given away");
    }
    Ok(())
}

/// `part` is what each tenant would get of equal parts.
fn check_bounds(tenant: &Tenant<'_>, part: u32, decision: &Decision) -> Result<(), TestCaseError> {
    let most = tenant.goals.max_blocks.unwrap_or(u32::MAX);
    let least = tenant.min_blocks.min(part).min(most);
    let quota = decision.quota_blocks;
    prop_assert!((least..=most).contains(&quota), "{}: {} of {}..={}", tenant.name, quota, least, most);
    Ok(())
}

fn check_mode(
    tenant: &Tenant<'_>,
    constraints: &Constraints,
    decision: &Decision,
) -> Result<(), TestCaseError> {
    let write = decision.mode.write;
    match tenant.configured_policy {
        ConfiguredPolicy::Fixed(policy) => prop_assert_eq!(write, policy),
        ConfiguredPolicy::Auto => {
            let holds_dirty = matches!(write, WritePolicy::WriteBack | WritePolicy::WriteOnly);
            prop_assert!(constraints.write_back || !holds_dirty, "{} without write-back", write);
        }
    }
    Ok(())
}

/// One sentence, and numbers that are numbers.
fn check_words(decision: &Decision) -> Result<(), TestCaseError> {
    let reason = &decision.reason;
    let broken = |word: &str| matches!(word, "NaN" | "inf" | "-inf");
    let words = reason.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
    prop_assert!(!reason.is_empty() && !reason.contains('\n'), "{}", reason);
    prop_assert!(!words.into_iter().any(broken), "{}", reason);
    if let Some(predicted) = decision.predicted {
        let Prediction { latency, request_hit_ratio, ssd_writes_per_second } = predicted;
        prop_assert!(latency.is_finite() && latency >= 0.0, "{:?}", predicted);
        prop_assert!((0.0..=1.0).contains(&request_hit_ratio), "{:?}", predicted);
        prop_assert!(ssd_writes_per_second.is_finite() && ssd_writes_per_second >= 0.0, "{:?}", predicted);
    }
    Ok(())
}
