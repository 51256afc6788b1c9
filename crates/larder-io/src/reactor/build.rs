//! Putting a reactor together, and starting its thread.

use super::run::Reactor;
use crate::backing::{Backing, Device};
use crate::driver::{Driver, Tell, Volume};
use crate::file::FileDevice;
use crate::frontend::{Frontend, VolumeInfo};
use crate::lane::Lane;
use crate::mailbox::{Inbox, Waker};
use crate::monitor::{Monitor, MonitorSink};
use crate::{BufferPool, CacheDevice, Context, SharedPool, UnfinishedDevice};
use larder_engine::format::{self, Recovered};
use larder_engine::{
    CachingSpec, DirtyLimits, Engine, EngineConfig, OpenError, SessionMark, Sharing, TenantId, VolumeId,
    WritePolicy,
};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How a reactor is set up.
#[derive(Clone, Debug)]
pub struct ReactorConfig {
    /// The thread's name.
    pub name: String,
    /// How long to poll before sleeping, while that pays. Zero: never. `None`: 50 µs where guests are waited for, and 5 µs for each operation of devices, up to that.
    pub spin: Option<Duration>,
    /// Bytes of data buffers for guests at most.
    pub buffer_bytes: usize,
    /// Reads pass the cache by while its device is slower than their backing.
    pub bypass_slow: bool,
}

impl Default for ReactorConfig {
    fn default() -> Self {
        Self { name: "reactor".into(), spin: None, buffer_bytes: 256 << 20, bypass_slow: true }
    }
}

