//! Dirty blocks in the journal: what is said when one is written, written again, or passed by.
//!
//! Data of a dirty block never changes where it is: another version goes to another slot, and its `Map` frees the slot of the one
//! before (`docs/FORMAT.md`, rule 3). Where the backing has got newer data instead, the slot is *owed* a `Free`, which comes when
//! a flush of the backing has ended that began after that write: until then a crash brings the old data back, as it may. News of a
//! block that is passed by are said all the same: a flush may count on them that knows nothing of what came after.

use super::news::News;
use super::slots::Release;
use super::{Durable, LAZY, Planted};
use crate::format::{BlockId, Entry, Epoch};
use crate::locks::Owner;
use crate::store::{BlockKey, State, Store};
use crate::{Engine, RequestId, VolumeId};

impl Engine {
    /// The slot has the block's newest data, durable or not.
    pub(crate) fn become_dirty(&mut self, key: BlockKey, slot: u32, crc: u32) {
        let entry = self.store.find(key).expect("a lock keeps the entry of a block that is written");
        let state = self.store.state(entry);
        let previous = (state != State::Writing).then(|| self.store.slot(entry));
        let keeps =
            previous.is_some_and(|previous| state == State::Dirty && self.keeps_version(key, previous));
        debug_assert!(
            previous != Some(slot) && matches!(state, State::Writing | State::Valid | State::Dirty)
        );
        match previous {
            Some(previous) => self.move_entry(previous, slot),
            None => debug_assert_eq!(entry, slot, "it entered with the slot that was written"),
        }
        self.store.set_state(slot, State::Dirty);
        self.count_dirty(key, state == State::Dirty && !keeps);
        let epoch = self.enter_epoch(key, slot, previous.filter(|_| !keeps));
        let Some(durable) = &mut self.durable else {
            unreachable!("only a cache that is kept has dirty blocks")
        };
        let block = durable.block_id(key);
        previous.into_iter().for_each(|previous| self.store.leave(previous, block));
        let previous = match previous {
            Some(previous) if keeps => {
                durable.keep(block, previous);
                None
            }
            previous => previous,
        };
        let free = durable.dirtied(&mut self.store, (block, slot, crc), previous);
        if let Some(epoch) = epoch {
            durable.versions.add(slot, block.volume, epoch);
        }
        free.into_iter().for_each(|slot| self.free_slot(slot));
    }

    /// A request is to be told of its end when all that was written before is durable.
    pub(crate) fn reply_when_durable(&mut self, volume: VolumeId, request: RequestId) {
        let early = self.is_planted(Planted::FlushBeforeMap);
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_latched()) else {
            return self.reply(request, self.served(volume));
        };
        let round = !durable.said.cleaned.is_empty();
        if early || !durable.news.wait(volume, request, round) {
            return self.reply(request, Ok(()));
        }
        durable.want(1);
        self.pump();
    }

    /// Tell the requests that have waited long enough.
    pub(super) fn reply_to_waiters(&mut self) {
        while let Some(request) = self.durable.as_mut().and_then(|durable| durable.news.next_over()) {
            self.reply(request, Ok(()));
        }
        if let Some(durable) = self.durable.as_mut().filter(|durable| durable.news.waiters() > 0) {
            durable.want(1);
        }
    }

    /// Say what is ripe. False if the journal is full.
    pub(super) fn push_news(&mut self) -> bool {
        let Some(durable) = &mut self.durable else { return true };
        while let Some((number, news)) = durable.news.next() {
            let pushed = match news {
                News::Map { slot, .. } if !durable.slots.is_waiting(&self.store, slot, number) => {
                    continue;
                }
                News::Map { block, slot, crc, old } => {
                    let epoch = durable.versions.epoch(slot);
                    durable.push(Entry::Write { block, epoch, slot, crc, old })
                }
                News::Free { slot } => durable.push(Entry::Free { slot }),
                News::Lose { slot } => durable.push_lost(&self.store, slot),
            };
            if !pushed {
                durable.news.unsaid(news);
                return false;
            }
            durable.note_said(&mut self.store, news);
        }
        true
    }

    /// The backing durably has the data of these slots: say so, if that still is what the cache holds.
    pub(super) fn push_cleans(&mut self) {
        let mut later = Vec::new();
        if let Some(durable) = &self.durable {
            self.store.expect_slots(durable.cleans.iter().map(|&(_, slot)| slot));
        }
        while let Some((key, slot)) = self.durable.as_mut().and_then(|durable| durable.cleans.pop_front()) {
            let Some(entry) = self.is_cleaned(key, slot) else { continue };
            if self.is_being_written(key) {
                // It is being written, perhaps past the cache by someone who counts on it being dirty.
                match self.is_ordered(key.volume) {
                    // Whoever has the lock may be waiting until older blocks are written back.
                    true => later.push((key, slot)),
                    false => self.requeue(vec![(key, slot)]),
                }
                continue;
            }
            let Some(durable) = &mut self.durable else { return };
            let quiet = durable.regions.may_map(durable.region_of(durable.block_id(key)));
            // In a region that is not quiet nothing may be called clean: the journal forgets the block, and maps it later.
            let pushed = match quiet {
                true => durable.push(Entry::Clean { slot }),
                false => durable.push_free_in_use(key, slot),
            };
            if !pushed {
                durable.cleans.push_front((key, slot));
                break;
            }
            if quiet {
                durable.slots.clean(slot);
                durable.said.epochless.push(slot);
            }
            durable.said.cleaned.insert(durable.numbers[key.volume.0 as usize]);
            self.store.set_state(entry, State::Valid);
            self.count_clean(key);
        }
        if let Some(durable) = &mut self.durable {
            durable.cleans.extend(later);
        }
    }

    /// Someone has begun to write a block, who may count on what it was. (Whoever has its lock and waits will look again.)
    fn is_being_written(&self, key: BlockKey) -> bool {
        let (start, end) = self.block_range(key.volume, key.block);
        self.volume(key.volume).locks.writers(start, end).any(|owner| match owner {
            Owner::Part(part) => self.parts[part as usize].pending > 0 || self.parts[part as usize].guarded,
            Owner::Fill(_) | Owner::Clean(_) => true,
        })
    }

    /// The entry of a block that still is dirty, and in this slot.
    fn is_cleaned(&self, key: BlockKey, slot: u32) -> Option<u32> {
        // An entry's number is its slot's.
        let same = self.store.key_of_number(slot) == Some(key) && self.store.state(slot) == State::Dirty;
        let firm = self.durable.as_ref().is_some_and(|durable| durable.slots.is_firm(slot));
        (same && firm).then_some(slot)
    }
}

