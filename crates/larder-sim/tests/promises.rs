//! dev
use std::convert::Infallible;

use larder_alloc::control::WriteBudget;
use larder_alloc::{Goals, Reservation};
use larder_sim::tenants::{DecisionRow, Pace, TenantPlan, TenantsPlan, TenantsResult, simulate_tenants};
use larder_sim::{BlockSize, Requests};
use larder_trace::{Generator, Pattern, Workload};

const BLOCK: u64 = 4096;
const EPOCH: f64 = 20.0;

fn zipf(blocks: u64, theta: f64, reads: f64, per_second: u64) -> Workload {
    Workload {
        pattern: Pattern::Zipf { theta },
        requests: u64::MAX,
        first_byte: 0,
        bytes: blocks * BLOCK,
        request_bytes: BLOCK as u32,
        read_share: reads,
        interval_ns: 1_000_000_000 / per_second,
    }
}

fn plan(tenants: Vec<TenantPlan>, allocator: &str, blocks: u64, epochs: u32) -> TenantsPlan {
    let mut plan = TenantsPlan::new(tenants, allocator, blocks * BLOCK);
    plan.caching.block = Some(BlockSize::DEFAULT);
    plan.caching.epoch_seconds = Some(EPOCH);
    plan.duration_seconds = Some(EPOCH * f64::from(epochs));
    plan.min_bytes = 64 * BLOCK;
    plan
}

fn run(plan: &TenantsPlan, workloads: &[Workload]) -> TenantsResult {
    let sources: Vec<_> = workloads
        .iter()
        .zip(1..)
        .map(|(workload, seed)| {
            let generator = Generator::new(&[*workload], 0, seed).expect("a workload");
            move || Ok::<_, Infallible>(Requests(generator.clone()))
        })
        .collect();
    simulate_tenants(plan, &sources, |_| {}).expect("it can be run")
}

fn tell(result: &TenantsResult) {
    println!("== {} {:.1}s cpu", result.allocator, result.cpu_seconds);
    for d in &result.decisions {
        println!("  {:6.1} t{} q {:6} occ {:6} {}/{} pred {:?} got {:?} iops {:.0} ssdw {:?} got {:.0} | {}", d.seconds, d.tenant, d.quota_blocks, d.occupied_blocks, d.caching, d.write_policy,
          d.predicted_latency.map(|x| (x*1e6) as i64), d.achieved.latency.map(|x| (x*1e6) as i64), d.achieved.iops, d.predicted_ssd_writes_per_second.map(|x| x as i64), d.achieved.ssd_writes_per_second, d.reason);
    }
    for t in &result.tenants { println!("   {} mean {:.0} us rh {:.3} iops {:.0} ssdw {}", t.name, t.mean_latency*1e6, t.read_hit_ratio, t.iops, t.ssd_writes.total); }
}

fn goals(reservation: Option<Reservation>) -> Goals { Goals { reservation, ..Goals::default() } }
fn t(name: &str, g: Goals) -> TenantPlan { TenantPlan { goals: g, ..TenantPlan::new(name) } }

#[test]
fn lat() {
    let w = [zipf(20_000, 0.8, 0.8, 500), zipf(20_000, 0.8, 0.8, 2000)];
    for alloc in ["larder", "centaur"] {
        for target in [None, Some(1.5e-3), Some(1e-5)] {
            let p = plan(vec![t("a", goals(target.map(Reservation::Latency))), t("b", Goals::default())], alloc, 12_000, 6);
            println!("target {target:?}");
            tell(&run(&p, &w));
        }
    }
}
#[test]
fn iops() {
    let w = [zipf(20_000, 0.8, 0.8, 500), zipf(20_000, 0.8, 0.8, 2000)];
    for alloc in ["larder", "centaur"] {
        for target in [None, Some(3000.0), Some(1e6)] {
            let mut a = t("a", goals(target.map(Reservation::Iops)));
            a.pace = Pace::Closed { outstanding: 4 };
            let p = plan(vec![a, t("b", Goals::default())], alloc, 12_000, 6);
            println!("target {target:?}");
            tell(&run(&p, &w));
        }
    }
}
#[test]
fn shares() {
    let w = [zipf(20_000, 0.8, 0.8, 1000), zipf(20_000, 0.8, 0.8, 1000)];
    for alloc in ["larder", "centaur"] {
        for s in [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)] {
            let g = |s| Goals { share: Some(s), ..Goals::default() };
            let p = plan(vec![t("a", g(s.0)), t("b", g(s.1))], alloc, 12_000, 8);
            println!("shares {s:?}");
            tell(&run(&p, &w));
        }
    }
}
#[test]
fn budget() {
    let w = [zipf(20_000, 0.8, 0.5, 500), zipf(20_000, 0.8, 0.8, 1000)];
    for alloc in ["larder", "eci", "centaur", "unified"] {
        for part in [0.2, 0.6] {
            let mut p = plan(vec![t("a", Goals::default()), t("b", Goals::default())], alloc, 12_000, 18);
            p.duration_seconds = Some(360.0);
            let blocks = 120.0 * 800.0 * part;
            p.budget = Some(WriteBudget { bytes: blocks * 4096.0, period_seconds: 120.0 });
            println!("budget {blocks} per 120 s");
            let r = run(&p, &w);
            tell(&r);
            let mut per = [0.0; 3];
            for (at, d) in r.decisions.iter().enumerate() {
                let end = r.decisions[at+1..].iter().find(|n| n.tenant == d.tenant).map_or(360.0, |n| n.seconds);
                per[((d.seconds + 1e-6) / 120.0) as usize] += d.achieved.ssd_writes_per_second * (end - d.seconds);
            }
            println!("  periods {per:?} of {blocks}");
        }
    }
}
#[test]
fn noisy() {
    let w = [zipf(20_000, 0.8, 0.8, 500), Workload { pattern: Pattern::Sequential, ..zipf(4_000_000, 0.8, 1.0, 4000) }];
    for alloc in ["larder", "unified"] {
        let mut b = t("b", Goals::default());
        b.start_seconds = 100.0;
        let p = plan(vec![t("a", Goals::default()), b], alloc, 12_000, 10);
        tell(&run(&p, &w));
    }
}
