//! S3-FIFO by hand, and beside a plain model of its three queues.

use super::*;
use crate::{Cache, Node};
use proptest::prelude::*;

fn keys(cache: &Cache<S3Fifo>, list: &List) -> Vec<u64> {
    list.iter_oldest_first(cache.nodes()).map(|handle| cache.nodes().key(handle)).collect()
}

/// S, M, G from the oldest to the newest.
fn state(cache: &Cache<S3Fifo>) -> [Vec<u64>; 3] {
    let policy = cache.policy();
    [policy.small(), policy.main(), policy.ghosts()].map(|list| keys(cache, list))
}

#[test]
fn four_blocks_step_by_step() {
    let mut cache = Cache::new(4, S3Fifo::new());
    // S has room for one; the cache is not full, so the others enter M.
    (1..=4).for_each(|key| assert!(!cache.access(key)));
    assert_eq!(state(&cache), [vec![1], vec![2, 3, 4], vec![]]);
    let steps: [(u64, bool, [&[u64]; 3]); 15] = [
        (2, true, [&[1], &[2, 3, 4], &[]]),
        (2, true, [&[1], &[2, 3, 4], &[]]),
        (1, true, [&[1], &[2, 3, 4], &[]]),
        // One hit does not keep a block that leaves S.
        (5, false, [&[5], &[2, 3, 4], &[1]]),
        // A ghost enters M; S gave up a block for it.
        (1, false, [&[], &[2, 3, 4, 1], &[5]]),
        // M is above its share: 2 goes round, 3 leaves without a trace.
        (6, false, [&[6], &[4, 1, 2], &[5]]),
        (6, true, [&[6], &[4, 1, 2], &[5]]),
        (6, true, [&[6], &[4, 1, 2], &[5]]),
        // Two hits move 6 to M, which has to give up a block then.
        (7, false, [&[7], &[1, 2, 6], &[5]]),
        (8, false, [&[8], &[1, 2, 6], &[5, 7]]),
        (9, false, [&[9], &[1, 2, 6], &[5, 7, 8]]),
        // G holds nine tenths of four blocks.
        (10, false, [&[10], &[1, 2, 6], &[7, 8, 9]]),
        (8, false, [&[], &[1, 2, 6, 8], &[7, 9, 10]]),
        (11, false, [&[11], &[2, 6, 8], &[7, 9, 10]]),
        (2, true, [&[11], &[2, 6, 8], &[7, 9, 10]]),
    ];
    for (key, hit, lists) in steps {
        assert_eq!(cache.access(key), hit, "hit of {key}");
        assert_eq!(state(&cache), lists.map(<[u64]>::to_vec), "after {key}");
    }
}

#[test]
fn a_larger_cache_fills_its_main_queue_at_once() {
    let mut cache = Cache::new(10, S3Fifo::new());
    (0..12).for_each(|key| assert!(!cache.access(key)));
    assert_eq!(state(&cache), [vec![11], (1..10).collect(), vec![0, 10]]);
    cache.resize(12, |_, _| {});
    cache.access(12);
    assert_eq!(state(&cache), [vec![11], vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 12], vec![0, 10]]);
}

/// A policy with blocks 0.. that were used so often each, all in M.
fn in_main(hits: &[u32]) -> (Vec<Node>, S3Fifo) {
    let mut nodes = vec![Node::NEW; hits.len()];
    let mut policy = S3Fifo::new();
    for (handle, &hits) in (0..).zip(hits) {
        policy.insert(&mut nodes, handle, true);
        (0..hits).for_each(|_| policy.hit(&mut nodes, handle));
    }
    (nodes, policy)
}

#[test]
fn a_counter_stops_at_three_rounds() {
    let (mut nodes, mut policy) = in_main(&[9, 2]);
    assert_eq!(nodes[0].tag, MAIN | 3);
    assert_eq!(policy.evict(&mut nodes, |_, _| false), Some(Evicted { handle: 1, ghost: false }));
    assert_eq!(nodes[0].tag, MAIN, "three rounds to the two of block 1");
    assert_eq!(policy.evict(&mut nodes, |_, _| false), Some(Evicted { handle: 0, ghost: false }));
}

