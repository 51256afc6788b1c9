//! Flushes: what was written to the backing is flushed there; then, where the cache is kept, the request waits for what the journal is to
//! say of dirty blocks (`durable`). A backing to which no guest's write has gone needs no flush.
//!
//! One flush of a backing is in flight at a time. Those that arrive meanwhile wait for the next one, which serves them all: the running one
//! may have begun before a write that they must cover.

use crate::{Engine, IoError, Op, OpKind, RequestId, Target, VolumeId};

/// A volume's flushes.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    running: Vec<RequestId>,
    waiting: Vec<RequestId>,
    /// One is in flight, or is to follow it, although nobody waits for it.
    busy: bool,
    again: bool,
}

impl Flushes {
    pub fn in_flight(&self) -> usize {
        self.running.len() + self.waiting.len()
    }

    /// True while the backing is being flushed.
    pub fn is_busy(&self) -> bool {
        self.busy
    }
}

impl Engine {
    pub(crate) fn flush(&mut self, volume: VolumeId, request: RequestId) {
        if !self.waits_for_epoch(volume, request) {
            self.flush_in_epoch(volume, request);
        }
    }

    /// The same, where the volume's writes have an order and what is written from now on is of a newer epoch.
    pub(crate) fn flush_in_epoch(&mut self, volume: VolumeId, request: RequestId) {
        if !self.needs_backing_flush(volume) {
            return self.reply_when_durable(volume, request);
        }
        let flushes = &mut self.volume_mut(volume).flushes;
        flushes.waiting.push(request);
        if !flushes.busy {
            self.start_flush(volume);
        }
    }

    /// False where all that guests have written since the last flush is in the cache.
    fn needs_backing_flush(&self, volume: VolumeId) -> bool {
        let state = self.volume(volume);
        !self.writes_back(volume) || state.unflushed || state.flushes.busy || self.owes(volume)
    }

    /// Flush a backing for the cache's own sake.
    pub(crate) fn flush_backing(&mut self, volume: VolumeId) {
        if self.is_gone(volume) {
            return;
        }
        let flushes = &mut self.volume_mut(volume).flushes;
        flushes.again = true;
        if !flushes.busy {
            self.start_flush(volume);
        }
    }

    /// Start the flush of a backing that somebody waits for, if it may start now.
    pub(crate) fn start_flush(&mut self, volume: VolumeId) {
        if self.held {
            self.volume_mut(volume).flushes.busy = false;
            return self.refuse_flushes(volume);
        }
        let flushes = &mut self.volume_mut(volume).flushes;
        std::mem::swap(&mut flushes.running, &mut flushes.waiting);
        flushes.busy = !flushes.running.is_empty() || flushes.again;
        flushes.again = false;
        if flushes.busy {
            self.volume_mut(volume).unflushed = false;
            self.note_flush_begins(volume);
            self.drain_flush_begins(volume);
            self.device(Target::Backing(volume), OpKind::Flush, Op::Flush { volume });
        }
    }

    /// Flushes of a volume that has failed are not to go on with another session: what they are to cover may not be there.
    pub(crate) fn refuse_flushes(&mut self, volume: VolumeId) {
        if self.is_failed(volume) {
            let waiting = std::mem::take(&mut self.volume_mut(volume).flushes.waiting);
            waiting.into_iter().for_each(|request| self.reply(request, Err(IoError::Io)));
        }
    }

    pub(crate) fn end_flush(&mut self, volume: VolumeId, result: Result<(), IoError>) {
        if result.is_err() {
            self.stats_mut(volume).backing_errors += 1;
            self.volume_mut(volume).unflushed = true;
            self.note_backing_failed(volume);
            self.distrust(volume);
        } else if self.dirty_of(volume) == 0 {
            self.note_backing_works(volume);
        }
        self.drain_flush_ends(volume, result.is_ok());
        self.note_flush_ends(volume, result.is_ok());
        let mut done = std::mem::take(&mut self.volume_mut(volume).flushes.running);
        for request in done.drain(..) {
            match result {
                Ok(()) => self.reply_when_durable(volume, request),
                Err(_) => self.reply(request, result),
            }
        }
        // Given back empty, to be swapped in again without a new allocation.
        self.volume_mut(volume).flushes.running = done;
        self.start_flush(volume);
    }
}
