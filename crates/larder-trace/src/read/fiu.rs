//! The traces of Florida International University (Koller and Rangaswami, "I/O Deduplication", FAST 2010),
//! as their `blkparse` files have them.
//!
//! `time pid process block count kind major minor md5`: the time is in nanoseconds, block and count are in
//! sectors of 512 bytes, the kind is `R` or `W`. The device's numbers name the volume, as `major,minor`. The
//! name of the process may hold spaces; the hash of the content is not looked at.

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, exact_words, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;

const TIME: Column = Column { name: "time", expected: "a whole number of nanoseconds below 2^64" };
const PID: Column = Column { name: "pid", expected: "a whole number" };
const BLOCK: Measure = Measure::sectors("block");
const COUNT: Measure = Measure::sectors("count");
const KIND: Column = Column { name: "kind", expected: "R or W" };
const MAJOR: Column = Column { name: "major", expected: "a whole number below 2^32" };
const MINOR: Column = Column { name: "minor", expected: "a whole number below 2^32" };

/// Digits of a number below 2^32.
const DIGITS_MAX: usize = 10;

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Fiu))
}

struct Fiu;

impl LineFormat for Fiu {
    const COLUMNS: &'static str = "9 columns: time, pid, process, block, count, kind, major, minor, md5";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        let Some((left, right)) = around_process(line) else {
            return Err(Wrong::new("the line", line, Self::COLUMNS));
        };
        let [time, pid] = exact_words(left, Self::COLUMNS)?;
        let [block, count, kind, major, minor, _] = exact_words(right, Self::COLUMNS)?;
        PID.digits(pid)?;
        let time_ns = TIME.number(time)?;
        let (offset, len) = extent((&BLOCK, block), (&COUNT, count))?;
        let kind = KIND.kind(kind, "r", "w")?;
        let volume = volume(major, minor, volumes)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

/// The first two words, and the last six, with at least one word between them.
fn around_process(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    let left = (0..2).try_fold(0, |at, _| {
        let word = at + line[at..].iter().position(|byte| !byte.is_ascii_whitespace())?;
        Some(word + line[word..].iter().position(u8::is_ascii_whitespace)?)
    })?;
    let right = (0..6).try_fold(line.len(), |at, _| {
        let word = line[..at].iter().rposition(|byte| !byte.is_ascii_whitespace())?;
        Some(line[..word].iter().rposition(u8::is_ascii_whitespace)? + 1)
    })?;
    let process = line.get(left..right)?;
    (!process.trim_ascii().is_empty()).then_some((&line[..left], &line[right..]))
}

/// The volume `major,minor`.
fn volume(major: &[u8], minor: &[u8], volumes: &mut Volumes) -> Result<u32, Wrong> {
    for (column, text) in [(&MAJOR, major), (&MINOR, minor)] {
        if column.digits(text)?.len() > DIGITS_MAX {
            return Err(column.wrong(text));
        }
    }
    let mut name = [b','; 2 * DIGITS_MAX + 1];
    let len = major.len() + 1 + minor.len();
    name[..major.len()].copy_from_slice(major);
    name[major.len() + 1..len].copy_from_slice(minor);
    volumes.index(MAJOR.name, b"", &name[..len])
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request, requests};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request() {
        let line = "89966522969723 4270 rpc.mountd 18579576 8 W 6 0 d6c75ba46e82326fefa545b57a12e221";
        let expected = ("6,0".to_owned(), RequestKind::Write, 89_966_522_969_723, 18_579_576 * 512, 4096);
        assert_eq!(request(Format::Fiu, line), expected);
        assert_eq!(request(Format::Fiu, &line.replace("rpc.mountd", "Web  Content")), expected);
        assert_eq!(request(Format::Fiu, "0 0 p 18014398509481984 8 R 4294967295 4294967295 x").3, 1 << 63);
    }

    #[test]
    fn devices_are_volumes() {
        let text = "1 2 p 0 8 R 8 1 h\n1 2 p 0 8 R 8 16 h\n1 2 p 0 8 R 81 6 h\n1 2 p 0 8 R 8 1 h\n";
        let volumes: Vec<_> = requests(Format::Fiu, text).iter().map(|request| request.volume).collect();
        assert_eq!(volumes, [0, 1, 2, 0]);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1 2 0 8 R 6 0 h", r#"the line is "1 2 0 8 R 6 0 h", expected 9 columns: time"#),
            ("1 2", r#"the line is "1 2""#),
            ("x 2 p 0 8 R 6 0 h", r#"time is "x", expected a whole number of nanoseconds"#),
            ("1 x p 0 8 R 6 0 h", r#"pid is "x", expected a whole number"#),
            ("1 2 p x 8 R 6 0 h", r#"block is "x", expected a whole number of sectors"#),
            ("1 2 p 36028797018963968 8 R 6 0 h", r#"block is "36028797018963968""#),
            ("1 2 p 0 8388608 R 6 0 h", r#"count is "8388608""#),
            ("1 2 p 0 8 D 6 0 h", r#"kind is "D", expected R or W"#),
            ("1 2 p 0 8 R x 0 h", r#"major is "x", expected a whole number below 2^32"#),
            ("1 2 p 0 8 R 6 12345678901 h", r#"minor is "12345678901", expected a whole number below 2^32"#),
        ];
        check_errors(Format::Fiu, "1 2 p 0 8 R 6 0 h", &cases);
    }
}
