//! The program behind `make bench-locality`: one kind of analysis over a sequence of block numbers that lies in memory, timed.
//!
//! `locality_speed exact POLICY KEYS [DISTANCES]` analyzes all blocks, and writes `distance count` lines.
//! `locality_speed parts THREADS KEYS` does the same for `wb`, in parts that threads analyze.
//! `locality_speed sampled RATE KEYS` analyzes a sample, many requests at a time; `locality_speed observe BLOCKS KEYS` a sample of
//! bounded size, request by request, as the daemon does. `locality_speed prn_1` makes as many requests as MSR's prn_1 has, and analyzes all.
//!
//! Each prints a line of JSON: `requests`, `seconds` (of the processor), `wall_seconds`, `peak_bytes` (of memory, beyond the
//! sequence), `hits` (reads and writes that caches of a hundredth of the blocks, two hundredths, … to all of them take as hits).

// Not a part of the pure crate: it reads files and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::time::{Duration, Instant};

use larder_locality::lane::{BatchedModel, Exact, Lane, LruModel, Model, NoAllocateModel, ReadOnlyModel};
use larder_locality::{
    Analyzer, AnalyzerConfig, BlockRequest, Blocks, CurvePolicy, Op, Piece, PolicyCurves, Sampling, Stretch,
};
use larder_trace::{Rng, Zipf};

const USAGE: &str =
    "usage: locality_speed exact POLICY KEYS [DISTANCES] | sampled RATE KEYS | observe BLOCKS KEYS | prn_1";

type Outcome<T> = Result<T, Box<dyn Error>>;

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
        ["sampled", rate, keys] => sampled(rate.parse()?, &read(keys)?),
        ["observe", blocks, keys] => observe(blocks.parse()?, &read(keys)?),
        ["prn_1"] => {
            time(&like_prn_1()?, |requests| lane(CurvePolicy::WriteBack, LruModel::new(), requests)).map(drop)
        }
        _ => Err(USAGE.into()),
    }
}

/// The keys of a file, as requests for one block each.
fn read(path: &str) -> Outcome<Vec<BlockRequest>> {
    let file = File::open(path)?;
    let count = file.metadata()?.len() / 8;
    let (mut file, mut requests) = (BufReader::new(file), Vec::with_capacity(count as usize));
    let mut rng = Rng::new(1);
    for _ in 0..count {
        let mut key = [0; 8];
        file.read_exact(&mut key)?;
        requests.push(request(u64::from_le_bytes(key), rng.unit() < READS));
    }
    Ok(requests)
}

fn request(first: u64, reads: bool) -> BlockRequest {
    BlockRequest { op: if reads { Op::Read } else { Op::Write }, blocks: 1, first }
}

/// As many requests as prn_1 of the MSR traces has, and as many reads among them: one block each, as ECI-Cache analyzes
/// them. Where they go is not prn_1's, but harder than a disk's order: ten million blocks after Zipf's law.
fn like_prn_1() -> Outcome<Vec<BlockRequest>> {
    let zipf = Zipf::new(10_000_000, 0.9).ok_or("no such law of Zipf")?;
    let mut rng = Rng::new(1);
    let mut draw = || request(zipf.draw(&mut rng).wrapping_mul(0x9e37_79b9) % 10_000_000, rng.unit() < 0.753);
    Ok((0..11_233_411).map(|_| draw()).collect())
}

fn exact(policy: &str, requests: &[BlockRequest], distances: Option<&str>) -> Outcome<()> {
    let policy =
        CurvePolicy::ALL.into_iter().find(|known| known.as_str() == policy).ok_or("no such policy")?;
    let curves = time(requests, |requests| match policy {
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
        if policy == CurvePolicy::Batched && batch * BATCH % MOVER_EPOCH == 0 {
            pieces.push(Piece { op: Op::Populate, last: true, end: numbers.len() as u32 });
        }
        lane.process(&Stretch { blocks: &numbers, pieces: &pieces });
    }
    Ok(PolicyCurves::new(policy, lane.counted()))
}

fn analyzer(sampling: Sampling) -> Analyzer {
    let policies = vec![CurvePolicy::WriteBack];
    Analyzer::new(&AnalyzerConfig { policies, sampling, history_blocks: u64::MAX, seed: 1 })
}

fn sampled(rate: f64, requests: &[BlockRequest]) -> Outcome<()> {
    let curves = |requests: &[BlockRequest]| {
        let mut analyzer = analyzer(Sampling::Rate(rate));
        analyzer.observe_all(requests);
        analyzer.curves().pop().ok_or_else(|| "no curves".into())
    };
    time(requests, curves).map(drop)
}

fn observe(blocks: u32, requests: &[BlockRequest]) -> Outcome<()> {
    let curves = |requests: &[BlockRequest]| {
        let mut analyzer = analyzer(Sampling::Blocks(blocks));
        for request in requests {
            analyzer.observe(request.op, request.first..request.first + 1);
        }
        analyzer.curves().pop().ok_or_else(|| "no curves".into())
    };
    time(requests, curves).map(drop)
}

/// Run an analysis, and tell what it took and what it found.
fn time(
    requests: &[BlockRequest],
    analysis: impl FnOnce(&[BlockRequest]) -> Outcome<PolicyCurves>,
) -> Outcome<PolicyCurves> {
    let resident = status_bytes("VmRSS")?;
    let (begun, wall) = (processor_time()?, Instant::now());
    let curves = analysis(requests)?;
    let (seconds, wall) = ((processor_time()? - begun).as_secs_f64(), wall.elapsed().as_secs_f64());
    let peak = status_bytes("VmHWM")?.saturating_sub(resident);
    let blocks = requests.iter().map(|request| request.first + 1).max().unwrap_or(0);
    let hits = (1..=100).map(|share| curves.at(blocks * share / 100)).map(|at| at.read_hits + at.write_hits);
    let hits: Vec<u64> = hits.collect();
    println!(
        r#"{{"requests": {}, "seconds": {seconds}, "wall_seconds": {wall}, "peak_bytes": {peak}, "hits": {hits:?}}}"#,
        requests.len(),
    );
    Ok(curves)
}

/// What this process has had of the processor.
fn processor_time() -> Outcome<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// A line of the kernel's account of this process.
fn status_bytes(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("/proc/self/status lacks a line")?;
    Ok(kibibytes.parse::<u64>()? << 10)
}
