//! The curves of samples against the exact ones: generated requests by Zipf's law, and recorded disks where they are at hand.
//!
//! Errors are means over 100 sizes from 1 % to 100 % of the footprint; of recorded disks also over sizes that rise by equal
//! factors from a ten thousandth of it. The traces may not be published: where they are
//! absent, the test says so, and the generated requests stand alone.

use std::path::Path;

use larder_locality::{CurvePolicy, Sampling};

mod accuracy;

use accuracy::{errors, even_sizes, exact, rising_sizes, sampled, trace, with_mover_epochs, zipf};

/// Samples of some 10,000 blocks, as a rate of 0.01 takes of a million: `examples/shards_error.rs` measures that. Which blocks
/// are drawn decides: how many of the hottest thousand are among them is a matter of chance, and with it the scale of sizes.
#[test]
fn zipf_is_told_within_a_few_thousandths() {
    let requests = zipf(2_000_000, 200_000, 0.7, 1);
    let (footprint, curves) = exact(&requests, &[CurvePolicy::WriteBack]);
    let error = |sampling, seed| {
        let sample = sampled(&requests, &[CurvePolicy::WriteBack], sampling, seed);
        let errors = errors(&curves[0], &sample.curves()[0], &even_sizes(footprint));
        errors.blocks.max(errors.requests).max(errors.ssd_writes)
    };
    for (sampling, most) in [(Sampling::Rate(0.05), 0.006), (Sampling::Blocks(8192), 0.005)] {
        let errors: Vec<_> = (0..6).map(|seed| error(sampling, seed)).collect();
        assert!(errors.iter().sum::<f64>() / 6.0 <= 0.0025, "{sampling:?}: {errors:?}");
        assert!(errors.iter().all(|&error| error <= most), "{sampling:?}: {errors:?}");
    }
}

/// All policies at once.
#[test]
fn a_sample_of_bounded_size_takes_less_than_two_mebibytes() {
    let requests = with_mover_epochs(zipf(300_000, 200_000, 0.7, 1), 10_000);
    let sample = sampled(&requests, &CurvePolicy::ALL, Sampling::Blocks(8192), 3);
    assert!((7168..=8192).contains(&sample.sampled_blocks()));
    assert!(sample.memory_bytes() < 2 << 20, "{} bytes", sample.memory_bytes());
}

/// Hits by request have a bound of their own: the documentation of the analysis tells why.
#[test]
fn recorded_disks_are_told_within_two_hundredths() {
    for name in ["recorded/redis.csv.zst", "recorded/build.csv.zst", "cloudPhysicsIO.vscsi"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
        if !file.exists() {
            eprintln!("NOTE: ../shared/traces/{name} is absent: samples of it are not checked");
            continue;
        }
        let requests = with_mover_epochs(trace(&file), 20_000);
        let (footprint, curves) = exact(&requests, &CurvePolicy::ALL);
        let rate = (8192.0 / f64::from(footprint)).min(1.0);
        let sample = sampled(&requests, &CurvePolicy::ALL, Sampling::Rate(rate), 1);
        for (exact, sample) in curves.iter().zip(sample.curves()) {
            let small = errors(exact, &sample, &rising_sizes(footprint));
            assert!(
                small.blocks <= 0.03 && small.ssd_writes <= 0.03,
                "{name}, {}: {small:?}",
                exact.policy()
            );
            let errors = errors(exact, &sample, &even_sizes(footprint));
            assert!(
                errors.blocks <= 0.02 && errors.ssd_writes <= 0.02,
                "{name}, {}: {errors:?}",
                exact.policy()
            );
            assert!(errors.backing_writes <= 0.02, "{name}, {}: {errors:?}", exact.policy());
            assert!(errors.requests <= 0.06, "{name}, {}: {errors:?}", exact.policy());
        }
    }
}
