//! Every policy beside libCacheSim's, the peer that others trust: the same accesses, the same cache sizes, miss counts side by side.
//!
//! It installs and runs the peer (`scripts/peers.sh`). `cargo test -p larder-policy --test peer -- --nocapture` shows the counts.

// A test, not a part of the pure crate: it writes a file for the peer to read, and any failure is its own.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

#[path = "peer/sequence.rs"]
mod sequence;

use larder_policy::any::AnyReplacement;
use larder_policy::belady::{Belady, NextUses};
use larder_policy::spec::PolicySpec;
use larder_policy::{Cache, Replacement};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Cache sizes, in percent of the footprint.
const PERCENTS: [usize; 3] = [1, 10, 30];

/// How far apart two miss ratios may be where the definitions differ.
const DIFFERENCE_MAX: f64 = 0.005;

/// Policies whose definition differs from libCacheSim's in a point that the policy's documentation names.
const DIFFER: [&str; 1] = ["lirs"];

/// Policies that are shown only: another policy under the same name (its documentation lists the differences), and one that draws lots.
const SHOWN_ONLY: [&str; 2] = ["w-tinylfu", "random"];

/// The miss counts of a policy at each of the sizes.
type Counts = BTreeMap<String, Vec<u64>>;

/// The python that has the peer, which is installed if need be.
fn python() -> PathBuf {
    let script = Path::new(CRATE).join("../../scripts/peers.sh");
    let out = Command::new(&script).output().unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    assert!(out.status.success(), "scripts/peers.sh: {}", String::from_utf8_lossy(&out.stderr));
    PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
}

fn their_misses(keys: &[u64], sizes: &[usize]) -> Counts {
    let mut trace = tempfile::Builder::new().suffix(".oracleGeneral").tempfile().unwrap();
    let mut out = BufWriter::new(trace.as_file_mut());
    sequence::write_oracle_general(keys, &mut out).and_then(|()| out.flush()).unwrap();
    drop(out);
    let script = Path::new(CRATE).join("tests/peer/miss_counts.py");
    let sizes = sizes.iter().map(usize::to_string);
    let out = Command::new(python()).arg(script).arg(trace.path()).args(sizes).output().unwrap();
    assert!(out.status.success(), "miss_counts.py: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn misses(policy: impl Replacement, keys: &[u64], size: usize) -> u64 {
    let mut cache = Cache::new(size as u32, policy);
    keys.iter().map(|&key| u64::from(!cache.access(key))).sum()
}

fn our_misses(name: &str, keys: &[u64], size: usize) -> u64 {
    match name.parse().unwrap() {
        PolicySpec::Belady => {
            let uses = NextUses::of(keys.iter().copied()).unwrap();
            misses(Belady::new(Arc::new(uses)), keys, size)
        }
        spec => misses(AnyReplacement::new(&spec, size as u32, 1), keys, size),
    }
}

/// What is wrong with our count beside theirs, if anything.
fn complaint(name: &str, ours: u64, theirs: u64, accesses: usize) -> Option<&'static str> {
    let difference = ours.abs_diff(theirs) as f64 / accesses as f64;
    let allowed = DIFFER.contains(&name);
    match () {
        () if SHOWN_ONLY.contains(&name) || ours == theirs => None,
        () if !allowed => Some("differs, though no difference of definition is known"),
        () if difference >= DIFFERENCE_MAX => Some("differs by more than definitions may"),
        () => None,
    }
}

/// Different blocks among the accesses.
fn footprint(keys: &[u64]) -> usize {
    let mut blocks = keys.to_vec();
    blocks.sort_unstable();
    blocks.dedup();
    blocks.len()
}

fn compare(title: &str, keys: &[u64]) {
    let blocks = footprint(keys);
    let sizes = PERCENTS.map(|percent| blocks * percent / 100);
    println!(
        "{title}: {} accesses, {blocks} blocks; misses (ours, libCacheSim's, difference of the ratios)",
        keys.len()
    );
    let mut complaints = Vec::new();
    for (name, theirs) in their_misses(keys, &sizes) {
        assert_eq!(theirs.len(), sizes.len());
        for (&size, theirs) in sizes.iter().zip(theirs) {
            let ours = our_misses(&name, keys, size);
            let difference = (ours as f64 - theirs as f64) / keys.len() as f64;
            println!("{name:>10} {size:>8} {ours:>8} {theirs:>8} {difference:>+9.5}");
            if let Some(complaint) = complaint(&name, ours, theirs, keys.len()) {
                complaints
                    .push(format!("{title}, {name}, {size} blocks: {ours} beside {theirs}: {complaint}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn zipf_misses_are_the_peers() {
    compare("Zipf(1.0)", &sequence::zipf(1_000_000, 100_000, 1));
}

/// The objects of a CloudPhysics trace: of each record of 32 bytes the block number, at 16.
fn vscsi_blocks(trace: &[u8]) -> Vec<u64> {
    let number = |record: &[u8; 32]| u64::from_le_bytes(std::array::from_fn(|at| record[16 + at]));
    trace.as_chunks().0.iter().map(number).collect()
}

#[test]
fn recorded_misses_are_the_peers() {
    let path = Path::new(CRATE).join("../../../shared/traces/cloudPhysicsIO.vscsi");
    let Ok(trace) = fs::read(&path) else {
        println!("no {}: nothing compared beside the generated trace", path.display());
        return;
    };
    let blocks = vscsi_blocks(&trace);
    assert_eq!(blocks.len(), 113_872);
    compare("cloudPhysicsIO", &blocks);
}
