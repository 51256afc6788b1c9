//! The partitions themselves: one of each tenant's own, and a common one that tenants may share (`sharing.rs`).

use crate::partition::EntryNodes;
use crate::store::Store;
use crate::{CachingSpec, TenantId};
use larder_policy::admission::{Admission, AnyAdmission};
use larder_policy::any::AnyReplacement;
use larder_policy::borrows::Borrows;
use larder_policy::residents::Residents;
use larder_policy::spec::{AdmissionSpec, PolicySpec};
use larder_policy::{List, Replacement};
use std::ops::{Index, IndexMut};

/// Ghosts dropped per block that enters: more than one can be due only after a resize, and then [`crate::Engine::trim`] goes on.
pub(crate) const FORGET: usize = 4;

/// A partition's number in its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartitionId(u32);

impl PartitionId {
    /// The one that tenants share.
    pub const COMMON: Self = Self(0);

    /// A tenant's own.
    #[inline]
    pub fn of(tenant: TenantId) -> Self {
        Self(u32::from(tenant.0) + 1)
    }

    /// For policies that draw lots: a tenant's number.
    pub fn seed(self) -> u64 {
        u64::from(self.0.wrapping_sub(1))
    }
}

/// A quota over entries, with what decides which of them enter and leave.
#[derive(Debug)]
pub(crate) struct Partition {
    pub quota: u32,
    /// It never holds more than this, or its quota, whatever others lend it.
    pub most: u32,
    /// It lends nothing of these, if it has them, however long they lie idle.
    pub least: u32,
    /// How long what it holds is idle.
    pub residents: Residents,
    /// Whom it borrows from.
    pub borrows: Borrows<PartitionId>,
    /// Until then it is asked for blocks after others: it had none to give.
    pub barred_ns: u64,
    /// What its policies know of its size: its quota, but where partitions lend.
    pub capacity: u32,
    pub caching: CachingSpec,
    /// Which block leaves: knows all entries with a slot but the dead ones, and the ghosts.
    pub replacement: AnyReplacement,
    /// Which absent block may enter.
    pub admission: AnyAdmission,
    /// The dead entries, the first to leave.
    pub dead: List,
}

impl Partition {
    fn new(quota: u32, now_ns: u64) -> Self {
        Self {
            quota,
            most: u32::MAX,
            least: 0,
            residents: Residents::new(now_ns),
            borrows: Borrows::default(),
            barred_ns: 0,
            capacity: quota,
            caching: CachingSpec::default(),
            replacement: AnyReplacement::new(&PolicySpec::Lru, quota, 0),
            admission: AnyAdmission::new(&AdmissionSpec::Always, quota, 0),
            dead: List::new(),
        }
    }

    /// Slots held, those of dead blocks among them.
    pub fn occupied(&self) -> u32 {
        self.replacement.resident() + self.dead.len()
    }

    /// It holds all that its quota lets it.
    pub fn is_full(&self) -> bool {
        self.occupied() >= self.quota
    }

    /// The most that it may hold where partitions lend.
    pub fn most(&self) -> u32 {
        self.most.max(self.quota)
    }

    /// Blocks that it lends, where they lie idle.
    pub fn lends_at_most(&self) -> u32 {
        self.occupied().saturating_sub(self.least.min(self.quota))
    }

    /// What policies know of its size is this many blocks. Admission heeds its quota as well: a partition that will grow would else let so little in that it stays small.
    pub fn set_capacity(&mut self, blocks: u32) {
        if self.capacity != blocks {
            self.capacity = blocks;
            self.replacement.resize(blocks);
        }
        self.admission.resize(self.reach());
    }

    /// What it may come to hold.
    pub fn reach(&self) -> u32 {
        self.capacity.max(self.quota)
    }

    /// Drop up to `budget` ghosts that the policy remembers no longer; returns how many.
    pub fn forget(&mut self, store: &mut Store, budget: usize) -> usize {
        for dropped in 0..budget {
            let Some(ghost) = self.replacement.forget(&mut EntryNodes::of(store)) else { return dropped };
            store.remove(ghost);
        }
        budget
    }
}

/// The partitions of an engine.
#[derive(Debug)]
pub(crate) struct Partitions(Vec<Partition>);

impl Default for Partitions {
    fn default() -> Self {
        Self(vec![Partition::new(0, 0)])
    }
}

impl Partitions {
    /// One of another tenant.
    pub fn add(&mut self, quota: u32, now_ns: u64) {
        self.0.push(Partition::new(quota, now_ns));
    }

    /// All of them, the common one first.
    pub fn ids(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.0.len() as u32).map(PartitionId)
    }

    /// Those of tenants.
    pub fn own_ids(&self) -> impl Iterator<Item = PartitionId> + use<> {
        self.ids().skip(1)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Partition> {
        self.0.iter()
    }

    /// The common one, and a tenant's own.
    ///
    /// # Panics
    /// If that is the common one as well.
    pub fn common_and(&mut self, own: PartitionId) -> (&mut Partition, &mut Partition) {
        let (common, owns) = self.0.split_at_mut(1);
        (&mut common[0], &mut owns[own.0 as usize - 1])
    }

    /// True if a replacement policy asks for tags.
    pub fn keep_tags(&self) -> bool {
        self.iter().any(|partition| partition.replacement.keeps_tags())
    }
}

impl Index<PartitionId> for Partitions {
    type Output = Partition;

    #[inline]
    fn index(&self, at: PartitionId) -> &Partition {
        &self.0[at.0 as usize]
    }
}

impl IndexMut<PartitionId> for Partitions {
    #[inline]
    fn index_mut(&mut self, at: PartitionId) -> &mut Partition {
        &mut self.0[at.0 as usize]
    }
}
