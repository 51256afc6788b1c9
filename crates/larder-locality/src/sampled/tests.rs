//! The analysis at a rate of 1 against simulated caches and a plain LRU stack; thinned samples against samples that were
//! small from the start.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::lane::{Record, naive};

const ALL_OPS: &[Op] = &[Op::Read, Op::Write, Op::Read, Op::Write, Op::Discard, Op::Populate];

fn config(policies: &[CurvePolicy], sampling: Sampling) -> AnalyzerConfig {
    AnalyzerConfig { policies: policies.to_vec(), sampling, history_blocks: u64::MAX, seed: 5 }
}

fn analyzer(sampling: Sampling) -> Analyzer {
    Analyzer::new(&config(&CurvePolicy::ALL, sampling))
}

/// Requests for consecutive blocks.
fn requests(
    ops: &'static [Op],
    keys: u64,
    most: u32,
    count: usize,
) -> impl Strategy<Value = Vec<BlockRequest>> {
    let request = (prop::sample::select(ops), 0..keys, 0..=most).prop_map(|(op, first, blocks)| {
        let blocks = if op == Op::Populate { 0 } else { blocks };
        BlockRequest { op, blocks, first }
    });
    prop::collection::vec(request, 0..count)
}

fn plain(requests: &[BlockRequest]) -> Vec<naive::Request> {
    let blocks = |request: &BlockRequest| request.keys().map(|key| key as BlockId).collect();
    requests.iter().map(|request| (request.op, blocks(request))).collect()
}

/// Each request for itself, as a live cache tells them.
fn observe(analyzer: &mut Analyzer, requests: &[BlockRequest]) {
    requests.iter().for_each(|request| analyzer.observe(request.op, request.keys()));
}

