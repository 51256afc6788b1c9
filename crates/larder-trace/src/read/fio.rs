//! The log that fio writes of a job and replays (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! The first line is `fio version 2 iolog` or `fio version 3 iolog`. Version 2 has lines `file action` and
//! `file action offset length`, version 3 has the time before them. Offset and length are in bytes, the file
//! names the volume. `read`, `write` and `trim` are requests, `sync`, `datasync` and `syncfs` are flushes;
//! `sync_file_range` (which makes nothing durable), `add`, `open`, `close` and `unlink` are passed over.
//!
//! The time of version 3 is in microseconds (fio's manual names no unit: this is what fio 3.33 writes).
//! Version 2 has no time but `wait`, whose offset says how many microseconds later the next request comes:
//! requests have the sum of the waits before them. That is what the manual says of `wait`; when it replays a
//! log, fio itself takes the number for milliseconds since it started.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, MICROSECOND_NS, Measure, extent, words};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

const HEADER: Column =
    Column { name: "the first line", expected: "fio version 2 iolog, or fio version 3 iolog" };
const TIMESTAMP: Column =
    Column { name: "timestamp", expected: "a whole number of microseconds below 2^64 ns" };
const FILE: Column = Column { name: "filename", expected: "a name" };
const FILE_ACTION: Column =
    Column { name: "action", expected: "add, open, close or unlink without offset and length" };
const ACTION: Column = Column {
    name: "action",
    expected: "read, write, trim, sync, datasync, syncfs, sync_file_range or (version 2) wait",
};
const WAIT: Column =
    Column { name: "offset", expected: "a whole number of microseconds, less than 2^64 ns in sum" };
const OFFSET: Measure = Measure::bytes("offset");
const LENGTH: Measure = Measure::bytes("length");

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Fio { version: None, waited_ns: 0 }))
}

struct Fio {
    /// None before the first line.
    version: Option<Version>,
    /// Sum of the waits of a version 2.
    waited_ns: u64,
}

#[derive(Clone, Copy)]
enum Version {
    Two,
    Three,
}

impl LineFormat for Fio {
    const COLUMNS: &'static str = "[timestamp, in version 3] filename action [offset length]";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        let Some(version) = self.version else {
            self.version = Some(header(line)?);
            return Ok(None);
        };
        let Some((words, count)) = words::<5>(line) else {
            return Err(Wrong::new("the line", line, Self::COLUMNS));
        };
        match (version, &words[..count]) {
            (Version::Two, [file, rest @ ..]) => self.action(self.waited_ns, file, rest, line, volumes),
            (Version::Three, [time, file, rest @ ..]) => {
                let time_ns = TIMESTAMP.number(time)?.checked_mul(MICROSECOND_NS);
                let time_ns = time_ns.ok_or_else(|| TIMESTAMP.wrong(time))?;
                self.action(time_ns, file, rest, line, volumes)
            }
            _ => Err(Wrong::new("the line", line, Self::COLUMNS)),
        }
    }
}

fn header(line: &[u8]) -> Result<Version, Wrong> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Ok(Version::Two),
        b"fio version 3 iolog" => Ok(Version::Three),
        _ => Err(HEADER.wrong(line)),
    }
}

impl Fio {
    fn action(
        &mut self,
        time_ns: u64,
        file: &[u8],
        action: &[&[u8]],
        line: &[u8],
        volumes: &mut Volumes,
    ) -> Result<Option<Request>, Wrong> {
        let (action, offset, length) = match *action {
            [b"add" | b"open" | b"close" | b"unlink"] => return Ok(None),
            [action] => return Err(FILE_ACTION.wrong(action)),
            [b"wait", wait, _] if matches!(self.version, Some(Version::Two)) => return self.wait(wait),
            [action, offset, length] => (action, offset, length),
            _ => return Err(Wrong::new("the line", line, Self::COLUMNS)),
        };
        let Some(kind) = kind(action)? else { return Ok(None) };
        let (offset, len) = match (kind, extent((&OFFSET, offset), (&LENGTH, length))?) {
            (RequestKind::Flush, _) => (0, 0),
            (_, extent) => extent,
        };
        let volume = volumes.index(FILE.name, b"", file)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }

    fn wait(&mut self, wait: &[u8]) -> Result<Option<Request>, Wrong> {
        let wait_ns = WAIT.number(wait)?.checked_mul(MICROSECOND_NS);
        let waited_ns = wait_ns.and_then(|wait_ns| self.waited_ns.checked_add(wait_ns));
        self.waited_ns = waited_ns.ok_or_else(|| WAIT.wrong(wait))?;
        Ok(None)
    }
}

