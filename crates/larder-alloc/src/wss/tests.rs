//! Working sets on hand-worked cases. What must hold for all allocators is in `invariants.rs`.

use super::*;
use crate::fixtures::{quotas, tenant};
use crate::{ConfiguredPolicy, Findings, Goals, WritePolicy};
use larder_locality::EpochFindings;

fn working_set(trd: Option<u64>) -> Findings {
    EpochFindings { accesses: 100, trd_max: trd, history_blocks: 65_536, ..EpochFindings::default() }.into()
}

fn allocate(tenants: &[Tenant<'_>], cache_blocks: u32) -> Vec<Decision> {
    let constraints = Constraints { cache_blocks, ..Constraints::default() };
    Wss.allocate(tenants, &constraints).expect("it always decides")
}

#[test]
fn working_sets_that_fit_are_granted_to_the_block() {
    let (strong, weak) = (working_set(Some(1023)), working_set(Some(2175)));
    let decisions = allocate(&[tenant("a", Some(&strong)), tenant("b", Some(&weak))], 3200);
    assert_eq!(quotas(&decisions), [1024, 2176]);
    assert_eq!(
        decisions[0].reason,
        "working set of 1,024 blocks (TRD 1,023): 1,024 blocks, as the tenants together want 3,200 of 3,200 blocks; \
         write policy wb, the method's own"
    );
}

#[test]
fn working_sets_that_do_not_fit_shrink_in_proportion_but_not_below_the_minimum() {
    let (small, large) = (working_set(Some(99)), working_set(Some(299)));
    let tenants = [tenant("a", Some(&small)), tenant("b", Some(&large))];
    let decisions = allocate(&tenants, 200);
    assert_eq!(quotas(&decisions), [50, 150]);
    assert_eq!(
        decisions[1].reason,
        "working set of 300 blocks (TRD 299) does not fit: the tenants together want 400 of 200 blocks; 150 blocks in \
         proportion; write policy wb, the method's own"
    );
    // Below its minimum of 80 it does not shrink.
    let tenants = [Tenant { min_blocks: 80, ..tenants[0] }, tenants[1]];
    assert_eq!(quotas(&allocate(&tenants, 200)), [80, 120]);
}

#[test]
fn the_idle_and_those_without_reuse_get_the_minimum() {
    let (once, modest) = (working_set(None), working_set(Some(9)));
    let least = |tenant| Tenant { min_blocks: 1000, ..tenant };
    let fixed = ConfiguredPolicy::Fixed(WritePolicy::ReadOnly);
    let tenants = [
        least(tenant("a", None)),
        least(tenant("b", Some(&once))),
        least(Tenant { configured_policy: fixed, ..tenant("c", Some(&modest)) }),
    ];
    let decisions = allocate(&tenants, 10_000);
    assert_eq!(quotas(&decisions), [1000; 3]);
    let reasons: Vec<_> = decisions.iter().map(|decision| decision.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "idle in this epoch, and so without a working set: the minimum of 1,000 blocks; write policy wb, the method's own",
            "no block was accessed again within 65,536 blocks (the history kept): the minimum of 1,000 blocks; write policy wb, the method's own",
            "working set of 10 blocks (TRD 9) is within the minimum of 1,000 blocks; write policy ro as configured",
        ]
    );
    // Where the minima do not fit either, everybody has an equal part.
    assert_eq!(quotas(&allocate(&tenants, 301)), [100, 100, 100]);
}

#[test]
fn a_maximum_cuts_the_working_set() {
    let large = working_set(Some(299));
    let limited =
        Tenant { goals: Goals { max_blocks: Some(40), ..Goals::default() }, ..tenant("a", Some(&large)) };
    let decisions = allocate(&[limited, tenant("b", Some(&large))], 1000);
    assert_eq!(quotas(&decisions), [40, 300]);
    assert!(
        decisions[0].reason.starts_with(
            "working set of 300 blocks (TRD 299), cut to its maximum of 40: 40 blocks, as the tenants together want 340 of 1,000 blocks;"
        ),
        "{}",
        decisions[0].reason
    );
}
