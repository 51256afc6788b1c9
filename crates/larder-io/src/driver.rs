//! Drives the engine: carries out its actions on real memory and devices, and tells it how they ended.
//!
//! Replies are queued here, and handed to the frontend by the loop: nothing calls back from inside a call.

mod given_up;
mod loans;
mod metadata;
mod misses;
pub(crate) mod slow;
mod swap;
mod volumes;

use crate::backing::Device;
use crate::cache_device::HEADER_BYTES;
use crate::command::{Command, CommandKind, Ended, Ticket};
use crate::frontend::{Extent, GuestRequest, VolumeInfo};
use crate::lane::{Lane, Operation};
use crate::loan::Place;
use crate::memory::{Held, RegionClass, Regions};
use crate::monitor::Monitor;
use crate::nbd_backing::NbdRunner;
use crate::requests::{Clocked, Flight, RequestStats};
use crate::stats::{ClosingFlushes, DeviceStats, Sampler, UnfinishedDevice};
use crate::{Buffer, BufferPool};
use larder_engine::{
    Action, Buf, BufOwner, DeviceOp, Engine, IoError, Kind, OpKind, Request, RequestId, RequestKind, StageId,
    Sums, Target, TenantId, VolumeId,
};
use slab::Slab;
use std::collections::{HashMap, HashSet, VecDeque};

pub(crate) use given_up::{GivenUp, Tell};
pub(crate) use swap::Another;

/// Guest requests that a reactor holds at most; beyond it they fail at once. Far above what frontends let in.
const REQUESTS_MAX: usize = 65_536;
/// Index of the cache among the devices; the backing of volume `v` is `v + 1`.
const CACHE: usize = 0;

/// A volume as the driver needs it.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub tenant: TenantId,
    pub info: VolumeInfo,
    /// Requests that would change it wait.
    pub frozen: bool,
    /// What its guests have asked.
    pub requests: RequestStats,
    /// What a cache that is kept knows it by.
    pub known: Option<larder_engine::format::Volume>,
}

