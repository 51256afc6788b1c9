//! Writing libCacheSim's `oracleGeneral`: every access knows the next one to its object.
//!
//! The next access is known only when it comes. The last records are held back, and most of them learn of their next access
//! there; records that are in the file already are mended in place, in batches.

use std::collections::HashMap;
use std::io::{self, Seek, SeekFrom, Write};

use crate::read::oracle_general::{BLOCK_BITS, BLOCK_BYTES, RECORD_BYTES};
use crate::{Format, Request, RequestKind, WriteError};

const SECOND_NS: u64 = 1_000_000_000;
/// Records held back: 24 MiB of them, and as many mends.
const HELD_RECORDS: usize = 1 << 20;
/// Where a record tells the next access.
const NEXT_AT: usize = 16;
/// Volumes that the upper bits of an object's number can tell apart.
const VOLUMES_MAX: u64 = 1 << (64 - BLOCK_BITS);

/// Writes a trace that libCacheSim reads as `oracleGeneral`: an access for each block of 4 KiB that a read or a write touches.
///
/// The format holds no kinds: writes become accesses as reads are. It has no names: [`Request::volume`] is the upper 13 bits of an object's number, the
/// block the lower 51. Times are whole seconds since the first request, and an earlier request is at 0. A request
/// of no bytes touches no block.
///
/// Memory is 16 bytes or so for each block of the footprint, and 40 MiB. The output need not be buffered.
pub struct OracleGeneralWriter<W: Write> {
    out: W,
    seek: fn(&mut W, SeekFrom) -> io::Result<u64>,
    /// Where in the output the trace begins.
    base: u64,
    /// Records held back, and the number of the first of them, from 0.
    held: Vec<u8>,
    held_from: u64,
    held_max: usize,
    /// Next accesses of records in the file: the number of the record, and that of the access.
    mends: Vec<(u64, u64)>,
    /// The number of the last access to each object.
    last: HashMap<u64, u64>,
    first_ns: Option<u64>,
}

impl<W: Write> OracleGeneralWriter<W> {
    /// A writer to `out`, from its current position on.
    pub fn new(out: W) -> Result<Self, WriteError>
    where
        W: Seek,
    {
        Self::holding(out, HELD_RECORDS)
    }

    /// A writer that holds so many records back.
    pub(super) fn holding(mut out: W, records: usize) -> Result<Self, WriteError>
    where
        W: Seek,
    {
        let base = out.stream_position()?;
        Ok(Self {
            out,
            seek: W::seek,
            base,
            held: Vec::new(),
            held_from: 0,
            held_max: records.max(1) * RECORD_BYTES,
            mends: Vec::new(),
            last: HashMap::new(),
            first_ns: None,
        })
    }

    /// Write the accesses of one read or write.
    pub fn write(&mut self, request: &Request) -> Result<(), WriteError> {
        let format = Format::OracleGeneral;
        let Request { time_ns, volume, kind, offset, len } = *request;
        if !matches!(kind, RequestKind::Read | RequestKind::Write) {
            return Err(WriteError::Kind { format, kind });
        }
        let volume = u64::from(volume);
        if volume >= VOLUMES_MAX {
            return Err(WriteError::Range { format, field: "volume", value: volume, most: VOLUMES_MAX - 1 });
        }
        let seconds = self.seconds(time_ns)?;
        let Some(end) = offset.checked_add(len.into()).filter(|&end| end <= 1 << 63) else {
            return Err(WriteError::Range {
                format,
                field: "offset",
                value: offset,
                most: (1 << 63) - u64::from(len),
            });
        };
        let block_bytes = u64::from(BLOCK_BYTES);
        let blocks = if len == 0 { 0..0 } else { offset / block_bytes..end.div_ceil(block_bytes) };
        for block in blocks {
            self.access(seconds, volume << BLOCK_BITS | block)?;
        }
        Ok(())
    }

    /// The whole seconds since the first request.
    fn seconds(&mut self, time_ns: u64) -> Result<u32, WriteError> {
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        let value = time_ns.saturating_sub(first_ns) / SECOND_NS;
        let (format, field, most) = (Format::OracleGeneral, "second", u64::from(u32::MAX));
        u32::try_from(value).map_err(|_| WriteError::Range { format, field, value, most })
    }

    fn access(&mut self, seconds: u32, object: u64) -> io::Result<()> {
        if self.held.len() >= self.held_max {
            self.write_held()?;
        }
        let number = self.held_from + (self.held.len() / RECORD_BYTES) as u64;
        self.held.extend(seconds.to_le_bytes());
        self.held.extend(object.to_le_bytes());
        self.held.extend(BLOCK_BYTES.to_le_bytes());
        self.held.extend((-1i64).to_le_bytes());
        if let Some(before) = self.last.insert(object, number) {
            // Accesses are numbered from 1 in the file.
            self.tell(before, number + 1);
        }
        Ok(())
    }

    /// Tell the record of an access of its next one.
    fn tell(&mut self, record: u64, next: u64) {
        match record.checked_sub(self.held_from) {
            None => self.mends.push((record, next)),
            Some(held) => {
                let at = held as usize * RECORD_BYTES + NEXT_AT;
                self.held[at..at + 8].copy_from_slice(&next.to_le_bytes());
            }
        }
    }

    /// Append the records held back to the file, and mend those that were there before.
    fn write_held(&mut self) -> io::Result<()> {
        self.out.write_all(&self.held)?;
        self.held_from += (self.held.len() / RECORD_BYTES) as u64;
        self.held.clear();
        if self.mends.is_empty() {
            return Ok(());
        }
        // In the order of the file, for the sake of the device.
        self.mends.sort_unstable();
        for (record, next) in self.mends.drain(..) {
            (self.seek)(
                &mut self.out,
                SeekFrom::Start(self.base + record * RECORD_BYTES as u64 + NEXT_AT as u64),
            )?;
            self.out.write_all(&next.to_le_bytes())?;
        }
        let end = self.base + self.held_from * RECORD_BYTES as u64;
        (self.seek)(&mut self.out, SeekFrom::Start(end)).map(drop)
    }

    /// Write what is held back, flush, and give the output back, at the end of the trace.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.write_held()?;
        self.out.flush()?;
        Ok(self.out)
    }
}
