//! Examples whose answers others have published: ECI-Cache's figure 5 and the corner cases of its appendix C, and the
//! Gaussian workload of the container-caching thesis.
//!
//! Each goes through the exact lane, which counts from the start of the stream, and through the analyzer that the daemon
//! runs, which finds for each epoch what happened in it.

use std::collections::BTreeSet;

use larder_locality::lane::{ClassCounter, Exact, Lane, LruModel};
use larder_locality::{
    Analyzer, AnalyzerConfig, Blocks, ClassCounts, CurvePolicy, EpochFindings, Op, Piece, PolicyCurves,
    Sampling, Stretch, blocks_of,
};
use larder_trace::{Generator, Pattern, RequestKind, Workload};

use Op::{Read, Write};

/// The exact analysis of requests for one block each.
struct Exactly {
    blocks: Blocks,
    lane: Lane<LruModel, Exact>,
    classes: ClassCounter,
}

impl Exactly {
    fn new() -> Self {
        let lane = Lane::new(LruModel::new(), Exact::new());
        Self { blocks: Blocks::new(1), lane, classes: ClassCounter::new() }
    }

    fn take(&mut self, op: Op, block: u64) {
        let block = self.blocks.number(block).expect("there are few blocks");
        let stretch = Stretch { blocks: &[block], pieces: &[Piece { op, last: true, end: 1 }] };
        self.classes.count(&stretch);
        self.lane.process(&stretch);
    }

    /// Since the start.
    fn curves(&self) -> PolicyCurves {
        PolicyCurves::new(CurvePolicy::WriteThrough, self.lane.counted())
    }
}

fn daemon_s() -> Analyzer {
    let policies = vec![CurvePolicy::WriteThrough];
    Analyzer::new(&AnalyzerConfig {
        policies,
        sampling: Sampling::Blocks(1000),
        history_blocks: 1000,
        seed: 1,
    })
}

/// A workload of several intervals, seen by both.
struct Intervals {
    exactly: Exactly,
    analyzer: Analyzer,
}

/// What is known at the end of an interval.
struct Interval {
    /// Largest useful distance since the start, as the paper counts in its examples.
    urd_since_start: Option<u64>,
    /// Reads of the interval that a cache of so many blocks has served.
    read_hits: Box<dyn Fn(u64) -> u64>,
    /// What the daemon finds for the interval.
    findings: EpochFindings,
}

impl Intervals {
    fn new() -> Self {
        Self { exactly: Exactly::new(), analyzer: daemon_s() }
    }

    fn interval(&mut self, op: Op, blocks: &[u64]) -> Interval {
        let before = self.exactly.curves();
        for &block in blocks {
            self.exactly.take(op, block);
            self.analyzer.observe(op, block..block + 1);
        }
        let now = self.exactly.curves();
        let urd_since_start = now.useful_distances().max();
        let findings = self.analyzer.finish_epoch();
        let read_hits = move |size| now.at(size).read_hits - before.at(size).read_hits;
        let largest = (1..100).rfind(|&size| read_hits(size) > read_hits(size - 1));
        assert_eq!(
            findings.urd_blocks(),
            largest.unwrap_or(0),
            "the daemon's findings are those of the interval"
        );
        Interval { urd_since_start, read_hits: Box::new(read_hits), findings }
    }
}

#[test]
fn figure_5_of_eci_cache() {
    let workload = [(Write, 1), (Write, 2), (Read, 1), (Write, 3), (Write, 4), (Write, 5), (Write, 2)];
    let (mut exactly, mut analyzer) = (Exactly::new(), daemon_s());
    for (op, block) in workload {
        exactly.take(op, block);
        analyzer.observe(op, block..block + 1);
    }
    let curves = exactly.curves();
    // The write of block 2 has four others in between: five blocks. The read of block 1 has one: two blocks.
    assert_eq!((curves.distances().max(), curves.full_blocks()), (Some(4), 5));
    assert_eq!(curves.useful_distances().max(), Some(1));
    let hits = [1, 2, 4, 5].map(|blocks| (curves.at(blocks).read_hits, curves.at(blocks).write_hits));
    assert_eq!(hits, [(0, 0), (1, 0), (1, 0), (1, 1)]);
    let classes = ClassCounts { cw: 5, raw: 1, waw: 1, ..ClassCounts::default() };
    assert_eq!((exactly.classes.counts(), exactly.blocks.len()), (classes, 5));

    let findings = analyzer.finish_epoch();
    assert_eq!((findings.trd_max, findings.trd_blocks()), (Some(4), 5));
    assert_eq!((findings.urd_max, findings.urd_blocks()), (Some(1), 2));
    assert_eq!((findings.classes, findings.footprint_blocks), (classes, 5));
    assert_eq!(findings.write_ratio(), 1.0 / 7.0);
    assert_eq!(findings.hit_curve().ratio(2), 1.0 / 7.0);
}

