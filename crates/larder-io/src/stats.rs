//! What a reactor counts, and what it tells of itself.

use crate::command::CommandKind;
use crate::frontend::VolumeInfo;
use crate::requests::{Latencies, RequestStats};
use larder_engine::{
    Drain, OfferedBlocks, SHAPES, SessionMark, TenantId, TenantStats, VolumeId, WritePolicy,
};
use std::fmt;
use std::time::Duration;

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
    /// How long the requests of each tenant took that has asked for anything yet.
    pub latencies: Vec<(TenantId, Box<Latencies>)>,
    /// Its volumes that have not left, by rising identity.
    pub volumes: Vec<VolumeSnapshot>,
    /// The cache device as this reactor uses it.
    pub cache: DeviceStats,
    /// The cache device failed too often: this reactor no longer uses it.
    pub cache_failed: bool,
    /// It has let go of the device.
    pub cache_closed: bool,
    /// The session of a cache that is kept, or the last one.
    pub session: Option<SessionMark>,
    /// Bytes of the cache's own records written to its device since the start.
    pub metadata_bytes: u64,
    /// Guest requests and fills in flight.
    pub in_flight: usize,
    /// Bytes of the engine's index, replacement and slots.
    pub engine_memory_bytes: usize,
    /// Bytes of data buffers in use.
    pub buffer_bytes: usize,
    /// Requests that the monitor could not hand on, since its receiver was behind.
    pub monitor_dropped: u64,
    /// The moment of this, on the clock of the monitors' records: those of earlier requests have been handed on, and later ones will have no earlier time.
    pub monitor_clock_ns: u64,
}

/// Requests that have ended well, and the nanoseconds that they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// How many.
    pub requests: u64,
    /// Nanoseconds.
    pub total_ns: u64,
}

/// How a tenant has used its partition since the start, for the loop of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantUse {
    /// Which.
    pub tenant: TenantId,
    /// The engine's counters.
    pub stats: TenantStats,
    /// Blocks that it holds.
    pub occupied_blocks: u32,
    /// Reads that the cache answered.
    pub read_hits: Served,
    /// Reads that waited for the backing.
    pub read_misses: Served,
    /// Writes that the cache took.
    pub write_hits: Served,
    /// Writes that waited for the backing.
    pub write_misses: Served,
    /// The share (0 to 1) of its blocks that was hit since this was asked last, where that is watched ([`crate::Handle::watch_hits`]).
    pub effective: Option<f64>,
}

/// What was written to the cache device since the start, for a budget of such writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// By each tenant, in the order of their identities.
    pub tenants: Vec<TenantSpending>,
    /// By all tenants, those that have left among them, or about to be ([`larder_engine::Engine::all_spent_bytes`]).
    pub bytes: u64,
    /// Bytes of the cache's own records.
    pub metadata_bytes: u64,
}

/// What a tenant has written, and what it might not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantSpending {
    /// Bytes that are written, or about to be ([`larder_engine::Engine::spent_bytes`]).
    pub bytes: u64,
    /// Blocks that did not enter, for its limit.
    pub refused_blocks: u64,
    /// Newer data of cached blocks that went to the backing alone, for its limit.
    pub diverted_blocks: u64,
    /// Blocks that did neither, since their requests are worth less than others.
    pub turned_away_blocks: u64,
}

/// What a tenant offered to the cache device since there are doors ([`larder_engine::Engine::set_doors`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantOffers {
    /// What its requests brought.
    pub offered: OfferedBlocks,
    /// Requests that have ended, by what served them (the cache a read, the backing a read, the cache a write, the backing a write) and [`larder_engine::Kind::shape_served`].
    pub served: [[Served; SHAPES]; 4],
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
    /// What its guests have asked.
    pub requests: RequestStats,
    /// Its backing.
    pub backing: DeviceStats,
    /// Blocks newer on the cache device than on the backing.
    pub dirty_blocks: u32,
    /// How far it is with being drained.
    pub draining: Drain,
    /// Nothing changes it until it is thawed, and its backing has all of it.
    pub quiet: bool,
    /// The cache device has failed with data that the backing does not have: nothing is served.
    pub failed: bool,
    /// The cache device is slower than the backing: reads of clean blocks pass it by.
    pub slow_cache: bool,
    /// With ordered write-back: how many epochs (what lies between two flushes) the backing is behind.
    pub epochs_behind: Option<u64>,
    /// For how long nothing could be written back, about, where the backing fails.
    pub backing_failing: Option<Duration>,
    /// It has failed since somebody asked for all to be written back.
    pub backing_failed_since_asked: bool,
    /// Dirty blocks that could not be read back from the cache device, in a volume that is served.
    pub lost: LostSize,
}

