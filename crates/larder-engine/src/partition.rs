//! Partitions: which tenant holds how many blocks, who may enter, and who leaves.
//!
//! A partition is a quota over the entries that its replacement policy knows; its admission policy says which absent block may enter. Each tenant has one of its own, unless tenants
//! share (`sharing.rs`). Resizing moves no data: a partition above its quota loses the blocks that its policy gives up, a bounded number at a time ([`Engine::trim`]). A block on which anyone holds a range
//! lock is pinned: something on its slot may be in flight.

use crate::allowance::Allowance;
use crate::doors::Asked;
use crate::locks::Owner;
use crate::mover::Mover;
use crate::partitions::{FORGET, Partition, PartitionId};
use crate::store::{BlockKey, EntryId, State, Store};
use crate::usage::Hits;
use crate::{
    DirtyLimits, Engine, Sharing, Tenant, TenantId, TenantStats, Volume, VolumeId, WritePolicy, sharing,
};
use larder_policy::admission::Admission;
use larder_policy::index::hash;
use larder_policy::replacement::PIN_REACH;
use larder_policy::{Handle, Links, Nodes, Replacement};
use std::cell::RefCell;

/// Slots taken from the free pool at a time.
const TAKE: usize = 64;

/// Hits of which policies are told together. A hit links a block's neighbours in a list to each other, which lie anywhere in memory: one after the other these
/// accesses would take as long as all the rest of a hit; together they overlap.
const TOUCHED_MAX: usize = 16;

/// The nodes of the policies, with the keys of their entries.
pub(crate) struct EntryNodes<'e> {
    store: &'e mut Store,
}

impl<'e> EntryNodes<'e> {
    pub(crate) fn of(store: &'e mut Store) -> Self {
        Self { store }
    }
}

impl Nodes for EntryNodes<'_> {
    #[inline]
    fn links(&self, handle: Handle) -> &Links {
        self.store.links(handle)
    }

    #[inline]
    fn links_mut(&mut self, handle: Handle) -> &mut Links {
        self.store.links_mut(handle)
    }

    #[inline]
    fn tag(&self, handle: Handle) -> u32 {
        self.store.tag(handle)
    }

    #[inline]
    fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
        self.store.tag_mut(handle)
    }

    #[inline]
    fn key(&self, handle: Handle) -> u64 {
        self.store.secret_key_of(handle)
    }
}

impl Engine {
    /// Evict up to `budget` blocks of partitions above their quota, drop as many ghosts of each that its policy remembers no longer, drop blocks of volumes that are
    /// distrusted, and give surplus slots back to the pool. True if the budget ran out before the work: call again. Blocks in use stay for a later call.
    pub fn trim(&mut self, budget: usize) -> bool {
        if !self.trim_due {
            return false;
        }
        let mut left = budget;
        let (mut still_above, mut more_ghosts) = (false, false);
        for at in self.partitions.ids() {
            while left > 0 && self.above_limit(at) && self.shrink_by_one(at) {
                left -= 1;
            }
            still_above |= self.above_limit(at);
            more_ghosts |= self.forget(at, budget) == budget;
        }
        let more_to_sweep = self.sweep(budget);
        self.give_surplus();
        self.pump();
        self.trim_due = still_above || more_ghosts || !self.sweeps.is_empty();
        (still_above && left == 0) || more_ghosts || more_to_sweep
    }

    /// All tenants, in the order in which they were added.
    pub fn tenants(&self) -> impl Iterator<Item = TenantId> + use<> {
        (0..self.tenants.len()).map(|number| TenantId(number as u16))
    }

    /// A tenant's counters.
    pub fn stats(&self, tenant: TenantId) -> TenantStats {
        self.tenants[tenant.0 as usize].stats
    }

    /// Blocks that a tenant holds.
    pub fn occupied(&self, tenant: TenantId) -> u32 {
        self.tenants[tenant.0 as usize].held
    }

    /// A tenant's quota, in blocks. It means nothing where all tenants share one partition.
    pub fn quota(&self, tenant: TenantId) -> u32 {
        self.partitions[PartitionId::of(tenant)].quota
    }

    /// A tenant's write policy.
    pub fn write_policy(&self, tenant: TenantId) -> WritePolicy {
        self.tenants[tenant.0 as usize].policy
    }

