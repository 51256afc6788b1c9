//! Batched population, which the simulator does not know, against one cache of one size, simulated directly.

use std::collections::BTreeSet;

use larder_locality::{AtSize, CurvePolicy};
use larder_sim::{AnalysisPlan, Span};
use larder_trace::{Request, RequestKind};
use proptest::prelude::*;

use crate::common::requests;
use crate::{analyze_all, plan};

type Block = (u32, u64);

/// A write-back cache that a mover fills at the end of an epoch with what an LRU cache would hold.
struct Cache {
    size: usize,
    resident: BTreeSet<Block>,
    dirty: BTreeSet<Block>,
    /// What an LRU cache would hold, the last used first.
    lru: Vec<Block>,
    counts: AtSize,
}

impl Cache {
    fn new(size: usize) -> Self {
        Self {
            size,
            resident: BTreeSet::new(),
            dirty: BTreeSet::new(),
            lru: Vec::new(),
            counts: AtSize::default(),
        }
    }

    fn request(&mut self, request: &Request) {
        let first = request.offset / 4096;
        let end = request.offset + u64::from(request.len);
        let touched = (first..end.div_ceil(4096)).filter(|_| request.len > 0);
        let blocks: Vec<_> = touched.map(|block| (request.volume, block)).collect();
        let hits = blocks.iter().filter(|&&block| self.access(request, block)).count();
        let hit = u64::from(hits == blocks.len());
        match request.kind {
            RequestKind::Read => self.counts.read_request_hits += hit,
            RequestKind::Write => {}
            RequestKind::Flush | RequestKind::Discard => return,
        }
        self.counts.request_hits += hit;
    }

    fn access(&mut self, request: &Request, block: Block) -> bool {
        let hit = self.resident.contains(&block);
        let counts = &mut self.counts;
        match request.kind {
            RequestKind::Read if hit => counts.read_hits += 1,
            RequestKind::Read => counts.backing_reads += 1,
            RequestKind::Write if hit => {
                counts.write_hits += 1;
                counts.guest_writes += 1;
                self.dirty.insert(block);
            }
            RequestKind::Write => counts.backing_writes += 1,
            RequestKind::Flush => {}
            RequestKind::Discard => {
                let whole = block.1 * 4096 >= request.offset
                    && (block.1 + 1) * 4096 <= request.offset + u64::from(request.len);
                if whole {
                    self.resident.remove(&block);
                    self.dirty.remove(&block);
                    self.lru.retain(|&other| other != block);
                }
                return hit;
            }
        }
        self.lru.retain(|&other| other != block);
        self.lru.insert(0, block);
        self.lru.truncate(self.size);
        hit
    }

    fn end_epoch(&mut self) {
        let now: BTreeSet<_> = self.lru.iter().copied().collect();
        self.counts.fills += now.difference(&self.resident).count() as u64;
        self.counts.backing_writes += self.dirty.difference(&now).count() as u64;
        self.dirty.retain(|block| now.contains(block));
        self.resident = now;
    }
}

/// The epoch that a request is in, by the time or the requests that went before it.
fn epoch_of(epoch: Span, ns: u64, before: u64) -> u64 {
    match epoch {
        Span::TimeNs(length) => ns / length,
        Span::Requests(length) => before / length,
    }
}

fn simulate_one(requests: &[Request], size: usize, epoch: Span) -> AtSize {
    let mut cache = Cache::new(size);
    let (mut now, mut before, mut last) = (0, 0, 0);
    for request in requests {
        now = request.time_ns.max(now);
        let ns = now - requests[0].time_ns;
        let this = epoch_of(epoch, ns, before);
        if this > last {
            cache.end_epoch();
            last = this;
        }
        cache.request(request);
        before += u64::from(matches!(request.kind, RequestKind::Read | RequestKind::Write));
    }
    cache.counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn batched_population_is_what_one_cache_does(
        requests in requests(0..150), length in 1u64..40, by_time in any::<bool>(),
    ) {
        let epoch = if by_time { Span::TimeNs(length * 10) } else { Span::Requests(length) };
        let policies = vec![CurvePolicy::Batched];
        let analysis = analyze_all(&requests, &AnalysisPlan { policies, mover_epoch: epoch, ..plan() });
        for size in (1..30).chain([1000]) {
            let expected = simulate_one(&requests, size, epoch);
            prop_assert_eq!(analysis.curves[0].at(size as u64), expected, "{} blocks", size);
        }
    }
}
