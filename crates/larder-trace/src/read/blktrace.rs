//! Reading the kernel's binary block traces, as `blktrace` stores them, one file per processor, or `blkparse -d` merged.
//!
//! Records of `struct blk_io_trace` (linux/blktrace_api.h), in the byte order of the machine that was traced: magic u32
//! (0x65617400 and the version, 7), sequence u32, time u64 (ns), sector u64 (512 bytes), bytes u32, action u32, pid u32,
//! device u32, processor u32, error u16, length of the payload u16; then the payload, which is left out.
//!
//! A request is counted where it is issued to the device (`D` in `blkparse`'s text), so after splitting and merging;
//! every other event is left out. A flush is one without data; a write that also flushes, or with FUA, is a write. Requests
//! that carry commands rather than blocks (`BLK_TC_PC`) are left out, and so are others without data. Devices without a
//! queue of their own (device mapper, md) issue nothing: trace the disks below them. The order is that of the file: a
//! per-processor file holds only what that processor issued.
//!
//! A volume is a device, called `major,minor` as `blkparse` does.

use crate::input::Input;
use crate::read::bytes::{DeviceVolume, Fields, Order, Records, start, wrong};
use crate::source::{Place, Source, Stop};
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

/// The magic of version 7, which `blktrace` has stored since 2006.
const MAGIC: u32 = 0x6561_7407;
const RECORD_BYTES: usize = 48;
const SECTOR_BYTES: u64 = 512;

/// The lower half of an action: what happened. Bit 8 tells that a cgroup's number comes in the payload.
const ACTION_CGROUP: u32 = 1 << 8;
const ACTION_ISSUE: u32 = 7;

/// The upper half: the categories.
mod category {
    pub(super) const READ: u32 = 1 << 16;
    pub(super) const WRITE: u32 = 1 << 17;
    pub(super) const FLUSH: u32 = 1 << 18;
    pub(super) const ISSUE: u32 = 1 << 22;
    pub(super) const COMMAND: u32 = 1 << 25;
    pub(super) const NOTIFY: u32 = 1 << 26;
    pub(super) const DISCARD: u32 = 1 << 29;
    pub(super) const DRIVER: u32 = 1 << 30;
}

/// A reader of blktrace records.
pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(Blktrace { records: Records::new(input), order: None, volume: DeviceVolume::default() })
}

/// True if `start` begins with the magic, in either byte order.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    start.first_chunk().and_then(order).is_some()
}

/// The byte order in which these bytes are the magic.
fn order(magic: &[u8; 4]) -> Option<Order> {
    [Order::Little, Order::Big].into_iter().find(|&order| Fields::new(magic, order).u32() == MAGIC)
}

struct Blktrace {
    records: Records,
    /// Told by the first record.
    order: Option<Order>,
    volume: DeviceVolume,
}

impl Source for Blktrace {
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        let end = out.len() + max;
        while out.len() < end {
            let Some((place, event)) = self.event()? else { break };
            if let Some(kind) = event.request_kind() {
                let name = || format!("{},{}", event.device >> 20, event.device & 0xf_ffff);
                let volume = self.volume.index(volumes, event.device.into(), name);
                let volume = volume.map_err(|wrong| Stop::Wrong(place, wrong))?;
                out.push(event.request(place, kind, volume)?);
            }
        }
        Ok(())
    }
}

impl Blktrace {
    /// The next record, without its payload.
    fn event(&mut self) -> Result<Option<(Place, Event)>, Stop> {
        const EXPECTED: &str = "a record of 48 bytes";
        let Some((place, bytes)) = self.records.next::<RECORD_BYTES>(EXPECTED)? else { return Ok(None) };
        let found = bytes.first_chunk().and_then(order);
        let Some(order) = found.filter(|found| self.order.is_none_or(|first| first == *found)) else {
            let magic = Fields::new(&bytes, self.order.unwrap_or(Order::Little)).u32();
            return Err(wrong(
                place,
                "magic",
                magic.into(),
                "0x65617407, in the byte order of the first record",
            ));
        };
        self.order = Some(order);
        let (event, payload) = Event::parse(&bytes, order);
        self.records.skip(place, payload.into(), "a record of 48 bytes and its payload")?;
        Ok(Some((place, event)))
    }
}

/// The fields that are used.
struct Event {
    time_ns: u64,
    sector: u64,
    len: u32,
    action: u32,
    device: u32,
}

impl Event {
    /// An event, and the length of the payload that follows it.
    fn parse(record: &[u8; RECORD_BYTES], order: Order) -> (Self, u16) {
        let mut fields = Fields::new(record, order);
        let (_magic, _sequence) = (fields.u32(), fields.u32());
        let (time_ns, sector) = (fields.u64(), fields.u64());
        let [len, action, _pid, device, _processor] = std::array::from_fn(|_| fields.u32());
        let (_error, payload) = (fields.u16(), fields.u16());
        (Self { time_ns, sector, len, action, device }, payload)
    }

    /// What it asks for, if it is a request issued to the device.
    fn request_kind(&self) -> Option<RequestKind> {
        let has = |category| self.action & category != 0;
        let other = category::NOTIFY | category::DRIVER | category::COMMAND;
        let happened = self.action & 0xffff & !ACTION_CGROUP;
        if has(other) || !has(category::ISSUE) || happened != ACTION_ISSUE {
            None
        } else if self.len == 0 {
            has(category::FLUSH).then_some(RequestKind::Flush)
        } else if has(category::DISCARD) {
            Some(RequestKind::Discard)
        } else if has(category::WRITE) {
            Some(RequestKind::Write)
        } else {
            has(category::READ).then_some(RequestKind::Read)
        }
    }

    fn request(&self, place: Place, kind: RequestKind, volume: u32) -> Result<Request, Stop> {
        let Self { time_ns, len, .. } = *self;
        if kind == RequestKind::Flush {
            return Ok(Request { time_ns, volume, kind, offset: 0, len: 0 });
        }
        match start(self.sector, SECTOR_BYTES, len) {
            Some(offset) => Ok(Request { time_ns, volume, kind, offset, len }),
            None => Err(wrong(place, "sector", self.sector, "a request that ends below 2^64 bytes")),
        }
    }
}

#[cfg(test)]
mod tests;
