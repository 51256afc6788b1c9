//! Every format of text on real traces, against figures that an independent reader counted.
//!
//! The traces may not be published; where they are absent, a generated trace takes their place.

use std::collections::BTreeSet;
use std::io::{BufWriter, Cursor};
use std::path::{Path, PathBuf};

use larder_trace::{Format, MsrWriter, Request, RequestKind, Trace, Volume, open, two_phase};

/// Traces beside the workspace, if they are there.
fn traces() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("NOTE: ../shared/traces is absent: this test reads a generated trace instead of the real ones");
    None
}

/// What the index of the traces says of one.
struct Expected {
    format: Format,
    requests: u64,
    /// Told with one or two decimals.
    reads_percent: f64,
    /// Told with three decimals.
    footprint_gib: f64,
    volumes: usize,
    /// From the first request to the last.
    seconds: Option<f64>,
    /// 4 KiB blocks touched, each as often as it is.
    accesses: Option<u64>,
}

const MSR: Expected = Expected {
    format: Format::Msr,
    requests: 0,
    reads_percent: 0.0,
    footprint_gib: 0.0,
    volumes: 1,
    seconds: None,
    accesses: None,
};

#[derive(Default)]
struct Figures {
    requests: u64,
    reads: u64,
    accesses: u64,
    footprint: BTreeSet<(u32, u64)>,
    times: Option<(u64, u64)>,
}

impl Figures {
    fn of(trace: &mut Trace) -> Self {
        let mut figures = Self::default();
        trace.for_each(|request| figures.count(request.expect("the whole trace is good")));
        figures
    }

    fn count(&mut self, request: Request) {
        let Request { time_ns, volume, kind, offset, len } = request;
        self.requests += 1;
        self.reads += u64::from(kind == RequestKind::Read);
        let blocks = offset / 4096..(offset + u64::from(len)).div_ceil(4096);
        self.accesses += blocks.end - blocks.start;
        self.footprint.extend(blocks.map(|block| (volume, block)));
        let (first, last) = self.times.unwrap_or((time_ns, time_ns));
        self.times = Some((first.min(time_ns), last.max(time_ns)));
    }

    fn reads_percent(&self) -> f64 {
        100.0 * self.reads as f64 / self.requests as f64
    }

    fn footprint_gib(&self) -> f64 {
        self.footprint.len() as f64 / f64::from(1 << 18)
    }

    fn seconds(&self) -> f64 {
        self.times.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9)
    }
}

fn check(file: &str, expected: &Expected) {
    let Some(folder) = traces() else { return check_generated() };
    let mut trace = open(folder.join(file)).expect("the trace can be opened");
    assert_eq!(trace.format(), expected.format, "{file}");
    let found = Figures::of(&mut trace);
    assert_eq!((found.requests, trace.volumes().len()), (expected.requests, expected.volumes), "{file}");
    assert!(
        (found.reads_percent() - expected.reads_percent).abs() <= 0.0501,
        "{file}: {} % reads",
        found.reads_percent()
    );
    let footprint_gib = found.footprint_gib();
    // Rounded twice: to four decimals, and then to three.
    assert!((footprint_gib - expected.footprint_gib).abs() <= 0.000_55, "{file}: {footprint_gib} GiB");
    assert_eq!(found.accesses, expected.accesses.unwrap_or(found.accesses), "{file}");
    let seconds = expected.seconds.unwrap_or(found.seconds());
    // Told with three or four digits.
    assert!((found.seconds() - seconds).abs() <= seconds * 0.03, "{file}: {} seconds", found.seconds());
}

/// Two phases over 64 MiB: the second reads or writes each of its 16,384 blocks once.
fn check_generated() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let out = zstd::Encoder::new(BufWriter::new(file.as_file()), 1).expect("an encoder").auto_finish();
    let mut writer = MsrWriter::new(out);
    let volume = Volume::new("made", 0);
    for request in two_phase(64 << 20, 32_768, 0, 1).expect("a sensible workload") {
        writer.write(&request, &volume).expect("the temporary file can be written");
    }
    drop(writer);
    let mut trace = open(file.path()).expect("the trace can be opened");
    let found = Figures::of(&mut trace);
    assert_eq!((found.requests, found.accesses), (32_768, 32_768));
    assert_eq!((found.footprint_gib(), trace.volumes()), (0.0625, &[volume][..]));
    assert!((found.reads_percent() - 70.0).abs() < 1.0, "{} % reads", found.reads_percent());
}

#[test]
fn a_generated_trace_is_read_as_it_was_made() {
    check_generated();
}

#[test]
fn msr_web_1() {
    let expected = Expected {
        requests: 100_000,
        reads_percent: 61.55,
        footprint_gib: 1.957,
        seconds: Some(13_818.0),
        ..MSR
    };
    check("msr_web_1.csv.gz", &expected);
}

#[test]
fn msr_sample() {
    let expected =
        Expected { requests: 1_000, reads_percent: 50.8, footprint_gib: 0.007, seconds: Some(127.0), ..MSR };
    check("msr_sample_caffeine.csv", &expected);
}

