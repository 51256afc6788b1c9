//! A simulated host whose cache survives: power cuts, restarts, clean stops.

use super::{FaultModel, HostConfig, Memory, Rng, SharedSlots, SimDevice, SimHost};
use larder_engine::format::{Layout, Recovered, Volume};
use larder_engine::{Engine, OpenError, Resumed, VolumeId};

impl SimHost {
    /// A host without tenants, and with room for metadata on its cache device.
    pub fn with_metadata(config: HostConfig, layout: &Layout) -> Self {
        Self::with_cache(config, layout.device_bytes(), layout.data_offset())
    }

    /// Add a backing of `bytes` zeroes, for an engine that comes with [`SimHost::restart`].
    pub fn add_backing(&mut self, bytes: u64, model: FaultModel) -> &mut SimDevice {
        let device = SimDevice::new(bytes, model, self.rng.next_u64());
        self.backings.push(device);
        self.backings.last_mut().expect("it was just added")
    }

    /// The power goes: requests, operations and memory are gone, and of each device's write cache any part. A sector of the cache
    /// device may be torn; backings keep theirs whole, as guests expect. An engine has to come
    /// with [`SimHost::restart`].
    pub fn power_cut(&mut self, rng: &mut Rng) {
        let Self { cache, backings, memory, .. } = self;
        backings.iter_mut().for_each(|device| device.power_cut(memory, false, rng));
        cache.power_cut(memory, true, rng);
        self.forget();
    }

    /// The engine dies, and the devices live on: requests and memory are gone; of each operation in flight any part takes effect,
    /// and nothing else is lost. An engine has to come with [`SimHost::restart`].
    pub fn kill(&mut self, rng: &mut Rng) {
        let Self { cache, backings, memory, .. } = self;
        backings.iter_mut().chain([cache]).for_each(|device| device.abandon(memory, rng));
        self.forget();
    }

    /// The engine dies, and backings lose power: a SAN that is gone. The cache device lives on.
    pub fn kill_with_backings(&mut self, rng: &mut Rng) {
        let Self { cache, backings, memory, .. } = self;
        backings.iter_mut().for_each(|device| device.power_cut(memory, false, rng));
        cache.abandon(memory, rng);
        self.forget();
    }

    fn forget(&mut self) {
        self.memory = Memory::default();
        self.ops.clear();
        self.live.clear();
        self.done.clear();
        self.failures.clear();
    }

    /// Add what all devices hold now to the digest.
    pub fn digest_images(&mut self) {
        let Self { cache, backings, digest, .. } = self;
        for device in backings.iter().chain([&*cache]) {
            for (page, bytes) in device.content().pages() {
                digest.word(page);
                digest.bytes(bytes);
            }
        }
    }

    /// Go on with another engine and its free pool.
    pub fn restart(&mut self, engine: Engine, pool: SharedSlots) {
        (self.engine, self.pool) = (engine, pool);
        self.drain();
    }

    /// What a reactor does once a second.
    pub fn tick(&mut self) {
        self.engine.tick();
        self.drain();
    }

    /// Write all that is dirty of a volume back, as long as this is `on`.
    pub fn set_drain(&mut self, volume: VolumeId, on: bool) {
        self.engine.drain(volume, on);
        self.drain();
    }

    /// Write all that is dirty of a volume back, once.
    pub fn drain_once(&mut self, volume: VolumeId) {
        self.engine.drain_once(volume);
        self.drain();
    }

    /// Use the cache device no more.
    pub fn detach_cache(&mut self) {
        self.engine.detach_cache();
        self.drain();
    }

    /// Let new requests wait.
    pub fn hold(&mut self, on: bool) {
        self.engine.hold(on);
        self.drain();
    }

    /// Go on with what was recovered from the cache device, and its free pool.
    pub fn resume_cache(
        &mut self,
        recovered: &Recovered,
        volumes: Vec<Volume>,
        pool: SharedSlots,
    ) -> Result<Resumed, OpenError> {
        self.pool = pool.clone();
        let resumed = self.engine.resume_cache(Some((recovered, volumes)), Box::new(pool));
        self.drain();
        resumed
    }

    /// Let some reads of a volume's clean blocks be tried at the backing.
    pub fn probe_backing(&mut self, volume: VolumeId, on: bool) {
        self.engine.probe_backing(volume, on);
    }

    /// Let reads of a volume's clean blocks pass the cache by.
    pub fn set_slow_cache(&mut self, volume: VolumeId, on: bool) {
        self.engine.set_slow_cache(volume, on);
    }

    /// Begin a clean stop.
    pub fn stop(&mut self) {
        self.engine.stop();
        self.drain();
    }
}
