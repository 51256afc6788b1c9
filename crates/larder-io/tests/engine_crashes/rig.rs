//! A rig whose cache survives: the power goes at any moment, the cache is recovered, and everything read, during and after, is held
//! against what the history of writes, flushes and cuts allows.

use larder_engine::format::{
    Finding, Layout, Recovered, Severity, Shape, SlotState, Superblock, Uuid, Volume, check, format, recover,
};
use larder_engine::{
    DeviceOp, Engine, EngineConfig, OpenError, Planted, Request, SECTOR_BYTES, TenantId, TenantStats,
    VolumeId, WritePolicy,
};
use larder_io::sim::{
    Done, FIRST, FaultModel, HostConfig, Oracle, Rng, SharedSlots, SimHost, Survivors, ask, stamp,
};

/// Completions until a rig must have come to rest, at most.
const STEPS_MAX: usize = 1 << 20;

/// What a rig is made of; the same after each start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cache.
    pub shape: Shape,
    /// Blocks in a region.
    pub region_blocks: u32,
    /// Alignment that the cache device needs.
    pub cache_align: u32,
    /// Quota (blocks) and policy of each tenant.
    pub tenants: Vec<(u32, WritePolicy)>,
    /// Tenant (by number) and bytes of each volume.
    pub volumes: Vec<(usize, u64)>,
    /// Seed of all that is random.
    pub seed: u64,
    /// How the backings behave.
    pub backing: FaultModel,
    /// How the cache device behaves.
    pub cache: FaultModel,
    /// A bug to be found.
    pub planted: Option<Planted>,
}

/// An engine whose cache survives, on devices that lose power.
pub struct CrashRig {
    plan: Plan,
    host: SimHost,
    rng: Rng,
    oracle: Oracle,
    survivors: Survivors,
    /// Blocks may fail their checksum: a test has damaged them.
    pub damaged: bool,
    /// A tenant has been under `wb`: what was not flushed may be lost with the process.
    wrote_back: bool,
}

impl CrashRig {
    /// A rig with a new cache, at work.
    pub fn new(plan: Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let layout = Layout::new(plan.shape).expect("the plan has a possible shape");
        let config = HostConfig {
            engine: EngineConfig {
                block_bytes: plan.shape.block_bytes,
                cache_align: plan.cache_align,
                cache_blocks: plan.shape.slots,
            },
            seed: rng.next_u64(),
            cache: FaultModel { power_cuts: true, ..plan.cache.clone() },
            take_max: usize::MAX,
        };
        let mut host = SimHost::with_metadata(config, &layout);
        let superblock = Superblock {
            region_blocks: plan.region_blocks,
            ..Superblock::new(Uuid(plan.seed.to_le_bytes().repeat(2).try_into().expect("16 bytes")), layout)
        };
        format(host.cache(), &superblock).expect("the device is sound");
        let (mut oracle, mut survivors) = (Oracle::new(), Survivors::default());
        for (number, &(_, bytes)) in plan.volumes.iter().enumerate() {
            let mut content = vec![0; bytes as usize];
            stamp::fill(VolumeId(number as u16), 0, FIRST, &mut content);
            let model = FaultModel { power_cuts: true, ..plan.backing.clone() };
            host.add_backing(bytes, model).content_mut().write(0, &content);
            oracle.add_volume(bytes / SECTOR_BYTES);
            survivors.add_volume(bytes / SECTOR_BYTES);
        }
        let wrote_back = plan.tenants.iter().any(|tenant| tenant.1 == WritePolicy::WriteBack);
        let mut rig = Self { plan, host, rng, oracle, survivors, damaged: false, wrote_back };
        rig.start();
        rig
    }

    /// The host, to be looked at.
    pub fn host(&mut self) -> &mut SimHost {
        &mut self.host
    }

    /// What is on the cache device now.
    pub fn recovered(&mut self) -> Recovered {
        recover(self.host.cache()).expect("the cache is whole")
    }

