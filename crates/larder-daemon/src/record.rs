//! Recording: the requests of guests, as they come, for whoever wants them as a trace (`larder record`).
//!
//! Between each reactor's monitor and the analyzer stands a tap, which costs a look at a counter for each batch while nobody records. A [`Recording`] gets a copy of
//! every batch through a bounded channel: reactors never wait for it, and what does not fit is dropped, and counted for that recording. [`session`] puts the copies in
//! order and sends them to a client; [`lines`] is what the two say to each other. [`account`] is what the loop of an epoch did meanwhile.

pub mod account;
pub mod lines;
pub mod session;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use larder_io::{MonitorRecord, MonitorSink, monitor_clock_ns};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Recordings at a time, at most.
pub const RECORDINGS_MAX: usize = 4;

/// Batches that may wait in a recording: half a million requests, some 25 MiB.
const BATCHES_MAX: usize = 128;

/// Requests of one reactor, in order.
#[derive(Debug)]
pub struct Batch {
    /// Index of the reactor.
    pub reactor: usize,
    /// The requests.
    pub records: Vec<MonitorRecord>,
}

/// A recording under way, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Underway {
    /// Its number.
    pub id: u64,
    /// The tenants and volumes whose requests are recorded; all where there are none.
    pub names: Vec<String>,
    /// When it began, in seconds since 1970.
    pub since_unix_seconds: f64,
    /// Requests that are missing, since it was too slow for them.
    pub dropped: u64,
}

/// Where one recording gets its copies.
#[derive(Debug)]
struct Tap {
    id: u64,
    names: Vec<String>,
    began: SystemTime,
    /// It is to end.
    ends: AtomicBool,
    batches: SyncSender<Batch>,
    dropped: AtomicU64,
}

impl Tap {
    fn copy(&self, reactor: usize, records: &[MonitorRecord]) {
        match self.batches.try_send(Batch { reactor, records: records.to_vec() }) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                self.dropped.fetch_add(batch.records.len() as u64, Relaxed);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// How many taps there are.
    open: AtomicUsize,
    /// Recordings so far.
    begun: AtomicU64,
    taps: Mutex<Vec<Arc<Tap>>>,
}

impl Shared {
    fn taps(&self) -> MutexGuard<'_, Vec<Arc<Tap>>> {
        self.taps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All recordings under way.
#[derive(Clone, Debug, Default)]
pub struct Recorders(Arc<Shared>);

impl Recorders {
    /// A sink for reactor number `reactor` that hands everything on to `sink`, with copies for those who record.
    pub fn tap(&self, reactor: usize, mut sink: MonitorSink) -> MonitorSink {
        let shared = Arc::clone(&self.0);
        Box::new(move |records| {
            if shared.open.load(Relaxed) > 0 {
                shared.taps().iter().for_each(|tap| tap.copy(reactor, &records));
            }
            sink(records)
        })
    }

    /// Begin a recording of what these names stand for, for who wants to know; `None` where there are [`RECORDINGS_MAX`] already.
    pub fn begin(&self, names: &[String]) -> Option<Recording> {
        let mut taps = self.0.taps();
        if taps.len() >= RECORDINGS_MAX {
            return None;
        }
        let (batches, receiver) = sync_channel(BATCHES_MAX);
        let tap = Arc::new(Tap {
            id: self.0.begun.fetch_add(1, Relaxed) + 1,
            names: names.to_vec(),
            began: SystemTime::now(),
            ends: AtomicBool::new(false),
            batches,
            dropped: AtomicU64::new(0),
        });
        taps.push(Arc::clone(&tap));
        self.0.open.store(taps.len(), Relaxed);
        drop(taps);
        Some(Recording {
            recorders: self.clone(),
            tap,
            batches: receiver,
            began_ns: monitor_clock_ns(Instant::now()),
        })
    }

    /// Those under way, the oldest first.
    pub fn underway(&self) -> Vec<Underway> {
        let told = |tap: &Arc<Tap>| Underway {
            id: tap.id,
            names: tap.names.clone(),
            since_unix_seconds: tap.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            dropped: tap.dropped.load(Relaxed),
        };
        self.0.taps().iter().map(told).collect()
    }

