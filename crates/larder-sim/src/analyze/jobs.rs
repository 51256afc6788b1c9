//! What an analysis does with the trace, as workers that go through it each at its own pace.

use larder_locality::lane::{BatchedModel, Exact, Lane, LruModel, Model, NoAllocateModel, ReadOnlyModel};
use larder_locality::{Bank, Counted, CurvePolicy, Op, PolicyCurves, SizeCurve};
use larder_trace::RequestKind;

use super::classes::Classes;
use super::intake::Portion;
use super::parts::{PART, Parts};
use super::places::Places;
use super::sampled::Sampled;
use crate::Analysis;
use crate::pool::Worker;

/// A worker of an analysis.
pub(crate) enum Job {
    /// The exact curves of `wb` and `wt`, which hold the same blocks.
    Lru(Lane<LruModel, Exact>),
    /// The same, on several threads.
    LruInParts(Box<Parts>),
    /// The exact curves of `wt-noalloc`.
    NoAllocate(Lane<NoAllocateModel, Exact>),
    /// The exact curves of `ro`.
    ReadOnly(Lane<ReadOnlyModel, Exact>),
    /// The exact curves of `batched`.
    Batched(Lane<BatchedModel, Exact>),
    /// Request classes over time, exactly.
    Classes(Box<Classes>),
    /// Curves and request classes, from a sample of the blocks.
    Sampled(Box<Sampled>),
    /// Scaled-down caches.
    Bank(Box<Bank>),
    /// Accesses over time and address.
    Places(Box<Places>),
}

impl Job {
    /// The worker that counts the exact curves of a policy.
    pub(crate) fn of(policy: CurvePolicy) -> Self {
        match policy {
            CurvePolicy::WriteBack | CurvePolicy::WriteThrough => Self::Lru(lane(LruModel::new())),
            CurvePolicy::WriteThroughNoAllocate => Self::NoAllocate(lane(NoAllocateModel::new())),
            CurvePolicy::ReadOnly => Self::ReadOnly(lane(ReadOnlyModel::new())),
            CurvePolicy::Batched => Self::Batched(lane(BatchedModel::new())),
        }
    }

    /// Let it use so many threads, where it can. What it finds stays the same. For the start.
    pub(crate) fn spread(&mut self, threads: usize) {
        if let Self::Lru(_) = self {
            *self = Self::LruInParts(Box::new(Parts::new(threads, PART)));
        }
    }

    /// True if it counts the exact curves of a policy.
    pub(crate) fn counts(&self, policy: CurvePolicy) -> bool {
        match self {
            Self::Lru(_) | Self::LruInParts(_) => {
                matches!(policy, CurvePolicy::WriteBack | CurvePolicy::WriteThrough)
            }
            Self::NoAllocate(_) => policy == CurvePolicy::WriteThroughNoAllocate,
            Self::ReadOnly(_) => policy == CurvePolicy::ReadOnly,
            Self::Batched(_) => policy == CurvePolicy::Batched,
            Self::Classes(_) | Self::Sampled(_) | Self::Bank(_) | Self::Places(_) => false,
        }
    }

    /// Put what was found where it belongs. The curves are not in the order of the plan, and may be more.
    pub(crate) fn finish(self, analysis: &mut Analysis) {
        let elapsed_ns = analysis.summary.elapsed_ns;
        let mut add = |policy, counted| analysis.curves.push(PolicyCurves::new(policy, counted));
        let mut add_both = |counted: Counted| {
            // Nothing is written back under `wt`.
            add(CurvePolicy::WriteThrough, Counted { written_back: SizeCurve::default(), ..counted.clone() });
            add(CurvePolicy::WriteBack, counted);
        };
        match self {
            Self::Lru(lane) => add_both(lane.counted()),
            Self::LruInParts(parts) => add_both(parts.finish().counted()),
            Self::NoAllocate(lane) => add(CurvePolicy::WriteThroughNoAllocate, lane.counted()),
            Self::ReadOnly(lane) => add(CurvePolicy::ReadOnly, lane.counted()),
            Self::Batched(lane) => add(CurvePolicy::Batched, lane.counted()),
            Self::Classes(classes) => (analysis.classes, analysis.windows) = classes.finish(elapsed_ns),
            Self::Sampled(sampled) => sampled.finish(analysis),
            Self::Bank(mut bank) => analysis.bank = bank.curves(),
            Self::Places(places) => (analysis.map, analysis.hot) = places.finish(elapsed_ns),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Lru(lane) => lane.memory_bytes(),
            Self::LruInParts(parts) => parts.memory_bytes(),
            Self::NoAllocate(lane) => lane.memory_bytes(),
            Self::ReadOnly(lane) => lane.memory_bytes(),
            Self::Batched(lane) => lane.memory_bytes(),
            Self::Classes(classes) => classes.memory_bytes(),
            Self::Sampled(sampled) => sampled.memory_bytes(),
            Self::Bank(bank) => bank.memory_bytes(),
            Self::Places(places) => places.memory_bytes(),
        };
        bytes as u64
    }
}

impl Worker<Portion> for Job {
    fn take(&mut self, portion: &Portion) {
        match self {
            Self::Lru(lane) => lane.process(&portion.stretch()),
            Self::LruInParts(parts) => parts.take(portion),
            Self::NoAllocate(lane) => lane.process(&portion.stretch()),
            Self::ReadOnly(lane) => lane.process(&portion.stretch()),
            Self::Batched(lane) => lane.process(&portion.stretch()),
            Self::Classes(classes) => classes.take(portion),
            Self::Sampled(sampled) => sampled.take(portion),
            Self::Bank(bank) => observe(bank, portion),
            Self::Places(places) => places.take(portion),
        }
    }
}

fn lane<M: Model>(model: M) -> Lane<M, Exact> {
    Lane::new(model, Exact::new())
}

fn observe(bank: &mut Bank, portion: &Portion) {
    let mut begin = 0;
    for piece in &portion.batch.pieces {
        let keys = &portion.batch.keys[begin..piece.end as usize];
        begin = piece.end as usize;
        let op = match piece.kind {
            RequestKind::Read => Op::Read,
            RequestKind::Write => Op::Write,
            RequestKind::Discard => Op::Discard,
            RequestKind::Flush => continue,
        };
        bank.observe(op, keys.iter().copied(), piece.last);
    }
}
