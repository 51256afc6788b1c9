//! MSR traces: good lines, bad lines, and back again.

use std::io::Cursor;

use proptest::prelude::*;

use crate::read::testing::{check_errors, error, request, requests, trace};
use crate::{Format, MsrWriter, Request, RequestKind, Trace, Volume, WriteError, open};

use super::{TICK_NS, careful, plain};
use crate::volumes::Volumes;

#[test]
fn a_line_becomes_a_request() {
    let text = "128166372003061629,web,1,Write,3160743424,4096,135731\r\n\r\n128166372003061630, web ,0,READ,512,8,7\r\n";
    let mut read = trace(Format::Msr, text);
    let requests: Vec<_> = read.by_ref().map(Result::unwrap).collect();
    let first = Request {
        time_ns: 12_816_637_200_306_162_900,
        volume: 0,
        kind: RequestKind::Write,
        offset: 3_160_743_424,
        len: 4096,
    };
    assert_eq!(requests[0], first);
    assert_eq!((requests[1].volume, requests[1].kind, requests[1].len), (1, RequestKind::Read, 8));
    assert_eq!(read.volumes(), [Volume::new("web", 1), Volume::new("web", 0)]);
}

#[test]
fn a_header_and_a_missing_last_line_end_are_fine() {
    let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,a,0,Read,0,1,0";
    assert_eq!(requests(Format::Msr, text).len(), 1);
    assert_eq!(requests(Format::Msr, format!("\u{feff}{text}")).len(), 1, "with a byte order mark");
    assert!(requests(Format::Msr, "").is_empty());
}

#[test]
fn large_offsets_are_read() {
    assert_eq!(request(Format::Msr, "1,a,0,Read,9223372036854775808,4096,0").3, 1 << 63);
}

#[test]
fn volumes_that_alternate_keep_their_numbers() {
    let text = "1,a,0,Read,0,1,0\n1,b,0,Read,0,1,0\n1,a,1,Read,0,1,0\n1,a,0,Read,0,1,0\n1,b,0,Read,0,1,0\n";
    let volumes: Vec<_> = requests(Format::Msr, text).iter().map(|request| request.volume).collect();
    assert_eq!(volumes, [0, 1, 2, 0, 1]);
}

#[test]
fn times_out_of_order_are_passed_on() {
    let requests = requests(Format::Msr, "9,a,0,Read,0,1,0\n3,a,0,Read,0,1,0\n");
    assert_eq!([requests[0].time_ns, requests[1].time_ns], [900, 300]);
}

