//! Another replacement or admission for a tenant, also while it holds blocks.
//!
//! The blocks go over in the order in which the old policy gives them up: what would have left first is the oldest in the new one. Ghosts are dropped. This takes time
//! in proportion to what the tenant holds, all at once: some 0.1 µs for a block.

use crate::partition::EntryNodes;
use crate::store::State;
use crate::{CachingSpec, Engine, TenantId};
use larder_policy::Replacement;
use larder_policy::admission::{Admission, AnyAdmission};
use larder_policy::any::AnyReplacement;

impl Engine {
    /// How a tenant's blocks are replaced and admitted from now on.
    ///
    /// # Panics
    /// For Belady's policy, which is for simulations only.
    pub fn set_caching(&mut self, tenant: TenantId, caching: CachingSpec) {
        self.tell_touched();
        let (at, seed) = (tenant.0 as usize, u64::from(tenant.0));
        let before = std::mem::replace(&mut self.tenants[at].caching, caching);
        if before.admission() != caching.admission() || before.policy() != caching.policy() {
            let capacity = self.tenants[at].capacity;
            self.tenants[at].admission = AnyAdmission::new(&caching.admission(), capacity, seed);
        }
        if before.policy() != caching.policy() {
            self.replace_by(at, AnyReplacement::new(&caching.policy(), self.tenants[at].capacity, seed));
        }
        if before != caching && self.has_mover(tenant) {
            self.renew_mover(tenant.0);
        }
    }

    /// A tenant's replacement and admission.
    pub fn caching(&self, tenant: TenantId) -> CachingSpec {
        self.tenants[tenant.0 as usize].caching
    }

    fn replace_by(&mut self, tenant: usize, new: AnyReplacement) {
        if new.keeps_tags() {
            self.store.keep_tags();
        }
        let mut old = std::mem::replace(&mut self.tenants[tenant].replacement, new);
        let mut nodes = EntryNodes::of(&mut self.store);
        while let Some(out) = old.evict(&mut nodes, |_, _| false) {
            if out.ghost {
                old.remove(&mut nodes, out.handle, true);
            }
            self.tenants[tenant].replacement.insert(&mut nodes, out.handle, false);
        }
        for entry in 0..self.store.numbers() {
            let Some(key) = self.store.key_of_number(entry) else { continue };
            if self.store.state(entry) == State::Ghost && self.tenant_of(key.volume) == tenant {
                self.store.remove(entry);
            }
        }
    }

    /// What policies know of a tenant's size is this many blocks.
    pub(crate) fn set_capacity(&mut self, tenant: usize, blocks: u32) {
        let of = &mut self.tenants[tenant];
        if of.capacity != blocks {
            of.capacity = blocks;
            of.replacement.resize(blocks);
            of.admission.resize(blocks);
            self.resize_mover(tenant, blocks);
        }
    }
}