#[test]
fn recorded_redis() {
    let expected = Expected {
        requests: 161_458,
        footprint_gib: 0.532,
        accesses: Some(343_250),
        seconds: Some(434.3),
        ..MSR
    };
    check("recorded/redis.csv.zst", &expected);
}

#[test]
fn recorded_rocksdb() {
    let expected = Expected {
        requests: 306_648,
        reads_percent: 99.7,
        footprint_gib: 1.056,
        accesses: Some(873_123),
        seconds: Some(241.2),
        ..MSR
    };
    check("recorded/rocksdb.csv.zst", &expected);
}

#[test]
fn microsoft_production_server() {
    let expected = Expected {
        format: Format::Dtrs,
        requests: 127_043,
        reads_percent: 89.04,
        footprint_gib: 4.853,
        seconds: Some(300.0),
        ..MSR
    };
    check("mspc_DTRS1K.trace.zst", &expected);
}

#[test]
fn ssdsim_financial() {
    let expected = Expected {
        format: Format::Ssdsim,
        requests: 10_000,
        reads_percent: 40.77,
        footprint_gib: 0.028,
        volumes: 22,
        seconds: Some(260.0),
        ..MSR
    };
    check("spc_Financial1_first10k.ssdsim.ascii.zst", &expected);
}

#[test]
fn mqsim_websearch() {
    let expected = Expected {
        format: Format::Ssdsim,
        requests: 24_783,
        reads_percent: 99.98,
        footprint_gib: 0.355,
        volumes: 6,
        seconds: Some(60.0),
        ..MSR
    };
    check("mqsim_wsrch-small.trace.zst", &expected);
}

#[test]
fn heimdall_cut() {
    let expected = Expected {
        format: Format::Heimdall,
        requests: 10_000,
        reads_percent: 20.2,
        footprint_gib: 0.028,
        seconds: Some(243.0),
        ..MSR
    };
    check("heimdall_msr.cut.per_10k.rw_20_80.105.trace.zst", &expected);
}

#[test]
fn fiu_mail_server() {
    let expected = Expected {
        format: Format::Fiu,
        requests: 9_998,
        reads_percent: 88.98,
        footprint_gib: 0.035,
        seconds: Some(23.6),
        ..MSR
    };
    check("fiu_cheetah_110108_day2_sample10k.blkparse.zst", &expected);
}

#[test]
fn tencent() {
    let expected = Expected {
        format: Format::Tencent,
        requests: 50_000,
        reads_percent: 49.04,
        footprint_gib: 1.328,
        volumes: 2_038,
        seconds: Some(1.0),
        ..MSR
    };
    check("tencent_cbs_sample.bz2", &expected);
}

#[test]
fn systor() {
    let expected = Expected {
        format: Format::Systor,
        requests: 999,
        reads_percent: 82.68,
        footprint_gib: 0.037,
        seconds: Some(2.4),
        ..MSR
    };
    check("systor17_traces_sample.csv.gz", &expected);
}

/// The index counts 9,886 requests in 810 s: it leaves out the last event, whose clock is another (1,266,874,889 s). The summary
/// that `blkparse` wrote at the end of the file counts it as we do: 9,039 reads and 848 writes were dispatched.
#[test]
fn blkparse_ycsb() {
    let expected = Expected {
        format: Format::Blkparse,
        requests: 9_039 + 848,
        reads_percent: 91.42,
        footprint_gib: 1.210,
        ..MSR
    };
    check("ycsb_ext4.blkparse.txt.zst", &expected);
}

#[test]
fn arc_p3() {
    let expected = Expected {
        format: Format::Lis,
        requests: 238_578,
        reads_percent: 100.0,
        footprint_gib: 0.390,
        ..MSR
    };
    check("arc_P3.lis.zst", &expected);
}

#[test]
fn arc_oltp() {
    let expected = Expected {
        format: Format::LisPages,
        requests: 914_145,
        reads_percent: 100.0,
        footprint_gib: 0.713,
        ..MSR
    };
    check("arc_OLTP.lis.zst", &expected);
}

/// Volumes without a name of a tenant are called by their disk alone.
#[test]
fn a_trace_in_memory_and_its_volumes() {
    let text = b"419,W,8792731648,16384,1577808144360767\n420,R,0,512,1577808144360768\n";
    let mut trace = Trace::new("in memory", Cursor::new(text), None).expect("a good trace");
    let mut requests = Vec::new();
    assert!(trace.read_batch(&mut requests, 1).expect("a request"));
    assert_eq!((trace.format(), requests.len(), trace.volumes().len()), (Format::Alibaba, 1, 1));
    assert!(trace.read_batch(&mut requests, 10).expect("another request"));
    assert!(!trace.read_batch(&mut requests, 10).expect("the end"));
    let volumes: Vec<_> = trace.volumes().iter().map(ToString::to_string).collect();
    assert_eq!((requests.len(), volumes), (2, vec!["419".to_owned(), "420".to_owned()]));
}