impl Durable {
    /// A block was written to a slot; it was in `previous` before. A slot that is free now.
    fn dirtied(
        &mut self,
        store: &mut Store,
        (block, slot, crc): (BlockId, u32, u32),
        previous: Option<u32>,
    ) -> Option<u32> {
        let (mut old, mut at, mut free) = (None, None, None);
        if let Some(news) = previous.and_then(|previous| self.slots.withdraw(store, previous)) {
            (free, at) = (previous, Some(news));
            free.into_iter().for_each(|slot| self.versions.remove(slot));
            old = self.news.withdraw(news);
        } else if let Some(previous) = previous {
            match self.slots.release(previous) {
                Release::Now => free = Some(previous),
                Release::Wait => {}
                Release::Push => {
                    self.limbo.insert(block, previous);
                    old = Some(previous);
                }
                Release::Owed => {
                    self.limbo.insert(block, previous);
                    self.slots.supersede(previous);
                    old = Some(previous);
                }
            }
        }
        let old = old.or_else(|| self.take_owed(block));
        let news = News::Map { block, slot, crc, old };
        let at = match at {
            Some(at) => {
                self.news.put(at, news);
                at
            }
            None => self.news.add(news),
        };
        self.slots.wait(store, slot, at);
        self.want_if_much();
        free
    }

    /// The slot holds an older version of a block that is still to be written back.
    pub(super) fn keep(&mut self, block: BlockId, slot: u32) {
        self.limbo.insert(block, slot);
        self.kept += 1;
    }

    /// Such a version has been: its slot is freed, at once where someone waits (`soon`).
    pub(crate) fn retire(&mut self, slot: u32, soon: bool) {
        self.kept -= 1;
        if self.is_latched() {
            return;
        }
        // What is kept is dirty.
        let _ = self.slots.release(slot);
        self.slots.supersede(slot);
        self.news.add(News::Free { slot });
        self.want_if_much();
        if soon {
            self.want(1);
        }
    }

    /// The slot's data is lost. The block stays dirty there, but is of no epoch.
    pub(crate) fn lose(&mut self, slot: u32) {
        if !self.is_latched() {
            self.news.add(News::Lose { slot });
            self.want(1);
        }
    }

