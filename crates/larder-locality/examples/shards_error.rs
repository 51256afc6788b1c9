//! How far the curves of a sample are from the exact ones: one JSON line for each sample.
//!
//! `shards_error zipf [REQUESTS [BLOCKS [READ_SHARE]]]` for Zipf's law with exponent 1 (20,000,000 requests over 1,000,000
//! blocks, all reads); `shards_error TRACE…` for files. Samples: rate 0.01 and 8,192 blocks at most; of files, the rate
//! that gives 8,192 blocks too. `SEEDS=n` takes n samples of each kind.

// Not a part of the pure crate.
#![allow(clippy::disallowed_methods)]

use std::io::Write;
use std::path::Path;

use larder_locality::{BlockRequest, CurvePolicy, PolicyCurves, Sampling};

#[path = "../tests/accuracy/mod.rs"]
mod accuracy;

use accuracy::{errors, even_sizes, exact, rising_sizes, sampled, trace, with_mover_epochs, zipf};

const SAMPLE: u32 = 8192;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1);
    if arguments.first().is_none_or(|first| first == "zipf") {
        let number = |at: usize, otherwise: f64| {
            arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
        };
        let requests = zipf(number(1, 2e7) as u64, number(2, 1e6) as u64, number(3, 1.0), 1);
        let samples = [Sampling::Rate(0.01), Sampling::Blocks(SAMPLE)];
        return report("zipf", &requests, &[CurvePolicy::WriteBack], &samples, seeds);
    }
    for file in &arguments {
        let requests = with_mover_epochs(trace(Path::new(file)), 20_000);
        let footprint = exact(&requests, &[]).0;
        let rate = f64::from(SAMPLE) / f64::from(footprint.max(SAMPLE));
        let samples = [Sampling::Rate(rate), Sampling::Blocks(SAMPLE)];
        report(file, &requests, &CurvePolicy::ALL, &samples, seeds)?;
    }
    Ok(())
}

fn report(
    name: &str,
    requests: &[BlockRequest],
    policies: &[CurvePolicy],
    samples: &[Sampling],
    seeds: u64,
) -> std::io::Result<()> {
    let (footprint, curves) = exact(requests, policies);
    for sampling in samples {
        for seed in 0..seeds {
            let analyzer = sampled(requests, policies, *sampling, seed);
            let head = format!(
                r#"{{"trace": "{name}", "footprint_blocks": {footprint}, "sampling": "{sampling:?}", "seed": {seed}, "#
            );
            let state = format!(
                r#""rate": {:.5}, "sampled_blocks": {}, "footprint_estimate": {}, "memory_bytes": {}"#,
                analyzer.rate(),
                analyzer.sampled_blocks(),
                analyzer.footprint_blocks(),
                analyzer.memory_bytes(),
            );
            let policies = curves
                .iter()
                .zip(analyzer.curves())
                .map(|(exact, sample)| of_policy(exact, &sample, footprint));
            writeln!(std::io::stdout(), "{head}{state}, {}}}", policies.collect::<Vec<_>>().join(", "))?;
        }
    }
    Ok(())
}

/// The errors over 1 % to 100 % of the footprint, and over sizes by equal factors.
fn of_policy(exact: &PolicyCurves, sample: &PolicyCurves, footprint: u32) -> String {
    let scale = |name: &str, sizes: &[u64]| {
        let errors = errors(exact, sample, sizes);
        format!(
            r#""{name}": {{"blocks": {:.5}, "requests": {:.5}, "ssd_writes": {:.5}, "backing_writes": {:.5}}}"#,
            errors.blocks, errors.requests, errors.ssd_writes, errors.backing_writes
        )
    };
    let (even, rising) = (scale("even", &even_sizes(footprint)), scale("rising", &rising_sizes(footprint)));
    format!(r#""{}": {{{even}, {rising}}}"#, exact.policy())
}
