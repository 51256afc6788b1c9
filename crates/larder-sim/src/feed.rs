//! The trace as batches: read, limited, cut into blocks, watched by the clock.

use std::ops::Range;

use larder_trace::{Request, RequestKind};

use crate::batch::{Batch, Begun};
use crate::block::{BlockSize, Keys};
use crate::clock::{Clock, Start};
use crate::footprint::Footprint;
use crate::pool::Fill;
use crate::{SimError, Source};

/// Requests read from the source at a time.
const READ: usize = 4096;

/// What a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Blocks that reads and writes access, each as often as it is accessed.
    pub block_accesses: u64,
    /// Distinct blocks that reads and writes access.
    pub footprint_blocks: u64,
    /// Nanoseconds from the first request to the last.
    pub elapsed_ns: u64,
    /// The first request's time in the trace; none where there is none.
    pub first_ns: Option<u64>,
}

impl Summary {
    /// Reads and writes.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }
}

/// The feed.
pub(crate) struct Feed<S> {
    source: S,
    limit: u64,
    ready: Vec<Request>,
    /// How many of `ready` are taken.
    taken: usize,
    /// A request whose blocks did not all fit, and what is left of them.
    rest: Option<(Request, Range<u64>)>,
    block: BlockSize,
    keys: Keys,
    clock: Clock,
    /// None where the footprint is known already.
    footprint: Option<Footprint>,
    /// The requests themselves are wanted too, not only their blocks.
    tells_requests: bool,
    intervals_max: usize,
    accesses: u64,
    summary: Summary,
}

impl<S: Source> Feed<S> {
    /// A feed of the first `limit` reads and writes of `source`, and what comes among them.
    pub(crate) fn new(source: S, block: BlockSize, limit: Option<u64>, clock: Clock) -> Self {
        Self {
            source,
            limit: limit.unwrap_or(u64::MAX),
            ready: Vec::with_capacity(READ),
            taken: 0,
            rest: None,
            block,
            keys: Keys::new(),
            clock,
            footprint: Some(Footprint::new()),
            tells_requests: false,
            intervals_max: usize::MAX,
            accesses: 0,
            summary: Summary::default(),
        }
    }

    /// The footprint is known: do not count it.
    pub(crate) fn with_footprint(mut self, blocks: u64) -> Self {
        self.footprint = None;
        self.summary.footprint_blocks = blocks;
        self
    }

    /// Tell the requests themselves too ([`Batch::begun`]).
    pub(crate) fn with_requests(mut self) -> Self {
        self.tells_requests = true;
        self
    }

    /// More intervals than this are an error.
    pub(crate) fn with_intervals_max(mut self, intervals: usize) -> Self {
        self.intervals_max = intervals;
        self
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What was read so far.
    pub(crate) fn summary(&self) -> Summary {
        let footprint_blocks = self.footprint.as_ref().map_or(self.summary.footprint_blocks, Footprint::len);
        Summary {
            footprint_blocks,
            elapsed_ns: self.clock.elapsed_ns(),
            first_ns: self.clock.first_ns(),
            ..self.summary
        }
    }

    /// Bytes of memory that grow with the trace's footprint.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.footprint.as_ref().map_or(0, Footprint::memory_bytes)
    }

    /// Count the blocks that reads and writes access: a whole batch at a time, for its memory to be fetched together, where no discard comes between.
    fn count(&mut self, batch: &Batch) {
        let mut begin = 0;
        let discards =
            batch.pieces.iter().enumerate().filter(|(_, piece)| piece.kind == RequestKind::Discard);
        let stretches = discards.map(|(at, _)| at).chain([batch.pieces.len()]);
        for at in stretches {
            let start_of =
                |at: usize| at.checked_sub(1).map_or(0, |before| batch.pieces[before].end as usize);
            let accesses = start_of(begin)..start_of(at);
            self.summary.block_accesses += accesses.len() as u64;
            if let Some(footprint) = &mut self.footprint {
                footprint.extend(&batch.keys[accesses.clone()], &batch.hashes[accesses]);
            }
            begin = at + 1;
        }
    }

    fn next(&mut self) -> Result<Option<Request>, SimError<S::Error>> {
        if self.clock.requests() >= self.limit {
            return Ok(None);
        }
        if self.taken == self.ready.len() {
            self.ready.clear();
            self.taken = 0;
            self.source.read(&mut self.ready, READ).map_err(SimError::Source)?;
        }
        let next = self.ready.get(self.taken).copied();
        self.taken += usize::from(next.is_some());
        Ok(next)
    }