fn accessed(requests: &[BlockRequest]) -> BTreeSet<u64> {
    let accesses = requests.iter().filter(|request| matches!(request.op, Op::Read | Op::Write));
    accesses.flat_map(BlockRequest::keys).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_sample_of_all_gives_the_curves_of_simulated_caches(
        requests in requests(ALL_OPS, 12, 4, 90), cut in any::<prop::sample::Index>(),
    ) {
        let (one_by_one, together) = requests.split_at(cut.index(requests.len() + 1));
        let mut analyzer = analyzer(Sampling::Exact);
        observe(&mut analyzer, one_by_one);
        analyzer.observe_all(together);
        for curves in analyzer.curves() {
            naive::check(&curves, &plain(&requests), 17);
        }
        let accessed = accessed(&requests);
        prop_assert_eq!(analyzer.footprint_blocks(), accessed.len() as u64);
        prop_assert_eq!(analyzer.classes().cr + analyzer.classes().cw, accessed.len() as u64);
        prop_assert_eq!(analyzer.classes().total(), analyzer.curves()[0].accesses());
    }

    /// A request and its blocks count once, in whichever epoch they are; those that leave dirty too.
    #[test]
    fn epochs_add_up_to_the_whole(requests in requests(ALL_OPS, 12, 4, 90), cut in any::<prop::sample::Index>()) {
        let (first, second) = requests.split_at(cut.index(requests.len() + 1));
        let mut analyzer = analyzer(Sampling::Exact);
        observe(&mut analyzer, first);
        let mut counts = analyzer.counts();
        analyzer.decay(0.0);
        observe(&mut analyzer, second);
        prop_assert_eq!(counts.merge(&analyzer.counts()), Ok(()));
        for curves in counts.curves() {
            naive::check(&curves, &plain(&requests), 17);
        }
        prop_assert_eq!(counts.classes().total(), counts.totals().reads + counts.totals().writes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever was thinned out: the blocks of the sample are those that would have been in it from the start, in the same
    /// order, and what comes later is counted alike.
    #[test]
    fn a_thinned_sample_is_one_that_was_small_from_the_start(
        requests in requests(&[Op::Read, Op::Write], 3000, 40, 200), most in 16u32..200, more in requests(&[Op::Read], 3000, 40, 50),
    ) {
        let policies = [CurvePolicy::WriteThrough];
        let mut thinned = Analyzer::new(&config(&policies, Sampling::Blocks(most)));
        for request in &requests {
            observe(&mut thinned, &[*request]);
            prop_assert!(thinned.sampled_blocks() <= most);
        }
        let mut small = Analyzer::new(&config(&policies, Sampling::Rate(0.5)));
        small.filter = thinned.filter;
        small.lanes.set_rate(thinned.rate());
        observe(&mut small, &requests);
        prop_assert_eq!(small.sampled_blocks(), thinned.sampled_blocks());
        for key in accessed(&requests) {
            prop_assert_eq!(thinned.blocks.find(key).is_some(), thinned.filter.takes(key));
        }
        let known: Vec<_> = more.into_iter().filter(|request| request.keys().all(|key| small.blocks.find(key).is_some() || !small.filter.takes(key))).collect();
        for analyzer in [&mut small, &mut thinned] {
            analyzer.decay(0.0);
            observe(analyzer, &known);
        }
        for (small, thinned) in small.counts().lanes.iter().zip(thinned.counts().lanes) {
            prop_assert_eq!(small.counted().read_hits, thinned.counted().read_hits);
            prop_assert_eq!(small.counted().request_hits, thinned.counted().request_hits);
        }
    }
}

/// A scan of what lies beyond the history costs no accuracy later.
#[test]
fn old_blocks_are_forgotten_before_the_rate_is_lowered() {
    let scan = |blocks: u64, history_blocks: u64| {
        let config =
            AnalyzerConfig { history_blocks, ..config(&[CurvePolicy::WriteThrough], Sampling::Blocks(1024)) };
        let mut analyzer = Analyzer::new(&config);
        (0..2).for_each(|_| analyzer.observe(Op::Read, 0..300));
        analyzer.observe(Op::Read, 1000..1000 + blocks);
        analyzer
    };
    let bounded = scan(100_000, 800);
    assert_eq!((bounded.rate(), bounded.footprint_blocks()), (1.0, 100_300));
    assert!((800..=1024).contains(&bounded.sampled_blocks()));
    let unbounded = scan(100_000, u64::MAX);
    assert!(unbounded.rate() < 0.011);
    assert!((unbounded.footprint_blocks() as f64 / 100_300.0 - 1.0).abs() < 0.1);
    // Where the history itself does not fit, it is sampled: the rate falls as far as that takes.
    let sampled = scan(100_000, 10_000);
    assert!(
        sampled.rate() < 1024.0 / 10_000.0 && sampled.rate() > 0.75 * 1024.0 / 10_000.0,
        "{}",
        sampled.rate()
    );
}

#[test]
fn nothing_and_writes_alone_are_flat() {
    for sampling in [Sampling::Exact, Sampling::Rate(0.01), Sampling::Rate(f64::NAN), Sampling::Blocks(0)] {
        let mut analyzer = analyzer(sampling);
        let flat = |analyzer: &Analyzer| {
            let at = |curves: PolicyCurves| {
                [0, 1, 1 << 40].map(|size| curves.at(size).read_hits + curves.at(size).write_hits)
            };
            analyzer.curves().into_iter().skip(3).map(at).collect::<Vec<_>>()
        };
        assert_eq!(analyzer.curves().len(), 5);
        assert!(
            analyzer
                .curves()
                .iter()
                .all(|curves| curves.at(9).ssd_writes() == 0 && curves.full_blocks() == 0)
        );
        (0..3).for_each(|_| analyzer.observe(Op::Write, 0..500));
        assert_eq!(flat(&analyzer), [[0; 3]; 2], "{sampling:?}");
        for curves in analyzer.curves() {
            assert_eq!((curves.accesses(), curves.read_hit_ratio(u64::MAX)), (1500, 0.0));
        }
    }
}

#[test]
fn counts_of_other_policies_are_refused() {
    let counts = |policy| Analyzer::new(&config(&[policy], Sampling::Exact)).counts();
    let mut writing_back = counts(CurvePolicy::WriteBack);
    assert_eq!(writing_back.merge(&counts(CurvePolicy::ReadOnly)), Err(PoliciesDiffer));
}

/// The findings of an epoch, from an LRU stack: the distance of an access is the depth at which its block is found.
#[derive(Default)]
struct Model {
    /// Most recently used first: block, last kind, epoch of the last access.
    stack: Vec<(u64, AccessKind, u64)>,
    epoch: u64,
    findings: EpochFindings,
    useful: Vec<(u64, u64)>,
}

impl Model {
    fn request(&mut self, blocks: Range<u64>, kind: AccessKind) {
        self.findings.requests += 1;
        blocks.for_each(|block| self.access(block, kind));
    }

    fn access(&mut self, block: u64, kind: AccessKind) {
        let depth = self.stack.iter().position(|known| known.0 == block);
        let last = depth.map(|depth| self.stack.remove(depth));
        self.stack.insert(0, (block, kind, self.epoch));
        let class = RequestClass::of(last.map(|last| last.1), kind);
        self.findings.accesses += 1;
        self.findings.classes.count(class);
        self.findings.footprint_blocks += u64::from(last.is_none_or(|last| last.2 < self.epoch));
        let distance = depth.map(|depth| depth as u64);
        self.findings.trd_max = self.findings.trd_max.max(distance);
        if let (Some(distance), AccessKind::Read) = (distance, kind) {
            self.useful.push((distance, 1));
        }
    }

    fn finish_epoch(&mut self) -> EpochFindings {
        self.epoch += 1;
        let useful: crate::DistanceHistogram = std::mem::take(&mut self.useful).into_iter().collect();
        let findings = std::mem::take(&mut self.findings);
        EpochFindings { history_blocks: u64::MAX, urd_max: useful.max(), useful, ..findings }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn findings_are_those_of_an_lru_stack(
        requests in prop::collection::vec((0u64..110, 1u64..6, any::<bool>(), any::<u8>()), 1..900),
    ) {
        let mut analyzer = Analyzer::new(&config(&[CurvePolicy::WriteThrough], Sampling::Blocks(1 << 15)));
        let mut model = Model::default();
        for (block, blocks, write, end) in requests {
            let op = if write { Op::Write } else { Op::Read };
            analyzer.observe(op, block..block + blocks);
            model.request(block..block + blocks, if write { AccessKind::Write } else { AccessKind::Read });
            if end < 2 {
                prop_assert_eq!(analyzer.finish_epoch(), model.finish_epoch());
            }
        }
        prop_assert_eq!(analyzer.finish_epoch(), model.finish_epoch());
    }
}
