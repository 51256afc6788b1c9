use super::*;
use crate::analyze::testing::{found, found_of, requests};
use larder_locality::CurvePolicy;

fn sentences(found: &Found) -> Vec<String> {
    Verdict::new(found).sentences().into_iter().map(|(_, sentence)| sentence.to_owned()).collect()
}

#[test]
fn re_reads_and_rewrites_are_told_apart() {
    assert_eq!(
        sentences(&found("W1 W2 R1 W3 W4 W5 W2")),
        [
            "The workload can use up to 8 KiB of cache: that serves all reads of blocks seen before (URD), 14.29 % of its block accesses. Sized by all accesses, rewrites among them, it would take 20 KiB (TRD).",
            "With 8 KiB, a write-back cache serves 100.00 % of the blocks read, 14.29 % of the requests find all their blocks in it, and 66.67 % of the blocks written go on to the backing before the trace ends.",
            "At 8 KiB the SSD would take 24 KiB of writes under wb or wt, serving 100.00 % of the blocks read.",
        ]
    );
}

#[test]
fn the_knee_and_the_cheaper_policy_are_told() {
    // Ten re-reads at distance 0, one at distance 2; a write that is never read.
    let text = "R1 R1 R1 R1 R1 R1 R1 R1 R1 R1 R1 R2 R3 R1 W4";
    assert_eq!(
        sentences(&found(text)),
        [
            "The workload can use up to 12 KiB of cache: that serves all reads of blocks seen before (URD), 73.33 % of its block accesses; nine tenths of them need 4 KiB.",
            "With 4 KiB, a write-back cache serves 71.43 % of the blocks read, 66.67 % of the requests find all their blocks in it, and 0.00 % of the blocks written go on to the backing before the trace ends. With 12 KiB these are 78.57 %, 73.33 % and 0.00 %.",
            "At 4 KiB the SSD would take 16 KiB of writes under wt-noalloc or ro, serving 71.43 % of the blocks read; 20 KiB of writes under wb or wt, serving 71.43 %.",
        ]
    );
}

#[test]
fn what_serves_more_is_told_beside_what_costs_less() {
    // Nineteen re-reads that any policy serves, one after a write that ro does not.
    let text = format!("{}W2 W2 R2", "R1 ".repeat(20));
    assert_eq!(
        sentences(&found(&text))[2],
        "At 4 KiB the SSD would take 8 KiB of writes under wt-noalloc or ro, serving 90.48 % of the blocks read; 12 KiB of writes under wb or wt, serving 95.24 %."
    );
}

#[test]
fn the_pace_is_told_where_there_is_one() {
    let paced = |apart_ns| {
        sentences(&found_of(requests("R1 R1", apart_ns), &[CurvePolicy::ReadOnly], &[]))[2].clone()
    };
    let day = 86_400_000_000_000;
    assert_eq!(
        paced(day / 2),
        "At 4 KiB the SSD would take 4 KiB (8 KiB a day) of writes under ro, serving 50.00 % of the blocks read."
    );
    assert_eq!(
        paced(1_000_000_000),
        "At 4 KiB the SSD would take 4 KiB of writes under ro, serving 50.00 % of the blocks read."
    );
}

#[test]
fn a_policy_that_serves_nothing_is_not_the_cheapest() {
    let requests = || requests("W1 R1 W1 R1", 1);
    let cost = |policies: &[CurvePolicy]| sentences(&found_of(requests(), policies, &[]))[2].clone();
    assert_eq!(
        cost(&[CurvePolicy::WriteThrough, CurvePolicy::ReadOnly]),
        "At 4 KiB the SSD would take 8 KiB of writes under wt, serving 100.00 % of the blocks read."
    );
    assert_eq!(
        cost(&[CurvePolicy::ReadOnly]),
        "At 4 KiB, none of the policies that were asked for serves a read."
    );
}

#[test]
fn writes_alone_gain_by_write_back_alone() {
    let expected = [
        "The workload can use no cache for reading: no block is read a second time or after a write (URD). Its writes hit: at most 85.71 % of its block accesses do, in 8 KiB (TRD); nine tenths of these in 4 KiB.",
        "Only write-back brings something: with 4 KiB, 14.29 % of the blocks written go on to the backing before the trace ends.",
        "At 4 KiB the SSD would take 56 KiB of writes under wb.",
    ];
    assert_eq!(sentences(&found("W1 W1 W1 W1 W1 W1 W1 W1 W1 W1 W1 W1 W2 W1")), expected);
}

#[test]
fn discarded_blocks_do_not_count_as_seen() {
    // One of the two reads of a block seen before finds it discarded.
    let text = sentences(&found("W1 D1 R1 R1"));
    assert_eq!(
        text[0],
        "The workload can use up to 4 KiB of cache: that serves all reads of blocks seen before and not discarded since (URD), 33.33 % of its block accesses."
    );
    assert_eq!(
        sentences(&found("W1 D1 R1"))[0],
        "The workload can use no cache: no block is accessed again before it is discarded."
    );
}

#[test]
fn what_reads_little_gains_by_write_back() {
    let text = format!("{}R1", "W1 ".repeat(100));
    let gain = &sentences(&found(&text))[1];
    assert!(gain.ends_with("what it gains is above all writes that the backing is spared."), "{gain}");
}

#[test]
fn policies_that_cost_nearly_the_same_are_not_weighed() {
    // wb writes one block more than ro, of eleven.
    assert_eq!(
        sentences(&found("R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R10 W11"))[2],
        "At 4 KiB the SSD would take 40 KiB of writes under wt-noalloc or ro, serving 9.09 % of the blocks read."
    );
}

#[test]
fn what_is_used_once_needs_no_cache() {
    assert_eq!(
        sentences(&found("R1 W2 R3")),
        [
            "The workload can use no cache: no block is accessed again.",
            "In a cache of any size, no access would hit.",
            "It would only wear the SSD: 12 KiB under wb, whatever its size.",
        ]
    );
    assert_eq!(sentences(&found("W7"))[2], "It would only wear the SSD: 4 KiB under wb, whatever its size.");
}

#[test]
fn of_nothing_nothing_is_claimed() {
    assert_eq!(sentences(&found("")), ["The trace holds no reads or writes: there is nothing to cache."]);
    assert_eq!(
        sentences(&found("D1 D2")),
        ["The trace holds no reads or writes: there is nothing to cache."]
    );
    assert_eq!(
        sentences(&found("E E")),
        ["The requests of this trace are empty: there is nothing to cache."]
    );
}
