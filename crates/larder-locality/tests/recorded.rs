//! Request classes and footprints of recorded applications, against figures that an independent tool counted.
//!
//! The traces may not be published: where they are absent, the test says so, and checks a generated workload whose
//! classes are known.

use std::path::Path;

use larder_locality::{
    Analyzer, AnalyzerConfig, CurvePolicy, EpochFindings, Op, Sampling, block_keys, blocks_of,
};
use larder_trace::{Generator, Pattern, Request, RequestKind, Workload};

const BLOCK_BYTES: u32 = 4096;

fn analyzer() -> Analyzer {
    let policies = vec![CurvePolicy::WriteThrough];
    Analyzer::new(&AnalyzerConfig { policies, sampling: Sampling::Exact, history_blocks: u64::MAX, seed: 1 })
}

fn observe(analyzer: &mut Analyzer, request: Request) {
    let op = match request.kind {
        RequestKind::Read => Op::Read,
        RequestKind::Write => Op::Write,
        RequestKind::Flush | RequestKind::Discard => return,
    };
    let blocks = blocks_of(request.offset, request.len.into(), BLOCK_BYTES);
    analyzer.observe(op, block_keys(request.volume as u16, blocks));
}

/// CR, CW, RAR, RAW, WAR, WAW in percent with one decimal.
fn percents(findings: &EpochFindings) -> [String; 6] {
    let classes = findings.classes;
    [classes.cr, classes.cw, classes.rar, classes.raw, classes.war, classes.waw]
        .map(|count| format!("{:.1}", 100.0 * count as f64 / findings.accesses as f64))
}

/// Two sequential passes of reads over 1,000 blocks, then one of writes: every distance is 999.
fn check_generated() {
    let pass = Workload {
        pattern: Pattern::Sequential,
        requests: 2000,
        first_byte: 0,
        bytes: 1000 * u64::from(BLOCK_BYTES),
        request_bytes: BLOCK_BYTES,
        read_share: 1.0,
        interval_ns: 1,
    };
    let writes = Workload { requests: 1000, read_share: 0.0, ..pass };
    let mut analyzer = analyzer();
    Generator::new(&[pass, writes], 0, 1)
        .expect("sensible")
        .for_each(|request| observe(&mut analyzer, request));
    let findings = analyzer.finish_epoch();
    assert_eq!(percents(&findings), ["33.3", "0.0", "33.3", "0.0", "33.3", "0.0"]);
    assert_eq!((findings.urd_blocks(), findings.trd_blocks(), findings.footprint_blocks), (1000, 1000, 1000));
    assert_eq!((findings.hit_curve().hits(999), findings.hit_curve().hits(1000)), (0, 1000));
}

fn check(name: &str, accesses: u64, footprint_gib: &str, expected: [&str; 6]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/recorded").join(name);
    if !file.exists() {
        eprintln!("NOTE: ../shared/traces/recorded/{name} is absent: a generated workload takes its place");
        return check_generated();
    }
    let mut analyzer = analyzer();
    let trace = larder_trace::open(file).expect("the trace can be opened");
    trace.for_each(|request| observe(&mut analyzer, request.expect("every line of the trace is good")));
    let findings = analyzer.finish_epoch();
    assert_eq!(findings.accesses, accesses);
    assert_eq!(format!("{:.3}", findings.footprint_blocks as f64 / f64::from(1 << 18)), footprint_gib);
    assert_eq!(percents(&findings), expected);
}

#[test]
fn a_generated_workload() {
    check_generated();
}

#[test]
fn build() {
    check("build.csv.zst", 1_365_496, "1.744", ["2.5", "31.0", "7.0", "27.8", "13.2", "18.6"]);
}

#[test]
fn rocksdb() {
    check("rocksdb.csv.zst", 873_123, "1.056", ["30.2", "1.5", "67.7", "0.1", "0.0", "0.4"]);
}
