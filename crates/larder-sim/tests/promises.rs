//! What operators are promised, held against what a run then measures: reservations, shares, the budget of SSD writes, forecasts, and tenants that others do no harm, a most that nobody exceeds.
//!
//! The workloads are stationary: popular blocks and unpopular ones, drawn with a fixed seed. Each touches far more blocks in an epoch than it has, so that an epoch
//! tells all about it.

use std::convert::Infallible;

use larder_alloc::control::WriteBudget;
use larder_alloc::{Goals, Reservation};
use larder_sim::tenants::{DecisionRow, Pace, TenantPlan, TenantsPlan, TenantsResult, simulate_tenants};
use larder_sim::{BlockSize, Requests};
use larder_trace::{Generator, Pattern, Request, Workload};

const BLOCK: u64 = 4096;

/// Seconds of an epoch.
const EPOCH: f64 = 20.0;

/// Epochs after which promises hold.
const LEARNT: u32 = 3;

/// Blocks that a tenant accesses, and those of the cache of two.
const FOOTPRINT: u64 = 5000;
const CACHE: u64 = 3000;

/// The allocators that know reservations and shares.
const PROMISING: [&str; 2] = ["larder", "centaur"];

/// Popular blocks and unpopular ones of a footprint, so many requests of one block per second.
fn popular(per_second: u64, read_share: f64) -> Workload {
    Workload {
        pattern: Pattern::Zipf { theta: 0.8 },
        requests: u64::MAX,
        first_byte: 0,
        bytes: FOOTPRINT * BLOCK,
        request_bytes: BLOCK as u32,
        read_share,
        interval_ns: 1_000_000_000 / per_second,
    }
}

/// A disk of 4 GiB read from its begin to its end.
fn scan(per_second: u64) -> Workload {
    Workload { pattern: Pattern::Sequential, bytes: 4 << 30, ..popular(per_second, 1.0) }
}

fn with(name: &str, goals: Goals) -> TenantPlan {
    TenantPlan { goals, ..TenantPlan::new(name) }
}

fn plan(tenants: Vec<TenantPlan>, allocator: &str, epochs: u32) -> TenantsPlan {
    let mut plan = TenantsPlan::new(tenants, allocator, CACHE * BLOCK);
    plan.caching.block = Some(BlockSize::DEFAULT);
    plan.caching.epoch_seconds = Some(EPOCH);
    plan.duration_seconds = Some(EPOCH * f64::from(epochs));
    plan.min_bytes = 32 * BLOCK;
    plan
}

fn run(plan: &TenantsPlan, workloads: &[Workload]) -> TenantsResult {
    let source = |(workload, seed): (&Workload, u64)| {
        let generator = Generator::new(&[*workload], 0, seed).expect("a workload");
        move || Ok::<_, Infallible>(Requests(generator.clone()))
    };
    let sources: Vec<_> = workloads.iter().zip(1..).map(source).collect();
    let result = simulate_tenants(plan, &sources, |_| {}).expect("it can be run");
    assert_eq!(result.failed_decisions, 0, "{:?}", result.failure);
    result
}

/// What a tenant was told and had in each epoch after so many.
fn rows(result: &TenantsResult, tenant: usize, after: u32) -> impl Iterator<Item = &DecisionRow> {
    let begin = EPOCH * f64::from(after) - EPOCH / 100.0;
    let theirs = result.decisions.iter().filter(move |row| row.tenant == tenant && row.seconds >= begin);
    theirs.filter(|row| row.achieved.latency.is_some())
}

/// A tenant's mean latency in these epochs.
fn mean_latency(result: &TenantsResult, tenant: usize, after: u32) -> f64 {
    let (mut seconds, mut requests) = (0.0, 0.0);
    for row in rows(result, tenant, after) {
        requests += row.achieved.iops;
        seconds += row.achieved.iops * row.achieved.latency.unwrap_or(0.0);
    }
    seconds / requests
}

/// The best that can be had by the words of a refusal, in seconds or IOPS.
fn best_of(reason: &str) -> f64 {
    let (_, best) = reason.split_once("refused: the best that can be had is ").expect("a refusal");
    let (number, rest) = best.split_once(' ').expect("a unit");
    let unit = match rest {
        _ if rest.starts_with("µs") => 1e-6,
        _ if rest.starts_with("ms") => 1e-3,
        _ => 1.0,
    };
    number.parse::<f64>().expect("a number") * unit
}

