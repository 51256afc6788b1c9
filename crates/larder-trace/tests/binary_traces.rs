//! The readers of binary formats on real traces, against figures that an independent reader counted.
//!
//! The traces may not be published; where they are absent, records made here take their place.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::PathBuf;

use larder_trace::{Format, Request, RequestKind, Trace, open};

/// Traces beside the workspace, if they are there.
fn real(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(file);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("NOTE: ../shared/traces is absent: this test reads made records instead of the real {file}");
    None
}

/// What the index of the traces says of one.
#[derive(Debug, PartialEq)]
struct Figures {
    format: Format,
    requests: u64,
    reads: u64,
    /// Blocks of 4 KiB that are touched, volumes kept apart.
    footprint: usize,
    seconds: u64,
    volumes: usize,
}

fn figures(mut trace: Trace) -> Figures {
    let (mut requests, mut reads) = (0, 0);
    let (mut first, mut last) = (u64::MAX, 0);
    let mut footprint = BTreeSet::new();
    for request in trace.by_ref() {
        let Request { time_ns, volume, kind, offset, len } =
            request.expect("every record of the trace is good");
        requests += 1;
        reads += u64::from(kind == RequestKind::Read);
        (first, last) = (time_ns.min(first), time_ns.max(last));
        let blocks = offset / 4096..(offset + u64::from(len)).div_ceil(4096);
        footprint.extend(blocks.map(|block| (volume, block)));
    }
    Figures {
        format: trace.format(),
        requests,
        reads,
        footprint: footprint.len(),
        seconds: (last - first) / 1_000_000_000,
        volumes: trace.volumes().len(),
    }
}

/// Held against the index: shares have two decimals there, footprints (in GiB) three.
fn check_shares(found: &Figures, reads_percent: f64, footprint_gib: f64) {
    let reads = 100.0 * found.reads as f64 / found.requests as f64;
    assert!((reads - reads_percent).abs() < 0.00501, "{reads} % reads");
    let gib = found.footprint as f64 * 4096.0 / f64::from(1 << 30);
    assert!((gib - footprint_gib).abs() < 0.000501, "{gib} GiB");
}

/// 100 requests, every fourth a write, a second apart, to 50 places of 8 KiB.
fn made(record: impl Fn(u64, bool, u64) -> Vec<u8>) -> Vec<u8> {
    (0..100).flat_map(|number| record(number, number % 4 != 0, number % 50 * 2)).collect()
}

fn check_made(format: Format, bytes: Vec<u8>) {
    let found = figures(Trace::new("made", Cursor::new(bytes), None).expect("it is recognised"));
    assert_eq!(found, Figures { format, requests: 100, reads: 75, footprint: 100, seconds: 99, volumes: 1 });
}

#[test]
fn cloud_physics() {
    let record = |number: u64, read, block: u64| {
        let command: u16 = if read { 0x28 } else { 0x2a };
        let mut record = [number as u32, 8192, 2].map(u32::to_le_bytes).concat();
        record.extend([command, 0x0100].map(u16::to_le_bytes).concat());
        record.extend([block * 8, number * 1_000_000].map(u64::to_le_bytes).concat());
        record
    };
    check_made(Format::Vscsi, made(record));
    let Some(path) = real("cloudPhysicsIO.vscsi") else { return };
    let found = figures(open(path).expect("the trace can be opened"));
    check_shares(&found, 41.25, 1.027);
    assert_eq!(
        (found.format, found.requests, found.seconds, found.volumes),
        (Format::Vscsi, 113_872, 7200, 1)
    );
}

#[test]
fn hewlett_packard() {
    let record = |number: u64, read, block: u64| {
        let (second, flags) = (number as u32, if read { 27 } else { 26 });
        let fields = [56, 0x4_0001, second, 0, 1, 2, 8192, block as u32 * 16, 0x0800_0007, 4, 1, flags, 0, 1];
        fields.map(u32::to_be_bytes).concat()
    };
    check_made(Format::Srt, [b"$$TR_IOREC-1.3 (made)\n\x0c".to_vec(), made(record)].concat());
    let Some(path) = real("hplajw_1week.srt.zst") else { return };
    let found = figures(open(path).expect("the trace can be opened"));
    check_shares(&found, 29.29, 0.028);
    assert_eq!((found.format, found.requests), (Format::Srt, 44_519));
    assert_eq!((found.seconds as f64 / 864.0).round(), 698.0, "6.98 days");
    assert_eq!(found.volumes, 5);
}
