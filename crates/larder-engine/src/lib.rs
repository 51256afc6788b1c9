//! The data path of the cache as a deterministic state machine without I/O.
//!
//! Guest requests ([`Engine::submit`]) and the ends of device operations ([`Engine::complete`]) go in; [`Action`]s come out
//! ([`Engine::next_action`]): device operations, memory copies, replies. The engine knows no clock, no thread, no file and no socket. A reactor of
//! `larder-io` drives it in production; a seeded simulation drives it in tests, and replays any failure from its seed.
//!
//! # How a request runs
//!
//! A request is cut into *parts* of at most [`PART_BYTES`] (`request.rs`). A part takes a range lock on its bytes (`locks.rs`): shared for a read, exclusive
//! for anything that writes. Under its lock it looks at each of its blocks:
//!
//! * **read** (`read.rs`): a cached block is read from its slot; a block whose fill is under way is taken from the fill; an absent block starts a *fill*
//!   (`fill.rs`), or is read past the cache where it may not enter.
//! * **write** (`write.rs`): goes to the backing; under `wt` also to the slot of a cached block, and a whole absent block is admitted; under
//!   `ro` the block is invalidated.
//!   `wb` to a slot alone (`write_back.rs`), and to the backing only where the cache cannot take it (`out.rs`). The cleaner (`clean`) writes it back,
//!   in the order of the volume's flushes where that is asked for (`order`).
//! * **discard, write-zeroes** (`range.rs`): go to the backing; the blocks are invalidated.
//!
//! A fill holds a shared lock of its own on whole blocks until its data is in the cache. So a write never runs beside the fill of its
//! block, and old bytes cannot land in the cache after new ones. The lock also is what pins: a block on which anyone holds a lock is never
//! evicted (`partition.rs`), so a slot is never reused while an operation on it is in flight.
//!
//! But for dirty blocks the backing holds the truth: under `wt` and `ro` a write is complete only when the backing has it. Hence any doubt about a slot (an error of the
//! cache device, a failed write) is settled by dropping the entry, and any doubt about a backing (a failed flush) by dropping all of its (`distrust.rs`).
//!
//! A cache that was opened ([`Engine::open_cache`]) is kept over stops and crashes (`durable`). Then every block has a checksum: hits are read as
//! whole blocks and verified, and a write of a part of a cached block is a merge (`merge.rs`).

mod allowance;
mod alone;
mod api;
mod caching;
mod cells;
mod chains;
mod check;
mod clean;
mod distrust;
mod doors;
mod durable;
mod fill;
mod flush;
mod forget;
pub mod format;
mod free_slots;
mod lending;
mod locks;
mod merge;
mod mover;
mod ops;
mod order;
mod out;
mod partition;
mod partitions;
mod pooled;
mod range;
mod read;
mod request;
mod resume;
mod sharing;
mod slots_wait;
mod slow;
mod stats;
mod store;
mod stream;
mod usage;
mod write;
mod write_back;

pub use allowance::WriteLimit;
pub use api::*;
pub use clean::{DirtyLimits, Drain};
pub use doors::OfferedBlocks;
#[cfg(feature = "planted")]
pub use durable::recover_planted;
pub use durable::{GrowError, JoinError, OpenError, Planted, Sums};
pub use free_slots::FreeSlots;
pub use larder_policy::doors::{KINDS, Kind, SHAPES, Terms};
pub use larder_policy::spec::CachingSpec;
pub use larder_policy::watermarks::Watermarks;
pub use request::{PART_BYTES, PARTS_MAX, RANGE_PART_BYTES};
pub use resume::{Resumed, SessionMark};
pub use sharing::Sharing;
pub use slow::PROBE_EVERY;
pub use stats::TenantStats;

use allowance::Allowance;
use clean::Cleaner;
use distrust::Sweep;
use doors::Offered;
use durable::Durable;
use fill::Fill;
use flush::Flushes;
use larder_policy::watermarks::PoolCleaner;
use locks::{Owner, RangeLocks};
use merge::Merge;
use mover::Mover;
use ops::{Op, StagedRead};
use order::Order;
use out::Out;
use partitions::{PartitionId, Partitions};
use request::{Guest, Part};
use slab::Slab;
use slow::SlowCache;
use std::collections::{BTreeMap, VecDeque};
use store::Store;
use usage::Hits;

