//! Other allocators held against the exact optimum of what they want, on random instances.

use super::*;
use crate::fixtures::{tenant, useful_epoch};
use crate::larder::solver;
use crate::{Candidates, Constraints, Eci, Findings, by_name};
use larder_locality::{Counted, DistanceHistogram, EpochFindings, PolicyCurves, SizeCurve};
use larder_policy::Rng;

/// Steps of a curve of random shape: smooth, with cliffs, or flat, up to some size; each with a count.
fn steps(rng: &mut Rng, largest: u64) -> Vec<(u64, u64)> {
    let count = 1 + rng.below(60);
    let hot = 1 + rng.below(4);
    let step = |rng: &mut Rng| {
        let place = (0..hot).fold(1.0, |place, _| place * rng.unit());
        let cliff = if rng.below(20) == 0 { 5000 } else { 100 };
        (1 + (place * largest as f64) as u64, 1 + rng.below(cliff))
    };
    (0..count).map(|_| step(rng)).collect()
}

/// The paper's latencies, in milliseconds: a hard disk and an SSD.
const T_HDD: f64 = 6.0;
const T_SSD: f64 = 0.1;

/// An epoch for `eci`: useful distances and accesses that nothing can serve.
fn random_epoch(rng: &mut Rng) -> Findings {
    let useful: DistanceHistogram = steps(rng, 100_000).into_iter().collect();
    let accesses = useful.total() + rng.below(2 * useful.total());
    useful_epoch(accesses, useful)
}

/// Equation 2 and constraint 2 of ECI-Cache: the latencies of a tenant between its minimum and its wish.
fn eci_choices(tenant: &Tenant<'_>) -> Candidates {
    let curve = tenant.active().map(EpochFindings::hit_curve).unwrap_or_default();
    let least = u64::from(tenant.min_blocks);
    let larger = curve.steps().iter().map(|step| step.0).filter(|&blocks| blocks > least);
    let choice = |blocks: u64| {
        let hits = curve.ratio(blocks);
        Choice { blocks, writes: 0.0, cost: hits * T_SSD + (1.0 - hits) * T_HDD, way: 0 }
    };
    Candidates { choices: std::iter::once(least).chain(larger).map(choice).collect() }
}

#[test]
fn eci_is_within_a_hundredth_of_its_optimum() {
    let mut rng = Rng::new(1);
    let mut infeasible = 0;
    for _ in 0..1000 {
        let epochs: Vec<_> = (0..2 + rng.below(7)).map(|_| random_epoch(&mut rng)).collect();
        let min_blocks = rng.below(2000) as u32;
        let tenants: Vec<_> =
            epochs.iter().map(|epoch| Tenant { min_blocks, ..tenant("t", Some(epoch)) }).collect();
        let minima = min_blocks * tenants.len() as u32;
        let cache_blocks = minima + rng.below(60_000 * tenants.len() as u64) as u32;
        let candidates: Vec<_> = tenants.iter().map(eci_choices).collect();
        let room = Room { blocks: cache_blocks.into(), writes: None };
        let best = solve(&candidates, room).expect("the minima fit, and there are few tenants");

        let constraints = Constraints { cache_blocks, ..Constraints::default() };
        let decisions = Eci.allocate(&tenants, &constraints).expect("eci always decides");
        let latency = |(tenant, decision): (&Tenant<'_>, &Decision)| {
            let findings = tenant.active().expect("every tenant has accesses");
            let hits = findings.hit_curve().ratio(decision.quota_blocks.into());
            hits * T_SSD + (1.0 - hits) * T_HDD
        };
        let reached: f64 = tenants.iter().zip(&decisions).map(latency).sum();
        assert!(best.cost - 1e-9 <= reached && reached <= best.cost * 1.01, "{reached} for {}", best.cost);
        infeasible += u32::from(decisions[0].reason.contains("does not fit"));
    }
    assert!((800..1000).contains(&infeasible), "{infeasible} instances had to be optimised");
}