/// A tenant with a reservation beside one that asks four times as often.
fn beside(allocator: &str, pace: Pace, reservation: Option<Reservation>) -> TenantsResult {
    let goals = Goals { reservation, ..Goals::default() };
    let promised = TenantPlan { pace, ..with("promised", goals) };
    let plan = plan(vec![promised, TenantPlan::new("other")], allocator, LEARNT + 3);
    run(&plan, &[popular(1000, 0.8), popular(4000, 0.8)])
}

/// The same tenant, alone.
fn alone(allocator: &str, pace: Pace) -> TenantsResult {
    let tenant = TenantPlan { pace, ..TenantPlan::new("alone") };
    run(&plan(vec![tenant], allocator, LEARNT + 3), &[popular(1000, 0.8)])
}

/// The share of a reservation that a row has: 1 where it is just met, more where it is more than met.
fn part_met(row: &DecisionRow, reservation: Reservation) -> f64 {
    match reservation {
        Reservation::Latency(most) => most / row.achieved.latency.expect("requests"),
        Reservation::Iops(least) => row.achieved.iops / least,
    }
}

/// Met within 10 % after three epochs where it can be had, and not without having been promised.
fn is_met(pace: Pace, reservation: Reservation) {
    for allocator in PROMISING {
        let parts = |promised: Option<Reservation>| -> Vec<f64> {
            let result = beside(allocator, pace, promised);
            rows(&result, 0, LEARNT).map(|row| part_met(row, reservation)).collect()
        };
        let (with, without) = (parts(Some(reservation)), parts(None));
        assert_eq!((with.len(), without.len()), (3, 3));
        assert!(with.iter().all(|&part| part >= 0.9), "{allocator}: {with:?}");
        assert!(without.iter().all(|&part| part < 0.9), "{allocator} without: {without:?}");
    }
}

/// Refused where it cannot be had, with what could be: about what the tenant has alone. The others go on as if nothing had been asked for.
fn is_refused(pace: Pace, reservation: Reservation) {
    for allocator in PROMISING {
        let (result, free) = (beside(allocator, pace, Some(reservation)), beside(allocator, pace, None));
        let alone = alone(allocator, pace);
        let had = rows(&alone, 0, LEARNT).last().expect("an epoch").achieved;
        let had = if matches!(reservation, Reservation::Iops(_)) { Some(had.iops) } else { had.latency };
        for row in rows(&result, 0, LEARNT) {
            let part = best_of(&row.reason) / had.expect("requests");
            assert!((0.85..1.15).contains(&part), "{allocator}: {part} of what it has alone: {}", row.reason);
        }
        let latencies = [&result, &free].map(|result| mean_latency(result, 1, LEARNT));
        assert!((latencies[0] / latencies[1] - 1.0).abs() < 0.01, "{allocator}: {latencies:?}");
    }
}

#[test]
fn a_latency_that_can_be_had_is_had_within_three_epochs() {
    is_met(Pace::Open { rate: 1.0 }, Reservation::Latency(1e-3));
}

#[test]
fn requests_per_second_that_can_be_had_are_had_within_three_epochs() {
    is_met(Pace::Closed { outstanding: 4 }, Reservation::Iops(4000.0));
}

#[test]
fn what_cannot_be_had_is_refused_with_the_best_there_is() {
    is_refused(Pace::Open { rate: 1.0 }, Reservation::Latency(1e-5));
    is_refused(Pace::Closed { outstanding: 4 }, Reservation::Iops(1e6));
}

#[test]
fn shares_are_proportions_of_latencies() {
    for allocator in PROMISING {
        for (one, other) in [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)] {
            let share = |share| Goals { share: Some(share), ..Goals::default() };
            let tenants = vec![with("one", share(one)), with("other", share(other))];
            let result =
                run(&plan(tenants, allocator, LEARNT + 3), &[popular(2000, 0.8), popular(2000, 0.8)]);
            let ratio = mean_latency(&result, 0, LEARNT) / mean_latency(&result, 1, LEARNT);
            let off = ratio / (other / one) - 1.0;
            assert!(off.abs() < 0.05, "{allocator} {one}:{other}: a ratio of {ratio}");
        }
    }
}