/// What an action is as a request; none where it is no request.
fn kind(action: &[u8]) -> Result<Option<RequestKind>, Wrong> {
    match action {
        b"read" => Ok(Some(RequestKind::Read)),
        b"write" => Ok(Some(RequestKind::Write)),
        b"trim" => Ok(Some(RequestKind::Discard)),
        b"sync" | b"datasync" | b"syncfs" => Ok(Some(RequestKind::Flush)),
        b"sync_file_range" => Ok(None),
        _ => Err(ACTION.wrong(action)),
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{error, request, requests};
    use crate::{Format, RequestKind};

    const V3: &str = "fio version 3 iolog\n";
    const V2: &str = "fio version 2 iolog\n";

    #[test]
    fn version_3_tells_the_time() {
        let log = "4 /dev/a add\n106 /dev/a open\n115 /dev/a read 61440 4096\n402 /dev/a write 9223372036854775808 512\r\n\
            500 /dev/b trim 0 1048576\n600 /dev/a sync 724992 0\n601 /dev/a datasync 0 0\n700 /dev/a close\n";
        let found: Vec<_> = requests(Format::FioLog, format!("{V3}{log}"))
            .iter()
            .map(|request| (request.time_ns, request.volume, request.kind, request.offset, request.len))
            .collect();
        let expected = [
            (115_000, 0, RequestKind::Read, 61_440, 4096),
            (402_000, 0, RequestKind::Write, 1 << 63, 512),
            (500_000, 1, RequestKind::Discard, 0, 1 << 20),
            (600_000, 0, RequestKind::Flush, 0, 0),
            (601_000, 0, RequestKind::Flush, 0, 0),
        ];
        assert_eq!(found, expected);
        assert_eq!(request(Format::FioLog, &format!("{V3}0 /dev/a read 0 512")).0, "/dev/a");
    }

    #[test]
    fn version_2_has_waits() {
        let log = "/dev/a add\n/dev/a open\n/dev/a read 0 4096\n/dev/a wait 1500 0\n/dev/a write 4096 512\n/dev/a wait 1 0\n/dev/a sync 0 0\n";
        let requests = requests(Format::FioLog, format!("{V2}{log}"));
        let found: Vec<_> = requests.iter().map(|request| (request.time_ns, request.kind)).collect();
        assert_eq!(
            found,
            [(0, RequestKind::Read), (1_500_000, RequestKind::Write), (1_501_000, RequestKind::Flush)]
        );
    }

    #[test]
    fn what_only_starts_writing_is_no_flush() {
        let log = "1 f sync_file_range 0 4096\n2 f syncfs 0 0\n";
        let expected = ("f".to_owned(), RequestKind::Flush, 2000, 0, 0);
        assert_eq!(request(Format::FioLog, &format!("{V3}{log}")), expected);
    }

    #[test]
    fn the_first_line_tells_the_version() {
        assert!(requests(Format::FioLog, V2).is_empty());
        for text in ["fio version 1 iolog\n", "/dev/a read 0 4096\n"] {
            let error = error(Format::FioLog, text);
            assert!(error.contains("expected fio version 2 iolog, or fio version 3 iolog"), "{error}");
        }
    }

    /// Each line, after the header, is an error that begins as told.
    fn check(header: &str, cases: &[(&str, &str)]) {
        for (line, expected) in cases {
            let found = error(Format::FioLog, format!("{header}{line}\n"));
            assert!(found.starts_with(&format!("line 2: {expected}")), "{line:?}: {found:?}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        check(
            V3,
            &[
                ("1", r#"the line is "1", expected [timestamp"#),
                ("1 f", r#"the line is "1 f""#),
                ("1 f read 0", r#"the line is "1 f read 0""#),
                ("1 f read 0 512 1", r#"the line is "1 f read 0 512 1""#),
                ("x f read 0 512", r#"timestamp is "x", expected a whole number of microseconds"#),
                ("18446744073709552 f read 0 512", r#"timestamp is "18446744073709552""#),
                ("1 f delete", r#"action is "delete", expected add, open, close or unlink"#),
                ("1 f copy 0 512", r#"action is "copy", expected read, write"#),
                ("1 f wait 100 0", r#"action is "wait", expected read, write"#),
                ("1 f read x 512", r#"offset is "x", expected a whole number of bytes"#),
                ("1 f read 18446744073709551615 1", r#"offset is "18446744073709551615""#),
                ("1 f read 0 4294967296", r#"length is "4294967296""#),
            ],
        );
        check(
            V2,
            &[
                ("f", r#"the line is "f""#),
                ("f wait x 0", r#"offset is "x", expected a whole number of microseconds"#),
                ("f wait 18446744073709552 0", r#"offset is "18446744073709552""#),
            ],
        );
        let twice = format!("{V2}f wait 18446744073709551 0\nf wait 1000 0\n");
        assert!(error(Format::FioLog, twice).starts_with(r#"line 3: offset is "1000""#));
    }
}
