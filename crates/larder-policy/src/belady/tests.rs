//! Belady against every other choice, and under invalidation, pins and wrong use.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::index::hash;
use crate::{Cache, Node};
use proptest::prelude::*;

fn belady(keys: &[u64]) -> Belady {
    Belady::new(Arc::new(NextUses::of(keys.iter().copied()).expect("short")))
}

fn misses(keys: &[u64], capacity: u32) -> usize {
    let mut cache = Cache::new(capacity, belady(keys));
    keys.iter().filter(|&&key| !cache.access(key)).count()
}

/// The fewest misses that any sequence of evictions has: all sets of blocks that a cache could hold, followed through the trace.
fn fewest_misses(keys: &[u64], capacity: usize) -> usize {
    let mut reachable = vec![(BTreeSet::new(), 0)];
    for &key in keys {
        let mut next: Vec<(BTreeSet<u64>, usize)> = Vec::new();
        for (held, misses) in reachable {
            for (held, misses) in after_access(held, misses, key, capacity) {
                match next.iter_mut().find(|(other, _)| *other == held) {
                    Some((_, best)) => *best = misses.min(*best),
                    None => next.push((held, misses)),
                }
            }
        }
        reachable = next;
    }
    reachable.into_iter().map(|(_, misses)| misses).min().unwrap_or(0)
}

fn after_access(
    mut held: BTreeSet<u64>,
    misses: usize,
    key: u64,
    capacity: usize,
) -> Vec<(BTreeSet<u64>, usize)> {
    if held.contains(&key) {
        return vec![(held, misses)];
    }
    held.insert(key);
    if held.len() <= capacity {
        return vec![(held, misses + 1)];
    }
    let leaving: Vec<u64> = held.iter().copied().filter(|&other| other != key).collect();
    let without = |out: u64| held.iter().copied().filter(|&other| other != out).collect();
    leaving.into_iter().map(|out| (without(out), misses + 1)).collect()
}

proptest! {
    #[test]
    fn no_sequence_of_evictions_has_fewer_misses(
        keys in prop::collection::vec(0..7u64, 0..24),
        capacity in 1..5u32,
    ) {
        prop_assert_eq!(misses(&keys, capacity), fewest_misses(&keys, capacity as usize));
    }

    #[test]
    fn next_uses_are_what_a_search_finds(accesses in prop::collection::vec((0..8u64, any::<bool>()), 0..60)) {
        let mut builder = NextUsesBuilder::default();
        for &(key, invalidates) in &accesses {
            builder.push(key, invalidates).expect("short");
        }
        let uses = builder.finish();
        prop_assert_eq!(uses.len(), accesses.len());
        for (position, &(key, _)) in accesses.iter().enumerate() {
            let rest = &accesses[position + 1..];
            let expected = match rest.iter().position(|&(other, _)| other == key) {
                Some(distance) if !rest[distance].1 => (position + 1 + distance) as u32,
                _ => NEVER,
            };
            prop_assert_eq!(uses.after(position), expected);
        }
    }
}

#[test]
fn a_sequence_worked_out_by_hand() {
    // Belady's own setting: of 1, 2, 3 the one needed last leaves for 4.
    let keys = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
    let mut cache = Cache::new(3, belady(&keys));
    let mut out = Vec::new();
    for key in keys {
        match cache.find(key, hash(key)) {
            crate::cache::Found::Resident(handle) => cache.hit(handle),
            found => cache.enter(key, hash(key), found, 0, |key, _| out.push(key)),
        }
    }
    assert_eq!(out, [3, 4, 1, 2], "3 for 4, 4 for 5; 1 for 3 and 2 for 4, which are never used again");
    assert_eq!(misses(&keys, 3), 7);
}

/// Reads and invalidating writes (marked), told by position: the blocks that a write makes useless leave first.
#[test]
fn a_block_that_will_be_overwritten_is_worth_nothing() {
    let accesses = [(1, false), (2, false), (3, false), (1, true), (2, false), (1, false)];
    let mut builder = NextUsesBuilder::default();
    accesses.iter().for_each(|&(key, invalidates)| builder.push(key, invalidates).expect("short"));
    let mut nodes = vec![Node::NEW; 4];
    let mut policy = Belady::new(Arc::new(builder.finish()));
    policy.insert(&mut nodes, 1, false);
    policy.insert(&mut nodes, 2, false);
    let out = policy.evict(&mut nodes, |_, _| false);
    assert_eq!(out.map(|out| out.handle), Some(1), "its next use is nearer, but is a write");
    policy.insert(&mut nodes, 3, false);
    policy.at(4);
    policy.hit(&mut nodes, 2);
    policy.insert(&mut nodes, 1, false);
    assert_eq!(policy.resident(), 3);
    let order: Vec<_> = std::iter::from_fn(|| policy.evict(&mut nodes, |_, _| false)).collect();
    assert_eq!(order.iter().map(|out| out.handle).collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn pinned_blocks_stay_and_blocks_can_be_taken_out() {
    let keys = [0, 1, 2, 3, 2, 1, 0];
    let (mut nodes, mut policy) = (vec![Node::NEW; 4], belady(&keys));
    (0..4).for_each(|handle| policy.insert(&mut nodes, handle, false));
    let mut evict =
        |pinned: &[u32]| policy.evict(&mut nodes, |_, h| pinned.contains(&h)).map(|out| out.handle);
    assert_eq!(evict(&[3, 0]), Some(1), "3 is never used again, and 0 last");
    assert_eq!(evict(&[0, 2, 3]), None);
    policy.remove(&mut nodes, 0, false);
    policy.remove(&mut nodes, 3, false);
    assert_eq!(policy.evict(&mut nodes, |_, _| false).map(|out| out.handle), Some(2));
    assert_eq!((policy.resident(), policy.evict(&mut nodes, |_, _| false)), (0, None));
}

/// A user that tells wrong positions gets wrong evictions, but loses no block.
#[test]
fn wrong_positions_do_no_harm() {
    let keys: Vec<u64> = (0..50).map(|i| i * 7 % 10).collect();
    let (mut nodes, mut policy) = (vec![Node::NEW; 10], belady(&keys));
    for handle in 0..10 {
        policy.at(handle as usize % 3 * 40);
        policy.insert(&mut nodes, handle, false);
    }
    let out: BTreeSet<_> =
        std::iter::from_fn(|| policy.evict(&mut nodes, |_, _| false)).map(|out| out.handle).collect();
    assert_eq!((out.len(), policy.resident()), (10, 0));
}

#[test]
fn an_empty_trace_and_no_capacity() {
    assert_eq!(misses(&[], 3), 0);
    assert_eq!(misses(&[1, 1, 2], 0), 3);
    assert!(NextUses::of([]).expect("short").is_empty());
}