    /// Recover the cache, and go on with it.
    fn start(&mut self) {
        let recovered = self.recovered();
        // By the offline check, too, every block that would be served is what was mapped. A copy that was being written may be torn:
        // nothing is lost.
        let wrong = check(self.host.cache(), !self.damaged).expect("the cache is whole");
        let worst = wrong.iter().map(Finding::severity).max();
        assert!(worst <= Some(Severity::Note), "{wrong:?}");
        let free = recovered.slots().filter(|(_, state)| *state == SlotState::Free).map(|(slot, _)| slot);
        let mut free: Vec<u32> = free.collect();
        for at in (1..free.len()).rev() {
            free.swap(at, self.rng.below(at as u64 + 1) as usize);
        }
        let pool = SharedSlots::of(free, self.plan.shape.slots);
        let (engine, opened) = self.engine(&recovered, pool.clone());
        opened.expect("the cache can be used");
        self.host.restart(engine, pool);
    }

    /// An engine that goes on with the cache, if it can.
    pub fn engine(&self, recovered: &Recovered, pool: SharedSlots) -> (Engine, Result<(), OpenError>) {
        let Plan { shape, cache_align, tenants, volumes, .. } = &self.plan;
        let config = EngineConfig {
            block_bytes: shape.block_bytes,
            cache_align: *cache_align,
            cache_blocks: shape.slots,
        };
        let mut engine = Engine::new(config, Box::new(pool));
        if let Some(bug) = self.plan.planted {
            engine.plant(bug);
        }
        let tenants: Vec<TenantId> =
            tenants.iter().map(|&(quota, policy)| engine.add_tenant(quota, policy)).collect();
        let mut names = Vec::new();
        for (number, &(tenant, bytes)) in volumes.iter().enumerate() {
            engine.add_volume(tenants[tenant], bytes);
            let name = format!("volume {number}");
            names.push(Volume { id: 0, identity: name.clone(), name, uuid: Uuid([number as u8; 16]), bytes });
        }
        let opened = engine.open_cache(recovered, names);
        (engine, opened)
    }

    /// Submit a request; its name is chosen here.
    pub fn submit(&mut self, request: Request) {
        let request = Request { id: self.host.free_id(), ..request };
        let data = self.oracle.begin(&request);
        self.survivors.begin(&request, &data);
        self.host.submit(request, data);
        self.check();
    }

    /// End the operation that is due next. False if none was in flight.
    pub fn step(&mut self) -> bool {
        let stepped = self.host.step();
        self.check();
        stepped
    }