    /// Blocks newer on the cache device than on the backing. Neither `wt` nor `ro` has a path that makes any: a write completes only when the backing has it.
    pub fn dirty(&self, tenant: TenantId) -> u32 {
        self.tenants[tenant.0 as usize].dirty
    }

    /// True once the cache device failed so often in a row that it is no longer used.
    pub fn cache_failed(&self) -> bool {
        self.cache_failed
    }

    /// Bytes of memory held for index, replacement, admission and slots.
    pub fn memory_bytes(&self) -> usize {
        let policies = |partition: &Partition| {
            let policies = partition.replacement.memory_bytes() + partition.admission.memory_bytes();
            policies + partition.residents.memory_bytes()
        };
        let policies: usize = self.partitions.iter().map(policies).sum();
        let slots = self.free_slots.capacity() * size_of::<u32>();
        let durable = self.durable.as_ref().map_or(0, |durable| durable.memory_bytes());
        let movers: usize = self.movers.values().map(Mover::memory_bytes).sum();
        let hits = self.hits.as_ref().map_or(0, Hits::memory_bytes);
        let doors = self.offered.as_ref().map_or(0, |offered| offered.memory_bytes());
        movers
            + doors
            + hits
            + self.cleaner.memory_bytes()
            + self.order_bytes()
            + self.store.memory_bytes()
            + slots
            + policies
            + durable
    }

    pub(crate) fn stats_mut(&mut self, volume: VolumeId) -> &mut TenantStats {
        let tenant = self.volume(volume).tenant;
        &mut self.tenants[tenant.0 as usize].stats
    }

    pub(crate) fn tenant_of(&self, volume: VolumeId) -> usize {
        self.volume(volume).tenant.0 as usize
    }

    /// The partition that an entry is in.
    pub(crate) fn partition_of(&self, entry: EntryId) -> PartitionId {
        match self.store.is_common(entry) {
            true => PartitionId::COMMON,
            false => PartitionId::of(self.volume(self.store.key(entry).volume).tenant),
        }
    }

    /// A partition, the nodes of its policy, and the volumes whose locks pin blocks. All hits until now are told before.
    fn parts_of(&mut self, at: PartitionId) -> (&mut Partition, EntryNodes<'_>, Pins<'_>) {
        self.tell_touched();
        let nodes = EntryNodes { store: &mut self.store };
        let pins = Pins { volumes: &self.volumes, block_bytes: u64::from(self.config.block_bytes) };
        (&mut self.partitions[at], nodes, pins)
    }

    /// The same of an entry's partition, where hits may have moved it.
    fn parts_with(&mut self, entry: EntryId) -> (&mut Partition, EntryNodes<'_>, Pins<'_>) {
        self.tell_touched();
        self.parts_of(self.partition_of(entry))
    }

    /// A cached block was used: a request `reads` it, or writes it.
    #[inline]
    pub(crate) fn touch(&mut self, volume: VolumeId, entry: EntryId, reads: bool) {
        let tenant = self.volume(volume).tenant;
        let home = self.home(tenant.0 as usize);
        self.partitions[home].admission.hit();
        if self.lending {
            let id = self.store.key(entry).pack();
            self.partitions[home].residents.hit(id, reads, self.clock_ns);
        }
        self.note_hit(tenant, entry);
        self.touched.push((PartitionId::of(tenant), entry));
        if self.touched.len() >= TOUCHED_MAX {
            self.tell_touched();
        }
    }

    /// Tell policies of the hits of which they do not know yet. No entry leaves before: its policy is asked first, and [`Engine::parts_of`] comes before that.
    #[inline]
    pub(crate) fn tell_touched(&mut self) {
        let spills = matches!(self.sharing, Sharing::Spill { .. });
        for (own, entry) in self.touched.drain(..) {
            let is_common = self.store.is_common(entry);
            if is_common && spills && self.partitions[own].quota > 0 {
                sharing::promote(&mut self.partitions, own, &mut self.store, entry);
                continue;
            }
            let at = if is_common { PartitionId::COMMON } else { own };
            let mut nodes = EntryNodes { store: &mut self.store };
            self.partitions[at].replacement.hit(&mut nodes, entry);
        }
    }

