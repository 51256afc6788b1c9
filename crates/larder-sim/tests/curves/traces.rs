//! Every trace at hand: applications' recordings and public traces, one volume or many, with times or without. In a debug build, their first requests only.

use std::path::{Path, PathBuf};

use larder_sim::{AnalysisPlan, Plan, RunSpec, analyze, simulate};

use crate::{assert_equal, plan, runs};

/// Reads and writes taken of each trace; all in a release build.
const LIMIT: Option<u64> = if cfg!(debug_assertions) { Some(4000) } else { None };

/// Sizes between the smallest and the largest.
const SIZES: u32 = 24;

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let files = |folder: PathBuf| {
        let entries =
            std::fs::read_dir(&folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
        entries.unwrap_or_else(|error| {
            eprintln!("{}: {error}: not checked", folder.display());
            Vec::new()
        })
    };
    let mut found = [files(folder.clone()), files(folder.join("recorded"))].concat();
    found.retain(|path| {
        path.is_file() && !path.extension().is_some_and(|extension| extension == "md" || extension == "toml")
    });
    found.sort();
    found
}

/// Sizes from 1 block to beyond the footprint, each so many times the one before, and those where something may be off by one.
fn sizes(footprint: u64) -> Vec<u64> {
    let step = |at: u32| (footprint as f64).powf(f64::from(at) / f64::from(SIZES)).round() as u64;
    let mut sizes: Vec<_> =
        (0..SIZES).map(step).chain([2, footprint.saturating_sub(1), footprint, footprint + 1]).collect();
    sizes.retain(|&size| size > 0);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[test]
fn curves_are_what_is_simulated() {
    for path in traces() {
        let name = path.display().to_string();
        let open = || larder_trace::open(&path).expect("a trace");
        let plan = AnalysisPlan { limit: LIMIT, threads: std::num::NonZero::new(2).unwrap(), ..plan() };
        let analysis = analyze(open(), &plan, |_| {}).expect("a trace to its end");
        let footprint = analysis.summary.footprint_blocks;
        let runs: Vec<RunSpec> = runs(&sizes(footprint));
        let simulation = Plan { limit: LIMIT, threads: plan.threads, ..Plan::new(runs) };
        let simulated = simulate(open(), &simulation, None, |_| {}).expect("a trace to its end");
        assert!(footprint > 0 && analysis.summary == simulated.summary, "{name}");
        assert_equal(&analysis, &simulated, &name);
    }
}
