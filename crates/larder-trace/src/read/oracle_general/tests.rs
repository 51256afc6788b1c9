use std::io::Cursor;

use super::*;
use crate::{Format, Trace, Volume};

fn record(seconds: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    let mut bytes = seconds.to_le_bytes().to_vec();
    bytes.extend(object.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    bytes
}

fn trace(bytes: Vec<u8>) -> Trace {
    Trace::new("t", Cursor::new(bytes), Some(Format::OracleGeneral)).unwrap()
}

#[test]
fn objects_are_blocks_of_4_kib() {
    let hashed = 0x8001_2345_6789_abcd;
    let bytes = [
        record(0, 5, 4096, 2),
        record(1, 5, 1_000_000, -1),
        record(2, (1 << 51) - 1, 0, -1),
        record(u32::MAX, hashed, 7, i64::MAX),
    ];
    let mut trace = trace(bytes.concat());
    let found: Vec<Request> = trace.by_ref().map(Result::unwrap).collect();
    let expected =
        [(0, 0, 5), (1, 0, 5), (2, 0, (1 << 51) - 1), (u64::from(u32::MAX), 1, hashed & ((1 << 51) - 1))];
    for (found, (seconds, volume, block)) in found.iter().zip(expected) {
        let time_ns = seconds * 1_000_000_000;
        let kind = RequestKind::Read;
        assert_eq!(*found, Request { time_ns, volume, kind, offset: block * 4096, len: 4096 });
    }
    assert_eq!(trace.volumes(), [Volume::new("", 0), Volume::new("", hashed >> 51)]);
}

#[test]
fn a_record_that_is_cut_off_is_named_by_its_first_byte() {
    let mut bytes = [record(0, 5, 1, -1), record(0, 6, 1, -1)].concat();
    bytes.pop();
    let error = trace(bytes).find_map(Result::err).expect("an error").to_string();
    assert_eq!(
        error,
        "t: byte 24: the record is \"23 bytes\", expected a record of 24 bytes (format oracle-general)"
    );
    assert!(trace(Vec::new()).next().is_none());
}

#[test]
fn a_trace_is_recognised_by_what_it_foretells() {
    let good = [record(3, 1, 9, 3), record(3, 2, 9, -1), record(4, 1, 9, 7)].concat();
    assert!(looks_like(&good));
    assert!(looks_like(&[&good[..], &[1, 2, 3]].concat()), "cut off by the window");
    let from_zero = [record(3, 1, 9, 2), record(3, 2, 9, -1), record(4, 1, 9, -1)].concat();
    assert!(looks_like(&from_zero), "some writers number requests from 0");

    for (bad, why) in [
        (vec![], "nothing"),
        (
            [record(3, 1, 9, 3), record(3, 2, 9, -1), record(4, 7, 9, -1), record(5, 2, 9, -1)].concat(),
            "another object",
        ),
        ([record(3, 1, 9, -1), record(2, 2, 9, -1)].concat(), "a time that falls"),
        (record(3, 1, 9, 1), "an access before this one"),
        (record(3, 1, 9, -2), "a negative number"),
        (b"some text, more of it\n".repeat(20), "text"),
    ] {
        assert!(!looks_like(&bad), "{why}");
    }
}