    /// Give an absent block an entry with a slot, if its partition's admission policy lets it in and there is room: a free slot below the quota, else the
    /// slot of the block that its replacement policy gives up; and if it may be written to the cache device at all (`allowance.rs`).
    pub(crate) fn admit(&mut self, key: BlockKey, state: State, asked: Asked) -> Option<EntryId> {
        let home = self.home(self.tenant_of(key.volume));
        if self.cache_failed || self.partitions[home].quota == 0 {
            return None;
        }
        let secret = self.store.secret_key(key);
        let hash = hash(secret);
        // In an ordered volume a write that passes by waits for all that is older.
        let asks = state != State::Writing || !self.is_ordered(key.volume) || !self.writes_back(key.volume);
        if asks && asked.kind.leaves_first() && !self.has_free_room(home) {
            self.turn_away(self.tenant_of(key.volume));
            return None;
        }
        if asks && (self.is_moved(key.volume) || !self.admits(home, secret, hash)) {
            return None;
        }
        self.let_in(key, state, asked)
    }

    /// Give an absent block that may enter an entry with a slot, if its partition has room and its tenant may still write to the cache device.
    pub(crate) fn let_in(&mut self, key: BlockKey, state: State, asked: Asked) -> Option<EntryId> {
        let tenant = self.tenant_of(key.volume);
        let home = self.home(tenant);
        if self.partitions[home].quota == 0 {
            return None;
        }
        if !self.charge_new(tenant) {
            self.admission_failed(home, key);
            return None;
        }
        self.tell_touched();
        let lent = self.is_lending() && self.borrow_room(home, asked.kind.leaves_first());
        let ghost = self.ghost_at(home, key);
        let (partition, mut nodes, _) = self.parts_of(home);
        partition.replacement.miss(&mut nodes, ghost);
        let slot = self.take_slot(home, lent);
        // What others lent, or left in a batch, is of use when the journal has said so: before the last slot at hand is gone.
        self.want_freed();
        match slot {
            Some(slot) => Some(self.enter(home, key, ghost, (slot, state), asked)),
            None => {
                // The policy has forgotten the ghost already.
                ghost.map(|ghost| self.store.remove(ghost));
                self.admission_failed(home, key);
                self.uncharge(tenant);
                None
            }
        }
    }

    /// What an admission policy let in has not come in.
    fn admission_failed(&mut self, home: PartitionId, key: BlockKey) {
        let secret = self.store.secret_key(key);
        self.partitions[home].admission.failed(secret, hash(secret));
    }

    /// What a partition remembers of a block. What another one does is of no use: it is forgotten.
    fn ghost_at(&mut self, home: PartitionId, key: BlockKey) -> Option<EntryId> {
        let ghost = self.store.find_ghost(key)?;
        if self.partition_of(ghost) == home {
            return Some(ghost);
        }
        self.remove_entry(ghost);
        None
    }

    fn admits(&mut self, home: PartitionId, key: u64, hash: u32) -> bool {
        let has_room = !self.is_full(home);
        let admission = &mut self.partitions[home].admission;
        (has_room && admission.admit_to_free_space(key, hash)) || admission.admit(key, hash)
    }

    /// A slot for another block of a partition; others may have `lent` it one.
    fn take_slot(&mut self, home: PartitionId, lent: bool) -> Option<u32> {
        if self.is_lending() {
            return self.take_lent_slot(home, lent);
        }
        if self.spills(home) && self.partitions[home].is_full() && !self.spill_one(home) {
            return None;
        }
        self.keep_some_free();
        if self.partitions[home].is_full() || !self.have_free_slot() {
            self.evict_for(home);
            self.free_ahead(home);
            // What the block had may not be free yet, and others be.
            self.have_free_slot();
        }
        if self.partitions[home].is_full() { None } else { self.free_slots.pop() }
    }

    fn enter(
        &mut self,
        home: PartitionId,
        key: BlockKey,
        ghost: Option<EntryId>,
        (slot, state): (u32, State),
        asked: Asked,
    ) -> EntryId {
        self.note_entered(slot);
        let entry = match ghost {
            Some(ghost) => self.store.revive(ghost, slot, state),
            None => self.add_entry(home, key, slot, state),
        };
        let tenant = self.tenant_of(key.volume);
        self.count_held(tenant);
        let (partition, mut nodes, _) = self.parts_of(home);
        match asked.kind.leaves_first() {
            true => partition.replacement.insert_to_leave_first(&mut nodes, entry, ghost.is_some()),
            false => partition.replacement.insert(&mut nodes, entry, ghost.is_some()),
        }
        self.forget(home, FORGET);
        self.note_resident(home, key, asked.kind.leaves_first());
        entry
    }

