//! A cache on trial: replacement, admission and write policy around no data, only counts.
//!
//! The simulator runs a [`Trial`] over a whole trace, the online analyzer a bank of small ones over a sample of it: what the two say of a cache comes from the same
//! code. A trial is compiled for its replacement policy; [`with_policy`] chooses among them by name, so that a user pays for the choice once and not at
//! every access.

mod choice;
mod counters;
mod live;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::choice::{Candidate, WithPolicy, with_policy};
pub use self::counters::Counters;
use crate::admission::{Admission, AnyAdmission};
use crate::cache::{Found, WARM};
use crate::{Cache, Handle, WritePolicy};

/// Mark of a block that is as the backing has it.
const CLEAN: u8 = 0;

/// Mark of a block that the backing does not have yet.
const DIRTY: u8 = 1;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It reads its blocks.
    Read,
    /// It writes its blocks, each as a whole.
    Write,
    /// It gives its blocks up: they leave the cache, unwritten.
    Discard,
    /// It wants what was written to be safe. Has no blocks.
    Flush,
}

/// What became of a block that was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was resident, and served the access.
    Hit,
    /// It was absent, and entered.
    Entered,
    /// It was absent and stayed so, or had to leave.
    Passed,
}

/// Blocks in the order of their accesses, hashed once for all trials.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// Their keys.
    pub keys: &'a [u64],
    /// The [`hash`](crate::index::hash) of each key.
    pub hashes: &'a [u32],
    /// Accesses before the first one.
    pub first: u64,
}

/// Is told what became of each block.
pub trait Watch {
    /// That of the block at `at` of the [`Blocks`].
    fn saw(&mut self, at: usize, outcome: Outcome);

    /// A block left for another to enter; a dirty one was written back.
    #[inline]
    fn evicted(&mut self, key: u64, dirty: bool) {
        let _ = (key, dirty);
    }
}

/// Nobody watches.
impl Watch for () {
    #[inline]
    fn saw(&mut self, _at: usize, _outcome: Outcome) {}
}

/// The cache.
#[derive(Clone, Debug)]
pub struct Trial<P> {
    cache: Cache<P>,
    admission: AnyAdmission,
    write: WritePolicy,
    counters: Counters,
    dirty_blocks: u64,
    /// A block of the request under way was no hit.
    missed: bool,
    /// Nothing is written to the SSD.
    closed: bool,
    /// What would have to leave for others cannot leave.
    stuck: bool,
    /// Blocks that the cache may grow to: the admission policy remembers as one of that size does.
    reach: u32,
}

impl<P: Candidate> Trial<P> {
    /// A trial at its start.
    pub fn new(cache: Cache<P>, admission: AnyAdmission, write: WritePolicy) -> Self {
        Self {
            cache,
            admission,
            write,
            counters: Counters::default(),
            dirty_blocks: 0,
            missed: false,
            closed: false,
            stuck: false,
            reach: 0,
        }
    }

    /// A request, or a part of one, accesses the blocks in `range`, one after the other.
    #[inline]
    pub fn accesses(
        &mut self,
        action: Action,
        blocks: &Blocks<'_>,
        range: Range<usize>,
        watch: &mut impl Watch,
    ) {
        let count = range.len() as u64;
        match action {
            Action::Read => {
                self.counters.block_reads += count;
                self.each(blocks, range, watch, Self::read);
            }
            Action::Write => {
                self.counters.block_writes += count;
                match self.write {
                    _ if self.closed => self.each(blocks, range, watch, Self::write_around),
                    WritePolicy::WriteBack | WritePolicy::WriteOnly => {
                        self.each(blocks, range, watch, Self::write_back);
                    }
                    WritePolicy::WriteThrough => {
                        self.each(blocks, range, watch, Self::write_through::<true, _>);
                    }
                    WritePolicy::WriteThroughNoAllocate => {
                        self.each(blocks, range, watch, Self::write_through::<false, _>);
                    }
                    WritePolicy::ReadOnly => self.each(blocks, range, watch, Self::write_around),
                }
            }
            Action::Discard => self.each(blocks, range, &mut (), |trial, key, hash, _| {
                trial.discard(key, hash);
                Outcome::Passed
            }),
            Action::Flush => {}
        }
    }

