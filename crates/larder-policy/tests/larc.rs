//! LARC against its paper: Table I access by access, and Algorithm 1 written down a second time, as slowly and plainly as possible.

use larder_policy::admission::{Admission, larc::Larc};
use larder_policy::cache::{Cache, Found};
use larder_policy::index::hash;
use larder_policy::replacement::lru::Lru;
use proptest::prelude::*;
use std::collections::VecDeque;

/// LRU behind LARC's ghost. `Q` and `Q_r` are told with the most recent block first, as in the paper.
struct LarcCache {
    q: Cache<Lru>,
    ghost: Larc,
}

impl LarcCache {
    fn new(capacity: u32) -> Self {
        Self { q: Cache::new(capacity, Lru::new()), ghost: Larc::new(capacity) }
    }

    /// True for a hit. If there is `no_slot`, an admitted block does not enter.
    fn access(&mut self, key: u64, no_slot: bool) -> bool {
        let hash = hash(key);
        match self.q.find(key, hash) {
            Found::Resident(handle) => {
                self.ghost.hit();
                self.q.hit(handle);
                return true;
            }
            found if self.admits(key, hash) => match no_slot {
                true => self.ghost.failed(key, hash),
                false => self.q.enter(key, hash, found, 0, |_, _| {}),
            },
            _ => {}
        }
        false
    }

    fn admits(&mut self, key: u64, hash: u32) -> bool {
        let free = self.q.len() < self.q.capacity();
        (free && self.ghost.admit_to_free_space(key, hash)) || self.ghost.admit(key, hash)
    }

    fn resize(&mut self, capacity: u32) {
        self.q.resize(capacity, |_, _| {});
        self.ghost.resize(capacity);
    }

    fn q_r(&self) -> Vec<u64> {
        newest_first(self.ghost.keys_oldest_first())
    }
}

fn newest_first(keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut keys: Vec<u64> = keys.collect();
    keys.reverse();
    keys
}

fn contents(cache: &Cache<Lru>) -> Vec<u64> {
    use larder_policy::Nodes;
    let nodes = cache.nodes();
    newest_first(cache.policy().list().iter_oldest_first(nodes).map(|handle| nodes.key(handle)))
}

