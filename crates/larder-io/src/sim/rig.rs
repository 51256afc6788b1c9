//! A simulated host with an oracle beside it: every reply is checked at the moment it is given.
//!
//! Beyond what a guest can see, it looks at the backing after each write: under `wt` and `ro` the backing always holds the truth,
//! what a flush or FUA covers is durable there, and nothing is ever dirty.

use super::{Done, FaultModel, HostConfig, Oracle, Settled, SimHost, oracle, stamp};
use larder_engine::{
    CachingSpec, IoError, OpId, Request, RequestId, RequestKind, SECTOR_BYTES, TenantId, TenantStats,
    VolumeId, WritePolicy,
};
use std::collections::BTreeMap;

/// Completions until a rig must have come to rest, at most.
const STEPS_MAX: usize = 1 << 20;

/// A host, an oracle, and the tenants' numbers.
pub struct Rig {
    host: SimHost,
    oracle: Oracle,
    tenants: Vec<TenantId>,
    volumes: Vec<VolumeId>,
    /// What each flush in flight has to cover: the completions on its backing before it.
    flushes: BTreeMap<RequestId, u64>,
    cache_blocks: u32,
}

impl Rig {
    /// A rig without tenants.
    pub fn new(config: HostConfig) -> Self {
        Self {
            cache_blocks: config.engine.cache_blocks,
            host: SimHost::new(config),
            oracle: Oracle::new(),
            tenants: Vec::new(),
            volumes: Vec::new(),
            flushes: BTreeMap::new(),
        }
    }

    /// The host, to be looked at and hurt. Requests go through [`Rig::submit`].
    pub fn host(&mut self) -> &mut SimHost {
        &mut self.host
    }

    /// Add a tenant.
    pub fn add_tenant(&mut self, quota_blocks: u32, policy: WritePolicy) -> TenantId {
        let tenant = self.host.add_tenant(quota_blocks, policy);
        self.tenants.push(tenant);
        tenant
    }

    /// Choose a tenant's replacement and admission, before it holds a block.
    pub fn set_caching(&mut self, tenant: TenantId, caching: CachingSpec) {
        self.host.set_caching(tenant, caching);
    }

    /// Add a volume whose backing holds a stamp in each sector.
    pub fn add_volume(&mut self, tenant: TenantId, bytes: u64, model: FaultModel) -> VolumeId {
        let volume = self.host.add_volume(tenant, bytes, model);
        let mut content = vec![0; bytes as usize];
        stamp::fill(volume, 0, oracle::FIRST, &mut content);
        self.host.backing(volume).content_mut().write(0, &content);
        self.oracle.add_volume(bytes / SECTOR_BYTES);
        self.volumes.push(volume);
        volume
    }

    /// A tenant's counters.
    pub fn stats(&self, tenant: TenantId) -> TenantStats {
        self.host.engine().stats(tenant)
    }

    /// Submit a request; its `id` is chosen here. Returns what has ended by then.
    pub fn submit(&mut self, request: Request) -> Vec<Done> {
        let request = Request { id: self.host.free_id(), ..request };
        if request.kind == RequestKind::Flush {
            let covers = self.host.backing(request.volume).completions();
            self.flushes.insert(request.id, covers);
        }
        let data = self.oracle.begin(&request);
        self.host.submit(request, data);
        self.check()
    }

    /// Submit a request that the engine has to refuse at once.
    pub fn submit_invalid(&mut self, request: Request) {
        let before = self.host.pending().len();
        self.host.submit(Request { id: self.host.free_id(), ..request }, Vec::new());
        let done = self.host.take_done();
        assert_eq!(done.len(), 1, "an invalid request ends at once");
        assert_eq!((done[0].result, self.host.pending().len()), (Err(IoError::Invalid), before));
    }

    /// End the operation that is due next. False if none was in flight.
    pub fn step(&mut self) -> bool {
        let stepped = self.host.step();
        self.check();
        stepped
    }

    /// End this operation. Returns the requests that ended by it.
    pub fn finish(&mut self, op: OpId) -> Vec<Done> {
        self.host.finish(op);
        self.check()
    }

