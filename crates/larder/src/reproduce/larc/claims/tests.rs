use super::*;
use crate::reproduce::larc::change::Change;
use crate::reproduce::larc::study::{Outcome, Point, Tally};
use crate::reproduce::larc::workload::{Part, Parts, Workload};
use larder_sim::Summary;
use std::ffi::OsString;

/// A cache of 10 blocks where LRU and LARC did so over 1000 accesses: hits (all reads) and replacements.
fn point(lru: [u64; 2], larc: [u64; 2]) -> Point {
    let outcome = |policy, [hits, replacements]: [u64; 2]| Outcome {
        policy,
        tally: Tally { accesses: 1000, hits, write_hits: 0, replacements },
    };
    let outcomes = [(PolicySpec::Lru, lru), (PolicySpec::Arc, lru), (PolicySpec::Larc, larc)];
    Point { cache_blocks: 10, outcomes: outcomes.map(|(policy, did)| outcome(policy, did)).to_vec() }
}

fn study(read_share: f64, points: Vec<Point>) -> Study {
    let trace = Part::Trace(OsString::from("x").into());
    Study {
        workload: Workload { name: "w".into(), parts: Parts::One(trace) },
        summary: Summary { footprint_blocks: 100, block_accesses: 1000, ..Summary::default() },
        read_share,
        half: points.clone(),
        whole: points,
        change: None,
    }
}

fn finding(studies: &[Study], id: &str) -> Finding {
    let claim = judge(studies).into_iter().find(|claim| claim.id == id).expect("a claim");
    assert!(claim.half.is_none_or(|half| half == claim.whole), "the halves are like the wholes here");
    claim.whole
}

fn verdict(points: Vec<Point>, read_share: f64, id: &str) -> Verdict {
    finding(&[study(read_share, points)], id).verdict
}

#[test]
fn an_up_to_holds_where_it_is_reached_and_nothing_is_lost() {
    let [reached, short, lost] =
        [point([200, 800], [200, 40]), point([200, 800], [200, 100]), point([200, 100], [200, 800])];
    let of =
        |points: &[&Point]| verdict(points.iter().map(|&point| point.clone()).collect(), 0.9, "saving_reads");
    assert_eq!(of(&[&reached]), Verdict::Holds);
    assert_eq!(of(&[&reached, &short]), Verdict::Holds);
    assert_eq!(of(&[&short]), Verdict::InPart);
    assert_eq!(of(&[&reached, &short, &lost]), Verdict::InPart);
    assert_eq!(of(&[&reached, &lost]), Verdict::Fails);
    assert_eq!(of(&[&lost]), Verdict::Fails);
    assert_eq!(of(&[]), Verdict::Untested);
}

#[test]
fn a_finding_names_its_extremes() {
    let found = finding(
        &[study(0.9, vec![point([200, 800], [200, 40]), point([200, 800], [100, 80])])],
        "saving_reads",
    );
    assert_eq!(found.here, "90.0 % (w, 10 %) to 95.0 % (w, 10 %)");
    assert_eq!(
        found.because,
        "94.5 % or more in 1 of 2 caches, better in 2; with no fewer hits than LRU in 1"
    );
}

#[test]
fn a_range_holds_where_all_reach_its_lower_end() {
    let [enough, little, lost] =
        [point([200, 800], [200, 700]), point([200, 800], [200, 790]), point([200, 100], [200, 800])];
    let of = |points: Vec<Point>| verdict(points, 0.2, "saving_writes");
    assert_eq!(of(vec![enough.clone()]), Verdict::Holds);
    assert_eq!(of(vec![enough.clone(), little.clone()]), Verdict::InPart);
    assert_eq!(of(vec![little.clone(), lost.clone()]), Verdict::Fails);
    assert_eq!(verdict(vec![enough], 0.9, "saving_writes"), Verdict::Untested, "reads dominate here");
}

#[test]
fn gains_are_of_hit_ratios() {
    let better = point([100, 900], [380, 20]);
    assert_eq!(verdict(vec![better.clone()], 0.9, "gain_lru_reads"), Verdict::Holds);
    assert_eq!(verdict(vec![better.clone()], 0.1, "gain_lru_writes"), Verdict::Holds);
    assert_eq!(verdict(vec![point([100, 900], [99, 20])], 0.1, "gain_lru_writes"), Verdict::Fails);
    assert_eq!(finding(&[study(0.9, vec![better])], "gain_lru_reads").here, "280.0 % (w, 10 %)");
}

#[test]
fn a_cache_of_no_use_is_no_evidence() {
    let useless = point([9, 991], [5, 1]);
    for id in ["saving_reads", "gain_lru_reads", "best_reads"] {
        assert_eq!(verdict(vec![useless.clone()], 0.9, id), Verdict::Untested, "{id}");
    }
    // A ratio of next to nothing to next to nothing does not count, though another policy hits.
    let mut mq = useless.clone();
    mq.outcomes.push(Outcome {
        policy: PolicySpec::Mq,
        tally: Tally { accesses: 1000, hits: 500, write_hits: 0, replacements: 500 },
    });
    assert_eq!(verdict(vec![mq.clone()], 0.9, "gain_lru_reads"), Verdict::Untested);
    assert_eq!(verdict(vec![mq], 0.9, "best_reads"), Verdict::Fails);
    // Where LARC alone is of no use, its saving does not count, but its loss of hits does.
    let refused = point([500, 500], [5, 1]);
    assert_eq!(verdict(vec![refused.clone()], 0.9, "saving_reads"), Verdict::Untested);
    assert_eq!(verdict(vec![refused], 0.9, "gain_lru_reads"), Verdict::Fails);
}

#[test]
fn the_best_is_named() {
    let points =
        vec![point([200, 800], [300, 40]), point([200, 800], [200, 40]), point([200, 800], [100, 40])];
    let found = finding(&[study(0.9, points)], "best_reads");
    assert_eq!((found.here.as_str(), found.verdict), ("in 2 of 3 caches", Verdict::InPart));
    assert_eq!(found.because, "the best is LRU in 2, ARC in 2");
}

fn changing(intervals: &[[u64; 2]], at: u64) -> Finding {
    let tally = |&[hits, replacements]: &[u64; 2]| Tally { accesses: 1, hits, write_hits: 0, replacements };
    let series = intervals.iter().map(tally).map(|tally| Tally { accesses: 100, ..tally }).collect();
    let change = Change { at: at as usize, ..Change::new(10, at * 100, vec![(PolicySpec::Larc, series)]) };
    finding(&[Study { change: Some(change), ..study(0.9, Vec::new()) }], "replacements_rise")
}

#[test]
fn a_change_is_answered_with_replacements() {
    let answered = changing(&[[50, 2], [50, 2], [10, 2], [20, 9], [46, 3]], 2);
    assert_eq!(answered.verdict, Verdict::Holds);
    assert_eq!(answered.here, "hit ratio 50.0 % to 10.0 %, replacements 2.0 % to 9.0 % of the accesses");
    assert_eq!(answered.because, "back at nine tenths of its hit ratio within 300 accesses");
    let ignored = changing(&[[50, 2], [50, 2], [10, 2], [20, 1]], 2);
    assert_eq!(
        (ignored.verdict, ignored.because.as_str()),
        (Verdict::Fails, "never back at nine tenths of its hit ratio")
    );
    assert_eq!(changing(&[[50, 2], [50, 2], [60, 2]], 2).verdict, Verdict::Untested);
    assert_eq!(verdict(vec![point([200, 800], [200, 40])], 0.9, "replacements_rise"), Verdict::Untested);
}
