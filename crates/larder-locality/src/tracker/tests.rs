//! The tracker against the papers' examples, and against a plain LRU stack.

use super::*;
use AccessKind::{Read, Write};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// An LRU stack: the distance of an access is the depth at which its block is found. Quadratic time.
struct Model {
    max_blocks: usize,
    /// Most recently used first: block, last kind, epoch of the last access.
    stack: Vec<(u64, AccessKind, u64)>,
    epoch: u64,
    findings: EpochFindings,
    useful: BTreeMap<u64, u64>,
}

impl Model {
    fn new(max_blocks: usize) -> Self {
        Self {
            max_blocks,
            stack: vec![],
            epoch: 0,
            findings: EpochFindings::default(),
            useful: BTreeMap::new(),
        }
    }

    fn request(&mut self, blocks: Range<u64>, kind: AccessKind) {
        self.findings.requests += 1;
        blocks.for_each(|block| self.access(block, kind));
    }

    fn access(&mut self, block: u64, kind: AccessKind) {
        let depth = self.stack.iter().position(|known| known.0 == block);
        let last = depth.map(|depth| self.stack.remove(depth));
        self.stack.insert(0, (block, kind, self.epoch));
        self.stack.truncate(self.max_blocks);
        let class = RequestClass::of(last.map(|last| last.1), kind);
        self.findings.accesses += 1;
        self.findings.classes.count(class);
        self.findings.footprint_blocks += u64::from(last.is_none_or(|last| last.2 < self.epoch));
        let distance = depth.map(|depth| depth as u64);
        self.findings.trd_max = self.findings.trd_max.max(distance);
        if let (Some(distance), true) = (distance, class.is_useful()) {
            *self.useful.entry(distance).or_default() += 1;
        }
    }

    fn finish_epoch(&mut self) -> EpochFindings {
        self.epoch += 1;
        let useful = std::mem::take(&mut self.useful);
        let findings = std::mem::take(&mut self.findings);
        let urd_max = useful.keys().next_back().copied();
        let history_blocks = self.max_blocks as u64;
        EpochFindings { history_blocks, urd_max, useful: useful.into_iter().collect(), ..findings }
    }
}

fn observe(tracker: &mut ReuseTracker, accesses: &[(AccessKind, u64)]) -> EpochFindings {
    accesses.iter().for_each(|&(kind, block)| tracker.observe(block, kind));
    tracker.finish_epoch()
}

#[test]
fn figure_5_of_eci_cache() {
    let workload = [(Write, 1), (Write, 2), (Read, 1), (Write, 3), (Write, 4), (Write, 5), (Write, 2)];
    let findings = observe(&mut ReuseTracker::new(100), &workload);
    assert_eq!((findings.trd_max, findings.trd_blocks()), (Some(4), 5));
    assert_eq!((findings.urd_max, findings.urd_blocks()), (Some(1), 2));
    assert_eq!(findings.classes, ClassCounts { cw: 5, raw: 1, waw: 1, ..ClassCounts::default() });
    assert_eq!(findings.footprint_blocks, 5);
    assert_eq!(findings.write_ratio(), 1.0 / 7.0);
    assert_eq!(findings.hit_curve().ratio(2), 1.0 / 7.0);
}

#[test]
fn appendix_c_case_1_sequential_then_random() {
    let mut tracker = ReuseTracker::new(100);
    let sequential = observe(&mut tracker, &[(Read, 1), (Read, 2), (Read, 3), (Read, 4)]);
    assert_eq!((sequential.urd_max, sequential.urd_blocks()), (None, 0));
    // Each of these was last accessed in the first interval or this one: the distances are 3, 2, 3, 1.
    let random = observe(&mut tracker, &[(Read, 1), (Read, 3), (Read, 2), (Read, 3)]);
    assert_eq!((random.urd_max, random.urd_blocks()), (Some(3), 4));
    assert_eq!(random.classes, ClassCounts { rar: 4, ..ClassCounts::default() });
    assert_eq!(random.footprint_blocks, 3);
}

/// The paper keeps the size of three blocks at the end of the second interval, as if its distances counted since the
/// start. Here each epoch stands for itself: what the first wanted is known, the second wants nothing, and the
/// reads of the third show the large distance that the writes in between have made.
#[test]
fn appendix_c_case_2_random_then_sequential() {
    let mut tracker = ReuseTracker::new(100);
    let random = observe(&mut tracker, &[(Read, 1), (Read, 2), (Read, 3), (Read, 1), (Read, 2)]);
    assert_eq!((random.urd_max, random.urd_blocks()), (Some(2), 3));
    let sequential = observe(&mut tracker, &[(Write, 4), (Write, 5), (Write, 6), (Write, 7)]);
    assert_eq!((sequential.urd_max, sequential.trd_max), (None, None));
    assert_eq!(random.urd_blocks().max(sequential.urd_blocks()), 3);
    let repeated = observe(&mut tracker, &[(Read, 1), (Read, 2)]);
    assert_eq!(repeated.useful.iter().collect::<Vec<_>>(), [(5, 2)]);
}