    /// Change a quota.
    pub fn set_quota(&mut self, tenant: TenantId, blocks: u32) {
        self.host.set_quota(tenant, blocks);
        self.check();
    }

    /// Change a write policy.
    pub fn set_write_policy(&mut self, tenant: TenantId, policy: WritePolicy) {
        self.host.set_write_policy(tenant, policy);
        self.check();
    }

    /// Evict what is above its quota, up to `budget` blocks. True if work is left.
    pub fn trim(&mut self, budget: usize) -> bool {
        let left = self.host.trim(budget);
        self.check();
        left
    }

    /// Let everything in flight end. Returns the requests that ended.
    pub fn settle(&mut self) -> Vec<Done> {
        let mut ended = Vec::new();
        for _ in 0..STEPS_MAX {
            let stepped = self.host.step();
            ended.extend(self.check());
            if !stepped {
                self.check_idle();
                return ended;
            }
        }
        panic!("the host never comes to rest");
    }

    /// Submit a request and let everything in flight end. Returns how this request ended.
    pub fn run(&mut self, request: Request) -> Result<(), IoError> {
        let id = self.host.free_id();
        let mut ended = self.submit(request);
        ended.extend(self.settle());
        let done = ended.iter().find(|d| d.request.id == id);
        done.unwrap_or_else(|| panic!("{request:?} never ended")).result
    }

    /// Panics unless everything is at rest and each backing holds what its guest may read.
    pub fn check_idle(&mut self) {
        let engine = self.host.engine();
        assert_eq!(
            engine.in_flight(),
            0,
            "nothing is outstanding, but the engine counts something in flight"
        );
        assert_eq!(self.host.live(), 0, "requests were never replied to");
        assert_eq!(self.host.memory().stages(), 0, "staging buffers were never freed");
        assert_eq!(self.host.pending().len(), 0, "operations are in flight");
    }

    /// Panics unless each sector of each backing holds what its guest may read. Everything must be at rest.
    pub fn check_backings(&mut self) {
        for volume in self.volumes.clone() {
            for sector in 0..self.oracle.sectors(volume) {
                self.look(volume, sector);
            }
        }
    }

    /// Check what has just ended, and every invariant that holds at any time.
    fn check(&mut self) -> Vec<Done> {
        let ended = self.host.take_done();
        for done in &ended {
            let settled = self.oracle.end(&done.request, done.result, &done.data);
            self.check_settled(&done.request, done.result.is_ok(), &settled);
            self.check_flush(done);
        }
        let engine = self.host.engine();
        engine.self_check();
        let occupied: u32 = self.tenants.iter().map(|&t| engine.occupied(t)).sum();
        assert!(occupied <= self.cache_blocks, "{occupied} blocks in a cache of {}", self.cache_blocks);
        assert!(self.tenants.iter().all(|&t| engine.dirty(t) == 0), "a tenant holds dirty data");
        ended
    }

    /// Look at what a write left on the backing.
    fn check_settled(&mut self, request: &Request, ok: bool, settled: &[Settled]) {
        for &Settled { sector, alone } in settled {
            self.look(request.volume, sector);
            let must_last = ok && alone && request.fua && request.kind != RequestKind::Discard;
            let durable = self.host.backing(request.volume).is_durable(sector);
            assert!(durable || !must_last, "sector {sector} is not durable after {request:?}");
        }
    }

    fn check_flush(&mut self, done: &Done) {
        let Some(covers) = self.flushes.remove(&done.request.id) else { return };
        if done.result.is_ok() {
            let lost = self.host.backing(done.request.volume).volatile_before(covers);
            assert_eq!(lost, None, "a sector written before {:?} is not durable", done.request);
        }
    }

    fn look(&mut self, volume: VolumeId, sector: u64) {
        let mut bytes = [0; SECTOR_BYTES as usize];
        self.host.backing(volume).content().read(sector * SECTOR_BYTES, &mut bytes);
        self.oracle.observe(volume, sector, &bytes);
    }
}