    /// True if there was room, or nothing to say: something newer has been said of the slot.
    fn push_lost(&mut self, store: &Store, slot: u32) -> bool {
        let Some(crc) = self.sum(store, slot).filter(|_| self.slots.is_firm(slot)) else { return true };
        let block = self.block(store, slot);
        let pushed = self.push(Entry::Map { block, dirty: true, epoch: Epoch::NONE, slot, crc, old: None });
        if pushed {
            self.said.epochless.push(slot);
        }
        pushed
    }

    /// The oldest epoch of a volume that the journal knows of, or will.
    pub(crate) fn oldest_epoch(&self, volume: VolumeId) -> Option<u64> {
        self.versions.oldest(self.numbers[volume.0 as usize])
    }

    /// A slot that the journal maps to the block, and that nothing frees yet: the caller will.
    fn take_owed(&mut self, block: BlockId) -> Option<u32> {
        if self.owed.is_empty() {
            return None;
        }
        let owed = self.limbo.of(block).find(|&slot| self.slots.is_owed(slot))?;
        self.slots.supersede(owed);
        self.owed.remove(&owed);
        Some(owed)
    }

    /// The slot has no entry any more, and the journal maps it dirty: it is freed when the backing durably has newer data.
    pub(super) fn owe(&mut self, block: BlockId, slot: u32) {
        self.limbo.insert(block, slot);
        self.owed.insert(slot, (block.volume, false));
    }

    /// A flush of a volume's backing begins.
    pub(super) fn cover_owed(&mut self, volume: u16) {
        self.owed.values_mut().filter(|owed| owed.0 == volume).for_each(|owed| owed.1 = true);
    }

    /// It has ended.
    pub(super) fn pay_owed(&mut self, volume: u16, ok: bool) {
        let covered = |owed: &(u16, bool)| *owed == (volume, true);
        if !ok {
            return self.owed.values_mut().filter(|owed| covered(owed)).for_each(|owed| owed.1 = false);
        }
        let slots: Vec<u32> =
            self.owed.iter().filter(|(_, owed)| covered(owed)).map(|(&slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.pay(slot));
    }

    fn pay(&mut self, slot: u32) {
        if self.owed.remove(&slot).is_some() {
            self.slots.supersede(slot);
            self.news.add(News::Free { slot });
            self.want(1);
        }
    }

    /// Without waiting for the backing: a planted bug.
    pub(super) fn pay_early(&mut self, slot: u32) {
        self.pay(slot);
    }

    /// True if slots of the volume wait for a flush of its backing.
    pub(super) fn owes(&self, volume: u16) -> bool {
        self.owed.values().any(|owed| owed.0 == volume)
    }

    /// The backing durably has the data of these slots. It is said at once where someone waits (`soon`), else when a round is due, or worth it.
    pub(crate) fn say_clean(&mut self, blocks: Vec<(BlockKey, u32)>, soon: bool) {
        if !blocks.is_empty() && !self.is_latched() {
            self.cleans.extend(blocks);
            if soon || self.cleans.len() >= LAZY {
                self.want(1);
            }
        }
    }

    /// Blocks that are to be called clean.
    pub(crate) fn cleaned(&self) -> impl Iterator<Item = &(BlockKey, u32)> {
        self.cleans.iter()
    }

    /// A block is not to be called clean after all.
    pub(crate) fn forget_cleaned(&mut self, key: BlockKey) {
        self.cleans.retain(|(cleaned, _)| *cleaned != key);
    }

    /// True if a slot's data may be written to the backing: a crash brings back nothing older. Else that is seen to.
    pub(crate) fn may_write_back(&mut self, slot: u32) -> bool {
        let firm = self.slots.is_firm(slot);
        if !firm {
            self.want(1);
        }
        firm
    }

    /// True if the journal durably maps no older version of a block but those that wait to be written back. Else that is seen to.
    pub(crate) fn may_write_over(&mut self, key: BlockKey, waits: impl Fn(u32) -> bool) -> bool {
        let block = self.block_id(key);
        let leaves = self.limbo.of(block).any(|slot| !waits(slot));
        if leaves {
            self.want(1);
        }
        !leaves
    }

    /// All that waits is to become durable.
    pub(crate) fn want_soon(&mut self) {
        self.want(1);
    }

    fn note_said(&mut self, store: &mut Store, news: News) {
        let freed = match news {
            News::Map { block, slot, crc, old } => {
                debug_assert_eq!(self.block(store, slot), block, "a slot has the block that its news are of");
                self.slots.map_dirty(store, slot, crc);
                self.said.firm.push(slot);
                old
            }
            News::Free { slot } => Some(slot),
            News::Lose { .. } => None,
        };
        if let Some(slot) = freed {
            self.slots.unmap(slot);
            self.said.frees.push(slot);
        }
    }
}
