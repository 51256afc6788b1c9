//! What an allocator knows of a tenant, and what it says about it.

use larder_locality::EpochFindings;
use larder_policy::WritePolicy;
use larder_policy::spec::CachingSpec;

use crate::Findings;

/// How a tenant's cache works, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// Which block leaves, and which may enter.
    pub caching: CachingSpec,
    /// What a write does.
    pub write: WritePolicy,
}

/// What the operator says about a tenant's write policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConfiguredPolicy {
    /// The allocator decides, anew every epoch.
    #[default]
    Auto,
    /// Always this one.
    Fixed(WritePolicy),
}

/// What a tenant was promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reservation {
    /// A mean latency of a request of at most so many seconds.
    Latency(f64),
    /// At least so many requests per second while it has that many outstanding.
    Iops(f64),
}

/// What the operator wants for a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goals {
    /// How much its latency counts beside that of others; 1 unless given, above 0.
    pub weight: f64,
    /// Proportional share: with shares 1 and 2, the second has half the latency (or twice the IOPS) of the first. None: it takes no part.
    pub share: Option<f64>,
    /// What it was promised.
    pub reservation: Option<Reservation>,
    /// The most blocks that it gets.
    pub max_blocks: Option<u32>,
}

impl Goals {
    /// A latency, IOPS or a proportion is to be kept to.
    pub(crate) fn is_promise(&self) -> bool {
        self.share.is_some() || self.reservation.is_some()
    }

    /// Blocks of which it lends nothing, however seldom it hits them: all that its quota gives it, where it was promised something.
    pub fn keeps(&self) -> u32 {
        if self.is_promise() { u32::MAX } else { 0 }
    }
}

impl Default for Goals {
    fn default() -> Self {
        Self { weight: 1.0, share: None, reservation: None, max_blocks: None }
    }
}

/// One tenant, as an allocator sees it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    /// Its name; no two tenants have the same. An allocator that remembers a tenant from one epoch to the next goes by it.
    pub name: &'a str,
    /// The quota that it has now, in blocks.
    pub quota_blocks: u32,
    /// How its cache works now.
    pub mode: Mode,
    /// What it did in the epoch that ended; none where it was idle, or is new.
    pub findings: Option<&'a Findings>,
    /// The write policy configured.
    pub configured_policy: ConfiguredPolicy,
    /// The quota configured, in blocks, if there is one. It binds `static`; with all others it is where the tenant starts.
    pub configured_quota_blocks: Option<u32>,
    /// The least that it gets, in blocks, while the cache has that much for everybody.
    pub min_blocks: u32,
    /// What else is wanted for it.
    pub goals: Goals,
}

impl<'a> Tenant<'a> {
    /// What the tenant did, unless it did nothing.
    pub(crate) fn active(&self) -> Option<&'a EpochFindings> {
        self.found().map(|findings| &findings.epoch)
    }

    /// All that was found about it, unless it did nothing.
    pub(crate) fn found(&self) -> Option<&'a Findings> {
        self.findings.filter(|findings| findings.epoch.accesses > 0)
    }
}

/// What is to be minimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Requests that miss, over all tenants.
    TotalMisses,
    /// The mean latency of a request, over all tenants' requests.
    #[default]
    MeanLatency,
    /// The sum of the tenants' mean latencies, whatever their rates.
    SumOfLatencies,
    /// The sum of the tenants' 1 / IOPS.
    Iops,
}

/// What binds all tenants together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraints {
    /// Blocks that the cache has.
    pub cache_blocks: u32,
    /// Bytes in a block.
    pub block_bytes: u32,
    /// The share of WAW and WAR (0 to 1) from which on `auto` means `ro`.
    pub write_threshold: f64,
    /// The cache can hold dirty blocks: `wb` may be chosen.
    pub write_back: bool,
    /// Blocks per second that may be written to the SSD until the next epoch ends; none for no limit.
    pub ssd_writes_per_second: Option<f64>,
    /// What is to be minimised, where an allocator lets that be chosen: `centaur` and `convex-hull` do.
    pub objective: Objective,
    /// Seconds of a whole epoch; a decision may stand for less.
    pub epoch_seconds: f64,
    /// Seconds since the decision before; none where that is not known, or was a whole epoch ago.
    pub passed_seconds: Option<f64>,
}

impl Default for Constraints {
    /// Nothing to share out, in blocks of 4 KiB, with the papers' defaults.
    fn default() -> Self {
        Self {
            cache_blocks: 0,
            block_bytes: 4096,
            write_threshold: crate::DEFAULT_WRITE_THRESHOLD,
            write_back: true,
            ssd_writes_per_second: None,
            objective: Objective::default(),
            epoch_seconds: 600.0,
            passed_seconds: None,
        }
    }
}

/// What an allocator expects of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Mean seconds of a request.
    pub latency: f64,
    /// Requests that the SSD serves alone, 0 to 1.
    pub request_hit_ratio: f64,
    /// Blocks written to the SSD per second.
    pub ssd_writes_per_second: f64,
}

/// What a tenant gets until the next epoch ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// How many blocks it may hold; where partitions lend ([`crate::Layout::Lending`]), how many it gets back as soon as it wants them.
    pub quota_blocks: u32,
    /// How its cache works.
    pub mode: Mode,
    /// What is expected of it, where the allocator predicts anything.
    pub predicted: Option<Prediction>,
    /// Why, in one sentence with the numbers.
    pub reason: String,
}