#[test]
fn appendix_c_case_3_semi_sequential() {
    let mut tracker = ReuseTracker::new(100);
    let pass = [(Read, 1), (Read, 2), (Read, 3), (Read, 4)];
    assert_eq!(observe(&mut tracker, &pass).urd_blocks(), 0);
    let again = observe(&mut tracker, &pass);
    assert_eq!((again.urd_max, again.urd_blocks()), (Some(3), 4));
    let others = observe(&mut tracker, &[(Read, 5), (Read, 6), (Read, 7), (Read, 8)]);
    assert_eq!(others.urd_blocks(), 0);
    // Four blocks were given, and the others have used them up: nothing of this would hit.
    let returned = observe(&mut tracker, &pass);
    assert_eq!((returned.urd_max, returned.hit_curve().hits(4)), (Some(7), 0));
}

#[test]
fn a_request_counts_once_and_its_blocks_each() {
    let mut tracker = ReuseTracker::new(100);
    tracker.observe_blocks(10..14, Write);
    tracker.observe_blocks(12..16, Read);
    tracker.observe_blocks(20..20, Read);
    let findings = tracker.finish_epoch();
    assert_eq!((findings.requests, findings.accesses, findings.footprint_blocks), (3, 8, 6));
    assert_eq!(findings.classes, ClassCounts { cw: 4, raw: 2, cr: 2, ..ClassCounts::default() });
    // Block 12 was followed by 13 alone, block 13 by 12 alone.
    assert_eq!(findings.useful.iter().collect::<Vec<_>>(), [(1, 2)]);
}

#[test]
fn a_block_beyond_the_bound_is_forgotten_however_early_it_is_dropped() {
    let mut tracker = ReuseTracker::new(3);
    let findings =
        observe(&mut tracker, &[(Write, 1), (Write, 2), (Write, 3), (Read, 1), (Write, 4), (Read, 2)]);
    assert_eq!(findings.classes, ClassCounts { cw: 4, raw: 1, cr: 1, ..ClassCounts::default() });
    assert_eq!(findings.trd_max, Some(2));
}

#[test]
fn memory_follows_the_footprint_and_stays_bounded() {
    let mut tracker = ReuseTracker::new(10_000);
    assert!(tracker.memory_bytes() < 2048);
    (0..5_000).for_each(|block| tracker.observe(block, Read));
    let small = tracker.memory_bytes();
    assert!(small < 5_000 * 40, "{small} bytes for 5,000 blocks");
    (0..400_000).for_each(|block| tracker.observe(block, Write));
    let bounded = tracker.memory_bytes();
    assert!(bounded < (12_500 + 1024) * 43, "{bounded} bytes for at most 13,524 blocks");
}

/// Requests that come back to the same blocks often, within one of several ranges.
fn requests() -> impl Strategy<Value = Vec<(u64, u64, bool, u8)>> {
    let block = prop_oneof![0u64..12, 0u64..90, 1u64 << 60..(1 << 60) + 40];
    proptest::collection::vec((block, 1u64..6, any::<bool>(), any::<u8>()), 1..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn findings_are_those_of_an_lru_stack(requests in requests(), max_blocks in 1u32..160, seed in any::<u64>()) {
        let mut tracker = ReuseTracker::with_seed(max_blocks, seed);
        let mut model = Model::new(max_blocks as usize);
        for (block, blocks, write, end) in requests {
            let kind = if write { Write } else { Read };
            tracker.observe_blocks(block..block + blocks, kind);
            model.request(block..block + blocks, kind);
            if end < 2 {
                prop_assert_eq!(tracker.finish_epoch(), model.finish_epoch());
            }
        }
        prop_assert_eq!(tracker.finish_epoch(), model.finish_epoch());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    /// Footprints of several chunks, so that the tree over them and the dropping of the oldest take part.
    #[test]
    fn large_footprints_agree_too(
        steps in proptest::collection::vec((0u64..4000, 1u64..40), 800), max_blocks in 1000u32..3000,
    ) {
        let mut tracker = ReuseTracker::new(max_blocks);
        let mut model = Model::new(max_blocks as usize);
        for (block, blocks) in steps {
            tracker.observe_blocks(block..block + blocks, Read);
            model.request(block..block + blocks, Read);
        }
        prop_assert_eq!(tracker.finish_epoch(), model.finish_epoch());
    }
}