#[test]
fn errors_name_line_finding_and_expectation() {
    let ticks = "expected a FILETIME (ticks of 100 ns) before the year 2185";
    let bytes = "expected a whole number of bytes, in a request below 4 GiB that ends below 2^64 bytes";
    let columns = "expected 7 fields: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
    let long = "a".repeat(256);
    let cases = [
        ("x,hm,0,Read,0,4096,1", format!(r#"Timestamp is "x", {ticks}"#)),
        (
            "18446744073709551615,hm,0,Read,0,4096,1",
            format!(r#"Timestamp is "18446744073709551615", {ticks}"#),
        ),
        ("-1,hm,0,Read,0,4096,1", format!(r#"Timestamp is "-1", {ticks}"#)),
        ("1,,0,Read,0,4096,1", r#"Hostname is "", expected a name of 1 to 255 bytes in UTF-8"#.to_owned()),
        (&format!("1,{long},0,Read,0,4096,1"), r#"Hostname is "aaaaa"#.to_owned()),
        ("1,hm,-1,Read,0,4096,1", r#"DiskNumber is "-1", expected a whole number"#.to_owned()),
        ("1,hm,0,Trim,0,4096,1", r#"Type is "Trim", expected Read or Write"#.to_owned()),
        ("1,hm,0,Read,,4096,1", format!(r#"Offset is "", {bytes}"#)),
        ("1,hm,0,Read,0,4294967296,1", format!(r#"Size is "4294967296", {bytes}"#)),
        ("1,hm,0,Read,18446744073709551615,1,1", format!(r#"Offset is "18446744073709551615", {bytes}"#)),
        ("1,hm,0,Read", format!(r#"the line is "1,hm,0,Read", {columns}"#)),
        ("1,a,0,Read,0,1,0,9", format!(r#"the line is "1,a,0,Read,0,1,0,9", {columns}"#)),
    ];
    let cases: Vec<_> = cases.iter().map(|(line, expected)| (*line, expected.as_str())).collect();
    check_errors(Format::Msr, "128166372003061629,hm,0,Read,0,4096,1", &cases);
}

#[test]
fn a_missing_file_and_a_cut_one_are_told() {
    let error = open("no/such/trace.csv").err().unwrap().to_string();
    assert!(error.starts_with("no/such/trace.csv: cannot be opened: "), "{error}");
    let mut cut = zstd::encode_all("1,a,0,Read,0,1,0\n".repeat(20_000).as_bytes(), 1).unwrap();
    cut.truncate(cut.len() - 3);
    for format in [Some(Format::Msr), None] {
        let mut read = Trace::new("t.csv", Cursor::new(cut.clone()), format).unwrap();
        let error = read.find_map(Result::err).unwrap().to_string();
        assert!(error.starts_with("t.csv: cannot be read after line "), "{error}");
    }
}

#[test]
fn a_binary_file_ends_with_an_error_and_little_memory() {
    let error = error(Format::Msr, vec![0u8; 10 << 20]);
    assert!(error.starts_with("line 1: the line is "), "{error}");
    assert!(error.len() < 1000);
}

#[test]
fn what_the_format_cannot_say_is_not_written() {
    let mut writer = MsrWriter::new(Vec::new());
    let request = Request { time_ns: 0, volume: 0, kind: RequestKind::Flush, offset: 0, len: 0 };
    let volume = Volume::new("a", 0);
    assert!(matches!(writer.write(&request, &volume), Err(WriteError::Kind { .. })));
    assert_eq!(writer.finish().unwrap(), b"");
}

fn any_request() -> impl Strategy<Value = (Request, String, u32)> {
    let kind = prop_oneof![Just(RequestKind::Read), Just(RequestKind::Write)];
    (0u64..u64::MAX / TICK_NS, kind, 0u64..1 << 63, any::<u32>(), "[a-z]{1,4}", 0u32..3).prop_map(
        |(ticks, kind, offset, len, host, disk)| {
            (Request { time_ns: ticks * TICK_NS, volume: 0, kind, offset, len }, host, disk)
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(requests in proptest::collection::vec(any_request(), 0..40)) {
        let mut writer = MsrWriter::new(Vec::new());
        for (request, host, disk) in &requests {
            writer.write(request, &Volume::new(host, disk)).unwrap();
        }
        let mut read = trace(Format::Msr, writer.finish().unwrap());
        for (request, host, disk) in requests {
            let found = read.next().unwrap().unwrap();
            prop_assert_eq!(&read.volumes()[found.volume as usize], &Volume::new(host, disk));
            prop_assert_eq!(Request { volume: 0, ..found }, request);
        }
        prop_assert!(read.next().is_none());
    }

    #[test]
    fn the_fast_way_and_the_careful_one_agree(
        (request, host, disk) in any_request(), at in 0usize..70, byte in prop_oneof![Just(None), any::<u8>().prop_map(Some)],
    ) {
        let mut writer = MsrWriter::new(Vec::new());
        writer.write(&request, &Volume::new(host, disk)).unwrap();
        let mut line = writer.finish().unwrap().trim_ascii_end().to_vec();
        let at = at % line.len();
        line[at] = byte.unwrap_or(line[at]);
        let fast = plain(&line, &mut Volumes::default());
        let slow = careful(false, &line, &mut Volumes::default());
        match fast {
            Some(fast) => prop_assert_eq!(slow.unwrap(), Some(fast)),
            None => prop_assert!(byte.is_some(), "a good line takes the slow way: {:?}", String::from_utf8_lossy(&line)),
        }
    }

    #[test]
    fn a_line_with_one_byte_changed_gives_at_most_one_error(at in 0usize..50, byte in any::<u8>()) {
        let mut text = b"128166372003061629,web,1,Write,3160743424,4096,135731\n".repeat(3);
        text[at] = byte;
        let read: Vec<_> = trace(Format::Msr, text).collect();
        let good = read.iter().filter(|request| request.is_ok()).count();
        prop_assert!(good >= 2 || read[good].is_err());
    }
}
