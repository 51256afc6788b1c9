//! The traces of the ARC paper (Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache",
//! FAST 2003), `.lis`.
//!
//! `start count ignored sequence`: the first unit, how many, and the number of the request. A unit is a
//! sector of 512 bytes in most of them (P1 to P14, the merged ones, S1 to S3, DS1, SPC1), and a page in the
//! database's (OLTP), which is taken as 4 KiB. There is no time: a request's time is its place in the file,
//! from 0, in nanoseconds. There is no kind: all requests are reads. All are for one volume.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, SECTOR_BYTES, exact_words, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

const PAGE_BYTES: u64 = 4096;

const START: Column =
    Column { name: "start", expected: "a whole number of units, in a request that ends below 2^64 bytes" };
const COUNT: Column = Column { name: "count", expected: "a whole number of units, in a request below 4 GiB" };
const IGNORED: Column = Column { name: "the third column", expected: "a whole number" };
const SEQUENCE: Column = Column { name: "sequence", expected: "a whole number" };

/// Units are sectors.
pub(crate) fn sectors(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Lis::new(SECTOR_BYTES)))
}

/// Units are pages.
pub(crate) fn pages(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Lis::new(PAGE_BYTES)))
}

struct Lis {
    start: Measure,
    count: Measure,
    requests: u64,
}

impl Lis {
    fn new(unit_bytes: u64) -> Self {
        let start = Measure { column: START, unit_bytes };
        let count = Measure { column: COUNT, unit_bytes };
        Self { start, count, requests: 0 }
    }
}

impl LineFormat for Lis {
    const COLUMNS: &'static str = "4 columns: start, count, ignored, sequence";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        let [start, count, ignored, sequence] = exact_words(line, Self::COLUMNS)?;
        let (offset, len) = extent((&self.start, start), (&self.count, count))?;
        IGNORED.digits(ignored)?;
        SEQUENCE.digits(sequence)?;
        let volume = volumes.index(START.name, b"", b"0")?;
        let time_ns = self.requests;
        self.requests += 1;
        Ok(Some(Request { time_ns, volume, kind: RequestKind::Read, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request, requests};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_read() {
        let expected = ("0".to_owned(), RequestKind::Read, 0, 230_027 * 512, 4096);
        assert_eq!(request(Format::Lis, "230027 8 0 0"), expected);
        assert_eq!(request(Format::LisPages, "3 2 0 0\r\n").3, 3 * 4096);
        assert_eq!(request(Format::LisPages, "3 2 0 0").4, 2 * 4096);
        assert_eq!(request(Format::Lis, "18014398509481984 1 0 9").3, 1 << 63);
    }

    #[test]
    fn the_time_is_the_place_in_the_file() {
        let times: Vec<_> =
            requests(Format::Lis, "1 1 0 7\n\n1 1 0 9\n1 1 0 8\n").iter().map(|r| r.time_ns).collect();
        assert_eq!(times, [0, 1, 2]);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1 1 0", r#"the line is "1 1 0", expected 4 columns: start"#),
            ("1 1 0 0 0", r#"the line is "1 1 0 0 0""#),
            ("-1 1 0 0", r#"start is "-1", expected a whole number of units"#),
            ("36028797018963968 1 0 0", r#"start is "36028797018963968""#),
            (
                "1 8388608 0 0",
                r#"count is "8388608", expected a whole number of units, in a request below 4 GiB"#,
            ),
            ("1 1 x 0", r#"the third column is "x", expected a whole number"#),
            ("1 1 0 x", r#"sequence is "x", expected a whole number"#),
        ];
        check_errors(Format::Lis, "1 1 0 0", &cases);
        check_errors(
            Format::LisPages,
            "1 1 0 0",
            &[("4503599627370496 1 0 0", r#"start is "4503599627370496""#)],
        );
    }
}
