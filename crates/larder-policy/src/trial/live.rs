//! What may change in a cache on trial while it runs: its size, its policies, whether it takes anything in; and blocks that come from and go to
//! another cache. What an allocator decides between two epochs is carried out here.

use std::ops::Range;

use super::{CLEAN, Candidate, DIRTY, Trial, Watch, evicted};
use crate::admission::{Admission, AnyAdmission};
use crate::cache::Found;
use crate::index::hash;
use crate::{Cache, WritePolicy};

impl<P: Candidate> Trial<P> {
    /// The cache.
    pub fn cache(&self) -> &Cache<P> {
        &self.cache
    }

    /// The write policy.
    pub fn write_policy(&self) -> WritePolicy {
        self.write
    }

    /// The cache holds `capacity` blocks from now on. What is above that leaves as evictions do.
    pub fn set_capacity(&mut self, capacity: u32, watch: &mut impl Watch) {
        let (counters, dirty_blocks) = (&mut self.counters, &mut self.dirty_blocks);
        self.cache.resize(capacity, |key, mark| {
            evicted(counters, dirty_blocks, mark);
            watch.evicted(key, mark == DIRTY);
        });
        self.size_admission();
    }

    /// Blocks with these keys stay from now on, unless no others can leave ([`Cache::pin`](crate::Cache::pin)).
    pub fn pin(&mut self, keys: Range<u64>) {
        self.cache.pin(keys);
    }

    /// The cache may grow to so many blocks, although its capacity may be less for the time being. An admission policy that remembers in proportion to the cache's size
    /// then remembers as for that one: else a small cache would let so little in that it stays small.
    pub fn set_reach(&mut self, blocks: u32) {
        self.reach = blocks;
        self.size_admission();
    }

    fn size_admission(&mut self) {
        self.admission.resize(self.cache.capacity().max(self.reach));
    }

    /// Writes are treated so from now on. A policy that holds no dirty blocks has all of them written back at once: their keys go to `cleaned`.
    pub fn set_write_policy(&mut self, write: WritePolicy, cleaned: impl FnMut(u64)) {
        if !matches!(write, WritePolicy::WriteBack | WritePolicy::WriteOnly) {
            self.clean(cleaned);
        }
        self.write = write;
    }

    /// Other blocks may enter from now on.
    pub fn set_admission(&mut self, admission: AnyAdmission) {
        self.admission = admission;
        self.size_admission();
    }

    /// Another replacement policy takes over, empty as it is: it gets the blocks in the order in which the old one would have evicted them.
    pub fn set_replacement(&mut self, policy: P) {
        let capacity = self.cache.capacity();
        let mut old = std::mem::replace(&mut self.cache, Cache::new(capacity, policy));
        old.drain(|key, mark| {
            self.cache.enter(key, hash(key), Found::Absent, mark, |_, _| {});
        });
    }

    /// While it is stuck, no block leaves for another: what is dirty has not been written back yet. What is there is hit and written as ever, and what else comes enters free places alone.
    pub fn set_stuck(&mut self, stuck: bool) {
        self.stuck = stuck;
    }

    /// While it is closed, nothing is written to the SSD: nothing enters, and writes go past and make their blocks leave.
    pub fn set_closed(&mut self, closed: bool) {
        self.closed = closed;
    }

    /// What enters from now on does so as long as there is room, and is to leave before others; or no more ([`Cache::set_leaves_first`]).
    pub fn set_leaves_first(&mut self, leaves_first: bool) {
        self.cache.set_leaves_first(leaves_first);
    }

    /// Evict this many blocks, or all that there are.
    pub fn evict(&mut self, blocks: u32, watch: &mut impl Watch) {
        let capacity = self.cache.capacity();
        self.set_capacity(self.cache.len().saturating_sub(blocks), watch);
        self.set_capacity(capacity, watch);
    }

    /// A block is taken out, for another cache to have it: true if it is dirty; none if it is not resident. Nothing is counted.
    pub fn take(&mut self, key: u64) -> Option<bool> {
        let dirty = self.cache.invalidate(key, hash(key))? == DIRTY;
        self.dirty_blocks -= u64::from(dirty);
        Some(dirty)
    }

    /// A block is put in that another cache had. Others may leave for it; it itself is not counted.
    pub fn adopt(&mut self, key: u64, dirty: bool, watch: &mut impl Watch) {
        let hash = hash(key);
        let found = self.cache.find(key, hash);
        if self.cache.capacity() == 0 || matches!(found, Found::Resident(_)) {
            return;
        }
        self.dirty_blocks += u64::from(dirty);
        self.enter(key, hash, found, if dirty { DIRTY } else { CLEAN }, watch);
    }

