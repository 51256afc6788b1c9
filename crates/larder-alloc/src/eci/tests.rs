//! ECI-Cache's decisions on hand-worked cases, and what must hold for all.

use super::*;
use crate::fixtures::useful_epoch;
use crate::{ConfiguredPolicy, Findings, Goals, WritePolicy};
use larder_policy::spec::CachingSpec;
use proptest::prelude::*;

/// An epoch of `accesses`, of which `useful` (distance, count) are reads of known blocks, and the others overwrites.
fn findings(accesses: u64, useful: &[(u64, u64)]) -> Findings {
    useful_epoch(accesses, useful.iter().copied().collect())
}

fn tenant(findings: Option<&Findings>, min_blocks: u32) -> Tenant<'_> {
    Tenant {
        name: "t",
        quota_blocks: 77,
        mode: Mode { caching: CachingSpec::default(), write: WritePolicy::WriteThrough },
        findings,
        configured_policy: ConfiguredPolicy::Auto,
        configured_quota_blocks: None,
        min_blocks,
        goals: Goals::default(),
    }
}

fn allocate(tenants: &[Tenant<'_>], cache_blocks: u32) -> Vec<Decision> {
    Eci.allocate(tenants, &constraints(cache_blocks)).expect("eci always decides")
}

fn constraints(cache_blocks: u32) -> Constraints {
    Constraints { cache_blocks, write_back: false, ..Constraints::default() }
}

fn quotas(decisions: &[Decision]) -> Vec<u32> {
    decisions.iter().map(|decision| decision.quota_blocks).collect()
}

#[test]
fn wishes_that_fit_are_granted_to_the_block() {
    let strong = findings(1000, &[(3, 500), (1023, 380)]);
    let weak = findings(100, &[(2175, 20)]);
    let decisions = allocate(&[tenant(Some(&strong), 1000), tenant(Some(&weak), 1000)], 8192);
    assert_eq!(quotas(&decisions), [1024, 2176]);
    assert_eq!(
        decisions[0].reason,
        "URD 1,023 (1,024 blocks) fits: the tenants together want 3,200 of 8,192 blocks; write ratio 0.12 < 0.50: wt"
    );
    assert_eq!(decisions[1].mode.write, WritePolicy::ReadOnly);
    assert!(decisions[1].reason.ends_with("; write ratio 0.80 >= 0.50: ro"), "{}", decisions[1].reason);
}

#[test]
fn the_idle_and_the_unreadable_get_the_minimum() {
    let writer = findings(50, &[]);
    let modest = findings(50, &[(9, 40)]);
    let decisions =
        allocate(&[tenant(None, 1000), tenant(Some(&writer), 1000), tenant(Some(&modest), 1000)], 10_000);
    assert_eq!(quotas(&decisions), [1000; 3]);
    let reasons: Vec<_> = decisions.iter().map(|decision| decision.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "idle in this epoch: its space goes back, but for the minimum of 1,000 blocks; write policy stays wt",
            "no read came back within 65,536 blocks (the history kept): the minimum of 1,000 blocks; write ratio 1.00 >= 0.50: ro",
            "URD 9 (10 blocks) is within the minimum of 1,000 blocks; write ratio 0.20 < 0.50: wt",
        ]
    );
}

/// A cache of 100 blocks, 10 for each tenant at least, so that 80 are to be divided. The first gains 0.40 from 30 of them
/// and 0.10 from 30 more, the second 0.51 from 60 and nothing from less. The steepest step, the first's, leaves too
/// little for the second's: the second's alone is better than both of the first's, and nobody gains from the last 20.
#[test]
fn wishes_that_do_not_fit_give_the_least_latency_and_fill_the_cache() {
    let first = findings(100, &[(39, 40), (69, 10)]);
    let second = findings(100, &[(69, 51)]);
    let tenants = [tenant(Some(&first), 10), tenant(Some(&second), 10)];
    let decisions = allocate(&tenants, 100);
    assert_eq!(quotas(&decisions), [30, 70]);
    assert_eq!(
        decisions[1].reason,
        "URD 69 (70 blocks) does not fit: the tenants together want 140 of 100 blocks; 70 give the least total latency \
         (hit ratio 0.51 of 0.51); write ratio 0.49 < 0.50: wt"
    );
    // With ten more both large steps fit.
    assert_eq!(quotas(&allocate(&tenants, 110)), [40, 70]);
}

#[test]
fn minima_beyond_the_cache_become_equal_parts() {
    let all = findings(10, &[(5000, 10)]);
    let tenants = [tenant(Some(&all), 1000), tenant(None, 1000), tenant(Some(&all), 200)];
    assert_eq!(quotas(&allocate(&tenants, 900)), [350, 300, 250]);
    assert_eq!(quotas(&allocate(&tenants, 0)), [0, 0, 0]);
    assert!(allocate(&[], 100).is_empty());
}

