use std::io::Cursor;

use super::*;
use crate::{Format, Trace, Volume};

/// A record as a machine of either byte order stores it.
fn record(order: Order, action: u32, sector: u64, len: u32, device: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |value: u64, width: usize| match order {
        Order::Little => bytes.extend(&value.to_le_bytes()[..width]),
        Order::Big => bytes.extend(&value.to_be_bytes()[8 - width..]),
    };
    let fields = [
        (u64::from(MAGIC), 4),
        (1, 4),
        (1_000_000_007, 8),
        (sector, 8),
        (len.into(), 4),
        (action.into(), 4),
        (4711, 4),
        (device.into(), 4),
        (0, 4),
        (0, 2),
        (payload.len() as u64, 2),
    ];
    fields.into_iter().for_each(|(value, width)| put(value, width));
    bytes.extend(payload);
    bytes
}

const ISSUE: u32 = category::ISSUE | ACTION_ISSUE;
const QUEUE: u32 = 1 << 20 | 1;
const SDA: u32 = 8 << 20;
/// Minor numbers have 20 bits.
const NVME: u32 = 259 << 20 | 0x1_2345;

fn trace(bytes: Vec<u8>) -> Trace {
    Trace::new("t", Cursor::new(bytes), Some(Format::Blktrace)).unwrap()
}

fn error(bytes: Vec<u8>) -> String {
    trace(bytes).find_map(Result::err).expect("an error").to_string()
}

#[test]
fn issued_requests_are_read_in_either_byte_order() {
    for order in [Order::Little, Order::Big] {
        let record =
            |action, sector, len, device, payload| record(order, action, sector, len, device, payload);
        let bytes = [
            record(category::NOTIFY, 0, 0, SDA, b"kworker\0"),
            record(QUEUE | category::READ, 8, 4096, SDA, b""),
            record(ISSUE | category::READ, 8, 4096, SDA, b""),
            record(ISSUE | category::WRITE | category::FLUSH, 16, 512, NVME, b""),
            record(ISSUE | category::WRITE | category::FLUSH, 0, 0, SDA, b""),
            record(ISSUE | category::DISCARD | category::WRITE, 1 << 54, 1 << 30, SDA, b""),
            record(ISSUE | ACTION_CGROUP | category::WRITE, 24, 512, SDA, &[9; 8]),
            record(ISSUE | category::COMMAND | category::READ, 0, 36, SDA, &[0x12; 600]),
            record(category::DRIVER | 16, 0, 0, SDA, b"abc"),
            record(ISSUE | category::READ, 0, 0, SDA, b""),
            record(ISSUE, 0, 512, SDA, b""),
        ];
        let bytes = bytes.concat();
        assert!(looks_like(&bytes));
        let mut trace = trace(bytes);
        let found: Vec<Request> = trace.by_ref().map(Result::unwrap).collect();
        let expected = [
            (0, RequestKind::Read, 4096, 4096),
            (1, RequestKind::Write, 8192, 512),
            (0, RequestKind::Flush, 0, 0),
            (0, RequestKind::Discard, 1 << 63, 1 << 30),
            (0, RequestKind::Write, 12288, 512),
        ];
        let expected = expected.map(|(volume, kind, offset, len)| Request {
            time_ns: 1_000_000_007,
            volume,
            kind,
            offset,
            len,
        });
        assert_eq!(found, expected, "{order:?}");
        assert_eq!(trace.volumes(), [Volume::new("", "8,0"), Volume::new("", "259,74565")]);
    }
}

#[test]
fn damage_is_named_with_its_byte() {
    let good = record(Order::Little, ISSUE | category::READ, 8, 4096, SDA, b"12");
    let other = record(Order::Big, ISSUE | category::READ, 8, 4096, SDA, b"");
    let far = record(Order::Little, ISSUE | category::READ, u64::MAX / 512, 512, SDA, b"");
    for (bad, told) in [
        (&good[..47], "the record is \"47 bytes\", expected a record of 48 bytes"),
        (&good[..49], "the record is \"49 bytes\", expected a record of 48 bytes and its payload"),
        (&other, "magic is \"125067621 (0x7746165)\""),
        (&[0; 48], "magic is \"0 (0x0)\""),
        (&far, "sector is \"36028797018963967 (0x7fffffffffffff)\""),
    ] {
        let error = error([&good, bad].concat());
        assert!(error.starts_with(&format!("t: byte 50: {told}")), "{error}");
    }
    assert!(!looks_like(b"abcd") && !looks_like(b"\x07ta"));
    assert!(trace(Vec::new()).next().is_none());
}
