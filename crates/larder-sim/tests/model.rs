//! The simulation against a slow model of it, written from the description alone: every counter, for every write policy, under LRU and LARC.

mod common;

use std::collections::{BTreeMap, VecDeque};

use common::{requests, run_of, simulate_all};
use larder_sim::{BlockSize, Counters, Plan, Totals, WritePolicy};
use larder_trace::{Request, RequestKind};
use proptest::prelude::*;

type Block = (u32, u64);

/// LARC, Algorithm 1 of the paper, the part about Q_r; it remembers one block at least, which a cache of one block needs.
struct Larc {
    capacity: f64,
    size: f64,
    /// Oldest first.
    queue: VecDeque<Block>,
}

impl Larc {
    fn new(capacity: f64) -> Self {
        Self { capacity, size: 0.1 * capacity, queue: VecDeque::new() }
    }

    fn hit(&mut self) {
        self.size = f64::max(0.1 * self.capacity, self.size - self.capacity / (self.capacity - self.size));
    }

    fn admit(&mut self, block: Block) -> bool {
        self.size = f64::min(0.9 * self.capacity, self.size + self.capacity / self.size);
        if let Some(at) = self.queue.iter().position(|&known| known == block) {
            self.queue.remove(at);
            return true;
        }
        self.queue.push_back(block);
        if self.queue.len() as f64 > self.size.max(1.0) {
            self.queue.pop_front();
        }
        false
    }
}

struct Model {
    write: WritePolicy,
    capacity: usize,
    /// Oldest first.
    lru: VecDeque<Block>,
    /// The residents, and which are dirty.
    dirty: BTreeMap<Block, bool>,
    larc: Option<Larc>,
    counters: Counters,
}

impl Model {
    fn new(write: WritePolicy, capacity: usize, larc: bool) -> Self {
        let larc = larc.then(|| Larc::new(capacity as f64));
        Self {
            write,
            capacity,
            lru: VecDeque::new(),
            dirty: BTreeMap::new(),
            larc,
            counters: Counters::default(),
        }
    }

    fn request(&mut self, request: &Request, block_bytes: u64) {
        let (first, end) = (request.offset, request.offset + u64::from(request.len));
        let of_bytes =
            |bytes: std::ops::Range<u64>| bytes.start / block_bytes..bytes.end.div_ceil(block_bytes);
        let touched = if request.len == 0 { 0..0 } else { of_bytes(first..end) };
        let blocks = touched.map(|block| (request.volume, block));
        let hit = match request.kind {
            RequestKind::Flush => return self.counters.flushes += 1,
            RequestKind::Discard => {
                self.counters.discards += 1;
                let whole =
                    |&(_, block): &Block| block * block_bytes >= first && (block + 1) * block_bytes <= end;
                return blocks.filter(whole).for_each(|block| self.discard(block));
            }
            RequestKind::Read => {
                let misses = blocks.filter(|&block| !self.read(block)).count();
                self.counters.read_requests += 1;
                self.counters.read_request_hits += u64::from(misses == 0);
                misses == 0
            }
            RequestKind::Write => blocks.filter(|&block| !self.write(block)).count() == 0,
        };
        self.counters.requests += 1;
        self.counters.request_hits += u64::from(hit);
    }

    fn read(&mut self, block: Block) -> bool {
        self.counters.block_reads += 1;
        if self.use_if_resident(block) {
            self.counters.read_hits += 1;
            return true;
        }
        self.counters.backing_reads += 1;
        if self.write != WritePolicy::WriteOnly && self.admit(block) {
            self.counters.fills += 1;
            self.enter(block, false);
        }
        false
    }

    fn write(&mut self, block: Block) -> bool {
        use WritePolicy::{ReadOnly, WriteBack, WriteOnly, WriteThrough, WriteThroughNoAllocate};
        self.counters.block_writes += 1;
        let back = matches!(self.write, WriteBack | WriteOnly);
        if self.write == ReadOnly {
            self.counters.backing_writes += 1;
            self.counters.invalidations += u64::from(self.leave(block).is_some());
            return false;
        }
        if self.use_if_resident(block) {
            self.counters.write_hits += 1;
            self.counters.guest_writes += 1;
            self.counters.backing_writes += u64::from(!back);
            let was = self.dirty[&block];
            self.dirty.insert(block, was || back);
            return true;
        }
        let enters = matches!(self.write, WriteBack | WriteOnly | WriteThrough) && self.admit(block);
        assert!(!enters || self.write != WriteThroughNoAllocate);
        self.counters.guest_writes += u64::from(enters);
        self.counters.backing_writes += u64::from(!back || !enters);
        if enters {
            self.enter(block, back);
        }
        false
    }

    fn discard(&mut self, block: Block) {
        self.counters.discarded += u64::from(self.leave(block).is_some());
    }

    fn use_if_resident(&mut self, block: Block) -> bool {
        let Some(at) = self.lru.iter().position(|&known| known == block) else { return false };
        self.lru.remove(at);
        self.lru.push_back(block);
        if let Some(larc) = &mut self.larc {
            larc.hit();
        }
        true
    }

    fn admit(&mut self, block: Block) -> bool {
        self.larc.as_mut().is_none_or(|larc| larc.admit(block))
    }

    fn enter(&mut self, block: Block, dirty: bool) {
        if self.lru.len() == self.capacity {
            let victim = self.lru[0];
            let dirty = self.leave(victim) == Some(true);
            self.counters.evictions += 1;
            self.counters.dirty_evictions += u64::from(dirty);
            self.counters.backing_writes += u64::from(dirty);
        }
        self.lru.push_back(block);
        self.dirty.insert(block, dirty);
    }

    fn leave(&mut self, block: Block) -> Option<bool> {
        self.lru.retain(|&known| known != block);
        self.dirty.remove(&block)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_counter_is_as_the_model_says(
        requests in requests(0..120), capacity in 1u64..24, shift in 9u32..15, larc in any::<bool>(),
    ) {
        let policy = if larc { "larc" } else { "lru" };
        let runs: Vec<_> = WritePolicy::ALL.map(|write| run_of(policy, write, capacity)).into();
        let plan = Plan { block: BlockSize::new(1 << shift).unwrap(), ..Plan::new(runs) };
        let simulated = simulate_all(&requests, &plan);
        for (result, write) in simulated.runs.iter().zip(WritePolicy::ALL) {
            let mut model = Model::new(write, capacity as usize, larc);
            requests.iter().for_each(|request| model.request(request, 1 << shift));
            prop_assert_eq!(result.totals, Totals::from(model.counters), "{}", write);
            prop_assert_eq!(result.resident_blocks, model.lru.len() as u64);
            let dirty = model.dirty.values().filter(|&&dirty| dirty).count();
            prop_assert_eq!(result.dirty_blocks, dirty as u64);
        }
    }
}
