//! Small traces, analyzed, for the tests beside the code.

use std::num::NonZero;

use larder_locality::{CurvePolicy, Sampling};
use larder_sim::{AnalysisPlan, BlockSize, Requests, Span, WritePolicy};
use larder_trace::{Request, RequestKind};

use super::found::{Asked, Found};

/// What is found of `R1 W2 D3`: reads, writes and discards of one block each, a second apart.
pub fn found(text: &str) -> Found {
    found_of(requests(text, 1_000_000_000), &CurvePolicy::ALL, &[])
}

/// What is found of these requests, under these write policies, and with estimates of these policies under write-back.
pub fn found_of(requests: Vec<Request>, policies: &[CurvePolicy], estimated: &[&str]) -> Found {
    let plan = AnalysisPlan {
        block: BlockSize::DEFAULT,
        limit: None,
        sampling: Sampling::Exact,
        policies: CurvePolicy::ALL.to_vec(),
        // Longer than these traces: batched population tells nothing of them.
        mover_epoch: Span::Requests(1000),
        bank: estimated.iter().map(|name| (name.parse().unwrap(), WritePolicy::WriteBack)).collect(),
        bank_blocks: 8192,
        seed: 1,
        threads: NonZero::<usize>::MIN,
    };
    let analysis = larder_sim::analyze(Requests(requests.into_iter()), &plan, |_| {}).unwrap();
    let asked = Asked {
        trace: "t<1>.csv".into(),
        name: "t<1>".into(),
        format: "msr".into(),
        volumes: vec!["vm_0".into()],
        sampling: plan.sampling,
        write_policies: policies.to_vec(),
        mover_epoch: plan.mover_epoch,
    };
    Found::new(asked, analysis)
}

/// The requests of `R1 W2 D3`, so far apart. `E` is a read of nothing.
pub fn requests(text: &str, apart_ns: u64) -> Vec<Request> {
    let request = |(at, word): (u64, &str)| {
        let kind = match &word[..1] {
            "W" => RequestKind::Write,
            "D" => RequestKind::Discard,
            _ => RequestKind::Read,
        };
        let (offset, len) = word[1..].parse().map_or((0, 0), |block: u64| (block * 4096, 4096));
        Request { time_ns: at * apart_ns, volume: 0, kind, offset, len }
    };
    (0..).zip(text.split_whitespace()).map(request).collect()
}