/// Where slots of the cache device come from and go back to: the free pool that all engines of a host share.
pub trait FreePool {
    /// Move up to `count` free slots to `into`; fewer (or none) where the pool is short. True if it has more.
    fn take(&mut self, count: usize, into: &mut Vec<u32>) -> bool;
    /// Give slots back; `slots` is left empty.
    fn give(&mut self, slots: &mut Vec<u32>);
}

/// How an engine is set up.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Bytes in a block: a power of two from 4 KiB to 128 KiB.
    pub block_bytes: u32,
    /// Smallest unit that the cache device reads and writes (its logical block size): 512 or 4096.
    pub cache_align: u32,
    /// Blocks that the cache device holds in all (slot numbers are below it).
    pub cache_blocks: u32,
}

/// Errors of the cache device in a row, or of its writes, after which it is used no more; more of them where [`SUCCESSES_PER_ERROR`] are between.
pub const CACHE_ERRORS_MAX: u32 = 32;

/// So many successes make up for an error: a device that fails more often than that is given up in the end.
pub const SUCCESSES_PER_ERROR: u32 = 8;

/// Memory for fills in flight from which the cache device counts as being behind: a reader then waits until its blocks are cached.
pub const STAGE_BYTES_BEHIND: u64 = 8 << 20;

/// Memory for fills in flight; a read that finds it used up is read past the cache. What enters nowhere, and is only read at once with others, takes half of
/// [`STAGE_BYTES_BEHIND`] at most.
pub const STAGE_BYTES_MAX: u64 = 64 << 20;

/// Errors of a device, less what successes have made up for.
#[derive(Clone, Copy, Debug, Default)]
struct ErrorScore(u32);

impl ErrorScore {
    fn note(&mut self, ok: bool) {
        self.0 = if ok { self.0.saturating_sub(1) } else { self.0.saturating_add(SUCCESSES_PER_ERROR) };
    }

    fn is_too_much(self) -> bool {
        self.0 >= CACHE_ERRORS_MAX * SUCCESSES_PER_ERROR
    }
}

/// What is a tenant's own, whatever partition its blocks are in.
#[derive(Debug)]
struct Tenant {
    policy: WritePolicy,
    stats: TenantStats,
    /// Slots that its blocks have, those of dead blocks among them.
    held: u32,
    /// What it may write to the cache device.
    allowance: Allowance,
    dirty_limits: DirtyLimits,
    /// Its blocks that are newer on the cache device than on the backing.
    dirty: u32,
}

/// One volume.
#[derive(Debug)]
struct Volume {
    tenant: TenantId,
    bytes: u64,
    locks: RangeLocks,
    stream: stream::Stream,
    /// Fills in flight, few: searched by scanning.
    fills: Vec<u32>,
    flushes: Flushes,
    /// The backing may have lost writes: the cache is not used until nothing old is left in it.
    distrusted: bool,
    /// Blocks newer on the cache device than on the backing.
    dirty: u32,
    /// A guest's write to the backing has ended that no flush covers.
    unflushed: bool,
    /// The cache device failed with data that the backing does not have: nothing is served.
    failed: bool,
    /// It stays distrusted until it is forgotten.
    forgetting: bool,
    /// It has left: nothing is asked of its backing any more.
    gone: bool,
    slow_cache: SlowCache,
    /// Its writes reach the backing in the order of its flushes.
    order: Option<Box<Order>>,
}

