//! One run: a cache under a replacement, an admission and a write policy, driven batch by batch.

use std::ops::Range;
use std::time::Duration;

use larder_policy::admission::{Admission, AnyAdmission};
use larder_policy::cache::{Found, WARM};
use larder_policy::{Cache, Handle};
use larder_trace::RequestKind;
use rustix::time::{ClockId, clock_gettime};

use crate::batch::{Batch, Cut};
use crate::foresight::Simulated;
use crate::{Counters, WritePolicy};

/// Mark of a block that is as the backing has it.
const CLEAN: u8 = 0;

/// Mark of a block that the backing does not have yet.
const DIRTY: u8 = 1;

/// A run, whatever its policy: the choice costs one call per batch.
pub(crate) trait Run: Send {
    /// Take the next batch of the trace.
    fn process(&mut self, batch: &Batch);

    /// What was found, after the last batch.
    fn finish(&mut self) -> Outcome;
}

/// What a run found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Since counting started.
    pub(crate) total: Counters,
    /// Interval by interval; their sum is `total`.
    pub(crate) series: Vec<Counters>,
    pub(crate) resident_blocks: u64,
    pub(crate) dirty_blocks: u64,
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
}

/// A run under one policy, compiled for it.
pub(crate) struct PolicyRun<P> {
    cache: Cache<P>,
    admission: AnyAdmission,
    write: WritePolicy,
    /// Since the last cut.
    counters: Counters,
    /// The intervals before.
    series: Vec<Counters>,
    dirty_blocks: u64,
    /// A block of the request under way was no hit.
    missed: bool,
    cpu: Duration,
}

impl<P: Simulated> PolicyRun<P> {
    pub(crate) fn new(cache: Cache<P>, admission: AnyAdmission, write: WritePolicy) -> Self {
        Self {
            cache,
            admission,
            write,
            counters: Counters::default(),
            series: Vec::new(),
            dirty_blocks: 0,
            missed: false,
            cpu: Duration::ZERO,
        }
    }

    fn cut(&mut self, cut: Cut) {
        let counters = std::mem::take(&mut self.counters);
        match cut {
            Cut::Measure => self.series.clear(),
            Cut::Interval => self.series.push(counters),
        }
    }

    fn pieces(&mut self, batch: &Batch) {
        let mut cuts = batch.cuts.iter().peekable();
        let mut begin = 0;
        for (at, piece) in batch.pieces.iter().enumerate() {
            while let Some(&(_, cut)) = cuts.next_if(|&&(before, _)| before == at) {
                self.cut(cut);
            }
            let end = piece.end as usize;
            self.accesses(piece.kind, batch, begin..end);
            if piece.last {
                self.end_request(piece.kind);
            }
            begin = end;
        }
    }

    fn accesses(&mut self, kind: RequestKind, batch: &Batch, range: Range<usize>) {
        let blocks = range.len() as u64;
        match kind {
            RequestKind::Read => {
                self.counters.block_reads += blocks;
                self.each(batch, range, Self::read);
            }
            RequestKind::Write => {
                self.counters.block_writes += blocks;
                match self.write {
                    WritePolicy::WriteBack | WritePolicy::WriteOnly => {
                        self.each(batch, range, Self::write_back)
                    }
                    WritePolicy::WriteThrough => self.each(batch, range, Self::write_through::<true>),
                    WritePolicy::WriteThroughNoAllocate => {
                        self.each(batch, range, Self::write_through::<false>)
                    }
                    WritePolicy::ReadOnly => self.each(batch, range, Self::write_around),
                }
            }
            RequestKind::Discard => self.each(batch, range, Self::discard),
            RequestKind::Flush => {}
        }
    }

    /// Do something with each block of a piece, and have the memory of the accesses to come at hand.
    #[inline]
    fn each(&mut self, batch: &Batch, range: Range<usize>, mut access: impl FnMut(&mut Self, u64, u32)) {
        for at in range {
            if at % WARM == 0 {
                let ahead = &batch.hashes[at..batch.hashes.len().min(at + WARM)];
                std::hint::black_box(self.cache.warm(ahead));
            }
            self.cache.policy().at(batch.first_access + at as u64);
            access(self, batch.keys[at], batch.hashes[at]);
        }
    }

