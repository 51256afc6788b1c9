//! What operators are promised, held against what a run then measures: reservations, shares, the budget of SSD writes, forecasts, and tenants that others do no harm.
//!
//! The workloads are stationary: popular blocks and unpopular ones, drawn with a fixed seed. Each touches far more blocks in an epoch than it has, so that an epoch
//! tells all about it.

use std::convert::Infallible;

use larder_alloc::control::WriteBudget;
use larder_alloc::{Goals, Reservation};
use larder_sim::tenants::{DecisionRow, Pace, TenantPlan, TenantsPlan, TenantsResult, simulate_tenants};
use larder_sim::{BlockSize, Requests};
use larder_trace::{Generator, Pattern, Workload};

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

fn reserved(reservation: Option<Reservation>) -> Goals {
    Goals { reservation, ..Goals::default() }
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
    let promised = TenantPlan { pace, ..with("promised", reserved(reservation)) };
    let plan = plan(vec![promised, TenantPlan::new("other")], allocator, LEARNT + 3);
    run(&plan, &[popular(1000, 0.8), popular(4000, 0.8)])
}

#[test]
fn dev_latency() {
    for a in PROMISING {
        let free = beside(a, Pace::Open { rate: 1.0 }, None);
        println!("{a} free {:?}", rows(&free, 0, 0).map(|r| (r.seconds, r.quota_blocks, r.achieved.latency.map(|x| (x*1e6) as u32))).collect::<Vec<_>>());
        for t in [1.2e-3, 1e-3, 1e-5] {
        let r = beside(a, Pace::Open { rate: 1.0 }, Some(Reservation::Latency(t)));
        println!("{a} {t} {:?}", rows(&r, 0, 0).map(|r| (r.seconds, r.quota_blocks, r.achieved.latency.map(|x| (x*1e6) as u32))).collect::<Vec<_>>());
        println!("{}", rows(&r, 0, 5).last().unwrap().reason);
        }
        let alone = run(&plan(vec![with("p", Goals::default())], a, 6), &[popular(1000, 0.8)]);
        println!("alone {}", mean_latency(&alone, 0, 3));
    }
}
#[test]
fn dev_iops() {
    for a in PROMISING {
        let p = Pace::Closed { outstanding: 4 };
        let free = beside(a, p, None);
        println!("{a} free {:?}", rows(&free, 0, 0).map(|r| (r.seconds, r.quota_blocks, r.achieved.iops as u32)).collect::<Vec<_>>());
        for t in [3000.0, 4000.0, 1e6] {
        let r = beside(a, p, Some(Reservation::Iops(t)));
        println!("{a} {t} {:?}", rows(&r, 0, 0).map(|r| (r.seconds, r.quota_blocks, r.achieved.iops as u32)).collect::<Vec<_>>());
        println!("{}", rows(&r, 0, 5).last().unwrap().reason);
        }
        let alone = run(&plan(vec![TenantPlan { pace: p, ..with("p", Goals::default())}], a, 6), &[popular(1000, 0.8)]);
        println!("alone {}", rows(&alone, 0, 5).last().unwrap().achieved.iops);
    }
}
#[test]
fn dev_shares() {
    for a in PROMISING {
        for (one, other) in [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)] {
            let share = |s| Goals { share: Some(s), ..Goals::default() };
            let p = plan(vec![with("one", share(one)), with("other", share(other))], a, 10);
            let r = run(&p, &[popular(2000, 0.8), popular(2000, 0.8)]);
            let per: Vec<_> = rows(&r, 0, 1).zip(rows(&r, 1, 1)).map(|(x, y)| (x.seconds as u32, x.quota_blocks, (x.achieved.latency.unwrap() / y.achieved.latency.unwrap() / (other / one) * 1000.0) as u32)).collect();
            println!("{a} {one}:{other} {per:?} mean {}", mean_latency(&r, 0, 4) / mean_latency(&r, 1, 4) * one / other);
        }
    }
}
#[test]
fn dev_budget() {
    let period = 120.0;
    for a in ["larder", "eci", "centaur", "unified", "scave", "wss"] {
        for part in [0.0, 0.1, 0.5, 0.8] {
            let mut all = Vec::new();
            let mut blocks = 0.0;
            for periods in 1..=3 {
                let mut p = plan(vec![TenantPlan::new("one"), TenantPlan::new("other")], a, 18);
                p.duration_seconds = Some(period * f64::from(periods));
                p.caching.epoch_seconds = Some(35.0);
                blocks = period * 1000.0 * part;
                if part > 0.0 { p.budget = Some(WriteBudget { bytes: blocks * 4096.0, period_seconds: period }); }
                let r = run(&p, &[popular(1000, 0.5), popular(1000, 0.8)]);
                all.push(r.total.ssd_writes.total);
            }
            println!("{a} budget {blocks} per period: {} {} {}", all[0], all[1]-all[0], all[2]-all[1]);
        }
    }
}
#[test]
fn dev_forecast() {
    for (a, budget) in [("larder", None), ("larder", Some(0.5)), ("larder", Some(0.2)), ("centaur", None), ("eci", None)] {
        let mut p = plan(vec![TenantPlan::new("one"), TenantPlan::new("other"), TenantPlan::new("scan")], a, 10);
        p.budget = budget.map(|part: f64| WriteBudget { bytes: 4096.0 * 200.0 * 3000.0 * part, period_seconds: 200.0 });
        let r = run(&p, &[popular(1000, 0.5), popular(1000, 0.9), scan(1000)]);
        for t in 0..3 {
            let f: Vec<_> = rows(&r, t, 3).map(|r| (r.quota_blocks, r.caching.clone() + "/" + &r.write_policy, r.predicted_ssd_writes_per_second.map(|x| x as u32), r.achieved.ssd_writes_per_second as u32)).collect();
            println!("{a} {budget:?} t{t} {f:?}");
        }
    }
}
#[test]
fn dev_noisy() {
    for a in ["larder", "unified"] { for reservation in [None, Some(Reservation::Latency(0.6e-3))] {
        let hits = |noise: bool, epochs: u32| {
            let mut tenants = vec![with("p", reserved(reservation))];
            let mut w = vec![popular(1000, 0.8)];
            if noise { tenants.push(TenantPlan { start_seconds: 5.0 * EPOCH, ..TenantPlan::new("scan") }); w.push(scan(4000)); }
            let r = run(&plan(tenants, a, epochs), &w);
            (r.tenants[0].read_hits as f64, r.tenants[0].block_reads as f64)
        };
        let b = hits(false, 5);
        let ratio = |(h, n): (f64, f64)| (h - b.0) / (n - b.1);
        println!("{a} {reservation:?} quiet {} one epoch {} five epochs {}", ratio(hits(false, 10)), ratio(hits(true, 6)), ratio(hits(true, 10)));
    } }
}
