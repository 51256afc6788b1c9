//! What must hold for every policy: nothing is lost or counted twice, and neither threads nor batches, warm-up or intervals change what is found.

mod common;

use std::num::NonZero;

use common::{requests, run_of, simulate_all, timeless};
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};
use larder_sim::{
    Counters, Futures, Plan, Requests, RunResult, RunSpec, Simulated, Span, Totals, WritePolicy, simulate,
    survey,
};
use larder_trace::{GeneratorSpec, Request};
use proptest::prelude::*;

/// Every policy behind every admission, under every write policy.
fn all_runs(blocks: u64) -> Vec<RunSpec> {
    let mut runs = Vec::new();
    for &policy in PolicySpec::online() {
        for &admission in AdmissionSpec::defaults() {
            let Ok(caching) = CachingSpec::new(policy, admission) else { continue };
            runs.extend(WritePolicy::ALL.map(|write| RunSpec { caching, write, blocks }));
        }
    }
    runs
}

fn check(result: &RunResult, capacity: u64) {
    let Totals { ssd_writes: ssd, .. } = result.totals;
    let t = &result.totals;
    let name = format!("{} {} {}", result.policy, result.admission, result.write_policy);
    assert_eq!(t.block_reads, t.read_hits + t.backing_reads, "{name}");
    assert!(t.fills <= t.backing_reads && t.fills == ssd.fill, "{name}");
    assert_eq!(ssd.total, ssd.fill + ssd.guest_write, "{name}");
    assert!(t.write_hits <= ssd.guest_write && ssd.guest_write <= t.block_writes, "{name}");
    assert!(t.request_hits <= t.requests && t.read_request_hits <= t.read_requests, "{name}");
    let entered = t.fills + ssd.guest_write - t.write_hits;
    assert_eq!(entered, t.evictions + t.invalidations + t.discarded + result.resident_blocks, "{name}");
    assert!(result.resident_blocks <= capacity && t.dirty_evictions <= t.evictions, "{name}");
    let writes = match result.write_policy.as_str() {
        "wb" | "wo" => t.dirty_evictions + t.block_writes - ssd.guest_write,
        _ => t.block_writes,
    };
    assert_eq!(t.backing_writes, writes, "{name}");
    match result.write_policy.as_str() {
        "wb" => assert!(result.dirty_blocks + t.dirty_evictions <= ssd.guest_write, "{name}"),
        // All that is in a cache which only writes enter is dirty.
        "wo" => assert_eq!(
            (result.dirty_blocks, t.dirty_evictions, t.fills),
            (result.resident_blocks, t.evictions, 0)
        ),
        "ro" => assert_eq!((result.dirty_blocks, t.write_hits, ssd.guest_write), (0, 0, 0), "{name}"),
        _ => assert_eq!((result.dirty_blocks, t.dirty_evictions, t.invalidations), (0, 0, 0), "{name}"),
    }
}

/// A plan that may have Belady's policy in it, with the survey that takes.
fn simulate_surveyed(requests: &[Request], plan: &Plan) -> Simulated {
    let mut futures = Futures::default();
    plan.runs.iter().for_each(|run| futures.need(run.caching, run.write));
    let source = || Requests(requests.iter().copied());
    let seen = survey(source(), plan.block, plan.limit, futures, |_| {}).expect("readable");
    simulate(source(), plan, Some(&seen), |_| {}).expect("a plan that can be")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_policy_misses_less_than_beladys(requests in requests(0..300), capacity in 1u64..30) {
        // Where writes allocate and where there are none, every absent block enters: what Belady's policy is the best for. `ro` turns writes away, but
        // only invalidates what is resident, which Belady's policy knows.
        let mut runs = Vec::new();
        for write in [WritePolicy::WriteBack, WritePolicy::WriteThrough, WritePolicy::ReadOnly] {
            runs.push(run_of("belady", write, capacity));
            runs.extend(PolicySpec::online().iter().filter(|&&policy| policy != PolicySpec::Larc).map(|policy| run_of(&policy.to_string(), write, capacity)));
        }
        let simulated = simulate_surveyed(&requests, &Plan::new(runs));
        for runs in simulated.runs.chunk_by(|a, b| a.write_policy == b.write_policy) {
            check(&runs[0], capacity);
            let hits = |run: &RunResult| run.totals.read_hits + run.totals.write_hits;
            for run in runs {
                prop_assert!(hits(run) <= hits(&runs[0]), "{} {}", run.policy, run.write_policy);
            }
        }
    }

    #[test]
    fn nothing_is_lost_or_counted_twice(requests in requests(0..200), capacity in 1u64..30) {
        let simulated = simulate_all(&requests, &Plan::new(all_runs(capacity)));
        simulated.runs.iter().for_each(|result| check(result, capacity));
    }

    #[test]
    fn a_warm_up_counts_the_rest_and_intervals_add_up(
        requests in requests(0..150), capacity in 1u64..20, warmup in 0u64..160, length in 1u64..40, by_time in any::<bool>(),
    ) {
        let plan = Plan::new(vec![run_of("lru", WritePolicy::WriteBack, capacity), run_of("sieve", WritePolicy::ReadOnly, capacity)]);
        let (warmup, every) = if by_time {
            (Span::TimeNs(warmup), Span::TimeNs(length * 20))
        } else {
            (Span::Requests(warmup), Span::Requests(length))
        };
        let whole = simulate_all(&requests, &Plan { warmup, ..plan.clone() });
        let parts = simulate_all(&requests, &Plan { warmup, every: Some(every), ..plan.clone() });
        for (whole, parts) in whole.runs.iter().zip(&parts.runs) {
            prop_assert_eq!(whole.totals, parts.totals);
            prop_assert_eq!(sum(parts, |t| t.requests), whole.totals.requests);
            prop_assert_eq!(sum(parts, |t| t.ssd_writes.total), whole.totals.ssd_writes.total);
            prop_assert_eq!(sum(parts, |t| t.flushes), whole.totals.flushes);
            prop_assert!(parts.series.is_sorted_by(|a, b| a.first_request <= b.first_request && a.start_seconds <= b.start_seconds));
        }
    }

    #[test]
    fn a_warm_up_and_its_rest_make_the_whole(requests in requests(0..150), at in 0u64..160) {
        let plan = Plan::new(vec![run_of("larc", WritePolicy::WriteThrough, 7)]);
        let whole = simulate_all(&requests, &plan).runs.remove(0).totals;
        let first = simulate_all(&requests, &Plan { limit: Some(at), ..plan.clone() }).runs.remove(0).totals;
        let rest = simulate_all(&requests, &Plan { warmup: Span::Requests(at), ..plan }).runs.remove(0).totals;
        prop_assert_eq!(first.requests + rest.requests, whole.requests);
        prop_assert_eq!(first.read_hits + rest.read_hits, whole.read_hits);
        prop_assert_eq!(first.evictions + rest.evictions, whole.evictions);
        prop_assert_eq!(first.backing_writes + rest.backing_writes, whole.backing_writes);
    }
}