    #[inline]
    fn read(&mut self, key: u64, hash: u32) {
        match self.cache.find(key, hash) {
            Found::Resident(handle) => {
                self.use_resident(handle);
                self.counters.read_hits += 1;
            }
            absent => {
                self.missed = true;
                self.counters.backing_reads += 1;
                if self.write.fills() && self.admits(key, hash) {
                    self.counters.fills += 1;
                    self.enter(key, hash, absent, CLEAN);
                }
            }
        }
    }

    /// A write that goes to the cache alone where it can.
    #[inline]
    fn write_back(&mut self, key: u64, hash: u32) {
        match self.cache.find(key, hash) {
            Found::Resident(handle) => {
                self.write_hit(handle);
                self.dirty_blocks += u64::from(self.cache.mark(handle) != DIRTY);
                self.cache.set_mark(handle, DIRTY);
            }
            absent if self.admits(key, hash) => {
                self.missed = true;
                self.counters.guest_writes += 1;
                self.dirty_blocks += 1;
                self.enter(key, hash, absent, DIRTY);
            }
            _ => {
                self.missed = true;
                self.counters.backing_writes += 1;
            }
        }
    }

    /// A write that goes to the backing, and to the cache if its block is there or, where writes allocate, may enter.
    #[inline]
    fn write_through<const ALLOCATE: bool>(&mut self, key: u64, hash: u32) {
        self.counters.backing_writes += 1;
        match self.cache.find(key, hash) {
            Found::Resident(handle) => self.write_hit(handle),
            absent => {
                self.missed = true;
                if ALLOCATE && self.admits(key, hash) {
                    self.counters.guest_writes += 1;
                    self.enter(key, hash, absent, CLEAN);
                }
            }
        }
    }

    /// May this absent block enter?
    #[inline]
    fn admits(&mut self, key: u64, hash: u32) -> bool {
        let free = self.cache.len() < self.cache.capacity();
        (free && self.admission.admit_to_free_space(key, hash)) || self.admission.admit(key, hash)
    }

    /// A write that goes to the backing, and makes its block leave.
    #[inline]
    fn write_around(&mut self, key: u64, hash: u32) {
        self.missed = true;
        self.counters.backing_writes += 1;
        self.counters.invalidations += u64::from(self.cache.invalidate(key, hash).is_some());
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
    fn enter(&mut self, key: u64, hash: u32, found: Found, mark: u8) {
        let (counters, dirty_blocks) = (&mut self.counters, &mut self.dirty_blocks);
        self.cache.enter(key, hash, found, mark, |_, mark| {
            counters.evictions += 1;
            if mark == DIRTY {
                counters.dirty_evictions += 1;
                counters.backing_writes += 1;
                *dirty_blocks -= 1;
            }
        });
    }

    fn end_request(&mut self, kind: RequestKind) {
        let hit = u64::from(!std::mem::take(&mut self.missed));
        let counters = &mut self.counters;
        match kind {
            RequestKind::Read => {
                counters.read_requests += 1;
                counters.read_request_hits += hit;
            }
            RequestKind::Write => {}
            RequestKind::Flush => return counters.flushes += 1,
            RequestKind::Discard => return counters.discards += 1,
        }
        counters.requests += 1;
        counters.request_hits += hit;
    }
}

impl<P: Simulated> Run for PolicyRun<P> {
    fn process(&mut self, batch: &Batch) {
        let before = thread_cpu();
        self.pieces(batch);
        self.cpu += thread_cpu().saturating_sub(before);
    }

    fn finish(&mut self) -> Outcome {
        let mut series = std::mem::take(&mut self.series);
        series.push(self.counters);
        let mut total = Counters::default();
        series.iter().for_each(|&interval| total += interval);
        Outcome {
            total,
            series,
            resident_blocks: self.cache.len().into(),
            dirty_blocks: self.dirty_blocks,
            cpu: self.cpu,
            memory_bytes: (self.cache.memory_bytes() + self.admission.memory_bytes()) as u64,
        }
    }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock starts at zero with the thread, so neither part is negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
