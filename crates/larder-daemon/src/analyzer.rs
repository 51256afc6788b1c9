//! The thread around the loop of an epoch: it takes the monitors' batches, and decides when the time has come.
//!
//! Reactors hand their batches over through a bounded channel and never wait: what does not fit is dropped and counted
//! there. The thread ends when every reactor has ended.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use larder_engine::RequestKind;
use larder_io::{MonitorRecord, MonitorSink};
use larder_locality::AccessKind;

use crate::actuator::{Actuator, steps};
use crate::epoch::{Access, EpochLoop, Standing};

/// Batches that may wait for the analyzer: some ten megabytes, a quarter of a million requests.
const BATCHES_MAX: usize = 64;

/// Records of one reactor.
#[derive(Debug)]
struct Batch {
    reactor: usize,
    records: Vec<MonitorRecord>,
}

/// Where the records of each reactor belong: by reactor, then by the tenant's identity there, the index of the tenant.
pub type Routes = Vec<Vec<usize>>;

/// The state of the loop as others see it.
#[derive(Clone, Debug)]
pub struct LoopView {
    /// Epochs that are over.
    pub epoch: u64,
    /// Where each tenant stands.
    pub standings: Vec<Standing>,
    /// Bytes of memory that the analyzer holds.
    pub memory_bytes: usize,
}

impl LoopView {
    fn of(epochs: &EpochLoop) -> Self {
        let standings = epochs.standings().to_vec();
        Self { epoch: epochs.epoch(), standings, memory_bytes: epochs.memory_bytes() }
    }
}

/// The view, shared. It is replaced as a whole, so that a panic while it was locked left it intact.
#[derive(Clone, Debug)]
pub struct SharedView(Arc<Mutex<LoopView>>);

impl SharedView {
    /// A copy of what is there.
    pub fn get(&self) -> LoopView {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, view: LoopView) {
        let old = mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), view);
        // Freed after the lock.
        drop(old);
    }
}

/// The analyzer before its thread runs: the place from which reactors get their sinks.
#[derive(Debug)]
pub struct Analyzer {
    sender: SyncSender<Batch>,
    receiver: Receiver<Batch>,
}

impl Default for Analyzer {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(BATCHES_MAX);
        Self { sender, receiver }
    }
}

impl Analyzer {
    /// Where reactor number `reactor` puts its batches.
    pub fn sink(&self, reactor: usize) -> MonitorSink {
        let sender = self.sender.clone();
        Box::new(move |records| {
            sender.try_send(Batch { reactor, records }).map_err(|error| match error {
                TrySendError::Full(batch) | TrySendError::Disconnected(batch) => batch.records,
            })
        })
    }

    /// Run the loop with epochs of length `epoch`, until every sink is dropped.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn run(
        self,
        epochs: EpochLoop,
        routes: Routes,
        actuator: Box<dyn Actuator>,
        epoch: Duration,
    ) -> io::Result<(SharedView, JoinHandle<()>)> {
        let view = SharedView(Arc::new(Mutex::new(LoopView::of(&epochs))));
        let runner = Runner { epochs, routes, actuator, epoch, view: view.clone() };
        let receiver = self.receiver;
        let thread = thread::Builder::new().name("analyzer".into()).spawn(move || runner.run(&receiver))?;
        Ok((view, thread))
    }
}

/// What the thread owns.
struct Runner {
    epochs: EpochLoop,
    routes: Routes,
    actuator: Box<dyn Actuator>,
    epoch: Duration,
    view: SharedView,
}

