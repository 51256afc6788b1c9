//! The program behind `make bench-locality`: one kind of analysis over a sequence of block numbers that lies in memory, timed.
//!
//! `locality_speed exact POLICY KEYS [DISTANCES]` analyzes all blocks, and writes `distance count` lines.
//! `locality_speed sampled RATE SEED KEYS` analyzes a sample, many requests at a time; `locality_speed observe BLOCKS KEYS` a sample of
//! bounded size, request by request, as the daemon does. `locality_speed prn_1` makes as many requests as MSR's prn_1 has, and analyzes all.
//!
//! Each prints a line of JSON: `requests`, `seconds` (of the processor), `wall_seconds`, `peak_bytes` (of memory, beyond the
//! sequence), `hits` (reads and writes that caches of a hundredth of the blocks, two hundredths, … to all of them take as hits).

// Not a part of the pure crate: it reads files and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};

use larder_locality::lane::{BatchedModel, Exact, Lane, LruModel, Model, NoAllocateModel, ReadOnlyModel};
use larder_locality::{
    Analyzer, AnalyzerConfig, BlockRequest, Blocks, CurvePolicy, Op, Piece, PolicyCurves, Sampling, Stretch,
};
use larder_trace::{Rng, Zipf};
use meter::{Meter, Outcome};

mod meter;

const USAGE: &str = "usage: locality_speed exact POLICY KEYS [DISTANCES] | sampled RATE SEED KEYS | observe BLOCKS KEYS | prn_1";

/// Requests taken at a time.
const BATCH: usize = 4096;

/// Share of the requests that read.
const READS: f64 = 0.7;

/// Batched population: requests between two ends of a mover epoch. A multiple of the batch.
const MOVER_EPOCH: usize = 25 * BATCH;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["exact", policy, keys] => exact(policy, &read(keys)?, None),
        ["exact", policy, keys, distances] => exact(policy, &read(keys)?, Some(distances)),
        ["sampled", rate, seed, keys] => sampled(rate.parse()?, seed.parse()?, &read(keys)?),
        ["observe", blocks, keys] => observe(blocks.parse()?, &read(keys)?),
        ["prn_1"] => {
            time(&like_prn_1()?, |requests| lane(CurvePolicy::WriteBack, LruModel::new(), requests)).map(drop)
        }
        _ => Err(USAGE.into()),
    }
}

/// Requests for one block each, and how many blocks there are.
struct Sequence {
    requests: Vec<BlockRequest>,
    blocks: u64,
}

impl Sequence {
    /// The blocks are numbered by rank, the most popular first; here they lie scattered, as on a disk.
    fn push(&mut self, rank: u64, reads: bool) {
        // An odd factor gives each rank below 2^32 a place of its own there.
        let first = rank.wrapping_mul(0x9e37_79b9) & u64::from(u32::MAX);
        self.requests.push(BlockRequest { op: if reads { Op::Read } else { Op::Write }, blocks: 1, first });
        self.blocks = self.blocks.max(rank + 1);
    }
}

/// The blocks of a file.
fn read(path: &str) -> Outcome<Sequence> {
    let file = File::open(path)?;
    let count = file.metadata()?.len() / 8;
    let mut sequence = Sequence { requests: Vec::with_capacity(count as usize), blocks: 0 };
    let (mut file, mut rng) = (BufReader::new(file), Rng::new(1));
    for _ in 0..count {
        let mut rank = [0; 8];
        file.read_exact(&mut rank)?;
        sequence.push(u64::from_le_bytes(rank), rng.unit() < READS);
    }
    Ok(sequence)
}

/// As many requests as prn_1 of the MSR traces has, and as many reads among them: one block each, as ECI-Cache analyzes
/// them. Where they go is not prn_1's, but harder than a disk's order: ten million blocks after Zipf's law.
fn like_prn_1() -> Outcome<Sequence> {
    const REQUESTS: usize = 11_233_411;
    let zipf = Zipf::new(10_000_000, 0.9).ok_or("no such law of Zipf")?;
    let mut sequence = Sequence { requests: Vec::with_capacity(REQUESTS), blocks: 0 };
    let mut rng = Rng::new(1);
    (0..REQUESTS).for_each(|_| sequence.push(zipf.draw(&mut rng), rng.unit() < 0.753));
    Ok(sequence)
}

