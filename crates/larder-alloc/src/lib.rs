//! Who gets how much of the cache, and which write policy.
//!
//! At the end of every epoch an [`Allocator`] takes what the analyzer found about each tenant, and what the operator
//! configured, and decides a quota and a write policy for each, with the reason in words. It decides only: the caller
//! carries the decisions out.
//!
//! - `static` ([`Static`]): quotas as configured, the rest shared out equally.
//! - `eci` ([`Eci`]): ECI-Cache; sizes from the useful reuse distance, and the least total latency where they do not fit.
//!
//! Both choose the write policy of tenants that leave it to them by ECI-Cache's Algorithm 3.
//!
//! The crate is pure: no clock, no I/O, and the same input always gives the same decisions.

mod division;
mod eci;
mod findings;
mod hull;
pub mod menu;
mod profile;
mod shares;
mod static_quotas;
mod tenant;
mod words;
mod write_policy;

pub use eci::Eci;
pub use findings::{CacheUse, Findings, Latencies, Measured, Timed};
pub use larder_policy::WritePolicy;
pub use profile::{Layout, Needs, Population, Profile};
pub use static_quotas::Static;
pub use tenant::{
    ConfiguredPolicy, Constraints, Decision, Goals, Mode, Objective, Prediction, Reservation, Tenant,
};

/// The least that `eci` gives to a tenant, in blocks, as in the paper (footnote 3), unless configured otherwise.
pub const DEFAULT_MIN_BLOCKS: u32 = 1000;

/// The share of WAW and WAR from which on a tenant's writes are not cached, as in the paper (section 6.4), unless
/// configured otherwise.
pub const DEFAULT_WRITE_THRESHOLD: f64 = 0.5;

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 2] = [Eci::NAME, Static::NAME];

use larder_locality::CurvePolicy;

/// Decides, once an epoch, what every tenant gets.
pub trait Allocator {
    /// Its name in configuration and status.
    fn name(&self) -> &'static str;

    /// What the cache is like that it decides about, unless the user says otherwise.
    fn profile(&self) -> Profile;

    /// What has to be observed for it.
    fn needs(&self) -> Needs {
        Needs { curves: vec![CurvePolicy::WriteThrough], ..Needs::default() }
    }

    /// One decision for each tenant, in the same order. The quotas never exceed the cache in sum.
    ///
    /// An allocator may keep what it learned from one epoch to the next.
    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError>;
}

/// Why nothing could be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// The operator promised more than there is.
    #[error("the configured quotas want {wanted_blocks} blocks in all, and the cache has {cache_blocks}")]
    QuotasExceedCache {
        /// Sum of the configured quotas.
        wanted_blocks: u64,
        /// Size of the cache.
        cache_blocks: u32,
    },
}

/// The allocator of that name (see [`NAMES`]), new.
pub fn by_name(name: &str) -> Option<Box<dyn Allocator + Send>> {
    match name {
        Eci::NAME => Some(Box::new(Eci)),
        Static::NAME => Some(Box::new(Static)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_its_allocator() {
        for name in NAMES {
            assert_eq!(by_name(name).map(|allocator| allocator.name()), Some(name));
        }
        assert!(by_name("unified").is_none());
    }
}
