//! Scaling, correction and addition of counts, on small examples and as laws.

use super::*;
use AccessKind::{Read, Write};
use proptest::prelude::*;

fn heat(heat: f64) -> Heat {
    Heat { reads: heat, writes: heat }
}

#[test]
fn a_sampled_access_stands_for_many_at_a_scaled_size() {
    let mut record = Scaled::new();
    record.set_rate(0.25);
    [1, 2, 2, 11, NEVER].into_iter().for_each(|from| record.block(Read, from));
    let counted = record.counted();
    assert_eq!(counted.reads, 20);
    // (11 - 1) / 0.25 + 1.
    assert_eq!(counted.read_hits.steps(), [(1, 4), (5, 12), (41, 16)]);
}

#[test]
fn the_rate_may_change_between_accesses() {
    let mut record = Scaled::new();
    for rate in [0.5, 0.1] {
        record.set_rate(rate);
        record.block(Write, 3);
    }
    assert_eq!(record.counted().write_hits.steps(), [(5, 2), (21, 12)]);
}

/// One access of a cold block and ten of a hot one are sampled; there were 40 in all.
#[test]
fn what_a_sample_lacks_went_as_its_hot_blocks_did() {
    for (hot, hits) in [(2, 39), (NEVER, 0)] {
        let mut record = Scaled::new();
        record.set_heat(heat(1.0));
        record.block(Write, NEVER);
        record.set_heat(heat(1e9));
        (0..10).for_each(|_| record.block(Write, hot));
        let counted = record.counted_of(&Totals { writes: 40, ..Totals::default() });
        assert_eq!((counted.writes, counted.write_hits.at(1), counted.write_hits.at(100)), (40, 0, hits));
    }
}

#[test]
fn ranges_of_sizes_begin_and_end_where_they_should() {
    let mut record = Scaled::new();
    record.set_rate(0.5);
    (0..6).for_each(|_| record.block(Write, 4));
    record.written_back(1..3);
    record.written_back(2..NEVER);
    record.moved_in(2..4);
    record.invalidated(3);
    let counted = record.counted();
    let at = |curve: &SizeCurve| [1, 2, 3, 4, 5, 6, 7].map(|size| curve.at(size));
    assert_eq!(at(&counted.written_back), [2, 2, 4, 4, 2, 2, 2]);
    assert_eq!(at(&counted.moved_in), [0, 0, 2, 2, 2, 2, 0]);
    assert_eq!(at(&counted.invalidations), [0, 0, 0, 0, 2, 2, 2]);
}

#[test]
fn nothing_counted_is_flat_at_zero_whatever_the_totals_are() {
    let totals = Totals { reads: 7, writes: 5, requests: 6, read_requests: 4 };
    let counted = Scaled::new().counted_of(&totals);
    assert_eq!((counted.reads, counted.read_hits.last(), counted.request_hits.last()), (7, 0, 0));
    assert_eq!(Scaled::new().counted(), Counted::default());
}

fn events() -> impl Strategy<Value = Vec<(bool, u32, f64, f64)>> {
    let from = prop_oneof![1u32..9, 1u32..100_000, Just(NEVER)];
    prop::collection::vec((any::<bool>(), from, 1e-6f64..1.0, 0f64..1e12), 0..60)
}

fn recorded(events: &[(bool, u32, f64, f64)]) -> Scaled {
    let mut record = Scaled::new();
    for &(write, from, rate, hot) in events {
        let kind = if write { Write } else { Read };
        record.set_rate(rate);
        record.set_request(1.0 / rate);
        record.set_heat(heat(hot));
        record.block(kind, from);
        record.request(kind, from);
        if from < NEVER {
            record.written_back(from..NEVER);
            record.invalidated(from);
        }
    }
    record
}

proptest! {
    #[test]
    fn hits_rise_and_never_pass_the_accesses(events in events(), reads in 0u64..1 << 40, writes in 0u64..1 << 40) {
        let totals = Totals { reads, writes, requests: reads + writes, read_requests: reads };
        let counted = recorded(&events).counted_of(&totals);
        for (curve, most) in [
            (&counted.read_hits, reads),
            (&counted.write_hits, writes),
            (&counted.request_hits, reads + writes + 1),
            (&counted.read_request_hits, reads),
        ] {
            prop_assert!(curve.steps().windows(2).all(|pair| pair[0].1 < pair[1].1));
            prop_assert!(curve.last() <= most, "{} of {}", curve.last(), most);
        }
        for curve in [&counted.written_back, &counted.invalidations] {
            prop_assert!(curve.steps().iter().all(|&(_, value)| value <= writes));
        }
    }

    /// What two records count apart, and together, is the same, and half of it twice too.
    #[test]
    fn counts_add_up(events in events(), at in any::<prop::sample::Index>()) {
        let whole = recorded(&events);
        let (first, second) = events.split_at(at.index(events.len() + 1));
        let mut merged = recorded(first);
        merged.merge(&recorded(second));
        let mut halves = whole.clone();
        halves.decay(0.5);
        halves.merge(&halves.clone());
        for other in [merged, halves] {
            let sums = |record: &Scaled| record.reads.from.sums().map(|sum| sum.weight).collect::<Vec<_>>();
            prop_assert!(whole.accesses().iter().zip(other.accesses()).all(|(a, b)| a.largest == b.largest));
            for (a, b) in sums(&whole).into_iter().zip(sums(&other)) {
                prop_assert!((a - b).abs() <= 1e-9 * a, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn memory_is_bounded(from in 1u32..NEVER, rate in 1e-9f64..1.0) {
        let record = recorded(&[(true, from, rate, 1.0), (false, from, rate, 1.0)]);
        prop_assert!(record.memory_bytes() < 1 << 18 << 1);
    }
}
