//! The monitor: every guest request as a small record, handed on in batches.

use crate::frontend::GuestRequest;
use larder_engine::{Kind, RequestKind, TenantId, VolumeId};
use std::sync::LazyLock;
use std::time::Instant;

/// Records in a batch.
pub const MONITOR_BATCH: usize = 4096;

/// Where the clock of all records begins.
static CLOCK: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment on the clock of [`MonitorRecord::time_ns`]: nanoseconds since some moment of this process, the same for all its reactors.
pub fn monitor_clock_ns(at: Instant) -> u64 {
    at.saturating_duration_since(*CLOCK).as_nanos() as u64
}

/// One guest request, as the analyzer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorRecord {
    /// When the reactor began with it, or a little earlier: the clock is read once per turn. Of one reactor, never less than that of the record before.
    pub time_ns: u64,
    /// Whose.
    pub tenant: TenantId,
    /// On which volume.
    pub volume: VolumeId,
    /// What was asked.
    pub kind: RequestKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// Which kind of request its tenant's door took it for, where there are doors ([`larder_engine::Engine::set_doors`]).
    pub asked: Kind,
}

/// Takes batches of records, on the reactor's thread: it must not block. An answer of `Err` gives back a batch that it has no room
/// for; its records are dropped and counted.
pub type MonitorSink = Box<dyn FnMut(Vec<MonitorRecord>) -> Result<(), Vec<MonitorRecord>> + Send>;

/// Gathers records for the sink.
pub(crate) struct Monitor {
    batch: Vec<MonitorRecord>,
    sink: Option<MonitorSink>,
    dropped: u64,
    /// When the reactor's own clock began.
    began_ns: u64,
}

impl Monitor {
    pub fn new(sink: Option<MonitorSink>) -> Self {
        let room = if sink.is_some() { MONITOR_BATCH } else { 0 };
        Self { batch: Vec::with_capacity(room), sink, dropped: 0, began_ns: monitor_clock_ns(Instant::now()) }
    }

    /// The reactor's own clock began then, which is not before this monitor was made.
    pub fn set_began(&mut self, began: Instant) {
        self.began_ns = monitor_clock_ns(began);
    }

    /// A moment of the reactor's own clock on that of the records.
    pub fn clock_ns(&self, reactor_ns: u64) -> u64 {
        self.began_ns + reactor_ns
    }

    /// Note a request, at this moment of the reactor's own clock. Only reads and writes of data say something about reuse; the others are told as well.
    #[inline]
    pub fn record(&mut self, tenant: TenantId, request: &GuestRequest, asked: Kind, reactor_ns: u64) {
        if self.sink.is_none() {
            return;
        }
        let GuestRequest { volume, kind, offset, len, .. } = *request;
        let time_ns = self.clock_ns(reactor_ns);
        self.batch.push(MonitorRecord { time_ns, tenant, volume, kind, offset, len, asked });
        if self.batch.len() == MONITOR_BATCH {
            self.flush();
        }
    }

    /// Hand on what there is.
    pub fn flush(&mut self) {
        let Some(sink) = &mut self.sink else { return };
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        self.batch = match sink(batch) {
            Ok(()) => Vec::with_capacity(MONITOR_BATCH),
            Err(mut refused) => {
                self.dropped += refused.len() as u64;
                refused.clear();
                refused
            }
        };
    }

    /// Hand on what there is, and let go of the sink: whoever waits for its end hears it.
    pub fn close(&mut self) {
        self.flush();
        self.sink = None;
    }

    /// Records dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn asked(offset: u64) -> GuestRequest {
        GuestRequest { volume: VolumeId(1), kind: RequestKind::Read, offset, len: 4096, fua: false }
    }

    #[test]
    fn batches_arrive_whole_and_in_order() {
        let (send, receive) = mpsc::sync_channel(8);
        let mut monitor =
            Monitor::new(Some(Box::new(move |batch| send.try_send(batch).map_err(|_| Vec::new()))));
        for block in 0..MONITOR_BATCH as u64 + 3 {
            monitor.record(TenantId(2), &asked(block * 4096), Kind::default(), block);
        }
        monitor.flush();
        monitor.flush();
        let batches: Vec<_> = receive.try_iter().collect();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [MONITOR_BATCH, 3]);
        assert_eq!((batches[1][0].offset, batches[1][0].tenant), (MONITOR_BATCH as u64 * 4096, TenantId(2)));
        assert_eq!(monitor.dropped(), 0);
        assert_eq!(batches[1][0].time_ns - batches[0][0].time_ns, MONITOR_BATCH as u64);
    }

    #[test]
    fn reactors_that_begin_at_different_times_share_a_clock() {
        let [mut one, mut two] = [Monitor::new(None), Monitor::new(None)];
        let first = Instant::now();
        let later = first + std::time::Duration::from_secs(5);
        one.set_began(first);
        two.set_began(later);
        assert_eq!(two.clock_ns(0) - one.clock_ns(0), (later - first).as_nanos() as u64);
        assert_eq!(two.clock_ns(7) - two.clock_ns(0), 7);
    }

    #[test]
    fn closing_hands_on_the_rest_and_lets_go_of_the_sink() {
        let (send, receive) = mpsc::sync_channel(8);
        let mut monitor =
            Monitor::new(Some(Box::new(move |batch| send.try_send(batch).map_err(|_| Vec::new()))));
        monitor.record(TenantId(2), &asked(4096), Kind::default(), 0);
        monitor.close();
        monitor.record(TenantId(2), &asked(8192), Kind::default(), 0);
        assert_eq!(receive.recv().unwrap().len(), 1);
        assert_eq!(receive.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn a_sink_that_is_behind_costs_records_and_no_memory() {
        let mut monitor = Monitor::new(Some(Box::new(Err)));
        for block in 0..MONITOR_BATCH as u64 * 2 + 5 {
            monitor.record(TenantId(0), &asked(block), Kind::default(), 0);
        }
        assert_eq!((monitor.dropped(), monitor.batch.len()), (MONITOR_BATCH as u64 * 2, 5));
    }
}
