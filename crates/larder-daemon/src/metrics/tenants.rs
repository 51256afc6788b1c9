//! Metrics of the tenants: what they hold, how often they hit, what they cost in SSD writes, what was decided for them, and how long their guests waited.

use larder_engine::TenantStats;
use larder_io::{Latencies, ReactorSnapshot};

use super::family::{Family, Page};
use crate::collector::Observed;
use crate::status::TenantStatus;

/// A tenant with what only its reactor tells.
struct Told<'a> {
    status: &'a TenantStatus,
    stats: &'a TenantStats,
    latencies: Option<&'a Latencies>,
}

pub(super) fn tell(page: &mut Page, observed: &Observed) {
    let tenants: Vec<Told<'_>> =
        observed.status.tenants.iter().filter_map(|status| find(observed, status)).collect();
    let block_bytes = f64::from(observed.status.cache.block_bytes);
    sizes(page, &tenants, block_bytes);
    decisions(page, &tenants, block_bytes);
    blocks(page, &tenants);
    writes(page, &tenants);
    errors(page, &tenants);
    latencies(page, &tenants);
}

fn find<'a>(observed: &'a Observed, status: &'a TenantStatus) -> Option<Told<'a>> {
    let (_, seat) = observed.hosted.tenants().find(|(config, _)| config.name == status.name)?;
    let snapshot: &ReactorSnapshot = observed.snapshots.get(seat.place.reactor)?;
    let of_it = snapshot.tenants.iter().find(|tenant| tenant.tenant == seat.place.tenant)?;
    let latencies = snapshot.latencies.iter().find(|(tenant, _)| *tenant == seat.place.tenant);
    Some(Told { status, stats: &of_it.stats, latencies: latencies.map(|(_, latencies)| &**latencies) })
}

/// Something of each tenant.
fn each(family: &mut Family, tenants: &[Told<'_>], value: impl Fn(&Told<'_>) -> f64) {
    tenants.iter().for_each(|tenant| family.add(&[("tenant", &tenant.status.name)], value(tenant)));
}

/// Something that not each tenant has.
fn some(family: &mut Family, tenants: &[Told<'_>], value: impl Fn(&Told<'_>) -> Option<f64>) {
    for tenant in tenants {
        family.add_some(&[("tenant", &tenant.status.name)], value(tenant));
    }
}

