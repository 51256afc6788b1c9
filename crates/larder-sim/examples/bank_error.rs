//! How far miniature simulation is from full simulation: `bank_error POLICIES WRITES SAMPLES SEEDS TRACE...`, lists separated by commas, a trace a file or `gen:SPEC`.
//!
//! For each trace, kind of cache, sample size and seed a line of JSON: over the sizes of the bank up to the footprint, the worst and the mean error of the hit ratios by block and by request,
//! of the SSD's writes as a share of the block accesses, and of the SSD's writes relative to what they are, where those are at least 5 % of the accesses (what is
//! rare is rare in a sample too).

use std::collections::BTreeMap;
use std::error::Error;

use larder_locality::{Bank, Op, Reach, block_key};
use larder_policy::WritePolicy;
use larder_policy::spec::CachingSpec;
use larder_policy::trial::Counters;
use larder_sim::{BlockSize, Plan, Requests, RunSpec, simulate};
use larder_trace::{GeneratorSpec, Request, RequestKind};

/// Share of the accesses from which on SSD writes are common enough to look at their relative error.
const COMMON: f64 = 0.05;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What full simulation counted, by size.
type Full = BTreeMap<u64, Counters>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [policies, writes, samples, seeds, traces @ ..] = &arguments[..] else {
        return Err("usage: bank_error POLICIES WRITES SAMPLES SEEDS TRACE...".into());
    };
    for trace in traces {
        let requests = read(trace)?;
        for policy in policies.split(',') {
            for write in writes.split(',') {
                let kind = (policy.parse()?, write.parse()?);
                let mut full = Full::new();
                for sample in samples.split(',') {
                    for seed in seeds.split(',') {
                        measure(trace, &requests, kind, sample.parse()?, seed.parse()?, &mut full)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn read(trace: &str) -> Outcome<Vec<Request>> {
    match trace.strip_prefix("gen:") {
        Some(spec) => Ok(spec.parse::<GeneratorSpec>()?.open().collect()),
        None => Ok(larder_trace::open(trace)?.collect::<Result<_, _>>()?),
    }
}

fn measure(
    trace: &str,
    requests: &[Request],
    kind: (CachingSpec, WritePolicy),
    sample: u32,
    seed: u64,
    full: &mut Full,
) -> Outcome<()> {
    let mut bank = Bank::new(&[kind], Reach::Footprint, sample, seed)?;
    requests.iter().for_each(|request| observe(&mut bank, request));
    let points = bank.curves().swap_remove(0).points;
    let sizes: Vec<_> = points.iter().map(|&(blocks, _)| blocks).collect();
    simulate_missing(requests, kind, &sizes, full)?;
    let [mut blocks, mut by_request, mut writes, mut relative] = [(); 4].map(|()| Errors::default());
    for (size, counters) in &points {
        let Some(exact) = full.get(size) else { continue };
        blocks.add(*size, hit_ratio(counters) - hit_ratio(exact));
        by_request.add(*size, request_hit_ratio(counters) - request_hit_ratio(exact));
        let error = ssd_share(counters) - ssd_share(exact);
        writes.add(*size, error);
        if ssd_share(exact) >= COMMON {
            relative.add(*size, error / ssd_share(exact));
        }
    }
    let (caching, write) = kind;
    println!(
        r#"{{"trace": "{trace}", "policy": "{caching}", "write": "{write}", "sample": {sample}, "seed": {seed}, "rate": {}, "sizes": {}, "hit_ratio": {blocks}, "request_hit_ratio": {by_request}, "ssd_writes": {writes}, "ssd_writes_relative": {relative}}}"#,
        bank.rate(),
        blocks.count,
    );
    Ok(())
}

fn observe(bank: &mut Bank, request: &Request) {
    let op = match request.kind {
        RequestKind::Read => Op::Read,
        RequestKind::Write => Op::Write,
        RequestKind::Discard => Op::Discard,
        RequestKind::Flush => return,
    };
    let blocks = BlockSize::DEFAULT.blocks_of(request);
    let key = |block| block_key(request.volume as u16, block);
    bank.observe(op, blocks.map(key), true);
}

/// Simulate the sizes up to the footprint that were not simulated before.
fn simulate_missing(
    requests: &[Request],
    kind: (CachingSpec, WritePolicy),
    sizes: &[u64],
    full: &mut Full,
) -> Outcome<()> {
    let missing: Vec<_> = sizes.iter().copied().filter(|size| !full.contains_key(size)).collect();
    let run = |&blocks: &u64| RunSpec { caching: kind.0, write: kind.1, blocks };
    let plan = Plan {
        threads: std::thread::available_parallelism()?,
        ..Plan::new(missing.iter().map(run).collect())
    };
    let found = simulate(Requests(requests.iter().copied()), &plan, None, |_| {})?;
    for (size, run) in missing.into_iter().zip(&found.runs) {
        if size <= found.summary.footprint_blocks {
            let totals = &run.totals;
            full.insert(
                size,
                Counters {
                    requests: totals.requests,
                    request_hits: totals.request_hits,
                    block_reads: totals.block_reads,
                    block_writes: totals.block_writes,
                    read_hits: totals.read_hits,
                    write_hits: totals.write_hits,
                    fills: totals.ssd_writes.fill,
                    guest_writes: totals.ssd_writes.guest_write,
                    ..Counters::default()
                },
            );
        }
    }
    Ok(())
}

fn hit_ratio(counters: &Counters) -> f64 {
    ratio(counters.read_hits + counters.write_hits, counters.block_reads + counters.block_writes)
}

fn request_hit_ratio(counters: &Counters) -> f64 {
    ratio(counters.request_hits, counters.requests)
}

/// Blocks written to the SSD for each block accessed.
fn ssd_share(counters: &Counters) -> f64 {
    ratio(counters.ssd_writes(), counters.block_reads + counters.block_writes)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Errors over sizes.
#[derive(Default)]
struct Errors {
    count: u32,
    sum: f64,
    worst: f64,
    at: u64,
}

impl Errors {
    fn add(&mut self, size: u64, error: f64) {
        self.count += 1;
        self.sum += error.abs();
        if error.abs() > self.worst.abs() {
            (self.worst, self.at) = (error, size);
        }
    }
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = self.sum / f64::from(self.count.max(1));
        write!(f, r#"{{"worst": {:.5}, "at_blocks": {}, "mean": {mean:.5}}}"#, self.worst, self.at)
    }
}
