//! The cleaner: writes dirty blocks back.
//!
//! It works while a tenant has more dirty blocks than it may rest with ([`DirtyLimits`]), while blocks are dirty for too long, while nobody asks for
//! anything, where dirty blocks stand in the way of others that are to enter, and where a tenant is not under `wb` any more, or is to be drained. It goes
//! through each volume in the order of addresses, so that a disk's arm does too, and writes neighbours at once ([`run`]).
//!
//! Only blocks that the journal durably maps are written back: else a crash could bring back what is older than that, and stale. A block
//! is clean when a flush of its backing has ended that began after the write.
//!
//! How many runs are under way follows how near the tenant is to its limit. With guests about it is one, below half of the way, and none while they wait for the backing themselves: a disk
//! that serves one at a time would have them wait for the cleaner.

mod backlog;
mod drain;
mod run;

use crate::ops::Op;
use crate::store::{BlockKey, State};
use crate::{Engine, Sharing, TenantId, VolumeId, WritePolicy};
use backlog::Backlog;
use drain::Draining;
use run::Run;
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};

pub use drain::Drain;

/// Runs of a volume under way at a time, at most.
const RUNS_MAX: usize = 8;

/// Runs of all volumes, at most; but each may have one.
const RUNS_ALL: usize = 16;

/// What waits is looked through so far for something of a volume that may have another run.
const WAITING_LOOKS: usize = 1024;

/// Blocks looked at for one that can be written back now.
const LOOKS: usize = 64;

/// Blocks of which the cleaner fetches the entries at once.
const AHEAD: usize = 32;

/// Blocks remembered that stand in the way of others.
const URGENT_MAX: usize = 1024;

/// Ticks that a backing which failed is left alone at most.
const PAUSE_MAX: u64 = 64;

/// How much of a tenant's partition may be dirty, and for how long. Where tenants share a partition ([`Sharing`]): how much of all that they may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyLimits {
    /// Per cent of its quota that may rest dirty.
    pub rest: u8,
    /// Per cent of its quota at which further blocks go to the backing.
    pub max: u8,
    /// Ticks ([`Engine::tick`], about a second each) after which a block is written back.
    pub age: u32,
}

impl Default for DirtyLimits {
    fn default() -> Self {
        Self { rest: 20, max: 80, age: 30 }
    }
}

/// The cleaner of an engine.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    backlog: Backlog,
    runs: Slab<Run>,
    volumes: Vec<Volume>,
    /// Blocks that stand in the way of others.
    urgent: VecDeque<BlockKey>,
    /// Pieces of the backlog that are dirty for too long: where to go on in each.
    aged: VecDeque<BlockKey>,
    /// Dirty blocks that cannot be read any more.
    lost: BTreeSet<(VolumeId, u64)>,
    /// Dirty blocks were in the way since blocks were last found to be clean.
    pressed: bool,
    /// There may be something to do.
    due: bool,
    ticks: u64,
    /// A guest has asked for something since the last tick.
    busy: bool,
    /// Nobody asks for anything: all is written back.
    idle: bool,
    /// The volume that is looked at next.
    next: usize,
}

#[derive(Debug, Default)]
struct Volume {
    /// Where the next run begins.
    cursor: u64,
    /// Entries of the blocks before this one were fetched.
    expected: u64,
    runs: u32,
    /// Operations of guests at the backing.
    waiting: u32,
    /// Written back, and not flushed; covered by the flush that is running.
    written: Vec<(BlockKey, u32)>,
    covered: Vec<(BlockKey, u32)>,
    /// Everything is written back.
    draining: Draining,
    /// After an error: until when (ticks) nothing is tried, and how long that is.
    paused_until: u64,
    pause: u64,
    /// Since when (ticks) nothing that was written back has become clean, for errors of the backing.
    failing_since: Option<u64>,
    /// It has failed since somebody asked for what is dirty to be written back.
    failed_since_asked: bool,
}

impl Cleaner {
    pub fn add_volume(&mut self) {
        self.volumes.push(Volume::default());
    }

    /// There may be something to do.
    pub fn look(&mut self) {
        self.due = true;
    }

    pub fn guest_came(&mut self) {
        (self.busy, self.idle) = (true, false);
    }

    /// A block is not lost, or no more.
    #[inline]
    fn found(&mut self, key: BlockKey) {
        if !self.lost.is_empty() {
            self.lost.remove(&(key.volume, key.block));
        }
    }

