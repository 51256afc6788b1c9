//! What a run refuses.

use larder_alloc::AllocError;

use super::super::{Pace, TenantsPlan};
use crate::block::TooManySegments;
use crate::plan::CACHE_BLOCKS_MAX;

/// Why a run gives no result.
#[derive(Debug, thiserror::Error)]
pub enum TenantsError<E> {
    /// A trace cannot be read.
    #[error("tenant {tenant}: {error}")]
    Source {
        /// Whose it is.
        tenant: String,
        /// Why.
        error: E,
    },
    /// No allocator has this name.
    #[error("{0:?} is no allocator; there are {names}", names = larder_alloc::NAMES.join(", "))]
    UnknownAllocator(String),
    /// Nobody is there.
    #[error("there is no tenant")]
    NoTenant,
    /// Tenants and traces do not belong together.
    #[error("{tenants} tenants, but {sources} traces")]
    SourceCount {
        /// Tenants.
        tenants: usize,
        /// Traces.
        sources: usize,
    },
    /// Two tenants have the same name.
    #[error("two tenants are called {0:?}")]
    SameName(String),
    /// A tenant for which nothing is ever done, or that never ends.
    #[error("tenant {tenant}: {what}")]
    Tenant {
        /// Which.
        tenant: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A cache of less than a block, or of more blocks than there may be.
    #[error("a cache of {blocks} blocks cannot be simulated: from 1 to {CACHE_BLOCKS_MAX} can")]
    CacheSize {
        /// Its blocks.
        blocks: u64,
    },
    /// A block that is none.
    #[error(transparent)]
    Block(#[from] crate::BlockSizeError),
    /// An epoch of nothing.
    #[error("an epoch must be longer than nothing")]
    EmptyEpoch,
    /// A trace is too wide.
    #[error(transparent)]
    TooManySegments(#[from] TooManySegments),
    /// Nothing could be decided at the start.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// Refuse what cannot be run.
pub(in super::super) fn check<E>(plan: &TenantsPlan, sources: usize) -> Result<(), TenantsError<E>> {
    let tenants = &plan.tenants;
    if tenants.is_empty() {
        return Err(TenantsError::NoTenant);
    }
    if tenants.len() != sources {
        return Err(TenantsError::SourceCount { tenants: tenants.len(), sources });
    }
    for (at, tenant) in tenants.iter().enumerate() {
        if tenants[..at].iter().any(|other| other.name == tenant.name) {
            return Err(TenantsError::SameName(tenant.name.clone()));
        }
        let endless = tenant.repeat
            && tenant.stop_seconds.is_none()
            && plan.duration_seconds.is_none()
            && plan.limit.is_none();
        let what = match tenant.pace {
            Pace::Open { rate } if !(rate > 0.0 && rate.is_finite()) => "its rate must be above 0",
            Pace::Closed { outstanding: 0 } => "a closed loop has at least one request outstanding",
            _ if endless => "its trace is repeated for ever: give it a stop, the run a duration, or a limit",
            _ if tenant.start_seconds < 0.0 || tenant.start_seconds.is_nan() => {
                "its start must not be before that of the run"
            }
            _ if tenant.goals.weight <= 0.0 || tenant.goals.weight.is_nan() => "its weight must be above 0",
            _ => continue,
        };
        return Err(TenantsError::Tenant { tenant: tenant.name.clone(), what });
    }
    Ok(())
}
