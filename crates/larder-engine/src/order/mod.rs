//! Ordered write-back: the backing at any moment is the volume after some of its flushes, and maybe some of what was written after the last of them.
//!
//! So if the cache device is lost, the newest data is lost with it, and what remains is a disk as a power cut leaves it: a file system mounts. (Koller et al., *Write
//! Policies for Host-side Flash Caches*, FAST'13, ordered write-back; the same is promised by LSVD, EuroSys'22.)
//!
//! Flushes cut a volume's writes into *epochs*. What a flush or FUA has to cover is of an older epoch than what is written after it has ended: the epoch ends when
//! the flush arrives ([`Engine::ends_epoch`]). The cleaner writes back the oldest epoch, in order of addresses; when a flush of the backing has covered all
//! of it, the next one comes ([`clean`]). A block that is written in several epochs has a *version* in each: the older ones keep their slots until they
//! are written back, and count as dirty.
//!
//! What is not put into the cache (a discard, a write for which there is no slot, a write while the volume is drained) goes to the backing itself, and so waits at the *gate* until the backing has
//! all older epochs. A write that finds too much dirty waits for *room* instead of passing by. A flush waits while [`SPAN`] epochs are in use, for more cannot be
//! told apart. Whoever waits holds its range lock. Nobody is in another's way: versions of closed epochs do not change, so the cleaner takes no locks here, and it
//! rests while someone who passed the gate writes to the backing.
//!
//! Where the backing fails for longer than [`PATIENCE`], those who wait are told of an error.

mod clean;
mod unreadable;

use crate::format::{PERIOD, SPAN};
use crate::request::Part;
use crate::store::{BlockKey, State};
use crate::{Engine, IoError, Planted, RequestId, VolumeId, locks::Owner};
use std::collections::{BTreeMap, VecDeque};
use unreadable::Unreadable;

/// Ticks ([`Engine::tick`], about a second each) for which a request waits for a backing that fails.
const PATIENCE: u64 = 10;

/// The order of a volume's writes.
#[derive(Debug)]
pub(crate) struct Order {
    /// What is written now is of this epoch.
    current: u64,
    /// The backing durably has all that is older.
    oldest: u64,
    /// Versions that wait to be written back, by block, with their slots.
    todo: BTreeMap<u64, Epoch>,
    /// The epoch of each slot of which the backing does not durably have the data.
    versions: BTreeMap<u32, u64>,
    /// Slots that hold older versions of blocks.
    kept: u32,
    /// Blocks that parts under way may make dirty.
    writing: u32,
    /// Parts that have passed the gate.
    past: u32,
    gate: VecDeque<u32>,
    room: VecDeque<u32>,
    flushes: VecDeque<RequestId>,
    /// Dirty blocks stand in the way of others.
    pressed: bool,
    unreadable: Unreadable,
}

#[derive(Debug)]
struct Epoch {
    slots: BTreeMap<u64, u32>,
    /// When the first block came, in ticks.
    since: u64,
}

impl Default for Order {
    fn default() -> Self {
        Self::starting(PERIOD)
    }
}

impl Order {
    fn starting(epoch: u64) -> Self {
        Self {
            current: epoch,
            oldest: epoch,
            todo: BTreeMap::new(),
            versions: BTreeMap::new(),
            kept: 0,
            writing: 0,
            past: 0,
            gate: VecDeque::new(),
            room: VecDeque::new(),
            flushes: VecDeque::new(),
            pressed: false,
            unreadable: Unreadable::default(),
        }
    }

    fn enter(&mut self, epoch: u64, block: u64, slot: u32, now: u64) {
        self.versions.insert(slot, epoch);
        let epoch = self.todo.entry(epoch).or_insert_with(|| Epoch { slots: BTreeMap::new(), since: now });
        epoch.slots.insert(block, slot);
    }

    /// The slot's data need not be written back.
    fn leave(&mut self, block: u64, slot: u32) {
        let Some(epoch) = self.versions.remove(&slot) else { return };
        if let Some(todo) = self.todo.get_mut(&epoch)
            && todo.slots.get(&block) == Some(&slot)
        {
            todo.slots.remove(&block);
        }
    }

