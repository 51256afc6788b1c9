//! What to simulate: tenants, their paces and goals, the cache, the devices, the allocator.

use larder_alloc::control::{BudgetPeriod, Shaped, WriteBudget};
use larder_alloc::{ConfiguredPolicy, Goals, Measured, Mode, Objective, WritePolicy};
use larder_locality::Sampling;
use larder_policy::spec::CachingSpec;

use super::DeviceSpec;
use crate::BlockSize;

/// When a tenant issues its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At the times of its trace, so many times as fast.
    Open {
        /// 1 for the trace's own speed.
        rate: f64,
    },
    /// The next when one is done, so many at a time; the trace's times say nothing.
    Closed {
        /// Requests under way.
        outstanding: u32,
    },
}

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantPlan {
    /// Its name; no two have the same.
    pub name: String,
    /// When it issues its requests.
    pub pace: Pace,
    /// Seconds after which it comes.
    pub start_seconds: f64,
    /// Seconds after which it goes, if its trace has not ended before.
    pub stop_seconds: Option<f64>,
    /// Begin the trace anew when it ends; then there has to be an end of another kind.
    pub repeat: bool,
    /// The quota configured, in bytes.
    pub quota_bytes: Option<u64>,
    /// The write policy configured.
    pub write_policy: ConfiguredPolicy,
    /// Replacement and admission, whatever the allocator would choose.
    pub caching: Option<CachingSpec>,
    /// What else is wanted for it.
    pub goals: Goals,
}

impl TenantPlan {
    /// A tenant that replays its trace at its own speed from the start, about which nothing is configured.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            pace: Pace::Open { rate: 1.0 },
            start_seconds: 0.0,
            stop_seconds: None,
            repeat: false,
            quota_bytes: None,
            write_policy: ConfiguredPolicy::Auto,
            caching: None,
            goals: Goals::default(),
        }
    }
}

/// Whether the tenants' volumes lie on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// All on the same.
    #[default]
    Shared,
    /// Each on its own.
    Each,
}

/// What the cache is like, where not as the allocator's system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Caching {
    /// Replacement and admission.
    pub caching: Option<CachingSpec>,
    /// The write policy at the start.
    pub write: Option<WritePolicy>,
    /// The unit of caching.
    pub block: Option<BlockSize>,
    /// Seconds between decisions, for all but those that have their own windows.
    pub epoch_seconds: Option<f64>,
    /// Seconds between the batches of a mover; unless given, a fifth of `epoch_seconds`, or the mover's own where that is not given either.
    pub mover_seconds: Option<f64>,
    /// The share of the cache that is partitioned, for the combination of partitions and a common part.
    pub partitioned: Option<f64>,
}

/// A run: tenants that share a cache, and who divides it.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantsPlan {
    /// The tenants.
    pub tenants: Vec<TenantPlan>,
    /// The allocator's name ([`larder_alloc::NAMES`]).
    pub allocator: String,
    /// It is as the daemon runs it: sizes tenants by measurement while its predictions are wrong, where its paper does not have it so ([`larder_alloc::corrected`]).
    pub corrected: bool,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// What the cache is like.
    pub caching: Caching,
    /// The SSD.
    pub ssd: DeviceSpec,
    /// The slow storage.
    pub backing: DeviceSpec,
    /// Where the tenants' volumes lie.
    pub backings: Backing,
    /// Traces keep the times at which they began, beside each other; otherwise each begins when its tenant comes.
    pub aligned: bool,
    /// Seconds after which the run ends.
    pub duration_seconds: Option<f64>,
    /// Reads and writes of each tenant that are taken at most.
    pub limit: Option<u64>,
    /// The least that a tenant gets, in bytes.
    pub min_bytes: u64,
    /// The share of writes to known blocks, 0 to 1, from which `auto` means `ro` under `eci` and `static`.
    pub write_threshold: f64,
    /// Blocks of the cache may be dirty.
    pub write_back: bool,
    /// What is to be minimised, where the allocator lets that be chosen.
    pub objective: Objective,
    /// What the SSD may be written.
    pub budget: Option<WriteBudget>,
    /// It is spent evenly, since nobody knows when the run is over.
    pub spends_evenly: bool,
    /// When the run ends, where that is known: a last period that is not over by then has its part of the budget.
    pub ends_seconds: Option<f64>,
    /// Which blocks the analyzers look at.
    pub sampling: Sampling,
    /// Chooses samples, and what policies draw lots for.
    pub seed: u64,
    /// What the requests of the traces took, and when was decided, in the daemon that served them.
    pub recorded: Option<Recorded>,
}

/// What a daemon did whose requests are simulated. The traces have one clock, and all tenants are there from the begin to the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Where the clock of the traces begins, in seconds of the run.
    pub begins_seconds: f64,
    /// Where each tenant stands at the begin of the run: its quota in blocks, and how its cache works.
    pub stand: Vec<(u32, Mode)>,
    /// The decisions, in order of time.
    pub decisions: Vec<RecordedDecision>,
    /// It is decided at the times of these decisions, and not when the allocator would have it.
    pub keeps_times: bool,
    /// What chose the blocks of the daemon's samples, where that is known: volumes of the traces then have its numbers.
    pub seed: Option<u64>,
    /// How far the budget of SSD writes was used up, where that is known.
    pub period: Option<BudgetPeriod>,
}

/// A decision of the daemon, or a moment at which it began to learn some tenants anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedDecision {
    /// When, in seconds of the run.
    pub seconds: f64,
    /// What each tenant's requests took since the one before. Requests of the run take as long in the mean; those of a kind that the daemon did not have take what the devices of the plan take.
    pub measured: Vec<Measured>,
    /// The same by what served them and `Kind::shape`, of those tenants of which that is known.
    pub shaped: Vec<Option<Box<Shaped>>>,
    /// Bytes of its cache's own records for each byte of data that was written to the SSD since the one before.
    pub record_share: f64,
    /// Those whose rates had changed. Where there are any, nothing was decided.
    pub renewed: Vec<usize>,
}

impl TenantsPlan {
    /// A run with the default devices (`san` behind `nvme`), everything as the allocator's system has it.
    pub fn new(tenants: Vec<TenantPlan>, allocator: impl Into<String>, cache_bytes: u64) -> Self {
        Self {
            tenants,
            allocator: allocator.into(),
            corrected: false,
            cache_bytes,
            caching: Caching::default(),
            ssd: DeviceSpec::NVME,
            backing: DeviceSpec::SAN,
            backings: Backing::Shared,
            aligned: false,
            duration_seconds: None,
            limit: None,
            min_bytes: 1 << 20,
            write_threshold: larder_alloc::DEFAULT_WRITE_THRESHOLD,
            write_back: true,
            objective: Objective::default(),
            budget: None,
            spends_evenly: false,
            ends_seconds: None,
            sampling: Sampling::Blocks(larder_alloc::control::SAMPLE_BLOCKS),
            seed: 1,
            recorded: None,
        }
    }
}