    /// A block that was cached before the start is cached again.
    pub(crate) fn restore_entry(&mut self, key: BlockKey, slot: u32, state: State) {
        let tenant = self.tenant_of(key.volume);
        let home = self.home(tenant);
        let spilled = self.spills(home) && self.partitions[home].is_full();
        let at = if spilled { PartitionId::COMMON } else { home };
        let entry = self.add_entry(at, key, slot, state);
        self.count_held(tenant);
        let (partition, mut nodes, _) = self.parts_of(at);
        partition.replacement.insert(&mut nodes, entry, false);
        self.tell_mover_kept(key);
    }

    /// True if the tenant of a volume may hold another block that has its slot already.
    pub(crate) fn has_room(&self, volume: VolumeId) -> bool {
        let home = self.home(self.tenant_of(volume));
        let spare = self.spills(home) && !self.partitions[PartitionId::COMMON].is_full();
        self.is_lending() || spare || !self.partitions[home].is_full()
    }

    /// A tenant holds a slot more.
    fn count_held(&mut self, tenant: usize) {
        self.tenants[tenant].held += 1;
        self.held_blocks += 1;
    }

    /// A tenant holds a slot less: that of this entry.
    fn count_left(&mut self, tenant: usize, entry: EntryId) {
        self.note_gone(tenant, entry);
        if self.lending {
            let id = self.store.key(entry).pack();
            self.partitions[PartitionId::of(TenantId(tenant as u16))].residents.left(id);
        }
        self.tenants[tenant].held -= 1;
        self.held_blocks -= 1;
    }

    fn add_entry(&mut self, at: PartitionId, key: BlockKey, slot: u32, state: State) -> EntryId {
        let entry = self.store.insert(key, slot, state);
        if at == PartitionId::COMMON {
            self.store.set_common(entry, true);
        }
        entry
    }

    /// Drop up to `budget` ghosts that a partition's policy remembers no longer; returns how many.
    fn forget(&mut self, at: PartitionId, budget: usize) -> usize {
        self.tell_touched();
        self.partitions[at].forget(&mut self.store, budget)
    }

    /// The block's data on the cache device is stale. `owner`'s own lock does not count as use.
    pub(crate) fn invalidate(&mut self, key: BlockKey, owner: Owner) {
        if let Some(entry) = self.store.find(key).filter(|&entry| !self.passes_fill(entry)) {
            if self.store.state(entry) != State::Dead {
                self.stats_mut(key.volume).invalidations += 1;
            }
            self.drop_entry(key, entry, owner);
        }
    }

    /// Take an entry away; while another owner may still use the slot, it stays as dead, first in line to leave.
    pub(crate) fn drop_entry(&mut self, key: BlockKey, entry: EntryId, owner: Owner) {
        let (start, end) = self.block_range(key.volume, key.block);
        if !self.volume(key.volume).locks.is_locked_by_other(start, end, owner) {
            return self.remove_entry(entry);
        }
        if self.store.state(entry) != State::Dead {
            self.store.set_state(entry, State::Dead);
            let (partition, mut nodes, _) = self.parts_with(entry);
            partition.replacement.remove(&mut nodes, entry, false);
            partition.dead.push_newest(&mut nodes, entry);
        }
    }

    /// The entry of a block, unless it is dead; a dead one that nobody but `owner` can be using is removed on the way.
    /// `Err` if it is dead and in use, so that the block cannot be cached now.
    pub(crate) fn find_live(&mut self, key: BlockKey, owner: Owner) -> Result<Option<EntryId>, InUse> {
        let Some(entry) = self.store.find(key) else { return Ok(None) };
        if self.store.state(entry) != State::Dead {
            return Ok(Some(entry));
        }
        let (start, end) = self.block_range(key.volume, key.block);
        if self.volume(key.volume).locks.is_locked_by_other(start, end, owner) {
            return Err(InUse);
        }
        self.remove_entry(entry);
        Ok(None)
    }

