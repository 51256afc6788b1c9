use std::collections::BTreeMap;
use std::io::{Cursor, SeekFrom};

use proptest::prelude::*;

use super::*;
use crate::{RequestKind, Trace};

fn read(offset: u64, len: u32) -> Request {
    Request { time_ns: 0, volume: 0, kind: RequestKind::Read, offset, len }
}

fn of_kind(kind: RequestKind) -> Request {
    Request { kind, ..read(0, 0) }
}

/// The text that a writer makes of these requests.
fn text(format: Format, requests: &[(Request, Volume)]) -> Result<String, WriteError> {
    let mut writer = TraceWriter::new(format, Cursor::new(Vec::new()))?;
    requests.iter().try_for_each(|(request, volume)| writer.write(request, volume))?;
    Ok(String::from_utf8(writer.finish()?.into_inner()).unwrap())
}

fn error(format: Format, request: Request, volume: Volume) -> String {
    text(format, &[(request, volume)]).expect_err("an error").to_string()
}

#[test]
fn msr_lines() {
    let requests = [
        (Request { time_ns: 1_234_567_899, ..read(4096, 512) }, Volume::new("web", 1)),
        (Request { kind: RequestKind::Write, ..read(u64::MAX - 1, 1) }, Volume::new("", "8,0")),
        (read(0, 1), Volume::new("web", "vda")),
        (read(0, 1), Volume::new("", "7")),
    ];
    let expected = "12345678,web,1,Read,4096,512,0\n0,8:0,0,Write,18446744073709551614,1,0\n\
        0,web_vda,0,Read,0,1,0\n0,7,0,Read,0,1,0\n";
    assert_eq!(text(Format::Msr, &requests).unwrap(), expected);
}

#[test]
fn fio_lines() {
    let requests = [
        (Request { time_ns: 7_000_999, ..read(4096, 512) }, Volume::new("web", 1)),
        (Request { time_ns: 7_002_500, ..of_kind(RequestKind::Flush) }, Volume::new("", "/dev/a")),
        (Request { time_ns: 1, kind: RequestKind::Discard, ..read(0, u32::MAX) }, Volume::new("web", 1)),
        (Request { time_ns: 9_000_999, kind: RequestKind::Write, ..read(8, 8) }, Volume::new("web", 1)),
    ];
    let expected = "fio version 3 iolog\n0 web_1 add\n0 web_1 open\n0 web_1 read 4096 512\n\
        1 /dev/a add\n1 /dev/a open\n1 /dev/a sync 0 0\n0 web_1 trim 0 4294967295\n2000 web_1 write 8 8\n\
        2000 /dev/a close\n2000 web_1 close\n";
    assert_eq!(text(Format::FioLog, &requests).unwrap(), expected);
    assert_eq!(text(Format::FioLog, &[]).unwrap(), "fio version 3 iolog\n");
}

#[test]
fn what_a_format_cannot_hold_is_an_error_that_says_so() {
    let web = || Volume::new("web", 1);
    for kind in [RequestKind::Flush, RequestKind::Discard] {
        for (format, name) in [(Format::Msr, "msr"), (Format::OracleGeneral, "oracle-general")] {
            let told = format!("a trace in the format {name} holds no request of the kind {}", kind.as_str());
            assert_eq!(error(format, of_kind(kind), web()), told);
        }
    }
    let long = "a".repeat(256);
    for (format, volume) in [
        (Format::Msr, Volume::new("", "")),
        (Format::Msr, Volume::new("a\n", 0)),
        (Format::Msr, Volume::new(" a", 0)),
        (Format::Msr, Volume::new(long.as_str(), 0)),
        (Format::FioLog, Volume::new("", "")),
        (Format::FioLog, Volume::new("a b", 0)),
        (Format::FioLog, Volume::new("a\u{7}", 0)),
        (Format::FioLog, Volume::new(long.as_str(), 0)),
    ] {
        let error = error(format, read(0, 1), volume);
        assert!(error.contains("has no name in the format"), "{error}");
    }
    let far = Request { volume: 8192, ..read(0, 1) };
    assert!(error(Format::OracleGeneral, far, web()).ends_with("holds no volume of 8192, 8191 at most"));
    let far = read(1 << 63, 1);
    assert!(error(Format::OracleGeneral, far, web()).contains("holds no offset of 9223372036854775808"));
    let late = Request { time_ns: u64::MAX, ..read(0, 1) };
    let told =
        text(Format::OracleGeneral, &[(read(0, 1), web()), (late, web())]).expect_err("late").to_string();
    assert!(told.ends_with("holds no second of 18446744073, 4294967295 at most"), "{told}");
}

