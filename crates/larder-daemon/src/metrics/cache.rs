//! Metrics of the cache device, and of what the daemon writes to it for itself.

use larder_io::DeviceStats;

use super::family::{Page, flag};
use crate::collector::{self, Observed};
use crate::status::CacheState;

pub(super) fn tell(page: &mut Page, observed: &Observed) {
    let cache = &observed.status.cache;
    let device: DeviceStats = collector::sum(observed.snapshots.iter().map(|snapshot| &snapshot.cache));
    let block_bytes = f64::from(cache.block_bytes);
    page.gauge("larder_cache_size_bytes", "Bytes of cached data that fit.", |family| {
        family.add(&[], cache.size_bytes as f64);
    });
    page.gauge("larder_cache_block_bytes", "Bytes in a block.", |family| family.add(&[], block_bytes));
    page.gauge("larder_cache_free_bytes", "Bytes of the cache that nobody holds.", |family| {
        family.add(&[], f64::from(cache.free_blocks) * block_bytes);
    });
    page.gauge("larder_cache_memory_bytes", "Memory for index, replacement and slots.", |family| {
        family.add(&[], cache.memory_bytes as f64);
    });
    page.gauge("larder_cache_state", "1 for the state in which the cache device is.", |family| {
        for state in [CacheState::Ok, CacheState::Degraded, CacheState::Failed] {
            family.add(&[("state", state.as_str())], flag(state == cache.state));
        }
    });
    page.counter("larder_cache_errors_total", "Failed operations on the cache device.", |family| {
        family.add(&[], cache.errors as f64);
    });
    page.gauge("larder_cache_operations_in_flight", "Operations on the cache device now.", |family| {
        family.add(&[], f64::from(device.in_flight));
    });
    page.summary(
        "larder_cache_operation_duration_seconds",
        "Reads and writes of the cache device, and the time that they took.",
        |family| {
            family.add_times(&[("op", "read")], device.reads, device.read_ns);
            family.add_times(&[("op", "write")], device.writes, device.write_ns);
        },
    );
    page.counter(
        "larder_cache_metadata_written_bytes_total",
        "Bytes of the cache's own records written to the SSD.",
        |family| family.add(&[], cache.ssd_write_bytes.metadata as f64),
    );
}
