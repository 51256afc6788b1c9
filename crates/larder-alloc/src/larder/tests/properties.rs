//! What holds whatever the tenants do.

use super::*;

/// What a tenant is like in one epoch.
#[derive(Clone, Debug)]
struct Draw {
    present: bool,
    active: bool,
    hits: Vec<(u64, u64)>,
    missed: u64,
    writes: u64,
    min: u32,
    max: Option<u32>,
    share: Option<f64>,
    reservation: Option<Reservation>,
}

fn draw() -> impl Strategy<Value = Draw> {
    let curve = (proptest::collection::vec((1u64..300, 1u64..500), 0..12), 0u64..2000, 0u64..2000);
    let reservation = prop_oneof![
        3 => Just(None),
        1 => (1e-4..6e-3).prop_map(|seconds| Some(Reservation::Latency(seconds))),
        1 => (1.0..1000.0).prop_map(|iops| Some(Reservation::Iops(iops))),
    ];
    let wishes = (
        0u32..60,
        proptest::option::weighted(0.2, 0u32..200),
        proptest::option::weighted(0.3, 0.5..4.0),
        reservation,
    );
    (proptest::bool::weighted(0.8), proptest::bool::weighted(0.8), curve, wishes).prop_map(
        |(present, active, (hits, missed, writes), (min, max, share, reservation))| Draw {
            present,
            active,
            hits,
            missed,
            writes,
            min,
            max,
            share,
            reservation,
        },
    )
}

/// One epoch after another, each with its tenants; what is decided stands in the next.
fn run(epochs: &[Vec<Draw>], constraints: &Constraints, mut check: impl FnMut(&[Tenant<'_>], &[Decision])) {
    let names = ["a", "b", "c", "d", "e"];
    let mut larder = Larder::default();
    let mut standing = [(0, Profile::default().mode); 5];
    for draws in epochs {
        let found: Vec<Findings> = draws
            .iter()
            .map(|draw| {
                epoch(&draw.hits, draw.hits.iter().map(|hit| hit.1).sum::<u64>() + draw.missed, draw.writes)
            })
            .collect();
        let there: Vec<usize> = (0..draws.len()).filter(|&at| draws[at].present).collect();
        let tenants: Vec<Tenant<'_>> = there
            .iter()
            .map(|&at| Tenant {
                quota_blocks: standing[at].0,
                mode: standing[at].1,
                min_blocks: draws[at].min,
                goals: Goals {
                    max_blocks: draws[at].max,
                    share: draws[at].share,
                    reservation: draws[at].reservation,
                    ..Goals::default()
                },
                ..tenant(names[at], Some(&found[at]).filter(|_| draws[at].active))
            })
            .collect();
        let decisions = larder.allocate(&tenants, constraints).expect("it always decides");
        check(&tenants, &decisions);
        for (&at, decision) in there.iter().zip(&decisions) {
            standing[at] = (decision.quota_blocks, decision.mode);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn quotas_sum_to_the_cache_and_keep_their_bounds(
        epochs in proptest::collection::vec(proptest::collection::vec(draw(), 0..5), 1..5),
        cache_blocks in 0u32..600,
    ) {
        let constraints = Constraints { cache_blocks, epoch_seconds: SECONDS, ..Constraints::default() };
        let mut failed = None;
        run(&epochs, &constraints, |tenants, decisions| {
            let sum: u32 = decisions.iter().map(|decision| decision.quota_blocks).sum();
            let open = tenants.iter().any(|tenant| tenant.goals.max_blocks.is_none());
            let least = |tenant: &Tenant<'_>| tenant.min_blocks.min(tenant.goals.max_blocks.unwrap_or(u32::MAX));
            let minima: u32 = tenants.iter().map(least).sum();
            let within = |(tenant, decision): (&Tenant<'_>, &Decision)| {
                decision.quota_blocks <= tenant.goals.max_blocks.unwrap_or(u32::MAX)
                    && (minima > cache_blocks || decision.quota_blocks >= least(tenant))
            };
            if decisions.len() != tenants.len() || sum > cache_blocks || (open && sum != cache_blocks) || !tenants.iter().zip(decisions).all(within) {
                failed = Some(format!("{:?} of {cache_blocks}, {tenants:?}", quotas(decisions)));
            }
        });
        prop_assert!(failed.is_none(), "{}", failed.unwrap_or_default());
    }

    /// Without minima, there is always a plan that writes nothing.
    #[test]
    fn a_budget_is_kept(
        epochs in proptest::collection::vec(proptest::collection::vec(draw(), 1..5), 1..4),
        cache_blocks in 0u32..600, budget in 0.0..40.0,
    ) {
        let mut epochs = epochs;
        epochs.iter_mut().flatten().for_each(|draw| draw.min = 0);
        let constraints = Constraints { cache_blocks, ssd_writes_per_second: Some(budget), epoch_seconds: SECONDS, ..Constraints::default() };
        let mut most: f64 = 0.0;
        run(&epochs, &constraints, |_, decisions| {
            let written = decisions.iter().filter_map(|decision| decision.predicted).map(|predicted| predicted.ssd_writes_per_second);
            most = most.max(written.sum());
        });
        prop_assert!(most <= budget * (1.0 + 1e-9), "{most} of {budget}");
    }

    #[test]
    fn the_same_findings_give_the_same_decisions(
        epochs in proptest::collection::vec(proptest::collection::vec(draw(), 1..5), 1..3), cache_blocks in 0u32..600,
    ) {
        let constraints = Constraints { cache_blocks, epoch_seconds: SECONDS, ..Constraints::default() };
        let decided = || {
            let mut all = Vec::new();
            run(&epochs, &constraints, |_, decisions| all.push(decisions.to_vec()));
            all
        };
        prop_assert_eq!(decided(), decided());
    }
}
