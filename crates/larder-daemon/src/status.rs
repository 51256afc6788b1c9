//! What the daemon tells of itself: the object of `larder status --json`.
//!
//! The names of the keys are a promise to scripts: keys are added, never renamed. Counters run from the start of the
//! daemon. "Blocks" are blocks of the cache (`cache.block_bytes`); latencies are means since the start, in seconds, and
//! `null` where nothing was measured.

mod requests;

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use requests::{LatencyOf, RequestsOfKind, TenantLatency, VolumeRequests};

use crate::wear::forecast::WearStatus;

/// The whole object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Version of the daemon.
    pub version: String,
    /// Seconds since the daemon was ready.
    pub uptime_seconds: f64,
    /// The allocator's name, as configured.
    pub allocator: String,
    /// Epochs that have ended.
    pub epoch: u64,
    /// Length of an epoch, in seconds.
    pub epoch_seconds: f64,
    /// Requests that the monitor lost because the analyzer was behind; they were served, but not counted in distances.
    pub monitor_dropped: u64,
    /// Bytes of memory that the analyzer holds for reuse distances; not part of `cache.memory_bytes`.
    pub analyzer_memory_bytes: u64,
    /// The cache device.
    pub cache: CacheStatus,
    /// The tenants, in the order of the configuration.
    pub tenants: Vec<TenantStatus>,
}

/// The cache device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheStatus {
    /// File or block device.
    pub path: String,
    /// Bytes of cached data that fit.
    pub size_bytes: u64,
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Blocks that fit.
    pub blocks: u32,
    /// Blocks that nobody holds.
    pub free_blocks: u32,
    /// Bytes of memory for index, replacement and slots, of all tenants.
    pub memory_bytes: u64,
    /// Is it used?
    pub state: CacheState,
    /// Failed operations on the cache device.
    pub errors: u64,
    /// Mean time of a read from the cache device.
    pub read_latency_seconds: Option<f64>,
    /// Mean time of a write to the cache device.
    pub write_latency_seconds: Option<f64>,
    /// Is it kept over restarts?
    #[serde(default)]
    pub kept: bool,
    /// Blocks that were cached already when the daemon started, and still could be used; those of all tenants.
    #[serde(default)]
    pub warm_blocks: u32,
    /// Bytes written to the SSD, by cause: those of all tenants, and the cache's own records (`metadata`), which belong to none.
    #[serde(default)]
    pub ssd_write_bytes: SsdWrites,
    /// Where the device has failed: the file with the ranges of the volumes that it alone has; else `null`.
    #[serde(default)]
    pub loss_file: Option<String>,
    /// How far the SSD under it is worn, and for how long it will last.
    #[serde(default)]
    pub wear: WearStatus,
    /// What may be written to the SSD (`control.write_budget`), and how far that is used up; `null` without a limit.
    #[serde(default)]
    pub write_budget: Option<WriteBudgetStatus>,
}

/// The budget of SSD writes, all causes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WriteBudgetStatus {
    /// As it is configured or set: `0.5DWPD/5y`, `200GiB/day`.
    pub configured: String,
    /// Bytes that may be written in a period.
    pub bytes: u64,
    /// Seconds of a period.
    pub period_seconds: f64,
    /// Bytes that were written in this one.
    pub written_bytes: u64,
    /// Bytes that are left of it.
    pub left_bytes: u64,
    /// Bytes that may be written at once: the rest is kept for the rest of the period.
    pub room_bytes: u64,
    /// Seconds until the next period.
    pub rest_seconds: f64,
}

/// The health of the cache device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// No operation on it has failed.
    Ok,
    /// Operations failed, and it is still used.
    Degraded,
    /// At least one reactor gave it up: everything there goes to the backings.
    Failed,
}

