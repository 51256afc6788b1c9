//! The Storage Performance Council's CSV, as in the UMass trace repository (Financial, WebSearch).
//!
//! `ASU,LBA,Size,Opcode,Timestamp` and, optionally, more fields that are not looked at. The ASU
//! (application-specific unit) is the volume, the LBA counts 512 bytes within it, the size is in bytes, the
//! opcode `r` or `w`, the time in seconds with decimals.

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, SECOND_NS, extent, fields};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;

const ASU: Column = Column { name: "ASU", expected: "a whole number" };
const LBA: Measure = Measure::sectors("LBA");
const SIZE: Measure = Measure::bytes("Size");
const OPCODE: Column = Column { name: "Opcode", expected: "r or w" };
const TIMESTAMP: Column = Column { name: "Timestamp", expected: "a time in seconds below 2^64 ns" };

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Spc))
}

struct Spc;

impl LineFormat for Spc {
    const COLUMNS: &'static str = "5 fields or more: ASU,LBA,Size,Opcode,Timestamp";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        let Some(([asu, lba, size, opcode, time], _)) = fields(line, b',') else {
            return Err(Wrong::new("the line", line, Self::COLUMNS));
        };
        let kind = OPCODE.kind(opcode, "r", "w")?;
        let time_ns = TIMESTAMP.time(time, SECOND_NS)?;
        let (offset, len) = extent((&LBA, lba), (&SIZE, size))?;
        let volume = volumes.index(ASU.name, b"", ASU.digits(asu)?)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request() {
        let expected = ("2".to_owned(), RequestKind::Write, 11_413_000, 657_728 * 512, 8192);
        assert_eq!(request(Format::Spc, "2,657728,8192,W,0.011413"), expected);
        assert_eq!(request(Format::Spc, "2, 657728, 8192, w, 0.011413, more, 7\r\n"), expected);
        assert_eq!(request(Format::Spc, "0,18014398509481984,512,r,0").3, 1 << 63);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("0,1,512,r", r#"the line is "0,1,512,r", expected 5 fields or more"#),
            ("x,1,512,r,0", r#"ASU is "x", expected a whole number"#),
            ("0,-1,512,r,0", r#"LBA is "-1", expected a whole number of sectors"#),
            (
                "0,36028797018963968,0,r,0",
                r#"LBA is "36028797018963968", expected a whole number of sectors"#,
            ),
            ("0,36028797018963967,512,r,0", r#"LBA is "36028797018963967""#),
            ("0,1,4294967296,r,0", r#"Size is "4294967296", expected a whole number of bytes"#),
            ("0,1,512,x,0", r#"Opcode is "x", expected r or w"#),
            ("0,1,512,r,-1.5", r#"Timestamp is "-1.5", expected a time in seconds"#),
            ("0,1,512,r,18446744074", r#"Timestamp is "18446744074""#),
        ];
        check_errors(Format::Spc, "0,1,512,r,0.5", &cases);
    }
}
