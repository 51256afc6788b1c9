//! An engine whose cache survives, on devices that crash, lose and rot; everything that guests read, during and after, is held against
//! what the history of writes, flushes and crashes allows.

mod check;
mod come_and_go;
mod end;
mod harm;
mod mend;
mod start;
mod swap;

use crate::fault::{Counts, Fault};
use crate::plan::{Disk, Plan, is_through};
use crate::trace::Trace;
use come_and_go::Leaving;
use larder_engine::format::{BlockId, Layout, Superblock, Uuid, format};
use larder_engine::{
    CachingSpec, DeviceOp, EngineConfig, KINDS, Request, RequestId, SECTOR_BYTES, Sharing, TenantId,
    TenantStats, Terms, VolumeId, Watermarks, WriteLimit, WritePolicy,
};
use larder_io::sim::{
    Digest, FIRST, FaultModel, HostConfig, Oracle, Prefix, Rng, SimDevice, SimHost, Survivors, stamp,
};
use std::collections::{BTreeMap, BTreeSet};
use swap::{Attaching, Loss};

/// Completions until a world must have come to rest, at most.
const STEPS_MAX: usize = 1 << 20;

/// Seconds in which every request has been replied to, if nothing else happens.
const TICKS_MAX: usize = 500;

/// What the faults so far excuse.
#[derive(Clone, Copy, Debug, Default)]
struct Excuses {
    /// Data of slots was damaged: blocks may fail their checksum.
    spoiled: bool,
    /// Metadata was damaged, and not repaired since: findings, and a cache that is refused.
    harmed: bool,
    /// Operations on metadata have failed: the engine may have ended the cache.
    metadata_failed: bool,
    /// Operations on backings have failed by script.
    backing_failed: bool,
    /// Operations on the cache's data have failed by script.
    data_failed: bool,
    /// Reads of it have failed so often that a dirty block may count as lost, and what comes after it goes on.
    unreadable: bool,
}

/// An engine and its devices, and what they may do.
pub struct World {
    plan: Plan,
    layout: Layout,
    host: SimHost,
    rng: Rng,
    oracle: Oracle,
    survivors: Survivors,
    prefix: Prefix,
    /// For looks at backings, which change nothing.
    looks: Rng,
    excuses: Excuses,
    /// Tenants that have had no policy but those of [`is_through`].
    through: Vec<bool>,
    /// Both superblocks as they were when the cache was made or mended.
    superblocks: [Vec<u8>; 2],
    /// The metadata when this life began.
    before: Vec<u8>,
    counts: Counts,
    trace: Trace,
    /// Volumes that have been told to leave since the last start.
    leaving: BTreeMap<usize, Leaving>,
    /// What is written down of a cache that was given up. It outlives the process.
    loss: Option<Loss>,
    /// It is there again.
    attaching: Option<Attaching>,
    /// The cache device does not answer.
    is_lost: bool,
    /// It has lost its power: whoever has it open has nothing any more.
    is_pulled: bool,
    /// Requests of volumes that had failed when they came.
    refused: BTreeSet<RequestId>,
    /// The dirty blocks, and where they were, before the metadata was last damaged.
    truth: Option<BTreeSet<(BlockId, u32)>>,
    /// Volumes of which a dirty block was named as lost, so that what comes after it goes on.
    out_of_order: BTreeSet<VolumeId>,
    /// Blocks that each tenant held when it was looked at last in this life.
    held: Vec<u32>,
    /// Requests in flight, and of which volumes they are.
    live: BTreeMap<RequestId, VolumeId>,
}

impl World {
    /// A world with a new cache, at work.
    pub fn new(plan: Plan) -> Self {
        Self::traced(plan, Trace::default())
    }

