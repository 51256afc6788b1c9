//! The cache device is given up, and the engine goes on with another one, or with the same when it is back, while guests stay connected.
//!
//! Given up ([`Engine::give_cache_up`]), the cache is passed by: what is clean is on the backings. A volume of which a crash at this moment could bring back
//! a dirty block is *failed*: without the device it is not what its guest wrote, so every request of it ends with an error. That includes
//! volumes whose last dirty block was written back just now, if the journal does not durably say so: else their guests would write on, flush, and
//! find old data over it when the device is back.
//!
//! Then [`Engine::detach_cache`] ends the session, and the driver lets go of the device. To go on, the driver recovers what the new one holds, without
//! any clean block: guests have written past them. It holds new requests ([`Engine::hold`]) until nothing is under way ([`Engine::is_still`]), and calls
//! [`Engine::resume_cache`]. Slots, entries and counts of the old session are forgotten, and what was recovered is opened as at a start. A failed volume is
//! what it would be after a crash: what was flushed is there.

use crate::format::{Recovered, Uuid, Volume};
use crate::store::BlockKey;
use crate::{Engine, FreePool, OpenError, Planted, VolumeId};
use std::collections::BTreeSet;
use std::ops::Range;

/// What has become of dirty blocks when the cache was gone on with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Those that are there again.
    pub back: u32,
    /// Those that are not: they were written, and no flush had covered them. By volume and block, sorted.
    pub lost: Vec<(VolumeId, u64)>,
}

/// What a session of a cache that is kept has made durable, by which its device is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionMark {
    /// The cache's name.
    pub uuid: Uuid,
    /// The session.
    pub session: u64,
    /// The last record of the journal that was durable, in its place.
    pub record: u64,
    /// Of the next record so many bytes of entries were, in a draft.
    pub part: u32,
}

impl Engine {
    /// The session of a cache that is kept, or the last one.
    pub fn session(&self) -> Option<SessionMark> {
        self.durable.as_ref().map(|durable| durable.mark())
    }

    /// Bytes of a block.
    pub fn cache_block_bytes(&self) -> u32 {
        self.config.block_bytes
    }

    /// The smallest unit that the cache device may read and write, in bytes.
    pub fn cache_align(&self) -> u32 {
        self.config.cache_align
    }

