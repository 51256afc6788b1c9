//! Real traces against the figures that an independent reader counted.

use std::path::{Path, PathBuf};

mod common;

use common::run_of;
use larder_sim::{Plan, WritePolicy, simulate};

/// File, requests, reads of them in per cent, footprint in GiB, block accesses to a known block in per cent.
const FIGURES: [(&str, u64, f64, f64, f64); 3] = [
    ("cloudPhysicsIO.vscsi", 113_872, 41.25, 1.027, 76.4),
    ("msr_web_1.csv.gz", 100_000, 61.55, 1.957, 27.9),
    ("arc_P3.lis.zst", 238_578, 100.0, 0.390, 83.3),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces")
}

/// A cache that holds everything hits all blocks seen before, and no policy has anything to decide.
#[test]
fn a_cache_that_holds_everything_hits_what_was_seen_before() {
    for (name, requests, reads, footprint, again) in FIGURES {
        let path = folder().join(name);
        if !path.exists() {
            eprintln!("{} is not there: not checked", path.display());
            continue;
        }
        let runs = ["lru", "sieve", "lirs"].map(|policy| run_of(policy, WritePolicy::WriteBack, 1 << 20));
        let trace = larder_trace::open(&path).expect("a trace");
        let simulated = simulate(trace, &Plan::new(runs.into()), None, |_| {}).expect("a plan that can be");
        let summary = simulated.summary;
        assert_eq!(summary.requests(), requests, "{name}");
        let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
        assert!((percent(summary.reads, requests) - reads).abs() < 0.006, "{name}");
        let gib = summary.footprint_blocks as f64 * 4096.0 / f64::from(1 << 30);
        assert!((gib - footprint).abs() < 0.0006, "{name}: {gib}");
        for run in &simulated.runs {
            let hits = run.totals.read_hits + run.totals.write_hits;
            assert!((percent(hits, summary.block_accesses) - again).abs() < 0.06, "{name} {}", run.policy);
            assert_eq!((run.totals.evictions, run.resident_blocks), (0, summary.footprint_blocks), "{name}");
        }
    }
}
