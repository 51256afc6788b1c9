//! Another replacement or admission for a tenant, also while it holds blocks.
//!
//! The blocks go over in the order in which the old policy gives them up: what would have left first is the oldest in the new one. Ghosts are dropped. This takes time
//! in proportion to what the tenant holds, all at once: some 0.1 µs for a block.

use crate::partition::EntryNodes;
use crate::partitions::PartitionId;
use crate::store::State;
use crate::{CachingSpec, Engine, TenantId};
use larder_policy::Replacement;
use larder_policy::admission::AnyAdmission;
use larder_policy::any::AnyReplacement;

impl Engine {
    /// How a tenant's blocks are replaced and admitted from now on.
    ///
    /// # Panics
    /// For Belady's policy, which is for simulations only.
    pub fn set_caching(&mut self, tenant: TenantId, caching: CachingSpec) {
        let is_other = self.caching(tenant) != caching;
        self.run_by(PartitionId::of(tenant), caching);
        if is_other && self.has_mover(tenant) {
            self.renew_mover(tenant.0);
        }
    }

    /// A tenant's replacement and admission.
    pub fn caching(&self, tenant: TenantId) -> CachingSpec {
        self.partitions[PartitionId::of(tenant)].caching
    }

    /// How the blocks of a partition are replaced and admitted from now on.
    pub(crate) fn run_by(&mut self, at: PartitionId, caching: CachingSpec) {
        self.tell_touched();
        let partition = &mut self.partitions[at];
        let before = std::mem::replace(&mut partition.caching, caching);
        if before.admission() != caching.admission() || before.policy() != caching.policy() {
            partition.admission = AnyAdmission::new(&caching.admission(), partition.reach(), at.seed());
        }
        if before.policy() != caching.policy() {
            let new = AnyReplacement::new(&caching.policy(), partition.capacity, at.seed());
            self.replace_by(at, new);
        }
    }

    /// A partition that holds nothing any more has forgotten what was there.
    pub(crate) fn begin_anew(&mut self, at: PartitionId) {
        let partition = &mut self.partitions[at];
        let policy = partition.caching.policy();
        partition.replacement = AnyReplacement::new(&policy, partition.capacity, at.seed());
    }

    fn replace_by(&mut self, at: PartitionId, new: AnyReplacement) {
        if new.keeps_tags() {
            self.store.keep_tags();
        }
        let mut old = std::mem::replace(&mut self.partitions[at].replacement, new);
        let mut nodes = EntryNodes::of(&mut self.store);
        while let Some(out) = old.evict(&mut nodes, |_, _| false) {
            if out.ghost {
                old.remove(&mut nodes, out.handle, true);
            }
            self.partitions[at].replacement.insert(&mut nodes, out.handle, false);
        }
        for entry in 0..self.store.numbers() {
            let used = self.store.key_of_number(entry).is_some();
            if used && self.store.state(entry) == State::Ghost && self.partition_of(entry) == at {
                self.store.remove(entry);
            }
        }
    }
}
