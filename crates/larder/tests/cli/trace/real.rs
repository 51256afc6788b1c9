//! The traces beside the workspace, against the figures of their index: requests, read share, footprint, re-references, duration.
//!
//! They may not be published; where they are absent, a generated trace takes their place.

use std::path::{Path, PathBuf};

use super::bench::Bench;

fn traces() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("NOTE: ../shared/traces is absent: this test reads a generated trace instead of the real ones");
    None
}

/// A line of the index. Shares are in percent.
struct Line {
    file: &'static str,
    format: &'static str,
    compression: Option<&'static str>,
    requests: u64,
    reads: f64,
    footprint_gib: f64,
    re_references: f64,
    seconds: f64,
}

const LINES: [Line; 6] = [
    line("cloudPhysicsIO.vscsi", "vscsi", None, 113_872, [41.25, 1.027, 76.4, 7200.0]),
    line("msr_web_1.csv.gz", "msr", Some("gzip"), 100_000, [61.55, 1.957, 27.9, 13_818.0]),
    line("hplajw_1week.srt.zst", "srt", Some("zstd"), 44_519, [29.29, 0.028, 90.0, 603_072.0]),
    line("tencent_cbs_sample.bz2", "tencent", Some("bzip2"), 50_000, [49.04, 1.328, 7.9, 1.0]),
    line("systor17_traces_sample.csv.gz", "systor", Some("gzip"), 999, [82.68, 0.037, 6.1, 2.4]),
    line("recorded/rocksdb.csv.zst", "msr", Some("zstd"), 306_648, [99.7, 1.056, 68.3, 241.2]),
];

const fn line(
    file: &'static str,
    format: &'static str,
    compression: Option<&'static str>,
    requests: u64,
    [reads, footprint_gib, re_references, seconds]: [f64; 4],
) -> Line {
    Line { file, format, compression, requests, reads, footprint_gib, re_references, seconds }
}

#[test]
fn info_tells_what_the_index_tells() {
    let Some(folder) = traces() else { return check_generated() };
    for line in &LINES {
        let found = Bench::new().info(folder.join(line.file).to_str().expect("UTF-8"));
        let text = |key: &str| found[key].as_str().map(str::to_owned);
        assert_eq!(
            (text("format").as_deref(), text("compression").as_deref()),
            (Some(line.format), line.compression)
        );
        assert_eq!(found["requests"], line.requests, "{}", line.file);
        let near = |key: &str, factor: f64, expected: f64, within: f64| {
            let value = found[key].as_f64().expect("a number") * factor;
            assert!(
                (value - expected).abs() <= within,
                "{}: {key}: {value} instead of {expected}",
                line.file
            );
        };
        near("read_share", 100.0, line.reads, 0.0501);
        near("footprint_bytes", 1.0 / f64::from(1 << 30), line.footprint_gib, 0.000_55);
        near("re_reference_share", 100.0, line.re_references, 0.0501);
        near("duration_seconds", 1.0, line.seconds, line.seconds * 0.03);
    }
}

fn check_generated() {
    let found = Bench::new().info("gen:loop:blocks=1000,requests=10000,read=1");
    let numbers = ["requests", "footprint_blocks", "reads"].map(|key| found[key].as_u64());
    assert_eq!(
        (numbers, found["re_reference_share"].as_f64()),
        ([Some(10_000), Some(1000), Some(10_000)], Some(0.9))
    );
}

#[test]
fn a_generated_loop() {
    check_generated();
}

#[test]
fn a_real_trace_in_parts_is_the_same() {
    let spec = "gen:uniform:blocks=5000,requests=100000,read=0.5,interval=100ms".to_owned();
    let file = |folder: PathBuf| folder.join("msr_web_1.csv.gz").display().to_string();
    let trace = traces().map_or(spec, file);
    let bench = Bench::new();
    bench.good(&format!("convert --strict {trace} whole.parquet"));
    bench.good("split whole.parquet --by time --every 1h --out-dir parts --to parquet");
    let parts: String = bench.names("parts").iter().map(|name| format!(" parts/{name}")).collect();
    assert!(bench.names("parts").len() >= 2, "{parts}");
    let whole = bench.info("whole.parquet");
    let in_parts: u64 = bench
        .info(&parts)
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|part| part["requests"].as_u64())
        .sum();
    assert_eq!(whole["requests"], in_parts);
    assert_eq!(
        (whole["requests"].as_u64(), bench.info(&trace)["footprint_blocks"].as_u64()),
        (Some(100_000), whole["footprint_blocks"].as_u64())
    );
}
