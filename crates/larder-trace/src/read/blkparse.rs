//! The default text of `blkparse`: `major,minor cpu sequence time pid action rwbs ...`.
//!
//! Each event is a line. A request is counted when it is issued to the device (action `D`), so that what was
//! merged or split on the way counts as the device sees it; all other events are passed over. Devices without
//! a queue of their own (device mapper, md, ZFS volumes) issue nothing: trace the disks below them. After the
//! columns above such a line has `sector + count [process]`, or, without data, only the process. What it
//! does is told by the letters of `rwbs`: `R` reads, `W` writes, `D` discards; `F` before them asks for a
//! flush, and is a flush of its own where there are no data (with data, the write is what counts). `N` (none
//! of these, such as commands of SCSI) is passed over. The device's numbers name the volume.
//!
//! The summary at the end begins with a line `CPU...` or `Total ...`; it is not looked at.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, SECOND_NS, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

const DEVICE: Column = Column { name: "device", expected: "major,minor" };
const CPU: Column = Column { name: "cpu", expected: "a whole number" };
const SEQUENCE: Column = Column { name: "sequence", expected: "a whole number" };
const TIME: Column = Column { name: "time", expected: "a time in seconds below 2^64 ns" };
const PID: Column = Column { name: "pid", expected: "a whole number" };
const ACTION: Column = Column { name: "action", expected: "one or two letters" };
const RWBS: Column = Column { name: "rwbs", expected: "capital letters" };
const SECTOR: Measure = Measure::sectors("sector");
const COUNT: Measure = Measure::sectors("count");

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Blkparse { part: Part::Start }))
}

struct Blkparse {
    part: Part,
}

#[derive(PartialEq)]
enum Part {
    /// No event yet.
    Start,
    Events,
    Summary,
}

impl LineFormat for Blkparse {
    const COLUMNS: &'static str =
        "major,minor cpu sequence time pid action rwbs, and what belongs to the action";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        if self.part == Part::Events && (line.starts_with(b"CPU") || line.starts_with(b"Total ")) {
            self.part = Part::Summary;
        }
        if self.part == Part::Summary {
            return Ok(None);
        }
        let request = event(line, volumes)?;
        self.part = Part::Events;
        Ok(request)
    }
}

/// The request on a line, if it is an event that counts as one.
fn event(line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || words.next().ok_or_else(|| Wrong::new("the line", line, Blkparse::COLUMNS));
    let [device, cpu, sequence, time, pid, action, rwbs] =
        [word()?, word()?, word()?, word()?, word()?, word()?, word()?];
    check_device(device)?;
    CPU.digits(cpu)?;
    SEQUENCE.digits(sequence)?;
    let time_ns = TIME.time(time, SECOND_NS)?;
    PID.digits(pid)?;
    if action.len() > 2 || !action.iter().all(u8::is_ascii_alphabetic) {
        return Err(ACTION.wrong(action));
    }
    if action != b"D" {
        return Ok(None);
    }
    let extent = match (words.next(), words.next(), words.next()) {
        (Some(sector), Some(b"+"), Some(count)) => extent((&SECTOR, sector), (&COUNT, count))?,
        _ => (0, 0),
    };
    let Some(kind) = kind(rwbs, extent.1 > 0)? else { return Ok(None) };
    let (offset, len) = if kind == RequestKind::Flush { (0, 0) } else { extent };
    let volume = volumes.index(DEVICE.name, b"", device)?;
    Ok(Some(Request { time_ns, volume, kind, offset, len }))
}

fn check_device(device: &[u8]) -> Result<(), Wrong> {
    let mut numbers = device.split(|&byte| byte == b',');
    let mut number = || numbers.next().is_some_and(|number| DEVICE.digits(number).is_ok());
    if number() && number() && numbers.next().is_none() { Ok(()) } else { Err(DEVICE.wrong(device)) }
}

