//! When a backing may have lost writes that it had acknowledged, nothing cached of its volume is trusted any more.
//!
//! Under `wt` a cached block may hold such a write. Served from the cache it would read as written, and after its eviction as before: a
//! sector must keep the value it was once read with. A backing that fails a flush, or comes back after a crash with writes unflushed, is
//! in doubt as a whole, so every block of the volume leaves. Until the last has left, the volume goes past the cache.

use crate::store::State;
use crate::{Engine, VolumeId};

/// Entries looked at for each block that [`Engine::trim`] may evict.
const LOOKS_PER_BLOCK: usize = 64;

/// A walk over all entries, in steps, for those of one volume.
#[derive(Debug)]
pub(crate) struct Sweep {
    volume: VolumeId,
    next: u32,
    /// A block was in use, and stayed: another walk is due.
    left_one: bool,
}

impl Engine {
    /// The backing of a volume may have lost acknowledged writes: drop everything cached of it, in steps of [`Engine::trim`]. From now until then the
    /// volume is served by its backing alone. The engine does this itself when a flush fails.
    pub fn distrust(&mut self, volume: VolumeId) {
        self.volume_mut(volume).distrusted = true;
        self.sweeps.retain(|sweep| sweep.volume != volume);
        self.sweeps.push(Sweep { volume, next: 0, left_one: false });
        self.trim_due = true;
        self.clean_again(volume);
    }

    /// Go on with the sweeps. True if there is more to look at; false also where only blocks in use are left.
    pub(crate) fn sweep(&mut self, budget: usize) -> bool {
        let mut looks = budget * LOOKS_PER_BLOCK;
        let mut waiting = 0;
        while looks > 0 && waiting < self.sweeps.len() {
            let Sweep { volume, next, left_one } = self.sweeps[waiting];
            if next < self.store.numbers() {
                looks -= 1;
                let stayed = !self.sweep_entry(volume, next);
                self.sweeps[waiting] = Sweep { volume, next: next + 1, left_one: left_one || stayed };
            } else if left_one {
                self.sweeps[waiting] = Sweep { volume, next: 0, left_one: false };
                waiting += 1;
            } else {
                self.sweeps.remove(waiting);
                let volume = self.volume_mut(volume);
                volume.distrusted = volume.forgetting;
            }
        }
        looks == 0
    }

    /// A dirty block has this number now: walks that had not come to it have perhaps been here already. Those that leave dirty blocks alone need not come back.
    #[inline]
    pub(crate) fn sweep_again_from(&mut self, entry: u32) {
        for sweep in &mut self.sweeps {
            let is_its = self.store.key(entry).volume == sweep.volume;
            let takes_all = self.volumes[usize::from(sweep.volume.0)].forgetting;
            sweep.left_one |= is_its && takes_all && entry < sweep.next;
        }
    }

    /// Entries have other numbers from here on.
    pub(crate) fn sweep_from_the_start(&mut self) {
        self.sweeps.iter_mut().for_each(|sweep| sweep.next = 0);
    }

    /// Drop an entry if it is of this volume. False if it must stay for now.
    fn sweep_entry(&mut self, volume: VolumeId, entry: u32) -> bool {
        if self.store.key_of_number(entry).is_none_or(|key| key.volume != volume) {
            return true;
        }
        match self.store.state(entry) {
            State::Ghost => true,
            // Only the cache has what is dirty. It leaves when it is clean, where all of the volume has to.
            State::Dirty => !self.volume(volume).forgetting,
            _ if self.is_in_use(entry) => false,
            state => {
                self.remove_entry(entry);
                self.stats_mut(volume).invalidations += u64::from(state != State::Dead);
                true
            }
        }
    }

    /// True while blocks of a volume are being dropped.
    pub(crate) fn is_sweeping(&self, volume: VolumeId) -> bool {
        self.sweeps.iter().any(|sweep| sweep.volume == volume)
    }

    /// True if the cache may not be used for this volume.
    pub(crate) fn goes_past_cache(&self, volume: VolumeId) -> bool {
        self.cache_failed || self.volume(volume).distrusted
    }
}
