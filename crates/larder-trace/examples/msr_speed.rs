//! The part of `make bench-sim` that times the reading of MSR Cambridge CSV.
//!
//! `msr_speed generate REQUESTS FILE` writes a trace to read; `msr_speed read FILE` reads it and prints a line of JSON: `bytes` and `requests`. Whoever
//! runs it times it.

use larder_trace::{GeneratorSpec, MsrWriter, Trace, Volume};
use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;

/// The time of the first request (ns since 1601): time stamps as long as those of real traces.
const START_NS: u64 = 13_408_000_000_000_000_000;
/// Requests read at a time.
const BATCH: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["generate", requests, file] => generate(requests.parse()?, file),
        ["read", file] => read(file),
        _ => Err("usage: msr_speed generate REQUESTS FILE | msr_speed read FILE".into()),
    }
}

fn generate(requests: u64, file: &str) -> Result<(), Box<dyn Error>> {
    let spec: GeneratorSpec =
        format!("zipf:theta=0.9,blocks=4000000,requests={requests},read=0.7,interval=130us").parse()?;
    let volume = Volume { tenant: "prxy".into(), disk: "1".into() };
    let mut writer = MsrWriter::new(BufWriter::new(File::create(file)?));
    for mut request in spec.open() {
        request.time_ns += START_NS;
        writer.write(&request, &volume)?;
    }
    writer.finish()?;
    Ok(())
}

fn read(file: &str) -> Result<(), Box<dyn Error>> {
    let bytes = fs::metadata(file)?.len();
    let mut trace = Trace::open(file, None)?;
    let (mut batch, mut requests) = (Vec::with_capacity(BATCH), 0);
    while trace.read_batch(&mut batch, BATCH)? {
        requests += batch.len();
        batch.clear();
    }
    println!(r#"{{"bytes": {bytes}, "requests": {requests}}}"#);
    Ok(())
}
