//! What is written is read again, as far as the format holds it; and fio replays what is written for it.

use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;

use larder_trace::{Format, Request, RequestKind, Trace, TraceWriter, Volume, open};
use proptest::prelude::*;

fn kinds() -> impl Strategy<Value = RequestKind> {
    prop_oneof![
        Just(RequestKind::Read),
        Just(RequestKind::Write),
        Just(RequestKind::Flush),
        Just(RequestKind::Discard),
    ]
}

/// Requests of any kind; a flush has no bytes.
fn any_request(volumes: u32) -> impl Strategy<Value = Request> {
    (any::<u64>(), 0..volumes, kinds(), any::<u64>(), any::<u32>()).prop_map(
        |(time_ns, volume, kind, offset, len)| {
            let offset = offset.min(u64::MAX - u64::from(len));
            let (offset, len) = if kind == RequestKind::Flush { (0, 0) } else { (offset, len) };
            Request { time_ns, volume, kind, offset, len }
        },
    )
}

fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    proptest::collection::vec(any_request(3), 0..60)
}

/// Write the requests, and read them again: each with its volume.
fn again(format: Format, requests: &[Request], volumes: &[Volume]) -> Vec<(Request, Volume)> {
    let mut writer = TraceWriter::new(format, Cursor::new(Vec::new())).expect("a writer");
    for request in requests {
        writer.write(request, &volumes[request.volume as usize]).expect("the format holds the request");
    }
    let bytes = writer.finish().expect("memory is not full").into_inner();
    let mut trace = Trace::new("again", Cursor::new(bytes), Some(format)).expect("it can be opened");
    let found: Vec<Request> =
        trace.by_ref().map(|request| request.expect("what was written is good")).collect();
    found.into_iter().map(|request| (request, trace.volumes()[request.volume as usize].clone())).collect()
}

/// The same requests, whatever the number of their volume; `loss` is what the format does to one.
fn check(
    format: Format,
    requests: &[Request],
    volumes: &[Volume],
    loss: impl Fn(Request) -> Request,
) -> Result<(), TestCaseError> {
    let found = again(format, requests, volumes);
    prop_assert_eq!(found.len(), requests.len());
    for ((found, volume), &request) in found.into_iter().zip(requests) {
        prop_assert_eq!(&volume, &volumes[request.volume as usize]);
        prop_assert_eq!(Request { volume: request.volume, ..found }, loss(request));
    }
    Ok(())
}

proptest! {
    #[test]
    fn msr_keeps_all_but_a_fraction_of_the_time(requests in any_requests()) {
        let requests: Vec<Request> = requests
            .into_iter()
            .filter(|request| matches!(request.kind, RequestKind::Read | RequestKind::Write))
            .collect();
        let volumes = [Volume::new("web", 0), Volume::new("web", 1), Volume::new("mail server", 7)];
        check(Format::Msr, &requests, &volumes, |request| {
            Request { time_ns: request.time_ns / 100 * 100, ..request }
        })?;
    }

    #[test]
    fn fio_keeps_all_but_the_start_and_a_fraction_of_the_time(requests in any_requests()) {
        let volumes = [Volume::new("", "/dev/a"), Volume::new("", "b"), Volume::new("", "8,0")];
        let first = requests.first().map_or(0, |request| request.time_ns);
        check(Format::FioLog, &requests, &volumes, |request| {
            Request { time_ns: request.time_ns.saturating_sub(first) / 1000 * 1000, ..request }
        })?;
    }

    #[test]
    fn parquet_keeps_everything(requests in any_requests()) {
        let volumes = [Volume::new("web", 0), Volume::new("", "8,0"), Volume::new("ä \n,", "")];
        check(Format::Parquet, &requests, &volumes, |request| request)?;
    }

    #[test]
    fn oracle_general_keeps_blocks_and_seconds(
        accesses in proptest::collection::vec((0u64..1 << 32, 0u32..3, 0u64..1 << 51), 0..60),
    ) {
        let volumes = [0, 1, 2].map(|number| Volume::new("", number));
        let first = accesses.first().map_or(0, |&(second, _, _)| second);
        let requests: Vec<Request> = accesses.iter().map(|&(second, volume, block)| {
            let (kind, offset) = (RequestKind::Read, block * 4096);
            Request { time_ns: second * 1_000_000_000, volume, kind, offset, len: 4096 }
        }).collect();
        check(Format::OracleGeneral, &requests, &volumes, |request| {
            Request { time_ns: request.time_ns.saturating_sub(first * 1_000_000_000), ..request }
        })?;
    }
}

