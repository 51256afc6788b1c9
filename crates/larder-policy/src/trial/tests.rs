use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::index::hash;
use crate::spec::{AdmissionSpec, CachingSpec, PolicySpec};

/// A request and its blocks.
type Request = (Action, Vec<u64>);

/// What one policy does with some requests.
struct Scenario<'a> {
    admission: AdmissionSpec,
    write: WritePolicy,
    capacity: u32,
    requests: &'a [Request],
    /// Half way, what is to happen.
    meanwhile: Meanwhile<'a>,
}

#[derive(Clone, Copy)]
enum Meanwhile<'a> {
    Nothing,
    /// Blocks are forgotten.
    Forget(&'a BTreeSet<u64>),
    Scale(u32),
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    counters: Counters,
    /// Of the second half.
    outcomes: Vec<(usize, Outcome)>,
    resident: u32,
    dirty: u64,
}

#[derive(Default)]
struct Seen(Vec<(usize, Outcome)>);

impl Watch for Seen {
    fn saw(&mut self, at: usize, outcome: Outcome) {
        self.0.push((at, outcome));
    }
}

impl WithPolicy for Scenario<'_> {
    type Output = Found;

    fn with<P: Candidate>(self, policy: P) -> Found {
        let admission = AnyAdmission::new(&self.admission, self.capacity, 1);
        let mut trial = Trial::new(Cache::new(self.capacity, policy), admission, self.write);
        let (first, second) = self.requests.split_at(self.requests.len() / 2);
        play(&mut trial, first);
        match self.meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::Forget(blocks) => blocks.iter().for_each(|&key| trial.forget(key, hash(key))),
            Meanwhile::Scale(capacity) => trial.scale(capacity),
        }
        trial.take_counters();
        let outcomes = play(&mut trial, second);
        let (resident, dirty) = (trial.resident_blocks(), trial.dirty_blocks());
        Found { counters: *trial.counters(), outcomes, resident, dirty }
    }
}

fn play<P: Candidate>(trial: &mut Trial<P>, requests: &[Request]) -> Vec<(usize, Outcome)> {
    let mut seen = Seen::default();
    for (action, keys) in requests {
        let hashes: Vec<_> = keys.iter().map(|&key| hash(key)).collect();
        let blocks = Blocks { keys, hashes: &hashes, first: 0 };
        let (before, missed) = (seen.0.len(), trial.counters().requests - trial.counters().request_hits);
        trial.accesses(*action, &blocks, 0..keys.len(), &mut seen);
        let all_hit = trial.end_request(*action);
        assert_eq!(all_hit, seen.0[before..].iter().all(|&(_, outcome)| outcome == Outcome::Hit));
        let misses = trial.counters().requests - trial.counters().request_hits - missed;
        assert_eq!(misses, u64::from(!all_hit && *action != Action::Discard));
    }
    seen.0
}

fn run(policy: PolicySpec, scenario: Scenario<'_>) -> Found {
    with_policy(policy, 1, scenario).expect("an online policy")
}

fn requests(blocks: u64) -> impl Strategy<Value = Vec<Request>> {
    let action = prop_oneof![5 => Just(Action::Read), 4 => Just(Action::Write), 1 => Just(Action::Discard)];
    prop::collection::vec((action, prop::collection::vec(0..blocks, 0..4)), 0..120)
}

fn kinds() -> impl Strategy<Value = (PolicySpec, AdmissionSpec, WritePolicy)> {
    let admissions = prop::sample::select(AdmissionSpec::defaults());
    let kind =
        (prop::sample::select(PolicySpec::online()), admissions, prop::sample::select(&WritePolicy::ALL[..]));
    kind.prop_filter("LARC has an admission policy of its own", |&(policy, admission, _)| {
        CachingSpec::new(policy, admission).is_ok()
    })
}

proptest! {
    /// The watch and the counters tell the same.
    #[test]
    fn outcomes_add_up((policy, admission, write) in kinds(), requests in requests(40), capacity in 1u32..20) {
        let found = run(policy, Scenario { admission, write, capacity, requests: &requests, meanwhile: Meanwhile::Nothing });
        let count = |outcome| found.outcomes.iter().filter(|&&(_, seen)| seen == outcome).count() as u64;
        let Counters { block_reads, block_writes, read_hits, write_hits, fills, guest_writes, .. } = found.counters;
        prop_assert_eq!(count(Outcome::Hit), read_hits + write_hits);
        prop_assert_eq!(count(Outcome::Entered), fills + guest_writes - write_hits);
        prop_assert_eq!(found.outcomes.len() as u64, block_reads + block_writes);
        prop_assert!(found.resident <= capacity && found.dirty <= u64::from(found.resident));
    }

    /// Blocks that are forgotten leave nothing behind: all goes on as if they had never been seen. Where a cache has room for all, blocks do not depend on each
    /// other, so that is easy to tell. W-TinyLFU remembers counts and a Bloom filter its bits: they cannot forget.
    #[test]
    fn forgotten_blocks_leave_no_trace(
        (policy, admission, write) in kinds(), requests in requests(40), gone in prop::collection::btree_set(0u64..40, 0..20),
    ) {
        prop_assume!(matches!(admission, AdmissionSpec::Always | AdmissionSpec::Larc | AdmissionSpec::Nth(_)));
        let scenario = |requests, meanwhile| Scenario { admission, write, capacity: 1000, requests, meanwhile };
        let mut without = requests.clone();
        without[..requests.len() / 2].iter_mut().for_each(|(_, keys)| keys.retain(|key| !gone.contains(key)));
        let forgotten = run(policy, scenario(&requests, Meanwhile::Forget(&gone)));
        prop_assert_eq!(forgotten, run(policy, scenario(&without, Meanwhile::Nothing)));
    }

    /// A cache of another scale holds what it may, and its books agree.
    #[test]
    fn a_scaled_cache_keeps_its_books(
        (policy, admission, write) in kinds(), requests in requests(40), capacity in 1u32..20, scaled in 1u32..20,
    ) {
        let found = run(policy, Scenario { admission, write, capacity, requests: &requests, meanwhile: Meanwhile::Scale(scaled) });
        prop_assert!(found.resident <= scaled, "{} of {}", found.resident, scaled);
        prop_assert!(found.dirty <= u64::from(found.resident));
        prop_assert!(found.counters.dirty_evictions <= found.counters.evictions);
    }
}

#[test]
fn belady_is_not_told_by_name() {
    let scenario = Scenario {
        admission: AdmissionSpec::Always,
        write: WritePolicy::WriteBack,
        capacity: 1,
        requests: &[],
        meanwhile: Meanwhile::Nothing,
    };
    assert_eq!(with_policy(PolicySpec::Belady, 1, scenario), None);
}

#[test]
fn a_flush_is_only_counted() {
    let mut trial = Trial::new(
        Cache::new(2, crate::replacement::lru::Lru::new()),
        AnyAdmission::new(&AdmissionSpec::Always, 2, 1),
        WritePolicy::WriteBack,
    );
    assert!(trial.end_request(Action::Flush));
    assert_eq!(*trial.counters(), Counters { flushes: 1, ..Counters::default() });
}
