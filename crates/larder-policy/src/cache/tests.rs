//! What the cache around a policy does, whatever the policy: marks, handles, memory, and the edges of capacity.

use super::*;
use crate::replacement::{arc::Arc, fifo::Fifo, lru::Lru, sieve::Sieve};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn enter<P: Replacement>(cache: &mut Cache<P>, key: u64, mark: Mark) -> Vec<(u64, Mark)> {
    let mut left = Vec::new();
    let found = cache.find(key, hash(key));
    cache.enter(key, hash(key), found, mark, |key, mark| left.push((key, mark)));
    left
}

fn handle<P: Replacement>(cache: &Cache<P>, key: u64) -> Option<Handle> {
    match cache.find(key, hash(key)) {
        Found::Resident(handle) => Some(handle),
        _ => None,
    }
}

fn resident<P: Replacement>(cache: &Cache<P>, key: u64) -> Handle {
    handle(cache, key).expect("it is resident")
}

#[test]
fn a_block_is_found_from_its_entry_to_its_eviction() {
    let mut cache = Cache::new(2, Lru::new());
    assert_eq!(cache.find(10, hash(10)), Found::Absent);
    assert_eq!(enter(&mut cache, 10, 0), []);
    assert_eq!(enter(&mut cache, 11, 0), []);
    let ten = resident(&cache, 10);
    cache.hit(ten);
    assert_eq!(enter(&mut cache, 12, 0), [(11, 0)]);
    assert_eq!(cache.find(11, hash(11)), Found::Absent);
    assert_eq!((handle(&cache, 10), cache.len()), (Some(ten), 2));
}

#[test]
fn a_mark_stays_with_its_block_and_is_told_when_it_leaves() {
    let mut cache = Cache::new(2, Fifo::new());
    enter(&mut cache, 1, 7);
    enter(&mut cache, 2, 0);
    let two = resident(&cache, 2);
    cache.set_mark(two, 9);
    assert_eq!((cache.mark(resident(&cache, 1)), cache.mark(two)), (7, 9));
    assert_eq!(enter(&mut cache, 3, 0), [(1, 7)]);
    assert_eq!(cache.invalidate(2, hash(2)), Some(9));
    enter(&mut cache, 2, 0);
    assert_eq!(cache.mark(resident(&cache, 2)), 0, "a block that comes back has a new mark");
}

#[test]
fn a_ghost_is_neither_resident_nor_absent() {
    let mut cache = Cache::new(2, Arc::new());
    // 1 is used twice, 2 leaves for 3 and is remembered.
    [1, 1, 2, 3].into_iter().for_each(|key| _ = cache.access(key));
    let Found::Ghost(ghost) = cache.find(2, hash(2)) else { panic!("{:?}", cache.find(2, hash(2))) };
    assert_eq!(cache.invalidate(2, hash(2)), None);
    assert_eq!(cache.len(), 2);
    enter(&mut cache, 2, 5);
    assert_eq!(cache.find(2, hash(2)), Found::Resident(ghost), "the handle of a ghost is used on");
    assert_eq!(cache.mark(ghost), 5);
}

#[test]
fn an_invalidated_block_makes_room() {
    let mut cache = Cache::new(2, Lru::new());
    enter(&mut cache, 1, 0);
    enter(&mut cache, 2, 0);
    assert_eq!(cache.invalidate(1, hash(1)), Some(0));
    assert_eq!(cache.invalidate(1, hash(1)), None);
    assert_eq!(cache.len(), 1);
    assert_eq!(enter(&mut cache, 3, 0), []);
    assert_eq!(cache.len(), 2);
}

#[test]
fn a_smaller_cache_loses_what_would_leave_first() {
    let mut cache = Cache::new(4, Lru::new());
    [1, 2, 3, 4, 1].into_iter().for_each(|key| _ = cache.access(key));
    let mut left = Vec::new();
    cache.resize(2, |key, _| left.push(key));
    assert_eq!((left, cache.capacity(), cache.len()), (vec![2, 3], 2, 2));
    cache.resize(3, |_, _| panic!("nothing leaves a larger cache"));
    assert_eq!(enter(&mut cache, 5, 0), []);
}

#[test]
fn a_cache_of_no_block_and_of_one() {
    let mut none = Cache::new(0, Lru::new());
    assert_eq!([none.access(1), none.access(1)], [false, false]);
    assert!(none.is_empty());
    let mut one = Cache::new(1, Sieve::new());
    assert_eq!([1, 1, 2, 1, 1].map(|key| one.access(key)), [false, true, false, false, true]);
    one.resize(0, |key, _| assert_eq!(key, 1));
    assert_eq!((one.access(1), one.len()), (false, 0));
    one.resize(1, |_, _| {});
    assert_eq!([one.access(1), one.access(1)], [false, true]);
}

