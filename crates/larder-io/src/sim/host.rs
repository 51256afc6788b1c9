//! A simulated host: drives one engine over a cache device and backings, and holds the engine to its contract.
//!
//! It does what a reactor does, in the same order: takes every action after each call, carries it out, and tells the engine
//! how operations ended. Time is a count of ticks that jumps from one completion to the next.

use super::contract::{check_copy, check_extent, check_race, extent, memory_of};
use super::memory::GARBAGE;
use super::{Digest, FaultModel, Memory, Rng, SharedSlots, SimDevice};
use larder_engine::format::Volume;
use larder_engine::{
    Action, Buf, BufOwner, CachingSpec, DeviceOp, Engine, EngineConfig, IoError, OpId, OpKind, PART_BYTES,
    Request, RequestId, RequestKind, SECTOR_BYTES, Sharing, Target, TenantId, Terms, VolumeId, Watermarks,
    WriteLimit, WritePolicy,
};
use std::collections::BTreeMap;

/// What the engine takes a tick for: so long that it matters to it whether writes wait.
const TICK_NS: u64 = 100_000;

/// Actions after one call, at most: more is an engine that never comes to rest.
const ACTIONS_MAX: usize = 1 << 20;

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The engine's configuration.
    pub engine: EngineConfig,
    /// Seed of all that is random.
    pub seed: u64,
    /// Behaviour of the cache device.
    pub cache: FaultModel,
    /// Slots that the free pool gives out at a time, at most.
    pub take_max: usize,
}

/// A guest request that has ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// What was asked.
    pub request: Request,
    /// How it ended.
    pub result: Result<(), IoError>,
    /// The guest's buffer: for a read, what was read.
    pub data: Vec<u8>,
}

/// A device operation in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingOp {
    /// The operation.
    pub op: DeviceOp,
    /// Its data has moved already.
    pub transferred: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    op: DeviceOp,
    /// When it ends, in ticks.
    due: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    request: Request,
    valid: bool,
    /// How many operations had failed when it came.
    failures: usize,
    /// How many dirty blocks had been found to be damaged, and whether it asks for one.
    lost: (u64, bool),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    op: DeviceOp,
    error: IoError,
}

/// An engine with simulated devices around it.
pub struct SimHost {
    pub(super) engine: Engine,
    config: HostConfig,
    pub(super) rng: Rng,
    pub(super) pool: SharedSlots,
    pub(super) cache: SimDevice,
    /// Where the slots begin on it.
    data_offset: u64,
    pub(super) backings: Vec<SimDevice>,
    pub(super) memory: Memory,
    pub(super) ops: BTreeMap<OpId, InFlight>,
    pub(super) live: BTreeMap<RequestId, Live>,
    pub(super) done: Vec<Done>,
    pub(super) failures: Vec<Failure>,
    pub(super) digest: Digest,
    now: u64,
    /// Where guests change their memory while it is read into, the dice for that.
    meddling: Option<Rng>,
}

impl SimHost {
    /// A host without tenants.
    pub fn new(config: HostConfig) -> Self {
        let bytes = u64::from(config.engine.cache_blocks) * u64::from(config.engine.block_bytes);
        Self::with_cache(config, bytes, 0)
    }

    pub(super) fn with_cache(config: HostConfig, bytes: u64, data_offset: u64) -> Self {
        let mut rng = Rng::new(config.seed);
        let pool = SharedSlots::new(config.engine.cache_blocks, config.take_max);
        Self {
            engine: Engine::new(config.engine, Box::new(pool.clone())),
            cache: SimDevice::new(bytes, config.cache.clone(), rng.next_u64()),
            data_offset,
            config,
            rng,
            pool,
            backings: Vec::new(),
            memory: Memory::default(),
            ops: BTreeMap::new(),
            live: BTreeMap::new(),
            done: Vec::new(),
            failures: Vec::new(),
            digest: Digest::default(),
            now: 0,
            meddling: None,
        }
    }