/// The state machine. One reactor owns it, with all the volumes of its tenants; only the free pool is shared.
pub struct Engine {
    config: EngineConfig,
    tenants: Vec<Tenant>,
    partitions: Partitions,
    volumes: Vec<Volume>,
    store: Store,
    pool: Box<dyn FreePool + Send>,
    /// Slots held without an entry, to be used last to first.
    free_slots: Vec<u32>,
    /// The pool had no more slots when it was asked last.
    pool_is_dry: bool,
    guests: Slab<Guest>,
    /// Guest requests in flight that are one part.
    alone: usize,
    parts: Slab<Part>,
    fills: Slab<Fill>,
    merges: Slab<Merge>,
    ops: Slab<Op>,
    stages: Slab<u32>,
    stage_bytes: u64,
    actions: VecDeque<Action>,
    /// Owners whose lock was just granted.
    granted: VecDeque<Owner>,
    scratch: Vec<read::Class>,
    /// Hits that replacement policies were not told of yet: by the tenant's own partition and entry, in order.
    touched: Vec<(PartitionId, store::EntryId)>,
    /// Errors of the cache device; and of its writes alone, since it may be one that can only be read.
    cache_errors: ErrorScore,
    cache_write_errors: ErrorScore,
    cache_failed: bool,
    /// Requests wait until nothing is under way: the engine is to go on with another cache.
    held: bool,
    /// Volumes whose blocks are being dropped.
    sweeps: Vec<Sweep>,
    /// True while a tenant may be above its quota, slots may be surplus, or a sweep is under way.
    trim_due: bool,
    /// Writes that go to the backing where the cache cannot take them, by their part.
    outs: BTreeMap<u32, Vec<Out>>,
    /// Parts that wait for slots, in order.
    short_of_slots: Vec<u32>,
    /// Partitions lend each other what they do not use.
    lending: bool,
    /// The moment, in nanoseconds since any other; 0 where nobody tells.
    clock_ns: u64,
    /// Whether tenants share a partition.
    sharing: Sharing,
    /// Slots that all tenants hold.
    held_blocks: u32,
    /// Slots beside those of the blocks that they may.
    spare_slots: u32,
    /// What keeps blocks free, where anything does.
    pool_cleaner: Option<PoolCleaner>,
    /// Blocks that all tenants may hold together where they share a partition, and those of all that are dirty.
    shared_quota: u64,
    dirty: u32,
    /// From so many bytes on, streams of reads stay out of the cache.
    stream_bypass: Option<u64>,
    /// What all tenants may write to the cache device, and have, in bytes.
    common_limit: Option<u64>,
    spent_bytes: u64,
    /// Which requests enter, where that has its price.
    offered: Option<Box<Offered>>,
    /// What fills the partitions that are not filled at each miss, by tenant.
    movers: BTreeMap<u16, Mover>,
    /// Which blocks are hit, where somebody wants to know.
    hits: Option<Hits>,
    cleaner: Cleaner,
    /// Volumes whose writes have an order.
    ordered: Vec<VolumeId>,
    /// What keeps the cache over a stop, where it is kept.
    durable: Option<Box<Durable>>,
    #[cfg(feature = "planted")]
    planted: Option<Planted>,
}

