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