    /// From here on guests may change their memory while blocks with checksums are read into it, as those can that share it with the host.
    pub fn let_guests_meddle(&mut self, seed: u64) {
        self.meddling = Some(Rng::new(seed));
    }

    /// The engine, to be looked at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The free pool.
    pub fn pool(&self) -> &SharedSlots {
        &self.pool
    }

    /// The cache device.
    pub fn cache(&mut self) -> &mut SimDevice {
        &mut self.cache
    }

    /// The backing of a volume.
    pub fn backing(&mut self, volume: VolumeId) -> &mut SimDevice {
        &mut self.backings[usize::from(volume.0)]
    }

    /// The guest and staging buffers.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// A digest of all operations and replies so far, with their data, in order.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Time, in ticks.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Requests in flight.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Add a tenant.
    pub fn add_tenant(&mut self, quota_blocks: u32, policy: WritePolicy) -> TenantId {
        self.engine.add_tenant(quota_blocks, policy)
    }

    /// Choose a tenant's replacement and admission.
    pub fn set_caching(&mut self, tenant: TenantId, caching: CachingSpec) {
        self.engine.set_caching(tenant, caching);
    }

    /// Limit what a tenant writes to the cache device, or no longer.
    pub fn set_write_limit(&mut self, tenant: TenantId, limit: Option<WriteLimit>) {
        self.engine.set_write_limit(tenant, limit);
    }

    /// Limit what all tenants together write to the cache device, or no longer.
    pub fn set_common_limit(&mut self, bytes: Option<u64>) {
        self.engine.set_common_limit(bytes);
    }

    /// Have doors that remember accesses to so many blocks, or none.
    pub fn set_doors(&mut self, remembered: Option<u32>) {
        self.engine.set_doors(remembered);
    }

    /// On what terms a tenant's requests may write to the cache device, where there are doors.
    pub fn open_doors(&mut self, tenant: TenantId, terms: &Terms) {
        self.engine.open_doors(tenant, terms);
    }

    /// Have partitions lend each other what they do not use, or no longer.
    pub fn set_lending(&mut self, lending: bool) {
        self.engine.set_lending(lending);
        self.drain();
    }

    /// Have a cleaner keep blocks free, or no longer.
    pub fn set_watermarks(&mut self, watermarks: Option<Watermarks>) {
        self.engine.set_watermarks(watermarks);
    }

    /// Have a mover fill a tenant's partition, or every miss.
    pub fn set_mover(&mut self, tenant: TenantId, moves: bool) {
        self.engine.set_mover(tenant, moves);
    }

    /// The movers come.
    pub fn move_in(&mut self) {
        self.engine.move_in();
        self.drain();
    }

    /// Have tenants share a partition, or no longer.
    pub fn set_sharing(&mut self, sharing: Sharing) {
        self.engine.set_sharing(sharing);
        self.drain();
    }

    /// Have long streams of reads stay out of the cache.
    pub fn set_stream_bypass(&mut self, bytes: Option<u64>) {
        self.engine.set_stream_bypass(bytes);
    }

    /// Add a volume of `bytes` zeroes behind a backing that behaves as `model`.
    pub fn add_volume(&mut self, tenant: TenantId, bytes: u64, model: FaultModel) -> VolumeId {
        let volume = self.engine.add_volume(tenant, bytes);
        assert_eq!(usize::from(volume.0), self.backings.len(), "volume numbers are dense");
        self.backings.push(SimDevice::new(bytes, model, self.rng.next_u64()));
        volume
    }

    /// Change a quota.
    pub fn set_quota(&mut self, tenant: TenantId, blocks: u32) {
        self.engine.set_quota(tenant, blocks);
        self.drain();
    }

    /// Change what a tenant may hold where partitions lend.
    pub fn set_bounds(&mut self, tenant: TenantId, least: u32, most: u32) {
        self.engine.set_bounds(tenant, least, most);
        self.drain();
    }

    /// Change a write policy.
    pub fn set_write_policy(&mut self, tenant: TenantId, policy: WritePolicy) {
        self.engine.set_write_policy(tenant, policy);
        self.drain();
    }

