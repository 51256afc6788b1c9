//! The cleaner of ordered volumes: the oldest epoch first, and the next when the backing durably has it.

use super::{Engine, Planted, SPAN};
use crate::VolumeId;
use crate::store::{BlockKey, State};

/// Blocks looked at for one that can be written back now.
const LOOKS: usize = 64;

impl Engine {
    /// True if an epoch is to be written back although not much is dirty.
    pub(crate) fn wants_order(&self, volume: VolumeId) -> bool {
        let Some(order) = self.order(volume) else { return false };
        let (now, age) =
            (self.cleaner.now(), u64::from(self.tenants[self.tenant_of(volume)].dirty_limits.age));
        let aged = order.todo.values().next().is_some_and(|epoch| epoch.since + age <= now);
        order.pressed || order.is_waited_for() || aged || order.current - order.oldest > SPAN / 2
    }

    /// Dirty blocks of the volume stand in the way of others.
    pub(crate) fn press_order(&mut self, volume: VolumeId) {
        if let Some(order) = self.order_mut(volume) {
            order.pressed = true;
        }
    }

    /// The next block that can be written back; the current epoch ends where it is the only one.
    pub(crate) fn next_in_order(&mut self, volume: VolumeId) -> Option<BlockKey> {
        let order = self.order(volume)?;
        if order.past > 0 || order.unreadable.rests(self.cleaner.now()) {
            return None;
        }
        if order.oldest == order.current
            && (!order.gate.is_empty() || !order.is_todo(order.current) || !self.ends_epoch(volume))
        {
            return None;
        }
        let order = self.order(volume)?;
        let todo = order.todo.get(&order.oldest)?;
        let blocks: Vec<(u64, u32)> =
            todo.slots.iter().take(LOOKS).map(|(&block, &slot)| (block, slot)).collect();
        let found =
            blocks.into_iter().find(|&(block, slot)| self.may_write(BlockKey { volume, block }, slot));
        found.map(|(block, _)| BlockKey { volume, block })
    }

    /// True if a crash brings back this version, and none that has been written back: that would go over this one.
    fn may_write(&mut self, key: BlockKey, slot: u32) -> bool {
        let Some(durable) = self.durable.as_mut() else { return false };
        let Some(order) = &self.volumes[usize::from(key.volume.0)].order else { return false };
        let waits = |slot| order.versions.contains_key(&slot);
        durable.may_write_back(slot) && durable.may_write_over(key, waits)
    }

    /// Take a block and those that follow it from the oldest epoch, at most so many: their slots.
    pub(crate) fn take_in_order(&mut self, key: BlockKey, most: u64) -> Vec<u32> {
        let Some(order) = self.order(key.volume) else { return Vec::new() };
        let most = if order.unreadable.is_failing() { 1 } else { most };
        let Some(todo) = order.todo.get(&order.oldest) else { return Vec::new() };
        let following = todo.slots.range(key.block..key.block + most).map(|(&block, &slot)| (block, slot));
        let blocks: Vec<(u64, u32)> = following
            .zip(key.block..)
            .take_while(|((block, _), next)| block == next)
            .map(|(found, _)| found)
            .collect();
        let volume = key.volume;
        let may = |&&(block, slot): &&(u64, u32)| self.may_write(BlockKey { volume, block }, slot);
        let firm = blocks.iter().take_while(may).count();
        let Some(order) = self.order_mut(key.volume) else { return Vec::new() };
        let (oldest, mut slots) = (order.oldest, Vec::new());
        for (block, slot) in blocks.into_iter().take(firm) {
            if let Some(todo) = order.todo.get_mut(&oldest) {
                todo.slots.remove(&block);
            }
            slots.push(slot);
        }
        slots
    }

    pub(super) fn is_newest(&self, key: BlockKey, slot: u32) -> bool {
        let entry = self.store.find(key);
        entry.is_some_and(|entry| self.store.slot(entry) == slot && self.store.state(entry) == State::Dirty)
    }

    /// The backing durably has these versions: the newest one of a block is clean, an older one leaves.
    pub(crate) fn settle_versions_of(
        &mut self,
        volume: VolumeId,
        blocks: Vec<(BlockKey, u32)>,
    ) -> Vec<(BlockKey, u32)> {
        if !self.is_ordered(volume) {
            return blocks;
        }
        let mut clean = Vec::new();
        for (key, slot) in blocks {
            let Some(order) = self.order_mut(key.volume) else { continue };
            if order.versions.contains_key(&slot) {
                order.leave(key.block, slot);
                match self.is_newest(key, slot) {
                    true => clean.push((key, slot)),
                    false => self.retire_version(key.volume, slot),
                }
            }
        }
        clean
    }

    pub(super) fn retire_version(&mut self, volume: VolumeId, slot: u32) {
        let soon = self.hurries_order(volume);
        if let Some(order) = self.order_mut(volume) {
            order.kept -= 1;
        }
        self.durable.iter_mut().for_each(|durable| durable.retire(slot, soon));
        self.discount_version(volume);
    }

    /// True if what is clean is to be said at once.
    pub(crate) fn hurries_order(&self, volume: VolumeId) -> bool {
        let Some(order) = self.order(volume) else { return false };
        order.is_waited_for() || self.is_draining(volume) || self.epochs(volume) > SPAN / 2
    }

    /// The oldest epoch is over if nothing of it is left, and the backing durably has what has overtaken some of it.
    pub(super) fn next_epoch(&mut self, volume: VolumeId) {
        let hasty = self.is_planted(Planted::EpochUnflushed);
        let Some(order) = self.order(volume) else { return };
        if order.oldest == order.current
            || order.is_todo(order.oldest)
            || !self.cleaner.is_written(volume, hasty)
        {
            return;
        }
        if self.owes(volume) && !hasty {
            if !self.volume(volume).flushes.is_busy() && !self.is_paused(volume) {
                self.flush_backing(volume);
            }
            return;
        }
        let Some(order) = self.order_mut(volume) else { return };
        let before = order.oldest;
        while order.oldest < order.current && !order.is_todo(order.oldest) {
            order.todo.remove(&order.oldest);
            order.oldest += 1;
        }
        if order.oldest > before {
            order.pressed = false;
            self.cleaner.look();
        }
    }
}
