//! Mixes against a slow observer of its own, which knows an LRU stack and nothing else.

use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

/// What a stream turns out to be.
#[derive(Debug, Default)]
struct Observed {
    classes: BTreeMap<&'static str, u64>,
    distances: Vec<u64>,
    footprint: u64,
}

fn class(last: Option<RequestKind>, kind: RequestKind) -> &'static str {
    use RequestKind::{Read, Write};
    match (last, kind) {
        (None, Read) => "CR",
        (None, Write) => "CW",
        (Some(Read), Read) => "RAR",
        (Some(Write), Read) => "RAW",
        (Some(Read), Write) => "WAR",
        (Some(Write), Write) => "WAW",
        _ => panic!("a mix reads and writes only"),
    }
}

fn observe(requests: impl Iterator<Item = Request>) -> Observed {
    let mut seen = Observed::default();
    // From the last accessed on.
    let mut stack: Vec<(u64, RequestKind)> = Vec::new();
    for request in requests {
        let known = stack.iter().position(|&(offset, _)| offset == request.offset);
        let last = known.map(|depth| stack.remove(depth).1);
        seen.distances.extend(known.map(|depth| depth as u64));
        *seen.classes.entry(class(last, request.kind)).or_default() += 1;
        stack.insert(0, (request.offset, request.kind));
    }
    seen.footprint = stack.len() as u64;
    seen
}

fn workload(shares: [f64; 6], requests: u64, footprint_blocks: u64) -> MixWorkload {
    let [cr, cw, rar, raw, war, waw] = shares;
    MixWorkload {
        shares: ClassShares { cr, cw, rar, raw, war, waw },
        footprint_blocks,
        requests,
        read_share: None,
        distances: Distances::Exponential { mean: 40.0 },
        block_bytes: 4096,
        first_byte: 1 << 20,
        interval_ns: 10,
    }
}

fn mix(workload: &MixWorkload) -> ClassMix {
    ClassMix::new(workload, 2, 7).unwrap()
}

fn error(workload: &MixWorkload) -> MixError {
    ClassMix::new(workload, 0, 0).err().unwrap()
}

#[test]
fn classes_and_footprint_are_those_asked_for() {
    // Shares as of an application that was recorded (a build).
    let workload = workload([0.025, 0.31, 0.07, 0.278, 0.132, 0.185], 10_000, 3350);
    let seen = observe(mix(&workload));
    assert_eq!(seen.footprint, 3350);
    let expected = [("CR", 250), ("CW", 3100), ("RAR", 700), ("RAW", 2780), ("WAR", 1320), ("WAW", 1850)];
    assert_eq!(seen.classes, BTreeMap::from(expected));
}

#[test]
fn every_part_of_the_stream_has_the_mix() {
    let workload = workload([0.1, 0.1, 0.3, 0.2, 0.2, 0.1], 20_000, 4000);
    let requests: Vec<_> = mix(&workload).collect();
    for part in requests.chunks(2000) {
        let share = part.iter().filter(|request| request.kind == RequestKind::Read).count() as f64 / 2000.0;
        assert!((share - 0.6).abs() < 0.05, "{share}");
    }
    // First accesses are evenly spread, and take the blocks in order.
    let highest = requests[..10_000].iter().map(|request| request.offset).max().unwrap();
    let blocks = (highest - (1 << 20)) / 4096;
    assert!((1850..2150).contains(&blocks), "{blocks}");
}

#[test]
fn in_reads_alone_every_distance_is_exact() {
    for (first, kind) in [([0.1, 0.0, 0.9, 0.0, 0.0, 0.0], 0), ([0.0, 0.1, 0.0, 0.0, 0.0, 0.9], 1)] {
        let workload = MixWorkload { distances: Distances::Fixed(30), ..workload(first, 5000, 500) };
        let seen = observe(mix(&workload));
        let short = seen.distances.iter().filter(|&&distance| distance != 30).count();
        // Until there are 31 blocks, which takes some 310 requests.
        assert!((100..600).contains(&short), "kind {kind}: {short}");
        assert!(seen.distances[short..].iter().all(|&distance| distance == 30), "kind {kind}");
    }
}

/// The largest difference of the two distribution functions up to `max`, of distances after the first thousand.
fn apart(distances: &[u64], law: impl Fn(f64) -> f64, max: u64) -> f64 {
    let late = &distances[1000..];
    let below =
        |bound: u64| late.iter().filter(|&&distance| distance < bound).count() as f64 / late.len() as f64;
    (1..max).map(|bound| (below(bound) - law(bound as f64 - 0.5)).abs()).fold(0.0, f64::max)
}

#[test]
fn distances_follow_their_law_whatever_the_classes() {
    let exponential = |mean: f64| move |x: f64| 1.0 - (-x / mean).exp();
    let reads = workload([0.1, 0.0, 0.9, 0.0, 0.0, 0.0], 12_000, 1200);
    assert!(apart(&observe(mix(&reads)).distances, exponential(40.0), 300) < 0.02);
    let mixed = workload([0.05, 0.05, 0.3, 0.2, 0.2, 0.2], 12_000, 1200);
    assert!(apart(&observe(mix(&mixed)).distances, exponential(40.0), 300) < 0.03);
}