    /// Remove an entry on whose slot nothing is in flight; the slot is free.
    pub(crate) fn remove_entry(&mut self, entry: EntryId) {
        let state = self.store.state(entry);
        if state == State::Dirty {
            self.forget_cleaned(self.store.key(entry));
            self.count_clean(self.store.key(entry));
        }
        let (partition, mut nodes, _) = self.parts_with(entry);
        match state {
            State::Dead => partition.dead.remove(&mut nodes, entry),
            _ => partition.replacement.remove(&mut nodes, entry, state == State::Ghost),
        }
        let key = self.store.key(entry);
        if !self.movers.is_empty() {
            self.tell_mover_gone(key);
        }
        let tenant = self.tenant_of(key.volume);
        if state != State::Ghost {
            self.count_left(tenant, entry);
        }
        let slot = self.store.remove(entry);
        if state != State::Ghost && self.may_reuse(key, slot) {
            self.free_slot(slot);
        }
    }

    /// Blocks a partition may hold: nothing on a failed device; whatever it got where partitions lend, up to the most for it.
    fn limit(&self, at: PartitionId) -> u32 {
        let is_own = at != PartitionId::COMMON;
        match self.sharing {
            _ if self.cache_failed => 0,
            Sharing::Off if self.lending && is_own => self.partitions[at].most(),
            Sharing::All { .. } if is_own => 0,
            _ => self.partitions[at].quota,
        }
    }

    fn above_limit(&self, at: PartitionId) -> bool {
        self.partitions[at].occupied() > self.limit(at)
    }

    /// A block leaves a partition.
    fn shrink_by_one(&mut self, at: PartitionId) -> bool {
        if self.spills(at) { self.spill_one(at) } else { self.evict_one(at) }
    }

    /// Take a slot for a block of this partition: from it, or where its blocks spill from what others have spilled as well.
    pub(crate) fn evict_for(&mut self, home: PartitionId) -> bool {
        (self.spills(home) && self.evict_one(PartitionId::COMMON)) || self.evict_one(home)
    }

    /// Take the slot of a dead block of a partition, if nobody uses it any more.
    pub(crate) fn drop_dead(&mut self, at: PartitionId) -> bool {
        let (partition, nodes, pins) = self.parts_of(at);
        let pinned = |nodes: &EntryNodes<'_>, entry| pins.hold(nodes.store.key(entry));
        let dead = partition.dead.oldest_unpinned(&nodes, PIN_REACH, pinned);
        dead.map(|dead| self.remove_entry(dead)).is_some()
    }

