//! The heart of the analysis: its curves are what the simulator finds, at every size, to the last request.

#[path = "curves/batched.rs"]
mod batched;
mod common;
#[path = "curves/estimates.rs"]
mod estimates;
#[path = "curves/generated.rs"]
mod generated;
#[path = "curves/traces.rs"]
mod traces;

use std::num::NonZero;

use common::{run_of, simulate_all};
use larder_locality::{AtSize, CurvePolicy, Sampling};
use larder_sim::{
    Analysis, AnalysisPlan, BlockSize, Plan, Requests, RunResult, RunSpec, Simulated, Span, analyze,
};
use larder_trace::Request;

/// All policies that the simulator knows too.
fn simulated_policies() -> impl Iterator<Item = CurvePolicy> {
    CurvePolicy::ALL.into_iter().filter(|policy| policy.write_policy().is_some())
}

/// An exact analysis under all policies.
fn plan() -> AnalysisPlan {
    AnalysisPlan {
        block: BlockSize::DEFAULT,
        limit: None,
        sampling: Sampling::Exact,
        policies: CurvePolicy::ALL.into(),
        mover_epoch: Span::TimeNs(100),
        bank: Vec::new(),
        bank_blocks: 0,
        seed: 1,
        threads: NonZero::<usize>::MIN,
    }
}

fn analyze_all(requests: &[Request], plan: &AnalysisPlan) -> Analysis {
    analyze(Requests(requests.iter().copied()), plan, |_| {}).expect("a plan that can be")
}

/// LRU caches of these sizes under every write policy that has curves.
fn runs(sizes: &[u64]) -> Vec<RunSpec> {
    let of = |size| {
        simulated_policies()
            .filter_map(|policy| policy.write_policy())
            .map(move |write| run_of("lru", write, size))
    };
    sizes.iter().copied().flat_map(of).collect()
}

/// Hold the curves against what was simulated.
fn assert_equal(analysis: &Analysis, simulated: &Simulated, what: &str) {
    for run in &simulated.runs {
        let curves = analysis.curves.iter().find(|curves| curves.policy().as_str() == run.write_policy);
        let blocks = run.cache_bytes / u64::from(run.block_bytes);
        let at = curves.expect("curves of each policy").at(blocks);
        assert_eq!(at, at_size(run), "{what}: {} with {blocks} blocks", run.write_policy);
    }
}

fn at_size(run: &RunResult) -> AtSize {
    let totals = &run.totals;
    AtSize {
        read_hits: totals.read_hits,
        write_hits: totals.write_hits,
        request_hits: totals.request_hits,
        read_request_hits: totals.read_request_hits,
        fills: totals.fills,
        guest_writes: totals.ssd_writes.guest_write,
        invalidations: totals.invalidations,
        backing_reads: totals.backing_reads,
        backing_writes: totals.backing_writes,
    }
}

/// Analyze and simulate caches of these sizes, and compare; returns the analysis.
fn check(requests: &[Request], sizes: &[u64], plan: &AnalysisPlan) -> Analysis {
    let analysis = analyze_all(requests, plan);
    let simulated =
        simulate_all(requests, &Plan { block: plan.block, limit: plan.limit, ..Plan::new(runs(sizes)) });
    assert_eq!(analysis.summary, simulated.summary);
    assert_equal(&analysis, &simulated, "generated");
    analysis
}
