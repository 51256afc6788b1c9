//! The ASCII formats of five columns that simulators of disks and SSDs read: `time device block count kind`.
//!
//! | format | time in | block and count in | kind |
//! | --- | --- | --- | --- |
//! | DiskSim (its manual, section 4.7) | milliseconds, with decimals | sectors of 512 bytes | hexadecimal flags, bit 0 set for a read |
//! | SSDSim, MQSim | nanoseconds | sectors | 1 read, 0 write |
//! | DTRS (Microsoft's production servers) | microseconds | sectors | 1 read, 0 write |
//! | Heimdall (cuts of MSR volumes) | milliseconds, with decimals | bytes | 1 read, 0 write |

use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, DEVICE, MICROSECOND_NS, MILLISECOND_NS, Measure, exact_words, extent};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

pub(crate) fn disksim(input: Input) -> Box<dyn Source> {
    open(input, Ascii { unit_ns: MILLISECOND_NS, time: MILLISECONDS, kind: Kind::Flags, ..IN_SECTORS })
}

pub(crate) fn ssdsim(input: Input) -> Box<dyn Source> {
    open(input, IN_SECTORS)
}

pub(crate) fn dtrs(input: Input) -> Box<dyn Source> {
    let time = Column { name: "time", expected: "a time in microseconds below 2^64 ns" };
    open(input, Ascii { unit_ns: MICROSECOND_NS, time, ..IN_SECTORS })
}

pub(crate) fn heimdall(input: Input) -> Box<dyn Source> {
    let (offset, size) = (Measure::bytes("offset"), Measure::bytes("size"));
    open(
        input,
        Ascii { unit_ns: MILLISECOND_NS, time: MILLISECONDS, block: offset, count: size, ..IN_SECTORS },
    )
}

fn open(input: Input, format: Ascii) -> Box<dyn Source> {
    Box::new(LineSource::new(input, format))
}

const MILLISECONDS: Column = Column { name: "time", expected: "a time in milliseconds below 2^64 ns" };

/// SSDSim's, and what the others have in common with it.
const IN_SECTORS: Ascii = Ascii {
    unit_ns: 1,
    time: Column { name: "time", expected: "a whole number of nanoseconds below 2^64" },
    block: Measure::sectors("block"),
    count: Measure::sectors("count"),
    kind: Kind::Digit,
};

const DIGIT: Column = Column { name: "kind", expected: "1 (read) or 0 (write)" };
const FLAGS: Column = Column { name: "flags", expected: "a hexadecimal number below 2^32, odd for a read" };

/// How one of the formats writes the five columns.
struct Ascii {
    unit_ns: u64,
    time: Column,
    block: Measure,
    count: Measure,
    kind: Kind,
}

/// How the last column tells a read from a write.
enum Kind {
    /// 1 or 0.
    Digit,
    /// By bit 0 of a hexadecimal number.
    Flags,
}

impl Kind {
    fn of(&self, text: &[u8]) -> Result<RequestKind, Wrong> {
        if let Self::Digit = self {
            return DIGIT.kind(text, "1", "0");
        }
        let good = text.len() <= 8 && text.iter().all(u8::is_ascii_hexdigit);
        match text.last().filter(|_| good).and_then(|&last| char::from(last).to_digit(16)) {
            Some(last) if last & 1 == 1 => Ok(RequestKind::Read),
            Some(_) => Ok(RequestKind::Write),
            None => Err(FLAGS.wrong(text)),
        }
    }
}

impl Ascii {
    /// A nanosecond has no decimals.
    fn time_ns(&self, text: &[u8]) -> Result<u64, Wrong> {
        match self.unit_ns {
            1 => self.time.number(text),
            unit_ns => self.time.time(text, unit_ns),
        }
    }
}

impl LineFormat for Ascii {
    const COLUMNS: &'static str = "5 columns: time, device, block, count, kind";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        let [time, device, block, count, kind] = exact_words(line, Self::COLUMNS)?;
        let time_ns = self.time_ns(time)?;
        let (offset, len) = extent((&self.block, block), (&self.count, count))?;
        let kind = self.kind.of(kind)?;
        let volume = volumes.index(DEVICE.name, b"", DEVICE.digits(device)?)?;
        Ok(Some(Request { time_ns, volume, kind, offset, len }))
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, request};
    use crate::{Format, RequestKind};

    #[test]
    fn a_line_becomes_a_request_in_the_units_of_its_format() {
        let line = "979 3 1048576 8192 1";
        for (format, time_ns, offset, len) in [
            (Format::Ssdsim, 979, 1 << 29, 1 << 22),
            (Format::Mqsim, 979, 1 << 29, 1 << 22),
            (Format::Dtrs, 979_000, 1 << 29, 1 << 22),
            (Format::Disksim, 979_000_000, 1 << 29, 1 << 22),
            (Format::Heimdall, 979_000_000, 1 << 20, 8192),
        ] {
            assert_eq!(
                request(format, line),
                ("3".to_owned(), RequestKind::Read, time_ns, offset, len),
                "{format}"
            );
            assert_eq!(request(format, "1 0 0 1 0").1, RequestKind::Write, "{format}");
        }
        assert_eq!(request(Format::Heimdall, "223.412 0 3159347200 36864 0").2, 223_412_000);
        assert_eq!(request(Format::Ssdsim, "0 0 18014398509481984 8 1").3, 1 << 63);
    }

    #[test]
    fn the_flags_of_disksim_are_hexadecimal() {
        for (flags, kind) in [
            ("1", RequestKind::Read),
            ("b", RequestKind::Read),
            ("1A", RequestKind::Write),
            ("8000001F", RequestKind::Read),
        ] {
            assert_eq!(request(Format::Disksim, &format!("0.5 0 1 1 {flags}")).1, kind, "{flags}");
        }
        let cases = [
            ("0.5 0 1 1 x", r#"flags is "x", expected a hexadecimal number"#),
            ("0.5 0 1 1 123456789", r#"flags is "123456789""#),
        ];
        check_errors(Format::Disksim, "0.5 0 1 1 0", &cases);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1 0 5 8", r#"the line is "1 0 5 8", expected 5 columns: time"#),
            ("1 0 5 8 1 1", r#"the line is "1 0 5 8 1 1""#),
            ("1.5 0 5 8 1", r#"time is "1.5", expected a whole number of nanoseconds"#),
            ("-1 0 5 8 1", r#"time is "-1""#),
            ("1 d 5 8 1", r#"device is "d", expected a whole number"#),
            (
                "1 0 36028797018963968 8 1",
                r#"block is "36028797018963968", expected a whole number of sectors"#,
            ),
            ("1 0 36028797018963967 1 1", r#"block is "36028797018963967""#),
            ("1 0 5 8388608 1", r#"count is "8388608""#),
            ("1 0 5 8 2", r#"kind is "2", expected 1 (read) or 0 (write)"#),
        ];
        check_errors(Format::Ssdsim, "1 0 5 8 1", &cases);
        check_errors(
            Format::Dtrs,
            "1 0 5 8 1",
            &[(
                "18446744073709552 0 5 8 1",
                r#"time is "18446744073709552", expected a time in microseconds"#,
            )],
        );
        check_errors(
            Format::Heimdall,
            "1.5 0 5 8 1",
            &[("1.5 0 x 8 1", r#"offset is "x", expected a whole number of bytes"#)],
        );
    }
}
