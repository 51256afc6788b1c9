//! What a cache that survives needs of the driver: checksums of what was moved, and bytes that the engine has made.

use super::Driver;
use crate::lane::Lane;
use larder_engine::{IoError, OpId, OpKind, StageId};

impl Driver {
    /// To be called about once a second.
    pub fn tick(&mut self, lane: &mut Lane) {
        self.engine.tick();
        self.act(lane);
    }

    /// Have the cache stop cleanly, so that the next start has all of it. No request is in flight.
    pub fn stop_cache(&mut self, lane: &mut Lane) {
        self.stopping = true;
        self.engine.stop();
        self.act(lane);
    }

    /// The checksums that an operation was to give, if it has ended well.
    #[inline]
    pub(super) fn sums_of(&mut self, op: OpId, result: Result<(), IoError>) -> Vec<u32> {
        if self.sums.is_empty() {
            return Vec::new();
        }
        let Some((sums, OpKind::Read { buf, .. } | OpKind::Write { buf, .. })) = self.sums.remove(&op.0)
        else {
            return Vec::new();
        };
        if result.is_ok()
            && let Some(sums) = self.sums_of_lent(op.0, sums, buf)
        {
            return sums;
        }
        let (regions, _, index) = self.regions(buf.owner);
        let Some(memory) = regions.memory(index, buf.offset, sums.bytes()).filter(|_| result.is_ok()) else {
            return Vec::new();
        };
        // SAFETY: the range is inside a live buffer that the operation holds, and no operation writes to it now: the one that
        // has just ended was the only one on this range that could.
        let data = unsafe { std::slice::from_raw_parts(memory, sums.bytes() as usize) };
        sums.of(data).collect()
    }

    /// Put bytes of the engine into a staging buffer.
    pub(super) fn load(&mut self, stage: StageId) {
        let bytes = self.engine.take_load(stage);
        let Some(memory) = self.stages.memory(stage.0, 0, bytes.len() as u32) else { return };
        // SAFETY: the range is inside the live buffer, which no operation uses yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Device, Volume};
    use super::*;
    use crate::file::FileDevice;
    use crate::frontend::{GuestRequest, VolumeInfo};
    use crate::memory::Held;
    use crate::monitor::Monitor;
    use crate::{BufferPool, SharedPool};
    use larder_engine::format::{
        self, Layout, Medium, MediumError, MediumMut, Recovered, Superblock, Uuid, check, recover,
    };
    use larder_engine::{Engine, EngineConfig, RequestKind, VolumeId, WritePolicy};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const BYTES: u64 = 1 << 20;

    struct OnFile<'f>(&'f File, u64);

    impl Medium for OnFile<'_> {
        fn bytes(&self) -> u64 {
            self.1
        }

        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
            self.0.read_exact_at(into, offset).map_err(|e| MediumError { offset, reason: e.to_string() })
        }
    }

    impl MediumMut for OnFile<'_> {
        fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
            self.0.write_all_at(bytes, offset).map_err(|e| MediumError { offset, reason: e.to_string() })
        }

        fn flush(&mut self) -> Result<(), MediumError> {
            Ok(())
        }
    }

    fn driver(recovered: &Recovered, files: [&tempfile::NamedTempFile; 2], lane: &mut Lane) -> Driver {
        let layout = recovered.superblock().layout;
        let config = EngineConfig { block_bytes: 4096, cache_align: 512, cache_blocks: layout.slots() };
        // A pool gives out its slots from the first on; those that are in use were taken in this order.
        let pool = SharedPool::new(layout.slots());
        let used = recovered.blocks().count();
        larder_engine::FreePool::take(&mut pool.clone(), used, &mut Vec::new());
        let mut engine = Engine::new(config, Box::new(pool));
        let tenant = engine.add_tenant(layout.slots(), WritePolicy::WriteThrough);
        engine.add_volume(tenant, BYTES);
        let name = "v".to_string();
        let volume =
            format::Volume { id: 0, identity: name.clone(), name, uuid: Uuid([1; 16]), bytes: BYTES };
        engine.open_cache(recovered, vec![volume]).unwrap();
        let mut device =
            |index: usize| Device::file(FileDevice::open_backing(files[index].path()).unwrap(), index, lane);
        let devices = vec![device(0), device(1)];
        let info = VolumeInfo { bytes: BYTES, min_block: 512, preferred_block: 4096, read_only: false };
        let pool = BufferPool::new(1 << 20);
        Driver::new(engine, vec![Volume::new(tenant, info)], devices, pool, Monitor::new(None))
    }

    fn run(driver: &mut Driver, lane: &mut Lane) {
        driver.act(lane);
        while driver.has_work() && driver.replies.is_empty() {
            driver.continue_inline();
            driver.end_next(lane);
        }
    }

    fn ask(driver: &mut Driver, lane: &mut Lane, kind: RequestKind, fill: u8) -> Vec<u8> {
        let mut buffer = driver.pool.take(8192).unwrap();
        buffer.fill(fill);
        let asked = GuestRequest { volume: VolumeId(0), kind, offset: 4096, len: 8192, fua: false };
        driver.submit(lane, asked, Some(Held::Own(buffer)), 7);
        run(driver, lane);
        let reply = driver.next_reply().expect("it has ended");
        assert_eq!(reply.result, Ok(()));
        run(driver, lane);
        reply.buffer.expect("the guest gets its buffer back")[..8192].to_vec()
    }

    /// The real driver writes metadata and data where the format has them, with the checksums of the data.
    #[test]
    fn a_cache_on_a_file_survives_a_stop() {
        let [cache, backing] = [(); 2].map(|()| tempfile::NamedTempFile::new_in("/dev/shm").unwrap());
        let layout = Layout::for_slots(4096, 512, 64).unwrap();
        cache.as_file().set_len(layout.device_bytes()).unwrap();
        backing.as_file().set_len(BYTES).unwrap();
        let mut medium = OnFile(cache.as_file(), layout.device_bytes());
        format::format(&mut medium, &Superblock::new(Uuid([9; 16]), layout)).unwrap();
        let mut lane = Lane::new().unwrap();
        let mut first = driver(&recover(&mut medium).unwrap(), [&cache, &backing], &mut lane);
        ask(&mut first, &mut lane, RequestKind::Write, 5);
        first.stop_cache(&mut lane);
        run(&mut first, &mut lane);
        assert!(first.engine.is_stopped());
        let recovered = recover(&mut medium).unwrap();
        assert_eq!((recovered.blocks().count(), recovered.superblock().clean_stop), (2, true));
        assert_eq!(check(&mut medium, true).unwrap(), []);
        let mut second = driver(&recovered, [&cache, &backing], &mut lane);
        run(&mut second, &mut lane);
        assert_eq!(ask(&mut second, &mut lane, RequestKind::Read, 0), [5; 8192]);
        let tenant = second.volumes[0].tenant;
        let stats = second.engine.stats(tenant);
        assert_eq!((stats.read_hits, stats.read_misses, stats.checksum_errors), (2, 0, 0));
    }
}
