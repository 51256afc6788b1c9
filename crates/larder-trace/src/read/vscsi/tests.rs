use std::io::Cursor;

use super::*;
use crate::{Format, Trace, TraceError, Volume};

fn one(command: u16, len: u32, sector: u64, time_us: u64) -> Vec<u8> {
    let mut record = [7u32, len, 1].map(u32::to_le_bytes).concat();
    record.extend([command, 0x0100].map(u16::to_le_bytes).concat());
    record.extend([sector, time_us].map(u64::to_le_bytes).concat());
    record
}

fn two(command: u16, len: u32, sector: u64, time_us: u64) -> Vec<u8> {
    let mut record = [command, 0x0203].map(u16::to_le_bytes).concat();
    record.extend([7u32, len, 1].map(u32::to_le_bytes).concat());
    record.extend([sector, time_us, 99].map(u64::to_le_bytes).concat());
    record
}

fn trace(bytes: Vec<u8>) -> Trace {
    Trace::new("t", Cursor::new(bytes), Some(Format::Vscsi)).unwrap()
}

fn error(bytes: Vec<u8>) -> String {
    trace(bytes).find_map(Result::err).expect("an error").to_string()
}

fn request(kind: RequestKind, offset: u64, len: u32, time_ns: u64) -> Request {
    Request { time_ns, volume: 0, kind, offset, len }
}

#[test]
fn both_versions_tell_the_same() {
    let commands = [(0x28, 4096, 8, 1), (0x12, 36, 0, 2), (0x8a, 512, 1 << 54, 3), (0x35, 9, 9, 4)];
    let expected = [
        request(RequestKind::Read, 4096, 4096, 1000),
        request(RequestKind::Write, 1 << 63, 512, 3000),
        request(RequestKind::Flush, 0, 0, 4000),
    ];
    for record in [one, two] {
        let bytes: Vec<u8> = commands.iter().flat_map(|&(c, l, s, t)| record(c, l, s, t)).collect();
        assert!(looks_like(&bytes));
        let mut trace = trace(bytes);
        let found: Vec<Request> = trace.by_ref().map(Result::unwrap).collect();
        assert_eq!(found, expected);
        assert_eq!(trace.volumes(), [Volume::new("", 0)]);
    }
}

#[test]
fn a_record_that_is_cut_off_is_named_by_its_first_byte() {
    let mut bytes = [one(0x28, 512, 0, 0), one(0x28, 512, 0, 0)].concat();
    bytes.truncate(45);
    let expected = "a record of 32 (version 1) or 40 bytes (version 2) (format vscsi)";
    assert_eq!(error(bytes), format!("t: byte 32: the record is \"13 bytes\", expected {expected}"));
    let mut bytes = two(0x28, 512, 0, 0);
    bytes.truncate(35);
    assert_eq!(error(bytes), format!("t: byte 0: the record is \"35 bytes\", expected {expected}"));
}

#[test]
fn the_version_must_stay_the_same() {
    let mixed = [one(0x28, 512, 0, 0), two(0x28, 512, 0, 0)].concat();
    assert!(error(mixed.clone()).starts_with("t: byte 32: version is"), "{}", error(mixed.clone()));
    assert!(!looks_like(&mixed));
    assert!(error(vec![0; 32]).starts_with("t: byte 0: version is \"0x0000 (at byte 14)"));
}

#[test]
fn numbers_out_of_range_are_errors() {
    let far = one(0x28, 512, u64::MAX / 512, 0);
    assert!(error(far).starts_with("t: byte 0: logical block is \"36028797018963967 (0x7fffffffffffff)\""));
    let late = one(0x28, 512, 0, u64::MAX / 1000 + 1);
    assert!(error(late).starts_with("t: byte 0: time is"));
}

#[test]
fn only_records_of_known_commands_look_like_a_trace() {
    assert!(!looks_like(b""));
    assert!(!looks_like(&one(0x28, 512, 0, 0)[..31]));
    assert!(!looks_like(&one(0x12, 512, 0, 0)), "nothing that reads or writes");
    assert!(!looks_like(&one(0x1228, 512, 0, 0)), "a command of one byte");
    assert!(looks_like(&[one(0x12, 512, 0, 0), one(0x2a, 512, 0, 0), vec![1, 2]].concat()));
    assert!(!looks_like(&b"128166372003061629,hm,1,Read,383496192,32768,113736\n".repeat(9)));
}

#[test]
fn an_empty_file_is_an_empty_trace() {
    assert!(trace(Vec::new()).next().is_none());
    assert!(matches!(trace(vec![1]).next(), Some(Err(TraceError::Syntax { .. }))));
}
