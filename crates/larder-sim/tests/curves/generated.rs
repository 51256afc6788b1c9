//! Small random traces at every size, and what does not change the outcome.

use std::num::NonZero;
use std::ops::Range;

use larder_sim::{Analysis, AnalysisPlan, BlockSize};
use larder_trace::{GeneratorSpec, Request, RequestKind};
use proptest::prelude::*;

use crate::common::requests;
use crate::{analyze_all, check, plan};

/// Requests of some blocks among few, with many discards.
pub fn dense(count: Range<usize>) -> impl Strategy<Value = Vec<Request>> {
    let kind = prop_oneof![
        4 => Just(RequestKind::Read),
        4 => Just(RequestKind::Write),
        2 => Just(RequestKind::Discard),
    ];
    let request = (0u64..40, 0u32..2, kind, 0u64..12, 0u32..6);
    prop::collection::vec(request, count).prop_map(|requests| {
        let request = |(time_ns, volume, kind, block, blocks)| Request {
            time_ns,
            volume,
            kind,
            offset: block * 4096,
            len: blocks * 4096,
        };
        requests.into_iter().map(request).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn dense_traces_at_every_size(requests in dense(0..120)) {
        let sizes: Vec<_> = (1..40).collect();
        check(&requests, &sizes, &plan());
    }

    #[test]
    fn wide_traces_at_every_size_in_blocks_of_any_size(requests in requests(0..120), shift in 9u32..16) {
        let block = BlockSize::new(1 << shift).unwrap();
        let footprint = analyze_all(&requests, &AnalysisPlan { block, ..plan() }).summary.footprint_blocks;
        let sizes: Vec<_> = (1..40).chain([footprint.saturating_sub(1).max(1), footprint.max(1), footprint + 1]).collect();
        check(&requests, &sizes, &AnalysisPlan { block, ..plan() });
    }
}

/// Requests of up to 64 blocks with discards and flushes among them, long enough for many batches.
fn long_trace() -> Vec<Request> {
    let spec = "zipf:theta=0.9,blocks=3000,requests=30000,read=0.6 + mix:cr=0.02,cw=0.02,rar=0.3,raw=0.2,war=0.2,waw=0.26,requests=15000,distance=uniform(1,300)";
    let requests = spec.parse::<GeneratorSpec>().expect("a workload").open();
    let kinds = |at: usize, kind| match at % 50 {
        7 => RequestKind::Discard,
        31 => RequestKind::Flush,
        _ => kind,
    };
    let change = |(at, request): (usize, Request)| Request {
        kind: kinds(at, request.kind),
        len: 512 << (at % 10),
        ..request
    };
    requests.enumerate().map(change).collect()
}

#[test]
fn a_long_trace_at_some_sizes_on_any_number_of_threads() {
    let requests = long_trace();
    let sizes: Vec<_> = (0..13).map(|power| 1 << power).chain([5000, 100_000]).collect();
    let alone = check(&requests, &sizes, &plan());
    assert!(alone.classes.total() > 100_000 && alone.windows.len() >= 48 && alone.map.columns >= 64);
    for threads in [2, 3, 16] {
        let threads = NonZero::new(threads).unwrap();
        let many = analyze_all(&requests, &AnalysisPlan { threads, ..plan() });
        // Only memory may differ: a lane may work in parts.
        assert!(Analysis { memory_bytes: alone.memory_bytes, ..many } == alone, "{threads} threads");
    }
}

#[test]
fn a_limit_is_kept_to_the_request() {
    let requests = long_trace();
    let limited = AnalysisPlan { limit: Some(1001), ..plan() };
    let analysis = check(&requests, &[1, 10, 100, 1000], &limited);
    assert_eq!(analysis.summary.requests(), 1001);
}

#[test]
fn a_request_larger_than_a_batch_is_one_request() {
    let read = Request { time_ns: 0, volume: 0, kind: RequestKind::Read, offset: 0, len: 1 << 28 };
    let write = Request { kind: RequestKind::Write, ..read };
    check(&[read, write, read], &[1 << 15, (1 << 16) - 1, 1 << 16], &plan());
}

#[test]
fn each_access_has_its_class_and_window() {
    let requests = long_trace();
    let analysis = analyze_all(&requests, &plan());
    let summary = analysis.summary;
    assert_eq!(analysis.classes.cr + analysis.classes.cw, summary.footprint_blocks);
    let counted: Vec<_> = requests.iter().filter(|request| is_counted(request)).collect();
    let firsts = analysis.windows.iter().map(|window| window.first_request as usize);
    let ends = firsts.clone().skip(1).chain([counted.len()]);
    for ((window, first), end) in analysis.windows.iter().zip(firsts).zip(ends) {
        let within = &counted[first..end];
        let of = |kind| within.iter().filter(|request| request.kind == kind).count() as u64;
        assert_eq!((window.reads, window.writes), (of(RequestKind::Read), of(RequestKind::Write)));
        let blocks = |request: &&Request| BlockSize::DEFAULT.blocks_of(request).count() as u64;
        assert_eq!(window.classes.total(), within.iter().map(blocks).sum::<u64>());
        let elapsed = |request: &Request| request.time_ns - requests[0].time_ns;
        let last = window.start_ns + window.ns;
        assert!(within.iter().all(|request| (window.start_ns..=last).contains(&elapsed(request))));
    }
    let told: u64 = analysis.map.reads.iter().chain(&analysis.map.writes).sum();
    assert_eq!(told, summary.block_accesses);
    assert_eq!(analysis.hot.len(), 10);
    assert!(analysis.hot.iter().map(|region| region.reads + region.writes).rev().is_sorted());
}

fn is_counted(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write)
}

#[test]
fn nothing_has_flat_curves() {
    let analysis = check(&[], &[1, 100], &plan());
    assert_eq!((analysis.windows.len(), analysis.hot.len(), analysis.map.rows), (0, 0, 0));
    assert!(analysis.curves.iter().all(|curves| curves.full_blocks() == 0 && curves.hit_ratio(9) == 0.0));
}
