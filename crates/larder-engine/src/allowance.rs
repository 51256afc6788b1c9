//! What a tenant may write to the cache device until the next word: how a budget of SSD writes is kept.
//!
//! Who has the budget and the clock tells each tenant a limit, as bytes since the start, and learns how far it has come ([`Engine::spent_bytes`]). Each write is
//! charged when it is decided, whole blocks as whole ones, and before a fill has read the backing: so never more is under way than may be written. First no absent block is
//! admitted any more; the rest of the limit is for newer data of blocks that are cached. When that is used up too, such data goes to the backing, and the block leaves
//! (under `wb` as well). No request waits or fails for it. All tenants together may have a limit as well, for those who know better than by tenants what is to be written ([`Engine::set_doors`]). The
//! cache's own records are not charged here ([`Engine::metadata_bytes`]).

use crate::{Engine, TenantId};

/// How far a tenant may go, in bytes written to the cache device since the start, as [`Engine::spent_bytes`] counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimit {
    /// Up to here absent blocks may enter.
    pub admit_bytes: u64,
    /// Up to here newer data of cached blocks is written.
    pub bytes: u64,
}

/// A tenant's limit, and how far it has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    limit: Option<WriteLimit>,
    spent: u64,
    /// How far it had come when the limit was told.
    before: u64,
}

impl Allowance {
    /// Charge a new block, if it may be written.
    fn admit(&mut self, bytes: u64) -> bool {
        self.charge(bytes, self.limit.map(|limit| limit.admit_bytes.min(limit.bytes)))
    }

    /// Charge newer data, if it may be written.
    fn update(&mut self, bytes: u64) -> bool {
        self.charge(bytes, self.limit.map(|limit| limit.bytes))
    }

    fn charge(&mut self, bytes: u64, limit: Option<u64>) -> bool {
        let spent = self.spent.saturating_add(bytes);
        let may = limit.is_none_or(|limit| spent <= limit);
        if may {
            self.spent = spent;
        }
        may
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    /// All that was written was charged, and no more than might be.
    pub(crate) fn self_check(&self, written: u64) {
        assert!(written <= self.spent, "{written} bytes written, {} charged", self.spent);
        let limit = self.limit.map_or(u64::MAX, |limit| limit.bytes.max(self.before));
        assert!(self.spent <= limit, "{} bytes charged of {limit}", self.spent);
    }
}

impl Engine {
    /// Limit what a tenant writes to the cache device from now on; `None` for no limit. One below what it has spent already lets nothing through.
    pub fn set_write_limit(&mut self, tenant: TenantId, limit: Option<WriteLimit>) {
        let allowance = &mut self.tenants[tenant.0 as usize].allowance;
        (allowance.limit, allowance.before) = (limit, allowance.spent);
    }

    /// Limit what all tenants together write to the cache device from now on, beside each one's own limit, as [`Engine::all_spent_bytes`] counts it; `None` for no limit.
    pub fn set_common_limit(&mut self, bytes: Option<u64>) {
        self.common_limit = bytes;
    }

    /// Bytes that all tenants have written to the cache device since the start, those that have left among them, or are about to.
    pub fn all_spent_bytes(&self) -> u64 {
        self.spent_bytes
    }

    /// Bytes that a tenant has written to the cache device since the start, or is about to. What then is not written after all (a failed fill) stays counted.
    pub fn spent_bytes(&self, tenant: TenantId) -> u64 {
        self.tenants[tenant.0 as usize].allowance.spent
    }

    /// A block that was charged is not written: there is no slot for it.
    pub(crate) fn uncharge(&mut self, tenant: usize) {
        let bytes = self.block_bytes();
        let allowance = &mut self.tenants[tenant].allowance;
        allowance.spent = allowance.spent.saturating_sub(bytes);
        self.spent_bytes = self.spent_bytes.saturating_sub(bytes);
    }

    /// May an absent block enter? Then it is charged.
    pub(crate) fn charge_new(&mut self, tenant: usize) -> bool {
        let bytes = self.block_bytes();
        let may = self.is_within(bytes) && self.tenants[tenant].allowance.admit(bytes);
        self.spent_bytes += if may { bytes } else { 0 };
        self.tenants[tenant].stats.refused_blocks += u64::from(!may);
        may
    }

    /// May so many bytes of newer data of a cached block be written? Then they are charged.
    pub(crate) fn charge_update(&mut self, tenant: usize, bytes: u64) -> bool {
        let may = self.is_within(bytes) && self.tenants[tenant].allowance.update(bytes);
        self.spent_bytes += if may { bytes } else { 0 };
        self.tenants[tenant].stats.diverted_blocks += u64::from(!may);
        may
    }

    /// May all together write so much more?
    fn is_within(&self, bytes: u64) -> bool {
        self.common_limit.is_none_or(|limit| self.spent_bytes.saturating_add(bytes) <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admission_ends_first_then_updates() {
        let mut allowance = Allowance::default();
        assert!(allowance.admit(10) && allowance.update(10));
        allowance.limit = Some(WriteLimit { admit_bytes: 30, bytes: 50 });
        assert!(allowance.admit(10) && !allowance.admit(1));
        assert!(allowance.update(15) && !allowance.update(6) && allowance.update(5) && !allowance.update(1));
        assert_eq!(allowance.spent, 50);
        // What was spent already is no debt of this kind: the next limit says how far.
        allowance.limit = Some(WriteLimit { admit_bytes: 40, bytes: 40 });
        assert!(!allowance.admit(1) && !allowance.update(1));
        allowance.limit = None;
        assert!(allowance.admit(1));
    }
}