    /// All blocks of a request were accessed. True if all of them were hits.
    #[inline]
    pub fn end_request(&mut self, action: Action) -> bool {
        let all_hit = !std::mem::take(&mut self.missed);
        let (hit, counters) = (u64::from(all_hit), &mut self.counters);
        match action {
            Action::Read => {
                counters.read_requests += 1;
                counters.read_request_hits += hit;
            }
            Action::Write => {}
            Action::Flush => counters.flushes += 1,
            Action::Discard => counters.discards += 1,
        }
        if matches!(action, Action::Read | Action::Write) {
            counters.requests += 1;
            counters.request_hits += hit;
        }
        all_hit
    }

    /// Whether a block would enter if an action came upon it now and admission let it in.
    pub fn may_enter(&self, action: Action, key: u64, hash: u32) -> bool {
        let enters = match action {
            Action::Read => self.write.fills(),
            Action::Write => self.write.allocates(),
            Action::Discard | Action::Flush => false,
        };
        enters && !self.closed && self.has_room() && !matches!(self.cache.find(key, hash), Found::Resident(_))
    }

    /// What was counted since the last call. What the cache holds stays.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }

    /// What was counted since it was last taken.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Blocks in the cache.
    pub fn resident_blocks(&self) -> u32 {
        self.cache.len()
    }

    /// Those of them that the backing does not have yet.
    pub fn dirty_blocks(&self) -> u64 {
        self.dirty_blocks
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.cache.memory_bytes() + self.admission.memory_bytes()
    }

    /// The cache holds `capacity` blocks from now on. What is above that leaves, and is not counted.
    pub fn resize(&mut self, capacity: u32) {
        let dirty_blocks = &mut self.dirty_blocks;
        self.cache.resize(capacity, |_, mark| *dirty_blocks -= u64::from(mark == DIRTY));
        self.admission.resize(capacity);
    }

    /// The cache holds `capacity` blocks from now on, after its blocks were thinned out in proportion by [`Self::forget`]. What is above that leaves, and is
    /// not counted.
    pub fn scale(&mut self, capacity: u32) {
        let dirty_blocks = &mut self.dirty_blocks;
        self.cache.scale(capacity, |_, mark| *dirty_blocks -= u64::from(mark == DIRTY));
        self.admission.scale(capacity);
    }

    /// Go on as if a block had never been seen. Nothing is counted.
    pub fn forget(&mut self, key: u64, hash: u32) {
        let mark = self.cache.forget(key, hash);
        self.dirty_blocks -= u64::from(mark == Some(DIRTY));
        self.admission.forget(key, hash);
    }

    /// Do something with each block of a range, and have the memory of the accesses to come at hand.
    #[inline]
    fn each<W: Watch>(
        &mut self,
        blocks: &Blocks<'_>,
        range: Range<usize>,
        watch: &mut W,
        mut access: impl FnMut(&mut Self, u64, u32, &mut W) -> Outcome,
    ) {
        for at in range {
            if at % WARM == 0 {
                let ahead = &blocks.hashes[at..blocks.hashes.len().min(at + WARM)];
                std::hint::black_box(self.cache.warm(ahead));
            }
            self.cache.policy().at(blocks.first + at as u64);
            let outcome = access(self, blocks.keys[at], blocks.hashes[at], watch);
            watch.saw(at, outcome);
        }
    }

    #[inline]
    fn read(&mut self, key: u64, hash: u32, watch: &mut impl Watch) -> Outcome {
        match self.cache.find(key, hash) {
            Found::Resident(handle) => {
                self.use_resident(handle);
                self.counters.read_hits += 1;
                Outcome::Hit
            }
            absent => {
                self.missed = true;
                self.counters.backing_reads += 1;
                if self.closed || !(self.write.fills() && self.admits(key, hash)) {
                    return Outcome::Passed;
                }
                self.counters.fills += 1;
                self.enter(key, hash, absent, CLEAN, watch)
            }
        }
    }

