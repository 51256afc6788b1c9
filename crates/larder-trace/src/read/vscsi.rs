//! Reading CloudPhysics' vscsi traces: the SCSI commands of a virtual disk.
//!
//! Little-endian records without a header, all of one version, which stands in the upper byte of `version`:
//!
//! - version 1, 32 bytes: serial number u32, length u32 (bytes), scatter-gather entries u32, command u16, version u16,
//!   logical block u64 (512 bytes), time u64 (µs);
//! - version 2, 40 bytes: command u16, version u16, serial number u32, length u32, scatter-gather entries u32,
//!   logical block u64, time u64, response time u64.
//!
//! Reads, writes and SYNCHRONIZE CACHE are requests. Other commands name no range of blocks (INQUIRY), or not in the record
//! (UNMAP), and are left out. A trace is of one disk, without a name: volume `0`.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::bytes::{Fields, Order, Records, start, wrong};
use crate::source::{Place, Source, Stop};
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

const SECTOR_BYTES: u64 = 512;
const MICROSECOND_NS: u64 = 1000;
/// Bytes of a version 1 record, and of those fields of a version 2 record that are used.
const FIELD_BYTES: usize = 32;
/// The response time that ends a version 2 record.
const RESPONSE_BYTES: usize = 8;
/// Records looked at to recognise a trace.
const PROBED: usize = 64;

/// A reader of vscsi records.
pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(Vscsi { records: Records::new(input), version: None })
}

/// True if `start` holds records of one version with known commands, of which some read or write.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let Some(version) = start.first_chunk().and_then(version) else { return false };
    let commands = start.chunks_exact(version.record_bytes()).take(PROBED).map(|record| {
        let record = record.first_chunk()?;
        Record::parse(record, version).filter(|fields| is_scsi(fields.command)).map(|fields| fields.command)
    });
    let commands: Option<Vec<u16>> = commands.collect();
    commands.is_some_and(|commands| commands.into_iter().any(|command| kind(command).is_some()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn record_bytes(self) -> usize {
        match self {
            Self::One => FIELD_BYTES,
            Self::Two => FIELD_BYTES + RESPONSE_BYTES,
        }
    }
}

/// The version of the record that begins with these bytes.
fn version(record: &[u8; FIELD_BYTES]) -> Option<Version> {
    [Version::One, Version::Two].into_iter().find(|&version| Record::parse(record, version).is_some())
}

/// The fields that are used.
struct Record {
    command: u16,
    len: u32,
    sector: u64,
    time_us: u64,
}

impl Record {
    /// None if it is not of this version.
    fn parse(record: &[u8; FIELD_BYTES], version: Version) -> Option<Self> {
        let mut fields = Fields::new(record, Order::Little);
        let (tag, upper, command, len) = match version {
            Version::One => {
                let [_, len, _] = [fields.u32(), fields.u32(), fields.u32()];
                let command = fields.u16();
                (fields.u16(), 1, command, len)
            }
            Version::Two => {
                let (command, tag) = (fields.u16(), fields.u16());
                let [_, len, _] = [fields.u32(), fields.u32(), fields.u32()];
                (tag, 2, command, len)
            }
        };
        (tag >> 8 == upper).then(|| Self { command, len, sector: fields.u64(), time_us: fields.u64() })
    }
}

/// True for what can be the first byte of a SCSI command.
fn is_scsi(command: u16) -> bool {
    command <= 0xff
}

/// What a command does with blocks, by its first byte (SBC-4): READ, WRITE, WRITE AND VERIFY and SYNCHRONIZE CACHE of
/// 6, 10, 12 and 16 bytes.
pub(crate) fn kind(command: u16) -> Option<RequestKind> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(RequestKind::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(RequestKind::Write),
        0x35 | 0x91 => Some(RequestKind::Flush),
        _ => None,
    }
}

struct Vscsi {
    records: Records,
    /// Told by the first record.
    version: Option<Version>,
}

impl Vscsi {
    /// The fields of the next record, and where it begins.
    fn record(&mut self) -> Result<Option<(Place, Record)>, Stop> {
        const EXPECTED: &str = "a record of 32 (version 1) or 40 bytes (version 2)";
        let Some((place, bytes)) = self.records.next(EXPECTED)? else { return Ok(None) };
        let version = self.version.or_else(|| version(&bytes));
        let Some((version, record)) = version.and_then(|v| Some((v, Record::parse(&bytes, v)?))) else {
            return Err(Stop::Wrong(place, no_version(&bytes)));
        };
        self.version = Some(version);
        if version == Version::Two {
            self.records.skip(place, RESPONSE_BYTES as u64, EXPECTED)?;
        }
        Ok(Some((place, record)))
    }
}

fn no_version(record: &[u8; FIELD_BYTES]) -> Wrong {
    let [second, eighth] = [2, 14].map(|at| u16::from_le_bytes([record[at], record[at + 1]]));
    let found = format!("{eighth:#06x} (at byte 14), {second:#06x} (at byte 2)");
    Wrong::new("version", found.as_bytes(), "0x01.. at byte 14 or 0x02.. at byte 2, as in the first record")
}

impl Source for Vscsi {
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        let end = out.len() + max;
        while out.len() < end {
            let Some((place, record)) = self.record()? else { break };
            if let Some(kind) = kind(record.command) {
                out.push(request(place, kind, &record, volumes)?);
            }
        }
        Ok(())
    }
}

fn request(place: Place, kind: RequestKind, record: &Record, volumes: &mut Volumes) -> Result<Request, Stop> {
    let volume = volumes.index("volume", b"", b"0").map_err(|wrong| Stop::Wrong(place, wrong))?;
    let Some(time_ns) = record.time_us.checked_mul(MICROSECOND_NS) else {
        return Err(wrong(place, "time", record.time_us, "microseconds, less than 2^64 ns"));
    };
    if kind == RequestKind::Flush {
        return Ok(Request { time_ns, volume, kind, offset: 0, len: 0 });
    }
    match start(record.sector, SECTOR_BYTES, record.len) {
        Some(offset) => Ok(Request { time_ns, volume, kind, offset, len: record.len }),
        None => Err(wrong(place, "logical block", record.sector, "a request that ends below 2^64 bytes")),
    }
}

#[cfg(test)]
mod tests;
