//! Detection on small texts of every format; the real files are in the tests of the crate.

use std::io::{BufReader, Cursor, Read};

use proptest::prelude::*;

use super::*;
use crate::Trace;

fn detected(content: impl Into<Vec<u8>>) -> Option<Format> {
    Trace::new("t", Cursor::new(content.into()), None).ok().map(|trace| trace.format())
}

/// A few lines of each format of text that detection can give.
const SAMPLES: [(Format, &str); 18] = [
    (Format::Msr, "128166372003061629,hm,0,Read,383496192,32768,413\n"),
    (Format::Spc, "0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041,extra\n"),
    (Format::Fiu, "89966522969723 4270 rpc.mountd 18579576 8 W 6 0 d6c75ba46e82326fefa545b57a12e221\n"),
    (Format::Blkparse, "  8,16   3        4     0.000011950  3645  I   R 4938888 + 256 [java]\n"),
    (Format::Alibaba, "419,W,8792731648,16384,1577808144360767\n"),
    (Format::Tencent, "1538323200,4247200,128,1,1058\n"),
    (Format::Systor, "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133,,R,0,899056122368,131072\n"),
    (Format::Disksim, "0.000000 0 303567 7 0\n26.214000 0 55590 6 1\n"),
    (Format::Ssdsim, "26214001 0 303574 7 0\n78643005 1 55596 6 1\n"),
    (Format::Dtrs, "0 0 280605840 2 1\n979 0 287641400 128 1\n"),
    (Format::Heimdall, "0.000 0 200626176 4096 0\n223.412 0 3159347200 36864 0\n"),
    (Format::FioLog, "fio version 2 iolog\n/dev/a add\n/dev/a read 0 4096\n"),
    (Format::FioLog, "fio version 3 iolog\n0 /dev/a add\n"),
    (Format::LibCacheSimCsv, "time,obj_id,obj_size,op\n1,2,3,get\n"),
    (Format::LibCacheSimCsv, "version,time,op,size,lbn\n1,33898,2a,512,42932745\n"),
    (Format::Lis, "230027 8 0 0\n1842745 64 0 1\n"),
    (Format::LisPages, "1 1 0 0\n2 1 0 0\n"),
    (Format::Plain, "# made by hand\nR 17\nW 4 2\n"),
];

#[test]
fn every_format_of_text_is_told() {
    for (format, text) in SAMPLES {
        assert_eq!(detected(text), Some(format), "{text:?}");
        assert_eq!(detected(text.replace('\n', "\r\n")), Some(format), "{text:?} with Windows line ends");
        assert_eq!(detected(format!("\u{feff}\n{}", text.trim_end())), Some(format), "{text:?} after a mark");
        assert_eq!(
            detected(zstd::encode_all(text.as_bytes(), 1).unwrap()),
            Some(format),
            "{text:?} compressed"
        );
    }
}

#[test]
fn the_window_may_end_within_a_line() {
    for (format, text) in
        SAMPLES.into_iter().filter(|(_, text)| text.lines().count() == 1 || text.starts_with("1 1"))
    {
        let whole = text.repeat(WINDOW_BYTES as usize / text.len() + 10);
        assert_eq!(detected(whole), Some(format), "{text:?}");
    }
}

#[test]
fn a_mistake_beyond_the_window_is_an_error_of_the_reader() {
    let line = "1,a,0,Read,0,512,0\n";
    let lines = WINDOW_BYTES as usize / line.len() + 2;
    let mut trace = Trace::new("t", Cursor::new(format!("{}oops\n", line.repeat(lines))), None).unwrap();
    let error = trace.find_map(Result::err).unwrap().to_string();
    assert!(error.starts_with(&format!("t: line {}: the line is \"oops\"", lines + 1)), "{error}");
}

#[test]
fn nothing_is_an_empty_trace() {
    for content in ["", "\n", " \r\n\r\n", "\u{feff}", "# only a comment\n"] {
        let mut trace = Trace::new("t", Cursor::new(content.as_bytes()), None).unwrap();
        assert_eq!(trace.format(), Format::Plain, "{content:?}");
        assert!(trace.next().is_none() && trace.volumes().is_empty(), "{content:?}");
    }
}

#[test]
fn what_is_no_trace_is_told_with_all_names() {
    let endless_line = "1".repeat(WINDOW_BYTES as usize + 1);
    for content in [
        "hello world\n",
        "1 2\n",
        "{\"a\": 1}",
        "oops\n1,a,0,Read,0,512,0\n",
        "# a comment\n\noops\n",
        endless_line.as_str(),
        "\0\0\0\n",
    ] {
        let error =
            Trace::new("t", Cursor::new(content.as_bytes().to_vec()), None).err().unwrap().to_string();
        assert!(
            error.starts_with("t: the content fits none of the trace formats (msr, spc, fiu, "),
            "{error}"
        );
        let begins = format!("it begins with {:?}", content.lines().next().unwrap_or_default());
        assert!(error.contains(&begins[..begins.len().min(40)]), "{error}");
    }
}

