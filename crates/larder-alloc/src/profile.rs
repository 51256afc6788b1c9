//! How an allocator's system works besides who gets how much: what the cache has to be like, and what has to be observed.

use larder_locality::CurvePolicy;
use larder_policy::WritePolicy;
use larder_policy::spec::CachingSpec;

use crate::Mode;

/// How the cache is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// One cache for all tenants: quotas mean nothing.
    Unified,
    /// Each tenant has its own.
    Partitioned,
    /// Each tenant has its own, and what a tenant does not use of its quota is lent to those who are at theirs: a quota is what a tenant gets back as soon as it
    /// wants it, from whoever is most above its own.
    Lending,
    /// This share of the cache (0 to 1) is divided among the tenants, the rest takes what leaves their parts.
    Combined {
        /// The share.
        partitioned: f64,
    },
    /// Partitions over a pool of free blocks that a global cleaner keeps filled (S-CAVE, section V-B): when fewer than `low` (0 to 1) are free, it takes blocks that were not used,
    /// whosever they are, until `high` are.
    Pooled {
        /// The low watermark.
        low: f64,
        /// The high watermark.
        high: f64,
    },
}

/// When blocks enter the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Population {
    /// At the access that misses them.
    OnDemand,
    /// All together, every so many seconds: Centaur's mover.
    Batched {
        /// The mover epoch.
        seconds: f64,
    },
}

/// What an allocator's system is like, unless the user says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// How the cache is divided.
    pub layout: Layout,
    /// When blocks enter it.
    pub population: Population,
    /// How a tenant's cache works at the start.
    pub mode: Mode,
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Seconds between decisions.
    pub epoch_seconds: f64,
    /// The epoch is the method's own, and stays as it is when the user asks for another.
    pub own_epoch: bool,
    /// Factor of what was counted in the epochs before, 0 to 1: 0 forgets them.
    pub memory: f64,
    /// A new tenant is decided about after parts of an epoch already: a sixteenth, an eighth, a quarter, a half.
    pub learns_quickly: bool,
    /// From so many bytes of a tenant's sequential stream of reads on, what the stream reads does not enter the cache; what is resident is hit all the same.
    /// None, as with all allocators but `larder`: streams enter like other reads.
    pub bypass_sequential_bytes: Option<u64>,
    /// What is worth its place in the cache enters, and where SSD writes are limited what saves most for each block written; the allocator is told of no limit. Otherwise
    /// whatever comes enters, as long as the limit allows, which the allocator has to heed.
    pub prices_writes: bool,
    /// Quotas are what is configured, whatever was found: they hold as soon as a tenant comes.
    pub fixed_quotas: bool,
    /// Reservations and shares are looked at ([`crate::Goals`]).
    pub keeps_promises: bool,
}

impl Default for Profile {
    /// Partitions of LRU caches under write-back, filled at every miss, in blocks of 4 KiB, decided about every ten minutes.
    fn default() -> Self {
        Self {
            layout: Layout::Partitioned,
            population: Population::OnDemand,
            mode: Mode { caching: CachingSpec::default(), write: WritePolicy::WriteBack },
            block_bytes: 4096,
            epoch_seconds: 600.0,
            own_epoch: false,
            memory: 0.0,
            learns_quickly: false,
            bypass_sequential_bytes: None,
            prices_writes: false,
            fixed_quotas: false,
            keeps_promises: false,
        }
    }
}

/// What has to be observed for an allocator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Curves of LRU caches ([`crate::Findings::curves`]).
    pub curves: Vec<CurvePolicy>,
    /// Caches to be simulated in miniature ([`crate::Findings::bank`]).
    pub bank: Vec<Mode>,
    /// The shares of the tenants' blocks that were hit ([`crate::CacheUse::effective`]).
    pub effective: bool,
}
