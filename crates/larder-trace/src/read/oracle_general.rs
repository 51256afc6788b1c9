//! Reading libCacheSim's `oracleGeneral` traces: accesses to objects, each with the number of the next one to the same object.
//!
//! Little-endian records of 24 bytes without a header: time u32 (seconds), object u64, size u32 (bytes), next access i64
//! (the number of the request, from 1; -1 for none).
//!
//! **Objects as blocks.** An access is a read (the format has no writes) of one whole block of 4 KiB, whatever the size of
//! the object: as libCacheSim does with `--ignore-obj-size`, and so that no two objects share a block. The lower 51 bits of an
//! object's number are its block, so that offsets stay below 2^63, and the upper 13 bits number its volume: different objects
//! are different blocks even where numbers are hashes of 64 bits, and small numbers are the blocks of volume `0`.
//! [`TraceWriter`](crate::TraceWriter) numbers objects the same way. The next access is not used.

use crate::input::Input;
use crate::read::bytes::{DeviceVolume, Fields, Order, Records};
use crate::source::{Source, Stop};
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 24;
/// Bytes that an object stands for.
pub(crate) const BLOCK_BYTES: u32 = 4096;
/// Bits of an object's number that tell its block; those above tell the volume.
pub(crate) const BLOCK_BITS: u32 = 51;
const SECOND_NS: u64 = 1_000_000_000;
/// Records looked at to recognise a trace.
const PROBED: usize = 1024;
/// Longest trace that is recognised, in requests.
const REQUESTS_MAX: i64 = 1 << 40;

/// A reader of `oracleGeneral` records.
pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(OracleGeneral { records: Records::new(input), volume: DeviceVolume::default() })
}

/// True if `start` holds such records: times do not fall, and next accesses lie ahead and are of the same object, as far as can be seen.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let records = start.chunks_exact(RECORD_BYTES).take(PROBED);
    let records: Vec<Record> = records.filter_map(|bytes| bytes.first_chunk().map(Record::parse)).collect();
    let in_order = records.is_sorted_by_key(|record| record.seconds);
    let mut numbered = (1i64..).zip(&records);
    !records.is_empty() && in_order && numbered.all(|(number, record)| is_plausible(number, record, &records))
}

fn is_plausible(number: i64, record: &Record, records: &[Record]) -> bool {
    match record.next {
        -1 | i64::MAX => true,
        next if next <= number || next > REQUESTS_MAX => false,
        next => {
            // Some writers count from 0.
            let later = records.get(next as usize - 1..=next as usize);
            later.is_none_or(|later| later.iter().any(|later| later.object == record.object))
        }
    }
}

struct Record {
    seconds: u32,
    object: u64,
    next: i64,
}

impl Record {
    fn parse(record: &[u8; RECORD_BYTES]) -> Self {
        let mut fields = Fields::new(record, Order::Little);
        let (seconds, object, _size) = (fields.u32(), fields.u64(), fields.u32());
        Self { seconds, object, next: fields.u64() as i64 }
    }
}

struct OracleGeneral {
    records: Records,
    volume: DeviceVolume,
}

impl Source for OracleGeneral {
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        let end = out.len() + max;
        while out.len() < end {
            let Some((place, bytes)) = self.records.next("a record of 24 bytes")? else { break };
            let record = Record::parse(&bytes);
            let upper = record.object >> BLOCK_BITS;
            let volume = self.volume.index(volumes, upper, || upper.to_string());
            let volume = volume.map_err(|wrong| Stop::Wrong(place, wrong))?;
            let block = record.object & ((1 << BLOCK_BITS) - 1);
            out.push(Request {
                time_ns: u64::from(record.seconds) * SECOND_NS,
                volume,
                kind: RequestKind::Read,
                offset: block * u64::from(BLOCK_BYTES),
                len: BLOCK_BYTES,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