/// A whole trace with a mistake in its first lines is told with its place: that a text is in no format is no help.
#[test]
fn a_mistake_within_the_window_is_told_where_it_stands() {
    for (format, text) in SAMPLES {
        for end in ["\n", "\r\n"] {
            let good = text.replace('\n', end);
            let error = |text: String| {
                let mut trace = Trace::new("t", Cursor::new(text.into_bytes()), None).unwrap();
                assert_eq!(trace.format(), format, "{good:?}");
                trace.find_map(Result::err).unwrap().to_string()
            };
            let line = good.lines().count() + 1;
            let found = error(format!("{good}oops{end}{good}"));
            assert!(found.starts_with(&format!("t: line {line}: the line is \"oops\"")), "{found}");
            assert!(found.ends_with(&format!("(format {format})")), "{found}");
            let marked = error(format!("\u{feff}{end}{good}{good}oops"));
            assert!(marked.starts_with("t: line "), "{marked}");
        }
    }
}

#[test]
fn the_reader_that_gets_furthest_tells_the_mistake() {
    for (text, told) in [
        ("R 1\nR 2 3\nF 4\n", "line 3: kind is \"F\", expected R or W (format plain)"),
        ("1,2,3\n1,2,3\n1,x,3\n", "line 3: obj_id is \"x\""),
        ("0.5 0 512 512 1\n0.6 0 1024 512 2\n0.7 0 1 1\n", "line 3: the line is"),
        ("fio version 3 iolog\nx f read 0 512\n", "line 2: timestamp is \"x\""),
    ] {
        let mut trace = Trace::new("t", Cursor::new(text), None).unwrap();
        let error = trace.find_map(Result::err).unwrap().to_string();
        assert!(error.starts_with(&format!("t: {told}")), "{text:?}: {error}");
    }
}

#[test]
fn a_beginning_that_cannot_be_read_is_told() {
    let cut = &zstd::encode_all("1,a,0,Read,0,512,0\n".as_bytes(), 1).unwrap()[..6];
    let error = Trace::new("t", Cursor::new(cut.to_vec()), None).err().unwrap().to_string();
    assert!(error.starts_with("t: cannot be opened: "), "{error}");
    // Broken off within the first line: not enough to tell a format, and that is not what is wrong.
    let input = BufReader::new(Cursor::new(b"128166372003061629,hm,0,Re").chain(Failing));
    let error = Trace::new("t", input, None).err().unwrap().to_string();
    assert_eq!(error, "t: cannot be opened: broken");
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("broken"))
    }
}

/// What never ends is read no further than to the first mistake.
#[test]
fn endless_input_of_any_kind_takes_little_memory() {
    for format in Format::ALL {
        for byte in [0, b' ', b'0', b'x', 0xff] {
            let mut trace = Trace::new("t", io::repeat(byte), Some(format)).unwrap();
            let mut requests = Vec::new();
            let read = trace.read_batch(&mut requests, 1000);
            assert!(read.is_err() || requests.len() == 1000, "{format} {byte}");
        }
    }
}

#[test]
fn units_are_guessed_from_the_distance_of_requests() {
    let text = |times: &[u64]| times.iter().map(|time| format!("{time} 0 8 8 1\n")).collect::<String>();
    for (times, format) in [
        (&[0, 1000, 2000][..], Format::Ssdsim),
        (&[1, 100_001], Format::Ssdsim),
        (&[1, 49_999], Format::Dtrs),
        (&[7], Format::Dtrs),
        (&[1000, 1], Format::Dtrs),
    ] {
        assert_eq!(detected(text(times)), Some(format), "{times:?}");
    }
    assert_eq!(detected("0.5 0 8 1 1\n"), Some(Format::Disksim));
    assert_eq!(detected("0.5 0 1024 512 1\n"), Some(Format::Heimdall));
}

#[test]
fn detection_takes_no_more_than_its_window() {
    let endless = BufReader::new(Cursor::new(b"1 1 0 0\n".repeat(8192)).chain(io::repeat(b'x')));
    let (format, _) = detect("t", Box::new(endless)).unwrap();
    assert_eq!(format, Format::LisPages);
}

proptest! {
    /// Bytes made of what traces are made of reach further into the readers than any bytes do.
    #[test]
    fn any_content_gives_requests_or_one_error_in_every_format(
        random in proptest::collection::vec(any::<u8>(), 0..300),
        pieces in proptest::collection::vec(prop::sample::select(&[
            "\n", "\r\n", " ", ",", ".", "-", "0", "1", "8", "R", "w", "Read", "D", "+", "8,0", "CPU", "#", "\t",
            "18446744073709551615", "36028797018963967", "fio version 3 iolog\n", "time,obj_id\n", "\u{feff}",
        ]), 0..60),
        sample in 0..SAMPLES.len(),
    ) {
        let contents = [random, pieces.concat().into_bytes(), (SAMPLES[sample].1.to_owned() + &pieces.concat()).into_bytes()];
        for content in contents {
            for format in Format::ALL.into_iter().map(Some).chain([None]) {
                let Ok(trace) = Trace::new("t", Cursor::new(content.clone()), format) else { continue };
                let mut errors = 0;
                for request in trace {
                    match request {
                        Ok(request) => prop_assert!(request.offset.checked_add(request.len.into()).is_some()),
                        Err(_) => errors += 1,
                    }
                }
                prop_assert!(errors <= 1, "{:?}: {} errors", format, errors);
            }
        }
    }
}
