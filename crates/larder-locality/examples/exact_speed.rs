//! The part of `make bench-locality` that times exact reuse distances: TRD and URD together, write-backs, and curves by block
//! and by request, from keys in memory.
//!
//! `exact_speed REQUESTS BLOCKS THETA [THREADS]` draws block numbers after Zipf's law, three in ten to be written, and prints a
//! line of JSON: `requests`, `seconds` (of the processor), `wall_seconds`, `peak_bytes` (of memory, beyond the sequence), and of
//! the outcome `read_hits` and `write_hits` (of the largest cache) and `written_back` (by one of 1,000 blocks). With `THREADS`
//! the sequence is analyzed in parts, which are joined; the outcome is the same.

// Not a part of the pure crate: it reads a clock and the kernel's account of the process.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use larder_locality::lane::{Exact, Lane, LruModel, LruPart};
use larder_locality::{BlockId, Blocks, CurvePolicy, Op, Piece, PolicyCurves, Stretch, TooManyBlocks};
use larder_trace::{Rng, Zipf};
use std::sync::{Condvar, Mutex, PoisonError};

use meter::{Meter, Outcome};

mod meter;

type Lru = Lane<LruModel, Exact>;

/// Requests taken at a time.
const BATCH: usize = 4096;

/// Requests of a part.
const PART: usize = 1 << 21;

/// A request is a block's key times two, and one if it writes.
const WRITES: u64 = 1;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (sequence, threads) = match &arguments[..] {
        [requests, blocks, theta] => (draw(requests, blocks, theta)?, None),
        [requests, blocks, theta, threads] => (draw(requests, blocks, theta)?, Some(threads.parse()?)),
        _ => return Err("usage: exact_speed REQUESTS BLOCKS THETA [THREADS]".into()),
    };
    let meter = Meter::start()?;
    let lane = threads.map_or_else(|| analyze(&sequence), |threads| analyze_in_parts(&sequence, threads))?;
    let curves = PolicyCurves::new(CurvePolicy::WriteBack, lane.counted());
    let taken = meter.taken()?;
    let (all, some) = (curves.at(u64::MAX), curves.at(1000));
    println!(
        r#"{{"requests": {}, {taken}, "read_hits": {}, "write_hits": {}, "written_back": {}}}"#,
        sequence.len(),
        all.read_hits,
        all.write_hits,
        some.backing_writes,
    );
    Ok(())
}

fn draw(requests: &str, blocks: &str, theta: &str) -> Outcome<Vec<u64>> {
    let zipf = Zipf::new(blocks.parse()?, theta.parse()?).ok_or("no such law of Zipf")?;
    let mut rng = Rng::new(1);
    let mut request = || zipf.draw(&mut rng) << 1 | u64::from(rng.unit() >= 0.7);
    Ok((0..requests.parse()?).map(|_| request()).collect())
}

/// Requests as pieces of a stretch.
#[derive(Default)]
struct Batch {
    keys: Vec<u64>,
    numbers: Vec<BlockId>,
    pieces: Vec<Piece>,
}

impl Batch {
    fn fill(&mut self, requests: &[u64], blocks: &mut Blocks) -> Result<(), TooManyBlocks> {
        self.keys.clear();
        self.keys.extend(requests.iter().map(|request| request >> 1));
        self.numbers.clear();
        blocks.number_all(&self.keys, &mut self.numbers)
    }

    fn stretch(&mut self, requests: &[u64]) -> Stretch<'_> {
        self.pieces.clear();
        self.pieces.extend((1..).zip(requests).map(|(end, request)| {
            let op = if request & WRITES == 0 { Op::Read } else { Op::Write };
            Piece { op, last: true, end }
        }));
        Stretch { blocks: &self.numbers, pieces: &self.pieces }
    }
}

fn analyze(sequence: &[u64]) -> Result<Lru, TooManyBlocks> {
    let mut blocks = Blocks::new(1);
    let mut lane = Lane::new(LruModel::new(), Exact::new());
    let mut batch = Batch::default();
    for requests in sequence.chunks(BATCH) {
        batch.fill(requests, &mut blocks)?;
        lane.process(&batch.stretch(requests));
    }
    Ok(lane)
}

/// What threads share: the numbering of the parts, in their order, and the lane to which they are joined, in their order.
struct Shared {
    /// The part that is to be numbered next.
    numbering: Mutex<(usize, Blocks)>,
    /// The part that is to be joined next.
    joined: Mutex<(usize, Lru)>,
    turn: Condvar,
}

fn analyze_in_parts(sequence: &[u64], threads: usize) -> Result<Lru, TooManyBlocks> {
    let shared = Shared {
        numbering: Mutex::new((0, Blocks::new(1))),
        joined: Mutex::new((0, Lane::new(LruModel::new(), Exact::new()))),
        turn: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let work = || shared.work(sequence);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    Ok(shared.joined.into_inner().unwrap_or_else(PoisonError::into_inner).1)
}

impl Shared {
    fn work(&self, sequence: &[u64]) -> Result<(), TooManyBlocks> {
        let mut batch = Batch::default();
        loop {
            let mut numbering = self.numbering.lock().unwrap_or_else(PoisonError::into_inner);
            let (next, blocks) = &mut *numbering;
            let at = *next;
            let Some(requests) = sequence.chunks(PART).nth(at) else { return Ok(()) };
            *next += 1;
            batch.fill(requests, blocks)?;
            drop(numbering);
            let mut part = LruPart::new();
            part.process(&batch.stretch(requests));
            self.join(at, &part);
        }
    }

    fn join(&self, at: usize, part: &LruPart) {
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turn.wait_while(joined, |joined| joined.0 != at);
        let mut joined = turn.unwrap_or_else(PoisonError::into_inner);
        joined.1.join(part);
        joined.0 += 1;
        self.turn.notify_all();
    }
}
