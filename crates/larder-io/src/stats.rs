//! What a reactor counts, and what it tells of itself.

use crate::command::CommandKind;
use crate::frontend::VolumeInfo;
use larder_engine::{TenantId, TenantStats, VolumeId, WritePolicy};

/// Counters of one device (the cache, or a volume's backing) since the start, as this reactor used it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Reads ended.
    pub reads: u64,
    /// Nanoseconds that they took in total, from start to end.
    pub read_ns: u64,
    /// Writes ended.
    pub writes: u64,
    /// Nanoseconds that they took in total.
    pub write_ns: u64,
    /// Flushes, discards and write-zeroes ended.
    pub others: u64,
    /// Operations of any kind that failed.
    pub errors: u64,
    /// Operations now in flight or queued.
    pub in_flight: u32,
}

impl DeviceStats {
    /// Operations ended.
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Mean time of a read in nanoseconds; `None` before the first.
    pub fn read_mean_ns(&self) -> Option<u64> {
        self.read_ns.checked_div(self.reads)
    }

    /// Mean time of a write in nanoseconds; `None` before the first.
    pub fn write_mean_ns(&self) -> Option<u64> {
        self.write_ns.checked_div(self.writes)
    }

    #[inline]
    pub(crate) fn ended(&mut self, kind: CommandKind, elapsed_ns: u64, failed: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.errors += u64::from(failed);
        match kind {
            CommandKind::Read => self.reads += 1,
            CommandKind::Write => self.writes += 1,
            _ => self.others += 1,
        }
        self.add_time(kind, elapsed_ns);
    }

    #[inline]
    pub(crate) fn add_time(&mut self, kind: CommandKind, elapsed_ns: u64) {
        match kind {
            CommandKind::Read => self.read_ns += elapsed_ns,
            CommandKind::Write => self.write_ns += elapsed_ns,
            _ => {}
        }
    }
}

/// What a reactor tells of itself at one moment.
#[derive(Clone, Debug, Default)]
pub struct ReactorSnapshot {
    /// Its tenants, by identity.
    pub tenants: Vec<TenantSnapshot>,
    /// Its volumes, by identity.
    pub volumes: Vec<VolumeSnapshot>,
    /// The cache device as this reactor uses it.
    pub cache: DeviceStats,
    /// The cache device failed too often: this reactor no longer uses it.
    pub cache_failed: bool,
    /// Guest requests and fills in flight.
    pub in_flight: usize,
    /// Bytes of the engine's index, replacement and slots.
    pub engine_memory_bytes: usize,
    /// Bytes of data buffers in use.
    pub buffer_bytes: usize,
    /// Requests that the monitor could not hand on, since its receiver was behind.
    pub monitor_dropped: u64,
}

/// One tenant at one moment.
#[derive(Clone, Copy, Debug)]
pub struct TenantSnapshot {
    /// Which.
    pub tenant: TenantId,
    /// The engine's counters.
    pub stats: TenantStats,
    /// Blocks that it may hold.
    pub quota_blocks: u32,
    /// Blocks that it holds.
    pub occupied_blocks: u32,
    /// Blocks newer on the cache device than on the backing.
    pub dirty_blocks: u32,
    /// Its write policy.
    pub write_policy: WritePolicy,
}

/// One volume at one moment.
#[derive(Clone, Copy, Debug)]
pub struct VolumeSnapshot {
    /// Which.
    pub volume: VolumeId,
    /// Whose.
    pub tenant: TenantId,
    /// Its size and limits.
    pub info: VolumeInfo,
    /// Its backing.
    pub backing: DeviceStats,
}

/// How many of something are still open.
#[derive(Debug, Default)]
pub(crate) struct OpenCount(usize);

impl OpenCount {
    pub fn one_more(&mut self) {
        self.0 += 1;
    }

    pub fn one_less(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_per_kind() {
        let mut stats = DeviceStats { in_flight: 3, ..Default::default() };
        assert_eq!(stats.read_mean_ns(), None);
        stats.ended(CommandKind::Read, 100, false);
        stats.ended(CommandKind::Read, 300, true);
        stats.ended(CommandKind::Flush, 900, false);
        assert_eq!((stats.read_mean_ns(), stats.write_mean_ns()), (Some(200), None));
        assert_eq!((stats.operations(), stats.errors, stats.in_flight), (3, 1, 0));
    }
}