#[test]
fn pinned_blocks_are_passed_over_and_those_used_go_round_behind_them() {
    let (mut nodes, mut policy) = in_main(&[0, 1, 0]);
    assert_eq!(policy.evict(&mut nodes, |_, h| h != 1), Some(Evicted { handle: 1, ghost: false }));
    assert_eq!(policy.evict(&mut nodes, |_, _| true), None);
    assert_eq!(policy.main().iter_oldest_first(&nodes).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn where_main_is_pinned_a_used_block_of_small_may_have_to_leave_through_it() {
    let (mut nodes, mut policy) = in_main(&[0, 0, 0]);
    nodes.push(Node::NEW);
    policy.insert(&mut nodes, 3, false);
    (0..2).for_each(|_| policy.hit(&mut nodes, 3));
    assert_eq!(policy.evict(&mut nodes, |_, h| h < 3), Some(Evicted { handle: 3, ghost: false }));
    assert_eq!((policy.small().len(), policy.main().len()), (0, 3));
}

#[test]
fn a_limit_to_the_spared_makes_a_used_block_leave() {
    let (mut nodes, policy) = in_main(&[1, 1, 1]);
    let mut policy = policy.sparing(2);
    assert_eq!(policy.evict(&mut nodes, |_, _| false), Some(Evicted { handle: 2, ghost: false }));
    assert_eq!(policy.main().iter_oldest_first(&nodes).collect::<Vec<_>>(), [0, 1]);
    // In S: two blocks move to M, and the third leaves as a ghost.
    let (mut nodes, mut policy) = (vec![Node::NEW; 3], S3Fifo::new().sparing(2));
    policy.resize(30);
    for handle in 0..3 {
        policy.insert(&mut nodes, handle, false);
        (0..2).for_each(|_| policy.hit(&mut nodes, handle));
    }
    assert_eq!(policy.evict(&mut nodes, |_, _| false), Some(Evicted { handle: 2, ghost: true }));
    assert_eq!((policy.small().len(), policy.main().len(), policy.ghosts().len()), (0, 2, 1));
}

#[test]
fn the_search_among_pinned_blocks_has_an_end() {
    let (mut nodes, mut policy) = in_main(&[0; PIN_REACH + 1]);
    let last = PIN_REACH as u32;
    assert_eq!(policy.evict(&mut nodes, |_, h| h < last), None);
    assert_eq!(policy.evict(&mut nodes, |_, h| h < last - 1).map(|out| out.handle), Some(last - 1));
}

/// A resident block of the model: its key and its hits.
type Counted = (u64, u32);

/// The algorithm over vectors.
#[derive(Debug, Default)]
struct Model {
    small: Vec<Counted>,
    main: Vec<Counted>,
    ghosts: Vec<u64>,
    full: bool,
}

impl Model {
    fn access(&mut self, key: u64, size: usize) -> bool {
        if let Some((_, hits)) = self.small.iter_mut().chain(&mut self.main).find(|(k, _)| *k == key) {
            *hits = (*hits + 1).min(3);
            return true;
        }
        let ghost = self.ghosts.iter().position(|&k| k == key).map(|at| self.ghosts.remove(at)).is_some();
        let small_size = (size / 10).max(1);
        while self.small.len() + self.main.len() == size {
            self.full = true;
            if self.main.len() > size - small_size || self.small.is_empty() {
                self.evict_main();
            } else {
                self.evict_small(size * 9 / 10);
            }
        }
        let to_main = ghost || (!self.full && self.small.len() >= small_size);
        if to_main {
            self.main.push((key, 0))
        } else {
            self.small.push((key, 0))
        }
        false
    }

    /// Until a block left, or none is there.
    fn evict_small(&mut self, ghosts_max: usize) {
        while !self.small.is_empty() {
            let (key, hits) = self.small.remove(0);
            if hits <= 1 {
                self.ghosts.push(key);
                break;
            }
            self.main.push((key, 0));
        }
        if self.ghosts.len() > ghosts_max {
            self.ghosts.remove(0);
        }
    }

    fn evict_main(&mut self) {
        let (key, hits) = self.main.remove(0);
        if hits > 0 {
            self.main.push((key, hits - 1));
        }
    }
}

proptest! {
    #[test]
    fn equals_the_model(size in 1..24u32, accesses in prop::collection::vec(0..40u64, 0..400)) {
        let (mut cache, mut model) = (Cache::new(size, S3Fifo::new()), Model::default());
        for key in accesses {
            // Few blocks are used often.
            let key = if key < 20 { key % 6 } else { key };
            prop_assert_eq!(cache.access(key), model.access(key, size as usize));
            let keys = |list: &[Counted]| list.iter().map(|&(key, _)| key).collect::<Vec<_>>();
            prop_assert_eq!(state(&cache), [keys(&model.small), keys(&model.main), model.ghosts.clone()]);
        }
    }
}
