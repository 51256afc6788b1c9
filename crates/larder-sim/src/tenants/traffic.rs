//! What became of the blocks of a request, and what left the cache for them.

use larder_policy::trial::{Outcome, Watch};

/// Told by the caches, read by the run.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// What became of each block, in their order.
    pub(super) outcomes: Vec<Outcome>,
    /// Blocks that left, and whether they were dirty.
    pub(super) left: Vec<(u64, bool)>,
    /// Blocks that a mover brings in.
    pub(super) brought: Vec<u64>,
    /// The write went to the backing, whatever became of its blocks.
    pub(super) through: bool,
}

impl Traffic {
    pub(super) fn clear(&mut self) {
        self.outcomes.clear();
        self.left.clear();
        self.brought.clear();
        self.through = false;
    }

    pub(super) fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.iter().filter(|&&one| one == outcome).count() as u64
    }

    /// Dirty blocks that left.
    pub(super) fn written_back(&self) -> impl Iterator<Item = u64> + '_ {
        self.left.iter().filter(|(_, dirty)| *dirty).map(|(key, _)| *key)
    }
}

impl Watch for Traffic {
    #[inline]
    fn saw(&mut self, _at: usize, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    #[inline]
    fn evicted(&mut self, key: u64, dirty: bool) {
        self.left.push((key, dirty));
    }
}
