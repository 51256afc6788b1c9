//! Drives the engine: carries out its actions on real memory and devices, and tells it how they ended.
//!
//! Replies are queued here, and handed to the frontend by the loop: nothing calls back from inside a call.

use crate::backing::Device;
use crate::cache_device::HEADER_BYTES;
use crate::command::{Command, CommandKind, Ended, Ticket};
use crate::frontend::{Extent, GuestRequest, VolumeInfo};
use crate::lane::{Lane, Operation};
use crate::memory::{RegionClass, Regions};
use crate::monitor::Monitor;
use crate::nbd_backing::NbdRunner;
use crate::stats::{DeviceStats, OpenCount};
use crate::{Buffer, BufferPool};
use larder_engine::{
    Action, Buf, BufOwner, DeviceOp, Engine, IoError, OpKind, Request, RequestId, RequestKind, StageId,
    Target, TenantId, VolumeId,
};
use slab::Slab;
use std::collections::VecDeque;

/// Guest requests that a reactor holds at most; beyond it they fail at once. Far above what frontends let in.
const REQUESTS_MAX: usize = 65_536;
/// Index of the cache among the devices; the backing of volume `v` is `v + 1`.
const CACHE: usize = 0;
/// One in this many inline operations is timed, and counts for all: reading the clock costs a hundredth of such an operation.
const INLINE_TIMED: u64 = 8;

/// A volume as the driver needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Volume {
    pub tenant: TenantId,
    pub info: VolumeInfo,
}

/// A guest's request has ended.
#[derive(Debug)]
pub(crate) struct Reply {
    pub cookie: u64,
    pub result: Result<(), IoError>,
    pub buffer: Option<Buffer>,
}

/// The engine with all that it names: memory, devices, requests.
pub(crate) struct Driver {
    pub engine: Engine,
    pub volumes: Vec<Volume>,
    pub pool: BufferPool,
    pub monitor: Monitor,
    pub stats: Vec<DeviceStats>,
    devices: Vec<Device>,
    /// The cookie of each guest request in flight; a region with the same number has its buffer.
    requests: Slab<u64>,
    guests: Regions,
    stages: Regions,
    replies: VecDeque<Reply>,
    ended: VecDeque<Ended>,
    /// Time on the reactor's clock, renewed once per turn of the loop.
    pub now_ns: u64,
    /// The reactor's own flushes that have not ended.
    closing: OpenCount,
}

impl Driver {
    /// `devices`: the cache, then the backing of every volume.
    pub fn new(
        engine: Engine,
        volumes: Vec<Volume>,
        devices: Vec<Device>,
        pool: BufferPool,
        monitor: Monitor,
    ) -> Self {
        Self {
            engine,
            volumes,
            pool,
            monitor,
            stats: devices.iter().map(|_| DeviceStats::default()).collect(),
            devices,
            requests: Slab::new(),
            guests: Regions::default(),
            stages: Regions::default(),
            replies: VecDeque::new(),
            ended: VecDeque::new(),
            now_ns: 0,
            closing: OpenCount::default(),
        }
    }

    /// A guest asks. What cannot be asked is refused here; the engine checks the rest.
    #[inline]
    pub fn submit(&mut self, lane: &mut Lane, asked: GuestRequest, buffer: Option<Buffer>, cookie: u64) {
        if let Err(error) = self.check(&asked, buffer.as_deref().map(|bytes| bytes.len() as u64)) {
            self.replies.push_back(Reply { cookie, result: Err(error), buffer });
            return;
        }
        let GuestRequest { volume, kind, offset, len, fua } = asked;
        let id = self.requests.insert(cookie) as u32;
        self.guests.put(id, buffer);
        self.monitor.record(self.volumes[volume.0 as usize].tenant, &asked);
        self.engine.submit(Request { id: RequestId(id), volume, kind, offset, len, fua });
        self.act(lane);
    }

    fn check(&self, asked: &GuestRequest, memory: Option<u64>) -> Result<(), IoError> {
        let volume = self.volumes.get(asked.volume.0 as usize).ok_or(IoError::Invalid)?;
        let moves_data = matches!(asked.kind, RequestKind::Read | RequestKind::Write);
        let aligned = (asked.offset | asked.len).is_multiple_of(u64::from(volume.info.min_block));
        if asked.kind != RequestKind::Flush && !aligned
            || moves_data && memory.is_none_or(|bytes| bytes < asked.len)
        {
            return Err(IoError::Invalid);
        }
        if volume.info.read_only && !matches!(asked.kind, RequestKind::Read | RequestKind::Flush) {
            return Err(IoError::NotSupported);
        }
        if self.requests.len() < REQUESTS_MAX { Ok(()) } else { Err(IoError::Io) }
    }