impl CacheState {
    /// The name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantStatus {
    /// Its name.
    pub name: String,
    /// Blocks that it may hold. Under `unified` an equal part, in name only: all tenants share one cache; under `combined` its own part, beside the half that all share.
    pub quota_blocks: u32,
    /// Blocks that it holds; above the quota for a short while after that was lowered, and as long as it likes where partitions lend or are shared.
    pub occupied_blocks: u32,
    /// Blocks that are newer on the cache device than on the backing.
    pub dirty_blocks: u32,
    /// The same in bytes.
    #[serde(default)]
    pub dirty_bytes: u64,
    /// Blocks that were cached already when the daemon started, and still could be used.
    #[serde(default)]
    pub warm_blocks: u32,
    /// The policy in force: `wb`, `wt` or `ro`.
    pub write_policy: String,
    /// Which of its blocks leaves: `lru`, `arc` ...
    pub replacement: String,
    /// Which absent block may enter: `always`, `larc` ...
    pub admission: String,
    /// When they enter: `on-demand` at a miss, or `batched`, by a mover.
    #[serde(default)]
    pub population: String,
    /// Block reads served without reading the backing.
    pub read_hits: u64,
    /// Block reads that read the backing.
    pub read_misses: u64,
    /// Block writes that found the block cached.
    pub write_hits: u64,
    /// Block writes that did not.
    pub write_misses: u64,
    /// Blocks that left to make room or because the quota fell.
    pub evictions: u64,
    /// Blocks that left because a write, discard or write-zeroes made them stale.
    pub invalidations: u64,
    /// Blocks written to the SSD, by cause.
    pub ssd_writes: SsdWrites,
    /// Bytes written to the SSD, by cause.
    pub ssd_write_bytes: SsdWrites,
    /// Blocks that did not enter the cache, for the budget of SSD writes.
    #[serde(default)]
    pub budget_refused_blocks: u64,
    /// Writes of blocks to cached blocks that went to the backing alone, for the budget of SSD writes.
    #[serde(default)]
    pub budget_diverted_blocks: u64,
    /// Blocks that did neither: their requests gain less than others for what they write, under a budget of SSD writes.
    #[serde(default)]
    pub budget_turned_away_blocks: u64,
    /// Blocks read from the backings; also those that are cached and lie between others (misses are told apart).
    pub backing_reads: u64,
    /// Blocks written to the backings.
    pub backing_writes: u64,
    /// Failed operations on the cache device, and dirty blocks whose data on it was found damaged.
    pub cache_errors: u64,
    /// Failed operations on the backings.
    pub backing_errors: u64,
    /// The size that the useful reuse distance of the last epoch asks for, in blocks; 0 before the first epoch ends, or
    /// where nothing was read again.
    pub urd_blocks: u64,
    /// The size that the plain reuse distance of the last epoch asks for, in blocks; 0 likewise.
    pub trd_blocks: u64,
    /// How long its guests' requests took.
    #[serde(default)]
    pub latency: TenantLatency,
    /// The last decision.
    pub decision: DecisionStatus,
    /// Its volumes, in the order of the configuration.
    pub volumes: Vec<VolumeStatus>,
}

impl TenantStatus {
    /// Block reads served from the cache over all block reads, from 0 to 1; `None` before the first read.
    pub fn read_hit_ratio(&self) -> Option<f64> {
        ratio(self.read_hits, self.read_misses)
    }

    /// Block writes that found the block cached over all block writes, from 0 to 1; `None` before the first write.
    pub fn write_hit_ratio(&self) -> Option<f64> {
        ratio(self.write_hits, self.write_misses)
    }
}

fn ratio(hits: u64, misses: u64) -> Option<f64> {
    let all = hits + misses;
    (all > 0).then(|| hits as f64 / all as f64)
}

/// Writes to the SSD by cause, in blocks or in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SsdWrites {
    /// Copies of what was read from the backing.
    pub fill: u64,
    /// What guests wrote.
    pub guest_write: u64,
    /// Blocks moved into the cache ahead of use.
    pub promotion: u64,
    /// The cache's own records.
    pub metadata: u64,
    /// All of these.
    pub total: u64,
}

impl SsdWrites {
    /// With its total.
    pub fn new(fill: u64, guest_write: u64, promotion: u64, metadata: u64) -> Self {
        Self { fill, guest_write, promotion, metadata, total: fill + guest_write + promotion + metadata }
    }
}

impl Add for SsdWrites {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(
            self.fill + other.fill,
            self.guest_write + other.guest_write,
            self.promotion + other.promotion,
            self.metadata + other.metadata,
        )
    }
}