    /// A volume's backing has become longer: let it grow. False where it cannot be.
    pub fn grow(&mut self, volume: VolumeId, bytes: u64) -> bool {
        self.backing(volume).grow(bytes);
        let grows = self.engine.grow_volume(volume, bytes).is_ok();
        self.drain();
        grows
    }

    /// A volume comes, behind a backing of zeroes that behaves as `model`. False where it cannot.
    pub fn join(&mut self, tenant: TenantId, known: Volume, ordered: bool, model: FaultModel) -> bool {
        let bytes = known.bytes;
        let joined = self.engine.join_volume(tenant, known, ordered);
        if let Ok(volume) = &joined {
            assert_eq!(usize::from(volume.0), self.backings.len(), "volume numbers are dense");
            self.add_backing(bytes, model);
        }
        self.drain();
        joined.is_ok()
    }

    /// True once a volume has left that was forgotten.
    pub fn leave(&mut self, volume: VolumeId) -> bool {
        let gone = self.engine.leave_volume(volume);
        self.drain();
        gone
    }

    /// Drop everything cached of a volume.
    pub fn forget_volume(&mut self, volume: VolumeId) {
        self.engine.forget_volume(volume);
        self.drain();
    }

    /// True once nothing of it can come back.
    pub fn go_on_forgetting(&mut self, volume: VolumeId) -> bool {
        let done = self.engine.go_on_forgetting(volume);
        self.drain();
        done
    }

    /// Evict what is above its quota, up to `budget` blocks. True if work is left.
    pub fn trim(&mut self, budget: usize) -> bool {
        let left = self.engine.trim(budget);
        self.drain();
        left
    }

    /// The name that the next request has to have: the lowest that is free, so that names are soon reused.
    pub fn free_id(&self) -> RequestId {
        let taken = self.live.keys().zip(0..).take_while(|(id, n)| id.0 == *n).count();
        RequestId(taken as u32)
    }

    /// Submit a request. `data` is what is written; it is ignored for all but writes.
    pub fn submit(&mut self, request: Request, data: Vec<u8>) {
        let valid = self.is_valid(&request);
        let (bytes, read_only) = match request.kind {
            RequestKind::Read if valid => (vec![GARBAGE; request.len as usize], false),
            RequestKind::Write if valid => (data, true),
            _ => (Vec::new(), true),
        };
        self.memory.add_guest(request.id, bytes, read_only);
        let lost = (self.lost_blocks(), self.asks_for_lost(&request));
        self.live.insert(request.id, Live { request, valid, failures: self.failures.len(), lost });
        self.engine.submit(request);
        self.drain();
    }

    /// End the operation that is due next. False if none is in flight.
    pub fn step(&mut self) -> bool {
        let next = self.ops.values().min_by_key(|f| (f.due, f.op.id));
        let Some(&InFlight { op, due }) = next else { return false };
        self.now = self.now.max(due);
        self.engine.set_clock(self.now * TICK_NS);
        self.finish(op.id);
        true
    }

    /// The operations in flight.
    pub fn pending(&self) -> Vec<PendingOp> {
        let ops = self.ops.values().map(|f| f.op);
        ops.map(|op| PendingOp { op, transferred: self.device(op.target).is_transferred(op.id) }).collect()
    }

    /// Move the data of an operation now.
    pub fn transfer(&mut self, id: OpId) {
        let op = self.ops.get(&id).unwrap_or_else(|| panic!("{id:?} is not in flight")).op;
        let Self { cache, backings, memory, .. } = self;
        device_mut(cache, backings, op.target).transfer(id, memory);
    }