#[test]
fn nobody_gets_more_than_its_maximum() {
    let found = findings(100, &[(39, 40), (69, 10)]);
    let bounded =
        Tenant { goals: Goals { max_blocks: Some(50), ..Goals::default() }, ..tenant(Some(&found), 10) };
    let tenants = [bounded, tenant(Some(&found), 10)];
    let decisions = allocate(&tenants, 1000);
    assert_eq!(quotas(&decisions), [50, 70]);
    let words =
        "URD 69 (70 blocks) is above the maximum of 50 blocks: the tenants together want 120 of 1,000 blocks";
    assert!(decisions[0].reason.starts_with(words), "{}", decisions[0].reason);
    assert_eq!(quotas(&allocate(&tenants, 110)), [40, 70]);
}

#[test]
fn the_write_policy_is_assessed_anew_every_epoch() {
    let (writing, reading) = (findings(10, &[(1, 4)]), findings(10, &[(1, 8)]));
    let policies: Vec<_> = [&writing, &reading, &writing]
        .map(|findings| allocate(&[tenant(Some(findings), 1)], 100)[0].mode.write)
        .to_vec();
    use WritePolicy::{ReadOnly, WriteThrough};
    assert_eq!(policies, [ReadOnly, WriteThrough, ReadOnly]);
}

fn epoch() -> impl Strategy<Value = Option<Findings>> {
    let useful = proptest::collection::vec((0u64..400, 1u64..50), 0..12);
    let epoch = (useful, 0u64..500).prop_map(|(useful, others)| {
        let hits: u64 = useful.iter().map(|pair| pair.1).sum();
        findings(hits + others, &useful)
    });
    proptest::option::weighted(0.85, epoch)
}

/// The largest sum of hit ratios at which the sizes add up to no more than the cache, one block after the other.
fn optimum(tenants: &[Tenant<'_>], sizes: &Sizes) -> f64 {
    let mut best = vec![0.0f64; sizes.cache as usize + 1];
    for (at, tenant) in tenants.iter().enumerate() {
        let curve = tenant.active().map(EpochFindings::hit_curve).unwrap_or_default();
        let range = sizes.least[at]..=sizes.wanted[at];
        let with = |cache: usize| {
            let fitting = range.clone().filter(|&size| size as usize <= cache);
            fitting.map(|size| best[cache - size as usize] + curve.ratio(size)).fold(f64::MIN, f64::max)
        };
        best = (0..best.len()).map(with).collect();
    }
    best[best.len() - 1]
}

proptest! {
    #[test]
    fn quotas_fit_keep_the_minima_and_repeat(
        epochs in proptest::collection::vec((epoch(), 0u32..120), 0..7), cache in 0u32..1500,
    ) {
        let tenants: Vec<_> = epochs.iter().map(|(epoch, min)| tenant(epoch.as_ref(), *min)).collect();
        let decisions = allocate(&tenants, cache);
        let sizes = Sizes::of(&tenants, &constraints(cache));
        let sum: u64 = decisions.iter().map(|decision| u64::from(decision.quota_blocks)).sum();
        prop_assert_eq!(sum, sizes.wanted_in_all().min(u64::from(cache)));
        for (at, decision) in decisions.iter().enumerate() {
            let quota = u64::from(decision.quota_blocks);
            prop_assert!((sizes.least[at]..=sizes.wanted[at]).contains(&quota));
        }
        let minima: u32 = epochs.iter().map(|epoch| epoch.1).sum();
        if minima <= cache {
            prop_assert!(decisions.iter().zip(&epochs).all(|(decision, epoch)| decision.quota_blocks >= epoch.1));
        }
        prop_assert_eq!(decisions, allocate(&tenants, cache));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn total_latency_is_within_a_hundredth_of_the_optimum(
        epochs in proptest::collection::vec((epoch(), 0u32..30), 1..5), cache in 130u32..700,
    ) {
        let tenants: Vec<_> = epochs.iter().map(|(epoch, min)| tenant(epoch.as_ref(), *min)).collect();
        let sizes = Sizes::of(&tenants, &constraints(cache));
        let ratio = |(tenant, decision): (&Tenant<'_>, Decision)| {
            tenant.active().map_or(0.0, |findings| findings.hit_curve().ratio(decision.quota_blocks.into()))
        };
        let hits: f64 = tenants.iter().zip(allocate(&tenants, cache)).map(ratio).sum();
        let best = optimum(&tenants, &sizes);
        // The paper's devices: 6 ms and 0.1 ms. Hits are held to the same measure, which is the stricter one.
        let latency = |hits: f64| hits * 0.1 + (tenants.len() as f64 - hits) * 6.0;
        prop_assert!(latency(hits) <= latency(best) * 1.01 && hits >= best * 0.99, "{} of {}", hits, best);
    }
}