/// Starting or running a reactor failed.
#[derive(Debug, thiserror::Error)]
pub enum ReactorError {
    /// No io_uring.
    #[error(
        "io_uring does not work here: {0} (is kernel.io_uring_disabled set, or a seccomp filter in the way?)"
    )]
    Ring(#[source] io::Error),
    /// No thread, or no handle on the cache device.
    #[error("cannot start a reactor: {0}")]
    Start(#[source] io::Error),
    /// A volume is larger than the cache can address.
    #[error("{name} has {bytes} bytes, more than {max} that can be cached with this block size")]
    TooLarge {
        /// The backing.
        name: String,
        /// Its size.
        bytes: u64,
        /// The largest size.
        max: u64,
    },
    /// A cache that is kept cannot be gone on with.
    #[error("the cache cannot be gone on with: {0}")]
    Cache(#[from] OpenError),
    /// More volumes than a reactor can name.
    #[error("more than 65,534 tenants or volumes on one reactor")]
    TooMany,
    /// Not everything had ended well by the deadline.
    #[error("stopped before everything was done: {}", left_over(*requests, *operations, devices))]
    Unfinished {
        /// Guest requests that had no answer at the deadline.
        requests: usize,
        /// Operations still in the kernel.
        operations: usize,
        /// The devices that did not answer or could not be flushed.
        devices: Vec<UnfinishedDevice>,
    },
    /// The reactor says nothing: it is held in a system call, or has far too much to do.
    #[error("{name} does not answer")]
    Stuck {
        /// The thread's name.
        name: String,
    },
    /// A bug: the thread panicked.
    #[error("the reactor panicked")]
    Panicked,
}

fn left_over(requests: usize, operations: usize, devices: &[UnfinishedDevice]) -> String {
    let mut parts: Vec<String> = devices.iter().map(ToString::to_string).collect();
    if requests > 0 {
        parts.push(format!("guests went without an answer (requests: {requests})"));
    }
    if parts.is_empty() {
        parts.push(format!("connections were still open, with {operations} operations on them"));
    }
    parts.join("; ")
}

/// A reactor before it starts: give it tenants and volumes.
pub struct ReactorBuilder {
    config: ReactorConfig,
    engine: Engine,
    block_bytes: u32,
    tenants: u16,
    volumes: Vec<Volume>,
    cache: FileDevice,
    /// The cache is kept, and has not been opened yet.
    unopened: bool,
    backings: Vec<Backing>,
    monitor: Option<MonitorSink>,
    tell_given_up: Option<Tell>,
}

/// A number that no guest can guess.
fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

impl ReactorBuilder {
    /// A reactor on the cache device, taking slots from a pool that may be shared; a cache that is kept has one reactor, which
    /// has to open it ([`ReactorBuilder::open_cache`]).
    pub fn new(config: ReactorConfig, cache: &CacheDevice, pool: SharedPool) -> Result<Self, ReactorError> {
        let device = cache.device().try_clone().map_err(ReactorError::Start)?;
        let engine_config = EngineConfig {
            block_bytes: cache.block_bytes(),
            cache_align: device.align(),
            cache_blocks: cache.slots(),
        };
        let spare = cache.slots().saturating_sub(cache.blocks());
        let engine = Engine::new(engine_config, Box::new(pool)).with_spare_slots(spare);
        Ok(Self {
            config,
            engine: engine.with_hash_seed(random_seed()),
            block_bytes: cache.block_bytes(),
            tenants: 0,
            volumes: Vec::new(),
            cache: device,
            unopened: cache.is_kept(),
            backings: Vec::new(),
            monitor: None,
            tell_given_up: None,
        })
    }

    /// Hand the monitor's batches to this sink.
    pub fn monitor(&mut self, sink: MonitorSink) {
        self.monitor = Some(sink);
    }

    /// Call this when a cache that is kept is given up, with its session, before guests' writes go past it. It has to make durable that the next start
    /// trusts no clean block of it ([`crate::CachePlan::check_again`]), and holds up the reactor meanwhile.
    pub fn on_cache_given_up(&mut self, tell: impl FnMut(SessionMark) + Send + 'static) {
        self.tell_given_up = Some(Box::new(tell));
    }

    /// Add a tenant with a quota in blocks.
    pub fn add_tenant(&mut self, quota_blocks: u32, policy: WritePolicy) -> Result<TenantId, ReactorError> {
        self.tenants = self.tenants.checked_add(1).ok_or(ReactorError::TooMany)?;
        Ok(self.engine.add_tenant(quota_blocks, policy))
    }

    /// How much of the partition of a tenant that was added here may be dirty under `wb`.
    pub fn set_dirty_limits(&mut self, tenant: TenantId, limits: DirtyLimits) {
        self.engine.set_dirty_limits(tenant, limits);
    }

    /// Choose how the blocks of a tenant that was added here are replaced and admitted; LRU and all of them otherwise.
    pub fn set_caching(&mut self, tenant: TenantId, caching: CachingSpec) {
        self.engine.set_caching(tenant, caching);
    }

    /// Have a mover fill the partition of a tenant that was added here; otherwise misses do.
    pub fn set_mover(&mut self, tenant: TenantId, moves: bool) {
        self.engine.set_mover(tenant, moves);
    }

    /// Have the tenants of this reactor share a partition ([`larder_engine::Engine::set_sharing`]): before its cache is opened, so that what they hold is kept.
    pub fn set_sharing(&mut self, sharing: Sharing) {
        self.engine.set_sharing(sharing);
    }

    /// Add a volume to a tenant of this reactor.
    pub fn add_volume(&mut self, tenant: TenantId, backing: Backing) -> Result<VolumeId, ReactorError> {
        if tenant.0 >= self.tenants || self.volumes.len() >= usize::from(u16::MAX) - 1 {
            return Err(ReactorError::TooMany);
        }
        let info = backing.info(self.block_bytes);
        let max = self.engine.volume_bytes_max();
        if info.bytes > max {
            return Err(ReactorError::TooLarge { name: backing.name(), bytes: info.bytes, max });
        }
        self.volumes.push(Volume::new(tenant, info));
        self.backings.push(backing);
        Ok(self.engine.add_volume(tenant, info.bytes))
    }

    /// Whether the writes of a volume that was added here reach its backing in the order of its flushes.
    pub fn set_ordered(&mut self, volume: VolumeId, on: bool) {
        self.engine.set_ordered(volume, on);
    }

    /// What there is to know of a volume; `None` where it was not added here.
    pub fn volume(&self, volume: VolumeId) -> Option<VolumeInfo> {
        self.volumes.get(volume.0 as usize).map(|volume| volume.info)
    }

    /// Go on with a cache that is kept, after all tenants and volumes were added: `volumes` has one element for each, in their order.
    /// Returns the blocks that each tenant holds then. Those of other volumes, of volumes whose backing or size is another one, and
    /// those above a quota are dropped.
    ///
    /// # Panics
    /// If `volumes` has another length, or the cache is open already.
    pub fn open_cache(
        &mut self,
        recovered: &Recovered,
        volumes: Vec<format::Volume>,
    ) -> Result<Vec<u32>, ReactorError> {
        self.volumes.iter_mut().zip(&volumes).for_each(|(volume, known)| volume.known = Some(known.clone()));
        self.engine.open_cache(recovered, volumes)?;
        self.unopened = false;
        Ok((0..self.tenants).map(|tenant| self.engine.occupied(TenantId(tenant))).collect())
    }

    /// Start the thread. Returns when its ring works.
    ///
    /// # Panics
    /// If the cache is one that is kept, and was not opened: its metadata would be overwritten.
    pub fn spawn<F: Frontend>(
        self,
        frontend: F,
        inbox: Inbox<F::Command>,
    ) -> Result<ReactorThread, ReactorError> {
        assert!(!self.unopened, "a cache that is kept is opened first");
        let (started, wait) = mpsc::channel();
        let name = self.config.name.clone();
        let (tell, result) = mpsc::channel();
        let running = Arc::new(());
        let runs = Arc::downgrade(&running);
        let body = move || {
            let _running = running;
            // Told before the thread ends, which it may never do. Nobody may be there to hear it.
            let _ = tell.send(self.main(frontend, inbox, &started));
        };
        let thread = thread::Builder::new().name(name.clone()).spawn(body).map_err(ReactorError::Start)?;
        let thread = ReactorThread { name, result, runs, thread };
        match wait.recv() {
            Ok(()) => Ok(thread),
            Err(_) => Err(thread.join().err().unwrap_or(ReactorError::Panicked)),
        }
    }

    /// The thread's body. Hangs up on `started` where the reactor does not come up.
    fn main<F: Frontend>(
        self,
        frontend: F,
        inbox: Inbox<F::Command>,
        started: &mpsc::Sender<()>,
    ) -> Result<(), ReactorError> {
        let (tenants, spin) = (self.tenants, self.config.spin);
        let cx = self.into_context(inbox.waker()).map_err(ReactorError::Ring)?;
        // The starter waits for this, so it is there to hear it.
        let _ = started.send(());
        Reactor::new(frontend, cx, inbox, tenants, spin).run()
    }

    fn into_context(self, waker: &Arc<Waker>) -> io::Result<Context> {
        let mut lane = Lane::new()?;
        let mut devices = vec![Device::file(self.cache, 0, &mut lane)];
        for (index, backing) in self.backings.into_iter().enumerate() {
            devices.push(backing.into_device(index + 1, &mut lane, waker)?);
        }
        let pool = BufferPool::new(self.config.buffer_bytes);
        let mut driver = Driver::new(self.engine, self.volumes, devices, pool, Monitor::new(self.monitor));
        driver.given_up.tell = self.tell_given_up;
        driver.bypass_slow(self.config.bypass_slow);
        Ok(Context { lane, driver, events: VecDeque::new(), now: Instant::now() })
    }
}

/// A reactor that runs. Stop it through its handle, then join.
#[derive(Debug)]
pub struct ReactorThread {
    name: String,
    result: mpsc::Receiver<Result<(), ReactorError>>,
    /// Lives on while the thread's body runs.
    runs: Weak<()>,
    thread: JoinHandle<()>,
}

impl ReactorThread {
    /// Wait for its end, and return how it ended. Where that was not well, the thread itself may stay: the kernel keeps it
    /// while an operation hangs in a device.
    pub fn join(self) -> Result<(), ReactorError> {
        let result = self.result.recv().unwrap_or(Err(ReactorError::Panicked));
        self.ended(result)
    }

    /// As [`ReactorThread::join`], but [`ReactorError::Stuck`] where the end does not come within this time.
    pub fn join_within(self, patience: Duration) -> Result<(), ReactorError> {
        match self.result.recv_timeout(patience) {
            Ok(result) => self.ended(result),
            Err(RecvTimeoutError::Disconnected) => Err(ReactorError::Panicked),
            Err(RecvTimeoutError::Timeout) => Err(ReactorError::Stuck { name: self.name }),
        }
    }

    /// After a good end nothing is in flight that could hold up the thread.
    fn ended(self, result: Result<(), ReactorError>) -> Result<(), ReactorError> {
        result?;
        self.thread.join().map_err(|_| ReactorError::Panicked)
    }

    /// True once it has ended, by whatever cause.
    pub fn is_finished(&self) -> bool {
        self.runs.strong_count() == 0
    }
}
