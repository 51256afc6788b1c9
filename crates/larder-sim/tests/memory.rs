//! A trace of any length is simulated in memory that its footprint and the caches bound.

mod common;

use common::run_of;
use larder_sim::{Plan, Requests, Simulated, WritePolicy, simulate};
use larder_trace::GeneratorSpec;

fn simulate_generated(requests: u64) -> Simulated {
    let spec = format!("zipf:theta=0.8,blocks=1000,requests={requests},read=0.7");
    let runs = ["lru", "larc", "sieve", "lru+nth:3", "fifo+bloom"]
        .map(|policy| run_of(policy, WritePolicy::WriteBack, 200));
    let source = Requests(spec.parse::<GeneratorSpec>().expect("a workload").open());
    simulate(source, &Plan::new(runs.into()), None, |_| {}).expect("a plan that can be")
}

/// The most memory that this process ever had, in KiB; none where the system does not tell.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[test]
fn a_trace_a_hundred_times_as_long_takes_no_more_memory() {
    let short = simulate_generated(60_000);
    let before = peak_kib();
    let long = simulate_generated(6_000_000);
    assert_eq!(long.summary.requests(), 6_000_000);
    assert_eq!((short.summary.footprint_blocks, long.summary.footprint_blocks), (1000, 1000));
    assert!(long.memory_bytes <= short.memory_bytes * 3 / 2, "{} {}", short.memory_bytes, long.memory_bytes);
    match (before, peak_kib()) {
        (Some(before), Some(after)) => assert!(after - before < 2048, "{before} KiB, then {after} KiB"),
        _ => eprintln!("this system does not tell the memory of a process: only its own count was checked"),
    }
}
