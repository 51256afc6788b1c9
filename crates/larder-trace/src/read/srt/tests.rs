use std::io::Cursor;

use super::*;
use crate::{Format, Trace, Volume};

const HEADER: &[u8] = b"$$TR_IOREC-1.3 (made)\0\nversion = 1.3;\n\x0c";

/// A record of 56 bytes with these numbers where they matter.
fn record(size: u32, id: u32, time: [u32; 2], [len, block, device, flags]: [u32; 4]) -> Vec<u8> {
    let [seconds, microseconds] = time;
    let fields = [size, id, seconds, microseconds, 5, 6, len, block, device, 4, 1, flags, 0, 1];
    fields.map(u32::to_be_bytes).concat()
}

fn read(len: u32, block: u32, device: u32) -> Vec<u8> {
    record(56, 0x4_0001, [1, 5], [len, block, device, 27])
}

fn trace(records: &[Vec<u8>]) -> Trace {
    let bytes = [HEADER, &records.concat()].concat();
    assert!(looks_like(&bytes));
    Trace::new("t", Cursor::new(bytes), Some(Format::Srt)).unwrap()
}

fn error(records: &[Vec<u8>]) -> String {
    trace(records).find_map(Result::err).expect("an error").to_string()
}

#[test]
fn reads_and_writes_of_devices() {
    let mut longer = record(60, 0x4_0002, [2, 999_999], [8192, u32::MAX, 0x0700_0108, 26]);
    longer.extend([0xaa; 4]);
    let mut trace = trace(&[read(4096, 16, 0x0800_0007), longer, read(512, 2, 0x0800_0007)]);
    let found: Vec<Request> = trace.by_ref().map(Result::unwrap).collect();
    let request = |time_ns, volume, kind, offset, len| Request { time_ns, volume, kind, offset, len };
    let expected = [
        request(1_000_005_000, 0, RequestKind::Read, 4096, 4096),
        request(2_999_999_000, 1, RequestKind::Write, 0xff_ffff_ff00, 8192),
        request(1_000_005_000, 0, RequestKind::Read, 512, 512),
    ];
    assert_eq!(found, expected);
    assert_eq!(trace.volumes(), [Volume::new("", "8,7"), Volume::new("", "7,264")]);
}

#[test]
fn wrong_fields_are_named_with_their_byte() {
    let at = HEADER.len() + 56;
    for (bad, told) in [
        (record(55, 0x4_0001, [0, 0], [1; 4]), "size is \"55 (0x37)\""),
        (record(4097, 0x4_0001, [0, 0], [1; 4]), "size is \"4097 (0x1001)\""),
        (record(56, 0x3_0001, [0, 0], [1; 4]), "id is \"196609 (0x30001)\""),
        (record(56, 0x4_0001, [0, 1_000_000], [1; 4]), "microseconds is \"1000000 (0xf4240)\""),
        (read(1, 1, 1)[..20].to_vec(), "the record is \"20 bytes\""),
        (record(57, 0x4_0001, [0, 0], [1; 4]), "the record is \"56 bytes\""),
    ] {
        let error = error(&[read(512, 0, 1), bad]);
        assert!(error.starts_with(&format!("t: byte {at}: {told}, expected")), "{error}");
    }
}

#[test]
fn the_header_is_checked_and_bounded() {
    let error = |bytes: Vec<u8>| {
        let trace = Trace::new("t", Cursor::new(bytes), Some(Format::Srt)).unwrap();
        trace.map(|request| request.expect_err("no request").to_string()).collect::<Vec<_>>().concat()
    };
    assert_eq!(error(Vec::new()), "", "an empty file is an empty trace");
    assert_eq!(error(HEADER.to_vec()), "", "a header without records too");
    assert!(error(b"$$TR_IOREC-1.2 older".to_vec()).contains("the header is \"$$TR_IOREC-1.2\""));
    assert!(error(b"$$TR_IOREC-1.3 no end".to_vec()).contains("the record is \"21 bytes\""));
    let endless = [&HEADER[..20], &vec![b' '; HEADER_BYTES_MAX as usize + 1]].concat();
    assert!(error(endless).contains("byte 0: the header is"));
}