#[test]
fn no_two_volumes_become_one() {
    let (one, other) = (Volume::new("a", "b_c"), Volume::new("a_b", "c"));
    for format in [Format::Msr, Format::FioLog] {
        let both = [(read(0, 1), one.clone()), (read(0, 1), other.clone())];
        let told = text(format, &both).expect_err("a clash").to_string();
        assert!(told.ends_with("another volume has the same name there"), "{told}");
    }
}

#[test]
fn formats_without_a_writer_and_streams() {
    for format in Format::ALL {
        let made = TraceWriter::streamed(format, Vec::new()).map(drop);
        match format {
            Format::OracleGeneral => assert!(matches!(made, Err(WriteError::Streamed(_)))),
            _ if TraceWriter::FORMATS.contains(&format) => assert!(made.is_ok(), "{format}"),
            _ => assert!(matches!(made, Err(WriteError::Format(_))), "{format}"),
        }
    }
    let told = TraceWriter::streamed(Format::Spc, Vec::new()).map(drop).unwrap_err().to_string();
    assert_eq!(told, "traces are not written in the format spc, but in msr, fio, oracle-general, parquet");
}

/// An output that takes so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(std::io::Error::other("full")) } else { Ok(taken) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn a_full_device_is_an_error_in_the_end() {
    for format in TraceWriter::FORMATS {
        let made = TraceWriter::new(format, Full(20)).and_then(|mut writer| {
            (0..100).try_for_each(|block| writer.write(&read(block * 4096, 4096), &Volume::new("web", 1)))?;
            writer.finish()
        });
        let told = made.map(drop).expect_err("it was full").to_string();
        assert!(told.starts_with("the trace cannot be written: ") && told.contains("full"), "{told}");
    }
}

/// Next accesses as they are defined, by a search for each.
fn slow_next(objects: &[u64]) -> Vec<i64> {
    let next = |at: usize| objects[at + 1..].iter().position(|&later| later == objects[at]);
    (0..objects.len()).map(|at| next(at).map_or(-1, |ahead| (at + 2 + ahead) as i64)).collect()
}

proptest! {
    #[test]
    fn accesses_know_the_next_one(
        requests in proptest::collection::vec((0u64..30, 0u32..20_000, 0u32..2, any::<bool>()), 0..60), held in 1usize..20,
    ) {
        let mut start = Cursor::new(b"before".to_vec());
        start.set_position(6);
        let mut writer = OracleGeneralWriter::holding(start, held).unwrap();
        let mut objects = Vec::new();
        for (offset, len, volume, is_read) in requests {
            let kind = if is_read { RequestKind::Read } else { RequestKind::Write };
            let (offset, volume_bits) = (offset * 1000, u64::from(volume) << 51);
            writer.write(&Request { time_ns: 0, volume, kind, offset, len }).unwrap();
            let touched = (0..20).filter(|block| {
                len > 0 && block * 4096 < offset + u64::from(len) && (block + 1) * 4096 > offset
            });
            objects.extend(touched.map(|block| volume_bits | block));
        }
        let out = writer.finish().unwrap();
        prop_assert_eq!(out.position(), out.get_ref().len() as u64);
        let bytes = out.into_inner();
        prop_assert_eq!(&bytes[..6], b"before");
        let records: Vec<&[u8]> = bytes[6..].chunks(24).collect();
        let field = |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        let found: Vec<u64> = records.iter().map(|record| field(record, 4)).collect();
        prop_assert_eq!(&found, &objects);
        let next: Vec<i64> = records.iter().map(|record| field(record, 16) as i64).collect();
        prop_assert_eq!(next, slow_next(&objects));
        prop_assert!(records.iter().all(|record| record[12..16] == 4096u32.to_le_bytes()));
    }
}

#[test]
fn a_table_of_several_row_groups_keeps_the_order() {
    let mut writer = ParquetWriter::new(Vec::new()).unwrap();
    let volumes = [Volume::new("a", 0), Volume::new("", "8,0")];
    let request = |number: u64| Request { volume: (number % 2) as u32, ..read(number * 512, number as u32) };
    let rows = 600_000;
    for number in 0..rows {
        writer.write(&request(number), &volumes[(number % 2) as usize]).unwrap();
    }
    let mut trace = Trace::new("t", Cursor::new(writer.finish().unwrap()), None).unwrap();
    let mut numbers = BTreeMap::new();
    for number in 0..rows {
        let found = trace.next().unwrap().unwrap();
        assert_eq!(found, request(number));
        *numbers.entry(found.volume).or_insert(0) += 1;
    }
    assert!(trace.next().is_none());
    assert_eq!((trace.volumes(), numbers.len()), (&volumes[..], 2));
}
