//! What must hold of Centaur's decisions, whatever the tenants do.

use proptest::prelude::*;

use super::*;

/// Seconds that a workload takes with so many blocks, by equation 1.
fn takes(workload: &Workload, blocks: u32) -> f64 {
    let reached = workload.steps.iter().filter(|step| step.0 <= blocks.into());
    let hits = reached.map(|step| step.1).sum::<u64>().min(workload.requests) as f64;
    let missed = workload.requests as f64 - hits;
    (hits * workload.ssd + missed * workload.disk) / workload.requests as f64
}

/// A tenant of the property test: its workload (none while idle), least and most blocks, share and reservation.
#[derive(Clone, Debug)]
struct Lot {
    workload: Option<Workload>,
    quota: u32,
    least: u32,
    goals: Goals,
}

fn lot() -> impl Strategy<Value = Lot> {
    let workload = prop_oneof![
        (1u64..200, 1u64..60).prop_map(|(requests, blocks)| cliff(requests, blocks)),
        (60u64..200, 1u64..60).prop_map(|(requests, blocks)| line(requests, blocks)),
    ];
    let reservation = prop_oneof![
        3 => Just(None),
        1 => (0.5f64..6.0).prop_map(|seconds| Some(Reservation::Latency(seconds))),
        1 => (0.1f64..99.0).prop_map(|iops| Some(Reservation::Iops(iops))),
    ];
    let share = prop_oneof![9 => Just(None), 1 => (0.5f64..4.0).prop_map(Some)];
    let most = proptest::option::of(0u32..60);
    let workload = proptest::option::of((workload, 0u64..60));
    (workload, 0u32..80, 0u32..20, reservation, share, most).prop_map(
        |(workload, quota, least, reservation, share, max_blocks)| Lot {
            workload: workload.map(|(one, missed)| Workload { missed: missed.min(one.requests), ..one }),
            quota,
            least,
            goals: Goals { weight: 1.0, share, reservation, max_blocks },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn quotas_fill_the_cache_within_bounds_while_tenants_come_and_go(
        epochs in proptest::collection::vec(proptest::collection::vec(proptest::option::of(lot()), 5), 1..5),
        cache in 0u32..200,
    ) {
        const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
        let (mut centaur, mut again) = (Centaur::default(), Centaur::default());
        for epoch in epochs {
            let lots: Vec<_> = NAMES.into_iter().zip(epoch).filter_map(|(name, lot)| Some((name, lot?))).collect();
            let findings: Vec<_> =
                lots.iter().map(|(_, lot)| lot.workload.as_ref().map(Workload::findings)).collect();
            let tenants: Vec<_> = lots
                .iter()
                .zip(&findings)
                .map(|((name, lot), findings)| Tenant {
                    min_blocks: lot.least,
                    quota_blocks: lot.quota,
                    goals: lot.goals,
                    ..tenant(name, findings.as_ref())
                })
                .collect();
            let limits = constraints(cache, Objective::MeanLatency);
            let decisions = allocate(&mut centaur, &tenants, &limits);
            prop_assert_eq!(&decisions, &allocate(&mut again, &tenants, &limits));
            for decisions in [decisions, allocate(&mut ConvexHull, &tenants, &limits)] {
                let most = |tenant: &Tenant<'_>| tenant.goals.max_blocks.map_or(cache, |max| max.min(cache));
                let sum: u32 = quotas(&decisions).iter().sum();
                prop_assert_eq!(sum, cache.min(tenants.iter().map(most).sum()));
                // Minima that do not fit are cut to equal parts.
                let minima: u32 = lots.iter().map(|(_, lot)| lot.least.min(lot.goals.max_blocks.unwrap_or(u32::MAX))).sum();
                for (tenant, decision) in tenants.iter().zip(&decisions) {
                    prop_assert!(decision.quota_blocks <= most(tenant));
                    let least = tenant.min_blocks.min(most(tenant));
                    prop_assert!(minima > cache || decision.quota_blocks >= least);
                }
            }
        }
    }

    #[test]
    fn reservations_are_kept_or_refused_for_want_of_blocks(
        lots in proptest::collection::vec((1u64..30, 20.0f64..40.0, 1.0f64..9.0), 1..5), cache in 0u32..80,
    ) {
        let workloads: Vec<_> =
            lots.iter().map(|&(blocks, disk, _)| Workload { disk, ..line(1200, blocks) }).collect();
        let findings: Vec<_> = workloads.iter().map(Workload::findings).collect();
        let names = ["a", "b", "c", "d"];
        let tenants: Vec<_> = (0..lots.len())
            .map(|at| with(vm(names[at], &findings[at], 0), latency(lots[at].2)))
            .collect();
        let decisions = decide(&tenants, cache, Objective::SumOfLatencies);
        // The model lets one after the other in, trying sizes one by one.
        let mut left = cache;
        for ((workload, lot), decision) in workloads.iter().zip(&lots).zip(&decisions) {
            let needed = (0..=left).find(|&blocks| takes(workload, blocks) <= lot.2);
            match needed {
                Some(needed) => {
                    prop_assert!(decision.quota_blocks >= needed, "{:?}", decisions);
                    left -= needed;
                }
                None => prop_assert!(decision.reason.contains("is refused"), "{:?}", decisions),
            }
        }
    }
}
