//! What a run over tenants found.

use serde::Serialize;

/// Blocks written to the SSD, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SsdWritesByCause {
    /// They were read from the backing, and missed.
    pub fill: u64,
    /// The guest wrote them.
    pub guest_write: u64,
    /// A mover brought them in.
    pub promotion: u64,
    /// All of them.
    pub total: u64,
}

/// One tenant, or all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TenantResult {
    /// Its name; `total` for all.
    pub name: String,
    /// Reads and writes.
    pub requests: u64,
    /// Reads.
    pub read_requests: u64,
    /// Seconds from its start to the end of its last request.
    pub seconds: f64,
    /// Requests per second.
    pub iops: f64,
    /// Mean seconds of a request.
    pub mean_latency: f64,
    /// Mean seconds of a read.
    pub mean_read_latency: f64,
    /// Mean seconds of a write.
    pub mean_write_latency: f64,
    /// Half of the requests take no longer, in seconds.
    pub p50_latency: f64,
    /// 99 of 100 requests take no longer, in seconds.
    pub p99_latency: f64,
    /// Blocks read by the guest.
    pub block_reads: u64,
    /// Blocks read that were resident.
    pub read_hits: u64,
    /// Their share, 0 to 1.
    pub read_hit_ratio: f64,
    /// Requests that the SSD served alone, 0 to 1.
    pub request_hit_ratio: f64,
    /// Blocks written by the guest.
    pub block_writes: u64,
    /// Blocks written to the SSD.
    pub ssd_writes: SsdWritesByCause,
    /// Blocks read from the backing, for guests and for the mover, with what is cached between others.
    pub backing_reads: u64,
    /// Blocks written to the backing, by guests and when dirty blocks left.
    pub backing_writes: u64,
    /// Blocks held, in the mean over the time that the tenant was there; of the total, over the time until the last one left.
    pub mean_occupied_blocks: f64,
    /// Blocks allotted, in the mean over the same time; while nothing limited them, those held.
    pub mean_quota_blocks: f64,
}

/// What a tenant had in an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Achieved {
    /// Requests.
    pub requests: u64,
    /// Mean seconds of a request; none where there was none.
    pub latency: Option<f64>,
    /// Requests that the SSD served alone, 0 to 1; none where there was none.
    pub request_hit_ratio: Option<f64>,
    /// Requests per second.
    pub iops: f64,
    /// Blocks written to the SSD per second.
    pub ssd_writes_per_second: f64,
}

/// A tenant from one decision to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionRow {
    /// When it was decided, in seconds from the start; 0 for the start itself.
    pub seconds: f64,
    /// The tenant's index.
    pub tenant: usize,
    /// Blocks allotted.
    pub quota_blocks: u32,
    /// The quota is the whole cache and nobody's part of it: nothing limits what the tenant holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlimited: bool,
    /// Blocks held at the end.
    pub occupied_blocks: u32,
    /// Replacement and admission.
    pub caching: String,
    /// The write policy.
    pub write_policy: String,
    /// Mean seconds of a request that were expected, where anything was.
    pub predicted_latency: Option<f64>,
    /// The hit ratio by requests that was expected.
    pub predicted_request_hit_ratio: Option<f64>,
    /// The writes to the SSD, in blocks per second, that were expected.
    pub predicted_ssd_writes_per_second: Option<f64>,
    /// What came.
    pub achieved: Achieved,
    /// Why, in the allocator's words.
    pub reason: String,
}

/// How busy a device was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceUse {
    /// `ssd`, `backing`, or `backing of` a tenant.
    pub name: String,
    /// Operations.
    pub operations: u64,
    /// Seconds from the start until nothing more is begun: dirty blocks are written back after the last request.
    pub seconds: f64,
    /// The share of its capacity that was used in that time, 0 to 1.
    pub busy: f64,
}

/// A time without a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pause {
    /// When it begins, in seconds from the start.
    pub from_seconds: f64,
    /// How long it is.
    pub seconds: f64,
}

/// What was written to the SSD on a day of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayWrites {
    /// The day, from 0 on.
    pub day: u64,
    /// Blocks.
    pub blocks: u64,
}

/// What a run was allowed to write to the SSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AllowedWrites {
    /// Bytes in each period.
    pub period_bytes: f64,
    /// Seconds of a period.
    pub period_seconds: f64,
    /// Bytes in the whole run, of whose last period as much as the run has of it.
    pub bytes: f64,
    /// The share of these that was written, from 0 on.
    pub used: f64,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TenantsResult {
    /// The allocator.
    pub allocator: String,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Seconds between decisions.
    pub epoch_seconds: f64,
    /// Simulated seconds.
    pub seconds: f64,
    /// The longest time between two requests, whoever's; none where there are no two at different times.
    pub longest_pause: Option<Pause>,
    /// What was written to the SSD by day, where anything was.
    #[serde(skip)]
    pub ssd_writes_by_day: Vec<DayWrites>,
    /// What was allowed to be written to it, where that was limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssd_write_budget: Option<AllowedWrites>,
    /// All tenants together.
    pub total: TenantResult,
    /// Each.
    pub tenants: Vec<TenantResult>,
    /// Each tenant from each decision to the next, in order of time.
    pub decisions: Vec<DecisionRow>,
    /// Devices.
    pub devices: Vec<DeviceUse>,
    /// Decisions that failed: then everybody kept what they had.
    pub failed_decisions: u64,
    /// Why the last of them failed.
    pub failure: Option<String>,
    /// Processor seconds of the run; those for reading the traces are among them.
    pub cpu_seconds: f64,
    /// Those of them that analyzer and allocator took.
    pub control_cpu_seconds: f64,
}
