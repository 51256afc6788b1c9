//! Flushes: every write completed so far is on the backing, so the backing's own cache is all there is to flush.
//!
//! One flush of a backing is in flight at a time. Those that arrive meanwhile wait for the next one, which serves them all: the running one
//! may have begun before a write that they must cover.

use crate::{Engine, IoError, Op, OpKind, RequestId, Target, VolumeId};

/// A volume's flushes.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    running: Vec<RequestId>,
    waiting: Vec<RequestId>,
}

impl Flushes {
    pub fn in_flight(&self) -> usize {
        self.running.len() + self.waiting.len()
    }
}

impl Engine {
    pub(crate) fn flush(&mut self, volume: VolumeId, request: RequestId) {
        let flushes = &mut self.volume_mut(volume).flushes;
        flushes.waiting.push(request);
        if flushes.running.is_empty() {
            self.start_flush(volume);
        }
    }

    fn start_flush(&mut self, volume: VolumeId) {
        let flushes = &mut self.volume_mut(volume).flushes;
        std::mem::swap(&mut flushes.running, &mut flushes.waiting);
        if !flushes.running.is_empty() {
            self.device(Target::Backing(volume), OpKind::Flush, Op::Flush { volume });
        }
    }

    pub(crate) fn end_flush(&mut self, volume: VolumeId, result: Result<(), IoError>) {
        if result.is_err() {
            self.stats_mut(volume).backing_errors += 1;
            self.distrust(volume);
        }
        let mut done = std::mem::take(&mut self.volume_mut(volume).flushes.running);
        for request in done.drain(..) {
            self.reply(request, result);
        }
        // Given back empty, to be swapped in again without a new allocation.
        self.volume_mut(volume).flushes.running = done;
        self.start_flush(volume);
    }
}
