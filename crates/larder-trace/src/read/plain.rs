//! The plain text format, for traces made by hand or by a script: `R|W block [count]`.
//!
//! ```text
//! # a line that begins with # is a comment
//! R 17
//! W 4 2
//! ```
//!
//! A block has 4 KiB; the count is 1 where it is left out. There is no time: a request's time is its place
//! in the file, from 0, in nanoseconds. All requests are for one volume.

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, extent, words};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;

const BLOCK_BYTES: u64 = 4096;

const KIND: Column = Column { name: "kind", expected: "R or W" };
const BLOCK: Measure = measure("block", "a whole number of 4 KiB, in a request that ends below 2^64 bytes");
const COUNT: Measure = measure("count", "a whole number of 4 KiB, in a request below 4 GiB");

const fn measure(name: &'static str, expected: &'static str) -> Measure {
    Measure { column: Column { name, expected }, unit_bytes: BLOCK_BYTES }
}

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Plain { requests: 0 }))
}

struct Plain {
    requests: u64,
}

impl LineFormat for Plain {
    const COLUMNS: &'static str = "R|W block [count]";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        if line.trim_ascii_start().starts_with(b"#") {
            return Ok(None);
        }
        let (kind, block, count) = match words::<3>(line) {
            Some(([kind, block, _], 2)) => (kind, block, &b"1"[..]),
            Some(([kind, block, count], 3)) => (kind, block, count),
            _ => return Err(Wrong::new("the line", line, Self::COLUMNS)),
        };
        let kind = KIND.kind(kind, "r", "w")?;
        let (offset, len) = extent((&BLOCK, block), (&COUNT, count))?;
        let volume = volumes.index(KIND.name, b"", b"0")?;
        let time_ns = self.requests;
        self.requests += 1;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request, requests};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request() {
        let expected = ("0".to_owned(), RequestKind::Read, 0, 17 * 4096, 4096);
        assert_eq!(request(Format::Plain, "# two\r\n\r\n  # comments\r\nR 17\r\n"), expected);
        assert_eq!(request(Format::Plain, "w\t4  2").1, RequestKind::Write);
        assert_eq!(request(Format::Plain, "W 4 2").4, 8192);
        assert_eq!(request(Format::Plain, "R 2251799813685248").3, 1 << 63);
    }

    #[test]
    fn the_time_is_the_place_in_the_file() {
        let times: Vec<_> =
            requests(Format::Plain, "R 1\n# x\nR 1\nW 2\n").iter().map(|r| r.time_ns).collect();
        assert_eq!(times, [0, 1, 2]);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("R", r#"the line is "R", expected R|W block [count]"#),
            ("R 1 1 1", r#"the line is "R 1 1 1""#),
            ("F 1", r#"kind is "F", expected R or W"#),
            ("R x", r#"block is "x", expected a whole number of 4 KiB"#),
            ("R 4503599627370495", r#"block is "4503599627370495""#),
            ("R 1 -1", r#"count is "-1", expected a whole number of 4 KiB, in a request below 4 GiB"#),
            ("R 1 1048576", r#"count is "1048576""#),
        ];
        check_errors(Format::Plain, "R 1", &cases);
    }
}
