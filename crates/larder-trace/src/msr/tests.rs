//! MSR traces: good lines, bad lines, and back again.

use super::*;
use proptest::prelude::*;
use std::io::Cursor;

fn reader(text: impl Into<Vec<u8>>) -> MsrReader {
    MsrReader::new("t.csv", Cursor::new(text.into())).unwrap()
}

/// The error of a trace whose second line is `line`.
fn error_of(line: &str) -> String {
    let text =
        format!("128166372003061629,hm,0,Read,0,4096,1\n{line}\n128166372003061630,hm,0,Read,0,4096,1\n");
    let mut read = reader(text);
    assert!(read.next().unwrap().is_ok());
    let error = read.next().unwrap().unwrap_err().to_string();
    assert!(read.next().is_none(), "reading goes on after an error");
    error
}

#[test]
fn a_line_becomes_a_request() {
    let text = "128166372003061629,web,1,Write,3160743424,4096,135731\r\n\r\n128166372003061630, web ,0,READ,512,8,7\r\n";
    let mut read = reader(text);
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
    assert_eq!(
        read.volumes(),
        [Volume { host: "web".into(), disk: 1 }, Volume { host: "web".into(), disk: 0 }]
    );
    assert_eq!(read.lines_read(), 3);
}

#[test]
fn a_header_and_a_missing_last_line_end_are_fine() {
    let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,a,0,Read,0,1,0";
    assert_eq!(reader(text).map(Result::unwrap).count(), 1);
    assert_eq!(reader("").count(), 0);
}

#[test]
fn large_offsets_are_read() {
    let request = reader("1,a,0,Read,9223372036854775808,4096,0").next().unwrap().unwrap();
    assert_eq!((request.offset, request.len), (1 << 63, 4096));
}

#[test]
fn volumes_that_alternate_keep_their_numbers() {
    let text = "1,a,0,Read,0,1,0\n1,b,0,Read,0,1,0\n1,a,1,Read,0,1,0\n1,a,0,Read,0,1,0\n1,b,0,Read,0,1,0\n";
    let volumes: Vec<_> = reader(text).map(|request| request.unwrap().volume).collect();
    assert_eq!(volumes, [0, 1, 2, 0, 1]);
}

#[test]
fn errors_name_file_line_finding_and_expectation() {
    let cases = [
        ("x,hm,0,Read,0,4096,1", r#"t.csv:2: Timestamp is "x", expected a FILETIME in ticks of 100 ns"#),
        (
            "18446744073709551615,hm,0,Read,0,4096,1",
            r#"t.csv:2: Timestamp is "18446744073709551615", expected a FILETIME before the year 2185"#,
        ),
        ("1,,0,Read,0,4096,1", r#"t.csv:2: Hostname is "", expected a name of 1 to 255 bytes in UTF-8"#),
        ("1,hm,-1,Read,0,4096,1", r#"t.csv:2: DiskNumber is "-1", expected a whole number below 2^32"#),
        ("1,hm,0,Trim,0,4096,1", r#"t.csv:2: Type is "Trim", expected Read or Write"#),
        ("1,hm,0,Read,,4096,1", r#"t.csv:2: Offset is "", expected a whole number of bytes"#),
        (
            "1,hm,0,Read,0,4294967296,1",
            r#"t.csv:2: Size is "4294967296", expected a whole number of bytes below 4 GiB"#,
        ),
        (
            "1,hm,0,Read,18446744073709551615,1,1",
            r#"t.csv:2: Offset is "18446744073709551615", expected a request that ends below 2^64 bytes"#,
        ),
        (
            "1,hm,0,Read",
            r#"t.csv:2: the line is "1,hm,0,Read", expected 7 fields: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"#,
        ),
        (
            "1,a,0,Read,0,1,0,9",
            r#"t.csv:2: the line is "1,a,0,Read,0,1,0,9", expected 7 fields: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"#,
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(error_of(line), expected);
    }
}

#[test]
fn a_missing_file_and_a_cut_one_are_told() {
    let error = open("no/such/trace.csv").err().unwrap().to_string();
    assert!(error.starts_with("no/such/trace.csv: cannot be opened: "), "{error}");
    let mut cut = zstd::encode_all("1,a,0,Read,0,1,0\n".repeat(9).as_bytes(), 1).unwrap();
    cut.truncate(cut.len() - 3);
    let error = reader(cut).find_map(Result::err).unwrap().to_string();
    assert!(error.starts_with("t.csv: cannot be read after line "), "{error}");
}

#[test]
fn a_binary_file_ends_with_an_error_and_little_memory() {
    let error = reader(vec![0u8; 10 << 20]).next().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("t.csv:1: the line is "), "{error}");
}

#[test]
fn what_the_format_cannot_say_is_not_written() {
    let mut writer = MsrWriter::new(Vec::new());
    let request = Request { time_ns: 0, volume: 0, kind: RequestKind::Flush, offset: 0, len: 0 };
    let volume = Volume { host: "a".into(), disk: 0 };
    assert!(matches!(writer.write(&request, &volume), Err(WriteError::Kind(RequestKind::Flush))));
    let request = Request { kind: RequestKind::Read, ..request };
    for host in ["", "a,b", "a\n", " a"] {
        let volume = Volume { host: host.into(), disk: 0 };
        assert!(matches!(writer.write(&request, &volume), Err(WriteError::Host(_))), "{host:?}");
    }
    assert_eq!(writer.finish().unwrap(), b"");
}

fn request() -> impl Strategy<Value = (Request, String, u32)> {
    let kind = prop_oneof![Just(RequestKind::Read), Just(RequestKind::Write)];
    (0u64..u64::MAX / TICK_NS, kind, 0u64..1 << 63, any::<u32>(), "[a-z]{1,4}", 0u32..3).prop_map(
        |(ticks, kind, offset, len, host, disk)| {
            (Request { time_ns: ticks * TICK_NS, volume: 0, kind, offset, len }, host, disk)
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(requests in proptest::collection::vec(request(), 0..40)) {
        let mut writer = MsrWriter::new(Vec::new());
        for (request, host, disk) in &requests {
            writer.write(request, &Volume { host: host.clone(), disk: *disk }).unwrap();
        }
        let mut read = reader(writer.finish().unwrap());
        for (request, host, disk) in requests {
            let found = read.next().unwrap().unwrap();
            prop_assert_eq!(&read.volumes()[found.volume as usize], &Volume { host, disk });
            prop_assert_eq!(Request { volume: 0, ..found }, request);
        }
        prop_assert!(read.next().is_none());
    }

    #[test]
    fn any_bytes_give_requests_or_one_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let errors = MsrReader::new("t", Cursor::new(bytes)).map_or(1, |read| read.filter(Result::is_err).count());
        prop_assert!(errors <= 1);
    }

    #[test]
    fn a_line_with_one_byte_changed_gives_at_most_one_error(at in 0usize..50, byte in any::<u8>()) {
        let mut text = b"128166372003061629,web,1,Write,3160743424,4096,135731\n".repeat(3);
        text[at] = byte;
        let read: Vec<_> = reader(text).collect();
        let good = read.iter().filter(|request| request.is_ok()).count();
        prop_assert!(good >= 2 || read[good].is_err());
    }
}