    /// In ticks.
    pub fn now(&self) -> u64 {
        self.ticks
    }

    /// Nothing of a volume is on its way to the backing, or (unless `hasty`) waits for its flush.
    pub fn is_written(&self, volume: VolumeId, hasty: bool) -> bool {
        let volume = &self.volumes[volume.0 as usize];
        volume.runs == 0 && (hasty || (volume.written.is_empty() && volume.covered.is_empty()))
    }

    pub fn memory_bytes(&self) -> usize {
        self.backlog.memory_bytes()
    }
}

impl Engine {
    /// An operation begins, or has ended: guests may wait for a backing by it.
    #[inline]
    pub(crate) fn note_waiting(&mut self, op: &Op, change: i32) {
        match *op {
            Op::PartRead { part } | Op::PartBacking { part } | Op::PartOut { part, .. } => {
                self.count_waiting(self.parts[part as usize].volume, change);
            }
            Op::FillRead { fill } => self.count_waiting(self.fills[fill as usize].volume, change),
            _ => {}
        }
    }

    fn count_waiting(&mut self, volume: VolumeId, change: i32) {
        let waiting = &mut self.cleaner.volumes[volume.0 as usize].waiting;
        *waiting = waiting.saturating_add_signed(change);
        // Looking takes a moment for each volume of the engine.
        let nobody = *waiting == 0;
        self.cleaner.due |= nobody && self.volume(volume).dirty > 0;
    }

    /// How much of a tenant's partition may be dirty.
    pub fn set_dirty_limits(&mut self, tenant: TenantId, limits: DirtyLimits) {
        self.tenants[tenant.0 as usize].dirty_limits = limits;
        self.cleaner.look();
    }

    /// Blocks of a volume that are newer on the cache device than on the backing.
    pub fn dirty_of(&self, volume: VolumeId) -> u32 {
        self.volume(volume).dirty
    }

    /// Ticks ([`Engine::tick`], about a second each) since writing back to a volume's backing first failed, if nothing has become clean since.
    pub fn backing_failing_for(&self, volume: VolumeId) -> Option<u64> {
        let since = self.cleaner.volumes[volume.0 as usize].failing_since;
        let waits = self.dirty_of(volume) > 0 || self.is_draining(volume);
        since.filter(|_| waits).map(|since| self.cleaner.ticks - since)
    }

    /// True if the backing of a volume has failed since it was last asked for that all is written back ([`Engine::drain`], [`Engine::drain_once`]).
    pub fn backing_failed_since_asked(&self, volume: VolumeId) -> bool {
        self.cleaner.volumes[volume.0 as usize].failed_since_asked
    }

