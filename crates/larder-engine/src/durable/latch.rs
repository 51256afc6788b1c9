//! The end of all trust: the cache device failed in metadata.
//!
//! What the device now holds is not known, so nothing more is written but a superblock that says so, and the cache is not used
//! any more. Writes that wait for marks wait for this superblock instead: it makes the next start refuse the cache, which does
//! what marks would have done. Where the device does not take even that, they go on all the same: nothing can be told to a
//! device that is gone, and whoever brings it back later must not start with it.

use super::round::superblock_piece;
use super::{After, Phase};
use crate::Engine;
use crate::format::Superblock;

impl Engine {
    /// The session is to end as if a write of metadata had failed: now, or when what is under way has ended.
    pub(crate) fn latch_soon(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        match durable.phase {
            Phase::Idle => self.latch(),
            Phase::Busy(After::Latch) | Phase::Latched | Phase::Stopped => {}
            Phase::Busy(_) => durable.failed = true,
        }
    }

    /// A write or flush of metadata failed.
    pub(super) fn latch(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        durable.failed = false;
        durable.next_superblock = None;
        if durable.phase == Phase::Busy(After::Latch) {
            return self.latched();
        }
        durable.held.extend(durable.regions.give_up());
        durable.held.extend(durable.gate.drain(..));
        durable.frees.clear();
        durable.cleans.clear();
        durable.ripe.clear();
        durable.pages.clear();
        // What has become durable is not to be doubted, whatever the device does to it from now on.
        let (next, part, tail) = durable.durable_end();
        let superblock =
            Superblock { needs_check: true, clean_stop: false, next, part, tail, ..durable.successor() };
        let piece = superblock_piece(&superblock);
        durable.next_superblock = Some(superblock);
        self.give_cache_up();
        self.end_waiters();
        self.meta_step(vec![piece], After::Latch);
    }

    /// Nothing will be durable any more: requests that wait for it end.
    fn end_waiters(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        durable.owed.clear();
        for (volume, request) in durable.news.give_up() {
            self.reply(request, self.served(volume));
        }
    }

    pub(super) fn latched(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        durable.phase = Phase::Latched;
        let held = std::mem::take(&mut durable.held);
        // A part that waited for several marks is held for each of them.
        self.resume(held);
    }
}
