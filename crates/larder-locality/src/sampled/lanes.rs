//! The lanes of a sampled analysis: one for each kind of stack that the curves asked for need.

use crate::lane::{BatchedModel, Heat, Lane, LruModel, Model, NoAllocateModel, ReadOnlyModel, Scaled};
use crate::{BlockId, CurvePolicy, Op, Piece, Stretch};

/// A lane, whatever its model is.
trait AnyLane: Send {
    fn process(&mut self, stretch: &Stretch<'_>);
    fn record_mut(&mut self) -> &mut Scaled;
    /// What has happened and was not told yet.
    fn pending(&self) -> Scaled;
    /// The counts, with those pending.
    fn settled(&self) -> Scaled;
    fn retain(&mut self, renumbered: &[BlockId]);
    fn memory_bytes(&self) -> usize;
}

impl<M: Model> AnyLane for Lane<M, Scaled> {
    fn process(&mut self, stretch: &Stretch<'_>) {
        Lane::process(self, stretch);
    }

    fn record_mut(&mut self) -> &mut Scaled {
        Lane::record_mut(self)
    }

    fn pending(&self) -> Scaled {
        let mut pending = self.record().emptied();
        self.settle(&mut pending);
        pending
    }

    fn settled(&self) -> Scaled {
        let mut record = self.pending();
        record.merge(self.record());
        record
    }

    fn retain(&mut self, renumbered: &[BlockId]) {
        self.model_mut().retain(renumbered);
    }

    fn memory_bytes(&self) -> usize {
        Lane::memory_bytes(self)
    }
}

/// A kind of stack: what decides on hits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stack {
    Lru,
    NoAllocate,
    ReadOnly,
    Batched,
}

impl Stack {
    /// `wb` and `wt` have the same hits.
    fn of(policy: CurvePolicy) -> Self {
        match policy {
            CurvePolicy::WriteBack | CurvePolicy::WriteThrough => Self::Lru,
            CurvePolicy::WriteThroughNoAllocate => Self::NoAllocate,
            CurvePolicy::ReadOnly => Self::ReadOnly,
            CurvePolicy::Batched => Self::Batched,
        }
    }

    fn lane(self) -> Box<dyn AnyLane> {
        match self {
            Self::Lru => Box::new(Lane::new(LruModel::new(), Scaled::new())),
            Self::NoAllocate => Box::new(Lane::new(NoAllocateModel::default(), Scaled::new())),
            Self::ReadOnly => Box::new(Lane::new(ReadOnlyModel::default(), Scaled::new())),
            Self::Batched => Box::new(Lane::new(BatchedModel::default(), Scaled::new())),
        }
    }
}

/// Lanes, and which policy is served by which.
pub(super) struct Lanes {
    lanes: Vec<(Stack, Box<dyn AnyLane>)>,
}

impl Lanes {
    /// What curves of these policies need.
    pub(super) fn new(policies: &[CurvePolicy], rate: f64) -> Self {
        let mut lanes: Vec<(Stack, Box<dyn AnyLane>)> = Vec::new();
        for stack in policies.iter().map(|&policy| Stack::of(policy)) {
            if lanes.iter().all(|(other, _)| *other != stack) {
                lanes.push((stack, stack.lane()));
            }
        }
        let mut lanes = Self { lanes };
        lanes.set_rate(rate);
        lanes
    }

    /// For each policy the number of its lane, from 0.
    pub(super) fn numbers(&self, policies: &[CurvePolicy]) -> Vec<(CurvePolicy, usize)> {
        let number = |policy| self.lanes.iter().position(|(stack, _)| *stack == Stack::of(policy));
        policies.iter().filter_map(|&policy| Some((policy, number(policy)?))).collect()
    }

    /// The share of the blocks that is sampled from now on.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.each(|lane| lane.record_mut().set_rate(rate));
    }

    /// A block of a request that does `op`. The request goes on.
    #[inline]
    pub(super) fn block(&mut self, op: Op, block: BlockId, heat: Heat) {
        let stretch = Stretch { blocks: &[block], pieces: &[Piece { op, last: false, end: 1 }] };
        for (_, lane) in &mut self.lanes {
            lane.record_mut().set_heat(heat);
            lane.process(&stretch);
        }
    }

    /// The request ends. It stands for `weight` requests.
    #[inline]
    pub(super) fn end_request(&mut self, op: Op, weight: f64) {
        let stretch = Stretch { blocks: &[], pieces: &[Piece { op, last: true, end: 0 }] };
        for (_, lane) in &mut self.lanes {
            lane.record_mut().set_request(weight);
            lane.process(&stretch);
        }
    }

    /// A request without blocks, which stands for itself.
    pub(super) fn empty_request(&mut self, op: Op) {
        self.each(|lane| lane.record_mut().set_heat(Heat::default()));
        self.end_request(op, 1.0);
    }

    /// A mover epoch ends.
    pub(super) fn populate(&mut self) {
        let stretch = Stretch { blocks: &[], pieces: &[Piece { op: Op::Populate, last: true, end: 0 }] };
        self.each(|lane| {
            lane.record_mut().set_heat(Heat::default());
            lane.process(&stretch);
        });
    }

    /// Multiply all counts, those pending with the others: they will be told in full, so they are taken off beforehand.
    pub(super) fn decay(&mut self, factor: f64) {
        self.each(|lane| {
            let mut pending = lane.pending();
            let record = lane.record_mut();
            record.merge(&pending);
            record.decay(factor);
            pending.decay(-1.0);
            record.merge(&pending);
        });
    }

    pub(super) fn retain(&mut self, renumbered: &[BlockId]) {
        self.each(|lane| lane.retain(renumbered));
    }

    /// What each lane counted.
    pub(super) fn settled(&self) -> Vec<Scaled> {
        self.lanes.iter().map(|(_, lane)| lane.settled()).collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lanes.iter().map(|(_, lane)| lane.memory_bytes()).sum()
    }

    fn each(&mut self, mut change: impl FnMut(&mut dyn AnyLane)) {
        self.lanes.iter_mut().for_each(|(_, lane)| change(lane.as_mut()));
    }
}
