//! Rates between two answers as the daemon gives them.

use serde_json::json;

use super::*;

/// The answer of a daemon that is up for so long, with these tenants: so many requests each, half of their blocks hits, 2 ms in the mean.
pub fn sample(uptime: f64, tenants: &[(&str, u64)]) -> Sample {
    let writes =
        |total: u64| json!({"fill": total, "guest_write": 0, "promotion": 0, "metadata": 0, "total": total});
    let kind = |requests: u64| json!({"requests": requests, "bytes": 0, "errors": 0});
    let latency = |requests: u64, mean: Option<f64>| json!({"requests": requests, "mean_seconds": mean, "p50_seconds": mean, "p99_seconds": mean});
    let tenant = |(name, requests): &(&str, u64)| {
        json!({
            "name": name, "quota_blocks": 100, "occupied_blocks": 50, "dirty_blocks": 1, "dirty_bytes": 4096, "write_policy": "wb",
            "replacement": "lru", "admission": "always", "read_hits": requests, "read_misses": requests, "write_hits": 0, "write_misses": 0,
            "evictions": 0, "invalidations": 0, "ssd_writes": writes(*requests), "ssd_write_bytes": writes(4096 * requests),
            "backing_reads": 0, "backing_writes": 0, "cache_errors": 0, "backing_errors": 0, "urd_blocks": 0, "trd_blocks": 0,
            "decision": {"epoch": 3, "quota_blocks": 100, "write_policy": "wb", "reason": "it pays"},
            "latency": {"read_hit": latency(requests / 2, Some(0.001)), "read_miss": latency(requests / 2, Some(0.003)),
                "write_hit": latency(0, None), "write_miss": latency(0, None), "flush": latency(0, None)},
            "volumes": [{"name": name, "backing": "/b", "export": null, "size_bytes": 1, "backing_read_latency_seconds": null, "backing_write_latency_seconds": null,
                "requests": {"read": kind(*requests), "write": kind(0), "flush": kind(0), "discard": kind(0), "write_zeroes": kind(0)}}],
        })
    };
    let status = json!({
        "version": "0.1.0", "uptime_seconds": uptime, "allocator": "larder", "epoch": 3, "epoch_seconds": 600.0, "monitor_dropped": 0, "analyzer_memory_bytes": 0,
        "cache": {"path": "/c", "size_bytes": 1 << 20, "block_bytes": 4096, "blocks": 256, "free_blocks": 100, "memory_bytes": 0, "state": "ok", "errors": 0,
            "read_latency_seconds": null, "write_latency_seconds": null},
        "tenants": tenants.iter().map(tenant).collect::<Vec<_>>(),
    });
    Sample::new(serde_json::from_value(status).expect("a status"))
}

#[test]
fn rates_are_those_between_two_answers() {
    let rows = rows(Some(&sample(10.0, &[("a", 1000)])), &sample(14.0, &[("a", 3000)]));
    let [row] = &rows[..] else { panic!("one tenant") };
    assert_eq!((row.iops, row.read_hit_ratio), (Some(500.0), Some(0.5)));
    assert_eq!(row.ssd_bytes_per_second, Some(500.0 * 4096.0));
    assert!(row.latency_seconds.is_some_and(|mean| (mean - 0.002).abs() < 1e-9), "{row:?}");
    assert_eq!((row.quota_bytes, row.occupied_bytes, row.dirty_bytes), (409_600, 204_800, 4096));
    assert_eq!(row.decision, "epoch 3: it pays");
}

#[test]
fn what_began_in_between_has_no_rates_yet() {
    let before = sample(10.0, &[("a", 1000)]);
    let none = |row: &Row| (row.iops, row.read_hit_ratio, row.ssd_bytes_per_second) == (None, None, None);
    let rows_of = |now: &Sample| rows(Some(&before), now);
    assert!(none(&rows_of(&sample(12.0, &[("b", 50)]))[0]), "a tenant that came");
    assert!(none(&rows_of(&sample(2.0, &[("a", 2000)]))[0]), "a daemon that began");
    assert!(none(&rows(None, &before)[0]));
    let idle = &rows_of(&sample(12.0, &[("a", 1000)]))[0];
    assert_eq!((idle.iops, idle.latency_seconds, idle.read_hit_ratio), (Some(0.0), None, None));
}
