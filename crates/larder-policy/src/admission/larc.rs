//! LARC's ghost: a block enters when it comes again while the ghost, whose length follows the hit ratio, still remembers it.
//!
//! Huang, Wei, Chen, Chen, Li: "Improving Flash-based Disk Cache with Lazy Adaptive Replacement" (LARC), MSST 2013, Algorithm 1 and section III. In front of
//! LRU this is LARC. The ghost queue Q_r holds up to C_r block numbers; C_r is a real number from 0.1 C to 0.9 C, begins at 0.1 C, shrinks by C / (C - C_r) on
//! each hit in the cache of C blocks, and grows by C / C_r on each access that does not hit it, before the ghost is looked at.
//!
//! Where the paper leaves a choice:
//!
//! * Algorithm 1 asks the ghost whether or not the cache is full; the prose of section III-A has it "when cache is full". [`Larc::new`] follows Algorithm 1,
//!   [`Larc::when_full`] the prose: what comes while there is free space enters at once, as a miss that makes C_r grow.
//! * The queue loses one block per block that enters it, as in Algorithm 1, so that it may be longer than a C_r that has just shrunk (never than 0.9 C).
//! * The ghost remembers one block at least. With C of 2 or more this changes nothing, as C_r is never below min(0.9 C, 2 √C) where Algorithm 1 compares;
//!   with C = 1, C_r would never exceed 0.9, and no block would ever enter.
//! * A block that finds no free slot returns to the LRU end of Q_r (section V-B), and is not forgotten for that, even if the queue is full.
//! * A change of C, which the paper does not have, moves C_r between its new bounds. Blocks above 0.9 C are forgotten a few at each access.

use super::Admission;
use super::ghosts::Ghosts;

/// Least and most share of the cache's capacity that the ghost may remember.
const SHARES: (f64, f64) = (0.1, 0.9);

/// Ghosts dropped per access while there are more than the upper bound: after the cache was made smaller.
const DROP: u32 = 4;

/// The admission policy of LARC.
#[derive(Clone, Debug)]
pub struct Larc {
    ghosts: Ghosts,
    /// C.
    capacity: f64,
    /// C_r.
    target: f64,
    /// True for the basic algorithm of section III-A, whose C_r does not change.
    fixed: bool,
    /// True if free space is open to every block.
    when_full: bool,
}

impl Larc {
    /// In front of a cache of `capacity` blocks.
    pub fn new(capacity: u32) -> Self {
        let capacity = f64::from(capacity);
        Self {
            ghosts: Ghosts::default(),
            capacity,
            target: SHARES.0 * capacity,
            fixed: false,
            when_full: false,
        }
    }

    /// In front of a cache of `capacity` blocks, whose free space is open to every block.
    pub fn when_full(capacity: u32) -> Self {
        Self { when_full: true, ..Self::new(capacity) }
    }

    /// The basic algorithm (section III-A): a ghost of `ghosts` blocks, always, in front of a cache of `capacity` blocks.
    pub fn fixed(capacity: u32, ghosts: u32) -> Self {
        let (capacity, target) = (f64::from(capacity), f64::from(ghosts));
        Self { ghosts: Ghosts::default(), capacity, target, fixed: true, when_full: false }
    }

    /// C_r: how many blocks the ghost is to remember now.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The blocks in the ghost, the next to be forgotten first.
    pub fn keys_oldest_first(&self) -> impl Iterator<Item = u64> {
        self.ghosts.keys_oldest_first()
    }

    fn grow(&mut self) {
        if !self.fixed {
            self.target = (self.target + self.capacity / self.target).min(SHARES.1 * self.capacity);
        }
    }

    fn limit(&self) -> f64 {
        self.target.max(1.0)
    }

    /// Most blocks that the ghost holds but for a while after the cache was made smaller.
    fn bound(&self) -> u32 {
        let bound = if self.fixed { self.target } else { SHARES.1 * self.capacity };
        bound.max(1.0) as u32
    }
}

impl Admission for Larc {
    #[inline]
    fn hit(&mut self) {
        if !self.fixed && self.capacity > 0.0 {
            let less = self.target - self.capacity / (self.capacity - self.target);
            self.target = less.max(SHARES.0 * self.capacity);
        }
    }

    #[inline]
    fn admit(&mut self, key: u64, hash: u32) -> bool {
        self.ghosts.drop_above(self.bound(), DROP);
        if self.capacity == 0.0 {
            return false;
        }
        self.grow();
        if let Some(ghost) = self.ghosts.find(key, hash) {
            self.ghosts.remove(ghost);
            return true;
        }
        self.ghosts.push_newest(key, 0);
        if f64::from(self.ghosts.len()) > self.limit() {
            self.ghosts.drop_oldest();
        }
        false
    }

    #[inline]
    fn admit_to_free_space(&mut self, key: u64, hash: u32) -> bool {
        if self.when_full && self.capacity > 0.0 {
            self.grow();
            self.ghosts.find(key, hash).into_iter().for_each(|ghost| self.ghosts.remove(ghost));
        }
        self.when_full && self.capacity > 0.0
    }

    fn failed(&mut self, key: u64, _hash: u32) {
        self.ghosts.push_oldest(key, 0);
    }

    fn forget(&mut self, key: u64, hash: u32) {
        self.ghosts.find(key, hash).into_iter().for_each(|ghost| self.ghosts.remove(ghost));
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = f64::from(capacity);
        if !self.fixed {
            self.target = self.target.clamp(SHARES.0 * self.capacity, SHARES.1 * self.capacity);
        }
    }

    fn scale(&mut self, capacity: u32) {
        if self.capacity > 0.0 {
            self.target *= f64::from(capacity) / self.capacity;
        }
        self.resize(capacity);
    }

    fn memory_bytes(&self) -> usize {
        self.ghosts.memory_bytes()
    }
}