/// Blocks written to the SSD in each of three periods: runs of the same begin, one period longer each time. Epochs and periods do not end together.
fn written(allocator: &str, budget: Option<u64>) -> [u64; 3] {
    const PERIOD: f64 = 600.0;
    let until = |periods: u32| {
        let mut plan = plan(vec![TenantPlan::new("one"), TenantPlan::new("other")], allocator, 0);
        plan.duration_seconds = Some(PERIOD * f64::from(periods));
        plan.caching.epoch_seconds = Some(175.0);
        plan.budget =
            budget.map(|blocks| WriteBudget { bytes: (blocks * BLOCK) as f64, period_seconds: PERIOD });
        run(&plan, &[popular(20, 0.5), popular(40, 0.8)]).total.ssd_writes.total
    };
    let until = [until(1), until(2), until(3)];
    [until[0], until[1] - until[0], until[2] - until[1]]
}

/// No period's writes exceed the budget by more than 2 %, and none leaves more unused than the tenants do not want.
#[test]
fn a_budget_of_writes_holds_in_every_period() {
    for allocator in ["larder", "centaur", "unified"] {
        let wanted = written(allocator, None);
        let least = wanted.into_iter().min().expect("three");
        for part in [10, 50] {
            let budget = least * part / 100;
            for period in written(allocator, Some(budget)) {
                let used = period as f64 / budget as f64;
                assert!(
                    (0.98..=1.02).contains(&used),
                    "{allocator}: {period} of {budget} blocks, {wanted:?} without"
                );
            }
        }
    }
}

/// Who works in the first eighth of each day, and wants more than may be written, finds most of the day's budget from the second day on: when work comes is known by then.
#[test]
fn a_budget_is_spent_when_work_came_the_day_before() {
    const DAY: f64 = 1200.0;
    let worked = |days: u32| {
        let mut plan = plan(vec![TenantPlan::new("one")], "larder", 0);
        plan.duration_seconds = Some(DAY * f64::from(days));
        plan.budget = Some(WriteBudget { bytes: (2000 * BLOCK) as f64, period_seconds: DAY });
        let generator = Generator::new(&[popular(100, 0.5)], 0, 1).expect("a workload");
        let source = move || {
            let (day_ns, work_ns) = ((DAY * 1e9) as u64, (DAY / 8.0 * 1e9) as u64);
            let by_day = move |time_ns: u64| time_ns / work_ns * day_ns + time_ns % work_ns;
            Ok::<_, Infallible>(Requests(
                generator.clone().map(move |it| Request { time_ns: by_day(it.time_ns), ..it }),
            ))
        };
        let result = simulate_tenants(&plan, &[source], |_| {}).expect("it can be run");
        result.total.ssd_writes.total
    };
    let until = [0, worked(1), worked(2), worked(3)];
    let used = [1, 2, 3].map(|day| (until[day] - until[day - 1]) as f64 / 2000.0);
    assert!(used.iter().all(|&used| used <= 1.02), "{used:?}");
    assert!(used[1] > 0.8 && used[2] > 0.8, "{used:?}");
}

/// A budget of more than is wanted costs nothing, also for blocks that are read again after a while only: the latencies are those without one.
#[test]
fn a_budget_that_is_not_used_up_slows_nobody_down() {
    for allocator in ["larder", "centaur", "unified"] {
        let latency = |budget: Option<u64>| {
            let mut plan = plan(vec![TenantPlan::new("one"), TenantPlan::new("other")], allocator, 12);
            plan.budget =
                budget.map(|blocks| WriteBudget { bytes: (blocks * BLOCK) as f64, period_seconds: 86_400.0 });
            // A round takes ten seconds.
            let rounds = Workload { pattern: Pattern::Loop { places: 1000 }, ..popular(100, 1.0) };
            run(&plan, &[popular(100, 0.5), rounds]).total.mean_latency
        };
        let without = latency(None);
        for budget in [1 << 26, 1 << 40] {
            let with = latency(Some(budget));
            assert!(
                with < 1.1 * without,
                "{allocator}: {with} s with {budget} blocks a day, {without} s without"
            );
        }
    }
}