    /// Have a recording end soon; false where there is none of this number.
    pub fn end(&self, id: u64) -> bool {
        let taps = self.0.taps();
        let found = taps.iter().find(|tap| tap.id == id);
        found.inspect(|tap| tap.ends.store(true, Relaxed)).is_some()
    }
}

/// A recording under way: it ends when it is dropped.
#[derive(Debug)]
pub struct Recording {
    recorders: Recorders,
    tap: Arc<Tap>,
    batches: Receiver<Batch>,
    began_ns: u64,
}

impl Recording {
    /// When it began, on the clock of [`MonitorRecord::time_ns`]. Requests from before may be in the first batches.
    pub fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// Somebody wants it to end.
    pub fn is_to_end(&self) -> bool {
        self.tap.ends.load(Relaxed)
    }

    /// A batch that is there.
    pub fn next(&self) -> Option<Batch> {
        self.batches.try_recv().ok()
    }

    /// Requests, of any tenant, that were dropped since this fell behind.
    pub fn dropped(&self) -> u64 {
        self.tap.dropped.load(Relaxed)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut taps = self.recorders.0.taps();
        taps.retain(|tap| !Arc::ptr_eq(tap, &self.tap));
        self.recorders.0.open.store(taps.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_engine::{RequestKind, TenantId, VolumeId};
    use std::sync::mpsc::channel;

    fn record(offset: u64) -> MonitorRecord {
        let kind = RequestKind::Read;
        let (tenant, volume, asked) = (TenantId(0), VolumeId(0), larder_engine::Kind::default());
        MonitorRecord { time_ns: 1, tenant, volume, kind, offset, len: 512, asked }
    }

    #[test]
    fn everybody_gets_everything_while_he_records() {
        let recorders = Recorders::default();
        let (sender, analyzer) = channel();
        let mut sink =
            recorders.tap(3, Box::new(move |records| sender.send(records).map_err(|_| Vec::new())));
        sink(vec![record(0)]).expect("the analyzer takes it");
        let one = recorders.begin(&[]).expect("room");
        sink(vec![record(1)]).expect("the analyzer takes it");
        let two = recorders.begin(&[]).expect("room");
        sink(vec![record(2), record(3)]).expect("the analyzer takes it");
        let told = |recording: &Recording| -> Vec<_> {
            std::iter::from_fn(|| recording.next()).map(|batch| (batch.reactor, batch.records)).collect()
        };
        assert_eq!(told(&one), [(3, vec![record(1)]), (3, vec![record(2), record(3)])]);
        assert_eq!(told(&two), [(3, vec![record(2), record(3)])]);
        assert_eq!(analyzer.try_iter().count(), 3);
        drop((one, two));
        assert_eq!(recorders.0.open.load(Relaxed), 0);
        sink(vec![record(4)]).expect("the analyzer takes it");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_analyzer_gets_it_all_the_same() {
        let recorders = Recorders::default();
        let (sender, analyzer) = channel();
        let mut sink =
            recorders.tap(0, Box::new(move |records| sender.send(records).map_err(|_| Vec::new())));
        let recording = recorders.begin(&[]).expect("room");
        for _ in 0..BATCHES_MAX + 2 {
            sink(vec![record(0); 3]).expect("the analyzer takes it");
        }
        assert_eq!((recording.dropped(), analyzer.try_iter().count()), (6, BATCHES_MAX + 2));
        assert_eq!(std::iter::from_fn(|| recording.next()).count(), BATCHES_MAX);
    }

    #[test]
    fn recordings_are_bounded() {
        let recorders = Recorders::default();
        let mut all: Vec<_> = (0..RECORDINGS_MAX).map(|_| recorders.begin(&[]).expect("room")).collect();
        assert!(recorders.begin(&[]).is_none());
        let ids = || recorders.underway().iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!((ids(), all[1].is_to_end()), (vec![1, 2, 3, 4], false));
        assert!(recorders.end(2) && all[1].is_to_end() && !all[0].is_to_end() && !recorders.end(9));
        all.pop();
        assert_eq!(ids(), [1, 2, 3]);
        assert!(recorders.begin(&[]).is_some());
    }
}
