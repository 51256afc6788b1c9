//! The Systor'17 traces of a virtual desktop infrastructure (Lee et al., "Understanding Storage Traffic
//! Characteristics on Enterprise Virtual Desktop Infrastructure", SYSTOR 2017).
//!
//! `Timestamp,Response,IOType,LUN,Offset,Size`, the header being passed over: the time is in seconds with
//! decimals, the response time is not looked at (some lines leave it out), the type is `R` or `W`, offset
//! and size are in bytes.

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, SECOND_NS, exact_fields, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;

const TIMESTAMP: Column = Column { name: "Timestamp", expected: "a time in seconds below 2^64 ns" };
const IO_TYPE: Column = Column { name: "IOType", expected: "R or W" };
const LUN: Column = Column { name: "LUN", expected: "a whole number" };
const OFFSET: Measure = Measure::bytes("Offset");
const SIZE: Measure = Measure::bytes("Size");

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Systor))
}

struct Systor;

impl LineFormat for Systor {
    const COLUMNS: &'static str = "6 fields: Timestamp,Response,IOType,LUN,Offset,Size";

    fn parse(&mut self, first: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        if first && line.starts_with(b"Timestamp,Response,") {
            return Ok(None);
        }
        let [time, _, kind, lun, offset, size] = exact_fields(line, Self::COLUMNS)?;
        let time_ns = TIMESTAMP.time(time, SECOND_NS)?;
        let kind = IO_TYPE.kind(kind, "r", "w")?;
        let (offset, len) = extent((&OFFSET, offset), (&SIZE, size))?;
        let volume = volumes.index(LUN.name, b"", LUN.digits(lun)?)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request() {
        let line = "1456095145.133076000,0.000806000,R,0,899056122368,131072";
        let expected =
            ("0".to_owned(), RequestKind::Read, 1_456_095_145_133_076_000, 899_056_122_368, 131_072);
        assert_eq!(request(Format::Systor, line), expected);
        assert_eq!(
            request(Format::Systor, &format!("Timestamp,Response,IOType,LUN,Offset,Size\r\n{line}\r\n")),
            expected
        );
        assert_eq!(request(Format::Systor, "1,,W,6,9223372036854775808,512").3, 1 << 63);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1,1,R,0,0", r#"the line is "1,1,R,0,0", expected 6 fields: Timestamp"#),
            ("1,1,R,0,0,512,", r#"the line is "1,1,R,0,0,512,""#),
            ("x,1,R,0,0,512", r#"Timestamp is "x", expected a time in seconds"#),
            ("1,1,Read,0,0,512", r#"IOType is "Read", expected R or W"#),
            ("1,1,R,x,0,512", r#"LUN is "x", expected a whole number"#),
            ("1,1,R,0,1.5,512", r#"Offset is "1.5", expected a whole number of bytes"#),
            ("1,1,R,0,18446744073709551104,512", r#"Offset is "18446744073709551104""#),
            ("1,1,R,0,0,4294967296", r#"Size is "4294967296""#),
        ];
        check_errors(Format::Systor, "1.25,1,R,0,0,512", &cases);
    }
}