    fn is_todo(&self, epoch: u64) -> bool {
        self.todo.get(&epoch).is_some_and(|epoch| !epoch.slots.is_empty())
    }

    /// True if someone waits for older epochs to be written back.
    pub(crate) fn is_waited_for(&self) -> bool {
        !(self.gate.is_empty() && self.room.is_empty() && self.flushes.is_empty())
    }
}

impl Engine {
    /// Whether a volume's writes reach its backing in the order of its flushes: from now on, before anything is cached of it.
    ///
    /// # Panics
    /// If anything is cached already.
    pub fn set_ordered(&mut self, volume: VolumeId, on: bool) {
        assert_eq!(self.store.len(), 0, "the order of writes is chosen first");
        self.volume_mut(volume).order = on.then(Box::default);
        self.ordered = self
            .volumes
            .iter()
            .zip(0..)
            .filter(|(volume, _)| volume.order.is_some())
            .map(|(_, at)| VolumeId(at))
            .collect();
    }

    /// True if a volume's writes reach its backing in the order of its flushes.
    pub fn is_ordered(&self, volume: VolumeId) -> bool {
        self.volume(volume).order.is_some()
    }

    /// How many epochs the backing of an ordered volume is behind: what a loss of the cache device would cost. `None` if its writes have no order.
    pub fn epochs_behind(&self, volume: VolumeId) -> Option<u64> {
        let order = self.order(volume)?;
        Some(order.current - order.oldest + u64::from(order.is_todo(order.current)))
    }

    pub(crate) fn order(&self, volume: VolumeId) -> Option<&Order> {
        self.volume(volume).order.as_deref()
    }

    pub(crate) fn order_mut(&mut self, volume: VolumeId) -> Option<&mut Order> {
        self.volume_mut(volume).order.as_deref_mut()
    }

    /// True if the slot's version is of an older epoch than what is written now, and the backing does not have it: it stays.
    pub(crate) fn keeps_version(&mut self, key: BlockKey, slot: u32) -> bool {
        let forgets = self.is_planted(Planted::VersionDropped);
        let Some(order) = self.order_mut(key.volume) else { return false };
        let keeps = !forgets && order.versions.get(&slot).is_some_and(|&epoch| epoch < order.current);
        order.kept += u32::from(keeps);
        keeps
    }

    /// A block was written to a slot; what `previous` holds is of no use any more. The epoch, where there are epochs.
    pub(crate) fn enter_epoch(&mut self, key: BlockKey, slot: u32, previous: Option<u32>) -> Option<u64> {
        let now = self.cleaner.now();
        let order = self.order_mut(key.volume)?;
        if let Some(previous) = previous {
            order.leave(key.block, previous);
        }
        order.enter(order.current, key.block, slot, now);
        Some(order.current)
    }

    /// A dirty block is so no more.
    pub(crate) fn leave_epoch(&mut self, key: BlockKey) {
        if !self.is_ordered(key.volume) {
            return;
        }
        let slot = self.store.find(key).map(|entry| self.store.slot(entry));
        if let (Some(slot), Some(order)) = (slot, self.order_mut(key.volume)) {
            order.leave(key.block, slot);
        }
    }

    /// A part that writes to the backing has its lock. True if it waits for older epochs; it is granted again when the backing has them.
    pub(crate) fn waits_at_order(&mut self, part_id: u32) -> bool {
        let part = self.parts[part_id as usize];
        let hasty = self.is_planted(Planted::OrderPassed);
        if part.past || self.cache_failed {
            return false;
        }
        self.next_epoch(part.volume);
        let Some(order) = self.order_mut(part.volume) else { return false };
        if order.oldest < order.current && !hasty {
            if !order.gate.contains(&part_id) {
                order.gate.push_back(part_id);
            }
            self.cleaner.look();
            return true;
        }
        order.past += 1;
        self.parts[part_id as usize].past = true;
        false
    }

    /// True if a part waits for older epochs.
    pub(crate) fn is_at_gate(&self, volume: VolumeId, part_id: u32) -> bool {
        self.order(volume).is_some_and(|order| order.gate.contains(&part_id))
    }