/// The paper's "URD of 0" at the end of the first interval means that there is none, and no space is given.
#[test]
fn appendix_c_case_1_sequential_then_random() {
    let mut intervals = Intervals::new();
    let sequential = intervals.interval(Read, &[1, 2, 3, 4]);
    assert_eq!((sequential.urd_since_start, sequential.findings.urd_blocks()), (None, 0));
    // The distances are 3, 2, 3 and 1, the first three of them to the interval before: four blocks are given.
    let random = intervals.interval(Read, &[1, 3, 2, 3]);
    assert_eq!((random.urd_since_start, random.findings.urd_blocks()), (Some(3), 4));
    assert_eq!(random.findings.classes, ClassCounts { rar: 4, ..ClassCounts::default() });
    assert_eq!([1, 2, 3, 4].map(&random.read_hits), [0, 1, 2, 4]);
}

/// At the end of the second interval the paper still has the maximum of the first: its distances count since the start.
/// The daemon's findings are of one epoch each: the second wants nothing, and gives up what the first had.
#[test]
fn appendix_c_case_2_random_then_sequential() {
    let mut intervals = Intervals::new();
    let random = intervals.interval(Read, &[1, 2, 3, 1, 2]);
    assert_eq!((random.urd_since_start, random.findings.urd_blocks()), (Some(2), 3));
    let sequential = intervals.interval(Write, &[4, 5, 6, 7]);
    assert_eq!(sequential.urd_since_start, Some(2));
    assert_eq!((sequential.findings.urd_blocks(), sequential.findings.trd_blocks()), (0, 0));
    // The writes have used the three blocks up: nothing of this is served by them.
    let repeated = intervals.interval(Read, &[1, 2]);
    assert_eq!([3, 5, 6].map(&repeated.read_hits), [0, 0, 2]);
    assert_eq!((repeated.urd_since_start, repeated.findings.urd_blocks()), (Some(5), 6));
}

#[test]
fn appendix_c_case_3_semi_sequential() {
    let mut intervals = Intervals::new();
    let pass = [1, 2, 3, 4];
    let first = intervals.interval(Read, &pass);
    assert_eq!((first.urd_since_start, first.findings.urd_blocks()), (None, 0));
    let second = intervals.interval(Read, &pass);
    assert_eq!((second.urd_since_start, second.findings.urd_blocks()), (Some(3), 4));
    let third = intervals.interval(Read, &[5, 6, 7, 8]);
    assert_eq!((third.urd_since_start, third.findings.urd_blocks()), (Some(3), 0));
    // Four blocks were given, and the third interval has used them up.
    let last = intervals.interval(Read, &pass);
    assert_eq!([4, 7, 8].map(&last.read_hits), [0, 0, 4]);
    assert_eq!((last.urd_since_start, last.findings.urd_blocks()), (Some(7), 8));
}

/// The thesis (section 4.3.1) reads a file of 10 GB at places drawn from a normal law, with a working set of 142,276
/// blocks; its module predicts 141,792, which is 0.34 % less.
///
/// The working set is all blocks that are read. The prediction is the size beyond which the curve is flat: the largest
/// distance and one. It misses the blocks that were not read in between the two reads that lie furthest apart. The thesis tells
/// neither the deviation nor the number of reads here: the deviation is the smallest of its section 4.2, 50,000 blocks,
/// and there are so many reads that they touch about as many blocks as the thesis's.
#[test]
fn the_gaussian_workload_of_the_thesis() {
    const FILE: u64 = 10 << 30;
    const READS: u64 = 260_500;
    let places = FILE / 4096;
    let workload = Workload {
        pattern: Pattern::Gaussian { centre: 0.5, deviation: 50_000.0 / places as f64 },
        requests: READS,
        first_byte: 0,
        bytes: FILE,
        request_bytes: 4096,
        read_share: 1.0,
        interval_ns: 1_000_000,
    };
    let (mut exactly, mut read) = (Exactly::new(), BTreeSet::new());
    for request in Generator::new(&[workload], 0, 1).expect("sensible") {
        assert_eq!(request.kind, RequestKind::Read);
        let block = blocks_of(request.offset, request.len.into(), 4096).start;
        exactly.take(Read, block);
        read.insert(block);
    }
    let counted = read.len() as f64;
    assert!((counted / 142_276.0 - 1.0).abs() < 0.005, "{counted} blocks are not the thesis's workload");
    let curves = exactly.curves();
    let predicted = curves.full_blocks();
    assert_eq!(curves.useful_distances().max(), Some(predicted - 1));
    let share = predicted as f64 / counted;
    assert!((0.995..=1.0).contains(&share), "{predicted} of {counted}");
}
