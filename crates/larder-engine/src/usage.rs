//! Which part of a tenant's blocks is used: S-CAVE's effective cache space (section IV), from a sample.
//!
//! One entry in [`SAMPLED`], whichever it is, is remembered when it is hit, while somebody wants to know.

use std::collections::BTreeSet;

use crate::store::EntryId;
use crate::{Engine, TenantId};

/// Of so many entries one is looked at: a power of two.
const SAMPLED: u32 = 16;

/// The entries of a tenant's sample that were hit.
pub(crate) type HitSample = BTreeSet<EntryId>;

impl Engine {
    /// Whether it is looked at which blocks are hit.
    pub fn watch_hits(&mut self, watch: bool) {
        if std::mem::replace(&mut self.watches_hits, watch) != watch {
            self.tenants.iter_mut().for_each(|tenant| tenant.hit_sample = HitSample::new());
        }
    }

    /// The share (0 to 1) of a tenant's blocks that was hit since this was asked last; none where it holds nothing, or nobody looked.
    pub fn take_effective(&mut self, tenant: TenantId) -> Option<f64> {
        let tenant = &mut self.tenants[tenant.0 as usize];
        let hit = std::mem::take(&mut tenant.hit_sample).len() as f64 * f64::from(SAMPLED);
        let held = f64::from(tenant.held);
        (self.watches_hits && held > 0.0).then(|| (hit / held).min(1.0))
    }

    /// A block is hit while that is looked at.
    #[inline]
    pub(crate) fn note_hit(&mut self, tenant: TenantId, entry: EntryId) {
        if entry.is_multiple_of(SAMPLED) {
            self.tenants[tenant.0 as usize].hit_sample.insert(entry);
        }
    }
}