impl Volume {
    pub fn new(tenant: TenantId, info: VolumeInfo) -> Self {
        Self { tenant, info, frozen: false, requests: RequestStats::default(), known: None }
    }
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
    /// Who is told when the cache is given up.
    pub given_up: GivenUp,
    pub stats: Vec<DeviceStats>,
    devices: Vec<Device>,
    /// Which of the devices are NBD backings.
    nbds: Vec<usize>,
    /// Inline devices with operations that take more calls.
    unfinished: Vec<usize>,
    samplers: Vec<Sampler>,
    /// The guest requests in flight; a region with the same number has the buffer of each.
    requests: Slab<Flight>,
    /// How long they take.
    pub clocked: Clocked,
    guests: Regions,
    stages: Regions,
    /// Reads to lent memory that go to memory of the reactor's first, by operation.
    detours: HashMap<u32, loans::Detour>,
    /// For a look at lent memory.
    scratch: Vec<u8>,
    /// Stages that hold data of a backing: whoever gets some of it, or adds to it, has waited for that.
    from_backing: HashSet<u32>,
    /// Where the slots begin on the cache device, in bytes.
    data_offset: u64,
    /// The checksums that operations in flight are to give.
    sums: HashMap<u32, (Sums, OpKind)>,
    replies: VecDeque<Reply>,
    /// Requests that wait for their volume to be thawed, in the order in which they came.
    frozen: VecDeque<volumes::Frozen>,
    ended: VecDeque<Ended>,
    /// Time on the reactor's clock, renewed once per turn of the loop.
    pub now_ns: u64,
    /// How fast the devices were.
    looks: slow::Looks,
    /// The reactor's own flushes.
    closing: ClosingFlushes,
    /// The cache is to stop cleanly.
    stopping: bool,
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
            data_offset: engine.data_offset().unwrap_or(HEADER_BYTES),
            sums: HashMap::new(),
            engine,
            volumes,
            pool,
            monitor,
            given_up: GivenUp::default(),
            stats: devices.iter().map(|_| DeviceStats::default()).collect(),
            nbds: (0..devices.len()).filter(|&device| matches!(devices[device], Device::Nbd(_))).collect(),
            unfinished: Vec::new(),
            samplers: vec![Sampler::default(); devices.len()],
            devices,
            requests: Slab::new(),
            clocked: Clocked::default(),
            guests: Regions::default(),
            stages: Regions::default(),
            detours: HashMap::new(),
            scratch: Vec::new(),
            from_backing: HashSet::new(),
            replies: VecDeque::new(),
            frozen: VecDeque::new(),
            ended: VecDeque::new(),
            now_ns: 0,
            looks: slow::Looks::default(),
            closing: ClosingFlushes::default(),
            stopping: false,
        }
    }

    /// A guest asks. What cannot be asked is refused here; the engine checks the rest.
    #[inline]
    pub fn submit(&mut self, lane: &mut Lane, asked: GuestRequest, memory: Option<Held>, cookie: u64) {
        if let Err(error) = self.check(&asked, memory.as_ref()) {
            let buffer = memory.and_then(into_buffer);
            self.replies.push_back(Reply { cookie, result: Err(error), buffer });
            if let Some(volume) = self.volumes.get_mut(usize::from(asked.volume.0)) {
                volume.requests.ended(asked.kind, 0, true);
            }
            return;
        }
        if self.volumes[usize::from(asked.volume.0)].frozen && volumes::changes(asked.kind) {
            return self.frozen.push_back(volumes::Frozen { asked, memory, cookie });
        }
        let GuestRequest { volume, kind, offset, len, fua } = asked;
        let bytes = if kind == RequestKind::Flush { 0 } else { len };
        let started_ns = self.now_ns;
        let flight =
            Flight { cookie, started_ns, bytes, volume, kind, missed: false, asked: Kind::default() };
        let id = self.requests.insert(flight) as u32;
        self.guests.put(id, memory);
        let taken_for = self.engine.submit(Request { id: RequestId(id), volume, kind, offset, len, fua });
        self.requests[id as usize].asked = taken_for;
        self.monitor.record(self.volumes[volume.0 as usize].tenant, &asked, taken_for, self.now_ns);
        self.act(lane);
    }

    fn check(&self, asked: &GuestRequest, memory: Option<&Held>) -> Result<(), IoError> {
        let volume = self.volumes.get(asked.volume.0 as usize).ok_or(IoError::Invalid)?;
        let moves_data = matches!(asked.kind, RequestKind::Read | RequestKind::Write);
        let aligned = (asked.offset | asked.len).is_multiple_of(u64::from(volume.info.min_block));
        if asked.kind != RequestKind::Flush && !aligned
            || moves_data && memory.is_none_or(|memory| memory.bytes() < asked.len)
            || asked.kind != RequestKind::Read && matches!(memory, Some(Held::Lent(_)))
        {
            return Err(IoError::Invalid);
        }
        if volume.info.read_only && !matches!(asked.kind, RequestKind::Read | RequestKind::Flush) {
            return Err(IoError::NotSupported);
        }
        if self.requests.len() + self.frozen.len() < REQUESTS_MAX { Ok(()) } else { Err(IoError::Io) }
    }

    /// Carry out everything that the engine wants done.
    #[inline]
    pub fn act(&mut self, lane: &mut Lane) {
        // Before anything goes past it.
        self.given_up.look(&self.engine);
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Device(op) => self.start(lane, op),
                Action::Reply { request, result } => self.reply(request, result),
                Action::Copy { from, to, len } => self.copy(from, to, len),
                Action::Load { stage } => self.load(stage),
                Action::AllocStage { stage, bytes } => self.alloc_stage(stage, bytes),
                Action::FreeStage { stage } => self.free_stage(stage),
            }
        }
    }

    #[inline]
    fn start(&mut self, lane: &mut Lane, op: DeviceOp) {
        let (device, shift) = match op.target {
            Target::Cache => (CACHE, self.data_offset),
            Target::CacheMeta => (CACHE, 0),
            Target::Backing(volume) => (volume.0 as usize + 1, 0),
        };
        if device != CACHE {
            self.waits_for_backing(&op.kind);
        }
        let mut ticket = Ticket { op: Some(op.id), hold: None, started_ns: self.now_ns };
        if let Some(sums) = op.sums {
            self.sums.insert(op.id.0, (sums, op.kind));
        }
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
                let command = Command { offset: command.offset + shift, ..command };
                match command.lent.is_none() || self.may_go_straight(device, &command.ticket) {
                    true => self.run(lane, device, command),
                    false => self.detour(lane, device, command),
                }
            }
            _ => self.refuse(op, device),
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
        let (memory, is_lent) = regions.place(index, buf.offset, len)?;
        if is_lent && kind != CommandKind::Read {
            return None;
        }
        ticket.hold = regions.hold(class, index);
        let lent = is_lent.then_some(buf.offset);
        Some(Command { ticket: *ticket, kind, offset, len: u64::from(len), memory, lent, fua })
    }

    #[inline]
    fn run(&mut self, lane: &mut Lane, device: usize, command: Command) {
        self.stats[device].in_flight += 1;
        let inline = self.devices[device].is_inline();
        if !inline {
            self.looks.begins(device, command.kind, command.ticket.started_ns);
        }
        let weight = if inline { self.samplers[device].weight(command.kind) } else { 0 };
        let began = (weight > 0).then(std::time::Instant::now);
        let Some(ended) = self.devices[device].start(command, lane) else {
            if inline {
                self.continue_later(device);
            }
            return;
        };
        if let Some(began) = began {
            let elapsed = began.elapsed().as_nanos() as u64;
            self.stats[device].add_time(ended.kind, elapsed * weight);
        }
        self.ended.push_back(ended);
    }

    fn continue_later(&mut self, device: usize) {
        if !self.unfinished.contains(&device) {
            self.unfinished.push(device);
        }
    }

    /// The engine asked for something impossible: answer, so that the request ends. Counted as the device's error.
    fn refuse(&mut self, op: DeviceOp, device: usize) {
        tracing::error!(
            ?op,
            "BUG: the engine named memory or a device that is not there; the operation fails"
        );
        let ticket = Ticket { op: Some(op.id), hold: None, started_ns: self.now_ns };
        let device = if device < self.devices.len() { device } else { CACHE };
        self.stats[device].in_flight += 1;
        self.ended.push_back(Ended {
            device,
            ticket,
            kind: kind_of(&op.kind),
            result: Err(IoError::Io),
            again: None,
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
            Operation::Run { device, run } => {
                if let Some(Device::File(file)) = self.devices.get_mut(device) {
                    file.completed_run(*run, result, lane, &mut self.ended);
                }
                None
            }
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
            if nbd.take_distrust() {
                self.engine.distrust(VolumeId((device - CACHE - 1) as u16));
            }
        }
    }

    /// Let every NBD backing look for a new connection, and send what it has gathered.
    pub fn poll_nbd(&mut self, lane: &mut Lane) {
        for &device in &self.nbds {
            if let Device::Nbd(nbd) = &mut self.devices[device] {
                nbd.poll(self.now_ns, lane, &mut self.ended);
            }
        }
    }

    /// A device operation has ended: release its memory and tell the engine.
    #[inline]
    fn end(&mut self, lane: &mut Lane, ended: Ended) {
        let Ended { device, ticket, kind, result, again } = ended;
        if !self.devices[device].is_inline() {
            self.looks.ended(device, kind, ticket.started_ns);
        }
        if let Some(command) = again {
            self.stats[device].in_flight -= 1;
            return self.detour(lane, device, *command);
        }
        // While the memory is still held.
        let sums = ticket.op.map_or(Vec::new(), |op| self.sums_of(op, result));
        self.end_detour(&ticket, result);
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
                self.engine.complete_summed(op, result, &sums);
                self.act(lane);
            }
            None => self.flushed(device, result),
        }
    }

    /// A backing's last flush has ended.
    fn flushed(&mut self, device: usize, result: Result<(), IoError>) {
        self.closing.end(device, result.is_ok());
        if result.is_err() {
            let backing = self.devices[device].name();
            tracing::error!(
                backing,
                "its last flush failed: what it has not made durable by itself may be lost"
            );
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
        let Self { unfinished, devices, ended, .. } = self;
        unfinished.retain(|&device| {
            let Some(Device::File(file)) = devices.get_mut(device) else { return false };
            ended.extend(file.continue_inline());
            file.has_inline_work()
        });
    }

    /// True where the loop has work that no completion will announce.
    pub fn has_work(&self) -> bool {
        !self.ended.is_empty() || !self.replies.is_empty() || !self.unfinished.is_empty()
    }

    /// The next reply for the frontend.
    #[inline]
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// Queue a reply, taking the request's buffer back from the engine.
    #[inline]
    fn reply(&mut self, request: RequestId, result: Result<(), IoError>) {
        let Some(flight) = self.requests.try_remove(request.0 as usize) else {
            tracing::error!(?request, "BUG: the engine replied to a request that is not in flight");
            return;
        };
        let Flight { cookie, volume, kind, bytes, .. } = flight;
        let volume = &mut self.volumes[usize::from(volume.0)];
        volume.requests.ended(kind, bytes, result.is_err());
        if result.is_ok() {
            self.clocked.answered(volume.tenant, &flight);
        }
        let reply = match self.guests.take(request.0) {
            Ok(memory) => {
                if let (Err(_), Some(Held::Lent(loan))) = (result, &memory) {
                    // A device may have written there what is not the guest's.
                    loan.clear();
                }
                Reply { cookie, result, buffer: memory.and_then(into_buffer) }
            }
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
        let source = memory(self, from);
        if let Some(source) = source
            && self.copy_to_lent(source, to, len)
        {
            return self.note_copy(from.owner, to.owner);
        }
        let (Some(source), Some(target)) = (source, memory(self, to)) else {
            tracing::error!(?from, ?to, len, "BUG: the engine copies memory that is not there");
            return;
        };
        if from.owner == to.owner {
            tracing::error!(?from, ?to, len, "BUG: the engine copies within one buffer");
            return;
        }
        self.note_copy(from.owner, to.owner);
        // SAFETY: both ranges are inside their live buffers, which are different, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(source, target, len as usize) };
    }

    /// Staging memory is bounded by the engine, so it comes from beyond the guests' budget where that is spent.
    fn alloc_stage(&mut self, stage: StageId, bytes: u32) {
        let buffer = self.pool.take_beyond(bytes as usize);
        if buffer.is_none() {
            tracing::error!(bytes, "out of memory for a staging buffer: its operations fail");
        }
        self.stages.put(stage.0, buffer.map(Held::Own));
    }

    fn free_stage(&mut self, stage: StageId) {
        self.from_backing.remove(&stage.0);
        match self.stages.take(stage.0) {
            Ok(memory) => memory.and_then(into_buffer).into_iter().for_each(|buffer| self.pool.give(buffer)),
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
            Some(Device::Gone { .. }) | None => {}
        }
    }

    /// Flush every backing, once, before the reactor ends.
    pub fn flush_backings(&mut self, lane: &mut Lane) {
        for device in CACHE + 1..self.devices.len() {
            match &self.devices[device] {
                // A server that is down need not come back for nothing.
                Device::Nbd(nbd) if !nbd.owes_flush() => continue,
                Device::Gone { .. } => continue,
                Device::Nbd(_) | Device::File(_) => {}
            }
            self.closing.begin(device);
            let ticket = Ticket { op: None, hold: None, started_ns: self.now_ns };
            self.run(lane, device, without_memory(ticket, CommandKind::Flush, 0, 0, false));
        }
        self.poll_nbd(lane);
    }

    /// True where no request and no fill is in flight.
    pub fn is_quiet(&self) -> bool {
        self.engine.in_flight() == 0 && !self.has_work()
    }

    /// True where every flush of [`Driver::flush_backings`] has ended, and the cache has stopped.
    pub fn is_flushed(&self) -> bool {
        self.closing.are_done() && (!self.stopping || self.engine.is_stopped())
    }

    /// Guest requests without an answer.
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    /// Take leave of the NBD backings: from here on a connection that ends is as it should be.
    pub fn close_backings(&mut self, lane: &mut Lane) {
        for &device in &self.nbds {
            if let Device::Nbd(nbd) = &mut self.devices[device] {
                nbd.closing();
                nbd.farewell(lane);
            }
        }
    }

    /// The devices that held something up: with operations in flight now or (as given by device) before, or not flushed in the
    /// end.
    pub fn unfinished_devices(&self, before: &[u32]) -> Vec<UnfinishedDevice> {
        let of = |device: usize| UnfinishedDevice {
            name: self.devices[device].name(),
            operations: self.stats[device].in_flight.max(before.get(device).copied().unwrap_or(0)),
            flushed: !self.closing.is_missing(device),
        };
        let held_up = |device: &UnfinishedDevice| device.operations > 0 || !device.flushed;
        (0..self.devices.len()).map(of).filter(held_up).collect()
    }
}

/// What is not the reactor's goes back to whoever has lent it.
fn into_buffer(memory: Held) -> Option<Buffer> {
    match memory {
        Held::Own(buffer) => Some(buffer),
        Held::Lent(_) => None,
    }
}

/// As devices count it.
fn kind_of(kind: &OpKind) -> CommandKind {
    match *kind {
        OpKind::Read { .. } => CommandKind::Read,
        OpKind::Write { .. } => CommandKind::Write,
        OpKind::Flush => CommandKind::Flush,
        OpKind::Discard { .. } => CommandKind::Discard,
        OpKind::WriteZeroes { no_hole, .. } => CommandKind::WriteZeroes { no_hole },
    }
}

fn without_memory(ticket: Ticket, kind: CommandKind, offset: u64, len: u64, fua: bool) -> Command {
    Command { ticket, kind, offset, len, memory: Place::NONE, lent: None, fua }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SharedPool;
    use crate::file::FileDevice;
    use larder_engine::{EngineConfig, OpId, WritePolicy};

    /// A driver with a cache and one backing, both in memory.
    pub(super) fn driver(lane: &mut Lane) -> Driver {
        let config = EngineConfig { block_bytes: 4096, cache_align: 512, cache_blocks: 16 };
        let mut engine = Engine::new(config, Box::new(SharedPool::new(16)));
        let tenant = engine.add_tenant(16, WritePolicy::WriteThrough);
        engine.add_volume(tenant, 1 << 20);
        let mut device = |index| {
            let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
            file.as_file().set_len(1 << 20).unwrap();
            Device::file(FileDevice::open_backing(file.path()).unwrap(), index, lane)
        };
        let devices = vec![device(0), device(1)];
        let info = VolumeInfo { bytes: 1 << 20, min_block: 512, preferred_block: 4096, read_only: false };
        let pool = BufferPool::new(1 << 20);
        Driver::new(engine, vec![Volume::new(tenant, info)], devices, pool, Monitor::new(None))
    }

    #[test]
    fn an_operation_without_memory_counts_against_its_own_device() {
        let mut lane = Lane::new().unwrap();
        let mut driver = driver(&mut lane);
        let buf = Buf { owner: BufOwner::Stage(StageId(77)), offset: 0 };
        let kind = OpKind::Read { offset: 0, len: 4096, buf };
        driver.start(
            &mut lane,
            DeviceOp { id: OpId(5), target: Target::Backing(VolumeId(0)), kind, sums: None },
        );
        let Ended { device, kind, result, .. } = driver.ended.pop_front().unwrap();
        assert_eq!((device, kind, result), (1, CommandKind::Read, Err(IoError::Io)));
        assert_eq!((driver.stats[0].in_flight, driver.stats[1].in_flight), (0, 1));
    }
}
