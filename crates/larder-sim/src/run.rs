//! One run: a cache on trial, driven batch by batch, its counts cut into intervals.

use std::time::Duration;

use larder_policy::trial::{Action, Blocks, Candidate, Trial};
use larder_trace::RequestKind;
use rustix::time::{ClockId, clock_gettime};

use crate::Counters;
use crate::batch::{Batch, Cut};

/// A run, whatever its policy: the choice costs one call per batch.
pub(crate) trait Run: Send {
    /// Take the next batch of the trace.
    fn process(&mut self, batch: &Batch);

    /// What was found, after the last batch.
    fn finish(&mut self) -> Outcome;
}

/// What a run found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Since counting started.
    pub(crate) total: Counters,
    /// Interval by interval; their sum is `total`.
    pub(crate) series: Vec<Counters>,
    pub(crate) resident_blocks: u64,
    pub(crate) dirty_blocks: u64,
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
}

/// A run under one policy, compiled for it.
pub(crate) struct PolicyRun<P> {
    /// It counts since the last cut.
    trial: Trial<P>,
    /// The intervals before.
    series: Vec<Counters>,
    cpu: Duration,
}

impl<P: Candidate> PolicyRun<P> {
    pub(crate) fn new(trial: Trial<P>) -> Self {
        Self { trial, series: Vec::new(), cpu: Duration::ZERO }
    }

    fn cut(&mut self, cut: Cut) {
        let counters = self.trial.take_counters();
        match cut {
            Cut::Measure => self.series.clear(),
            Cut::Interval => self.series.push(counters),
        }
    }

    fn pieces(&mut self, batch: &Batch) {
        let blocks = Blocks { keys: &batch.keys, hashes: &batch.hashes, first: batch.first_access };
        let mut cuts = batch.cuts.iter().peekable();
        let mut begin = 0;
        for (at, piece) in batch.pieces.iter().enumerate() {
            while let Some(&(_, cut)) = cuts.next_if(|&&(before, _)| before == at) {
                self.cut(cut);
            }
            let (action, end) = (action(piece.kind), piece.end as usize);
            self.trial.accesses(action, &blocks, begin..end, &mut ());
            if piece.last {
                self.trial.end_request(action);
            }
            begin = end;
        }
    }
}

impl<P: Candidate> Run for PolicyRun<P> {
    fn process(&mut self, batch: &Batch) {
        let before = thread_cpu();
        self.pieces(batch);
        self.cpu += thread_cpu().saturating_sub(before);
    }

    fn finish(&mut self) -> Outcome {
        let mut series = std::mem::take(&mut self.series);
        series.push(*self.trial.counters());
        let mut total = Counters::default();
        series.iter().for_each(|&interval| total += interval);
        Outcome {
            total,
            series,
            resident_blocks: self.trial.resident_blocks().into(),
            dirty_blocks: self.trial.dirty_blocks(),
            cpu: self.cpu,
            memory_bytes: self.trial.memory_bytes() as u64,
        }
    }
}

fn action(kind: RequestKind) -> Action {
    match kind {
        RequestKind::Read => Action::Read,
        RequestKind::Write => Action::Write,
        RequestKind::Discard => Action::Discard,
        RequestKind::Flush => Action::Flush,
    }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock starts at zero with the thread, so neither part is negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
