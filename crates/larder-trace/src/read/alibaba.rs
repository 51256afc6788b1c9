//! Alibaba's block storage traces of 2020 (Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads
//! in Large-Scale Production", IISWC 2020).
//!
//! `device_id,opcode,offset,length,timestamp`, a header being passed over: the device is a virtual disk, the
//! opcode `R` or `W`, offset and length are in bytes, the time in microseconds.

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, MICROSECOND_NS, Measure, exact_fields, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;

const DEVICE: Column = Column { name: "device_id", expected: "a whole number" };
const OPCODE: Column = Column { name: "opcode", expected: "R or W" };
const OFFSET: Measure = Measure::bytes("offset");
const LENGTH: Measure = Measure::bytes("length");
const TIMESTAMP: Column = Column { name: "timestamp", expected: "a time in microseconds below 2^64 ns" };

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Alibaba))
}

struct Alibaba;

impl LineFormat for Alibaba {
    const COLUMNS: &'static str = "5 fields: device_id,opcode,offset,length,timestamp";

    fn parse(&mut self, first: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        if first && line.starts_with(b"device_id,") {
            return Ok(None);
        }
        let [device, opcode, offset, length, time] = exact_fields(line, Self::COLUMNS)?;
        let kind = OPCODE.kind(opcode, "r", "w")?;
        let (offset, len) = extent((&OFFSET, offset), (&LENGTH, length))?;
        let time_ns = TIMESTAMP.time(time, MICROSECOND_NS)?;
        let volume = volumes.index(DEVICE.name, b"", DEVICE.digits(device)?)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request() {
        let expected = (
            "419".to_owned(),
            RequestKind::Write,
            1_577_808_000_000_046_000,
            9_223_372_036_854_775_808,
            4096,
        );
        assert_eq!(request(Format::Alibaba, "419,W,9223372036854775808,4096,1577808000000046"), expected);
        let with_header =
            "device_id,opcode,offset,length,timestamp\n419,W,9223372036854775808,4096,1577808000000046\n";
        assert_eq!(request(Format::Alibaba, with_header), expected);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1,R,0,4096", r#"the line is "1,R,0,4096", expected 5 fields: device_id"#),
            ("1,R,0,4096,1,2", r#"the line is "1,R,0,4096,1,2", expected 5 fields: device_id"#),
            ("d,R,0,4096,1", r#"device_id is "d", expected a whole number"#),
            ("1,RW,0,4096,1", r#"opcode is "RW", expected R or W"#),
            ("1,R,x,4096,1", r#"offset is "x", expected a whole number of bytes"#),
            ("1,R,18446744073709551615,1,1", r#"offset is "18446744073709551615""#),
            ("1,R,0,-4096,1", r#"length is "-4096", expected a whole number of bytes"#),
            (
                "1,R,0,4096,18446744073709552",
                r#"timestamp is "18446744073709552", expected a time in microseconds"#,
            ),
            ("device_id,opcode,offset,length,timestamp", r#"opcode is "opcode""#),
        ];
        check_errors(Format::Alibaba, "1,R,0,4096,1", &cases);
    }
}