    /// Dirty blocks that could not be read back from the cache device: reads of them fail until they are written again.
    pub fn lost(&self) -> impl Iterator<Item = (VolumeId, u64)> + '_ {
        self.cleaner.lost.iter().copied()
    }

    /// How many of them a volume has.
    pub fn lost_of(&self, volume: VolumeId) -> u32 {
        self.lost_blocks_of(volume).count() as u32
    }

    /// Which of them a volume has, in order.
    pub(crate) fn lost_blocks_of(&self, volume: VolumeId) -> impl Iterator<Item = u64> + '_ {
        self.cleaner.lost.range((volume, 0)..=(volume, u64::MAX)).map(|lost| lost.1)
    }

    /// True where the cache device has failed with data that the backing does not have ([`Engine::dirty_blocks`]): every request of the volume fails.
    pub fn is_failed(&self, volume: VolumeId) -> bool {
        self.volume(volume).failed
    }

    /// The dirty blocks of a volume, in no order: slow.
    pub fn dirty_blocks(&self, volume: VolumeId) -> impl Iterator<Item = u64> + '_ {
        let keys = (0..self.store.numbers()).filter_map(|entry| self.store.key_of_number(entry));
        keys.filter(move |&key| key.volume == volume && self.is_dirty(key)).map(|key| key.block)
    }

    /// Nothing is dirty any more, of the old cache; what is to be drained still is.
    pub(crate) fn forget_cleaning(&mut self) {
        self.cleaner.urgent.clear();
        self.cleaner.aged.clear();
        self.cleaner.lost.clear();
        for state in &mut self.cleaner.volumes {
            let draining = std::mem::take(&mut state.draining);
            *state = Volume { draining, ..Volume::default() };
        }
        self.cleaner.due = true;
    }

    /// A block has become dirty, or was so before.
    pub(crate) fn count_dirty(&mut self, key: BlockKey, before: bool) {
        self.cleaner.found(key);
        let again = match self.is_ordered(key.volume) {
            true => true,
            false => self.cleaner.backlog.add(key, self.cleaner.ticks) && before,
        };
        if again {
            self.forget_cleaned(key);
        }
        if !before {
            self.count_version(key.volume);
        }
        self.drain_further(key.volume);
        self.cleaner.due |= self.above_rest(key.volume);
    }

    /// A dirty block is so no more.
    pub(crate) fn count_clean(&mut self, key: BlockKey) {
        self.cleaner.backlog.remove(key);
        self.leave_epoch(key);
        self.cleaner.found(key);
        self.discount_version(key.volume);
    }

    /// A slot has data that the backing does not have.
    pub(crate) fn count_version(&mut self, volume: VolumeId) {
        self.volume_mut(volume).dirty += 1;
        let tenant = self.tenant_of(volume);
        self.tenants[tenant].dirty += 1;
        self.dirty += 1;
    }

    /// It has it now, or something newer.
    pub(crate) fn discount_version(&mut self, volume: VolumeId) {
        self.volume_mut(volume).dirty -= 1;
        let tenant = self.tenant_of(volume);
        self.tenants[tenant].dirty -= 1;
        self.dirty -= 1;
        if self.dirty_of(volume) == 0 {
            self.cleaner.volumes[volume.0 as usize].failing_since = None;
            self.go_on_draining(volume);
        }
    }

    /// True if a dirty block cannot be read any more.
    pub(crate) fn is_lost(&self, key: BlockKey) -> bool {
        self.cleaner.lost.contains(&(key.volume, key.block))
    }

    /// A dirty block cannot be read: nobody else has it.
    pub(crate) fn note_lost(&mut self, key: BlockKey) {
        self.cleaner.backlog.remove(key);
        if self.cleaner.lost.insert((key.volume, key.block)) {
            self.stats_mut(key.volume).lost_blocks += 1;
        }
    }

    /// These stand in the way of others.
    pub(crate) fn clean_first(&mut self, keys: Vec<BlockKey>) {
        for key in keys {
            if self.cleaner.urgent.len() < URGENT_MAX && self.cleaner.backlog.contains(key) {
                self.cleaner.urgent.push_back(key);
                self.cleaner.due = true;
            }
            self.press_order(key.volume);
            self.cleaner.due |= self.is_ordered(key.volume);
            self.cleaner.pressed = true;
        }
    }

    /// No further block may become dirty.
    pub(crate) fn is_too_dirty(&self, volume: VolumeId) -> bool {
        self.is_too_dirty_with(volume, 0)
    }

    /// The same, with so many more.
    pub(crate) fn is_too_dirty_with(&self, volume: VolumeId, more: u32) -> bool {
        let Dirt { dirty, quota, limits } = self.dirt(volume);
        (dirty + u64::from(more)) * 100 >= quota * u64::from(limits.max)
    }

    fn above_rest(&self, volume: VolumeId) -> bool {
        let Dirt { dirty, quota, limits } = self.dirt(volume);
        dirty * 100 > quota * u64::from(limits.rest)
    }

    /// What a tenant's limits are held against. Tenants that share a partition fill it with dirty blocks together.
    fn dirt(&self, volume: VolumeId) -> Dirt {
        let id = self.volume(volume).tenant;
        let tenant = &self.tenants[id.0 as usize];
        let (dirty, quota) = match self.sharing {
            Sharing::Off => (tenant.dirty, self.quota(id).into()),
            Sharing::All { .. } | Sharing::Spill { .. } => (self.dirty, self.shared_quota),
        };
        Dirt { dirty: dirty.into(), quota, limits: tenant.dirty_limits }
    }

    /// Once a tick: what is dirty for too long, and all of it while nobody asks for anything.
    pub(crate) fn clean_now_and_then(&mut self) {
        self.cleaner.ticks += 1;
        self.cleaner.idle = !std::mem::replace(&mut self.cleaner.busy, false) && !self.has_guests();
        let now = self.cleaner.ticks;
        let age = |key: BlockKey| u64::from(self.tenants[self.tenant_of(key.volume)].dirty_limits.age);
        let pieces = self.cleaner.backlog.pieces();
        let aged = pieces.filter(|&(key, since)| since + age(key) <= now).map(|(key, _)| key).collect();
        self.cleaner.aged = aged;
        self.cleaner.due = true;
        self.go_on_in_order();
        self.run_granted();
        self.clean();
        self.go_on_with_drains();
    }

    /// What the journal maps is durable: it may be written back.
    pub(crate) fn note_round(&mut self) {
        self.cleaner.due |= self.volumes.iter().any(|volume| volume.dirty > 0);
        self.go_on_with_drains();
    }

    /// Start what is to be written back now.
    #[inline]
    pub(crate) fn clean(&mut self) {
        if self.cleaner.due && self.durable.is_some() {
            self.start_cleaning();
        }
    }

    fn start_cleaning(&mut self) {
        if self.cache_failed || self.may_not_clean() {
            return;
        }
        while let Some(key) = self.next_to_clean() {
            self.start_clean(key);
        }
        // The end of a run is another reason to look.
        self.cleaner.due = false;
    }

    /// Another run of this volume may be started. A backing that is slow keeps those of the others from nothing.
    fn may_run(&self, volume: VolumeId) -> bool {
        let runs = self.runs(volume) as usize;
        runs == 0 || (runs < RUNS_MAX && self.cleaner.runs.len() < RUNS_ALL)
    }

    fn may_not_clean(&self) -> bool {
        self.durable
            .as_ref()
            .is_none_or(|durable| durable.is_stopping() || durable.is_starting() || durable.is_latched())
    }

    fn next_to_clean(&mut self) -> Option<BlockKey> {
        while let Some(key) = self.next_urgent() {
            if self.is_cleanable(key) && !self.is_paused(key.volume) {
                return Some(key);
            }
        }
        if let Some(key) = self.next_aged() {
            return Some(key);
        }
        for _ in 0..self.volumes.len() {
            let volume = VolumeId((self.cleaner.next % self.volumes.len()) as u16);
            self.cleaner.next = (self.cleaner.next + 1) % self.volumes.len();
            if self.wants_cleaning(volume)
                && let Some(key) = self.next_of(volume)
            {
                return Some(key);
            }
        }
        None
    }

    /// The next block that stands in the way of others. Below half of the way to the limit there are clean ones to leave in its place, and it can wait for the guests.
    fn next_urgent(&mut self) -> Option<BlockKey> {
        let is_next = |key: &BlockKey| !self.yields(key.volume) && self.may_run(key.volume);
        let found = self.cleaner.urgent.iter().take(WAITING_LOOKS).position(is_next)?;
        self.cleaner.urgent.remove(found)
    }

    /// The next block that is dirty for too long. While guests wait for a backing it gets one run after the other.
    fn next_aged(&mut self) -> Option<BlockKey> {
        for _ in 0..LOOKS {
            let is_next = |key: &BlockKey| match self.yields(key.volume) {
                true => self.runs(key.volume) == 0,
                false => self.may_run(key.volume),
            };
            let at = self.cleaner.aged.iter().take(WAITING_LOOKS).position(is_next)?;
            let key = self.cleaner.aged[at];
            match self.cleaner.backlog.next_of_piece(key).filter(|_| !self.is_paused(key.volume)) {
                None => drop(self.cleaner.aged.remove(at)),
                Some(block) => {
                    self.cleaner.aged[at].block = block + 1;
                    let key = BlockKey { block, ..key };
                    if self.is_cleanable(key) {
                        return Some(key);
                    }
                }
            }
        }
        None
    }

    /// Runs of a volume that are under way.
    fn runs(&self, volume: VolumeId) -> u32 {
        self.cleaner.volumes[volume.0 as usize].runs
    }

    pub(crate) fn is_paused(&self, volume: VolumeId) -> bool {
        self.cleaner.volumes[volume.0 as usize].paused_until > self.cleaner.ticks
    }

    /// True if another run of this volume is to be started.
    fn wants_cleaning(&self, volume: VolumeId) -> bool {
        let state = self.volume(volume);
        if state.dirty == 0 || self.is_paused(volume) || !self.may_run(volume) {
            return false;
        }
        let cleaner = &self.cleaner.volumes[volume.0 as usize];
        if cleaner.draining.state != Drain::Off || self.write_policy(state.tenant) != WritePolicy::WriteBack {
            return cleaner.runs < 4;
        }
        if self.cleaner.idle || self.wants_order(volume) {
            // A guest that waits for this has nothing else to do.
            let is_waited_for = self.order(volume).is_some_and(|order| order.is_waited_for());
            return is_waited_for || cleaner.runs < 4;
        }
        self.above_rest(volume) && (cleaner.runs as usize) < self.runs_wanted(volume)
    }

    /// More runs the nearer the tenant is to its limit.
    fn runs_wanted(&self, volume: VolumeId) -> usize {
        let way = self.way_to_limit(volume);
        match way < RUNS_MAX / 2 {
            true if self.yields(volume) => 0,
            true if self.has_guests() => 1,
            _ => way.clamp(1, RUNS_MAX),
        }
    }

    /// Guests wait for the backing, and there is time to let them go first.
    fn yields(&self, volume: VolumeId) -> bool {
        let waiting = self.cleaner.volumes[volume.0 as usize].waiting > 0;
        waiting && self.way_to_limit(volume) < RUNS_MAX / 2
    }

    /// How far the tenant is from what may rest dirty to its limit: 0 to [`RUNS_MAX`], and more above the limit.
    fn way_to_limit(&self, volume: VolumeId) -> usize {
        let Dirt { dirty, quota, limits } = self.dirt(volume);
        let share = (dirty * 100 / quota.max(1)) as usize;
        let (rest, max) =
            (usize::from(limits.rest), usize::from(limits.max).max(usize::from(limits.rest) + 1));
        share.saturating_sub(rest) * RUNS_MAX / (max - rest)
    }

    /// The next block of a volume in the order of addresses, once around.
    fn next_of(&mut self, volume: VolumeId) -> Option<BlockKey> {
        if self.is_ordered(volume) {
            return self.next_in_order(volume);
        }
        let mut wrapped = false;
        for _ in 0..LOOKS {
            let block = self.cleaner.volumes[volume.0 as usize].cursor;
            let Some(block) = self.cleaner.backlog.next(BlockKey { volume, block }) else {
                if std::mem::replace(&mut wrapped, true) {
                    return None;
                }
                let state = &mut self.cleaner.volumes[volume.0 as usize];
                (state.cursor, state.expected) = (0, 0);
                continue;
            };
            let key = BlockKey { volume, block };
            self.cleaner.volumes[volume.0 as usize].cursor = block + 1;
            self.expect_from(key);
            if self.is_cleanable(key) {
                return Some(key);
            }
        }
        None
    }

    /// The cleaner has come to this block. Every so often it looks at the next ones at once, for whose entries it would wait one after the other.
    fn expect_from(&mut self, key: BlockKey) {
        let Cleaner { backlog, volumes, .. } = &mut self.cleaner;
        let state = &mut volumes[key.volume.0 as usize];
        if key.block < state.expected {
            return;
        }
        let next = |key: &BlockKey| {
            let block = backlog.next_of_piece(BlockKey { block: key.block + 1, ..*key })?;
            Some(BlockKey { block, ..*key })
        };
        let keys: Vec<BlockKey> = std::iter::successors(Some(key), next).take(AHEAD).collect();
        state.expected = keys.last().map_or(0, |key| key.block + 1);
        self.store.expect(&keys);
    }

    /// True if a block waits to be written back, and nothing is in the way. Where the journal does not durably map it, it is asked to.
    fn is_cleanable(&mut self, key: BlockKey) -> bool {
        if !self.cleaner.backlog.contains(key) {
            return false;
        }
        let hasty = self.is_planted(crate::Planted::CleanBeforeMap);
        let found = self.store.find(key).filter(|&entry| self.store.state(entry) == State::Dirty);
        let Some(entry) = found else { return false };
        let (slot, (start, end)) = (self.store.slot(entry), self.block_range(key.volume, key.block));
        let free = self.volume(key.volume).locks.shareable(start, end);
        let Some(durable) = &mut self.durable else { return false };
        let firm = durable.may_write_back(slot) || hasty;
        firm && free
    }
}

/// How dirty a tenant's partition is, or what it shares with others.
struct Dirt {
    dirty: u64,
    quota: u64,
    limits: DirtyLimits,
}