impl AddAssign for SsdWrites {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What was decided for a tenant, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecisionStatus {
    /// The epoch at whose end it was decided, from 1; 0 for what the tenant started with.
    pub epoch: u64,
    /// Blocks that the tenant may hold; what that means where tenants share is said in the tenant's own `quota_blocks`.
    pub quota_blocks: u32,
    /// `wb`, `wt`, `wt-noalloc` or `ro`.
    pub write_policy: String,
    /// The mean seconds of a request that are expected; `null` where the allocator expects nothing.
    #[serde(default)]
    pub predicted_latency_seconds: Option<f64>,
    /// The share of requests (0 to 1) that the SSD is expected to serve alone; likewise.
    #[serde(default)]
    pub predicted_request_hit_ratio: Option<f64>,
    /// Why, in a sentence.
    pub reason: String,
}

/// One volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VolumeStatus {
    /// Its name, also that of its NBD export.
    pub name: String,
    /// The file, block device or NBD URI that holds its truth.
    pub backing: String,
    /// The NBD URI under which clients reach it; `null` where it is not served over NBD.
    pub export: Option<String>,
    /// The socket on which a hypervisor finds it as a vhost-user-blk device; `null` where it is not served so.
    #[serde(default)]
    pub vhost_user: Option<String>,
    /// The block device of this host that it is; `null` where it is not served so, or cannot be.
    #[serde(default)]
    pub ublk: Option<String>,
    /// Why it is no block device, though it is configured to be one; else `null`.
    #[serde(default)]
    pub ublk_problem: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What its guests have asked.
    #[serde(default)]
    pub requests: VolumeRequests,
    /// Mean time of a read from the backing.
    pub backing_read_latency_seconds: Option<f64>,
    /// Mean time of a write to the backing.
    pub backing_write_latency_seconds: Option<f64>,
    /// Is it served?
    #[serde(default)]
    pub state: VolumeState,
    /// Blocks that are newer on the cache device than on the backing: they wait to be written back.
    #[serde(default)]
    pub dirty_blocks: u32,
    /// The same in bytes.
    #[serde(default)]
    pub dirty_bytes: u64,
    /// `off`; `once` while all that is dirty is written back; `on` while it is and nothing becomes dirty, `done` when the backing has all of it.
    #[serde(default)]
    pub draining: String,
    /// Nothing changes it until it is thawed: writes wait.
    #[serde(default)]
    pub quiet: bool,
    /// Its guest is leaving for another host (`larder volume migrate`).
    #[serde(default)]
    pub migrating: bool,
    /// Clients that use it now: NBD connections and hypervisors; who has its block device open is not counted.
    #[serde(default)]
    pub clients: u64,
    /// The cache device is slower than the backing: reads of clean blocks pass it by until it is faster again.
    #[serde(default)]
    pub slow_cache: bool,
    /// With `ordered = true`: how many epochs the backing is behind, each what was written between two flushes; else `null`.
    #[serde(default)]
    pub epochs_behind: Option<u64>,
    /// Seconds since writing back first failed, about, where the backing fails and blocks wait; else `null`.
    #[serde(default)]
    pub backing_failing_seconds: Option<f64>,
    /// Its backing has failed since it was last asked for that all is written back.
    #[serde(default)]
    pub backing_failed_since_asked: bool,
    /// Dirty blocks whose data on the cache device is damaged: reads of them fail, and they are never written back, until the guest writes or discards them.
    #[serde(default)]
    pub damaged_blocks: u32,
    /// Bytes that only the failed cache device has, in a volume that has failed; else the bytes of `damaged_blocks`.
    #[serde(default)]
    pub lost_bytes: u64,
    /// The number of ranges that they are; `larder status --lost VOLUME` lists them.
    #[serde(default)]
    pub lost_ranges: u64,
}

/// Whether a volume is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeState {
    /// It is.
    #[default]
    Ok,
    /// It is, but for dirty blocks whose data on the cache device is damaged: reads of them fail.
    Damaged,
    /// It is not: the cache device failed with data that the backing does not have. Every request fails.
    Failed,
}