    /// The same, told line by line.
    pub fn traced(plan: Plan, trace: Trace) -> Self {
        trace.line(|| format!("{plan:?}"));
        let mut rng = Rng::new(plan.seed ^ 0x776f_726c);
        let layout = Layout::new(plan.shape).expect("the plan has a possible shape");
        let config = HostConfig {
            engine: engine_config(&plan),
            seed: rng.next_u64(),
            cache: FaultModel { power_cuts: true, ..plan.cache.clone() },
            take_max: usize::MAX,
        };
        let mut host = SimHost::with_metadata(config, &layout);
        if plan.meddling {
            host.let_guests_meddle(plan.seed);
        }
        let mut world = Self {
            layout,
            host,
            rng,
            oracle: Oracle::new(),
            survivors: Survivors::default(),
            prefix: Prefix::default(),
            looks: Rng::new(plan.seed ^ 0x6c6f_6f6b),
            excuses: Excuses::default(),
            through: plan.tenants.iter().map(|tenant| is_through(tenant.policy)).collect(),
            superblocks: [Vec::new(), Vec::new()],
            before: Vec::new(),
            counts: Counts { histories: 1, ..Counts::default() },
            trace,
            leaving: BTreeMap::new(),
            loss: None,
            attaching: None,
            is_lost: false,
            is_pulled: false,
            refused: BTreeSet::new(),
            truth: None,
            out_of_order: BTreeSet::new(),
            held: Vec::new(),
            live: BTreeMap::new(),
            plan,
        };
        world.format();
        for disk in world.plan.disks.clone() {
            world.add_backing(&disk);
        }
        world.start();
        world
    }