/// An access, and what Table I shows for it: `Q`, `Q_r` and LRU's queue *before* the access, the most recent block first.
type Row = (u64, [u64; 4], &'static [u64], [u64; 4]);

const TABLE_I: [Row; 12] = [
    (1, [0, 1, 2, 3], &[], [0, 1, 2, 3]),
    (5, [1, 0, 2, 3], &[], [1, 0, 2, 3]),
    (3, [1, 0, 2, 3], &[5], [5, 1, 0, 2]),
    (4, [3, 1, 0, 2], &[5], [3, 5, 1, 0]),
    (3, [3, 1, 0, 2], &[4, 5], [4, 3, 5, 1]),
    (1, [3, 1, 0, 2], &[4, 5], [3, 4, 5, 1]),
    (0, [1, 3, 0, 2], &[4, 5], [1, 3, 4, 5]),
    (4, [0, 1, 3, 2], &[4, 5], [0, 1, 3, 4]),
    (0, [4, 0, 1, 3], &[5], [4, 0, 1, 3]),
    (3, [0, 4, 1, 3], &[5], [0, 4, 1, 3]),
    (6, [3, 0, 4, 1], &[5], [3, 0, 4, 1]),
    (1, [3, 0, 4, 1], &[6, 5], [6, 3, 0, 4]),
];

/// What the table does not show: the state after its last access.
const AFTER_TABLE_I: Row = (u64::MAX, [1, 3, 0, 4], &[6, 5], [1, 6, 3, 0]);

/// The caches of the table as it begins: full, block 0 the most recent.
fn filled() -> Cache<Lru> {
    let mut cache = Cache::new(4, Lru::new());
    [3, 2, 1, 0].into_iter().for_each(|key| assert!(!cache.access(key)));
    cache
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    hits: u32,
    replacements: u32,
}

impl Tally {
    /// Count an access that hit or not, before and after which the cache held these blocks.
    fn count(&mut self, hit: bool, before: &[u64], after: &[u64]) {
        self.hits += u32::from(hit);
        self.replacements += u32::from(before.iter().any(|key| !after.contains(key)));
    }
}

/// The prose of section III-A: "when cache is full, first-time accessed blocks are stored in ghost cache".
#[test]
fn free_space_is_open_where_the_ghost_is_asked_only_when_full() {
    let mut larc = LarcCache { q: Cache::new(4, Lru::new()), ghost: Larc::when_full(4) };
    (1..5).for_each(|key| assert!(!larc.access(key, false)));
    assert_eq!((contents(&larc.q), larc.q_r()), (vec![4, 3, 2, 1], vec![]));
    assert_eq!(larc.ghost.target(), 3.6, "each of the misses made C_r grow, to its bound");
    assert!(!larc.access(5, false));
    assert_eq!((contents(&larc.q), larc.q_r()), (vec![4, 3, 2, 1], vec![5]));
    larc.resize(6);
    assert!(!larc.access(5, true), "there is space, but no slot");
    assert_eq!(
        (contents(&larc.q), larc.q_r()),
        (vec![4, 3, 2, 1], vec![5]),
        "back to the ghost (section V-B)"
    );
    assert!(!larc.access(5, false));
    assert_eq!((contents(&larc.q), larc.q_r()), (vec![5, 4, 3, 2, 1], vec![]), "a block is in one queue");
}

#[test]
fn table_one_of_the_paper() {
    let mut larc = LarcCache { q: filled(), ghost: Larc::fixed(4, 2) };
    let mut lru = filled();
    let (mut larc_tally, mut lru_tally) = (Tally::default(), Tally::default());
    let after = TABLE_I.iter().skip(1).chain([&AFTER_TABLE_I]);
    assert_eq!((contents(&larc.q), contents(&lru)), (TABLE_I[0].1.to_vec(), TABLE_I[0].3.to_vec()));
    for (&(key, q_before, _, lru_before), &(_, q, q_r, lru_q)) in TABLE_I.iter().zip(after) {
        larc_tally.count(larc.access(key, false), &q_before, &q);
        lru_tally.count(lru.access(key), &lru_before, &lru_q);
        assert_eq!(contents(&larc.q), q, "Q after {key}");
        assert_eq!(larc.q_r(), q_r, "Q_r after {key}");
        assert_eq!(contents(&lru), lru_q, "LRU after {key}");
    }
    assert_eq!(larc_tally, Tally { hits: 8, replacements: 1 });
    assert_eq!(lru_tally, Tally { hits: 6, replacements: 6 });
}

/// Algorithm 1, with the failure rule of section V-B and the rules for what the paper leaves open. The most recent block is in front.
struct Algorithm1 {
    c: f64,
    c_r: f64,
    q: VecDeque<u64>,
    q_r: VecDeque<u64>,
}

impl Algorithm1 {
    fn new(c: f64) -> Self {
        Self { c, c_r: 0.1 * c, q: VecDeque::new(), q_r: VecDeque::new() }
    }

    fn access(&mut self, b: u64, no_slot: bool) -> bool {
        if take(&mut self.q, b) {
            self.q.push_front(b);
            self.c_r = f64::max(0.1 * self.c, self.c_r - self.c / (self.c - self.c_r));
            return true;
        }
        self.drop_what_a_resize_left();
        self.c_r = f64::min(0.9 * self.c, self.c_r + self.c / self.c_r);
        if take(&mut self.q_r, b) {
            self.enter(b, no_slot);
        } else {
            self.q_r.push_front(b);
            // Only a cache of one block remembers more than the paper's C_r.
            let c_r = if self.c == 1.0 { 1.0 } else { self.c_r };
            if self.q_r.len() as f64 > c_r {
                self.q_r.pop_back();
            }
        }
        false
    }

    fn enter(&mut self, b: u64, no_slot: bool) {
        if no_slot {
            return self.q_r.push_back(b);
        }
        self.q.push_front(b);
        if self.q.len() as f64 > self.c {
            self.q.pop_back();
        }
    }

    fn resize(&mut self, c: f64) {
        self.c = c;
        self.c_r = self.c_r.max(0.1 * c).min(0.9 * c);
        self.q.truncate(c as usize);
    }

    fn drop_what_a_resize_left(&mut self) {
        let most = (0.9 * self.c).floor().max(1.0) as usize;
        for _ in 0..4 {
            if self.q_r.len() > most {
                self.q_r.pop_back();
            }
        }
    }
}

/// Take a block out of a queue; true if it was there.
fn take(queue: &mut VecDeque<u64>, b: u64) -> bool {
    let place = queue.iter().position(|&other| other == b);
    place.map(|place| queue.remove(place)).is_some()
}

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    AccessWithoutSlot(u64),
    Resize(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (0..14u64).prop_map(Op::Access),
        3 => (0..14u64).prop_map(Op::AccessWithoutSlot),
        1 => (1..9u32).prop_map(Op::Resize),
    ]
}