    fn begin(
        &mut self,
        batch: &mut Batch,
        request: Request,
    ) -> Result<(Request, Range<u64>), SimError<S::Error>> {
        let requests = self.clock.requests();
        if let Some(cut) = self.clock.tick(&request) {
            batch.cut(cut);
            if self.clock.intervals().len() > self.intervals_max {
                return Err(SimError::TooManyIntervals { most: self.intervals_max });
            }
        }
        if self.tells_requests {
            let at = Start { requests, ns: self.clock.elapsed_ns() };
            batch.begun.push(Begun { piece: batch.pieces.len() as u32, at, request });
        }
        let blocks = self.block.blocks_of(&request);
        let summary = &mut self.summary;
        match request.kind {
            RequestKind::Read => summary.reads += 1,
            RequestKind::Write => summary.writes += 1,
            RequestKind::Flush => summary.flushes += 1,
            RequestKind::Discard => summary.discards += 1,
        }
        Ok((request, blocks))
    }

    fn add(
        &mut self,
        batch: &mut Batch,
        request: Request,
        blocks: Range<u64>,
    ) -> Result<(), SimError<S::Error>> {
        let room = batch.room();
        let added = self.keys.extend(&mut batch.keys, request.volume, &blocks, room)?;
        let rest = blocks.start + added..blocks.end;
        batch.end_piece(request.kind, rest.is_empty());
        self.rest = (!rest.is_empty()).then_some((request, rest));
        Ok(())
    }
}

impl<S: Source> Fill for Feed<S> {
    type Batch = Batch;
    type Error = SimError<S::Error>;

    fn fill(&mut self, batch: &mut Batch) -> Result<bool, SimError<S::Error>> {
        batch.clear(self.accesses);
        while !batch.is_full() {
            let (request, blocks) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.next()? {
                    Some(request) => self.begin(batch, request)?,
                    None => break,
                },
            };
            self.add(batch, request, blocks)?;
        }
        self.accesses += batch.keys.len() as u64;
        self.count(batch);
        Ok(!batch.pieces.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ACCESSES, PIECES};
    use crate::{Requests, Span};

    fn request(kind: RequestKind, offset: u64, len: u32) -> Request {
        Request { time_ns: 0, volume: 0, kind, offset, len }
    }

    fn batches(requests: Vec<Request>) -> (Vec<Batch>, Summary) {
        let clock = Clock::new(Span::Requests(0), None);
        let mut feed = Feed::new(Requests(requests.into_iter()), BlockSize::DEFAULT, None, clock);
        let mut batches = Vec::new();
        let mut batch = Batch::default();
        while feed.fill(&mut batch).unwrap() {
            batches.push(std::mem::take(&mut batch));
        }
        (batches, feed.summary())
    }

    #[test]
    fn a_batch_is_bounded_whatever_the_requests() {
        let huge = request(RequestKind::Discard, 0, u32::MAX);
        let flushes = vec![request(RequestKind::Flush, 0, 0); PIECES + 1];
        let (batches, summary) = batches([vec![huge; 2], flushes].concat());
        assert!(batches.iter().all(|batch| batch.keys.len() <= ACCESSES && batch.pieces.len() <= PIECES));
        assert!(batches.iter().all(|batch| batch.keys.len() == batch.hashes.len()));
        let keys: usize = batches.iter().map(|batch| batch.keys.len()).sum();
        assert_eq!(keys, 2 * ((1 << 20) - 1));
        let ends = batches.iter().flat_map(|batch| &batch.pieces).filter(|piece| piece.last).count();
        assert_eq!((ends, summary.discards, summary.flushes), (PIECES + 3, 2, PIECES as u64 + 1));
        assert!(batches.iter().map(|batch| batch.first_access).is_sorted());
    }

    #[test]
    fn discards_are_no_part_of_the_footprint() {
        let (_, summary) = batches(vec![
            request(RequestKind::Discard, 0, 8192),
            request(RequestKind::Read, 0, 4096),
            request(RequestKind::Write, 0, 8192),
            request(RequestKind::Discard, 1 << 20, 8192),
            request(RequestKind::Flush, 0, 0),
            request(RequestKind::Read, 1 << 30, 1),
            request(RequestKind::Discard, 1 << 21, 8192),
        ]);
        assert_eq!((summary.footprint_blocks, summary.block_accesses, summary.requests()), (3, 4, 3));
    }

    #[test]
    fn cuts_come_before_the_requests_that_they_are_for() {
        let clock = Clock::new(Span::Requests(1), Some(Span::Requests(2)));
        let requests = vec![request(RequestKind::Read, 0, 4096); 6];
        let mut feed = Feed::new(Requests(requests.into_iter()), BlockSize::DEFAULT, None, clock);
        let mut batch = Batch::default();
        assert!(feed.fill(&mut batch).unwrap());
        use crate::batch::Cut::{Interval, Measure};
        assert_eq!(batch.cuts, [(1, Measure), (3, Interval), (5, Interval)]);
        assert!(!feed.fill(&mut batch).unwrap());
    }
}
