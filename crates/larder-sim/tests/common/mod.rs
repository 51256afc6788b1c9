//! What the tests share: random requests, and short ways to runs.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::ops::Range;

use larder_sim::{Plan, Requests, RunResult, RunSpec, Simulated, WritePolicy, simulate};
use larder_trace::{Request, RequestKind};
use proptest::prelude::*;

/// Requests that meet each other often: two volumes, some 128 KiB of each, at the beginning and where 2^32 blocks end.
pub fn requests(count: Range<usize>) -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(request(), count)
}

fn request() -> impl Strategy<Value = Request> {
    let kind = prop_oneof![
        10 => Just(RequestKind::Read),
        10 => Just(RequestKind::Write),
        1 => Just(RequestKind::Discard),
        1 => Just(RequestKind::Flush),
    ];
    let offset = prop_oneof![4 => 0u64..1 << 17, 1 => ((1u64 << 44) - 8192)..(1 << 44) + 8192];
    let len = prop_oneof![1 => Just(0u32), 8 => 1u32..9000, 1 => 9000u32..50_000];
    (0u64..1000, 0u32..2, kind, offset, len).prop_map(|(time_ns, volume, kind, offset, len)| match kind {
        RequestKind::Flush => Request { time_ns, volume, kind, offset: 0, len: 0 },
        _ => Request { time_ns, volume, kind, offset, len },
    })
}

/// A run by the name of its policy.
pub fn run_of(policy: &str, write: WritePolicy, blocks: u64) -> RunSpec {
    RunSpec { caching: policy.parse().expect("a policy"), write, blocks }
}

/// Simulate a plan over requests in memory.
pub fn simulate_all(requests: &[Request], plan: &Plan) -> Simulated {
    simulate(Requests(requests.iter().copied()), plan, None, |_| {}).expect("a plan that can be")
}

/// Results but for the time that they took.
pub fn timeless(simulated: &Simulated) -> Vec<RunResult> {
    let timeless = |result: &RunResult| RunResult { seconds: 0.0, ..result.clone() };
    simulated.runs.iter().map(timeless).collect()
}