impl VolumeState {
    /// The name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Damaged => "damaged",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A status with one tenant and one volume.
    fn example() -> Status {
        let volume = VolumeStatus {
            name: "db-root".into(),
            backing: "/srv/db.img".into(),
            export: Some("nbd+unix:///db-root?socket=/run/larder/db-root.sock".into()),
            vhost_user: Some("/run/larder/db-root.vhost".into()),
            ublk: Some("/dev/larder/db-root".into()),
            ublk_problem: None,
            size_bytes: 1 << 30,
            requests: VolumeRequests::default(),
            backing_read_latency_seconds: Some(0.006),
            backing_write_latency_seconds: None,
            state: VolumeState::Ok,
            dirty_blocks: 7,
            dirty_bytes: 28_672,
            draining: "off".into(),
            quiet: false,
            migrating: false,
            clients: 0,
            slow_cache: false,
            epochs_behind: None,
            backing_failing_seconds: None,
            backing_failed_since_asked: false,
            damaged_blocks: 0,
            lost_bytes: 0,
            lost_ranges: 0,
        };
        let decision = DecisionStatus {
            epoch: 3,
            quota_blocks: 2048,
            write_policy: "wt".into(),
            predicted_latency_seconds: Some(0.5),
            predicted_request_hit_ratio: None,
            reason: "fits".into(),
        };
        let tenant = TenantStatus {
            name: "db".into(),
            quota_blocks: 2048,
            occupied_blocks: 1000,
            dirty_blocks: 0,
            dirty_bytes: 0,
            warm_blocks: 900,
            write_policy: "wt".into(),
            replacement: "lru".into(),
            admission: "always".into(),
            population: "on-demand".into(),
            read_hits: 3,
            read_misses: 1,
            write_hits: 0,
            write_misses: 0,
            evictions: 0,
            invalidations: 0,
            ssd_writes: SsdWrites::new(4, 5, 0, 0),
            ssd_write_bytes: SsdWrites::new(16_384, 20_480, 0, 0),
            budget_refused_blocks: 0,
            budget_diverted_blocks: 0,
            budget_turned_away_blocks: 0,
            backing_reads: 1,
            backing_writes: 5,
            cache_errors: 0,
            backing_errors: 0,
            urd_blocks: 2,
            trd_blocks: 5,
            latency: TenantLatency::default(),
            decision,
            volumes: vec![volume],
        };
        let cache = CacheStatus {
            path: "/var/lib/larder/cache.img".into(),
            size_bytes: 1 << 24,
            block_bytes: 4096,
            blocks: 4096,
            free_blocks: 3096,
            memory_bytes: 81_920,
            state: CacheState::Ok,
            errors: 0,
            read_latency_seconds: Some(0.0001),
            write_latency_seconds: None,
            kept: true,
            warm_blocks: 900,
            ssd_write_bytes: SsdWrites::new(16_384, 20_480, 0, 512),
            loss_file: None,
            wear: WearStatus::default(),
            write_budget: None,
        };
        Status {
            version: "0.1.0".into(),
            uptime_seconds: 1.5,
            allocator: "eci".into(),
            epoch: 3,
            epoch_seconds: 600.0,
            monitor_dropped: 0,
            analyzer_memory_bytes: 65_536,
            cache,
            tenants: vec![tenant],
        }
    }

    /// The keys of a JSON object.
    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value.as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn the_promised_keys_are_there() {
        let json = serde_json::to_value(example()).expect("serializable");
        for key in [
            "size_bytes",
            "block_bytes",
            "blocks",
            "free_blocks",
            "memory_bytes",
            "state",
            "kept",
            "warm_blocks",
            "ssd_write_bytes",
        ] {
            assert!(keys(&json["cache"]).contains(&key), "cache.{key}");
        }
        let tenant = &json["tenants"][0];
        for key in "name quota_blocks occupied_blocks dirty_blocks warm_blocks write_policy replacement admission population read_hits read_misses write_hits \
            write_misses evictions ssd_writes backing_reads backing_writes urd_blocks trd_blocks decision volumes"
            .split_whitespace()
        {
            assert!(keys(tenant).contains(&key), "tenant.{key}");
        }
        let decision = [
            "epoch",
            "predicted_latency_seconds",
            "predicted_request_hit_ratio",
            "quota_blocks",
            "reason",
            "write_policy",
        ];
        assert_eq!(keys(&tenant["decision"]), decision);
        assert_eq!(keys(&tenant["ssd_writes"]), ["fill", "guest_write", "metadata", "promotion", "total"]);
        assert_eq!(json["cache"]["state"], "ok");
        assert_eq!(tenant["ssd_writes"]["total"], 9);
    }

    #[test]
    fn what_is_told_is_understood() {
        let json = serde_json::to_string(&example()).expect("serializable");
        assert_eq!(serde_json::from_str::<Status>(&json).expect("valid"), example());
    }

    #[test]
    fn ratios_name_nothing_before_there_is_something() {
        let tenant = &example().tenants[0];
        assert_eq!((tenant.read_hit_ratio(), tenant.write_hit_ratio()), (Some(0.75), None));
    }
}