fn exact(policy: &str, sequence: &Sequence, distances: Option<&str>) -> Outcome<()> {
    let policy =
        CurvePolicy::ALL.into_iter().find(|known| known.as_str() == policy).ok_or("no such policy")?;
    let curves = time(sequence, |requests| match policy {
        CurvePolicy::WriteBack | CurvePolicy::WriteThrough => lane(policy, LruModel::new(), requests),
        CurvePolicy::WriteThroughNoAllocate => lane(policy, NoAllocateModel::new(), requests),
        CurvePolicy::ReadOnly => lane(policy, ReadOnlyModel::new(), requests),
        CurvePolicy::Batched => lane(policy, BatchedModel::new(), requests),
    })?;
    let Some(path) = distances else { return Ok(()) };
    let mut out = BufWriter::new(File::create(path)?);
    curves.distances().iter().try_for_each(|(distance, count)| writeln!(out, "{distance} {count}"))?;
    Ok(out.flush()?)
}

/// TRD and URD, by block and by request, write-backs: all that a lane counts.
fn lane(policy: CurvePolicy, model: impl Model, requests: &[BlockRequest]) -> Outcome<PolicyCurves> {
    let mut blocks = Blocks::new(1);
    let mut lane = Lane::new(model, Exact::new());
    let (mut keys, mut numbers, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    for (batch, requests) in (1..).zip(requests.chunks(BATCH)) {
        keys.clear();
        keys.extend(requests.iter().map(|request| request.first));
        numbers.clear();
        blocks.number_all(&keys, &mut numbers)?;
        pieces.clear();
        pieces.extend((1..).zip(requests).map(|(end, request)| Piece { op: request.op, last: true, end }));
        if policy == CurvePolicy::Batched && (batch * BATCH).is_multiple_of(MOVER_EPOCH) {
            pieces.push(Piece { op: Op::Populate, last: true, end: numbers.len() as u32 });
        }
        lane.process(&Stretch { blocks: &numbers, pieces: &pieces });
    }
    Ok(PolicyCurves::new(policy, lane.counted()))
}

fn sampled(rate: f64, seed: u64, sequence: &Sequence) -> Outcome<()> {
    let (policies, sampling) = (vec![CurvePolicy::WriteBack], Sampling::Rate(rate));
    let config = AnalyzerConfig { policies, sampling, history_blocks: u64::MAX, seed };
    let curves = |requests: &[BlockRequest]| {
        let mut analyzer = Analyzer::new(&config);
        analyzer.observe_all(requests);
        analyzer.curves().pop().ok_or_else(|| "no curves".into())
    };
    time(sequence, curves).map(drop)
}

/// With the policy that the daemon asks for, and the history that it keeps at least.
fn observe(blocks: u32, sequence: &Sequence) -> Outcome<()> {
    let (policies, sampling) = (vec![CurvePolicy::WriteThrough], Sampling::Blocks(blocks));
    let config = AnalyzerConfig { policies, sampling, history_blocks: 1 << 20, seed: 1 };
    let curves = |requests: &[BlockRequest]| {
        let mut analyzer = Analyzer::new(&config);
        for request in requests {
            analyzer.observe(request.op, request.first..request.first + 1);
        }
        analyzer.curves().pop().ok_or_else(|| "no curves".into())
    };
    time(sequence, curves).map(drop)
}

/// Run an analysis, and tell what it took and what it found.
fn time(
    sequence: &Sequence,
    analysis: impl FnOnce(&[BlockRequest]) -> Outcome<PolicyCurves>,
) -> Outcome<PolicyCurves> {
    let meter = Meter::start()?;
    let curves = analysis(&sequence.requests)?;
    let taken = meter.taken()?;
    let hits = (1..=100)
        .map(|share| curves.at(sequence.blocks * share / 100))
        .map(|at| at.read_hits + at.write_hits);
    let hits: Vec<u64> = hits.collect();
    println!(r#"{{"requests": {}, {taken}, "hits": {hits:?}}}"#, sequence.requests.len());
    Ok(curves)
}
