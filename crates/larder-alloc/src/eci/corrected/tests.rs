//! What is measured beside what is predicted, by hand.

use super::*;
use crate::Timed;
use crate::fixtures::{quotas, tenant, useful_epoch};

/// A read takes 0.1 ms on the SSD and 5 ms on the backing.
fn found(accesses: u64, useful: &[(u64, u64)], read_hits: u64) -> Findings {
    let mut found = useful_epoch(accesses, useful.iter().copied().collect());
    let reads: u64 = useful.iter().map(|pair| pair.1).sum();
    let timed = |count: u64, seconds: f64| Timed { count, seconds: count as f64 * seconds };
    found.measured.read_hits = timed(read_hits, 1e-4);
    found.measured.read_misses = timed(reads - read_hits, 5e-3);
    found
}

fn holding<'a>(name: &'a str, blocks: u32, found: &'a Findings) -> Tenant<'a> {
    Tenant { quota_blocks: blocks, ..tenant(name, Some(found)) }
}

fn constraints(cache_blocks: u32) -> Constraints {
    Constraints { cache_blocks, ..Constraints::default() }
}

fn decide(eci: &mut CorrectedEci, tenants: &[Tenant<'_>], cache: u32) -> Vec<Decision> {
    eci.allocate(tenants, &constraints(cache)).expect("eci always decides")
}

/// Two tenants, 60 blocks: each gains from 50, the first a little more. As long as its reads hit as its curve says it gets them. When the second's hardly hit in the 50
/// blocks that it holds (0.2 of what was predicted), its hits count double, and it gets them; when they do again, the first does.
#[test]
fn whose_reads_take_longer_than_predicted_counts_for_more_until_they_do_not() {
    let first = found(100, &[(49, 52)], 52);
    let (right, wrong) = (found(100, &[(49, 50)], 50), found(100, &[(49, 50)], 10));
    let mut eci = CorrectedEci::default();
    let mut of =
        |second: &Findings| decide(&mut eci, &[holding("a", 50, &first), holding("b", 50, second)], 60);
    let curves = Eci.allocate(&[holding("a", 50, &first), holding("b", 50, &right)], &constraints(60));
    assert_eq!(of(&right), curves.expect("eci always decides"), "nothing is wrong");
    assert_eq!(quotas(&of(&right)), [50, 10]);
    let decisions = of(&wrong);
    assert_eq!(quotas(&decisions), [10, 50]);
    let words = "; sized by measurement: its reads take 1.50 times what its curve says";
    assert!(decisions[1].reason.ends_with(words) && !decisions[0].reason.contains(words), "{decisions:?}");
    // Half of the accesses are reads, of which all hit by the curve: 0.1 ms, and by measurement 0.15.
    let curve = Eci.allocate(&[holding("b", 50, &wrong)], &constraints(60)).expect("eci always decides");
    let latency = |decision: &Decision| decision.predicted.expect("it was active").latency;
    assert!((latency(&decisions[1]) - latency(&curve[0]) - 0.5 * 0.5 * 1e-4).abs() < 1e-12);
    // What was wrong is forgotten by halves: 1.25, 1.125, 1.06.
    assert_eq!([(); 3].map(|()| quotas(&of(&right))), [vec![10, 50], vec![10, 50], vec![50, 10]]);
}

#[test]
fn where_all_wishes_fit_everybody_has_its_own() {
    let (right, wrong) = (found(100, &[(49, 50)], 50), found(100, &[(49, 50)], 10));
    let decisions =
        decide(&mut CorrectedEci::default(), &[holding("a", 50, &right), holding("b", 50, &wrong)], 1000);
    assert_eq!(quotas(&decisions), [50, 50]);
    assert!(decisions[1].reason.ends_with("; measured: its reads take 2.00 times what its curve says"));
}

#[test]
fn reads_that_take_less_count_for_less_and_who_is_gone_is_forgotten() {
    // With the one block that each holds nothing hits by the curves. All reads of the first did.
    let (first, second) = (found(100, &[(49, 52)], 52), found(100, &[(49, 50)], 0));
    let mut eci = CorrectedEci::default();
    let tenants = [holding("a", 1, &first), holding("b", 1, &second)];
    assert_eq!(quotas(&decide(&mut eci, &tenants, 60)), [10, 50]);
    decide(&mut eci, &tenants[1..], 60);
    assert_eq!(eci.corrections.keys().collect::<Vec<_>>(), ["b"]);
    // A dry run teaches nothing.
    eci.fork().allocate(&tenants, &constraints(60)).expect("eci always decides");
    assert_eq!(eci.corrections.len(), 1);
}
