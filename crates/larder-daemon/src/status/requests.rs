//! What the status tells of guests' requests: how many, and how long they took.

use larder_io::{Histogram, Latencies, RequestCount, RequestStats};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestsOfKind {
    /// Those that have ended.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that ended with an error.
    pub errors: u64,
}

/// The requests of a volume's guests, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeRequests {
    /// Reads.
    pub read: RequestsOfKind,
    /// Writes.
    pub write: RequestsOfKind,
    /// Flushes.
    pub flush: RequestsOfKind,
    /// Discards.
    pub discard: RequestsOfKind,
    /// Write-zeroes.
    pub write_zeroes: RequestsOfKind,
}

impl VolumeRequests {
    /// Each kind, with its name.
    pub fn by_kind(&self) -> [(&'static str, RequestsOfKind); 5] {
        let Self { read, write, flush, discard, write_zeroes } = *self;
        [
            ("read", read),
            ("write", write),
            ("flush", flush),
            ("discard", discard),
            ("write_zeroes", write_zeroes),
        ]
    }
}

impl From<RequestStats> for VolumeRequests {
    fn from(stats: RequestStats) -> Self {
        let of = |RequestCount { requests, bytes, errors }| RequestsOfKind { requests, bytes, errors };
        Self {
            read: of(stats.read),
            write: of(stats.write),
            flush: of(stats.flush),
            discard: of(stats.discard),
            write_zeroes: of(stats.write_zeroes),
        }
    }
}

/// How long some requests took, from their arrival to their reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyOf {
    /// Those that ended well.
    pub requests: u64,
    /// Their mean.
    pub mean_seconds: Option<f64>,
    /// What half of them did not exceed. Quantiles are up to a quarter too large.
    pub p50_seconds: Option<f64>,
    /// What 99 % of them did not exceed.
    pub p99_seconds: Option<f64>,
}

impl From<&Histogram> for LatencyOf {
    fn from(histogram: &Histogram) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        Self {
            requests: histogram.count(),
            mean_seconds: histogram.mean_ns().map(seconds),
            p50_seconds: histogram.quantile_ns(0.5).map(seconds),
            p99_seconds: histogram.quantile_ns(0.99).map(seconds),
        }
    }
}

/// How long the requests of a tenant's guests took since the start. A hit is a request that the cache alone answered; a miss one that waited for the backing,
/// as every write does under `wt` and `ro`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantLatency {
    /// Reads that hit.
    pub read_hit: LatencyOf,
    /// Reads that missed.
    pub read_miss: LatencyOf,
    /// Writes that hit.
    pub write_hit: LatencyOf,
    /// Writes that missed.
    pub write_miss: LatencyOf,
    /// Flushes.
    pub flush: LatencyOf,
}

impl From<&Latencies> for TenantLatency {
    fn from(latencies: &Latencies) -> Self {
        Self {
            read_hit: (&latencies.read_hit).into(),
            read_miss: (&latencies.read_miss).into(),
            write_hit: (&latencies.write_hit).into(),
            write_miss: (&latencies.write_miss).into(),
            flush: (&latencies.flush).into(),
        }
    }
}
