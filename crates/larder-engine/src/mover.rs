//! Population in batches: Centaur's mover (sections IV and VII-C).
//!
//! What a tenant with a mover misses is not cached at once. A shadow cache without data decides at every access what ought to be cached; when the mover comes
//! ([`Engine::move_in`]) it begins to fill what the shadow holds and the cache does not, a few runs of neighbouring blocks at a time. Room for it is made by
//! blocks that the shadow no longer holds: they leave only when their place is wanted. A write goes to the cache where its block is cached, else past it.
//! A block under way elsewhere, or in doubt, is left for the next time.

use crate::doors::Asked;
use crate::locks::Owner;
use crate::partitions::{Partition, PartitionId};
use crate::store::{BlockKey, EntryId, State};
use crate::{Engine, Request, RequestKind, STAGE_BYTES_BEHIND, Sharing, TenantId, VolumeId};
use larder_policy::Cache;
use larder_policy::admission::{Admission, AnyAdmission};
use larder_policy::any::AnyReplacement;
use larder_policy::cache::Found;
use larder_policy::index::hash;
use std::ops::Range;

/// Fills under way for a tenant.
const MOVES: u32 = 8;

/// Blocks whose places are taken back together: what leaves a cache that is kept is free only when the journal says so.
const AHEAD: u32 = 256;

/// Bytes of a fill at most.
const RUN_BYTES: u64 = 256 << 10;

/// A tenant's mover. Its keys are those of [`crate::store::Store::secret_key`].
#[derive(Debug)]
pub(crate) struct Mover {
    shadow: Cache<AnyReplacement>,
    admission: AnyAdmission,
    /// Blocks that came into the shadow since the mover came last, or left the cache; some more than once, and some that have left the shadow since.
    came: Vec<u64>,
    /// Blocks that left it, whose place is wanted first; some may be back.
    left: Vec<u64>,
    /// What is to be filled, the first last.
    moves: Vec<u64>,
    under_way: u32,
    /// There was no room: it waits until there may be.
    stalled: bool,
}

/// Blocks of a volume that follow one another.
struct Run {
    volume: VolumeId,
    blocks: Range<u64>,
}

impl Mover {
    fn new(partition: &Partition, seed: u64) -> Self {
        let (capacity, caching) = (partition.reach(), partition.caching);
        Self {
            shadow: Cache::new(capacity, AnyReplacement::new(&caching.policy(), capacity, seed)),
            admission: AnyAdmission::new(&caching.admission(), capacity, seed),
            came: Vec::new(),
            left: Vec::new(),
            moves: Vec::new(),
            under_way: 0,
            stalled: false,
        }
    }

    /// The partition has this size now.
    fn fit(&mut self, blocks: u32) {
        if self.shadow.capacity() != blocks {
            self.shadow.resize(blocks, |key, _| self.left.push(key));
            self.admission.resize(blocks);
        }
    }

    /// A block is read or written.
    fn access(&mut self, key: u64) {
        let hash = hash(key);
        match self.shadow.find(key, hash) {
            Found::Resident(handle) => {
                self.admission.hit();
                self.shadow.hit(handle);
            }
            found => {
                let free = self.shadow.len() < self.shadow.capacity();
                if free && self.admission.admit_to_free_space(key, hash) || self.admission.admit(key, hash) {
                    self.shadow.enter(key, hash, found, 0, |key, _| self.left.push(key));
                    self.came.push(key);
                }
            }
        }
    }

    fn wants(&self, key: u64) -> bool {
        matches!(self.shadow.find(key, hash(key)), Found::Resident(_))
    }

    /// What was noted is bounded: what came is no more than the shadow has at once, what left no more than what may be cached.
    fn is_crowded(&self) -> bool {
        self.came.len().max(self.left.len()) > 2 * self.shadow.capacity() as usize + 1024
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let lists = self.came.capacity() + self.left.capacity() + self.moves.capacity();
        self.shadow.memory_bytes() + self.admission.memory_bytes() + lists * size_of::<u64>()
    }
}

