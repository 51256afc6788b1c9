//! Tenants that share a partition.
//!
//! Beside the tenants' own partitions there is a common one. Either it is the only one, and whoever asks for more takes it from the others ([`Sharing::All`]). Or it takes
//! what leaves the tenants' own ([`Sharing::Spill`]): a block that is used there moves back into its tenant's, and what leaves that one for it moves the
//! other way. Which of the two an entry is in, a bit of it tells. To move it takes no I/O: it keeps its slot, in whatever state it is, and whoever uses it.
//!
//! An engine shares what it has: where a host has several, tenants of one do not compete with those of another.

use crate::partition::EntryNodes;
use crate::partitions::{FORGET, Partition, PartitionId, Partitions};
use crate::store::{EntryId, State, Store};
use crate::{CachingSpec, Engine, TenantId};
use larder_policy::Replacement;

/// Steps in which all partitions become one: in each step every one gives up the same share of its blocks, so that none's are the oldest for its number.
const STEPS: u32 = 1024;

/// Whether tenants share a partition, and how it is run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Sharing {
    /// Each tenant has its own.
    #[default]
    Off,
    /// All tenants have one: their quotas, replacement and admission mean nothing.
    All {
        /// Blocks that it may hold.
        blocks: u32,
        /// Its replacement and admission.
        caching: CachingSpec,
    },
    /// Each tenant has its own, and what leaves that enters one for all. A tenant whose quota is 0 has that one alone.
    Spill {
        /// Blocks that the one for all may hold.
        blocks: u32,
        /// Its replacement, and its admission where it is a tenant's only one.
        caching: CachingSpec,
    },
}

impl Sharing {
    /// Blocks and caching of the common partition.
    fn common(self) -> (u32, CachingSpec) {
        match self {
            Self::Off => (0, CachingSpec::default()),
            Self::All { blocks, caching } | Self::Spill { blocks, caching } => (blocks, caching),
        }
    }
}

impl Engine {
    /// Whether tenants share a partition. What is cached stays where it is on the device: another kind of sharing has every entry change its partition, all at once, which takes some
    /// 0.1 µs for a block. What is above a quota then leaves in [`Engine::trim`]. Where tenants share, partitions do not lend ([`Engine::set_lending`]).
    ///
    /// # Panics
    /// For Belady's policy, which is for simulations only.
    pub fn set_sharing(&mut self, sharing: Sharing) {
        self.tell_touched();
        let before = std::mem::replace(&mut self.sharing, sharing);
        if before == sharing {
            return;
        }
        self.forget_idle();
        let (blocks, caching) = sharing.common();
        let is_other = std::mem::discriminant(&before) != std::mem::discriminant(&sharing);
        if is_other && before != Sharing::Off {
            self.divide();
        }
        self.partitions[PartitionId::COMMON].quota = blocks;
        self.run_by(PartitionId::COMMON, caching);
        if is_other && matches!(sharing, Sharing::All { .. }) {
            self.unite();
        }
        self.partitions.ids().for_each(|at| self.fit_capacity(at));
        self.sum_quotas();
        self.trim_due = true;
        self.cleaner.look();
    }

    /// Whether tenants share a partition.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// The partition that a tenant's blocks enter.
    #[inline]
    pub(crate) fn home(&self, tenant: usize) -> PartitionId {
        let own = PartitionId::of(TenantId(tenant as u16));
        match self.sharing {
            Sharing::Off => own,
            Sharing::All { .. } => PartitionId::COMMON,
            Sharing::Spill { .. } if self.partitions[own].quota == 0 => PartitionId::COMMON,
            Sharing::Spill { .. } => own,
        }
    }

    /// True if what leaves this partition enters the common one.
    pub(crate) fn spills(&self, at: PartitionId) -> bool {
        matches!(self.sharing, Sharing::Spill { .. })
            && at != PartitionId::COMMON
            && self.partitions[PartitionId::COMMON].quota > 0
            && !self.cache_failed
    }

    /// Make room in a partition: a dead block leaves, or the one that its policy gives up moves to the common partition, where another one leaves if that is full.
    pub(crate) fn spill_one(&mut self, own: PartitionId) -> bool {
        if self.drop_dead(own) {
            return true;
        }
        let full = self.partitions[PartitionId::COMMON].is_full();
        if full && !self.evict_one(PartitionId::COMMON) {
            return false;
        }
        self.tell_touched();
        spill(&mut self.partitions, own, &mut self.store)
    }

    /// Blocks that all tenants may hold together.
    pub(crate) fn sum_quotas(&mut self) {
        let own: u64 = self.partitions.own_ids().map(|at| u64::from(self.partitions[at].quota)).sum();
        let (common, _) = self.sharing.common();
        self.shared_quota = match self.sharing {
            Sharing::Off | Sharing::Spill { .. } => own + u64::from(common),
            Sharing::All { .. } => common.into(),
        };
    }