/// An epoch of reads and writes, with curves of `wb` and `ro`.
fn mixed_epoch(rng: &mut Rng) -> Findings {
    let curves = [CurvePolicy::WriteBack, CurvePolicy::ReadOnly].map(|policy| {
        let hits = SizeCurve::rising(steps(rng, 5000));
        let reads = hits.last() + 1000;
        let counted = Counted {
            reads,
            writes: 2000,
            requests: reads + 2000,
            read_requests: reads,
            read_hits: hits.clone(),
            request_hits: hits.clone(),
            read_request_hits: hits,
            ..Counted::default()
        };
        PolicyCurves::new(policy, counted)
    });
    let requests = 3000 + rng.below(30_000);
    Findings {
        seconds: 100.0,
        curves: curves.to_vec(),
        ..EpochFindings { requests, accesses: requests, ..EpochFindings::default() }.into()
    }
}

/// Tenants with mixed epochs, a cache that is too small for them, and sometimes a budget of SSD writes.
fn mixed_instance(rng: &mut Rng) -> (Vec<Findings>, Constraints) {
    let epochs: Vec<_> = (0..2 + rng.below(4)).map(|_| mixed_epoch(rng)).collect();
    let budget = (rng.below(2) == 0).then(|| rng.unit() * 60.0 * epochs.len() as f64);
    let constraints = Constraints {
        cache_blocks: rng.below(2500 * epochs.len() as u64) as u32,
        ssd_writes_per_second: budget,
        ..Constraints::default()
    };
    (epochs, constraints)
}

#[test]
fn where_larder_says_exact_it_is_the_optimum() {
    let mut rng = Rng::new(2);
    let mut exact = 0;
    for _ in 0..300 {
        let (epochs, constraints) = mixed_instance(&mut rng);
        let choices = |epoch: &Findings| {
            crate::choices::of(&tenant("t", Some(epoch)), &Menu::of(epoch, true), &constraints)
                .expect("nothing is reserved")
        };
        let candidates: Vec<_> = epochs.iter().map(choices).collect();
        let room =
            Room { blocks: constraints.cache_blocks.into(), writes: constraints.ssd_writes_per_second };
        let best = solve(&candidates, room).expect("no blocks and no writes always fit");
        let found = solver::solve(&candidates, room, None).expect("no blocks and no writes always fit");
        let tolerance = 1e-9 * best.cost;
        assert!(found.cost >= best.cost - tolerance, "{} is below {}", found.cost, best.cost);
        assert!(found.cost * (1.0 - found.gap()) <= best.cost + tolerance, "{} is no bound", found.gap());
        if found.is_exact() {
            exact += 1;
            assert!(found.cost <= best.cost + tolerance, "{} is above {}", found.cost, best.cost);
        }
    }
    assert!(exact > 200, "only {exact} were exact");
}

/// What changes cost is nothing beside what the next epoch brings, where that is long enough. What is left is the hundredth by
/// which another mode has to be better.
#[test]
fn larder_is_within_a_hundredth_of_the_optimum_where_changes_cost_nothing() {
    let mut rng = Rng::new(3);
    for _ in 0..100 {
        let (epochs, constraints) = mixed_instance(&mut rng);
        let constraints = Constraints { epoch_seconds: 1e12, ..constraints };
        let names: Vec<_> = (0..epochs.len()).map(|at| format!("t{at}")).collect();
        let tenants: Vec<_> =
            epochs.iter().zip(&names).map(|(epoch, name)| tenant(name, Some(epoch))).collect();
        let cost = |name: &str| -> f64 {
            let mut allocator = by_name(name).expect("it is known");
            let decisions = allocator.allocate(&tenants, &constraints).expect("it decides");
            let predicted = decisions.iter().zip(&epochs).map(|(decision, epoch)| {
                let latency = decision.predicted.expect("every tenant has curves").latency;
                latency * epoch.epoch.requests as f64 / epoch.seconds
            });
            predicted.sum()
        };
        let (optimal, larder) = (cost("optimal"), cost("larder"));
        assert!(larder <= optimal * 1.0101, "{larder} for {optimal}");
    }
}