    /// Take a slot from a partition: that of a dead block, else of the block that its policy gives up. False if none is within reach.
    pub(crate) fn evict_one(&mut self, at: PartitionId) -> bool {
        if self.drop_dead(at) {
            return true;
        }
        let evicts_dirty = self.is_planted(crate::Planted::DirtyEvicted);
        let blind = at == PartitionId::COMMON && self.is_planted(crate::Planted::OthersUnpinned);
        let (partition, mut nodes, pins) = self.parts_of(at);
        let dirty = RefCell::new(Vec::new());
        let stays = |nodes: &EntryNodes<'_>, entry| {
            let is_dirty = nodes.store.state(entry) == State::Dirty && !evicts_dirty;
            if is_dirty {
                dirty.borrow_mut().push(nodes.store.key(entry));
            }
            let key = nodes.store.key(entry);
            is_dirty || (pins.hold(key) && !(blind && pins.volumes[key.volume.0 as usize].tenant.0 > 0))
        };
        let out = partition.replacement.evict(&mut nodes, stays);
        self.clean_first(dirty.into_inner());
        let Some(out) = out else { return false };
        if self.store.state(out.handle) == State::Dirty {
            self.count_clean(self.store.key(out.handle));
        }
        if self.store.state(out.handle) == State::Valid && !self.cache_failed {
            self.stats_mut(self.store.key(out.handle).volume).evictions += 1;
        }
        let key = self.store.key(out.handle);
        if !self.movers.is_empty() {
            self.tell_mover_gone(key);
        }
        let tenant = self.tenant_of(key.volume);
        self.count_left(tenant, out.handle);
        let slot = match out.ghost {
            true => self.make_ghost(at, out.handle),
            false => self.store.remove(out.handle),
        };
        if self.may_reuse(key, slot) {
            self.free_slot(slot);
        }
        true
    }

    /// An entry stays without its slot, which is returned.
    fn make_ghost(&mut self, at: PartitionId, entry: EntryId) -> u32 {
        let (ghost, slot) = self.store.make_ghost(entry);
        if ghost != entry {
            let mut nodes = EntryNodes { store: &mut self.store };
            self.partitions[at].replacement.rename(&mut nodes, entry, ghost);
        }
        slot
    }

    /// A block that is not dead goes to another slot, in a cache that is kept: there its entry's number is its slot's. Whoever has noted the number notes the other one.
    pub(crate) fn move_entry(&mut self, entry: EntryId, slot: u32) {
        self.store.move_to(entry, slot);
        let at = self.partition_of(slot);
        let mut nodes = EntryNodes { store: &mut self.store };
        self.partitions[at].replacement.rename(&mut nodes, entry, slot);
        for (_, touched) in &mut self.touched {
            if *touched == entry {
                *touched = slot;
            }
        }
        self.note_moved(entry, slot);
        self.sweep_again_from(slot);
    }

    pub(crate) fn is_in_use(&self, entry: EntryId) -> bool {
        let pins = Pins { volumes: &self.volumes, block_bytes: u64::from(self.config.block_bytes) };
        pins.hold(self.store.key(entry))
    }

    /// True if a slot is at hand, after asking the pool for some. No more is taken than the partitions here have room for: slots held back
    /// from another reactor's tenants would keep those below their quota.
    pub(crate) fn have_free_slot(&mut self) -> bool {
        if self.free_slots.is_empty() {
            let room = self.room().min(TAKE);
            self.pool_is_dry = !self.pool.take(room, &mut self.free_slots);
            // The pool hands out ascending runs, and slots are used from the back: neighbours on the volume become neighbours on the device.
            self.free_slots.reverse();
        }
        !self.free_slots.is_empty()
    }

    /// A slot for newer data of a block that a tenant holds: the partition does not grow, the slot of the older data will be free.
    pub(crate) fn spare_slot(&mut self, tenant: usize) -> Option<u32> {
        let home = self.home(tenant);
        if self.free_slots.len() < TAKE / 2 {
            self.take_from_pool(TAKE);
        }
        if self.free_slots.len() < TAKE / 2 {
            if self.free_slots.is_empty() {
                self.give_one(home);
            }
            self.free_ahead(home);
        }
        if self.free_slots.is_empty() {
            // What left may be free already.
            self.take_from_pool(TAKE);
        }
        let slot = self.free_slots.pop()?;
        self.note_entered(slot);
        Some(slot)
    }

    /// Further free slots, to be used after those at hand.
    pub(crate) fn take_from_pool(&mut self, count: usize) {
        let mut more = Vec::new();
        self.pool_is_dry = !self.pool.take(count, &mut more);
        if more.is_empty() {
            return;
        }
        more.reverse();
        more.append(&mut self.free_slots);
        self.free_slots = more;
    }

    /// Blocks that the tenants here may still add.
    fn room(&self) -> usize {
        self.partitions
            .ids()
            .map(|at| self.limit(at).saturating_sub(self.partitions[at].occupied()) as usize)
            .sum()
    }

    /// Slots for which there is no room here are for others. (A cache that is kept has no others.)
    fn give_surplus(&mut self) {
        let keep = self.room();
        if self.durable.is_none() && self.free_slots.len() > keep {
            let surplus = self.free_slots.split_off(keep);
            self.give_to_pool(surplus);
        }
    }

    /// A slot is free again. Of a cache that is kept it goes to the pool, as those do that a round of the journal frees.
    pub(crate) fn free_slot(&mut self, slot: u32) {
        match self.durable {
            Some(_) => self.give_to_pool(vec![slot]),
            None => self.free_slots.push(slot),
        }
    }

    /// These slots are free: they are handed out again when it is their turn, which makes runs ([`crate::FreeSlots`]).
    pub(crate) fn give_to_pool(&mut self, mut slots: Vec<u32>) {
        self.pool_is_dry &= slots.is_empty();
        self.pool.give(&mut slots);
    }
}

impl Tenant {
    pub(crate) fn new(policy: WritePolicy) -> Self {
        Self {
            policy,
            stats: TenantStats::default(),
            held: 0,
            allowance: Allowance::default(),
            dirty_limits: DirtyLimits::default(),
            dirty: 0,
        }
    }
}

/// What keeps blocks where they are: range locks.
struct Pins<'e> {
    volumes: &'e [Volume],
    block_bytes: u64,
}

impl Pins<'_> {
    fn hold(&self, key: BlockKey) -> bool {
        let volume = &self.volumes[key.volume.0 as usize];
        let (start, end) = volume.block_range(key.block, self.block_bytes);
        volume.locks.is_locked(start, end)
    }
}

/// A dead entry whose slot someone may still be reading.
pub(crate) struct InUse;
