//! A cache device that is slower than a backing: reads of clean blocks pass it by, and nothing more is filled, until it is fast again.
//!
//! The driver measures, and says so by volume ([`Engine::set_slow_cache`]). Passing by needs no care: what a clean block holds is on the backing, and under
//! its shared lock stays so. Writes still go to both, so that what is cached stays true; dirty blocks are read where they are. One read in
//! [`PROBE_EVERY`] goes to the cache all the same: else nobody would see that it is fast again.

use crate::{Engine, VolumeId};

/// Of so many reads that pass the cache by, one does not.
pub const PROBE_EVERY: u32 = 32;

/// Whether a volume's reads pass the cache by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowCache {
    on: bool,
    reads: u32,
}

impl Engine {
    /// The cache device is slower than this volume's backing, or no longer.
    pub fn set_slow_cache(&mut self, volume: VolumeId, on: bool) {
        self.volume_mut(volume).slow_cache = SlowCache { on, reads: 0 };
    }

    /// True while clean blocks of a volume are read from its backing because the cache device is slower.
    pub fn passes_slow_cache(&self, volume: VolumeId) -> bool {
        self.volume(volume).slow_cache.on
    }

    /// True if a read that begins now passes the cache by.
    pub(crate) fn read_passes_by(&mut self, volume: VolumeId) -> bool {
        let slow = &mut self.volume_mut(volume).slow_cache;
        slow.reads = slow.reads.wrapping_add(u32::from(slow.on));
        slow.on && !slow.reads.is_multiple_of(PROBE_EVERY)
    }
}
