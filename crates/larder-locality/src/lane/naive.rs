//! The reference of the lanes' tests: one cache of one size, simulated in the most obvious way.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::{AtSize, BlockId, CurvePolicy, Op, Piece, PolicyCurves, Stretch};

/// A request and its blocks.
pub(crate) type Request = (Op, Vec<BlockId>);

/// Random requests of up to four blocks over few blocks, whose numbers are given in the order in which they appear.
pub(crate) fn requests(ops: &'static [Op], blocks: u32, count: usize) -> impl Strategy<Value = Vec<Request>> {
    let request = (prop::sample::select(ops), prop::collection::vec(0..blocks, 0..4));
    prop::collection::vec(request, 0..count).prop_map(|mut requests| {
        let mut seen = Vec::new();
        for (op, blocks) in &mut requests {
            if *op == Op::Populate {
                blocks.clear();
            }
            for block in blocks {
                let found = seen.iter().position(|other| other == block);
                *block = found.unwrap_or_else(|| {
                    seen.push(*block);
                    seen.len() - 1
                }) as BlockId;
            }
        }
        requests
    })
}

/// Hand requests to something that takes stretches, `each` pieces at a time; every other request of several blocks in two parts.
pub(crate) fn feed(requests: &[Request], each: usize, mut take: impl FnMut(&Stretch<'_>)) {
    let parts = requests.iter().enumerate().flat_map(|(at, (op, blocks))| {
        let cut = if at % 2 == 0 { 0 } else { blocks.len() / 2 };
        let (first, second) = blocks.split_at(cut);
        let first = (cut > 0).then_some((*op, first, false));
        first.into_iter().chain([(*op, second, true)])
    });
    let parts: Vec<_> = parts.collect();
    for parts in parts.chunks(each.max(1)) {
        let (mut blocks, mut pieces) = (Vec::new(), Vec::new());
        for &(op, part, last) in parts {
            blocks.extend_from_slice(part);
            pieces.push(Piece { op, last, end: blocks.len() as u32 });
        }
        take(&Stretch { blocks: &blocks, pieces: &pieces });
    }
}

/// What a cache of `size` blocks does, at least one.
pub(crate) fn simulate(policy: CurvePolicy, size: usize, requests: &[Request]) -> AtSize {
    let mut cache = Cache { policy, size, ..Cache::default() };
    for (op, blocks) in requests {
        let mut hit = true;
        for &block in blocks {
            hit &= match op {
                Op::Read => cache.read(block),
                Op::Write => cache.write(block),
                _ => cache.discard(block),
            };
        }
        match op {
            Op::Populate => cache.populate(),
            Op::Read => cache.counts.read_request_hits += u64::from(hit),
            _ => {}
        }
        if matches!(op, Op::Read | Op::Write) {
            cache.counts.request_hits += u64::from(hit);
        }
    }
    cache.counts
}

/// Hold the curves against a simulation of every size up to `most`, and of one beyond.
pub(crate) fn check(curves: &PolicyCurves, requests: &[Request], most: usize) {
    for size in (1..=most).chain([1_000_000]) {
        assert_eq!(curves.at(size as u64), simulate(curves.policy(), size, requests), "{} blocks", size);
    }
}

struct Cache {
    policy: CurvePolicy,
    size: usize,
    /// Resident blocks, the last used first.
    resident: Vec<BlockId>,
    dirty: BTreeSet<BlockId>,
    /// Batched: the cache at the end of the next mover epoch, the last used first.
    shadow: Vec<BlockId>,
    counts: AtSize,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            policy: CurvePolicy::WriteBack,
            size: 0,
            resident: Vec::new(),
            dirty: BTreeSet::new(),
            shadow: Vec::new(),
            counts: AtSize::default(),
        }
    }
}

impl Cache {
    fn read(&mut self, block: BlockId) -> bool {
        let hit = self.resident.contains(&block);
        self.counts.read_hits += u64::from(hit);
        self.counts.backing_reads += u64::from(!hit);
        if self.policy == CurvePolicy::Batched {
            self.touch_shadow(block);
            return hit;
        }
        self.counts.fills += u64::from(!hit);
        self.touch(block);
        hit
    }

    fn write(&mut self, block: BlockId) -> bool {
        let hit = self.resident.contains(&block);
        match self.policy {
            CurvePolicy::WriteBack => {
                self.counts.guest_writes += 1;
                self.touch(block);
                self.dirty.insert(block);
            }
            CurvePolicy::WriteThrough => {
                self.counts.guest_writes += 1;
                self.counts.backing_writes += 1;
                self.touch(block);
            }
            CurvePolicy::WriteThroughNoAllocate => {
                self.counts.backing_writes += 1;
                if hit {
                    self.counts.guest_writes += 1;
                    self.touch(block);
                }
            }
            CurvePolicy::ReadOnly => {
                self.counts.backing_writes += 1;
                self.counts.invalidations += u64::from(hit);
                self.resident.retain(|&other| other != block);
                return false;
            }
            CurvePolicy::Batched => {
                self.touch_shadow(block);
                if hit {
                    self.counts.guest_writes += 1;
                    self.dirty.insert(block);
                } else {
                    self.counts.backing_writes += 1;
                }
            }
        }
        self.counts.write_hits += u64::from(hit);
        hit
    }

    fn discard(&mut self, block: BlockId) -> bool {
        self.resident.retain(|&other| other != block);
        self.shadow.retain(|&other| other != block);
        self.dirty.remove(&block);
        true
    }

    fn touch(&mut self, block: BlockId) {
        self.resident.retain(|&other| other != block);
        self.resident.insert(0, block);
        if self.resident.len() > self.size {
            let gone = self.resident.pop().expect("it is not empty");
            self.counts.backing_writes += u64::from(self.dirty.remove(&gone));
        }
    }

    fn touch_shadow(&mut self, block: BlockId) {
        self.shadow.retain(|&other| other != block);
        self.shadow.insert(0, block);
        self.shadow.truncate(self.size);
    }

    fn populate(&mut self) {
        if self.policy != CurvePolicy::Batched {
            return;
        }
        let new = self.shadow.clone();
        self.counts.fills += new.iter().filter(|block| !self.resident.contains(block)).count() as u64;
        let gone: Vec<_> = self.dirty.iter().copied().filter(|block| !new.contains(block)).collect();
        self.counts.backing_writes += gone.len() as u64;
        self.dirty.retain(|block| new.contains(block));
        self.resident = new;
    }
}
