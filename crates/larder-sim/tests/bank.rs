//! Miniature simulation against full simulation: hit ratios by block within 0.02, SSD writes within 5 %.
//!
//! `cargo run --release --example bank_error` measures the errors for any policy, sample size and trace.

use std::path::Path;

mod common;

use common::run_of;
use larder_locality::{Bank, Op, Reach, block_key};
use larder_sim::{BlockSize, Counters, Plan, Requests, RunResult, WritePolicy, simulate};
use larder_trace::{GeneratorSpec, Request, RequestKind};

/// SSD writes that are rarer than this, as a share of the accesses, are rare in the sample too: there the bound is on the share.
const COMMON: f64 = 0.05;

/// Hold every third size against a full simulation.
fn check(name: &str, requests: &[Request], policies: &[&str], write: WritePolicy, sample: u32) {
    let kinds: Vec<_> = policies.iter().map(|policy| (policy.parse().expect("a policy"), write)).collect();
    let mut bank = Bank::new(&kinds, Reach::Footprint, sample, 1).expect("kinds that can be");
    requests.iter().for_each(|request| observe(&mut bank, request));
    assert!(bank.rate() < 0.3, "{name}: nothing is tested where all is sampled");
    for (curve, policy) in bank.curves().iter().zip(policies) {
        let points: Vec<_> = curve.points.iter().step_by(3).collect();
        let runs = points.iter().map(|&&(blocks, _)| run_of(policy, write, blocks)).collect();
        let full = simulate(Requests(requests.iter().copied()), &Plan::new(runs), None, |_| {});
        for (&&(blocks, ref counters), run) in points.iter().zip(&full.expect("a plan that can be").runs) {
            check_size(&format!("{name}, {policy} {write}, {blocks} blocks"), counters, run);
        }
    }
}

fn check_size(name: &str, counters: &Counters, run: &RunResult) {
    let exact = &run.totals;
    let accesses = (exact.block_reads + exact.block_writes) as f64;
    assert_eq!(
        counters.block_reads + counters.block_writes,
        exact.block_reads + exact.block_writes,
        "{name}"
    );
    assert_eq!(counters.requests, exact.requests, "{name}");
    let share = |count: u64| count as f64 / accesses;
    let (hits, real) =
        (share(counters.read_hits + counters.write_hits), share(exact.read_hits + exact.write_hits));
    assert!((hits - real).abs() <= 0.02, "{name}: hit ratio {hits} for {real}");
    let (writes, real) = (share(counters.ssd_writes()), share(exact.ssd_writes.total));
    assert!((writes - real).abs() <= 0.05 * real.max(COMMON), "{name}: SSD writes {writes} for {real}");
}

fn observe(bank: &mut Bank, request: &Request) {
    let op = match request.kind {
        RequestKind::Read => Op::Read,
        RequestKind::Write => Op::Write,
        RequestKind::Discard => Op::Discard,
        RequestKind::Flush => return,
    };
    let blocks = BlockSize::DEFAULT.blocks_of(request);
    bank.observe(op, blocks.map(|block| block_key(request.volume as u16, block)), true);
}

#[test]
fn a_zipf_workload() {
    let spec = "zipf:theta=1.0,blocks=150000,requests=500000,read=0.7,seed=3";
    let requests: Vec<_> = spec.parse::<GeneratorSpec>().expect("a workload").open().collect();
    check("Zipf(1.0)", &requests, &["lru", "larc", "arc", "s3-fifo"], WritePolicy::WriteBack, 16_384);
    check("Zipf(1.0)", &requests, &["arc", "sieve"], WritePolicy::ReadOnly, 16_384);
}

#[test]
fn recorded_applications() {
    for (name, write) in [("rocksdb", WritePolicy::WriteBack), ("build", WritePolicy::WriteThrough)] {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/recorded");
        let file = shared.join(format!("{name}.csv.zst"));
        if !file.exists() {
            eprintln!("{} is not there: not checked", file.display());
            continue;
        }
        let trace = larder_trace::open(&file).expect("a trace");
        let requests = trace.collect::<Result<Vec<_>, _>>().expect("every line is good");
        check(name, &requests, &["larc", "arc", "s3-fifo"], write, 32_768);
    }
}
