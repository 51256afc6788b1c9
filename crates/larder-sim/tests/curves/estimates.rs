//! A sample of all blocks, and a bank that no block fell out of: estimates that must be exact.

use larder_locality::Sampling;
use larder_sim::{
    AnalysisPlan, BankError, Counters, Plan, Requests, SimError, Span, Totals, WritePolicy, analyze,
};
use larder_trace::{Request, RequestKind};
use proptest::prelude::*;

use crate::common::{run_of, simulate_all};
use crate::generated::dense;
use crate::{analyze_all, assert_equal, plan, runs};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_sample_of_all_blocks_is_exact(requests in dense(0..150), blocks in any::<bool>()) {
        let sampling = if blocks { Sampling::Blocks(10_000) } else { Sampling::Rate(1.0) };
        let sampled = analyze_all(&requests, &AnalysisPlan { sampling, ..plan() });
        let exact = analyze_all(&requests, &plan());
        prop_assert_eq!(sampled.summary, exact.summary);
        prop_assert_eq!((sampled.rate, sampled.sampled_blocks), (1.0, exact.sampled_blocks));
        prop_assert_eq!((sampled.classes, &sampled.windows), (exact.classes, &exact.windows));
        prop_assert_eq!((&sampled.map, &sampled.hot), (&exact.map, &exact.hot));
        // Larger sizes are told together with their neighbours.
        let sizes: Vec<_> = (1..100).collect();
        assert_equal(&sampled, &simulate_all(&requests, &Plan::new(runs(&sizes))), "a sample of all");
    }

    #[test]
    fn a_bank_of_all_blocks_is_exact(requests in dense(1..300)) {
        let caches = [("larc", WritePolicy::WriteBack), ("arc", WritePolicy::ReadOnly), ("lru", WritePolicy::WriteThrough)];
        let bank = caches.map(|(policy, write)| (policy.parse().unwrap(), write));
        let plan = AnalysisPlan { bank: bank.into(), bank_blocks: 1000, policies: Vec::new(), ..plan() };
        let analysis = analyze_all(&requests, &plan);
        prop_assert_eq!(analysis.bank.len(), caches.len());
        for (curve, (policy, write)) in analysis.bank.iter().zip(caches) {
            prop_assert!(!curve.points.is_empty());
            for &(blocks, counters) in &curve.points {
                let simulated = simulate_all(&requests, &Plan::new(vec![run_of(policy, write, blocks)]));
                let found = Totals::from(Counters { flushes: simulated.summary.flushes, ..counters });
                prop_assert_eq!(found, simulated.runs[0].totals, "{} {} {}", policy, write, blocks);
            }
        }
    }
}

#[test]
fn a_request_in_many_batches_is_one_request_of_a_sample() {
    let read = Request { time_ns: 0, volume: 0, kind: RequestKind::Read, offset: 0, len: 1 << 28 };
    let sampling = Sampling::Rate(0.1);
    let analysis = analyze_all(&[read; 3], &AnalysisPlan { sampling, ..plan() });
    let curves = &analysis.curves[0];
    assert_eq!((curves.counted().requests, curves.counted().reads), (3, 3 << 16));
    assert_eq!(curves.at(1 << 20).request_hits, 2);
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |plan: &AnalysisPlan| analyze(Requests(std::iter::empty()), plan, |_| {}).unwrap_err();
    for mover_epoch in [Span::TimeNs(0), Span::Requests(0)] {
        assert!(matches!(error(&AnalysisPlan { mover_epoch, ..plan() }), SimError::EmptyInterval));
    }
    let bank = vec![("larc".parse().unwrap(), WritePolicy::WriteBack)];
    let small = AnalysisPlan { bank, bank_blocks: 3, ..plan() };
    assert!(matches!(error(&small), SimError::Bank(BankError::Sample(3))));
    let bank = vec![("belady".parse().unwrap(), WritePolicy::WriteBack)];
    let foreseeing = AnalysisPlan { bank, bank_blocks: 1000, ..plan() };
    assert!(matches!(error(&foreseeing), SimError::Bank(BankError::Future(_))));
}
