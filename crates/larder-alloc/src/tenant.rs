//! What an allocator knows of a tenant, and what it says about it.

use larder_locality::EpochFindings;

/// What happens to a tenant's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePolicyChoice {
    /// Write-through: a write goes to the backing and to the cache.
    WriteThrough,
    /// Read-only: a write goes to the backing and invalidates.
    ReadOnly,
}

impl WritePolicyChoice {
    /// Its name in configuration and status: `wt`, `ro`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WriteThrough => "wt",
            Self::ReadOnly => "ro",
        }
    }
}

/// What the operator says about a tenant's write policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConfiguredPolicy {
    /// The allocator decides, anew every epoch.
    #[default]
    Auto,
    /// Always this one.
    Fixed(WritePolicyChoice),
}

/// One tenant, as an allocator sees it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    /// Its name.
    pub name: &'a str,
    /// The quota that it has now, in blocks.
    pub quota_blocks: u32,
    /// The write policy that it has now.
    pub write_policy: WritePolicyChoice,
    /// What it did in the epoch that ended; none where it was idle.
    pub findings: Option<&'a EpochFindings>,
    /// The write policy configured.
    pub configured_policy: ConfiguredPolicy,
    /// The quota configured, in blocks, if there is one.
    pub configured_quota_blocks: Option<u32>,
    /// The least that it gets, in blocks, while the cache has that much for everybody.
    pub min_blocks: u32,
}

impl<'a> Tenant<'a> {
    /// What the tenant did, unless it did nothing.
    pub(crate) fn active(&self) -> Option<&'a EpochFindings> {
        self.findings.filter(|findings| findings.accesses > 0)
    }
}

/// What binds all tenants together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraints {
    /// Blocks that the cache has.
    pub cache_blocks: u32,
    /// The share of WAW and WAR (0 to 1) from which on `auto` means `ro`.
    pub write_threshold: f64,
}

/// What a tenant gets until the next epoch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// How many blocks it may hold.
    pub quota_blocks: u32,
    /// What happens to its writes.
    pub write_policy: WritePolicyChoice,
    /// Why, in one sentence with the numbers.
    pub reason: String,
}