    /// Let everything in flight end.
    pub fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            if !self.step() {
                assert_eq!(self.host.live(), 0, "requests were never replied to");
                return;
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

    /// What a reactor does once a second.
    pub fn tick(&mut self) {
        self.host.tick();
        self.check();
    }

    /// Change a quota, and evict what is above it.
    pub fn set_quota(&mut self, tenant: usize, blocks: u32) {
        self.plan.tenants[tenant].0 = blocks;
        self.host.set_quota(TenantId(tenant as u16), blocks);
        self.host.trim(1000);
        self.check();
    }

    /// Change a write policy.
    pub fn set_write_policy(&mut self, tenant: usize, policy: WritePolicy) {
        self.plan.tenants[tenant].1 = policy;
        self.wrote_back |= policy == WritePolicy::WriteBack;
        self.host.set_write_policy(TenantId(tenant as u16), policy);
        self.check();
    }

    /// The power goes, and comes back.
    pub fn cut(&mut self) {
        self.host.power_cut(&mut self.rng);
        self.forget();
        self.start();
    }

    /// The process dies, and another one takes over.
    pub fn kill(&mut self) {
        match self.wrote_back {
            // What is in the cache and not yet mapped is lost with the process, as in a power cut.
            true => {
                self.host.kill_with_backings(&mut self.rng);
                self.forget();
            }
            false => {
                self.host.kill(&mut self.rng);
                self.oracle.abandon();
                self.survivors.abandon();
            }
        }
        self.start();
    }

    /// Stop cleanly; the volume has this many bytes when the engine starts again.
    pub fn resize(&mut self, volume: usize, bytes: u64) {
        self.settle();
        self.host.stop();
        self.settle();
        self.plan.volumes[volume].1 = bytes;
        self.start();
        self.settle();
    }

    /// Stop cleanly, and start again. What is cached is the same.
    pub fn stop(&mut self) {
        self.settle();
        self.host.trim(1000);
        let before = self.kept();
        self.host.stop();
        self.settle();
        assert!(self.host.engine().is_stopped(), "the engine comes to an end");
        let cut = self.rng.chance(0.5);
        if cut {
            self.host.power_cut(&mut self.rng);
        }
        self.restarted(cut);
        self.start();
        let sound = [&self.plan.backing, &self.plan.cache].into_iter().all(|m| *m == FaultModel::default());
        assert!(
            !sound || self.kept() == before,
            "a clean stop keeps the cache of {before:?}: {:?}",
            self.kept()
        );
    }

    /// Blocks cached by each tenant, without those above its quota: they stay only as long as they are dirty.
    fn kept(&self) -> Vec<u32> {
        let tenants = self.plan.tenants.iter();
        tenants.zip(self.cached()).map(|(tenant, cached)| cached.min(tenant.0)).collect()
    }

    /// Blocks cached by each tenant.
    pub fn cached(&self) -> Vec<u32> {
        let engine = self.host.engine();
        (0..self.plan.tenants.len()).map(|tenant| engine.occupied(TenantId(tenant as u16))).collect()
    }

    /// A tenant's counters.
    pub fn stats(&self, tenant: usize) -> TenantStats {
        self.host.engine().stats(TenantId(tenant as u16))
    }

    /// Read everything, then look at the backings: both have to show the same.
    pub fn read_everything(&mut self) {
        self.settle();
        for (number, &(_, bytes)) in self.plan.volumes.clone().iter().enumerate() {
            self.submit(ask::read(VolumeId(number as u16), 0, bytes));
        }
        self.settle();
        self.drain();
        for (number, &(_, bytes)) in self.plan.volumes.clone().iter().enumerate() {
            self.observe_backing(VolumeId(number as u16), 0, bytes);
        }
    }

    /// A backing holds what its guests may read.
    pub fn observe_backing(&mut self, volume: VolumeId, offset: u64, len: u64) {
        let mut content = vec![0; len as usize];
        self.host.backing(volume).content().read(offset, &mut content);
        for (sector, bytes) in (offset / SECTOR_BYTES..).zip(content.chunks(SECTOR_BYTES as usize)) {
            self.oracle.observe(volume, sector, bytes);
            self.survivors.see(volume, sector, bytes);
        }
    }

    /// Write all that is dirty back.
    pub fn drain(&mut self) {
        let volumes = (0..self.plan.volumes.len() as u16).map(VolumeId);
        volumes.clone().for_each(|volume| self.host.set_drain(volume, true));
        for _ in 0..2000 {
            if volumes.clone().all(|volume| self.host.engine().dirty_of(volume) == 0) {
                volumes.for_each(|volume| self.host.set_drain(volume, false));
                return;
            }
            self.settle();
            self.tick();
        }
        panic!("the cleaner never comes to an end");
    }

    /// A clean stop has flushed the backings: a cut after it loses nothing, unless a flush failed.
    fn restarted(&mut self, cut: bool) {
        let sound = self.plan.backing == FaultModel::default();
        match cut {
            true if sound => drop(self.survivors.cut()),
            true => self.forget(),
            false => {}
        }
    }

    /// A cut has ended all requests.
    fn forget(&mut self) {
        self.oracle.restart(&self.survivors.cut());
    }

    fn check(&mut self) {
        for Done { request, result, data } in self.host.take_done() {
            self.oracle.end(&request, result, &data);
            self.survivors.end(&request, result.is_ok(), &data);
            let sound = |model: &FaultModel| *model == FaultModel::default();
            let cache = !self.wrote_back || sound(&self.plan.cache);
            assert!(!sound(&self.plan.backing) || !cache || result.is_ok(), "devices are sound: {request:?}");
        }
        let engine = self.host.engine();
        engine.self_check();
        let errors = (0..self.plan.tenants.len()).map(|tenant| self.stats(tenant).checksum_errors);
        assert!(self.damaged || errors.sum::<u64>() == 0, "a block was mapped that is not in its slot");
    }
}