/// What is told of a tenant's writes to the SSD, against what is then counted, after the third epoch.
#[test]
fn writes_to_the_ssd_are_forecast_within_a_tenth() {
    let names = ["writer", "reader", "small"];
    let small = Workload { bytes: 400 * BLOCK, ..popular(500, 0.7) };
    for allocator in ["larder", "eci"] {
        let plan = plan(names.map(TenantPlan::new).to_vec(), allocator, 8);
        let result = run(&plan, &[popular(1000, 0.5), popular(1000, 0.9), small]);
        for (tenant, name) in names.iter().enumerate() {
            let (mut predicted, mut counted) = (0.0, 0.0);
            for row in rows(&result, tenant, LEARNT) {
                predicted += row.predicted_ssd_writes_per_second.expect("a forecast");
                counted += row.achieved.ssd_writes_per_second;
            }
            let part = predicted / counted;
            assert!((0.9..1.1).contains(&part), "{allocator}, {name}: {part} of {counted}");
        }
    }
}

/// The share of a tenant's reads that hit in so many epochs after the fifth, in which a scan of a large disk begins, or does not.
fn hits_after_fifth(allocator: &str, scanned: bool, epochs: u32) -> f64 {
    let (reservation, start_seconds) = (Some(Reservation::Latency(6e-4)), 5.0 * EPOCH);
    let until = |epochs: u32| {
        let mut tenants = vec![with("protected", Goals { reservation, ..Goals::default() })];
        let mut workloads = vec![popular(1000, 0.8)];
        if scanned {
            tenants.push(TenantPlan { start_seconds, ..TenantPlan::new("scan") });
            workloads.push(scan(4000));
        }
        let result = run(&plan(tenants, allocator, epochs), &workloads);
        (result.tenants[0].read_hits, result.tenants[0].block_reads)
    };
    let (before, after) = (until(5), until(5 + epochs));
    (after.0 - before.0) as f64 / (after.1 - before.1) as f64
}

#[test]
fn a_noisy_neighbour_does_a_protected_tenant_no_harm() {
    for epochs in [1, 4] {
        let lost = |allocator| {
            hits_after_fifth(allocator, false, epochs) - hits_after_fifth(allocator, true, epochs)
        };
        let (ours, unified) = (lost("larder"), lost("unified"));
        assert!(ours < 0.02, "{ours} in {epochs} epochs");
        assert!(unified > 0.15, "unified: {unified} in {epochs} epochs");
    }
}

/// Blocks that two tenants hold at the end of each epoch, of which the first may hold so many at most and the second asks for little.
fn held(allocator: &str, max_blocks: Option<u32>) -> Vec<[u32; 2]> {
    let goals = Goals { max_blocks, ..Goals::default() };
    let plan = plan(vec![with("large", goals), TenantPlan::new("small")], allocator, LEARNT + 2);
    let few = Workload { bytes: 100 * BLOCK, ..popular(10, 1.0) };
    let result = run(&plan, &[popular(2000, 0.8), few]);
    let of = |tenant| rows(&result, tenant, 0).map(|row| row.occupied_blocks).collect::<Vec<_>>();
    of(0).into_iter().zip(of(1)).map(|(large, small)| [large, small]).collect()
}

#[test]
fn nobody_holds_more_than_its_maximum_however_much_is_free() {
    for allocator in ["larder", "centaur", "eci", "scave", "wss", "static"] {
        let held = held(allocator, Some(400));
        assert!(held.len() > 3 && held.iter().all(|held| held[0] <= 400), "{allocator}: {held:?}");
        assert!(held.iter().any(|held| held[0] > 200), "{allocator}: {held:?}");
    }
    // So it is where a quota was more at first.
    let goals = Goals { max_blocks: Some(400), ..Goals::default() };
    let first = TenantPlan { quota_bytes: Some(1500 * BLOCK), ..with("first", goals) };
    let plan = plan(vec![first], "larder", LEARNT);
    let result = run(&plan, &[popular(2000, 0.8)]);
    let last = rows(&result, 0, 1).last().expect("an epoch");
    assert!((200..=400).contains(&last.occupied_blocks), "{last:?}");
    let held = held("larder", None);
    assert!(held.iter().any(|held| held[0] > 2000), "{held:?}");
}