    /// Carry out everything that the engine wants done.
    #[inline]
    pub fn act(&mut self, lane: &mut Lane) {
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Device(op) => self.start(lane, op),
                Action::Reply { request, result } => self.reply(request, result),
                Action::Copy { from, to, len } => self.copy(from, to, len),
                Action::AllocStage { stage, bytes } => self.alloc_stage(stage, bytes),
                Action::FreeStage { stage } => self.free_stage(stage),
            }
        }
    }

    #[inline]
    fn start(&mut self, lane: &mut Lane, op: DeviceOp) {
        let (device, shift) = match op.target {
            Target::Cache => (CACHE, HEADER_BYTES),
            Target::Backing(volume) => (volume.0 as usize + 1, 0),
        };
        let mut ticket = Ticket { op: Some(op.id), hold: None, started_ns: self.now_ns };
        let command = match op.kind {
            OpKind::Read { offset, len, buf } => {
                self.transfer(&mut ticket, CommandKind::Read, offset, len, buf, false)
            }
            OpKind::Write { offset, len, buf, fua } => {
                self.transfer(&mut ticket, CommandKind::Write, offset, len, buf, fua)
            }
            OpKind::Flush => Some(without_memory(ticket, CommandKind::Flush, 0, 0, false)),
            OpKind::Discard { offset, len } => {
                Some(without_memory(ticket, CommandKind::Discard, offset, len, false))
            }
            OpKind::WriteZeroes { offset, len, fua, no_hole } => {
                Some(without_memory(ticket, CommandKind::WriteZeroes { no_hole }, offset, len, fua))
            }
        };
        match command {
            Some(command) if device < self.devices.len() => {
                let offset = command.offset + shift;
                self.run(lane, device, Command { offset, ..command });
            }
            _ => self.refuse(op),
        }
    }

    /// A read or write with its memory, held until it has ended; `None` where the memory is not there.
    #[inline]
    fn transfer(
        &mut self,
        ticket: &mut Ticket,
        kind: CommandKind,
        offset: u64,
        len: u32,
        buf: Buf,
        fua: bool,
    ) -> Option<Command> {
        let (regions, class, index) = self.regions(buf.owner);
        let memory = regions.memory(index, buf.offset, len)?;
        ticket.hold = regions.hold(class, index);
        Some(Command { ticket: *ticket, kind, offset, len: u64::from(len), memory, fua })
    }

    #[inline]
    fn run(&mut self, lane: &mut Lane, device: usize, command: Command) {
        self.stats[device].in_flight += 1;
        let inline = self.devices[device].is_inline();
        let timed = inline && self.stats[device].operations().is_multiple_of(INLINE_TIMED);
        let began = timed.then(std::time::Instant::now);
        let Some(ended) = self.devices[device].start(command, lane) else { return };
        if let Some(began) = began {
            self.stats[device].add_time(ended.kind, began.elapsed().as_nanos() as u64 * INLINE_TIMED);
        }
        self.ended.push_back(ended);
    }

    /// The engine asked for something impossible: answer, so that the request ends.
    fn refuse(&mut self, op: DeviceOp) {
        tracing::error!(
            ?op,
            "BUG: the engine named memory or a device that is not there; the operation fails"
        );
        let ticket = Ticket { op: Some(op.id), hold: None, started_ns: self.now_ns };
        self.stats[CACHE].in_flight += 1;
        self.ended.push_back(Ended {
            device: CACHE,
            ticket,
            kind: CommandKind::Flush,
            result: Err(IoError::Io),
        });
    }

    /// The ring finished a call on a file.
    #[inline]
    pub fn completed(&mut self, lane: &mut Lane, operation: Operation, result: i32) {
        let ended = match operation {
            Operation::File { device, operation } => match self.devices.get_mut(device) {
                Some(Device::File(file)) => file.completed(operation, result, lane),
                _ => None,
            },
            Operation::NbdSend { device, socket, batch } => {
                lane.end(socket);
                self.nbd(lane, device, |nbd, lane, ended| nbd.sent(batch, result, lane, ended));
                None
            }
            Operation::NbdReceive { device, socket, input } => {
                lane.end(socket);
                self.nbd(lane, device, |nbd, lane, ended| nbd.received(input, result, lane, ended));
                None
            }
            _ => None,
        };
        if let Some(ended) = ended {
            self.end(lane, ended);
        }
    }

    /// Let an NBD backing do something that may end any number of commands.
    fn nbd(
        &mut self,
        lane: &mut Lane,
        device: usize,
        act: impl FnOnce(&mut NbdRunner, &mut Lane, &mut VecDeque<Ended>),
    ) {
        if let Some(Device::Nbd(nbd)) = self.devices.get_mut(device) {
            act(nbd, lane, &mut self.ended);
        }
    }

    /// Let every NBD backing look for a new connection, and send what it has gathered.
    pub fn poll_nbd(&mut self, lane: &mut Lane) {
        for device in &mut self.devices {
            if let Device::Nbd(nbd) = device {
                nbd.poll(lane, &mut self.ended);
            }
        }
    }

    /// A device operation has ended: release its memory and tell the engine.
    #[inline]
    fn end(&mut self, lane: &mut Lane, ended: Ended) {
        let Ended { device, ticket, kind, result } = ended;
        if let Some(hold) = ticket.hold {
            match hold.class {
                RegionClass::Guest => self.guests.release(hold),
                RegionClass::Stage => self.stages.release(hold),
            }
        }
        let elapsed =
            if self.devices[device].is_inline() { 0 } else { self.now_ns.saturating_sub(ticket.started_ns) };
        self.stats[device].ended(kind, elapsed, result.is_err());
        match ticket.op {
            Some(op) => {
                self.engine.complete(op, result);
                self.act(lane);
            }
            None => self.closing.one_less(),
        }
    }

    /// Handle the next operation that ended without the ring's help. False where there is none.
    #[inline]
    pub fn end_next(&mut self, lane: &mut Lane) -> bool {
        let Some(ended) = self.ended.pop_front() else { return false };
        self.end(lane, ended);
        true
    }

    /// Make one more call for every inline operation that takes several.
    pub fn continue_inline(&mut self) {
        for device in &mut self.devices {
            if let Device::File(file) = device
                && let Some(ended) = file.continue_inline()
            {
                self.ended.push_back(ended);
            }
        }
    }

    /// True where the loop has work that no completion will announce.
    pub fn has_work(&self) -> bool {
        let inline = |device: &Device| matches!(device, Device::File(file) if file.has_inline_work());
        !self.ended.is_empty() || !self.replies.is_empty() || self.devices.iter().any(inline)
    }

    /// The next reply for the frontend.
    #[inline]
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// Queue a reply, taking the request's buffer back from the engine.
    #[inline]
    fn reply(&mut self, request: RequestId, result: Result<(), IoError>) {
        let Some(cookie) = self.requests.try_remove(request.0 as usize) else {
            tracing::error!(?request, "BUG: the engine replied to a request that is not in flight");
            return;
        };
        let reply = match self.guests.take(request.0) {
            Ok(buffer) => Reply { cookie, result, buffer },
            Err(_) => {
                tracing::error!(
                    ?request,
                    "BUG: the engine replied while a device uses the memory; it is leaked"
                );
                Reply { cookie, result: Err(IoError::Io), buffer: None }
            }
        };
        self.replies.push_back(reply);
    }

    fn copy(&mut self, from: Buf, to: Buf, len: u32) {
        let memory = |driver: &mut Self, buf: Buf| {
            let (regions, _, index) = driver.regions(buf.owner);
            regions.memory(index, buf.offset, len)
        };
        let (Some(source), Some(target)) = (memory(self, from), memory(self, to)) else {
            tracing::error!(?from, ?to, len, "BUG: the engine copies memory that is not there");
            return;
        };
        if from.owner == to.owner {
            tracing::error!(?from, ?to, len, "BUG: the engine copies within one buffer");
            return;
        }
        // SAFETY: both ranges are inside their live buffers, which are different, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(source, target, len as usize) };
    }

    /// Staging memory is bounded by the engine, so it comes from beyond the guests' budget where that is spent.
    fn alloc_stage(&mut self, stage: StageId, bytes: u32) {
        let buffer = self.pool.take_beyond(bytes as usize);
        if buffer.is_none() {
            tracing::error!(bytes, "out of memory for a staging buffer: its operations fail");
        }
        self.stages.put(stage.0, buffer);
    }

    fn free_stage(&mut self, stage: StageId) {
        match self.stages.take(stage.0) {
            Ok(Some(buffer)) => self.pool.give(buffer),
            Ok(None) => {}
            Err(_) => {
                tracing::error!(?stage, "BUG: the engine freed memory that a device uses; it is leaked")
            }
        }
    }

    #[inline]
    fn regions(&mut self, owner: BufOwner) -> (&mut Regions, RegionClass, u32) {
        match owner {
            BufOwner::Guest(request) => (&mut self.guests, RegionClass::Guest, request.0),
            BufOwner::Stage(stage) => (&mut self.stages, RegionClass::Stage, stage.0),
        }
    }

    /// The allocation of a volume's range, as far as its backing tells.
    pub fn extents(&self, volume: VolumeId, offset: u64, len: u64, into: &mut Vec<Extent>) {
        match self.devices.get(volume.0 as usize + 1) {
            Some(Device::File(file)) => file.device.extents(offset, len, into),
            Some(Device::Nbd(nbd)) => {
                let len = len.min(nbd.bytes().saturating_sub(offset));
                into.extend((len > 0).then_some(Extent { len, hole: false }));
            }
            None => {}
        }
    }

    /// Flush every backing, once, before the reactor ends.
    pub fn flush_backings(&mut self, lane: &mut Lane) {
        for device in CACHE + 1..self.devices.len() {
            self.closing.one_more();
            let ticket = Ticket { op: None, hold: None, started_ns: self.now_ns };
            self.run(lane, device, without_memory(ticket, CommandKind::Flush, 0, 0, false));
        }
    }

    /// True where no request, no fill and no flush is in flight.
    pub fn is_quiet(&self) -> bool {
        self.engine.in_flight() == 0 && self.closing.is_zero() && !self.has_work()
    }
}

fn without_memory(ticket: Ticket, kind: CommandKind, offset: u64, len: u64, fua: bool) -> Command {
    Command { ticket, kind, offset, len, memory: std::ptr::null_mut(), fua }
}
