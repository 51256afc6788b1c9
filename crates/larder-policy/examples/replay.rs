//! The program behind `make bench-sim`: one policy over a sequence of accesses that lies in memory, timed.
//!
//! `replay zipf ACCESSES OBJECTS SEED KEYS ORACLE` writes a sequence twice: its keys as u64 (little-endian), for `run`; and as `oracleGeneral`, for the peer.
//! `replay run POLICY CAPACITY KEYS` prints a line of JSON: `accesses`, `hits`, `seconds` (of the processor), `prepared_seconds` (Belady's next uses, found
//! before the clock starts) and `peak_bytes` (of memory, beyond the sequence and what Belady knows of it).

// Not a part of the pure crate: it reads files and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "../tests/peer/sequence.rs"]
mod sequence;

use larder_policy::belady::{Belady, NextUses};
use larder_policy::replacement::{
    aging_lfu, arc, clock, fifo, lfu, lirs, lru, mq, random, s3fifo, sieve, twoq, wtinylfu,
};
use larder_policy::spec::PolicySpec;
use larder_policy::{Cache, Replacement};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::sync::Arc;
use std::time::Duration;

const USAGE: &str = "usage: replay zipf ACCESSES OBJECTS SEED KEYS ORACLE | replay run POLICY CAPACITY KEYS";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["zipf", accesses, objects, seed, keys, oracle] => {
            let sequence = sequence::zipf(accesses.parse()?, objects.parse()?, seed.parse()?);
            write(&sequence, keys, oracle)
        }
        ["run", policy, capacity, keys] => run(policy.parse()?, capacity.parse()?, &read(keys)?),
        _ => Err(USAGE.into()),
    }
}

fn write(sequence: &[u64], keys: &str, oracle: &str) -> Outcome<()> {
    let mut out = BufWriter::new(File::create(keys)?);
    sequence.iter().try_for_each(|key| out.write_all(&key.to_le_bytes()))?;
    out.flush()?;
    let mut out = BufWriter::new(File::create(oracle)?);
    sequence::write_oracle_general(sequence, &mut out)?;
    Ok(out.flush()?)
}

fn read(path: &str) -> Outcome<Vec<u64>> {
    let file = File::open(path)?;
    let count = file.metadata()?.len() / 8;
    let (mut file, mut keys) = (BufReader::new(file), Vec::with_capacity(count as usize));
    for _ in 0..count {
        let mut key = [0; 8];
        file.read_exact(&mut key)?;
        keys.push(u64::from_le_bytes(key));
    }
    Ok(keys)
}

fn run(policy: PolicySpec, capacity: u32, keys: &[u64]) -> Outcome<()> {
    match policy {
        PolicySpec::Fifo => time(fifo::Fifo::new(), capacity, keys),
        PolicySpec::Lru | PolicySpec::Larc => time(lru::Lru::new(), capacity, keys),
        PolicySpec::Clock { bits } => time(clock::Clock::new(bits), capacity, keys),
        PolicySpec::Lfu => time(lfu::Lfu::new(), capacity, keys),
        PolicySpec::AgingLfu => time(aging_lfu::AgingLfu::default(), capacity, keys),
        PolicySpec::Arc => time(arc::Arc::new(), capacity, keys),
        PolicySpec::Mq => time(mq::Mq::new(), capacity, keys),
        PolicySpec::TwoQ => time(twoq::TwoQ::new(), capacity, keys),
        PolicySpec::Lirs => time(lirs::Lirs::new(), capacity, keys),
        PolicySpec::S3Fifo => time(s3fifo::S3Fifo::new(), capacity, keys),
        PolicySpec::Sieve => time(sieve::Sieve::new(), capacity, keys),
        PolicySpec::WTinyLfu => time(wtinylfu::WTinyLfu::new(), capacity, keys),
        PolicySpec::Random => time(random::Random::new(1), capacity, keys),
        PolicySpec::Belady => {
            let begun = processor_time()?;
            let uses = Arc::new(NextUses::of(keys.iter().copied())?);
            let prepared = processor_time()? - begun;
            time_prepared(Belady::new(uses), capacity, keys, prepared)
        }
    }
}

fn time(policy: impl Replacement, capacity: u32, keys: &[u64]) -> Outcome<()> {
    time_prepared(policy, capacity, keys, Duration::ZERO)
}

fn time_prepared(policy: impl Replacement, capacity: u32, keys: &[u64], prepared: Duration) -> Outcome<()> {
    let resident = status_bytes("VmRSS")?;
    let begun = processor_time()?;
    let mut cache = Cache::new(capacity, policy);
    let hits = cache.access_all(keys);
    let seconds = (processor_time()? - begun).as_secs_f64();
    let peak = status_bytes("VmHWM")?.saturating_sub(resident);
    let (accesses, prepared) = (keys.len(), prepared.as_secs_f64());
    println!(
        r#"{{"accesses": {accesses}, "hits": {hits}, "seconds": {seconds}, "prepared_seconds": {prepared}, "peak_bytes": {peak}}}"#
    );
    Ok(())
}

/// What this thread has had of the processor.
fn processor_time() -> Outcome<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
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