#[test]
fn requests_have_times_volume_and_length() {
    let workload = workload([0.5, 0.0, 0.5, 0.0, 0.0, 0.0], 100, 50);
    let requests: Vec<_> = mix(&workload).collect();
    assert_eq!(requests.len(), 100);
    assert!(requests.iter().enumerate().all(|(at, request)| request.time_ns == 10 * at as u64));
    assert!(requests.iter().all(|request| request.volume == 2 && request.len == 4096));
    assert!(requests.iter().all(|request| (1 << 20..(1 << 20) + 50 * 4096).contains(&request.offset)));
}

#[test]
fn shares_that_contradict_themselves_are_refused() {
    assert!(matches!(error(&workload([0.5, 0.0, 0.2, 0.0, 0.0, 0.0], 100, 50)), MixError::Sum(_)));
    assert!(matches!(
        error(&workload([1.5, 0.0, -0.5, 0.0, 0.0, 0.0], 100, 50)),
        MixError::Share { class: "CR", .. }
    ));
    let nan = workload([1.0, 0.0, 0.0, 0.0, 0.0, f64::NAN], 100, 100);
    assert!(matches!(error(&nan), MixError::Share { class: "WAW", .. }));
    let read = MixWorkload { read_share: Some(0.5), ..workload([0.5, 0.0, 0.2, 0.0, 0.3, 0.0], 100, 50) };
    assert!(matches!(error(&read), MixError::Read { read_share: 0.5, .. }));
    assert!(ClassMix::new(&MixWorkload { read_share: Some(0.7), ..read }, 0, 0).is_ok());
}

#[test]
fn a_footprint_that_contradicts_the_first_accesses_is_refused() {
    let shares = [0.3, 0.2, 0.5, 0.0, 0.0, 0.0];
    for footprint in [40, 60] {
        assert!(matches!(error(&workload(shares, 100, footprint)), MixError::Footprint { .. }));
    }
    assert!(matches!(
        error(&workload([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1000, 1001)),
        MixError::Footprint { .. }
    ));
    // One re-access, and no class for it.
    assert!(matches!(
        error(&workload([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1000, 999)),
        MixError::Footprint { .. }
    ));
}

#[test]
fn classes_that_no_sequence_has_are_refused() {
    // More reads after a write than writes that leave such a block.
    assert!(matches!(
        error(&workload([0.1, 0.1, 0.4, 0.3, 0.1, 0.0], 1000, 200)),
        MixError::Impossible { .. }
    ));
    // Writes after a write without a first write, reads after a read without a read.
    assert!(matches!(
        error(&workload([0.5, 0.0, 0.0, 0.0, 0.0, 0.5], 1000, 500)),
        MixError::Impossible { .. }
    ));
    assert!(matches!(
        error(&workload([0.0, 0.5, 0.5, 0.0, 0.0, 0.0], 1000, 500)),
        MixError::Impossible { .. }
    ));
    // On the edge of what is possible, every write is read once.
    let seen = observe(mix(&workload([0.0, 0.25, 0.0, 0.5, 0.25, 0.0], 1001, 250)));
    assert_eq!(seen.classes, BTreeMap::from([("CW", 250), ("RAW", 500), ("WAR", 251)]));
}

#[test]
fn sizes_that_cannot_be_had_are_refused() {
    let good = workload([0.5, 0.0, 0.5, 0.0, 0.0, 0.0], 100, 50);
    let size =
        |requests, footprint_blocks| error(&MixWorkload { requests, footprint_blocks, ..good.clone() });
    assert!(matches!(size(0, 0), MixError::Size { .. }));
    assert!(matches!(size(1 << 40, 1 << 39), MixError::Size { .. }));
    assert!(matches!(size(u64::MAX, 50), MixError::Size { .. }));
    assert!(matches!(error(&MixWorkload { block_bytes: 0, ..good.clone() }), MixError::Range { .. }));
    assert!(matches!(error(&MixWorkload { first_byte: 1 << 63, ..good.clone() }), MixError::Range { .. }));
    let distances = Distances::Exponential { mean: -1.0 };
    assert!(matches!(error(&MixWorkload { distances, ..good }), MixError::Distances(_)));
}

/// Shares from weights, scaled to one.
fn scaled(weights: [u32; 6]) -> [f64; 6] {
    let sum = f64::from(weights.iter().sum::<u32>());
    weights.map(|weight| f64::from(weight) / sum)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_possible_mix_is_met(weights in proptest::array::uniform6(0u32..20), requests in 1u64..800, seed: u64) {
        prop_assume!(weights[0] + weights[1] > 0);
        let shares = scaled(weights);
        let footprint = ((shares[0] + shares[1]) * requests as f64).round().max(1.0) as u64;
        let workload = workload(shares, requests, footprint);
        let mix = match ClassMix::new(&workload, 0, seed) {
            Ok(mix) => mix,
            Err(MixError::Impossible { .. } | MixError::Footprint { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let seen = observe(mix.clone());
        prop_assert_eq!(seen.footprint, footprint);
        for (class, share) in CLASSES.into_iter().zip(shares) {
            let count = seen.classes.get(class.name()).copied().unwrap_or(0);
            prop_assert!((count as f64 - share * requests as f64).abs() <= 2.5, "{:?} {:?}", class, seen);
        }
        prop_assert!(mix.eq(ClassMix::new(&workload, 0, seed).unwrap()));
    }
}
