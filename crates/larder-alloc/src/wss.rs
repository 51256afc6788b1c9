//! `wss`: the working sets of the container thesis (Rao: "Differentiated SSD Caching for Container-based Hosting", IIT
//! Bombay 2017, sections 3.2 and 3.3.3).
//!
//! After every epoch the thesis runs PARDA over each container's accesses, and takes the working set that the reuse
//! distances (TRD) tell as the container's optimal cache size: a larger cache brings no more hits (section 2.5). A cache
//! takes on its new size as its Algorithm 2 has it ([`resize()`]).
//!
//! The thesis does not say what happens where the working sets do not fit, only that priority and an SLA may have a
//! say. Here they then shrink in proportion.

use crate::bounds::{Bounds, bounds};
use crate::words::grouped;
use crate::{AllocError, Allocator, Constraints, Decision, Mode, Profile, Tenant, own_policy};
use proportion::in_proportion;

pub use resize::{Resize, resize};

mod proportion;
mod resize;

/// The container thesis's allocator.
///
/// Every tenant gets its working set: its largest TRD and one. Where the cache is too small for all of them, each gets
/// its proportional part. Nobody gets less than its minimum, or than the N-th part of the cache where N tenants' minima
/// exceed it, nor more than its maximum. Where the working sets fit, the rest of the cache stays free. A tenant that was idle
/// has no working set. A configured quota is where a tenant starts; it does not bind the decisions.
///
/// Write-back, unless configured otherwise: it is flashcache's (section 2.7), on which the thesis builds, though the
/// thesis itself has come as far as write-through and write bypass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wss;

impl Wss {
    /// Its name.
    pub const NAME: &str = "wss";

    /// Seconds between decisions (section 4.3.1).
    pub const EPOCH_SECONDS: f64 = 120.0;
}

impl Allocator for Wss {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    /// LRU (section 3.3.1) under write-back, in blocks of 4 KiB.
    fn profile(&self) -> Profile {
        Profile { epoch_seconds: Self::EPOCH_SECONDS, ..Profile::default() }
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let sets = WorkingSets::of(tenants, constraints.cache_blocks);
        let own = self.profile().mode.write;
        let decide = |(at, tenant): (usize, &Tenant<'_>)| {
            let (write, policy_words) = own_policy::choose(tenant, constraints, own);
            Decision {
                quota_blocks: sets.quota(at),
                mode: Mode { write, ..tenant.mode },
                predicted: None,
                reason: format!("{}; {policy_words}", sets.words(at, tenant)),
            }
        };
        Ok(tenants.iter().enumerate().map(decide).collect())
    }
}

/// The sizes that the tenants' working sets come to where so many blocks are to be divided.
pub(crate) struct WorkingSets {
    blocks: u32,
    bounds: Vec<Bounds>,
    /// The working sets within their bounds, in blocks.
    wanted: Vec<u64>,
    quotas: Vec<u64>,
}

impl WorkingSets {
    /// Divide `blocks` among the tenants.
    pub fn of(tenants: &[Tenant<'_>], blocks: u32) -> Self {
        let bounds = bounds(tenants, blocks.into());
        let wanted: Vec<u64> =
            tenants.iter().zip(&bounds).map(|(tenant, bounds)| bounds.clamp(working_set(tenant))).collect();
        let least: Vec<u64> = bounds.iter().map(|bounds| bounds.least).collect();
        let quotas = in_proportion(&wanted, &least, blocks.into());
        Self { blocks, bounds, wanted, quotas }
    }

    /// The blocks that a tenant gets.
    pub fn quota(&self, at: usize) -> u32 {
        // A part of `blocks`.
        self.quotas[at] as u32
    }

    /// Why a tenant gets them.
    pub fn words(&self, at: usize, tenant: &Tenant<'_>) -> String {
        let quota = grouped(self.quotas[at]);
        let Some(findings) = tenant.active() else {
            return format!(
                "idle in this epoch, and so without a working set: the minimum of {quota} blocks"
            );
        };
        let Some(trd) = findings.trd_max else {
            let history = grouped(findings.history_blocks);
            return format!(
                "no block was accessed again within {history} blocks (the history kept): the minimum of {quota} blocks"
            );
        };
        let set = findings.trd_blocks();
        let wish = format!("working set of {} blocks (TRD {})", grouped(set), grouped(trd));
        if set <= self.bounds[at].least {
            return format!("{wish} is within the minimum of {quota} blocks");
        }
        let wish = match self.bounds[at].most {
            most if most < set => format!("{wish}, cut to its maximum of {}", grouped(most)),
            _ => wish,
        };
        let wanted = self.wanted.iter().fold(0, |sum: u64, &wanted| sum.saturating_add(wanted));
        let all = format!("the tenants together want {} of {} blocks", grouped(wanted), grouped(self.blocks));
        match wanted <= self.blocks.into() {
            true => format!("{wish}: {quota} blocks, as {all}"),
            false => format!("{wish} does not fit: {all}; {quota} blocks in proportion"),
        }
    }
}

/// The working set of a tenant in the epoch that ended, in blocks.
fn working_set(tenant: &Tenant<'_>) -> u64 {
    tenant.active().map_or(0, |findings| findings.trd_blocks())
}

#[cfg(test)]
mod tests;
