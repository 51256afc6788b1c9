//! Partitions that lend each other what they do not use.
//!
//! While they lend, a tenant grows as long as there are free blocks, whatever its quota. When there are none, one that is below its quota takes blocks from the one that is
//! most above its own; all others make do with what they have. So nothing leaves the cache because of a decision alone, but only when somebody wants its place.
//! An engine that lends takes the whole free pool: no other may depend on it.

use crate::Engine;

/// Blocks that change hands together.
const BATCH: u32 = 64;

/// How many more blocks policies are told of than a tenant holds, once it holds more than its quota.
const AHEAD: u32 = 1024;

impl Engine {
    /// Whether partitions lend each other what they do not use. Where they no longer do, what is above a quota leaves in [`Engine::trim`].
    pub fn set_lending(&mut self, lending: bool) {
        if std::mem::replace(&mut self.lending, lending) != lending {
            self.tell_touched();
            (0..self.tenants.len()).for_each(|tenant| self.fit_capacity(tenant));
            self.trim_due = true;
        }
    }

    /// True if partitions lend.
    pub fn is_lending(&self) -> bool {
        self.lending
    }

    /// A tenant's policies are told its quota, or what it holds of others' as well.
    pub(crate) fn fit_capacity(&mut self, tenant: usize) {
        let (quota, held) = (self.tenants[tenant].quota, self.tenants[tenant].occupied());
        let capacity = if self.lending && held > quota { held.saturating_add(AHEAD) } else { quota };
        self.set_capacity(tenant, capacity);
    }

    /// Nothing more fits into a tenant's partition without anything leaving it.
    pub(crate) fn is_full(&mut self, tenant: usize) -> bool {
        self.tenants[tenant].is_full() && !(self.lending && self.have_free_slot())
    }

    /// A slot for another block of a tenant, lent or its own.
    pub(crate) fn take_lent_slot(&mut self, tenant: usize) -> Option<u32> {
        if !self.have_free_slot() {
            let from = self.lender(tenant).unwrap_or(tenant);
            let above = self.tenants[from].occupied().saturating_sub(self.tenants[from].quota);
            // Slots that wait until the journal says that they are free are on their way already.
            let coming = self.durable.as_ref().map_or(0, |durable| durable.freeing());
            let batch = match from == tenant {
                true => 1,
                false => above.min(BATCH.saturating_sub(u32::try_from(coming).unwrap_or(u32::MAX))),
            };
            for _ in 0..batch {
                if !self.evict_one(from) {
                    break;
                }
            }
            self.free_ahead(from);
            self.fit_capacity(from);
            // What left may not be free yet, and others be.
            self.have_free_slot();
        }
        let slot = self.free_slots.pop()?;
        if self.tenants[tenant].occupied() >= self.tenants[tenant].capacity {
            let held = self.tenants[tenant].occupied();
            self.set_capacity(tenant, held.saturating_add(AHEAD));
        }
        Some(slot)
    }

    /// Who gives blocks back for a tenant that is below its quota: the one that is most above its own.
    fn lender(&self, tenant: usize) -> Option<usize> {
        if self.tenants[tenant].is_full() {
            return None;
        }
        let above = |at: &usize| self.tenants[*at].occupied().saturating_sub(self.tenants[*at].quota);
        let most = (0..self.tenants.len()).filter(|&at| at != tenant).max_by_key(above)?;
        (above(&most) > 0).then_some(most)
    }
}