    /// A new cache on the device, whatever was there.
    fn format(&mut self) {
        let uuid =
            Uuid((u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64())).to_le_bytes());
        let fresh = Superblock::new(uuid, self.layout);
        let superblock = Superblock { region_blocks: self.plan.region_blocks, ..fresh };
        format(self.host.cache(), &superblock).expect("the device is sound");
        self.mended();
    }

    /// A backing with a stamp in each sector.
    fn add_backing(&mut self, disk: &Disk) {
        let volume = self.know_disk(disk);
        let model = FaultModel { power_cuts: true, ..self.plan.backing.clone() };
        let device = self.host.add_backing(disk.bytes, model);
        stamp_all(device, volume, FIRST);
    }

    /// One more volume is held against what may be.
    fn know_disk(&mut self, disk: &Disk) -> VolumeId {
        let sectors = disk.bytes / SECTOR_BYTES;
        self.survivors.add_volume(sectors);
        self.prefix.add_volume(sectors);
        self.oracle.add_volume(sectors)
    }

    /// The host, to be looked at and hurt. Requests go through [`World::submit`].
    pub fn host(&mut self) -> &mut SimHost {
        &mut self.host
    }

    /// What it was made of, as it is now.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where everything lies on the cache device.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A fault of this kind was inflicted.
    pub(crate) fn count(&mut self, fault: Fault) {
        self.counts.add(fault);
    }

    /// Tell what happens.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        self.trace.line(line);
    }

    /// A digest of all that has happened: every operation, reply and image.
    pub fn digest(&self) -> Digest {
        self.host.digest()
    }

    /// Data of slots is about to be damaged: blocks may fail their checksum from now on.
    pub fn excuse_data(&mut self) {
        self.excuses.spoiled = true;
    }

    /// Operations on metadata are about to fail.
    pub fn excuse_metadata(&mut self) {
        self.excuses.metadata_failed = true;
    }

    /// Operations on backings are about to fail.
    pub fn excuse_backings(&mut self) {
        self.excuses.backing_failed = true;
    }

    /// Operations on the cache's data are about to fail.
    pub fn excuse_cache(&mut self) {
        self.excuses.data_failed = true;
    }

    /// Reads of the cache's data are about to fail, many in a row.
    pub fn excuse_order(&mut self) {
        self.excuses.unreadable = true;
    }

    /// Submit a request; its name is chosen here.
    pub fn submit(&mut self, request: Request) {
        let request = Request { id: self.host.free_id(), ..request };
        self.counts.requests += 1;
        self.tell(|| format!("  {request:?}"));
        if self.host.engine().is_failed(request.volume) {
            self.refused.insert(request.id);
        }
        self.live.insert(request.id, request.volume);
        let data = self.oracle.begin(&request);
        self.survivors.begin(&request, &data);
        self.prefix.begin(&request, &data);
        self.host.submit(request, data);
        self.check();
        self.look_after_cache();
    }

    /// End the operation that is due next. False if none was in flight.
    pub fn step(&mut self) -> bool {
        let stepped = self.host.step();
        self.take_done();
        // Now, since the most for a tenant may be less before anything else is checked.
        self.check_most();
        self.go_on_leaving();
        let attached = self.look_after_cache();
        stepped || attached
    }

    /// Let everything in flight end.
    pub fn settle(&mut self) {
        let mut ticks = 0;
        for _ in 0..STEPS_MAX {
            if !self.step() {
                if self.host.live() == 0 {
                    return self.check();
                }
                // The backing of an ordered volume fails, and is left alone for a while.
                ticks += 1;
                assert!(ticks <= TICKS_MAX, "requests were never replied to");
                self.tick();
                self.trim();
            }
        }
        panic!("the host never comes to rest");
    }

    /// Let everything in flight end but these operations.
    pub fn settle_but(&mut self, keep: impl Fn(&DeviceOp) -> bool) {
        while let Some(next) = self.host.pending().into_iter().find(|pending| !keep(&pending.op)) {
            self.host.finish(next.op.id);
            self.check();
        }
    }

    /// Evict what has to go.
    pub fn trim(&mut self) {
        self.host.trim(1000);
        self.check();
    }

    /// Drop everything cached of a volume, until nothing of it can come back.
    pub fn forget_volume(&mut self, volume: VolumeId) {
        self.tell(|| format!("volume {} is forgotten", volume.0));
        self.host.forget_volume(volume);
        self.check();
        while !self.host.go_on_forgetting(volume) {
            self.trim();
            self.step();
        }
    }

    /// What a reactor does once a second.
    pub fn tick(&mut self) {
        self.host.tick();
        self.go_on_leaving();
        self.check();
        self.look_after_cache();
        self.wait_to_attach();
    }

    /// Change a quota, and evict what is above it.
    pub fn set_quota(&mut self, tenant: usize, blocks: u32) {
        self.plan.tenants[tenant].quota = blocks;
        self.host.set_quota(TenantId(tenant as u16), blocks);
        self.trim();
    }

    /// Change what a tenant may hold where partitions lend, and evict what is above it.
    pub fn set_most(&mut self, tenant: usize, blocks: u32) {
        self.plan.tenants[tenant].most = blocks;
        self.host.set_bounds(TenantId(tenant as u16), 0, blocks);
        self.trim();
    }

    /// Change a tenant's replacement and admission.
    pub fn set_caching(&mut self, tenant: usize, caching: CachingSpec) {
        self.plan.tenants[tenant].caching = caching;
        self.host.set_caching(TenantId(tenant as u16), caching);
        self.check();
    }

    /// Have a mover fill a tenant's partition, or every miss.
    pub fn set_mover(&mut self, tenant: usize, moves: bool) {
        self.host.set_mover(TenantId(tenant as u16), moves);
        self.check();
    }

    /// The movers come.
    pub fn move_in(&mut self) {
        self.host.move_in();
        self.check();
    }

    /// Let a tenant write so many blocks more to the cache device, and then so many of newer data alone; or as many as it likes.
    pub fn set_write_limit(&mut self, tenant: usize, blocks: Option<(u64, u64)>) {
        let id = TenantId(tenant as u16);
        let (spent, block) = (self.host.engine().spent_bytes(id), self.plan.block_bytes());
        let limit = |(new, more): (u64, u64)| {
            let admit_bytes = spent + new * block;
            WriteLimit { admit_bytes, bytes: admit_bytes + more * block }
        };
        self.host.set_write_limit(id, blocks.map(limit));
        self.check();
    }

    /// Let all tenants together write so many blocks more to the cache device, or as many as they like.
    pub fn set_common_limit(&mut self, blocks: Option<u64>) {
        let (spent, block) = (self.host.engine().all_spent_bytes(), self.plan.block_bytes());
        self.host.set_common_limit(blocks.map(|blocks| spent + blocks * block));
        self.check();
    }

    /// Let so many of eight of a tenant's requests write to the cache device; or have no doors, for any tenant.
    pub fn set_doors(&mut self, tenant: usize, eighths: Option<u8>) {
        self.host.set_doors(eighths.map(|_| self.plan.shape.slots));
        if let Some(eighths) = eighths {
            // Writes go the other way as soon as it seems to be sooner.
            let gains = Some(Box::new([0.0; KINDS]));
            // Of each second kind what enters leaves first.
            let leaves_first = std::array::from_fn(|kind| kind % 2 == 1);
            let terms = Terms { shares: [f64::from(eighths) / 8.0; KINDS], leaves_first, gains };
            self.host.open_doors(TenantId(tenant as u16), &terms);
        }
        self.check();
    }

    /// Have partitions lend each other what they do not use, or no longer.
    pub fn set_lending(&mut self, lending: bool) {
        self.plan.lending = lending;
        self.host.set_lending(lending);
        self.trim();
    }

    /// Have a cleaner keep blocks free, or no longer.
    pub fn set_watermarks(&mut self, watermarks: Option<Watermarks>) {
        self.plan.watermarks = watermarks;
        self.host.set_watermarks(watermarks);
    }

    /// Have tenants share a partition, or no longer.
    pub fn set_sharing(&mut self, sharing: Sharing) {
        self.plan.sharing = sharing;
        self.host.set_sharing(sharing);
        self.check();
        self.trim();
    }

    /// Change a write policy.
    pub fn set_write_policy(&mut self, tenant: usize, policy: WritePolicy) {
        self.plan.tenants[tenant].policy = policy;
        self.through[tenant] &= is_through(policy);
        self.host.set_write_policy(TenantId(tenant as u16), policy);
        self.check();
    }

    /// Blocks cached by each tenant.
    pub fn cached(&self) -> Vec<u32> {
        let engine = self.host.engine();
        (0..self.plan.tenants.len()).map(|tenant| engine.occupied(TenantId(tenant as u16))).collect()
    }

    /// Dirty blocks of all tenants.
    pub fn dirty(&self) -> u32 {
        let engine = self.host.engine();
        (0..self.plan.tenants.len()).map(|tenant| engine.dirty(TenantId(tenant as u16))).sum()
    }

    /// A tenant's counters.
    pub fn stats(&self, tenant: usize) -> TenantStats {
        self.host.engine().stats(TenantId(tenant as u16))
    }

    /// True if every completed write to this volume is on its backing.
    fn is_through(&self, disk: usize) -> bool {
        self.through[self.plan.disks[disk].tenant]
    }

    /// The same of all that there ever were.
    fn are_all_through(&self) -> bool {
        self.through.iter().all(|&through| through)
    }

    /// Nothing that guests of a volume would be told of has failed, nor will: backings, and where dirty blocks may be the cache's data.
    fn serves_all(&self, disk: usize) -> bool {
        let cache_fails = self.plan.cache.fails() || self.excuses.data_failed || self.excuses.spoiled;
        let cache_fails = cache_fails || self.excuses.metadata_failed;
        self.backings_are_sound() && (self.is_through(disk) || !cache_fails)
    }

    /// No backing has failed, nor will.
    fn backings_are_sound(&self) -> bool {
        !self.plan.backing.fails() && !self.excuses.backing_failed
    }
}

fn engine_config(plan: &Plan) -> EngineConfig {
    EngineConfig {
        block_bytes: plan.shape.block_bytes,
        cache_align: plan.shape.sector_bytes,
        cache_blocks: plan.shape.slots,
    }
}

/// Somebody writes all of a device, durably.
fn stamp_all(device: &mut SimDevice, volume: VolumeId, generation: stamp::Generation) {
    let mut content = vec![0; device.content().len() as usize];
    stamp::fill(volume, 0, generation, &mut content);
    device.content_mut().write(0, &content);
    device.settle();
}