    /// Every entry goes into its tenant's own partition, the one that would have left first as the oldest.
    fn divide(&mut self) {
        for (tenant, own) in self.partitions.own_ids().enumerate() {
            let blocks = self.tenants[tenant].held.max(self.partitions[own].quota);
            self.partitions[own].set_capacity(blocks);
        }
        while let Some(entry) = give_up(&mut self.partitions[PartitionId::COMMON], &mut self.store) {
            let own = PartitionId::of(self.volume(self.store.key(entry).volume).tenant);
            let mut nodes = EntryNodes::of(&mut self.store);
            self.partitions[own].replacement.insert(&mut nodes, entry, false);
            self.store.set_common(entry, false);
        }
        self.move_rest(false);
    }

    /// Every entry goes into the common partition.
    fn unite(&mut self) {
        let owns: Vec<(PartitionId, u64)> = self
            .partitions
            .own_ids()
            .map(|own| (own, u64::from(self.partitions[own].replacement.resident())))
            .collect();
        let all: u32 = self.tenants.iter().map(|tenant| tenant.held).sum();
        let common = &mut self.partitions[PartitionId::COMMON];
        common.set_capacity(common.quota.max(all));
        for step in 1..=STEPS {
            for &(own, before) in &owns {
                let left = before * u64::from(STEPS - step) / u64::from(STEPS);
                while u64::from(self.partitions[own].replacement.resident()) > left {
                    let Some(entry) = give_up(&mut self.partitions[own], &mut self.store) else { break };
                    let common = &mut self.partitions[PartitionId::COMMON];
                    common.replacement.insert(&mut EntryNodes::of(&mut self.store), entry, false);
                    self.store.set_common(entry, true);
                }
            }
        }
        self.move_rest(true);
    }

    /// Dead entries go where the others went, ghosts are dropped, and the policies that were left begin anew.
    fn move_rest(&mut self, common: bool) {
        for entry in 0..self.store.numbers() {
            let Some(key) = self.store.key_of_number(entry) else { continue };
            if self.store.is_common(entry) == common {
                continue;
            }
            match self.store.state(entry) {
                State::Ghost => drop(self.store.remove(entry)),
                State::Dead => {
                    let own = PartitionId::of(self.volume(key.volume).tenant);
                    let (shared, own) = self.partitions.common_and(own);
                    let (from, to) = if common { (own, shared) } else { (shared, own) };
                    let mut nodes = EntryNodes::of(&mut self.store);
                    from.dead.remove(&mut nodes, entry);
                    to.dead.push_newest(&mut nodes, entry);
                    self.store.set_common(entry, common);
                }
                state => debug_assert!(false, "an entry that is {state:?} was left behind"),
            }
        }
        match common {
            true => self.partitions.own_ids().for_each(|own| self.begin_anew(own)),
            false => self.begin_anew(PartitionId::COMMON),
        }
    }
}

/// The entry that leaves a partition next, whoever uses it.
fn give_up(from: &mut Partition, store: &mut Store) -> Option<EntryId> {
    let mut nodes = EntryNodes::of(store);
    let out = from.replacement.evict(&mut nodes, |_, _| false)?;
    if out.ghost {
        from.replacement.remove(&mut nodes, out.handle, true);
    }
    Some(out.handle)
}

/// The block that a partition gives up moves to the common one, which has room. False if there is none.
fn spill(partitions: &mut Partitions, own: PartitionId, store: &mut Store) -> bool {
    let (common, own) = partitions.common_and(own);
    let Some(entry) = give_up(own, store) else { return false };
    let mut nodes = EntryNodes::of(store);
    common.replacement.miss(&mut nodes, None);
    common.replacement.insert(&mut nodes, entry, false);
    store.set_common(entry, true);
    common.forget(store, FORGET);
    true
}

/// A block in the common partition is used: it moves to its tenant's own, and what leaves that for it to the common one.
pub(crate) fn promote(partitions: &mut Partitions, own: PartitionId, store: &mut Store, entry: EntryId) {
    let (common, mine) = partitions.common_and(own);
    let mut nodes = EntryNodes::of(store);
    if mine.is_full() && mine.replacement.resident() == 0 {
        // All of it is dead, and in use.
        return common.replacement.hit(&mut nodes, entry);
    }
    common.replacement.remove(&mut nodes, entry, false);
    mine.replacement.miss(&mut nodes, None);
    if mine.is_full() {
        spill(partitions, own, store);
    }
    let mine = &mut partitions[own];
    mine.replacement.insert(&mut EntryNodes::of(store), entry, false);
    store.set_common(entry, false);
    mine.forget(store, FORGET);
}
