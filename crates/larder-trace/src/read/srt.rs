//! Reading Hewlett-Packard's SRT traces, version 1.3.
//!
//! A text header that begins with `$$TR_IOREC-1.3` and ends with a form feed (0x0C), then big-endian records of 14 numbers
//! of 32 bits: size (of the record in bytes, 56 or more), id (4 in the upper half; 1, or 2 for a suspect record, in the
//! lower), seconds and microseconds since the trace began, start and stop of the service in µs, bytes, block (of 256
//! bytes, in its section), device, drive, cylinder, flags (bit 0: a read), info, queue length.
//!
//! A volume is a device (in HP's words a section of a disk), called `major,minor`, with 8 and 24 bits.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::bytes::{DeviceVolume, Fields, Order, Records, start, wrong};
use crate::source::{Place, Source, Stop};
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

const MAGIC: &[u8] = b"$$TR_IOREC";
const VERSION: &[u8] = b"-1.3";
const HEADER_END: u8 = 0x0c;
/// Longest header: that of the public traces has 2 KiB.
const HEADER_BYTES_MAX: u64 = 256 * 1024;
const RECORD_BYTES: usize = 56;
/// Longest record: later versions could add fields.
const RECORD_BYTES_MAX: u32 = 4096;
const BLOCK_BYTES: u64 = 256;
const SECOND_NS: u64 = 1_000_000_000;
const SECOND_US: u32 = 1_000_000;
const MICROSECOND_NS: u64 = 1000;
const FLAG_READ: u32 = 1;

/// A reader of SRT records.
pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(Srt { records: Records::new(input), in_header: true, volume: DeviceVolume::default() })
}

/// True if `start` begins as an SRT header does.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

struct Srt {
    records: Records,
    in_header: bool,
    volume: DeviceVolume,
}

impl Source for Srt {
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        if self.in_header {
            self.header()?;
            self.in_header = false;
        }
        let end = out.len() + max;
        while out.len() < end {
            let Some((place, record)) = self.record()? else { break };
            let name = || format!("{},{}", record.device >> 24, record.device & 0xff_ffff);
            let volume = self.volume.index(volumes, record.device.into(), name);
            let volume = volume.map_err(|wrong| Stop::Wrong(place, wrong))?;
            out.push(record.request(place, volume)?);
        }
        Ok(())
    }
}

impl Srt {
    /// Read past the header; an empty file has none.
    fn header(&mut self) -> Result<(), Stop> {
        const EXPECTED: &str = "a header that begins with $$TR_IOREC-1.3";
        let Some((place, magic)) = self.records.next::<14>(EXPECTED)? else { return Ok(()) };
        if magic.strip_prefix(MAGIC) != Some(VERSION) {
            return Err(Stop::Wrong(place, Wrong::new("the header", &magic, EXPECTED)));
        }
        for _ in 0..HEADER_BYTES_MAX {
            match self.records.rest::<1>(place, "a header that ends with a form feed (0x0C)")? {
                [HEADER_END] => return Ok(()),
                _ => continue,
            }
        }
        Err(wrong(place, "the header", HEADER_BYTES_MAX, "a form feed (0x0C) in the first 262,144 bytes"))
    }

    fn record(&mut self) -> Result<Option<(Place, Record)>, Stop> {
        const EXPECTED: &str = "a record of at least 56 bytes";
        let Some((place, bytes)) = self.records.next::<RECORD_BYTES>(EXPECTED)? else { return Ok(None) };
        let (size, record) = Record::parse(place, &bytes)?;
        self.records.skip(
            place,
            u64::from(size) - RECORD_BYTES as u64,
            "a record as long as its size tells",
        )?;
        Ok(Some((place, record)))
    }
}

/// The fields that are used.
struct Record {
    seconds: u32,
    microseconds: u32,
    len: u32,
    block: u32,
    device: u32,
    flags: u32,
}

impl Record {
    /// The size of the record, and its fields.
    fn parse(place: Place, bytes: &[u8; RECORD_BYTES]) -> Result<(u32, Self), Stop> {
        let mut fields = Fields::new(bytes, Order::Big);
        let fields: [u32; RECORD_BYTES / 4] = std::array::from_fn(|_| fields.u32());
        let [size, id, seconds, microseconds, _, _, len, block, device, _, _, flags, _, _] = fields;
        if !(RECORD_BYTES as u32..=RECORD_BYTES_MAX).contains(&size) {
            return Err(wrong(place, "size", size.into(), "56 to 4096 bytes"));
        }
        if !matches!(id, 0x4_0001 | 0x4_0002) {
            return Err(wrong(place, "id", id.into(), "0x40001 or 0x40002: an I/O record of version 1.3"));
        }
        Ok((size, Self { seconds, microseconds, len, block, device, flags }))
    }

    fn request(&self, place: Place, volume: u32) -> Result<Request, Stop> {
        if self.microseconds >= SECOND_US {
            return Err(wrong(place, "microseconds", self.microseconds.into(), "less than 1,000,000"));
        }
        let time_ns = u64::from(self.seconds) * SECOND_NS + u64::from(self.microseconds) * MICROSECOND_NS;
        let kind = if self.flags & FLAG_READ == 0 { RequestKind::Write } else { RequestKind::Read };
        let offset = start(self.block.into(), BLOCK_BYTES, self.len)
            .expect("32 bits of blocks of 256 bytes end far below 2^64");
        Ok(Request { time_ns, volume, kind, offset, len: self.len })
    }
}

#[cfg(test)]
mod tests;
