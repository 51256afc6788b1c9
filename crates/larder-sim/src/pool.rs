//! Threads that read the trace and drive the runs over it, each run at its own pace.
//!
//! The batches that some run has not taken yet are the *window*, of a bounded length. A thread that looks for work reads the next batch if the window has room
//! and nobody reads, or else takes the run that is furthest behind one batch further. So every thread is busy while any work can be done, whatever the runs
//! cost, and nothing waits for the slowest run but the reader, once the window is full. Each run takes all batches in order, on whichever thread: what it
//! finds does not depend on their number.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::batch::Batch;
use crate::feed::Feed;
use crate::run::Run;
use crate::{SimError, Source};

/// Batches in the window.
const WINDOW: usize = 4;

/// Called with the feed after each batch.
pub(crate) type Watch<'a, S> = &'a mut (dyn FnMut(&Feed<S>) + Send);

/// Take all runs through the whole trace.
pub(crate) fn drive<S: Source>(
    feed: &mut Feed<S>,
    runs: &mut [Box<dyn Run>],
    threads: NonZero<usize>,
    watch: Watch<'_, S>,
) -> Result<(), SimError<S::Error>> {
    // More than one per run and one that reads would find nothing to do.
    let threads = threads.get().min(runs.len() + 1);
    let pool = Pool { board: Mutex::new(Board::new(feed, runs, watch)), changed: Condvar::new() };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| pool.work());
        }
        pool.work();
    });
    let board = pool.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    board.failed.map_or(Ok(()), Err)
}

struct Pool<'a, S: Source> {
    board: Mutex<Board<'a, S>>,
    /// There may be work again, or none for ever.
    changed: Condvar,
}

/// What there is to do.
struct Board<'a, S: Source> {
    /// Gone while a thread reads.
    reader: Option<Reader<'a, S>>,
    window: VecDeque<Arc<Batch>>,
    /// The number of the first batch in the window.
    first: u64,
    runs: Vec<Lane<'a>>,
    /// Batches to be filled again.
    spare: Vec<Batch>,
    ended: bool,
    failed: Option<SimError<S::Error>>,
    /// A thread panicked: nothing will come of it.
    broken: bool,
}

struct Reader<'a, S> {
    feed: &'a mut Feed<S>,
    watch: Watch<'a, S>,
}

/// A run and where it is.
struct Lane<'a> {
    /// Gone while a thread drives it.
    run: Option<&'a mut Box<dyn Run>>,
    /// The number of the batch that it takes next.
    next: u64,
}

enum Work<'a, S> {
    Read(Reader<'a, S>, Batch),
    Drive(usize, &'a mut Box<dyn Run>, Arc<Batch>),
}

enum Next<'a, S> {
    Work(Work<'a, S>),
    /// What is left to do waits for others.
    Wait,
    End,
}

impl<'a, S: Source> Pool<'a, S> {
    /// Work until there is none.
    fn work(&self) {
        let _guard = Guard(self);
        let mut board = self.lock();
        loop {
            match board.next() {
                Next::Work(work) => {
                    drop(board);
                    board = self.perform(work);
                    self.changed.notify_all();
                }
                Next::Wait => board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner),
                Next::End => return,
            }
        }
    }

    fn perform(&self, work: Work<'a, S>) -> MutexGuard<'_, Board<'a, S>> {
        match work {
            Work::Read(reader, mut batch) => {
                let read = reader.feed.fill(&mut batch);
                (reader.watch)(reader.feed);
                let mut board = self.lock();
                board.take_in(reader, batch, read);
                board
            }
            Work::Drive(index, run, batch) => {
                run.process(&batch);
                drop(batch);
                let mut board = self.lock();
                board.driven(index, run);
                board
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board<'a, S>> {
        // Nothing panics while the board is changed half.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the other threads end when one panics, so that the panic is seen.
struct Guard<'p, 'a, S: Source>(&'p Pool<'a, S>);

impl<S: Source> Drop for Guard<'_, '_, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().broken = true;
            self.0.changed.notify_all();
        }
    }
}

impl<'a, S: Source> Board<'a, S> {
    fn new(feed: &'a mut Feed<S>, runs: &'a mut [Box<dyn Run>], watch: Watch<'a, S>) -> Self {
        Self {
            reader: Some(Reader { feed, watch }),
            window: VecDeque::with_capacity(WINDOW),
            first: 0,
            runs: runs.iter_mut().map(|run| Lane { run: Some(run), next: 0 }).collect(),
            spare: Vec::new(),
            ended: false,
            failed: None,
            broken: false,
        }
    }

    fn next(&mut self) -> Next<'a, S> {
        if self.failed.is_some() || self.broken {
            return Next::End;
        }
        if !self.ended
            && self.window.len() < WINDOW
            && let Some(reader) = self.reader.take()
        {
            return Next::Work(Work::Read(reader, self.spare.pop().unwrap_or_default()));
        }
        let read = self.first + self.window.len() as u64;
        let waiting = self.runs.iter().enumerate().filter(|(_, lane)| lane.run.is_some() && lane.next < read);
        match waiting.min_by_key(|(_, lane)| lane.next).map(|(index, _)| index) {
            Some(index) => self.drive(index).map_or(Next::Wait, Next::Work),
            None if self.ended && self.window.is_empty() => Next::End,
            None => Next::Wait,
        }
    }

    fn drive(&mut self, index: usize) -> Option<Work<'a, S>> {
        let lane = &mut self.runs[index];
        let batch = Arc::clone(self.window.get((lane.next - self.first) as usize)?);
        Some(Work::Drive(index, lane.run.take()?, batch))
    }

    fn take_in(&mut self, reader: Reader<'a, S>, batch: Batch, read: Result<bool, SimError<S::Error>>) {
        self.reader = Some(reader);
        match read {
            Ok(true) => self.window.push_back(Arc::new(batch)),
            Ok(false) => self.ended = true,
            Err(error) => self.failed = Some(error),
        }
        self.retire();
    }

    fn driven(&mut self, index: usize, run: &'a mut Box<dyn Run>) {
        let lane = &mut self.runs[index];
        lane.run = Some(run);
        lane.next += 1;
        self.retire();
    }

    /// Drop the batches that all runs have taken.
    fn retire(&mut self) {
        while !self.window.is_empty() && self.runs.iter().all(|lane| lane.next > self.first) {
            self.spare.extend(self.window.pop_front().and_then(Arc::into_inner));
            self.first += 1;
        }
    }
}