/// What the letters say of a request with data or without; none where it is no request.
fn kind(rwbs: &[u8], with_data: bool) -> Result<Option<RequestKind>, Wrong> {
    if !rwbs.iter().all(u8::is_ascii_uppercase) {
        return Err(RWBS.wrong(rwbs));
    }
    Ok(match (rwbs.strip_prefix(b"F"), with_data) {
        (Some(_), false) => Some(RequestKind::Flush),
        (None, false) => None,
        (after, true) => match after.unwrap_or(rwbs).first() {
            Some(b'R') => Some(RequestKind::Read),
            Some(b'W') => Some(RequestKind::Write),
            Some(b'D') => Some(RequestKind::Discard),
            _ => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request, requests};
    use crate::{Format, RequestKind};

    /// Columns that have a dispatch without data and what the letters say.
    fn kinds(rwbs: &str) -> Vec<RequestKind> {
        let text = format!("  8,0 1 2 0.5 9 D {rwbs} 8 + 8 [x]\n  8,0 1 2 0.5 9  D {rwbs} [x]\n");
        requests(Format::Blkparse, text).iter().map(|request| request.kind).collect()
    }

    #[test]
    fn a_dispatch_is_a_request() {
        let line = "  8,16   3        5     0.000026421  3645  D   R 4938888 + 256 [java]";
        let expected = ("8,16".to_owned(), RequestKind::Read, 26_421, 4_938_888 * 512, 256 * 512);
        assert_eq!(request(Format::Blkparse, line), expected);
        assert_eq!(
            request(Format::Blkparse, "8,0 1 1 1.5 7 D WFS 18014398509481984 + 8 [a b]\r\n").3,
            1 << 63
        );
    }

    #[test]
    fn only_dispatches_count_and_the_summary_is_passed_over() {
        let text = "\
            \x20 8,16   3   4   0.000011950  3645  I   R 8 + 8 [java]\n\
            \x20 8,16   3   5   0.000026421  3645  D   R 8 + 8 [java]\n\
            \x20 8,16   3   6   0.000026500  3645  A   R 8 + 8 <- (8,1) 0\n\
            \x20 8,16   3   6   0.000026500  3645  U   N [java] 1\n\
            \x20 8,16   3   0   0.000026500     0  m   N cfq schedule dispatch\n\
            \x20 8,16   3   7   0.001795683  3557  C   R 8 + 8 [0]\n\
            CPU0 (8,16):\n Reads Queued:           0,        0KiB\t Writes Queued:           0,        0KiB\n\
            \nTotal (8,16):\n  8,16 3 5 0.1 1 D R 8 + 8 [not an event]\n";
        assert_eq!(request(Format::Blkparse, text).2, 26_421);
    }

    #[test]
    fn letters_tell_the_kind() {
        for (rwbs, expected) in [
            ("R", &[RequestKind::Read][..]),
            ("RAM", &[RequestKind::Read]),
            ("WSM", &[RequestKind::Write]),
            ("WFS", &[RequestKind::Write]),
            ("D", &[RequestKind::Discard]),
            ("DE", &[RequestKind::Discard]),
            ("FWS", &[RequestKind::Write, RequestKind::Flush]),
            ("FN", &[RequestKind::Flush]),
            ("FF", &[RequestKind::Flush]),
            ("N", &[]),
        ] {
            assert_eq!(kinds(rwbs), expected, "{rwbs}");
        }
        assert_eq!(
            request(Format::Blkparse, "8,0 1 2 0.5 9 D FN 77 + 0 [x]").3,
            0,
            "a flush is for no place"
        );
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("8,0 1 2 0.5 9 D", r#"the line is "8,0 1 2 0.5 9 D", expected major,minor cpu sequence"#),
            ("8.0 1 2 0.5 9 D R 8 + 8 [x]", r#"device is "8.0", expected major,minor"#),
            ("8,0,1 1 2 0.5 9 D R 8 + 8 [x]", r#"device is "8,0,1""#),
            ("8,0 c 2 0.5 9 D R 8 + 8 [x]", r#"cpu is "c", expected a whole number"#),
            ("8,0 1 s 0.5 9 D R 8 + 8 [x]", r#"sequence is "s", expected a whole number"#),
            ("8,0 1 2 -0.5 9 D R 8 + 8 [x]", r#"time is "-0.5", expected a time in seconds"#),
            ("8,0 1 2 0.5 p D R 8 + 8 [x]", r#"pid is "p", expected a whole number"#),
            ("8,0 1 2 0.5 9 7 R 8 + 8 [x]", r#"action is "7", expected one or two letters"#),
            ("8,0 1 2 0.5 9 D r 8 + 8 [x]", r#"rwbs is "r", expected capital letters"#),
            ("8,0 1 2 0.5 9 D R s + 8 [x]", r#"sector is "s", expected a whole number of sectors"#),
            ("8,0 1 2 0.5 9 D R 36028797018963968 + 8 [x]", r#"sector is "36028797018963968""#),
            ("8,0 1 2 0.5 9 D R 8 + n [x]", r#"count is "n", expected a whole number of sectors"#),
        ];
        check_errors(Format::Blkparse, "8,0 1 2 0.5 9 D R 8 + 8 [x]", &cases);
        check_errors(Format::Blkparse, "8,0 1 2 0.5 9 D R 8 + 8 [x]", &[("Total\t8", "the line is")]);
    }
}
