//! What was counted, told.

use super::super::latency::Latency;
use larder_alloc::control::WriteBudget;

use super::super::result::{AllowedWrites, SsdWritesByCause, TenantResult, TenantsResult};
use super::Run;
use super::guest::Guest;
use crate::Source;

impl<S: Source> Run<'_, S> {
    pub(super) fn finish(mut self, cpu_seconds: f64) -> TenantsResult {
        self.close_rows();
        let end = self.guests.iter().map(|guest| guest.last_done).max().unwrap_or(0).max(self.now);
        // Requests may be under way long after the last tenant has left.
        let there = |guest: &Guest<S>| guest.arrivals.start_ns() as f64 + guest.there_ns;
        let until = self.guests.iter().filter(|guest| guest.there_ns > 0.0).map(there).fold(1.0, f64::max);
        let names: Vec<String> = self.plan.tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let (mut reads, mut writes, mut total) = (Latency::new(), Latency::new(), TenantResult::default());
        let mut hits = 0;
        for guest in &self.guests {
            reads.merge(&guest.reads);
            writes.merge(&guest.writes);
            hits += guest.hits;
            add(&mut total, &guest.count);
            total.mean_occupied_blocks += guest.occupied_ns / until;
            total.mean_quota_blocks += guest.quota_ns / until;
        }
        let tell = |guest: &Guest<S>, name: &String| {
            let start = guest.arrivals.start_ns();
            let there = guest.last_done.saturating_sub(start);
            let mut result = guest.count.clone();
            result.mean_occupied_blocks = guest.occupied_ns / guest.there_ns.max(1.0);
            result.mean_quota_blocks = guest.quota_ns / guest.there_ns.max(1.0);
            conclude(result, name, &guest.reads, &guest.writes, guest.hits, there)
        };
        let tenants: Vec<_> = self.guests.iter().zip(&names).map(|(guest, name)| tell(guest, name)).collect();
        let devices = self.machine.used(end.max(self.written_back), &names);
        let total = conclude(total, "total", &reads, &writes, hits, end);
        let written = total.ssd_writes.total as f64 * f64::from(self.block.bytes());
        // One that a daemon had used up in part says nothing of what is left.
        let budget = self.plan.budget.filter(|_| self.plan.recorded.is_none());
        let seconds = self.plan.ends_seconds.unwrap_or(until / 1e9);
        let ssd_write_budget =
            budget.map(|budget| allowed(budget, seconds, self.plan.spends_evenly, written));
        TenantsResult {
            allocator: self.plan.allocator.clone(),
            cache_bytes: self.plan.cache_bytes,
            block_bytes: self.block.bytes(),
            epoch_seconds: self.profile.epoch_seconds,
            seconds: end as f64 / 1e9,
            longest_pause: self.idle.longest,
            ssd_writes_by_day: self.by_day,
            ssd_write_budget,
            total,
            tenants,
            decisions: self.rows,
            devices,
            failed_decisions: self.failed,
            failure: self.failure,
            cpu_seconds,
            control_cpu_seconds: self.control_cpu,
        }
    }
}

/// What may be written in so many seconds, and how far that was used.
fn allowed(budget: WriteBudget, seconds: f64, evenly: bool, written: f64) -> AllowedWrites {
    let WriteBudget { bytes: period_bytes, period_seconds } = budget;
    // A run that ends a moment before its only period has all of it; one of which nobody knew when it ends spent evenly.
    let periods = if evenly { seconds / period_seconds } else { (seconds / period_seconds).max(1.0) };
    let bytes = period_bytes * periods;
    AllowedWrites {
        period_bytes,
        period_seconds,
        bytes,
        used: if bytes > 0.0 { written / bytes } else { 0.0 },
    }
}

/// What was counted as counts.
fn add(sum: &mut TenantResult, one: &TenantResult) {
    sum.read_requests += one.read_requests;
    sum.block_reads += one.block_reads;
    sum.read_hits += one.read_hits;
    sum.block_writes += one.block_writes;
    sum.ssd_writes.fill += one.ssd_writes.fill;
    sum.ssd_writes.guest_write += one.ssd_writes.guest_write;
    sum.ssd_writes.promotion += one.ssd_writes.promotion;
    sum.backing_reads += one.backing_reads;
    sum.backing_writes += one.backing_writes;
}

/// What follows from the counts.
fn conclude(
    counts: TenantResult,
    name: &str,
    reads: &Latency,
    writes: &Latency,
    hits: u64,
    took_ns: u64,
) -> TenantResult {
    let mut all = reads.clone();
    all.merge(writes);
    let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let seconds = took_ns as f64 / 1e9;
    let SsdWritesByCause { fill, guest_write, promotion, .. } = counts.ssd_writes;
    TenantResult {
        name: name.to_owned(),
        requests: all.count(),
        seconds,
        iops: if seconds > 0.0 { all.count() as f64 / seconds } else { 0.0 },
        mean_latency: all.mean(),
        mean_read_latency: reads.mean(),
        mean_write_latency: writes.mean(),
        p50_latency: all.quantile(0.5),
        p99_latency: all.quantile(0.99),
        read_hit_ratio: ratio(counts.read_hits, counts.block_reads),
        request_hit_ratio: ratio(hits, all.count()),
        ssd_writes: SsdWritesByCause { total: fill + guest_write + promotion, ..counts.ssd_writes },
        ..counts
    }
}
