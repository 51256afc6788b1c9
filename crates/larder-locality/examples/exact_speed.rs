//! The part of `make bench-locality` that times exact reuse distances: TRD and URD together, write-backs, and curves by block
//! and by request, from keys in memory.
//!
//! `exact_speed REQUESTS BLOCKS THETA` draws block numbers after Zipf's law, three in ten to be written, and prints a line of
//! JSON: `requests`, `seconds` (of the processor), `wall_seconds`, `peak_bytes` (of memory, beyond the sequence), and of the
//! outcome `read_hits` and `write_hits` (of the largest cache) and `written_back` (by one of 1,000 blocks).

// Not a part of the pure crate: it reads a clock and the kernel's account of the process.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use larder_locality::lane::{Exact, Lane, LruModel};
use larder_locality::{Blocks, CurvePolicy, Op, Piece, PolicyCurves, Stretch};
use larder_trace::{Rng, Zipf};
use std::error::Error;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Requests taken at a time.
const BATCH: usize = 4096;

/// A request is a block's key times two, and one if it writes.
const WRITES: u64 = 1;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [requests, blocks, theta] = &arguments[..] else {
        return Err("usage: exact_speed REQUESTS BLOCKS THETA".into());
    };
    let sequence = draw(requests.parse()?, blocks.parse()?, theta.parse()?)?;
    let resident = status_bytes("VmRSS")?;
    let (begun, wall) = (processor_time()?, Instant::now());
    let curves = analyze(&sequence)?;
    let (seconds, wall) = ((processor_time()? - begun).as_secs_f64(), wall.elapsed().as_secs_f64());
    let peak = status_bytes("VmHWM")?.saturating_sub(resident);
    let (all, some) = (curves.at(u64::MAX), curves.at(1000));
    println!(
        r#"{{"requests": {}, "seconds": {seconds}, "wall_seconds": {wall}, "peak_bytes": {peak}, "read_hits": {}, "write_hits": {}, "written_back": {}}}"#,
        sequence.len(),
        all.read_hits,
        all.write_hits,
        some.backing_writes,
    );
    Ok(())
}

fn draw(requests: usize, blocks: u64, theta: f64) -> Outcome<Vec<u64>> {
    let zipf = Zipf::new(blocks, theta).ok_or("no such law of Zipf")?;
    let mut rng = Rng::new(1);
    let mut request = || zipf.draw(&mut rng) << 1 | u64::from(rng.unit() >= 0.7);
    Ok((0..requests).map(|_| request()).collect())
}

fn analyze(sequence: &[u64]) -> Outcome<PolicyCurves> {
    let mut blocks = Blocks::new(1);
    let mut lane = Lane::new(LruModel::new(), Exact::new());
    let (mut keys, mut numbers, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    for requests in sequence.chunks(BATCH) {
        keys.clear();
        keys.extend(requests.iter().map(|request| request >> 1));
        numbers.clear();
        blocks.number_all(&keys, &mut numbers)?;
        pieces.clear();
        pieces.extend((1..).zip(requests).map(|(end, request)| {
            let op = if request & WRITES == 0 { Op::Read } else { Op::Write };
            Piece { op, last: true, end }
        }));
        lane.process(&Stretch { blocks: &numbers, pieces: &pieces });
    }
    Ok(PolicyCurves::new(CurvePolicy::WriteBack, lane.counted()))
}

/// What this process has had of the processor.
fn processor_time() -> Outcome<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// A line of the kernel's account of this process.
fn status_bytes(name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("/proc/self/status lacks a line")?;
    Ok(kibibytes.parse::<u64>()? << 10)
}
