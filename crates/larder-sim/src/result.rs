//! What a simulation found, as it is written to JSON.

use serde::Serialize;

use crate::Counters;

/// One run: a cache of one size under one policy, over the whole trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The replacement policy.
    pub policy: String,
    /// What may enter.
    pub admission: String,
    /// The write policy.
    pub write_policy: String,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// What was counted after the warm-up.
    #[serde(flatten)]
    pub totals: Totals,
    /// Distinct blocks that the trace's reads and writes touch, the warm-up's among them.
    pub footprint_blocks: u64,
    /// Resident blocks at the end.
    pub resident_blocks: u64,
    /// Those of them that the backing does not have yet.
    pub dirty_blocks: u64,
    /// Processor time that this run took, without reading the trace.
    pub seconds: f64,
    /// The same counts interval by interval, where intervals were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<IntervalResult>,
}

/// The counts of one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalResult {
    /// Reads and writes of the trace before the interval.
    pub first_request: u64,
    /// When its first request was issued, in seconds from the trace's first request.
    pub start_seconds: f64,
    /// What was counted in it.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Blocks written to the SSD, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SsdWrites {
    /// They were read from the backing.
    pub fill: u64,
    /// The guest wrote them.
    pub guest_write: u64,
    /// Both.
    pub total: u64,
}

/// [`Counters`] with what follows from them. Requests are reads and writes; all else is in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields that are not described here are those of `Counters`")]
pub struct Totals {
    pub requests: u64,
    pub request_hits: u64,
    /// `request_hits` / `requests`; none without requests.
    pub request_hit_ratio: Option<f64>,
    pub read_requests: u64,
    pub read_request_hits: u64,
    pub flushes: u64,
    pub discards: u64,
    pub block_reads: u64,
    pub block_writes: u64,
    pub read_hits: u64,
    /// `read_hits` / `block_reads`; none without reads.
    pub read_hit_ratio: Option<f64>,
    pub write_hits: u64,
    pub fills: u64,
    pub evictions: u64,
    pub dirty_evictions: u64,
    pub invalidations: u64,
    pub discarded: u64,
    /// What the SSD was written, in blocks.
    pub ssd_writes: SsdWrites,
    pub backing_reads: u64,
    pub backing_writes: u64,
}

impl From<Counters> for Totals {
    fn from(counters: Counters) -> Self {
        Self {
            requests: counters.requests,
            request_hits: counters.request_hits,
            request_hit_ratio: ratio(counters.request_hits, counters.requests),
            read_requests: counters.read_requests,
            read_request_hits: counters.read_request_hits,
            flushes: counters.flushes,
            discards: counters.discards,
            block_reads: counters.block_reads,
            block_writes: counters.block_writes,
            read_hits: counters.read_hits,
            read_hit_ratio: ratio(counters.read_hits, counters.block_reads),
            write_hits: counters.write_hits,
            fills: counters.fills,
            evictions: counters.evictions,
            dirty_evictions: counters.dirty_evictions,
            invalidations: counters.invalidations,
            discarded: counters.discarded,
            ssd_writes: SsdWrites {
                fill: counters.fills,
                guest_write: counters.guest_writes,
                total: counters.ssd_writes(),
            },
            backing_reads: counters.backing_reads,
            backing_writes: counters.backing_writes,
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_name_their_parts() {
        let counters = Counters {
            requests: 4,
            request_hits: 1,
            block_reads: 8,
            read_hits: 6,
            fills: 2,
            ..Counters::default()
        };
        let totals = Totals::from(Counters { guest_writes: 5, ..counters });
        assert_eq!((totals.request_hit_ratio, totals.read_hit_ratio), (Some(0.25), Some(0.75)));
        assert_eq!(totals.ssd_writes, SsdWrites { fill: 2, guest_write: 5, total: 7 });
        let nothing = Totals::from(Counters::default());
        assert_eq!((nothing.request_hit_ratio, nothing.read_hit_ratio), (None, None));
    }

    #[test]
    fn json_has_the_agreed_keys() {
        let result = RunResult {
            policy: "lru".into(),
            admission: "always".into(),
            write_policy: "wb".into(),
            cache_bytes: 8192,
            block_bytes: 4096,
            totals: Counters::default().into(),
            footprint_blocks: 3,
            resident_blocks: 2,
            dirty_blocks: 1,
            seconds: 0.5,
            series: Vec::new(),
        };
        let json = serde_json::to_value(&result).unwrap();
        let keys = "policy admission write_policy cache_bytes block_bytes requests request_hits block_reads block_writes \
                    read_hits write_hits fills evictions dirty_evictions ssd_writes backing_reads backing_writes \
                    footprint_blocks seconds";
        assert!(keys.split_whitespace().all(|key| json.get(key).is_some()), "{json}");
        assert_eq!(json["ssd_writes"], serde_json::json!({"fill": 0, "guest_write": 0, "total": 0}));
        assert!(json.get("series").is_none());
    }
}