    /// A block is written back, and stays: true if it was dirty.
    pub fn clean_block(&mut self, key: u64) -> bool {
        let Found::Resident(handle) = self.cache.find(key, hash(key)) else { return false };
        if self.cache.mark(handle) != DIRTY {
            return false;
        }
        self.cache.set_mark(handle, CLEAN);
        self.dirty_blocks -= 1;
        self.counters.backing_writes += 1;
        true
    }

    /// All dirty blocks are written back, and stay.
    pub fn clean(&mut self, mut cleaned: impl FnMut(u64)) {
        let counters = &mut self.counters;
        self.cache.remark(|key, mark| {
            if mark == DIRTY {
                counters.backing_writes += 1;
                counters.dirty_evictions += 1;
                cleaned(key);
            }
            CLEAN
        });
        self.dirty_blocks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::AnyReplacement;
    use crate::replacement::lru::Lru;
    use crate::spec::{AdmissionSpec, PolicySpec};
    use crate::trial::{Action, Blocks, Counters, Outcome};

    #[derive(Default)]
    struct Seen(Vec<(u64, bool)>);

    impl Watch for Seen {
        fn saw(&mut self, _at: usize, _outcome: Outcome) {}

        fn evicted(&mut self, key: u64, dirty: bool) {
            self.0.push((key, dirty));
        }
    }

    fn trial(capacity: u32) -> Trial<Lru> {
        let admission = AnyAdmission::new(&AdmissionSpec::Always, capacity, 1);
        Trial::new(Cache::new(capacity, Lru::new()), admission, WritePolicy::WriteBack)
    }

    fn run<P: Candidate>(trial: &mut Trial<P>, action: Action, keys: &[u64], seen: &mut Seen) {
        let hashes: Vec<_> = keys.iter().map(|&key| hash(key)).collect();
        trial.accesses(action, &Blocks { keys, hashes: &hashes, first: 0 }, 0..keys.len(), seen);
        trial.end_request(action);
    }

    #[test]
    fn a_smaller_cache_tells_what_leaves_and_a_larger_one_keeps_all() {
        let (mut trial, mut seen) = (trial(4), Seen::default());
        run(&mut trial, Action::Write, &[1, 2], &mut seen);
        run(&mut trial, Action::Read, &[3, 4, 1], &mut seen);
        trial.set_capacity(2, &mut seen);
        assert_eq!(seen.0, [(2, true), (3, false)]);
        assert_eq!(
            (trial.dirty_blocks(), trial.counters().dirty_evictions, trial.counters().evictions),
            (1, 1, 2)
        );
        trial.set_capacity(3, &mut seen);
        run(&mut trial, Action::Read, &[9], &mut seen);
        assert_eq!((seen.0.len(), trial.resident_blocks()), (2, 3));
    }

    #[test]
    fn what_leaves_first_enters_as_long_as_there_is_room() {
        for action in [Action::Read, Action::Write] {
            let (mut trial, mut seen) = (trial(4), Seen::default());
            run(&mut trial, action, &[1, 2], &mut seen);
            trial.set_leaves_first(true);
            run(&mut trial, action, &[3, 4, 5, 6], &mut seen);
            assert_eq!((trial.resident_blocks(), seen.0.len()), (4, 0));
            // What is there is used as anything else.
            run(&mut trial, Action::Read, &[3], &mut seen);
            trial.set_leaves_first(false);
            run(&mut trial, action, &[7, 8], &mut seen);
            assert_eq!(seen.0.iter().map(|&(key, _)| key).collect::<Vec<_>>(), [4, 1]);
        }
    }

    #[test]
    fn leaving_write_back_cleans_and_keeps_the_blocks() {
        let (mut trial, mut seen) = (trial(4), Seen::default());
        run(&mut trial, Action::Write, &[1, 2], &mut seen);
        let mut cleaned = Vec::new();
        trial.set_write_policy(WritePolicy::ReadOnly, |key| cleaned.push(key));
        cleaned.sort_unstable();
        assert_eq!((cleaned, trial.dirty_blocks(), trial.resident_blocks()), (vec![1, 2], 0, 2));
        run(&mut trial, Action::Read, &[1, 2], &mut seen);
        assert_eq!(trial.counters().read_hits, 2);
    }

    #[test]
    fn a_block_that_is_cleaned_stays_and_leaves_without_being_written_back() {
        let (mut trial, mut seen) = (trial(2), Seen::default());
        run(&mut trial, Action::Write, &[1, 2], &mut seen);
        assert_eq!([1, 1, 7].map(|key| trial.clean_block(key)), [true, false, false]);
        assert_eq!((trial.dirty_blocks(), trial.counters().backing_writes), (1, 1));
        run(&mut trial, Action::Read, &[3, 4], &mut seen);
        assert_eq!(seen.0, [(1, false), (2, true)]);
        assert_eq!((trial.dirty_blocks(), trial.counters().dirty_evictions), (0, 1));
    }

    #[test]
    fn a_closed_cache_serves_what_it_has_and_takes_nothing() {
        let (mut trial, mut seen) = (trial(4), Seen::default());
        run(&mut trial, Action::Write, &[1, 2], &mut seen);
        let before = trial.counters().ssd_writes();
        trial.set_closed(true);
        run(&mut trial, Action::Read, &[1, 7], &mut seen);
        run(&mut trial, Action::Write, &[2, 8], &mut seen);
        assert_eq!(trial.counters().ssd_writes(), before);
        assert_eq!((trial.counters().read_hits, trial.resident_blocks(), trial.dirty_blocks()), (1, 1, 1));
    }

    #[test]
    fn nothing_leaves_a_stuck_cache_for_another() {
        let (mut trial, mut seen) = (trial(3), Seen::default());
        run(&mut trial, Action::Write, &[1, 2], &mut seen);
        trial.set_stuck(true);
        assert!(trial.may_enter(Action::Write, 3, hash(3)));
        // One place is free; what is there is hit, and written as ever.
        run(&mut trial, Action::Write, &[3, 4, 1], &mut seen);
        run(&mut trial, Action::Read, &[2, 5], &mut seen);
        assert!(!trial.may_enter(Action::Read, 6, hash(6)) && seen.0.is_empty());
        let Counters { guest_writes, backing_writes, read_hits, fills, .. } = *trial.counters();
        assert_eq!((guest_writes, backing_writes, read_hits, fills), (4, 1, 1, 0));
        trial.set_stuck(false);
        run(&mut trial, Action::Write, &[4], &mut seen);
        assert_eq!(seen.0, [(3, true)]);
    }

    /// LARC's ghost holds nine tenths of the cache at most (section III-B): of 20 blocks read in turn, one for 4 blocks has forgotten each when it comes again.
    #[test]
    fn admission_remembers_as_for_the_size_that_the_cache_may_grow_to() {
        let entered = |reach| {
            let (mut trial, mut seen) = (trial(4), Seen::default());
            trial.set_admission(AnyAdmission::new(&AdmissionSpec::Larc, 4, 1));
            trial.set_reach(reach);
            let twice: Vec<u64> = (0..20).chain(0..20).collect();
            run(&mut trial, Action::Read, &twice, &mut seen);
            trial.counters().fills
        };
        assert_eq!((entered(0), entered(4), entered(400)), (0, 0, 20));
    }

    #[test]
    fn another_replacement_goes_on_where_the_old_one_was() {
        let (mut trial, mut seen) = (trial(3), Seen::default());
        run(&mut trial, Action::Write, &[1, 2, 3, 1], &mut seen);
        trial.set_replacement(Lru::new());
        assert_eq!((trial.resident_blocks(), trial.dirty_blocks()), (3, 3));
        trial.evict(2, &mut seen);
        assert_eq!(seen.0, [(2, true), (3, true)]);
        assert_eq!(trial.cache().capacity(), 3);
    }

    #[test]
    fn another_replacement_takes_over_in_the_order_of_the_old_one() {
        let of = |policy| AnyReplacement::new(&policy, 10, 0);
        let admission = AnyAdmission::new(&AdmissionSpec::Always, 10, 1);
        let mut trial =
            Trial::new(Cache::new(10, of(PolicySpec::S3Fifo)), admission, WritePolicy::WriteThrough);
        let mut seen = Seen::default();
        // The first is in the small queue, all others go to the main one, which is not too long: the small one gives up first.
        run(&mut trial, Action::Read, &(0..10).collect::<Vec<_>>(), &mut seen);
        trial.set_replacement(of(PolicySpec::Lru));
        trial.evict(10, &mut seen);
        assert_eq!(seen.0, (0..10).map(|key| (key, false)).collect::<Vec<_>>());
    }

    #[test]
    fn a_block_moves_between_caches_with_its_state() {
        let (mut one, mut other, mut seen) = (trial(2), trial(1), Seen::default());
        run(&mut one, Action::Write, &[1], &mut seen);
        other.adopt(5, false, &mut seen);
        let dirty = one.take(1);
        assert_eq!((dirty, one.take(1), one.dirty_blocks()), (Some(true), None, 0));
        other.adopt(1, true, &mut seen);
        assert_eq!((other.dirty_blocks(), other.resident_blocks(), &seen.0[..]), (1, 1, &[(5, false)][..]));
    }
}
