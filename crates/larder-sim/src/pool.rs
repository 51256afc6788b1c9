//! Threads that read the trace and drive workers over it (the runs of a simulation, the parts of an analysis), each at its own pace.
//!
//! The batches that some worker has not taken yet are the *window*, of a bounded length. A thread that looks for work reads the next batch if the window has
//! room and nobody reads, or else takes the worker that is furthest behind one batch further. So every thread is busy while any work can be done, whatever the
//! workers cost, and nothing waits for the slowest of them but the reader, once the window is full. Each worker takes all batches in order, on whichever
//! thread: what it finds does not depend on their number.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::batch::Batch;
use crate::run::Run;

/// Batches in the window.
const WINDOW: usize = 4;

/// Where batches come from.
pub(crate) trait Fill: Send {
    /// What it fills.
    type Batch: Default + Send + Sync;

    /// Why there may be no more.
    type Error: Send;

    /// Fill a batch with what comes next; false if that is nothing.
    fn fill(&mut self, batch: &mut Self::Batch) -> Result<bool, Self::Error>;
}

/// What takes them.
pub(crate) trait Worker<B>: Send {
    /// Take the next batch.
    fn take(&mut self, batch: &B);
}

impl Worker<Batch> for Box<dyn Run> {
    fn take(&mut self, batch: &Batch) {
        self.process(batch);
    }
}

/// Called with the feed after each batch.
pub(crate) type Watch<'a, F> = &'a mut (dyn FnMut(&F) + Send);

/// Take all workers through the whole trace.
pub(crate) fn drive<F: Fill, W: Worker<F::Batch>>(
    feed: &mut F,
    workers: &mut [W],
    threads: NonZero<usize>,
    watch: Watch<'_, F>,
) -> Result<(), F::Error> {
    // More than one per worker and one that reads would find nothing to do.
    let threads = threads.get().min(workers.len() + 1);
    let pool = Pool { board: Mutex::new(Board::new(feed, workers, watch)), changed: Condvar::new() };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| pool.work());
        }
        pool.work();
    });
    let board = pool.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    board.failed.map_or(Ok(()), Err)
}

struct Pool<'a, F: Fill, W> {
    board: Mutex<Board<'a, F, W>>,
    /// There may be work again, or none for ever.
    changed: Condvar,
}

/// What there is to do.
struct Board<'a, F: Fill, W> {
    /// Gone while a thread reads.
    reader: Option<Reader<'a, F>>,
    window: VecDeque<Arc<F::Batch>>,
    /// The number of the first batch in the window.
    first: u64,
    lanes: Vec<Lane<'a, W>>,
    /// Batches to be filled again.
    spare: Vec<F::Batch>,
    ended: bool,
    failed: Option<F::Error>,
    /// A thread panicked: nothing will come of it.
    broken: bool,
}

struct Reader<'a, F> {
    feed: &'a mut F,
    watch: Watch<'a, F>,
}

/// A worker and where it is.
struct Lane<'a, W> {
    /// Gone while a thread drives it.
    worker: Option<&'a mut W>,
    /// The number of the batch that it takes next.
    next: u64,
}

enum Work<'a, F: Fill, W> {
    Read(Reader<'a, F>, F::Batch),
    Drive(usize, &'a mut W, Arc<F::Batch>),
}

enum Next<'a, F: Fill, W> {
    Work(Work<'a, F, W>),
    /// What is left to do waits for others.
    Wait,
    End,
}

impl<'a, F: Fill, W: Worker<F::Batch>> Pool<'a, F, W> {
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

    fn perform(&self, work: Work<'a, F, W>) -> MutexGuard<'_, Board<'a, F, W>> {
        match work {
            Work::Read(reader, mut batch) => {
                let read = reader.feed.fill(&mut batch);
                (reader.watch)(reader.feed);
                let mut board = self.lock();
                board.take_in(reader, batch, read);
                board
            }
            Work::Drive(index, worker, batch) => {
                worker.take(&batch);
                drop(batch);
                let mut board = self.lock();
                board.driven(index, worker);
                board
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board<'a, F, W>> {
        // Nothing panics while the board is changed half.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the other threads end when one panics, so that the panic is seen.
struct Guard<'p, 'a, F: Fill, W: Worker<F::Batch>>(&'p Pool<'a, F, W>);

impl<F: Fill, W: Worker<F::Batch>> Drop for Guard<'_, '_, F, W> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().broken = true;
            self.0.changed.notify_all();
        }
    }
}

impl<'a, F: Fill, W> Board<'a, F, W> {
    fn new(feed: &'a mut F, workers: &'a mut [W], watch: Watch<'a, F>) -> Self {
        Self {
            reader: Some(Reader { feed, watch }),
            window: VecDeque::with_capacity(WINDOW),
            first: 0,
            lanes: workers.iter_mut().map(|worker| Lane { worker: Some(worker), next: 0 }).collect(),
            spare: Vec::new(),
            ended: false,
            failed: None,
            broken: false,
        }
    }

    fn next(&mut self) -> Next<'a, F, W> {
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
        let waiting = self.lanes.iter().enumerate();
        let waiting = waiting.filter(|(_, lane)| lane.worker.is_some() && lane.next < read);
        match waiting.min_by_key(|(_, lane)| lane.next).map(|(index, _)| index) {
            Some(index) => self.drive(index).map_or(Next::Wait, Next::Work),
            None if self.ended && self.window.is_empty() => Next::End,
            None => Next::Wait,
        }
    }

    fn drive(&mut self, index: usize) -> Option<Work<'a, F, W>> {
        let lane = &mut self.lanes[index];
        let batch = Arc::clone(self.window.get((lane.next - self.first) as usize)?);
        Some(Work::Drive(index, lane.worker.take()?, batch))
    }

    fn take_in(&mut self, reader: Reader<'a, F>, batch: F::Batch, read: Result<bool, F::Error>) {
        self.reader = Some(reader);
        match read {
            Ok(true) => self.window.push_back(Arc::new(batch)),
            Ok(false) => self.ended = true,
            Err(error) => self.failed = Some(error),
        }
        self.retire();
    }

    fn driven(&mut self, index: usize, worker: &'a mut W) {
        let lane = &mut self.lanes[index];
        lane.worker = Some(worker);
        lane.next += 1;
        self.retire();
    }

    /// Drop the batches that all workers have taken.
    fn retire(&mut self) {
        while !self.window.is_empty() && self.lanes.iter().all(|lane| lane.next > self.first) {
            self.spare.extend(self.window.pop_front().and_then(Arc::into_inner));
            self.first += 1;
        }
    }
}