impl Engine {
    /// Fill a tenant's partition by a mover from now on, or at each miss. A mover begins with what is cached.
    pub fn set_mover(&mut self, tenant: TenantId, moves: bool) {
        match moves {
            false => drop(self.movers.remove(&tenant.0)),
            true if self.movers.contains_key(&tenant.0) => {}
            true => self.renew_mover(tenant.0),
        }
    }

    /// True if a mover fills a tenant's partition.
    pub fn has_mover(&self, tenant: TenantId) -> bool {
        self.movers.contains_key(&tenant.0)
    }

    /// The movers come: what their tenants' caches are to hold is filled from now on.
    pub fn move_in(&mut self) {
        let tenants: Vec<u16> = self.movers.keys().copied().collect();
        for tenant in tenants {
            self.tidy(tenant);
            if let Some(mover) = self.movers.get_mut(&tenant) {
                mover.stalled = false;
                let mut moves = std::mem::take(&mut mover.moves);
                moves.append(&mut mover.came);
                moves.retain(|&key| mover.wants(key));
                mover.moves = moves;
                // By address, the first last, so that neighbours are read together.
                let seed = self.store.seed();
                mover.moves.sort_unstable_by_key(|key| std::cmp::Reverse(key ^ seed));
                mover.moves.dedup();
            }
            self.go_on_moving(tenant);
        }
        self.pump();
    }

    /// A mover for a tenant whose policies are others than before, or that had none.
    pub(crate) fn renew_mover(&mut self, tenant: u16) {
        let mut mover = Mover::new(&self.partitions[PartitionId::of(TenantId(tenant))], u64::from(tenant));
        for entry in 0..self.store.numbers() {
            let of = self.store.key_of_number(entry).map(|key| self.volume(key.volume).tenant.0);
            if of == Some(tenant) && matches!(self.store.state(entry), State::Valid | State::Dirty) {
                mover.access(self.store.secret_key_of(entry));
            }
        }
        mover.came.clear();
        self.movers.insert(tenant, mover);
    }

    /// True if what a volume misses waits for a mover. Where tenants share a partition it does not.
    pub(crate) fn is_moved(&self, volume: VolumeId) -> bool {
        self.sharing == Sharing::Off && self.has_mover(self.volume(volume).tenant)
    }

    /// A guest asks.
    pub(crate) fn tell_mover(&mut self, request: &Request) {
        let tenant = self.volume(request.volume).tenant.0;
        let Some(mover) = self.movers.get_mut(&tenant) else { return };
        mover.fit(self.partitions[PartitionId::of(TenantId(tenant))].reach());
        let blocks = {
            let shift = self.config.block_bytes.trailing_zeros();
            let end = request.offset + request.len + u64::from(self.config.block_bytes) - 1;
            request.offset >> shift..end >> shift
        };
        let store = &self.store;
        let key = |block| store.secret_key(BlockKey { volume: request.volume, block });
        match request.kind {
            RequestKind::Read | RequestKind::Write => blocks.for_each(|block| mover.access(key(block))),
            RequestKind::Discard | RequestKind::WriteZeroes { .. } => {
                let many = blocks.end - blocks.start > mover.shadow.len().into();
                let keys: Vec<u64> = match many {
                    // More than it can hold: look at what it holds instead.
                    true => mover.shadow.resident().collect(),
                    false => blocks.clone().map(key).collect(),
                };
                let within = |key: &u64| {
                    let BlockKey { volume, block } = store.key_of_secret(*key);
                    volume == request.volume && blocks.contains(&block)
                };
                for key in keys.into_iter().filter(within) {
                    mover.shadow.invalidate(key, hash(key));
                }
            }
            RequestKind::Flush => {}
        }
        if mover.is_crowded() {
            self.tidy(tenant);
        }
    }