    /// End an operation now.
    pub fn finish(&mut self, id: OpId) {
        let op = self.ops.remove(&id).unwrap_or_else(|| panic!("{id:?} is not in flight")).op;
        let Self { cache, backings, memory, meddling, .. } = self;
        let result = device_mut(cache, backings, op.target).finish(id, memory);
        if let (Some(rng), Some(sums), Ok(())) = (meddling, op.sums, result)
            && let OpKind::Read { buf, .. } = op.kind
            && matches!(buf.owner, BufOwner::Guest(_))
            && rng.below(4) == 0
        {
            let at = rng.below(u64::from(sums.bytes())) as usize;
            memory.write(buf, sums.bytes())[at] ^= 1;
        }
        let sums: Vec<u32> = match (op.sums, memory_of(&op.kind)) {
            (Some(sums), Some((buf, _))) if result.is_ok() => {
                sums.of(memory.read(buf, sums.bytes())).collect()
            }
            _ => Vec::new(),
        };
        if let Err(error) = result {
            self.failures.push(Failure { op, error });
        }
        self.engine.complete_summed(id, result, &sums);
        self.drain();
    }

    /// The requests that ended since the last call, in order.
    pub fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// Carry out what the engine wants.
    pub(super) fn drain(&mut self) {
        let cache_failed = self.engine.cache_failed();
        for _ in 0..ACTIONS_MAX {
            let Some(action) = self.engine.next_action() else { return self.check_slots() };
            let on_cache = matches!(action, Action::Device(DeviceOp { target: Target::Cache, .. }));
            assert!(!(cache_failed && on_cache), "the failed cache device is used: {action:?}");
            self.perform(action);
        }
        panic!("the engine never comes to rest");
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::AllocStage { stage, bytes } => {
                assert!(bytes > 0 && u64::from(bytes) <= PART_BYTES, "a stage of {bytes} bytes");
                self.memory.add_stage(stage, bytes);
            }
            Action::Device(op) => self.start(op),
            Action::Copy { from, to, len } => {
                self.ops.values().for_each(|f| check_copy(from, to, len, &f.op));
                self.memory.copy(from, to, len);
            }
            Action::Load { stage } => {
                let bytes = self.engine.take_load(stage);
                let to = Buf { owner: BufOwner::Stage(stage), offset: 0 };
                self.memory.write(to, bytes.len() as u32).copy_from_slice(&bytes);
            }
            Action::FreeStage { stage } => {
                self.check_unused(BufOwner::Stage(stage));
                self.memory.remove_stage(stage);
            }
            Action::Reply { request, result } => self.reply(request, result),
        }
    }

    fn start(&mut self, op: DeviceOp) {
        let align = match op.target {
            Target::Cache | Target::CacheMeta => u64::from(self.config.engine.cache_align),
            Target::Backing(_) => SECTOR_BYTES,
        };
        let room = self.device(op.target).content().len();
        check_extent(&op, if op.target == Target::Cache { room - self.data_offset } else { room }, align);
        let data = memory_of(&op.kind).map(|(buf, len)| self.memory.read(buf, len));
        self.digest.op(&op, data);
        self.ops.values().for_each(|f| check_race(&op, &f.op));
        let shift = if op.target == Target::Cache { self.data_offset } else { 0 };
        let Self { cache, backings, memory, .. } = self;
        let ticks = device_mut(cache, backings, op.target).submit(op.id, shifted(op.kind, shift), memory);
        let old = self.ops.insert(op.id, InFlight { op, due: self.now + ticks });
        assert!(old.is_none(), "{:?} is in flight already", op.id);
    }

    fn reply(&mut self, id: RequestId, result: Result<(), IoError>) {
        let live =
            self.live.remove(&id).unwrap_or_else(|| panic!("a reply to {id:?}, which is not in flight"));
        self.check_unused(BufOwner::Guest(id));
        if let Err(error) = result {
            self.check_error(&live, error);
        }
        assert!(live.valid || result.is_err(), "an invalid request succeeds: {:?}", live.request);
        let data = self.memory.remove_guest(id);
        self.digest.reply(id, result, &data);
        self.done.push(Done { request: live.request, result, data });
        if self.live.is_empty() && self.ops.is_empty() {
            self.failures.clear();
        }
    }

    fn lost_blocks(&self) -> u64 {
        let tenants = self.engine.tenants();
        tenants.map(|tenant| self.engine.stats(tenant).lost_blocks).sum()
    }

    /// The request touches a dirty block that cannot be read any more.
    fn asks_for_lost(&self, request: &Request) -> bool {
        let bytes = u64::from(self.config.engine.block_bytes);
        let touches = |block: u64| {
            request.offset < (block + 1) * bytes && block * bytes < request.offset.saturating_add(request.len)
        };
        self.engine.lost().any(|(volume, block)| volume == request.volume && touches(block))
    }

    /// Panics unless the guest's error is the guest's own fault, the backing's, or that of damaged data that the cache alone had.
    fn check_error(&self, live: &Live, error: IoError) {
        let request = &live.request;
        let wrote_back = self.engine.metadata_bytes() > 0;
        let caused = |f: &Failure| {
            let (start, len) = extent(&f.op.kind);
            let overlaps = start < request.offset + request.len && request.offset < start + len;
            let flushes =
                matches!(f.op.kind, OpKind::Flush) && (request.fua || request.kind == RequestKind::Flush);
            match f.op.target {
                Target::Backing(volume) => {
                    volume == request.volume && f.error == error && (overlaps || flushes)
                }
                // What is dirty is on the cache device alone.
                Target::Cache => wrote_back && f.error == error,
                Target::CacheMeta => false,
            }
        };
        let (lost, asks_for_lost) = live.lost;
        let damaged = asks_for_lost || self.asks_for_lost(request) || self.lost_blocks() > lost;
        let damaged = damaged && error == IoError::Io;
        let refused = self.engine.is_failed(request.volume) && error == IoError::Io;
        // An ordered volume's requests wait for what is older.
        let failing = self.engine.backing_failing_for(request.volume).is_some();
        let refused = refused || (failing && self.engine.is_ordered(request.volume));
        match live.valid {
            true if refused => {}
            true => assert!(
                damaged || self.failures[live.failures..].iter().any(caused),
                "{request:?} fails with {error:?}, which no operation on its backing did"
            ),
            false => assert_eq!(error, IoError::Invalid, "the error of {request:?}"),
        }
    }

    fn check_unused(&self, owner: BufOwner) {
        let user =
            self.ops.values().find(|f| memory_of(&f.op.kind).is_some_and(|(buf, _)| buf.owner == owner));
        assert!(user.is_none(), "{owner:?} is given back while {user:?} is in flight");
    }

    /// Panics if an operation is in flight on a slot that is free.
    fn check_slots(&self) {
        let block = u64::from(self.config.engine.block_bytes);
        for InFlight { op, .. } in self.ops.values().filter(|f| f.op.target == Target::Cache) {
            let (start, len) = extent(&op.kind);
            let mut slots = start / block..(start + len).div_ceil(block);
            assert!(!slots.any(|s| self.pool.contains(s as u32)), "the slot of {op:?} is free");
        }
    }

    fn is_valid(&self, request: &Request) -> bool {
        let Some(end) = request.offset.checked_add(request.len) else { return false };
        let bytes = self.backings[usize::from(request.volume.0)].content().len();
        let aligned = request.offset.is_multiple_of(SECTOR_BYTES) && request.len.is_multiple_of(SECTOR_BYTES);
        request.kind == RequestKind::Flush || (aligned && end <= bytes)
    }

    fn device(&self, target: Target) -> &SimDevice {
        match target {
            Target::Cache | Target::CacheMeta => &self.cache,
            Target::Backing(volume) => &self.backings[usize::from(volume.0)],
        }
    }
}

/// The same operation further on.
fn shifted(kind: OpKind, by: u64) -> OpKind {
    match kind {
        OpKind::Read { offset, len, buf } => OpKind::Read { offset: offset + by, len, buf },
        OpKind::Write { offset, len, buf, fua } => OpKind::Write { offset: offset + by, len, buf, fua },
        other => other,
    }
}

fn device_mut<'a>(
    cache: &'a mut SimDevice,
    backings: &'a mut [SimDevice],
    target: Target,
) -> &'a mut SimDevice {
    match target {
        Target::Cache | Target::CacheMeta => cache,
        Target::Backing(volume) => &mut backings[usize::from(volume.0)],
    }
}
