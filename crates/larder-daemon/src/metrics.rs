//! The daemon as Prometheus sees it: everything that it tells of itself, in the text format, under names that [`docs/metrics.md`] promises.
//!
//! Base units (bytes, seconds); counters run from the start of the daemon and end in `_total`. Labels: `tenant`, `volume`, `op` (what was asked, or of a device),
//! `cause` (of a write to the SSD), `result` (hit or miss), `state`, `device`, `disk`. Blocks are told in bytes, but for hits and misses, which are counted in blocks.
//!
//! [`docs/metrics.md`]: https://github.com/larder-cache/larder/blob/main/docs/metrics.md

mod cache;
mod family;
mod tenants;
mod volumes;
mod wear;

use crate::collector::Observed;
use family::Page;

/// The type of the answer, as Prometheus knows it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page that a Prometheus reads.
pub fn page(observed: &Observed) -> String {
    let mut page = Page::default();
    daemon(&mut page, observed);
    cache::tell(&mut page, observed);
    wear::tell(&mut page, &observed.status.cache.wear);
    wear::tell_budget(&mut page, observed.status.cache.write_budget.as_ref());
    tenants::tell(&mut page, observed);
    volumes::tell(&mut page, observed);
    page.text()
}

/// The daemon itself, and the loop of an epoch.
fn daemon(page: &mut Page, observed: &Observed) {
    let status = &observed.status;
    page.gauge("larder_build_info", "Always 1; the labels tell the version.", |family| {
        family.add(&[("version", &status.version)], 1.0);
    });
    page.gauge("larder_uptime_seconds", "Seconds since the daemon was ready.", |family| {
        family.add(&[], status.uptime_seconds);
    });
    page.gauge("larder_allocator_info", "Always 1; the label names who decides sizes.", |family| {
        family.add(&[("allocator", &status.allocator)], 1.0);
    });
    page.counter("larder_epochs_total", "Epochs that have ended: so often it was decided.", |family| {
        family.add(&[], status.epoch as f64);
    });
    page.gauge("larder_epoch_seconds", "Length of an epoch, as configured.", |family| {
        family.add(&[], status.epoch_seconds);
    });
    page.counter(
        "larder_monitor_dropped_requests_total",
        "Requests that were served, but not analyzed, since the analyzer was behind.",
        |family| family.add(&[], status.monitor_dropped as f64),
    );
    page.gauge(
        "larder_analyzer_memory_bytes",
        "Memory that the analyzer holds for reuse distances.",
        |family| family.add(&[], status.analyzer_memory_bytes as f64),
    );
}
