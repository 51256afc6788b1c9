//! A block enters with a fixed probability: the more often it is used, the sooner it is in. Needs no memory.

use super::Admission;
use crate::Rng;

/// Admission by lot, seeded.
#[derive(Clone, Debug)]
pub struct Probability {
    probability: f64,
    capacity: u32,
    rng: Rng,
}

impl Probability {
    /// Admit with `probability` (at 0 or less nothing, at 1 or more everything) to a cache of `capacity` blocks. The same seed draws the same lots.
    pub const fn new(probability: f64, capacity: u32, seed: u64) -> Self {
        Self { probability, capacity, rng: Rng::new(seed) }
    }
}

impl Admission for Probability {
    #[inline]
    fn admit(&mut self, _key: u64, _hash: u32) -> bool {
        self.capacity > 0 && self.rng.unit() < self.probability
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;

    fn admitted(probability: f64, seed: u64) -> Vec<u64> {
        let mut policy = Probability::new(probability, 8, seed);
        (0..10_000).filter(|&key| policy.admit(key, hash(key))).collect()
    }

    #[test]
    fn the_share_that_enters_is_the_probability() {
        // Four standard deviations of 10,000 lots at one quarter are 173.
        assert!((2327..=2673).contains(&admitted(0.25, 1).len()), "{}", admitted(0.25, 1).len());
        assert_eq!(admitted(0.0, 1).len(), 0);
        assert_eq!(admitted(1.0, 1).len(), 10_000);
        assert_eq!(admitted(f64::NAN, 1).len(), 0);
    }

    #[test]
    fn a_seed_draws_its_own_lots_each_time() {
        assert_eq!(admitted(0.5, 1), admitted(0.5, 1));
        assert_ne!(admitted(0.5, 1), admitted(0.5, 2));
    }

    #[test]
    fn a_cache_without_blocks_admits_none() {
        let mut policy = Probability::new(1.0, 8, 1);
        policy.resize(0);
        assert!(!policy.admit(1, hash(1)));
    }
}