fn sum(result: &RunResult, count: impl Fn(&Totals) -> u64) -> u64 {
    result.series.iter().map(|interval| count(&interval.totals)).sum()
}

/// Requests of up to 64 blocks, long enough for many batches.
fn long_trace() -> Vec<Request> {
    let spec = "zipf:theta=0.9,blocks=3000,requests=40000,read=0.6 + mix:cr=0.02,cw=0.02,rar=0.3,raw=0.2,war=0.2,waw=0.26,requests=20000,distance=uniform(1,300)";
    let requests = spec.parse::<GeneratorSpec>().expect("a workload").open();
    requests.enumerate().map(|(at, request)| Request { len: 512 << (at % 10), ..request }).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let requests = long_trace();
    let runs: Vec<_> = ["lru", "sieve", "random", "lru+prob:0.3", "larc"]
        .iter()
        .flat_map(|policy| [100, 900].map(|blocks| run_of(policy, WritePolicy::WriteBack, blocks)))
        .collect();
    let plan =
        Plan { warmup: Span::Requests(1000), every: Some(Span::TimeNs(5_000_000_000)), ..Plan::new(runs) };
    let on =
        |threads| simulate_all(&requests, &Plan { threads: NonZero::new(threads).unwrap(), ..plan.clone() });
    let alone = on(1);
    assert!(alone.runs[0].totals.block_reads > 100_000 && alone.runs[0].series.len() > 10);
    for threads in [2, 3, 16] {
        let many = on(threads);
        assert_eq!(timeless(&many), timeless(&alone));
        assert_eq!(many.summary, alone.summary);
    }
}

#[test]
fn runs_do_not_disturb_each_other() {
    let requests = &long_trace()[..3000];
    let runs = all_runs(500);
    let together = timeless(&simulate_all(requests, &Plan::new(runs.clone())));
    for (at, run) in runs.iter().enumerate().step_by(7) {
        assert_eq!(timeless(&simulate_all(requests, &Plan::new(vec![*run])))[0], together[at]);
    }
}

#[test]
fn a_survey_says_what_the_simulation_would() {
    let requests = long_trace();
    let plan = Plan { limit: Some(30_000), ..Plan::new(vec![run_of("lru", WritePolicy::WriteBack, 100)]) };
    let simulated = simulate_all(&requests, &plan);
    let source = || Requests(requests.iter().copied());
    let seen = survey(source(), plan.block, plan.limit, Futures::default(), |_| {}).unwrap();
    assert_eq!(seen.summary, simulated.summary);
    assert_eq!((seen.summary.requests(), seen.summary.flushes), (30_000, 0));
    let after = simulate(source(), &plan, Some(&seen), |_| {}).unwrap();
    assert_eq!(timeless(&after), timeless(&simulated));
}

#[test]
fn a_request_larger_than_a_batch_is_one_request() {
    let read =
        Request { time_ns: 0, volume: 0, kind: larder_trace::RequestKind::Read, offset: 0, len: 1 << 28 };
    let plan = Plan::new(vec![
        run_of("lru", WritePolicy::WriteBack, 1 << 16),
        run_of("lru", WritePolicy::WriteBack, 1 << 15),
    ]);
    let simulated = simulate_all(&[read; 3], &plan);
    let found = simulated
        .runs
        .iter()
        .map(|run| (run.totals.requests, run.totals.request_hits, run.totals.block_reads));
    assert_eq!(found.collect::<Vec<_>>(), [(3, 2, 3 << 16), (3, 0, 3 << 16)]);
    assert_eq!(simulated.summary.footprint_blocks, 1 << 16);
}

#[test]
fn nothing_gives_nothing() {
    let plan = Plan { every: Some(Span::Requests(1)), ..Plan::new(all_runs(3)) };
    let simulated = simulate_all(&[], &plan);
    assert!(
        simulated
            .runs
            .iter()
            .all(|run| run.totals == Totals::from(Counters::default()) && run.series.is_empty())
    );
    assert_eq!(simulated.summary.requests(), 0);
}