impl Engine {
    /// An engine without tenants.
    ///
    /// # Panics
    /// If the block size is no power of two in 4 KiB..=128 KiB, or `cache_align` is neither 512 nor 4096.
    pub fn new(config: EngineConfig, pool: Box<dyn FreePool + Send>) -> Self {
        assert!(config.block_bytes.is_power_of_two() && (4096..=131_072).contains(&config.block_bytes));
        assert!(matches!(config.cache_align, 512 | 4096));
        Self {
            config,
            tenants: Vec::new(),
            partitions: Partitions::default(),
            volumes: Vec::new(),
            store: Store::new(0),
            pool,
            free_slots: Vec::new(),
            pool_is_dry: false,
            guests: Slab::new(),
            alone: 0,
            parts: Slab::new(),
            fills: Slab::new(),
            merges: Slab::new(),
            ops: Slab::new(),
            stages: Slab::new(),
            stage_bytes: 0,
            actions: VecDeque::new(),
            granted: VecDeque::new(),
            scratch: Vec::new(),
            touched: Vec::new(),
            cache_errors: ErrorScore::default(),
            cache_write_errors: ErrorScore::default(),
            cache_failed: false,
            held: false,
            sweeps: Vec::new(),
            trim_due: false,
            outs: BTreeMap::new(),
            short_of_slots: Vec::new(),
            lending: false,
            clock_ns: 0,
            sharing: Sharing::Off,
            held_blocks: 0,
            spare_slots: 0,
            pool_cleaner: None,
            shared_quota: 0,
            dirty: 0,
            stream_bypass: None,
            common_limit: None,
            spent_bytes: 0,
            offered: None,
            movers: BTreeMap::new(),
            hits: None,
            cleaner: Cleaner::default(),
            ordered: Vec::new(),
            durable: None,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }

    /// The same engine with this seed for its index: a guest that knew it could choose blocks that fall into one bucket, and slow its neighbours
    /// down. Nothing else depends on it, but which blocks
    /// a Bloom filter or a sketch takes for one another.
    ///
    /// # Panics
    /// If anything is cached already.
    pub fn with_hash_seed(mut self, seed: u64) -> Self {
        assert_eq!(self.store.len(), 0, "the seed comes first");
        self.store = Store::new(seed);
        if self.partitions.keep_tags() {
            self.store.keep_tags();
        }
        self
    }

    /// The same engine with so many of its slots to spare: where partitions lend, or a cleaner keeps blocks free, tenants hold no more than the others. Elsewhere that is up to
    /// their quotas.
    pub fn with_spare_slots(mut self, slots: u32) -> Self {
        self.spare_slots = slots;
        self
    }

    /// Add a tenant with no volumes, and a quota in blocks; its blocks are replaced by LRU, and each may enter, unless [`Engine::set_caching`] says otherwise.
    ///
    /// # Panics
    /// Beyond 65,536 tenants.
    pub fn add_tenant(&mut self, quota_blocks: u32, policy: WritePolicy) -> TenantId {
        let id = TenantId(u16::try_from(self.tenants.len()).expect("at most 65,536 tenants"));
        self.tenants.push(Tenant::new(policy));
        self.partitions.add(quota_blocks, self.clock_ns);
        self.sum_quotas();
        id
    }

    /// Add a volume of `bytes` to a tenant.
    ///
    /// # Panics
    /// If `bytes` is no multiple of 512 or more than [`Engine::volume_bytes_max`], or beyond 65,536 volumes.
    pub fn add_volume(&mut self, tenant: TenantId, bytes: u64) -> VolumeId {
        assert!(bytes.is_multiple_of(SECTOR_BYTES), "{bytes} is no multiple of {SECTOR_BYTES}");
        assert!(bytes <= self.volume_bytes_max(), "{bytes} is more than an index can address");
        assert!((tenant.0 as usize) < self.tenants.len(), "no such tenant");
        let id = VolumeId(u16::try_from(self.volumes.len()).expect("at most 65,536 volumes"));
        self.volumes.push(Volume {
            tenant,
            bytes,
            locks: RangeLocks::default(),
            stream: stream::Stream::default(),
            fills: Vec::new(),
            flushes: Flushes::default(),
            distrusted: false,
            dirty: 0,
            unflushed: false,
            failed: false,
            forgetting: false,
            gone: false,
            slow_cache: SlowCache::default(),
            order: None,
        });
        self.cleaner.add_volume();
        id
    }

    /// Bytes that a volume may have at most: 2^40 blocks.
    pub fn volume_bytes_max(&self) -> u64 {
        store::BLOCK_MAX * u64::from(self.config.block_bytes)
    }

    /// A device operation ended. Follow with [`Engine::next_action`] until it is empty.
    ///
    /// # Panics
    /// If no operation of that name is in flight: a driver that reports an end twice would corrupt data.
    pub fn complete(&mut self, op: OpId, result: Result<(), IoError>) {
        self.complete_summed(op, result, &[]);
    }

    /// A device operation that asked for checksums ended; they are there if it ended well.
    ///
    /// # Panics
    /// As [`Engine::complete`], or if they are missing.
    pub fn complete_summed(&mut self, op: OpId, result: Result<(), IoError>, sums: &[u32]) {
        let op = self.ops.try_remove(op.0 as usize).expect("the driver reports each end once");
        self.note_waiting(&op, -1);
        if op.is_cache_write() {
            self.cache_write_errors.note(result.is_ok());
        }
        match op {
            Op::PartRead { part } | Op::PartBacking { part } => self.end_backing(part, result),
            Op::PartHit { part, start, end, slot, via } => {
                self.end_hit(part, (start, end), slot, via, (result, sums))
            }
            Op::PartCache { part, start, end } => self.end_write_through(part, start, end, result, sums),
            Op::FillRead { fill } => self.end_fill_read(fill, result),
            Op::FillWrite { fill, from, to } => self.end_fill_write(fill, from, to, result, sums),
            Op::PartDirty { part, start, end, slot } => {
                self.end_dirty_write(part, (start, end), slot, result, sums)
            }
            Op::PartOut { part, out } => self.end_out(part, out, result),
            Op::CleanRead { run, from, to } => self.end_clean_read(run, from..to, result, sums),
            Op::CleanWrite { run } => self.end_clean_write(run, result),
            Op::MergeRead { merge } => self.end_merge_read(merge, result, sums),
            Op::MergeWrite { merge } => self.end_merge_write(merge, result, sums),
            Op::Flush { volume } => self.end_flush(volume, result),
            Op::MetaWrite { stage } => self.end_meta_write(stage, result),
            Op::MetaRead { volume, stage } => self.end_meta_read(volume, stage, result),
            Op::MetaFlush => {
                self.end_meta_flush(result);
                self.wake_movers();
            }
        }
        self.go_on_in_order();
        self.run_granted();
        self.go_on_moving_all();
        self.clean();
        self.pump();
        // The journal may have had nothing to say to those who waited for it.
        self.run_granted();
    }

    /// The next thing to do, in order.
    #[inline]
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Change a tenant's quota (blocks). New blocks obey it at once; what is above it leaves in [`Engine::trim`], in the order of its replacement policy, but where partitions lend
    /// ([`Engine::set_lending`]). Where all tenants share one partition ([`Sharing::All`]) it holds only when they no longer do.
    pub fn set_quota(&mut self, tenant: TenantId, blocks: u32) {
        self.tell_touched();
        let own = PartitionId::of(tenant);
        self.partitions[own].quota = blocks;
        self.fit_capacity(own);
        self.sum_quotas();
        self.trim_due = true;
    }

    /// Change a tenant's write policy, for the writes that start after it.
    pub fn set_write_policy(&mut self, tenant: TenantId, policy: WritePolicy) {
        self.tenants[tenant.0 as usize].policy = policy;
        self.cleaner.look();
    }

    /// Start a device operation.
    #[inline(always)]
    fn device(&mut self, target: Target, kind: OpKind, op: Op) {
        self.device_summed(target, kind, None, op);
    }

    /// Start a device operation on whole blocks of which the checksums are wanted. (Inlined, so that it is put together where it goes: elsewhere first, a copy would wait for it.)
    #[inline(always)]
    fn device_summed(&mut self, target: Target, kind: OpKind, sums: Option<Sums>, op: Op) {
        self.note_waiting(&op, 1);
        let id = OpId(self.ops.insert(op) as u32);
        self.actions.push_back(Action::Device(DeviceOp { id, target, kind, sums }));
    }

    /// Name a staging buffer of `bytes`.
    fn alloc_stage(&mut self, bytes: u32) -> StageId {
        let stage = StageId(self.stages.insert(bytes) as u32);
        self.stage_bytes += u64::from(bytes);
        self.actions.push_back(Action::AllocStage { stage, bytes });
        stage
    }

    fn free_stage(&mut self, stage: StageId) {
        self.stage_bytes -= u64::from(self.stages.remove(stage.0 as usize));
        self.actions.push_back(Action::FreeStage { stage });
    }

    /// An operation on the cache device ended: count errors, and give the device up where there are too many.
    fn note_cache_result(&mut self, volume: VolumeId, result: Result<(), IoError>) {
        self.cache_errors.note(result.is_ok());
        if result.is_err() {
            self.stats_mut(volume).cache_errors += 1;
            let too_many = self.cache_errors.is_too_much() || self.cache_write_errors.is_too_much();
            if too_many && !self.cache_failed {
                self.give_cache_up();
            }
        }
    }

    /// What a request of a volume is told that can no longer be waited for.
    pub(crate) fn served(&self, volume: VolumeId) -> Result<(), IoError> {
        if self.volume(volume).failed { Err(IoError::Io) } else { Ok(()) }
    }

    fn volume(&self, volume: VolumeId) -> &Volume {
        &self.volumes[volume.0 as usize]
    }

    fn volume_mut(&mut self, volume: VolumeId) -> &mut Volume {
        &mut self.volumes[volume.0 as usize]
    }

    fn block_bytes(&self) -> u64 {
        u64::from(self.config.block_bytes)
    }

    fn block_of(&self, byte: u64) -> u64 {
        byte >> self.config.block_bytes.trailing_zeros()
    }

    /// Where in its block a byte is: block sizes are powers of two, and a mask is cheaper than a division.
    fn within_block(&self, byte: u64) -> u64 {
        byte & (self.block_bytes() - 1)
    }

    /// True if the cache device could begin or end an operation here; likewise a power of two.
    fn is_cache_aligned(&self, byte: u64) -> bool {
        byte & (u64::from(self.config.cache_align) - 1) == 0
    }

    /// The blocks that `start..end` touches.
    fn blocks_of(&self, start: u64, end: u64) -> std::ops::Range<u64> {
        self.block_of(start)..self.block_of(end + self.block_bytes() - 1)
    }

    /// The bytes of a block: `block_bytes`, fewer for the last block of a volume.
    fn block_range(&self, volume: VolumeId, block: u64) -> (u64, u64) {
        self.volume(volume).block_range(block, self.block_bytes())
    }
}

impl Volume {
    fn block_range(&self, block: u64, block_bytes: u64) -> (u64, u64) {
        let start = block * block_bytes;
        (start, (start + block_bytes).min(self.bytes))
    }
}
