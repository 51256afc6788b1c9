//! Slots of ordered volumes that cannot be read: is it a bad sector, or is the device gone?
//!
//! The order holds everything up until a version is on the backing, so one that cannot be read is given up in the end: it is named as lost, and what is newer goes on. A device
//! that answers nothing any more must not come to that: block after block would be named, and newer ones written over the gaps, before there are errors enough to give
//! the device up ([`crate::CACHE_ERRORS_MAX`]), which keeps the backing a prefix. So each read that fails is followed by one of the superblock, which was readable at the start: only those count that the
//! device answered.

use super::Engine;
use crate::durable::Durable;
use crate::store::BlockKey;
use crate::{Buf, BufOwner, IoError, Op, OpKind, StageId, Target, VolumeId};

/// Reads of one slot that fail, a tick apart, while the device answers, before its data counts as lost.
const FAILURES_MAX: u32 = 16;

/// Reads of slots that have failed since the last one that did not.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    /// After how many of them the device answered.
    answered: u32,
    /// Whether it does is being asked.
    asking: bool,
    failing: bool,
    /// Until when (ticks) none is tried.
    rests_until: u64,
}

impl Unreadable {
    pub fn is_failing(&self) -> bool {
        self.failing
    }

    pub fn rests(&self, now: u64) -> bool {
        self.rests_until > now
    }

    /// So many slots were read at once. True if that has failed so often that the data of this one counts as lost.
    fn note(&mut self, ok: bool, blocks: usize, now: u64) -> bool {
        if ok {
            *self = Self { asking: self.asking, ..Self::default() };
            return false;
        }
        (self.failing, self.rests_until) = (true, now + 1);
        let is_lost = self.answered >= FAILURES_MAX && blocks == 1;
        if is_lost {
            self.answered = 0;
        }
        is_lost
    }
}

impl Engine {
    /// So many of a run's slots were read at once. True if that has failed so often that the data of this one counts as lost.
    pub(crate) fn note_order_read(&mut self, volume: VolumeId, ok: bool, blocks: usize) -> bool {
        let now = self.cleaner.now();
        let Some(order) = self.order_mut(volume) else { return false };
        let is_lost = order.unreadable.note(ok, blocks, now);
        if !ok && !is_lost {
            self.ask_cache(volume);
        }
        is_lost
    }

    /// Find out whether the cache device answers.
    fn ask_cache(&mut self, volume: VolumeId) {
        let Some(offset) = self.durable.as_deref().map(Durable::superblock_offset) else { return };
        let fails = self.cache_failed;
        let Some(order) = self.order_mut(volume) else { return };
        if fails || std::mem::replace(&mut order.unreadable.asking, true) {
            return;
        }
        let len = self.config.cache_align;
        let stage = self.alloc_stage(len);
        let buf = Buf { owner: BufOwner::Stage(stage), offset: 0 };
        self.device(Target::CacheMeta, OpKind::Read { offset, len, buf }, Op::MetaRead { volume, stage });
    }

    /// The cache device has answered, or not.
    pub(crate) fn end_meta_read(&mut self, volume: VolumeId, stage: StageId, result: Result<(), IoError>) {
        self.free_stage(stage);
        self.note_cache_result(volume, result);
        if let Some(order) = self.order_mut(volume) {
            order.unreadable.asking = false;
            order.unreadable.answered += u32::from(result.is_ok() && order.unreadable.failing);
        }
    }

    /// Volumes for which the cache device is being asked.
    pub(crate) fn questions_in_flight(&self) -> usize {
        let asks = |&volume: &VolumeId| self.order(volume).is_some_and(|order| order.unreadable.asking);
        self.ordered.iter().copied().filter(asks).count()
    }

    /// A version's data is lost: it stands in no epoch's way any more. Nobody is reading its slot.
    pub(crate) fn lose_version(&mut self, key: BlockKey, slot: u32) {
        let Some(order) = self.order_mut(key.volume) else { return };
        if order.versions.contains_key(&slot) {
            order.leave(key.block, slot);
            match self.is_newest(key, slot) {
                true => {
                    self.note_lost(key);
                    self.durable.iter_mut().for_each(|durable| durable.lose(slot));
                }
                false => self.retire_version(key.volume, slot),
            }
        }
    }

    /// A version is to be written back once more; one that had been, with the oldest epoch. Where guests have found meanwhile that its data is lost, it is not.
    pub(crate) fn write_version_again(&mut self, key: BlockKey, slot: u32) {
        let (now, newest) = (self.cleaner.now(), self.is_newest(key, slot));
        if newest && self.is_lost(key) {
            return self.lose_version(key, slot);
        }
        let Some(order) = self.order_mut(key.volume) else { return };
        let epoch = order.versions.get(&slot).copied();
        if newest || epoch.is_some() {
            order.enter(epoch.unwrap_or(order.oldest), key.block, slot, now);
        }
    }
}
