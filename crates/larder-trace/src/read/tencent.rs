//! Traces of Tencent's Cloud Block Storage (Zhang et al., "OSCA: An Online-Model Based Cache Allocation
//! Scheme in Cloud Block Storage Systems", USENIX ATC 2020).
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`, a header being passed over: the time is in seconds, offset and
//! size are in sectors of 512 bytes, the type is 0 for a read and 1 for a write. The published files are
//! archives (`.tgz`), from which the traces must be taken first.

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, SECOND_NS, exact_fields, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;

const TIMESTAMP: Column = Column { name: "Timestamp", expected: "a time in seconds below 2^64 ns" };
const OFFSET: Measure = Measure::sectors("Offset");
const SIZE: Measure = Measure::sectors("Size");
const IO_TYPE: Column = Column { name: "IOType", expected: "0 (read) or 1 (write)" };
const VOLUME: Column = Column { name: "VolumeID", expected: "a whole number" };

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Tencent))
}

struct Tencent;

impl LineFormat for Tencent {
    const COLUMNS: &'static str = "5 fields: Timestamp,Offset,Size,IOType,VolumeID";

    fn parse(&mut self, first: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        if first && line.starts_with(b"Timestamp,Offset") {
            return Ok(None);
        }
        let [time, offset, size, kind, volume] = exact_fields(line, Self::COLUMNS)?;
        let time_ns = TIMESTAMP.time(time, SECOND_NS)?;
        let (offset, len) = extent((&OFFSET, offset), (&SIZE, size))?;
        let kind = IO_TYPE.kind(kind, "0", "1")?;
        let volume = volumes.index(VOLUME.name, b"", VOLUME.digits(volume)?)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request() {
        let expected =
            ("1063".to_owned(), RequestKind::Write, 1_538_323_199_000_000_000, 49_518_656 * 512, 1024 * 512);
        assert_eq!(request(Format::Tencent, "1538323199,49518656,1024,1,1063"), expected);
        assert_eq!(
            request(
                Format::Tencent,
                "Timestamp,Offset,Size,IOType,VolumeID\n1538323199,49518656,1024,1,1063"
            ),
            expected
        );
        assert_eq!(request(Format::Tencent, "0,18014398509481984,1,0,1").3, 1 << 63);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1,2,3,0", r#"the line is "1,2,3,0", expected 5 fields: Timestamp"#),
            ("1,2,3,0,5,6", r#"the line is "1,2,3,0,5,6""#),
            ("-1,2,3,0,5", r#"Timestamp is "-1", expected a time in seconds"#),
            ("1,,3,0,5", r#"Offset is "", expected a whole number of sectors"#),
            ("1,36028797018963968,3,0,5", r#"Offset is "36028797018963968""#),
            ("1,2,8388608,0,5", r#"Size is "8388608""#),
            ("1,2,3,2,5", r#"IOType is "2", expected 0 (read) or 1 (write)"#),
            ("1,2,3,0,v", r#"VolumeID is "v", expected a whole number"#),
        ];
        check_errors(Format::Tencent, "1,2,3,0,5", &cases);
    }
}