/// How much is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostSize {
    /// Blocks.
    pub blocks: u32,
    /// The bytes of the volume that they are.
    pub bytes: u64,
    /// Neighbours are one range.
    pub ranges: u64,
}

impl VolumeSnapshot {
    /// True if nothing is dirty any more but what is lost: only guests can change that.
    pub fn is_stuck(&self) -> bool {
        self.lost.blocks > 0 && self.dirty_blocks <= self.lost.blocks
    }
}

/// A device that was not done when its reactor had to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedDevice {
    /// Its path or URI.
    pub name: String,
    /// Operations that it had not answered in time.
    pub operations: u32,
    /// Its last flush succeeded, or it is the cache and needs none.
    pub flushed: bool,
}

impl fmt::Display for UnfinishedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, operations, flushed } = self;
        match (operations, flushed) {
            (0, _) => write!(f, "{name} could not be flushed"),
            (_, true) => write!(f, "{name} did not answer in time (operations left: {operations})"),
            (_, false) => {
                write!(
                    f,
                    "{name} did not answer in time (operations left: {operations}) and could not be flushed"
                )
            }
        }
    }
}

/// One in this many inline operations of a kind is timed, and counts for all: reading the clock costs a hundredth of such an
/// operation. Not a power of two, so that each place in a batch of the usual depths has its turn.
const INLINE_TIMED: u64 = 7;
/// The first operations of a kind are all timed, so that a mean of few is none of one or of nothing.
const INLINE_TIMED_AT_FIRST: u64 = 64;

/// Chooses the inline operations of a device that are timed, by counting those that start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampler {
    reads: u64,
    writes: u64,
}

impl Sampler {
    /// An operation starts: for how many its time is to count, zero where it is not to be timed.
    #[inline]
    pub fn weight(&mut self, kind: CommandKind) -> u64 {
        let started = match kind {
            CommandKind::Read => &mut self.reads,
            CommandKind::Write => &mut self.writes,
            _ => return 0,
        };
        *started += 1;
        match *started {
            ..=INLINE_TIMED_AT_FIRST => 1,
            later if (later - INLINE_TIMED_AT_FIRST).is_multiple_of(INLINE_TIMED) => INLINE_TIMED,
            _ => 0,
        }
    }
}

/// The flushes with which a reactor ends: one for each backing.
#[derive(Debug, Default)]
pub(crate) struct ClosingFlushes {
    open: Vec<usize>,
    failed: Vec<usize>,
}

impl ClosingFlushes {
    /// The flush of a device begins.
    pub fn begin(&mut self, device: usize) {
        self.open.push(device);
    }

    /// It has ended.
    pub fn end(&mut self, device: usize, succeeded: bool) {
        self.open.retain(|&open| open != device);
        if !succeeded {
            self.failed.push(device);
        }
    }

    /// True where all have ended.
    pub fn are_done(&self) -> bool {
        self.open.is_empty()
    }

    /// True where the flush of a device has failed or not ended.
    pub fn is_missing(&self, device: usize) -> bool {
        self.open.contains(&device) || self.failed.contains(&device)
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
    /// What ends says nothing about what starts: eight at a time, or a write after each read.
    #[test]
    fn samples_stand_for_all_operations_of_each_kind() {
        let mut sampler = Sampler::default();
        let (mut reads, mut writes) = (0, 0);
        for count in 1..=INLINE_TIMED_AT_FIRST + 700 {
            reads += sampler.weight(CommandKind::Read);
            writes += sampler.weight(CommandKind::Write);
            assert_eq!(sampler.weight(CommandKind::Flush), 0);
            assert!(
                (count.saturating_sub(6)..=count).contains(&reads) && reads == writes,
                "{count}: {reads}, {writes}"
            );
        }
        assert_eq!(reads, INLINE_TIMED_AT_FIRST + 700);
    }

    #[test]
    fn every_place_in_a_batch_of_eight_is_timed() {
        let mut sampler = Sampler::default();
        let warm = |_| assert_eq!(sampler.weight(CommandKind::Read), 1);
        (0..INLINE_TIMED_AT_FIRST).for_each(warm);
        let mut timed = [0; 8];
        for start in 0..560 {
            timed[start % 8] += u32::from(sampler.weight(CommandKind::Read) > 0);
        }
        assert_eq!(timed, [10; 8]);
    }

    #[test]
    fn a_flush_that_failed_or_never_ended_is_missing() {
        let mut flushes = ClosingFlushes::default();
        [1, 2, 3].into_iter().for_each(|device| flushes.begin(device));
        flushes.end(1, true);
        flushes.end(2, false);
        assert!(!flushes.are_done());
        assert_eq!([1, 2, 3, 4].map(|device| flushes.is_missing(device)), [false, true, true, false]);
        flushes.end(3, true);
        assert!(flushes.are_done());
    }
}