#[test]
fn handles_of_blocks_that_left_are_used_again() {
    let mut cache = Cache::new(3, Fifo::new());
    for key in 0..100 {
        assert!(!cache.access(key));
        assert!(resident(&cache, key) < 4, "three resident blocks, and room for one to enter");
    }
    for key in 100..200 {
        cache.invalidate(key - 1, hash(key - 1));
        assert!(!cache.access(key));
        assert!(resident(&cache, key) < 4);
    }
}

#[test]
fn memory_follows_the_capacity_and_not_the_accesses() {
    let mut cache = Cache::new(500, Lru::new());
    (0..2000).for_each(|key| assert!(!cache.access(key)));
    let warm = cache.memory_bytes();
    (2000..100_000).for_each(|key| assert!(!cache.access(key)));
    assert_eq!(cache.memory_bytes(), warm);
    // 24 bytes a block, in a vector that doubles, and 8 bytes a slot, up to three quarters of which are in use, in a table that doubles.
    assert!(warm <= 2 * 500 * 24 + 1024 * 8 + 64, "{warm}");
}

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    Mark(u64, Mark),
    Invalidate(u64),
    Resize(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (0..20u64).prop_map(Op::Access),
        4 => (0..20u64, any::<Mark>()).prop_map(|(key, mark)| Op::Mark(key, mark)),
        4 => (0..20u64).prop_map(Op::Invalidate),
        1 => (0..10u32).prop_map(Op::Resize),
    ]
}

/// The residents with their marks, as an ordered map that is told who left.
#[derive(Default)]
struct Residents(BTreeMap<u64, Mark>);

impl Residents {
    fn leave(&mut self, left: &[(u64, Mark)]) {
        for &(key, mark) in left {
            assert_eq!(self.0.remove(&key), Some(mark), "only what is in leaves, with its mark");
        }
    }

    fn apply<P: Replacement>(&mut self, cache: &mut Cache<P>, op: &Op) {
        match *op {
            Op::Access(key) => match handle(cache, key) {
                Some(handle) => cache.hit(handle),
                None => {
                    self.leave(&enter(cache, key, 1));
                    if cache.capacity() > 0 {
                        self.0.insert(key, 1);
                    }
                }
            },
            Op::Mark(key, mark) => {
                if let Some(handle) = handle(cache, key) {
                    cache.set_mark(handle, mark);
                    self.0.insert(key, mark);
                }
            }
            Op::Invalidate(key) => assert_eq!(cache.invalidate(key, hash(key)), self.0.remove(&key)),
            Op::Resize(capacity) => {
                let mut left = Vec::new();
                cache.resize(capacity, |key, mark| left.push((key, mark)));
                self.leave(&left);
            }
        }
    }

    fn check<P: Replacement>(&self, cache: &Cache<P>) {
        assert_eq!(cache.len() as usize, self.0.len());
        assert!(cache.len() <= cache.capacity());
        for key in 0..20 {
            let mark = handle(cache, key).map(|handle| cache.mark(handle));
            assert_eq!(mark, self.0.get(&key).copied(), "block {key}");
        }
    }
}

fn run<P: Replacement>(policy: P, ops: &[Op]) {
    let (mut cache, mut residents) = (Cache::new(4, policy), Residents::default());
    for op in ops {
        residents.apply(&mut cache, op);
        residents.check(&cache);
    }
}

proptest! {
    #[test]
    fn who_is_in_and_with_which_mark(ops in prop::collection::vec(op(), 0..300)) {
        run(Lru::new(), &ops);
        run(Sieve::new(), &ops);
        run(Arc::new(), &ops);
    }

    /// Whatever is read ahead, the outcome is that of one access after the other.
    #[test]
    fn many_accesses_at_once_are_as_one_by_one(keys in prop::collection::vec(0..60u64, 0..200), capacity in 0..40u32) {
        let (mut at_once, mut singly) = (Cache::new(capacity, Arc::new()), Cache::new(capacity, Arc::new()));
        let hits = keys.iter().filter(|&&key| singly.access(key)).count() as u64;
        prop_assert_eq!(at_once.access_all(&keys), hits);
        for key in 0..60 {
            prop_assert_eq!(at_once.find(key, hash(key)), singly.find(key, hash(key)));
        }
    }
}