    /// A part has ended.
    pub(crate) fn leave_order(&mut self, part: &Part) {
        let blocks = self.blocks_of(part.start, part.end);
        let Some(order) = self.order_mut(part.volume) else { return };
        if part.back {
            order.writing -= (blocks.end - blocks.start) as u32;
        }
        if part.past {
            order.past -= 1;
            self.cleaner.look();
        }
    }

    /// True if a part under write-back has to wait until less is dirty; it is granted again then.
    pub(crate) fn waits_for_room(&mut self, part_id: u32) -> bool {
        let part = &self.parts[part_id as usize];
        let volume = part.volume;
        // Who has passed the gate keeps the cleaner waiting.
        if part.past || !self.has_no_room(volume) {
            let blocks = self.blocks_of(part.start, part.end);
            if let Some(order) = self.order_mut(volume) {
                order.writing += (blocks.end - blocks.start) as u32;
            }
            return false;
        }
        if let Some(order) = self.order_mut(volume) {
            order.room.push_back(part_id);
        }
        self.durable.iter_mut().for_each(|durable| durable.want_soon());
        self.cleaner.look();
        true
    }

    fn has_no_room(&self, volume: VolumeId) -> bool {
        let Some(order) = self.order(volume) else { return false };
        // What cannot be read any more is no reason to wait.
        let more = order.writing > 0 || self.dirty_of(volume) > self.lost_of(volume);
        let too_dirty = more && self.is_too_dirty_with(volume, order.writing);
        !self.cache_failed && (too_dirty || self.epochs(volume) > SPAN)
    }

    /// Epochs from the oldest that the journal may know of to the newest.
    fn epochs(&self, volume: VolumeId) -> u64 {
        let Some(order) = self.order(volume) else { return 0 };
        let known = self.durable.as_ref().and_then(|durable| durable.oldest_epoch(volume));
        order.current - known.unwrap_or(order.current).min(order.oldest) + 1
    }

    /// A flush arrives. True if it waits, as there are too many epochs; else what is written from now on is of a newer one.
    pub(crate) fn waits_for_epoch(&mut self, volume: VolumeId, request: RequestId) -> bool {
        let goes_on = self.is_planted(Planted::EpochGoesOn);
        if self.order(volume).is_none() || self.cache_failed || goes_on || self.ends_epoch(volume) {
            return false;
        }
        if let Some(order) = self.order_mut(volume) {
            order.flushes.push_back(request);
        }
        self.cleaner.look();
        self.clean();
        true
    }

    /// What is written from now on is of a newer epoch than what was. False if that cannot be yet.
    fn ends_epoch(&mut self, volume: VolumeId) -> bool {
        let epochs = self.epochs(volume);
        let Some(order) = self.order_mut(volume) else { return true };
        let is_used = order.is_todo(order.current);
        let may = epochs < SPAN && order.gate.is_empty();
        order.current += u64::from(is_used && may);
        !is_used || may
    }

    /// Flushes that wait for an epoch.
    pub(crate) fn flushes_in_order(&self) -> usize {
        self.ordered.iter().filter_map(|&volume| self.order(volume)).map(|order| order.flushes.len()).sum()
    }

    /// Let those go on who need not wait any longer.
    pub(crate) fn go_on_in_order(&mut self) {
        for at in 0..self.ordered.len() {
            self.go_on_with(self.ordered[at]);
        }
    }

    fn go_on_with(&mut self, volume: VolumeId) {
        self.next_epoch(volume);
        if !self.order(volume).is_some_and(Order::is_waited_for) {
            return;
        }
        let has_room = !self.has_no_room(volume);
        let impatient = self.backing_failing_for(volume).is_some_and(|ticks| ticks > PATIENCE);
        let fails = self.cache_failed;
        let Some(order) = self.order_mut(volume) else { return };
        if impatient && !fails {
            return self.end_waiting(volume);
        }
        let mut go_on = Vec::new();
        if order.oldest == order.current || fails {
            go_on.extend(order.gate.drain(..));
        }
        if has_room {
            go_on.extend(order.room.drain(..));
        }
        self.granted.extend(go_on.into_iter().map(Owner::Part));
        let waiting = self.order(volume).is_some_and(|order| !order.flushes.is_empty());
        if waiting && (fails || self.ends_epoch(volume)) {
            let flushes =
                self.order_mut(volume).map(|order| std::mem::take(&mut order.flushes)).unwrap_or_default();
            flushes.into_iter().for_each(|request| self.flush_in_epoch(volume, request));
        }
    }