    /// The byte ranges of a volume of which the backing does not have the data, and the cache device cannot give it: all that is dirty of a volume that has
    /// failed, else the blocks that could not be read. Sorted, apart from each other. Slow: it looks at all that is cached.
    pub fn lost_ranges(&self, volume: VolumeId) -> Vec<Range<u64>> {
        if usize::from(volume.0) >= self.volumes.len() {
            return Vec::new();
        }
        let mut blocks: Vec<u64> = match self.is_failed(volume) {
            true => self.dirty_blocks(volume).collect(),
            false => self.lost_blocks_of(volume).collect(),
        };
        blocks.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for block in blocks {
            let (start, end) = self.block_range(volume, block);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    /// The cache device is not used any more. Volumes of which it alone has data are not served: without it they are not what their guests wrote.
    pub(crate) fn give_cache_up(&mut self) {
        self.cache_failed = true;
        self.trim_due = true;
        self.look_for_slots();
        let on_device =
            self.durable.as_ref().map(|durable| durable.dirty_volumes(&self.store)).unwrap_or_default();
        let (serves, narrow) =
            (self.is_planted(Planted::LostServed), self.is_planted(Planted::JustCleanServed));
        for volume in (0..self.volumes.len()).map(|volume| VolumeId(volume as u16)) {
            let owes = (self.owes(volume) || on_device.contains(&volume)) && !narrow;
            let volume = self.volume_mut(volume);
            volume.failed |= (volume.dirty > 0 || owes) && !serves;
        }
    }

    /// Do not use the cache device any more, and end its session. Follow with [`Engine::next_action`]; [`Engine::is_detached`] tells when the engine is
    /// done with it.
    pub fn detach_cache(&mut self) {
        if !self.cache_failed {
            self.give_cache_up();
        }
        self.latch_soon();
        self.go_on_in_order();
        self.run_granted();
    }

    /// True if the engine asks nothing more of its cache device, once the operations on it that are in flight have ended.
    pub fn is_detached(&self) -> bool {
        self.cache_failed && self.is_stopped()
    }

    /// Requests that have not begun wait, as long as this is `on`. Follow with [`Engine::next_action`] until it is empty.
    pub fn hold(&mut self, on: bool) {
        self.held = on;
        if !on {
            self.go_on();
        }
    }

    /// True if nothing is under way, of guests or of the engine's own.
    pub fn is_still(&self) -> bool {
        let waits = |part: &crate::Part| part.pending == 0;
        self.parts.iter().all(|(_, part)| waits(part))
            && self.fills.is_empty()
            && self.merges.is_empty()
            && self.outs.is_empty()
            && !self.is_cleaning()
            && self.volumes.iter().all(|volume| !volume.flushes.is_busy())
            && self.ops.is_empty()
    }

    /// Go on with a cache on a device that was opened anew: with what was recovered from it, or (`None`) with one that is not kept, and empty. `volumes`
    /// and the rest are as for [`Engine::open_cache`]; `pool` is the free pool from now on. Ends [`Engine::hold`], also where the cache cannot be used: then
    /// everything stays as it was.
    ///
    /// # Panics
    /// If the engine is not detached, or not still; or `recovered` has a clean block that could be used: guests may have written past it.
    pub fn resume_cache(
        &mut self,
        recovered: Option<(&Recovered, Vec<Volume>)>,
        pool: Box<dyn FreePool + Send>,
    ) -> Result<Resumed, OpenError> {
        assert!(self.is_detached() && self.is_still(), "nothing is under way when a cache is gone on with");
        let fits = match &recovered {
            Some((recovered, volumes)) => self.check_openable(recovered, volumes),
            None => Ok(()),
        };
        if let Err(error) = fits {
            self.hold(false);
            return Err(error);
        }
        let (served, before) = self.forget_cache(pool);
        let opened = match recovered {
            Some((recovered, volumes)) => {
                assert!(
                    recovered.blocks().all(|(_, contents)| contents.dirty),
                    "what is clean is not trusted"
                );
                self.open_resumed(recovered, volumes, &served)
            }
            None => Ok(()),
        };
        let is_back = |&(volume, block): &(VolumeId, u64)| self.is_dirty(BlockKey { volume, block });
        let mut lost: Vec<_> = before.into_iter().filter(|block| !is_back(block)).collect();
        lost.sort_unstable();
        let back = self.volumes.iter().map(|volume| volume.dirty).sum();
        self.hold(false);
        opened.map(|()| Resumed { back, lost })
    }

    /// Forget all that is cached, and all that has gone wrong. The volumes that were served meanwhile, and the blocks that were dirty.
    fn forget_cache(&mut self, pool: Box<dyn FreePool + Send>) -> (BTreeSet<VolumeId>, Vec<(VolumeId, u64)>) {
        let volumes = (0..self.volumes.len()).map(|volume| VolumeId(volume as u16));
        let served = volumes.filter(|&volume| !self.is_failed(volume)).collect();
        let mut dirty = Vec::new();
        for entry in 0..self.store.numbers() {
            let Some(key) = self.store.key_of_number(entry) else { continue };
            if self.is_dirty(key) {
                dirty.push((key.volume, key.block));
            }
            self.remove_entry(entry);
        }
        self.forget_order();
        self.free_slots.clear();
        (self.pool, self.pool_is_dry) = (pool, false);
        self.durable = None;
        self.store.number_by_slots(None);
        self.sweep_from_the_start();
        // What is there again of a volume that is being forgotten leaves, too.
        for volume in (0..self.volumes.len()).map(|volume| VolumeId(volume as u16)) {
            if self.volume(volume).forgetting {
                self.distrust(volume);
            }
        }
        self.forget_cleaning();
        self.volumes.iter_mut().for_each(|volume| volume.failed = false);
        // Those that wait announce their writes to the new session.
        self.parts.iter_mut().for_each(|(_, part)| part.guarded = false);
        (self.cache_errors, self.cache_write_errors) = Default::default();
        (self.cache_failed, self.trim_due) = (false, true);
        (served, dirty)
    }

    /// What has been waiting goes on.
    fn go_on(&mut self) {
        for volume in 0..self.volumes.len() {
            let volume = VolumeId(volume as u16);
            if !self.volume(volume).flushes.is_busy() {
                self.start_flush(volume);
            }
        }
        self.run_granted();
        self.pump();
    }
}