    /// A block was cached before the start.
    pub(crate) fn tell_mover_kept(&mut self, key: BlockKey) {
        let tenant = self.volume(key.volume).tenant.0;
        if let Some(mover) = self.movers.get_mut(&tenant) {
            mover.access(self.store.secret_key(key));
        }
    }

    /// A block has left the cache: it comes again if it is still wanted.
    pub(crate) fn tell_mover_gone(&mut self, key: BlockKey) {
        let tenant = self.volume(key.volume).tenant.0;
        if let Some(mover) = self.movers.get_mut(&tenant) {
            mover.came.push(self.store.secret_key(key));
        }
    }

    /// Forget what is not true any more.
    fn tidy(&mut self, tenant: u16) {
        let Some(mut mover) = self.movers.remove(&tenant) else { return };
        mover.fit(self.partitions[PartitionId::of(TenantId(tenant))].reach());
        for list in [&mut mover.came, &mut mover.left] {
            list.sort_unstable();
            list.dedup();
        }
        let mut came = std::mem::take(&mut mover.came);
        came.retain(|&key| mover.wants(key));
        let mut left = std::mem::take(&mut mover.left);
        left.retain(|&key| !mover.wants(key) && self.store.find(self.store.key_of_secret(key)).is_some());
        (mover.came, mover.left) = (came, left);
        self.movers.insert(tenant, mover);
    }

    /// A fill of a mover has ended.
    pub(crate) fn end_move(&mut self, volume: VolumeId) {
        let tenant = self.volume(volume).tenant.0;
        if let Some(mover) = self.movers.get_mut(&tenant) {
            // One that came after the fill was begun knows nothing of it.
            mover.under_way = mover.under_way.saturating_sub(1);
        }
    }

    /// The movers end: nothing more is filled but at a miss.
    pub fn dismiss_movers(&mut self) {
        self.movers.clear();
    }

    /// Slots may be free again, or more may be written: movers that had no room look again.
    pub(crate) fn wake_movers(&mut self) {
        self.movers.values_mut().for_each(|mover| mover.stalled = false);
        self.go_on_moving_all();
    }

    /// Something has ended: movers may go on.
    pub(crate) fn go_on_moving_all(&mut self) {
        if self.movers.is_empty() {
            return;
        }
        let tenants: Vec<u16> = self.movers.keys().copied().collect();
        tenants.into_iter().for_each(|tenant| self.go_on_moving(tenant));
    }

    /// Fills for a tenant's mover, as many as may be under way.
    fn go_on_moving(&mut self, tenant: u16) {
        while let Some(mover) = self.movers.get(&tenant) {
            let idle = mover.moves.is_empty() || mover.under_way >= MOVES || mover.stalled;
            if idle || !self.may_move() {
                return;
            }
            let moved = self.start_move(tenant);
            if let Some(mover) = self.movers.get_mut(&tenant) {
                mover.stalled = !moved;
            }
        }
    }

    /// Guests come first: nothing is moved while the cache device is behind with what they missed, nor once the end has begun.
    fn may_move(&self) -> bool {
        let over = self.sharing != Sharing::Off || self.held || self.cache_failed || self.is_starting();
        let stopping = self.durable.as_ref().is_some_and(|durable| durable.is_stopping());
        !over && !stopping && self.stage_bytes <= STAGE_BYTES_BEHIND
    }

