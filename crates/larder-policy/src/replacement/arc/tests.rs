//! ARC by hand: each case of the paper's Figure 4, and what the paper has no word for.

use super::*;
use crate::{Cache, Node};

fn keys(cache: &Cache<Arc>, list: &List) -> Vec<u64> {
    list.iter_oldest_first(cache.nodes()).map(|handle| cache.nodes().key(handle)).collect()
}

/// T1, T2, B1, B2 from the oldest to the newest, and `p`.
fn state(cache: &Cache<Arc>) -> ([Vec<u64>; 4], f64) {
    let arc = cache.policy();
    ([arc.t1(), arc.t2(), arc.b1(), arc.b2()].map(|list| keys(cache, list)), arc.target())
}

/// T1, T2, B1, B2, and `p`, as [`state`] gives them.
type Lists<'a> = [&'a [u64]; 4];

fn run(cache: &mut Cache<Arc>, steps: &[(u64, bool, Lists, f64)]) {
    for &(key, hit, lists, p) in steps {
        assert_eq!(cache.access(key), hit, "hit of {key}");
        assert_eq!(state(cache), (lists.map(<[u64]>::to_vec), p), "after {key}");
    }
}

#[test]
fn two_blocks_step_by_step() {
    let mut cache = Cache::new(2, Arc::new());
    run(
        &mut cache,
        &[
            (1, false, [&[1], &[], &[], &[]], 0.0),
            (2, false, [&[1, 2], &[], &[], &[]], 0.0),
            // IV A, T1 is all of L1: its oldest leaves without a ghost.
            (3, false, [&[2, 3], &[], &[], &[]], 0.0),
            // I.
            (2, true, [&[3], &[2], &[], &[]], 0.0),
            // IV B, room for ghosts: T1 is above p and gives one up.
            (4, false, [&[4], &[2], &[3], &[]], 0.0),
            // IV A with a ghost in L1: the oldest of B1 is dropped.
            (5, false, [&[5], &[2], &[4], &[]], 0.0),
            // II: p rises by one; T1 is not above it any more, so T2 gives one up.
            (4, false, [&[5], &[4], &[], &[2]], 1.0),
            // III: p falls by one.
            (2, false, [&[], &[4, 2], &[5], &[]], 0.0),
            // T1 is empty: T2 gives one up.
            (6, false, [&[6], &[2], &[5], &[4]], 0.0),
            (7, false, [&[7], &[2], &[6], &[4]], 0.0),
            (7, true, [&[], &[2, 7], &[6], &[4]], 0.0),
            (4, false, [&[], &[7, 4], &[6], &[2]], 0.0),
            // IV B with 2c blocks on the lists: the oldest of B2 is dropped.
            (9, false, [&[9], &[4], &[6], &[7]], 0.0),
        ],
    );
}

#[test]
fn the_target_moves_by_quotients_within_the_cache() {
    let mut arc = Arc { p: 2.0, capacity: 4, ..Arc::new() };
    let mut nodes = vec![Node::NEW; 5];
    [B1, B1, B2, B2, B2].iter().zip(0..).for_each(|(&tag, handle)| arc.push(&mut nodes, handle, tag));
    arc.adapt(B1);
    assert_eq!(arc.target(), 3.5, "two ghosts in B1, three in B2");
    arc.adapt(B1);
    assert_eq!(arc.target(), 4.0);
    arc.adapt(B2);
    assert_eq!(arc.target(), 3.0, "at least one");
    (0..4).for_each(|_| arc.adapt(B2));
    assert_eq!(arc.target(), 0.0);
}

#[test]
fn a_hit_in_b2_tips_the_balance_where_t1_is_as_long_as_its_target() {
    let mut nodes = vec![Node::NEW; 3];
    let mut arc = Arc { p: 1.0, capacity: 2, ..Arc::new() };
    (0..2).for_each(|handle| arc.push(&mut nodes, handle, handle));
    assert_eq!(arc.replaced(), T2);
    arc.entering = Entering::SeenOften;
    assert_eq!(arc.replaced(), T1);
}

#[test]
fn pinned_blocks_stay_and_the_other_list_gives_one_up() {
    let mut nodes = vec![Node::NEW; 3];
    let mut arc = Arc { capacity: 3, ..Arc::new() };
    [T1, T1, T2].iter().zip(0..).for_each(|(&tag, handle)| arc.push(&mut nodes, handle, tag));
    assert_eq!(arc.evict(&mut nodes, |_, h| h == 0), Some(Evicted { handle: 1, ghost: true }));
    assert_eq!(arc.evict(&mut nodes, |_, h| h == 0), Some(Evicted { handle: 2, ghost: true }));
    assert_eq!(arc.evict(&mut nodes, |_, h| h == 0), None);
    assert_eq!((arc.resident(), arc.b1().oldest(), arc.b2().oldest()), (1, Some(1), Some(2)));
}

#[test]
fn a_smaller_cache_cuts_the_target_and_the_ghosts() {
    let mut cache = Cache::new(4, Arc::new());
    for key in [1, 2, 1, 2, 3, 4, 5, 6, 3, 4] {
        cache.access(key);
    }
    assert_eq!(state(&cache), ([vec![6], vec![2, 3, 4], vec![5], vec![1]], 2.0));
    cache.resize(1, |_, _| {});
    // T1 is not above the cut target, so T2 gives up all it has; then L1 is longer than one, and all lists are longer than two.
    assert_eq!(state(&cache), ([vec![6], vec![], vec![], vec![4]], 1.0));
    cache.resize(0, |_, _| {});
    assert_eq!(state(&cache), ([const { Vec::new() }; 4], 0.0));
}
