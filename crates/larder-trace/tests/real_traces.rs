//! The reader on real traces, against figures that an independent reader counted.
//!
//! The traces may not be published; where they are absent, a generated trace takes their place.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::PathBuf;

use larder_trace::{MsrReader, MsrWriter, Request, RequestKind, Volume, open, two_phase};

/// Traces beside the workspace, if they are there.
fn traces() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("NOTE: ../shared/traces is absent: this test reads a generated trace instead of the real ones");
    None
}

/// What the index of the traces says of one.
struct Figures {
    requests: u64,
    reads_percent: f64,
    footprint_gib: f64,
    accesses: u64,
    volumes: usize,
}

fn figures(mut reader: MsrReader) -> Figures {
    let (mut requests, mut reads, mut accesses) = (0u64, 0u64, 0u64);
    let mut footprint = BTreeSet::new();
    for request in reader.by_ref() {
        let Request { volume, kind, offset, len, .. } = request.expect("every line of the trace is good");
        requests += 1;
        reads += u64::from(kind == RequestKind::Read);
        let blocks = offset / 4096..(offset + u64::from(len)).div_ceil(4096);
        accesses += blocks.end - blocks.start;
        footprint.extend(blocks.map(|block| (volume, block)));
    }
    Figures {
        requests,
        reads_percent: 100.0 * reads as f64 / requests as f64,
        footprint_gib: footprint.len() as f64 * 4096.0 / f64::from(1 << 30),
        accesses,
        volumes: reader.volumes().len(),
    }
}

/// The shares are told with one or two decimals, the footprint with three.
fn check(file: &str, requests: u64, reads_percent: f64, footprint_gib: f64, accesses: Option<u64>) {
    let Some(folder) = traces() else { return check_generated() };
    let found = figures(open(folder.join(file)).expect("the trace can be opened"));
    assert_eq!((found.requests, found.volumes), (requests, 1), "{file}");
    assert!((found.reads_percent - reads_percent).abs() <= 0.0501, "{file}: {} % reads", found.reads_percent);
    assert!((found.footprint_gib - footprint_gib).abs() <= 0.000_501, "{file}: {} GiB", found.footprint_gib);
    assert_eq!(found.accesses, accesses.unwrap_or(found.accesses), "{file}");
}

/// Two phases over 64 MiB: the second reads or writes each of its 16,384 blocks once.
fn check_generated() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let out = zstd::Encoder::new(BufWriter::new(file.as_file()), 1).expect("an encoder").auto_finish();
    let mut writer = MsrWriter::new(out);
    let volume = Volume { host: "made".into(), disk: 0 };
    for request in two_phase(64 << 20, 32_768, 0, 1).expect("a sensible workload") {
        writer.write(&request, &volume).expect("the temporary file can be written");
    }
    drop(writer);
    let found = figures(open(file.path()).expect("the trace can be opened"));
    assert_eq!((found.requests, found.accesses, found.volumes), (32_768, 32_768, 1));
    assert_eq!(found.footprint_gib, 0.0625);
    assert!((found.reads_percent - 70.0).abs() < 1.0, "{} % reads", found.reads_percent);
}

#[test]
fn a_generated_trace_is_read_as_it_was_made() {
    check_generated();
}

#[test]
fn msr_web_1() {
    check("msr_web_1.csv.gz", 100_000, 61.55, 1.957, None);
}

#[test]
fn msr_sample() {
    check("msr_sample_caffeine.csv", 1_000, 50.8, 0.007, None);
}

#[test]
fn recorded_redis() {
    check("recorded/redis.csv.zst", 161_458, 0.0, 0.532, Some(343_250));
}

#[test]
fn recorded_rocksdb() {
    check("recorded/rocksdb.csv.zst", 306_648, 99.7, 1.056, Some(873_123));
}