    /// Nobody knows when the backing will take anything: those who wait for that are told.
    fn end_waiting(&mut self, volume: VolumeId) {
        let Some(order) = self.order_mut(volume) else { return };
        let parts: Vec<u32> = order.gate.drain(..).chain(order.room.drain(..)).collect();
        let flushes = std::mem::take(&mut order.flushes);
        flushes.into_iter().for_each(|request| self.reply(request, Err(IoError::Io)));
        parts.into_iter().for_each(|part| self.refuse(part));
    }

    /// A part that has written nothing to the backing ends with an error, or those of its pieces that were to go there do.
    pub(crate) fn refuse(&mut self, part_id: u32) {
        let part = &mut self.parts[part_id as usize];
        part.error.get_or_insert(IoError::Io);
        match self.outs.remove(&part_id) {
            Some(outs) => outs.into_iter().for_each(|out| self.drop_out(part_id, out)),
            None => {
                part.pending = 1;
                self.part_step(part_id);
            }
        }
    }

    /// Versions that the cache held before it was opened: by epoch, the older ones of blocks among them.
    pub(crate) fn restore_version(&mut self, key: BlockKey, slot: u32, epoch: u64, is_older: bool) {
        let now = self.cleaner.now();
        let Some(order) = self.order_mut(key.volume) else { return };
        order.enter(epoch, key.block, slot, now);
        order.kept += u32::from(is_older);
        order.oldest = order.todo.keys().next().copied().unwrap_or(epoch);
        order.current = order.current.max(epoch + 1);
        if is_older {
            self.count_version(key.volume);
        }
    }

    /// The cache is forgotten, with all that waited for it.
    pub(crate) fn forget_order(&mut self) {
        for at in 0..self.ordered.len() {
            let volume = self.ordered[at];
            let kept = self.order(volume).map_or(0, |order| order.kept);
            (0..kept).for_each(|_| self.discount_version(volume));
            if let Some(order) = self.order_mut(volume) {
                debug_assert!(!order.is_waited_for(), "whoever waited was told that the cache has failed");
                *order = Order::default();
            }
        }
        // Those that wait to begin look for the order of the new session.
        self.parts.iter_mut().for_each(|(_, part)| (part.past, part.back) = (false, false));
    }

    /// Bytes of memory held, about.
    pub(crate) fn order_bytes(&self) -> usize {
        let of = |order: &Order| order.versions.len() * 2 * size_of::<(u64, u64)>();
        self.ordered.iter().filter_map(|&volume| self.order(volume)).map(of).sum()
    }

    /// Older versions of blocks, which count as dirty.
    pub(crate) fn kept_versions(&self, volume: VolumeId) -> u32 {
        self.order(volume).map_or(0, |order| order.kept)
    }

    /// Every dirty block that is not lost is a version that waits, or is on its way; for tests.
    pub(crate) fn check_order(&self, volume: VolumeId) {
        let Some(order) = self.order(volume) else { return };
        assert!(order.oldest <= order.current, "epochs end in their order");
        for (&epoch, todo) in &order.todo {
            assert!((order.oldest..=order.current).contains(&epoch), "epoch {epoch} is over, or yet to come");
            for (&block, slot) in &todo.slots {
                assert_eq!(order.versions.get(slot), Some(&epoch), "block {block} is in one epoch");
                let key = BlockKey { volume, block };
                let dirty = self.store.find(key).is_some_and(|entry| self.store.state(entry) == State::Dirty);
                assert!(dirty, "block {block} has versions, and is not dirty");
            }
        }
    }
}