fn sizes(page: &mut Page, tenants: &[Told<'_>], block_bytes: f64) {
    page.gauge("larder_tenant_quota_bytes", "Bytes that the tenant may hold.", |family| {
        each(family, tenants, |tenant| f64::from(tenant.status.quota_blocks) * block_bytes);
    });
    page.gauge("larder_tenant_occupied_bytes", "Bytes that the tenant holds.", |family| {
        each(family, tenants, |tenant| f64::from(tenant.status.occupied_blocks) * block_bytes);
    });
    page.gauge(
        "larder_tenant_dirty_bytes",
        "Bytes that are newer on the cache device than on the backings.",
        |family| each(family, tenants, |tenant| tenant.status.dirty_bytes as f64),
    );
    page.gauge("larder_tenant_policy_info", "Always 1; the labels tell how it is cached now.", |family| {
        for TenantStatus { name, write_policy, replacement, admission, .. } in
            tenants.iter().map(|tenant| tenant.status)
        {
            let labels = [
                ("tenant", name.as_str()),
                ("write_policy", write_policy),
                ("replacement", replacement),
                ("admission", admission),
            ];
            family.add(&labels, 1.0);
        }
    });
}

fn decisions(page: &mut Page, tenants: &[Told<'_>], block_bytes: f64) {
    page.gauge(
        "larder_tenant_decision_epoch",
        "The epoch at whose end the last decision was made; 0 for what it began with.",
        |family| each(family, tenants, |tenant| tenant.status.decision.epoch as f64),
    );
    page.gauge("larder_tenant_decision_quota_bytes", "The quota of the last decision.", |family| {
        each(family, tenants, |tenant| f64::from(tenant.status.decision.quota_blocks) * block_bytes);
    });
    page.gauge(
        "larder_tenant_decision_predicted_latency_seconds",
        "The mean time of a request that the last decision expects, where it expects any.",
        |family| some(family, tenants, |tenant| tenant.status.decision.predicted_latency_seconds),
    );
    page.gauge(
        "larder_tenant_decision_predicted_hit_ratio",
        "The share of requests that the last decision expects the cache to answer alone, where it expects any.",
        |family| some(family, tenants, |tenant| tenant.status.decision.predicted_request_hit_ratio),
    );
    page.gauge(
        "larder_tenant_useful_reuse_distance_bytes",
        "The size that the useful reuse distance of the last epoch asks for.",
        |family| each(family, tenants, |tenant| tenant.status.urd_blocks as f64 * block_bytes),
    );
    page.gauge(
        "larder_tenant_reuse_distance_bytes",
        "The size that the plain reuse distance of the last epoch asks for.",
        |family| each(family, tenants, |tenant| tenant.status.trd_blocks as f64 * block_bytes),
    );
}

/// Something of each tenant, for reads and for writes.
fn by_op(family: &mut Family, tenants: &[Told<'_>], value: impl Fn(&TenantStats) -> [u64; 2]) {
    for tenant in tenants {
        let [read, write] = value(tenant.stats);
        family.add(&[("tenant", &tenant.status.name), ("op", "read")], read as f64);
        family.add(&[("tenant", &tenant.status.name), ("op", "write")], write as f64);
    }
}

fn blocks(page: &mut Page, tenants: &[Told<'_>]) {
    page.counter(
        "larder_tenant_block_hits_total",
        "Blocks that were read without the backing, or found cached by a write.",
        |family| by_op(family, tenants, |stats| [stats.read_hits, stats.write_hits]),
    );
    page.counter(
        "larder_tenant_block_misses_total",
        "Blocks that were read from the backing, or not found cached by a write.",
        |family| by_op(family, tenants, |stats| [stats.read_misses, stats.write_misses]),
    );
    page.counter(
        "larder_tenant_backing_blocks_total",
        "Blocks read from the backings (also cached ones that lie between others), and written to them.",
        |family| by_op(family, tenants, |stats| [stats.backing_reads, stats.backing_writes]),
    );
    page.counter(
        "larder_tenant_filled_blocks_total",
        "Blocks copied into the cache after a miss.",
        |family| {
            each(family, tenants, |tenant| tenant.stats.ssd_fill_blocks as f64);
        },
    );
    page.counter(
        "larder_tenant_evicted_blocks_total",
        "Blocks that left to make room, or because the quota fell.",
        |family| each(family, tenants, |tenant| tenant.stats.evictions as f64),
    );
    page.counter(
        "larder_tenant_invalidated_blocks_total",
        "Blocks that left because they were stale.",
        |family| each(family, tenants, |tenant| tenant.stats.invalidations as f64),
    );
    page.counter(
        "larder_tenant_budget_refused_blocks_total",
        "Blocks that did not enter the cache, for the budget of SSD writes.",
        |family| each(family, tenants, |tenant| tenant.stats.refused_blocks as f64),
    );
    page.counter(
        "larder_tenant_budget_diverted_blocks_total",
        "Writes of blocks to cached blocks that went to the backing alone, for the budget of SSD writes.",
        |family| each(family, tenants, |tenant| tenant.stats.diverted_blocks as f64),
    );
    page.counter(
        "larder_tenant_budget_turned_away_blocks_total",
        "Blocks that went past the cache since their requests gain less than others for what they write, under a budget of SSD writes.",
        |family| each(family, tenants, |tenant| tenant.stats.turned_away_blocks as f64),
    );
    page.counter("larder_tenant_cleaned_blocks_total", "Dirty blocks that were written back.", |family| {
        each(family, tenants, |tenant| tenant.stats.cleaned_blocks as f64);
    });
}

fn writes(page: &mut Page, tenants: &[Told<'_>]) {
    page.counter("larder_tenant_ssd_written_bytes_total", "Bytes written to the SSD, by cause.", |family| {
        for TenantStatus { name, ssd_write_bytes: bytes, .. } in tenants.iter().map(|tenant| tenant.status) {
            for (cause, bytes) in
                [("fill", bytes.fill), ("guest_write", bytes.guest_write), ("promotion", bytes.promotion)]
            {
                family.add(&[("tenant", name), ("cause", cause)], bytes as f64);
            }
        }
    });
}

fn errors(page: &mut Page, tenants: &[Told<'_>]) {
    page.counter("larder_tenant_device_errors_total", "Failed operations on a device.", |family| {
        for Told { status, stats, .. } in tenants {
            for (device, errors) in [("cache", stats.cache_errors), ("backing", stats.backing_errors)] {
                family.add(&[("tenant", &status.name), ("device", device)], errors as f64);
            }
        }
    });
    page.counter(
        "larder_tenant_checksum_errors_total",
        "Blocks read from the cache device that were not what had been written there.",
        |family| each(family, tenants, |tenant| tenant.stats.checksum_errors as f64),
    );
    page.counter(
        "larder_tenant_lost_blocks_total",
        "Dirty blocks that could not be read back from the cache device.",
        |family| each(family, tenants, |tenant| tenant.stats.lost_blocks as f64),
    );
}

fn latencies(page: &mut Page, tenants: &[Told<'_>]) {
    page.histogram(
        "larder_tenant_request_duration_seconds",
        "Guests' requests that ended well, from arrival to reply. A hit was answered by the cache alone, a miss waited for the backing.",
        |family| {
            for Told { status, latencies, .. } in tenants {
                let Some(latencies) = latencies else { continue };
                let tenant = ("tenant", status.name.as_str());
                for (op, result, histogram) in [
                    ("read", "hit", &latencies.read_hit),
                    ("read", "miss", &latencies.read_miss),
                    ("write", "hit", &latencies.write_hit),
                    ("write", "miss", &latencies.write_miss),
                ] {
                    family.add_histogram(&[tenant, ("op", op), ("result", result)], histogram);
                }
                family.add_histogram(&[tenant, ("op", "flush")], &latencies.flush);
            }
        },
    );
}