    /// A write that goes to the cache alone where it can.
    #[inline]
    fn write_back(&mut self, key: u64, hash: u32, watch: &mut impl Watch) -> Outcome {
        match self.cache.find(key, hash) {
            Found::Resident(handle) => {
                self.write_hit(handle);
                self.dirty_blocks += u64::from(self.cache.mark(handle) != DIRTY);
                self.cache.set_mark(handle, DIRTY);
                Outcome::Hit
            }
            absent if self.admits(key, hash) => {
                self.missed = true;
                self.counters.guest_writes += 1;
                self.dirty_blocks += 1;
                self.enter(key, hash, absent, DIRTY, watch)
            }
            _ => {
                self.missed = true;
                self.counters.backing_writes += 1;
                Outcome::Passed
            }
        }
    }

    /// A write that goes to the backing, and to the cache if its block is there or, where writes allocate, may enter.
    #[inline]
    fn write_through<const ALLOCATE: bool, W: Watch>(
        &mut self,
        key: u64,
        hash: u32,
        watch: &mut W,
    ) -> Outcome {
        self.counters.backing_writes += 1;
        match self.cache.find(key, hash) {
            Found::Resident(handle) => {
                self.write_hit(handle);
                Outcome::Hit
            }
            absent => {
                self.missed = true;
                if !(ALLOCATE && self.admits(key, hash)) {
                    return Outcome::Passed;
                }
                self.counters.guest_writes += 1;
                self.enter(key, hash, absent, CLEAN, watch)
            }
        }
    }

    /// A block is free, or another one can leave for it.
    fn has_room(&self) -> bool {
        !self.stuck || self.cache.len() < self.cache.capacity()
    }

    /// May this absent block enter?
    #[inline]
    fn admits(&mut self, key: u64, hash: u32) -> bool {
        let free = self.cache.len() < self.cache.capacity();
        // What is to leave before others has nothing leave for it.
        (free || !(self.stuck || self.cache.leaves_first()))
            && ((free && self.admission.admit_to_free_space(key, hash)) || self.admission.admit(key, hash))
    }

    /// A write that goes to the backing, and makes its block leave.
    #[inline]
    fn write_around(&mut self, key: u64, hash: u32, _watch: &mut impl Watch) -> Outcome {
        self.missed = true;
        self.counters.backing_writes += 1;
        if let Some(mark) = self.cache.invalidate(key, hash) {
            self.counters.invalidations += 1;
            // It was to be written back, and is overwritten as a whole.
            self.dirty_blocks -= u64::from(mark == DIRTY);
        }
        Outcome::Passed
    }

    /// The guest gives its block up: what the backing does not have need not be written.
    #[inline]
    fn discard(&mut self, key: u64, hash: u32) {
        if let Some(mark) = self.cache.invalidate(key, hash) {
            self.counters.discarded += 1;
            self.dirty_blocks -= u64::from(mark == DIRTY);
        }
    }

    #[inline]
    fn write_hit(&mut self, handle: Handle) {
        self.use_resident(handle);
        self.counters.write_hits += 1;
        self.counters.guest_writes += 1;
    }

    #[inline]
    fn use_resident(&mut self, handle: Handle) {
        self.cache.hit(handle);
        self.admission.hit();
    }

    #[inline]
    fn enter(&mut self, key: u64, hash: u32, found: Found, mark: u8, watch: &mut impl Watch) -> Outcome {
        let (counters, dirty_blocks) = (&mut self.counters, &mut self.dirty_blocks);
        self.cache.enter(key, hash, found, mark, |key, mark| {
            evicted(counters, dirty_blocks, mark);
            watch.evicted(key, mark == DIRTY);
        });
        Outcome::Entered
    }
}

/// Count a block that left for another; a dirty one is written back.
#[inline]
fn evicted(counters: &mut Counters, dirty_blocks: &mut u64, mark: u8) {
    counters.evictions += 1;
    if mark == DIRTY {
        counters.dirty_evictions += 1;
        counters.backing_writes += 1;
        *dirty_blocks -= 1;
    }
}