impl Runner {
    fn run(mut self, batches: &Receiver<Batch>) {
        let mut end = Instant::now() + self.epoch;
        loop {
            match batches.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(batch) => self.observe(&batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= end {
                self.end_epoch();
                // Ends keep their rhythm; those missed while the machine slept are not made up for.
                end = (end + self.epoch).max(now);
            }
        }
    }

    fn observe(&mut self, batch: &Batch) {
        let Some(tenants) = self.routes.get(batch.reactor) else { return };
        for record in &batch.records {
            if let (Some(kind), Some(tenant)) =
                (access_kind(record.kind), tenants.get(record.tenant.0 as usize))
            {
                let MonitorRecord { volume, offset, len, .. } = *record;
                self.epochs.observe(&Access { tenant: *tenant, volume: volume.0, kind, offset, len });
            }
        }
    }

    fn end_epoch(&mut self) {
        let before = self.epochs.standings().to_vec();
        match self.epochs.decide() {
            Ok(after) => {
                steps(&before, after).into_iter().for_each(|step| self.actuator.apply(step));
                log_changes(&before, &self.epochs);
            }
            Err(error) => {
                tracing::error!(%error, "the allocator cannot decide: every tenant keeps what it has")
            }
        }
        self.view.set(LoopView::of(&self.epochs));
    }
}

/// How a request counts for reuse. Flushes touch no block; discards and write-zeroes leave nothing to be read again
/// from the cache.
fn access_kind(kind: RequestKind) -> Option<AccessKind> {
    match kind {
        RequestKind::Read => Some(AccessKind::Read),
        RequestKind::Write => Some(AccessKind::Write),
        RequestKind::Flush | RequestKind::Discard | RequestKind::WriteZeroes { .. } => None,
    }
}

/// One line for each tenant whose size or policy has changed.
fn log_changes(before: &[Standing], epochs: &EpochLoop) {
    for ((tenant, before), after) in epochs.tenants().iter().zip(before).zip(epochs.standings()) {
        let (old, new) = (&before.decision, &after.decision);
        if (old.quota_blocks, old.mode.write) != (new.quota_blocks, new.mode.write) {
            tracing::info!(
                epoch = after.epoch,
                tenant = tenant.name,
                quota_blocks = new.quota_blocks,
                write_policy = new.mode.write.as_str(),
                reason = new.reason,
                "decided"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actuator::Step;
    use crate::epoch::{LoopConfig, LoopTenant};
    use larder_alloc::ConfiguredPolicy;
    use larder_engine::{TenantId, VolumeId};
    use std::sync::mpsc::{Sender, channel};

    /// Tells the test what was applied.
    struct Told(Sender<Step>);

    impl Actuator for Told {
        fn apply(&mut self, step: Step) {
            // The test may have ended.
            let _ = self.0.send(step);
        }
    }

    fn record(tenant: u16, block: u64) -> MonitorRecord {
        let (tenant, volume) = (TenantId(tenant), VolumeId(0));
        MonitorRecord { tenant, volume, kind: RequestKind::Read, offset: block * 4096, len: 4096 }
    }

    fn epochs() -> EpochLoop {
        let config =
            LoopConfig { block_bytes: 4096, cache_blocks: 100, min_blocks: 1, write_threshold: 0.5, seed: 0 };
        let tenant = |name: &str| LoopTenant {
            name: name.into(),
            quota_blocks: None,
            write_policy: ConfiguredPolicy::Auto,
        };
        let allocator = larder_alloc::by_name("eci").expect("known");
        EpochLoop::new(config, allocator, vec![tenant("a"), tenant("b")]).expect("fits")
    }

    #[test]
    fn batches_lead_to_decisions_that_are_applied_and_seen() {
        let analyzer = Analyzer::default();
        let mut sink = analyzer.sink(1);
        // Reactor 1 has one tenant, which is tenant 1 of the configuration; its neighbour there is unknown.
        let records =
            (0..2).flat_map(|_| (0..70).flat_map(|block| [record(0, block), record(7, block)])).collect();
        sink(records).expect("room");
        let (tell, told) = channel();
        let epoch = Duration::from_millis(50);
        let (view, thread) =
            analyzer.run(epochs(), vec![vec![], vec![1]], Box::new(Told(tell)), epoch).expect("thread");
        assert_eq!(told.recv(), Ok(Step::Quota { tenant: 0, blocks: 1 }));
        assert_eq!(told.recv(), Ok(Step::Quota { tenant: 1, blocks: 70 }));
        drop(sink);
        thread.join().expect("ends with the last sink");
        let view = view.get();
        assert!(view.epoch >= 1);
        assert!(view.memory_bytes > 0);
    }

    #[test]
    fn a_sink_gives_back_what_does_not_fit() {
        let analyzer = Analyzer::default();
        let mut sink = analyzer.sink(0);
        for _ in 0..BATCHES_MAX {
            sink(vec![record(0, 0)]).expect("room");
        }
        assert_eq!(sink(vec![record(0, 1)]), Err(vec![record(0, 1)]));
    }
}
