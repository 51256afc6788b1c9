//! A small cache that stands for a larger one.

use larder_policy::admission::AnyAdmission;
use larder_policy::spec::CachingSpec;
use larder_policy::trial::{Action, Candidate, Outcome, Trial, Watch, WithPolicy, with_policy};
use larder_policy::{Cache, WritePolicy};

use super::batch::{Batch, End};
use super::estimate::{Pulls, Tally};

/// A small cache, whatever its policy: the choice costs one call per batch.
pub(super) trait Mini: Send {
    /// Take some requests.
    fn process(&mut self, batch: &Batch);

    /// What was counted since the last time was counted at this rate of sampling.
    fn settle(&mut self, rate: f64);

    /// What was counted, but for what is not settled.
    fn tally(&self) -> &Tally;

    /// Let what was settled weigh less.
    fn fade(&mut self, keep: f64);

    /// Go on as if these blocks had never been seen. Given with their hashes.
    fn forget(&mut self, blocks: &[(u64, u32)]);

    /// The sample was thinned out: hold so many blocks from now on.
    fn scale(&mut self, capacity: u32);

    /// Hold so many blocks from now on.
    fn resize(&mut self, capacity: u32);

    /// Another one in the same state.
    fn copy(&self) -> Box<dyn Mini>;

    /// Bytes of memory held.
    fn memory_bytes(&self) -> usize;
}

/// An empty cache; none for a policy that has to know the future.
pub(super) fn build(
    caching: CachingSpec,
    write: WritePolicy,
    capacity: u32,
    seed: u64,
) -> Option<Box<dyn Mini>> {
    with_policy(caching.policy(), seed, Build { caching, write, capacity, seed })
}

struct Build {
    caching: CachingSpec,
    write: WritePolicy,
    capacity: u32,
    seed: u64,
}

impl WithPolicy for Build {
    type Output = Box<dyn Mini>;

    fn with<P: Candidate>(self, policy: P) -> Box<dyn Mini> {
        let admission = AnyAdmission::new(&self.caching.admission(), self.capacity, self.seed);
        let trial = Trial::new(Cache::new(self.capacity, policy), admission, self.write);
        Box::new(PolicyMini { trial, pulls: Pulls::default(), tally: Tally::default() })
    }
}

#[derive(Clone)]
struct PolicyMini<P> {
    trial: Trial<P>,
    /// Since the last settlement.
    pulls: Pulls,
    tally: Tally,
}

/// Adds up the pulls of the accesses of one kind by what became of them.
struct Puller<'a> {
    pulls: &'a [u32],
    sums: &'a mut [u64; 3],
}

impl Watch for Puller<'_> {
    #[inline]
    fn saw(&mut self, at: usize, outcome: Outcome) {
        self.sums[outcome as usize] += u64::from(self.pulls[at]);
    }
}

impl<P: Candidate> PolicyMini<P> {
    fn end_request(&mut self, action: Action, end: End) {
        let hit = self.trial.end_request(action);
        match action {
            Action::Read => self.tally.reads.request(hit, end),
            Action::Write => self.tally.writes.request(hit, end),
            Action::Discard | Action::Flush => {}
        }
    }
}

impl<P: Candidate> Mini for PolicyMini<P> {
    fn process(&mut self, batch: &Batch) {
        let (blocks, mut begin) = (batch.blocks(), 0);
        for piece in &batch.pieces {
            let sums =
                if piece.action == Action::Write { &mut self.pulls.writes } else { &mut self.pulls.reads };
            let mut puller = Puller { pulls: &batch.pulls, sums };
            self.trial.accesses(piece.action, &blocks, begin..piece.to, &mut puller);
            if let Some(end) = piece.end {
                self.end_request(piece.action, end);
            }
            begin = piece.to;
        }
    }

    fn settle(&mut self, rate: f64) {
        let (counters, pulls) = (self.trial.take_counters(), std::mem::take(&mut self.pulls));
        self.tally.add(&counters, &pulls, rate);
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn fade(&mut self, keep: f64) {
        self.tally.fade(keep);
    }

    fn forget(&mut self, blocks: &[(u64, u32)]) {
        blocks.iter().for_each(|&(key, hash)| self.trial.forget(key, hash));
    }

    fn scale(&mut self, capacity: u32) {
        self.trial.scale(capacity);
    }

    fn resize(&mut self, capacity: u32) {
        self.trial.resize(capacity);
    }

    fn copy(&self) -> Box<dyn Mini> {
        Box::new(self.clone())
    }

    fn memory_bytes(&self) -> usize {
        self.trial.memory_bytes()
    }
}
