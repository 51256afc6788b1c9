//! Who gets how much of the cache, and how each tenant's part of it works.
//!
//! At the end of every epoch an [`Allocator`] takes what the analyzer found about each tenant, and what the operator
//! configured, and decides a quota and a mode (replacement, admission, write policy) for each, with the reason in words.
//! It decides only: the caller carries the decisions out. [`control`] is the loop around it, from requests to decisions.
//!
//! - `larder` ([`Larder`]): our own; sizes, write policies and admissions chosen jointly, under a budget of SSD writes too.
//! - `static` ([`Static`]): quotas as configured, the rest shared out equally.
//! - `optimal` ([`Optimal`]): the exact best of all sizes and modes, for few tenants: what the others are held against.
//! - `eci` ([`Eci`]): ECI-Cache; sizes from the useful reuse distance, and the least total latency where they do not fit.
//! - `centaur` ([`Centaur`]): Centaur; latency or IOPS curves and simulated annealing, with reservations and shares;
//!   `convex-hull` ([`ConvexHull`]) is what it is held against.
//! - `unified` ([`Unified`]): one cache for all; `combined` ([`Combined`]): one half of it divided, the other for all.
//! - `wss` ([`Wss`]): the container thesis; working sets by reuse distance.
//! - `scave` ([`Scave`]): S-CAVE; from one second to the next, by the share of a tenant's blocks that are in use.
//!
//! Of tenants that leave the write policy to them, `static` and `eci` choose it by ECI-Cache's Algorithm 3, `larder` and
//! `optimal` together with the size; the others have one of their own for all.
//!
//! The crate is pure: no clock, no I/O, and the same input always gives the same decisions.

mod bounds;
mod centaur;
pub mod choices;
mod combined;
pub mod control;
mod correction;
mod division;
mod eci;
mod findings;
#[cfg(test)]
mod fixtures;
mod hull;
#[cfg(test)]
mod invariants;
pub mod larder;
pub mod menu;
pub mod optimal;
mod own_policy;
mod profile;
mod scave;
mod shares;
mod staircase;
mod static_quotas;
mod tenant;
mod unified;
mod words;
mod write_policy;
mod wss;

pub use centaur::{Centaur, ConvexHull};
pub use choices::{Candidates, Choice, Unmet};
pub use combined::Combined;
pub use eci::{CorrectedEci, Eci};
pub use findings::{CacheUse, Findings, Latencies, Measured, SinceDecision, Timed};
pub use larder::Larder;
pub use larder_policy::WritePolicy;
pub use optimal::Optimal;
pub use profile::{Layout, Needs, Population, Profile};
pub use scave::Scave;
pub use static_quotas::Static;
pub use tenant::{
    ConfiguredPolicy, Constraints, Decision, Goals, Mode, Objective, Prediction, Reservation, Tenant,
};
pub use unified::Unified;
pub use wss::{Resize, Wss, resize};

/// The least that `eci` gives to a tenant, in blocks, as in the paper (footnote 3), unless configured otherwise.
pub const DEFAULT_MIN_BLOCKS: u32 = 1000;

/// The share of WAW and WAR from which on a tenant's writes are not cached, as in the paper (section 6.4), unless
/// configured otherwise.
pub const DEFAULT_WRITE_THRESHOLD: f64 = 0.5;

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 10] = [
    Larder::NAME,
    Eci::NAME,
    Static::NAME,
    Unified::NAME,
    Wss::NAME,
    Combined::NAME,
    Scave::NAME,
    Optimal::NAME,
    Centaur::NAME,
    ConvexHull::NAME,
];

use larder_locality::CurvePolicy;

/// Decides, once an epoch, what every tenant gets.
pub trait Allocator {
    /// Its name in configuration and status.
    fn name(&self) -> &'static str;

    /// Another that knows the same: for a dry run, of which this one learns nothing.
    fn fork(&self) -> Box<dyn Allocator + Send>;

    /// What the cache is like that it decides about, unless the user says otherwise.
    fn profile(&self) -> Profile;

    /// What has to be observed for it; reuse distances, unless it says otherwise. `limited_writes` says that writes may have to go past the cache: that there is a
    /// budget of SSD writes, that the cache cannot hold dirty data, or that a tenant is configured so.
    fn needs(&self, limited_writes: bool) -> Needs {
        let _ = limited_writes;
        Needs { curves: vec![CurvePolicy::WriteThrough], ..Needs::default() }
    }

    /// One decision for each tenant, in the same order. The quotas never exceed the cache in sum, but where they are
    /// caps over a common pool ([`Layout::Pooled`]).
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
    #[error(
        "the configured quotas want {wanted_blocks} blocks in all, and the cache has {cache_blocks} for them"
    )]
    QuotasExceedCache {
        /// Sum of the configured quotas.
        wanted_blocks: u64,
        /// Size of the cache.
        cache_blocks: u32,
    },
    /// An exact solution takes too long.
    #[error(
        "so many sizes of {tenants} tenants cannot be combined exactly: `optimal` is for small numbers of tenants"
    )]
    TooLarge {
        /// How many there are.
        tenants: usize,
    },
}

/// The allocator of that name (see [`NAMES`]), new.
pub fn by_name(name: &str) -> Option<Box<dyn Allocator + Send>> {
    match name {
        Larder::NAME => Some(Box::<Larder>::default()),
        Eci::NAME => Some(Box::new(Eci)),
        Centaur::NAME => Some(Box::<Centaur>::default()),
        ConvexHull::NAME => Some(Box::new(ConvexHull)),
        Static::NAME => Some(Box::new(Static)),
        Unified::NAME => Some(Box::new(Unified)),
        Wss::NAME => Some(Box::new(Wss)),
        Combined::NAME => Some(Box::new(Combined)),
        Scave::NAME => Some(Box::new(Scave::default())),
        Optimal::NAME => Some(Box::new(Optimal)),
        _ => None,
    }
}

/// The same as the daemon runs it: where its paper does not have it so, it sizes a tenant by measurement as long as its predictions for it are wrong by more than a
/// tenth. Of `optimal` and `convex-hull`, which others are held against, there is no such form.
pub fn corrected(name: &str) -> Option<Box<dyn Allocator + Send>> {
    match name {
        Eci::NAME => Some(Box::<CorrectedEci>::default()),
        _ => by_name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_its_allocator() {
        for name in NAMES {
            assert_eq!(by_name(name).map(|allocator| allocator.name()), Some(name));
            assert_eq!(corrected(name).map(|allocator| allocator.name()), Some(name));
        }
        assert!(by_name("nobody").is_none());
    }
}
