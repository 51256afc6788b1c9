//! A cache device that is slower than a backing: reads of clean blocks pass it by, and nothing more is filled, until it is fast again.
//!
//! The driver measures, and says so by volume ([`Engine::set_slow_cache`]). Where all reads hit it does not know how fast the backing is, and has some go there to find out
//! ([`Engine::probe_backing`]). Passing by needs no care: what a clean block holds is on the backing, and under
//! its shared lock stays so. Writes still go to both, so that what is cached stays true; dirty blocks are read where they are. One read in
//! [`PROBE_EVERY`] goes to the cache all the same: else nobody would see that it is fast again.

use crate::{Engine, VolumeId};

/// Of so many reads that pass the cache by, one does not; and of so many that do not, one does, where that is to be tried.
pub const PROBE_EVERY: u32 = 32;

/// Whether a volume's reads pass the cache by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowCache {
    on: bool,
    /// It is to be found out how fast the backing is.
    probes_backing: bool,
    reads: u32,
}

impl Engine {
    /// The cache device is slower than this volume's backing, or no longer.
    pub fn set_slow_cache(&mut self, volume: VolumeId, on: bool) {
        self.volume_mut(volume).slow_cache = SlowCache { on, ..SlowCache::default() };
    }

    /// One read in [`PROBE_EVERY`] of a volume goes to its backing though it hits, the next one first: or no longer.
    pub fn probe_backing(&mut self, volume: VolumeId, on: bool) {
        let slow = &mut self.volume_mut(volume).slow_cache;
        (slow.probes_backing, slow.reads) = (on, 0);
    }

    /// True while clean blocks of a volume are read from its backing because the cache device is slower.
    pub fn passes_slow_cache(&self, volume: VolumeId) -> bool {
        self.volume(volume).slow_cache.on
    }

    /// True if a read that begins now passes the cache by.
    pub(crate) fn read_passes_by(&mut self, volume: VolumeId) -> bool {
        let slow = &mut self.volume_mut(volume).slow_cache;
        slow.reads = slow.reads.wrapping_add(u32::from(slow.on || slow.probes_backing));
        match slow.on {
            true => !slow.reads.is_multiple_of(PROBE_EVERY),
            false => slow.probes_backing && slow.reads % PROBE_EVERY == 1,
        }
    }
}
