//! MSR Cambridge CSV (Narayanan et al., "Write Off-Loading: Practical Power Management for Enterprise
//! Storage", FAST 2008).
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, a header being passed over. The time stamp
//! is a Windows FILETIME: ticks of 100 ns since 1601. The host is the tenant, the disk one of its volumes.
//! Offset and size are in bytes, the type is `Read` or `Write`, the response time is not looked at.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::columns::{Column, Measure, exact_fields, extent, leading_number};
use crate::read::lines::{LineFormat, LineSource};
use crate::source::Source;
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

/// Nanoseconds in a tick of a FILETIME.
const TICK_NS: u64 = 100;

const TIMESTAMP: Column =
    Column { name: "Timestamp", expected: "a FILETIME (ticks of 100 ns) before the year 2185" };
const HOST: Column = Column { name: "Hostname", expected: "a name of 1 to 255 bytes in UTF-8" };
const DISK: Column = Column { name: "DiskNumber", expected: "a whole number" };
const TYPE: Column = Column { name: "Type", expected: "Read or Write" };
const OFFSET: Measure = Measure::bytes("Offset");
const SIZE: Measure = Measure::bytes("Size");

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Msr))
}

struct Msr;

impl LineFormat for Msr {
    const COLUMNS: &'static str = "7 fields: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

    #[inline]
    fn parse(&mut self, first: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        match plain(line, volumes) {
            Some(request) => Ok(Some(request)),
            None => careful(first, line, volumes),
        }
    }
}

/// The request on a line as nearly all lines are: no spaces, the type spelt `Read` or `Write`, and no
/// mistake. None says nothing but that it must be read with more care. From left to right, each byte once:
/// this is what makes reading fast.
#[inline]
fn plain(line: &[u8], volumes: &mut Volumes) -> Option<Request> {
    let (ticks, rest) = number_and_comma(line)?;
    let (host, rest) = rest.split_at(rest.iter().position(|&byte| byte == b',')?);
    let (disk, rest) = rest[1..].split_at(rest[1..].iter().position(|&byte| byte == b',')?);
    let (kind, rest) = match rest {
        [b',', b'R', b'e', b'a', b'd', b',', rest @ ..] => (RequestKind::Read, rest),
        [b',', b'W', b'r', b'i', b't', b'e', b',', rest @ ..] => (RequestKind::Write, rest),
        _ => return None,
    };
    let (offset, rest) = number_and_comma(rest)?;
    let (size, response) = number_and_comma(rest)?;
    let len = u32::try_from(size).ok()?;
    offset.checked_add(size)?;
    let time_ns = ticks.checked_mul(TICK_NS)?;
    let is_plain = is_plain_name(host) && is_number(disk) && is_number(response);
    let volume = is_plain.then(|| volumes.index(HOST.name, host, disk).ok()).flatten()?;
    Some(Request { time_ns, volume, kind, offset, len })
}

/// A number before a comma, and what comes after that.
#[inline]
fn number_and_comma(text: &[u8]) -> Option<(u64, &[u8])> {
    let (value, digits) = leading_number(text)?;
    Some((value, text[digits..].strip_prefix(b",")?))
}

/// Not empty, and without spaces to take off.
#[inline]
fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty() && name.trim_ascii().len() == name.len()
}

#[inline]
fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// The request on any line, or what is wrong with it.
#[cold]
fn careful(first: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
    if first && line.starts_with(b"Timestamp,Hostname,") {
        return Ok(None);
    }
    let [time, host, disk, kind, offset, size, _] = exact_fields(line, Msr::COLUMNS)?;
    let time_ns = TIMESTAMP.number(time)?.checked_mul(TICK_NS).ok_or_else(|| TIMESTAMP.wrong(time))?;
    if host.is_empty() {
        return Err(HOST.wrong(host));
    }
    let kind = TYPE.kind(kind, "read", "write")?;
    let (offset, len) = extent((&OFFSET, offset), (&SIZE, size))?;
    let volume = volumes.index(HOST.name, host, DISK.digits(disk)?)?;
    Ok(Some(Request { time_ns, volume, kind, offset, len }))
}

#[cfg(test)]
mod tests;
