//! The requests of a trace as pieces for the target, read by a thread of its own, so that reading holds up nothing.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use std::vec;

use larder_sim::Source;
use larder_trace::{Request, TraceError};

use super::layout::{Changes, Layout, Misfit, Piece};
use super::survey::is_transfer;
use crate::metered::Requests;
use crate::problem::Problem;

/// Requests read at a time.
const BATCH: usize = 1024;

/// Batches that wait at most.
const AHEAD: usize = 64;

/// Why a trace ended before its end.
#[derive(Debug)]
pub enum Broken {
    Trace(TraceError),
    Misfit(Misfit),
}

/// What the reader hands over.
#[derive(Default)]
struct Batch {
    pieces: Vec<Piece>,
    changes: Changes,
    broken: Option<Broken>,
}

/// The pieces to come.
pub struct Feed {
    batches: Receiver<Batch>,
    batch: vec::IntoIter<Piece>,
    next: Option<Piece>,
    /// What was changed so far.
    pub changes: Changes,
    /// Why there is nothing any more, where that is not the trace's end.
    pub broken: Option<Broken>,
}

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Piece(Piece),
    /// Nothing yet.
    Wait,
    /// Nothing any more.
    End,
}

impl Feed {
    /// Start to read, at most `limit` reads and writes. The reader ends when nobody takes what it has.
    pub fn start(source: Requests, layout: Layout, limit: Option<u64>) -> Result<Self, Problem> {
        let (send, batches) = sync_channel(AHEAD);
        let reader = Reader { source, layout, left: limit.unwrap_or(u64::MAX), chosen: Vec::new() };
        let started = thread::Builder::new().name("trace".into()).spawn(move || reader.run(&send));
        started.map_err(|error| {
            Problem::new(
                format_args!("cannot start a thread: {error}"),
                "see what limits threads (ulimit -u)",
            )
        })?;
        let (batch, changes) = (Vec::new().into_iter(), Changes::default());
        Ok(Self { batches, batch, next: None, changes, broken: None })
    }

    /// Look at the next piece; wait for it so long where there is none yet.
    pub fn peek(&mut self, patience: Duration) -> Next {
        while self.next.is_none() {
            self.next = self.batch.next();
            if self.next.is_some() {
                break;
            }
            match self.batches.recv_timeout(patience) {
                Ok(Batch { pieces, changes, broken }) => {
                    self.batch = pieces.into_iter();
                    self.changes.add(&changes);
                    self.broken = broken;
                }
                Err(RecvTimeoutError::Disconnected) => return Next::End,
                Err(RecvTimeoutError::Timeout) => return Next::Wait,
            }
        }
        self.next.map_or(Next::End, Next::Piece)
    }

    /// The piece that was looked at is on its way.
    pub fn take(&mut self) {
        self.next = None;
    }
}

/// The thread that reads.
struct Reader {
    source: Requests,
    layout: Layout,
    /// Reads and writes to come at most.
    left: u64,
    /// Whether each volume met so far is replayed.
    chosen: Vec<bool>,
}

impl Reader {
    fn run(mut self, send: &SyncSender<Batch>) {
        let mut requests = Vec::with_capacity(BATCH);
        while self.left > 0 {
            let batch = match self.source.read(&mut requests, BATCH) {
                Ok(true) => self.batch(&mut requests),
                Ok(false) => return,
                Err(error) => Batch { broken: Some(Broken::Trace(error)), ..Batch::default() },
            };
            let is_broken = batch.broken.is_some();
            // A replay that wants no more has hung up.
            if send.send(batch).is_err() || is_broken {
                return;
            }
        }
    }

    fn batch(&mut self, requests: &mut Vec<Request>) -> Batch {
        let volumes = &self.source.volumes()[self.chosen.len()..];
        self.chosen.extend(volumes.iter().map(|volume| self.layout.is_chosen(volume)));
        let mut batch = Batch { pieces: Vec::with_capacity(requests.len()), ..Batch::default() };
        for request in requests.drain(..) {
            let is_chosen = self.chosen.get(request.volume as usize).copied().unwrap_or(true);
            if self.left == 0 || !is_chosen {
                continue;
            }
            self.left -= u64::from(self.layout.takes(request.kind) && is_transfer(request.kind));
            if let Err(misfit) = self.layout.pieces(&request, &mut batch.changes, &mut batch.pieces) {
                batch.broken = Some(Broken::Misfit(misfit));
                break;
            }
        }
        batch
    }
}