/// 300 requests of all kinds to two volumes, 100 µs apart.
fn mixed() -> Vec<Request> {
    let request = |number: u64| {
        let kind = match number % 10 {
            0 => RequestKind::Flush,
            1 => RequestKind::Discard,
            2..6 => RequestKind::Write,
            _ => RequestKind::Read,
        };
        let (offset, len) = if kind == RequestKind::Flush { (0, 0) } else { (number * 7 % 64 * 4096, 8192) };
        Request { time_ns: number * 100_000, volume: (number % 2) as u32, kind, offset, len }
    };
    (0..300).map(request).collect()
}

#[test]
fn what_is_written_is_recognised() {
    let volumes = [Volume::new("web", 0), Volume::new("web", 1)];
    for format in TraceWriter::FORMATS {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut writer = TraceWriter::new(format, file.reopen().expect("it is there")).expect("a writer");
        let all = mixed();
        let held = all.iter().filter(|request| {
            matches!(format, Format::FioLog | Format::Parquet)
                || matches!(request.kind, RequestKind::Read | RequestKind::Write)
        });
        let held: Vec<&Request> = held.collect();
        for request in &held {
            writer.write(request, &volumes[request.volume as usize]).expect("the format holds the request");
        }
        writer.finish().expect("the disk is not full");
        let trace = open(file.path()).expect("it is recognised");
        assert_eq!(trace.format(), format);
        // Requests of two blocks are two accesses.
        let accesses = if format == Format::OracleGeneral { 2 * held.len() } else { held.len() };
        let found: Vec<Request> = trace.map(|request| request.expect("a good request")).collect();
        assert_eq!(found.len(), accesses, "{format}");
    }
}

/// `fio`, which this test runs.
///
/// # Panics
/// If it is missing, with the command that installs it.
fn fio(folder: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let found = path.split(':').any(|folder| Path::new(folder).join("fio").is_file());
    assert!(found, "fio is missing; install it: apt-get install fio");
    let mut command = Command::new("fio");
    command.current_dir(folder);
    command
}

/// The number after `"key" :` in the JSON that fio prints, at its first place after `section`.
fn number(json: &str, section: &str, key: &str) -> u64 {
    let section = &json[json.find(&format!("\"{section}\"")).expect("the section")..];
    let value = &section[section.find(&format!("\"{key}\" : ")).expect("the key") + key.len() + 5..];
    let end = value.find(|letter: char| !letter.is_ascii_digit()).expect("an end");
    value[..end].parse().expect("a number")
}

#[test]
fn fio_replays_the_log() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("trace.log");
    let volumes = [Volume::new("web", 0), Volume::new("web", 1)];
    let mut writer = TraceWriter::streamed(Format::FioLog, Vec::new()).expect("a writer");
    for request in mixed() {
        writer.write(&request, &volumes[request.volume as usize]).expect("the format holds all kinds");
    }
    let text = writer.finish().expect("memory is not full");
    std::fs::File::create(&log).and_then(|mut file| file.write_all(&text)).expect("the log can be stored");

    let options = ["--name=replay", "--ioengine=null", "--read_iolog=trace.log", "--output-format=json"];
    let output = fio(folder.path()).args(options).output().expect("fio runs");
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complaints}");
    let requests = mixed();
    let count = |kind| requests.iter().filter(|request| request.kind == kind).count();
    for (section, kind) in [("read", RequestKind::Read), ("write", RequestKind::Write)] {
        assert_eq!(number(&said, section, "total_ios"), count(kind) as u64, "{section}: {said}");
        assert_eq!(number(&said, section, "io_bytes"), count(kind) as u64 * 8192, "{section}");
    }
    assert_eq!(number(&said, "sync", "total_ios"), count(RequestKind::Flush) as u64);
    // fio 3.33 leaves out the trims of a log, and says so of each; others replay them.
    let discards = count(RequestKind::Discard);
    match complaints.trim() {
        "" => assert_eq!(number(&said, "trim", "total_ios"), discards as u64),
        told => assert_eq!(told, ["bad ddir: 2"; 30][..discards].join("\n")),
    }
}