    /// Take the next run of blocks up, and fill those of it that can be. False if there is no room now.
    fn start_move(&mut self, tenant: u16) -> bool {
        let Some(run) = self.next_run(tenant) else { return true };
        let (from, to) = (self.block_range(run.volume, run.blocks.start).0, run.blocks.end - 1);
        let fill = self.new_fill(run.volume, run.blocks.start);
        // From now on, so that no block of the run leaves for another.
        let end = self.block_range(run.volume, to).1;
        self.volume_mut(run.volume).locks.share(from, end, Owner::Fill(fill));
        let mut entries = Vec::with_capacity((run.blocks.end - run.blocks.start) as usize);
        for block in run.blocks.clone() {
            match self.let_in_moved(tenant, BlockKey { volume: run.volume, block }) {
                Some(entry) => entries.push(entry),
                None => break,
            }
        }
        let rest = run.blocks.start + entries.len() as u64..run.blocks.end;
        let (store, volume) = (&self.store, run.volume);
        if let Some(mover) = self.movers.get_mut(&tenant) {
            mover.moves.extend(rest.rev().map(|block| store.secret_key(BlockKey { volume, block })));
            mover.under_way += u32::from(!entries.is_empty());
        }
        let moves = !entries.is_empty();
        match moves {
            true => self.read_moved(fill, entries),
            false => self.drop_fill(fill),
        }
        moves
    }

    /// The next blocks that follow one another and can be filled; `None` where none is left.
    fn next_run(&mut self, tenant: u16) -> Option<Run> {
        let most = (RUN_BYTES / self.block_bytes()).max(1);
        let mut run: Option<Run> = None;
        while let Some(&secret) = self.movers.get(&tenant).and_then(|mover| mover.moves.last()) {
            let BlockKey { volume, block } = self.store.key_of_secret(secret);
            let can = self.may_be_moved(tenant, secret, BlockKey { volume, block });
            match &mut run {
                Some(run) if run.volume != volume || run.blocks.end != block || !can => break,
                Some(run) if run.blocks.end - run.blocks.start == most => break,
                Some(run) => run.blocks.end += 1,
                None if can => run = Some(Run { volume, blocks: block..block + 1 }),
                None => {}
            }
            let absent = self.store.find(BlockKey { volume, block }).is_none();
            if let Some(mover) = self.movers.get_mut(&tenant) {
                mover.moves.pop();
                if !can && absent {
                    mover.came.push(secret);
                }
            }
        }
        run
    }

    fn may_be_moved(&self, tenant: u16, secret: u64, key: BlockKey) -> bool {
        let volume = self.volume(key.volume);
        let served = !volume.gone && !volume.failed && !self.goes_past_cache(key.volume);
        let wanted = self.movers.get(&tenant).is_some_and(|mover| mover.wants(secret));
        if !served || !wanted || self.store.find(key).is_some() {
            return false;
        }
        let (start, end) = self.block_range(key.volume, key.block);
        volume.locks.shareable(start, end)
    }

    /// A slot for a block that is wanted: free, or that of one that is not.
    fn let_in_moved(&mut self, tenant: u16, key: BlockKey) -> Option<EntryId> {
        let own = PartitionId::of(TenantId(tenant));
        if self.is_full(own) {
            let mut due = AHEAD.min(self.partitions[own].quota / 4).max(1);
            while due > 0
                && let Some(gone) = self.movers.get_mut(&tenant).and_then(|mover| mover.left.pop())
            {
                due -= u32::from(self.drop_unwanted(tenant, gone));
            }
        }
        if !self.is_full(own) && !self.have_free_slot() && !self.is_lending() {
            // What left is free soon: nothing else need leave.
            if let Some(durable) = &mut self.durable {
                durable.want_soon();
            }
            return None;
        }
        self.let_in(key, State::Filling, Asked::default())
    }

    /// A block that the shadow no longer holds leaves, if it can. What is dirty stays until the tenant's own policy gives it up.
    fn drop_unwanted(&mut self, tenant: u16, secret: u64) -> bool {
        let wanted = self.movers.get(&tenant).is_some_and(|mover| mover.wants(secret));
        let Some(entry) = self.store.find(self.store.key_of_secret(secret)).filter(|_| !wanted) else {
            return false;
        };
        if self.store.state(entry) != State::Valid || self.is_in_use(entry) {
            return false;
        }
        self.remove_entry(entry);
        self.tenants[usize::from(tenant)].stats.evictions += 1;
        true
    }
}
