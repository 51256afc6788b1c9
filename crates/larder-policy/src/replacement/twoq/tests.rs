//! 2Q by hand, and beside a plain model of its three queues.

use super::*;
use crate::{Cache, Node};
use proptest::prelude::*;

fn keys(cache: &Cache<TwoQ>, list: &List) -> Vec<u64> {
    list.iter_oldest_first(cache.nodes()).map(|handle| cache.nodes().key(handle)).collect()
}

/// A1in, Am, A1out from the oldest to the newest.
fn state(cache: &Cache<TwoQ>) -> [Vec<u64>; 3] {
    let policy = cache.policy();
    [policy.a1_in(), policy.am(), policy.a1_out()].map(|list| keys(cache, list))
}

#[test]
fn four_blocks_step_by_step() {
    let mut cache = Cache::new(4, TwoQ::new());
    (1..=4).for_each(|key| assert!(!cache.access(key)));
    let steps: [(u64, bool, [&[u64]; 3]); 10] = [
        // A hit in A1in changes nothing.
        (1, true, [&[1, 2, 3, 4], &[], &[]]),
        (5, false, [&[2, 3, 4, 5], &[], &[1]]),
        // A ghost enters Am.
        (1, false, [&[3, 4, 5], &[1], &[2]]),
        (6, false, [&[4, 5, 6], &[1], &[2, 3]]),
        // A1out holds two.
        (7, false, [&[5, 6, 7], &[1], &[3, 4]]),
        (3, false, [&[6, 7], &[1, 3], &[4, 5]]),
        (4, false, [&[7], &[1, 3, 4], &[5, 6]]),
        // A1in is not above its quarter: Am gives one up, which leaves no trace.
        (8, false, [&[7, 8], &[3, 4], &[5, 6]]),
        (3, true, [&[7, 8], &[4, 3], &[5, 6]]),
        (9, false, [&[8, 9], &[4, 3], &[6, 7]]),
    ];
    for (key, hit, lists) in steps {
        assert_eq!(cache.access(key), hit, "hit of {key}");
        assert_eq!(state(&cache), lists.map(<[u64]>::to_vec), "after {key}");
    }
}

#[test]
fn where_one_queue_is_pinned_the_other_gives_a_block_up() {
    let mut nodes = vec![Node::NEW; 4];
    let mut policy = TwoQ { capacity: 4, ..TwoQ::new() };
    (0..4).for_each(|handle| policy.insert(&mut nodes, handle, handle >= 2));
    assert_eq!(policy.evict(&mut nodes, |_, h| h < 2), Some(Evicted { handle: 2, ghost: false }));
    assert_eq!(policy.evict(&mut nodes, |_, h| h != 1), Some(Evicted { handle: 1, ghost: true }));
    assert_eq!(policy.evict(&mut nodes, |_, h| h == 3), Some(Evicted { handle: 0, ghost: true }));
    assert_eq!(policy.evict(&mut nodes, |_, h| h == 3), None);
}

#[test]
fn a_smaller_cache_keeps_fewer_ghosts() {
    let mut cache = Cache::new(8, TwoQ::new());
    (0..20).for_each(|key| assert!(!cache.access(key)));
    assert_eq!(state(&cache), [(12..20).collect(), vec![], (8..12).collect()]);
    cache.resize(2, |_, _| {});
    assert_eq!(state(&cache), [vec![18, 19], vec![], vec![17]]);
}

/// The paper's pseudocode over vectors, but for X, which leaves A1out first.
#[derive(Debug, Default)]
struct Model {
    a1_in: Vec<u64>,
    am: Vec<u64>,
    a1_out: Vec<u64>,
}

fn take(queue: &mut Vec<u64>, x: u64) -> bool {
    let at = queue.iter().position(|&key| key == x);
    at.map(|at| queue.remove(at)).is_some()
}

impl Model {
    fn access(&mut self, x: u64, size: usize) -> bool {
        if take(&mut self.am, x) {
            self.am.push(x);
            return true;
        }
        if self.a1_in.contains(&x) {
            return true;
        }
        let again = take(&mut self.a1_out, x);
        self.reclaim(size);
        if again {
            self.am.push(x)
        } else {
            self.a1_in.push(x)
        }
        false
    }

    fn reclaim(&mut self, size: usize) {
        if self.a1_in.len() + self.am.len() < size {
            return;
        }
        if self.a1_in.len() > size / 4 {
            self.a1_out.push(self.a1_in.remove(0));
            if self.a1_out.len() > size / 2 {
                self.a1_out.remove(0);
            }
        } else {
            self.am.remove(0);
        }
    }
}

proptest! {
    #[test]
    fn equals_the_pseudocode(size in 1..12u32, accesses in prop::collection::vec(0..24u64, 0..300)) {
        let (mut cache, mut model) = (Cache::new(size, TwoQ::new()), Model::default());
        for key in accesses {
            prop_assert_eq!(cache.access(key), model.access(key, size as usize));
            prop_assert_eq!(state(&cache), [model.a1_in.clone(), model.am.clone(), model.a1_out.clone()]);
        }
    }
}