fn step(op: &Op, larc: &mut LarcCache, model: &mut Algorithm1) -> (bool, bool) {
    match *op {
        Op::Access(key) => (larc.access(key, false), model.access(key, false)),
        Op::AccessWithoutSlot(key) => (larc.access(key, true), model.access(key, true)),
        Op::Resize(capacity) => {
            larc.resize(capacity);
            model.resize(f64::from(capacity));
            (false, false)
        }
    }
}

proptest! {
    #[test]
    fn equals_algorithm_1(capacity in 1..9u32, ops in prop::collection::vec(op(), 0..300)) {
        let (mut larc, mut model) = (LarcCache::new(capacity), Algorithm1::new(f64::from(capacity)));
        for op in &ops {
            let (hit, expected) = step(op, &mut larc, &mut model);
            prop_assert_eq!(hit, expected, "{:?}", op);
            prop_assert_eq!(larc.ghost.target(), model.c_r, "C_r after {:?}", op);
            prop_assert_eq!(&model.q, &contents(&larc.q), "Q after {:?}", op);
            prop_assert_eq!(&model.q_r, &larc.q_r(), "Q_r after {:?}", op);
        }
    }

    /// What the doc says of C of 2 or more: where Algorithm 1 compares, C_r is at least 1, so that one ghost at least is in order.
    #[test]
    fn one_ghost_is_always_within_c_r(c in 2..100_000u32, share in 0.1..0.9f64) {
        let c = f64::from(c);
        let c_r = share * c;
        prop_assert!(f64::min(0.9 * c, c_r + c / c_r) >= 1.0);
    }
}

#[test]
fn c_r_stays_between_a_tenth_and_nine_tenths() {
    let mut larc = LarcCache::new(1000);
    assert_eq!(larc.ghost.target(), 100.0);
    (0..10_000).for_each(|key| assert!(!larc.access(key, false)));
    assert_eq!((larc.ghost.target(), larc.q_r().len()), (900.0, 900));
    // The last 900 come again and enter; then they are hit.
    (9100..10_000).for_each(|key| assert!(!larc.access(key, false)));
    (0..5).flat_map(|_| 9100..10_000).for_each(|key| assert!(larc.access(key, false)));
    assert_eq!((larc.ghost.target(), larc.q_r().len()), (100.0, 0));
}

#[test]
fn a_scan_writes_nothing_and_a_loop_enters_at_its_second_round() {
    let mut larc = LarcCache::new(100);
    (1000..5000).for_each(|key| assert!(!larc.access(key, false)));
    assert!(larc.q.is_empty());
    let hits = |larc: &mut LarcCache| (0..50).filter(|&key| larc.access(key, false)).count();
    assert_eq!([hits(&mut larc), hits(&mut larc), hits(&mut larc)], [0, 0, 50]);
}

#[test]
fn a_cache_of_one_block_admits_what_its_one_ghost_remembers() {
    let mut larc = LarcCache::new(1);
    let hits = [7, 7, 7, 8, 7, 8, 8, 7, 9, 7].map(|key| larc.access(key, false));
    assert_eq!(hits, [false, false, true, false, true, false, true, false, false, false]);
}

#[test]
fn a_cache_without_blocks_admits_none_and_forgets() {
    let mut larc = LarcCache::new(40);
    (0..36).for_each(|key| assert!(!larc.access(key, false)));
    larc.resize(0);
    (0..20).for_each(|_| assert!(!larc.access(7, false)));
    assert_eq!((larc.q.len(), larc.ghost.target()), (0, 0.0));
    assert!(larc.q_r().len() <= 1);
    larc.resize(40);
    (0..2).for_each(|_| assert!(!larc.access(7, false)));
    assert!(larc.access(7, false));
}
