//! How far the curves of a sample are from the exact ones.

use larder_locality::lane::{BatchedModel, Exact, Lane, LruModel, Model, NoAllocateModel, ReadOnlyModel};
use larder_locality::{
    Analyzer, AnalyzerConfig, AtSize, BlockRequest, Blocks, Counted, CurvePolicy, Op, Piece, PolicyCurves,
    Sampling, Stretch,
};

/// Requests handed over together.
const TOGETHER: usize = 4096;

/// Mean absolute errors of one policy over 100 sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    /// Of the miss ratio by block.
    pub blocks: f64,
    /// Of the miss ratio by request.
    pub requests: f64,
    /// Of the SSD writes, as a share of all block accesses.
    pub ssd_writes: f64,
    /// Of the blocks written to the backing, as a share of all block accesses.
    pub backing_writes: f64,
}

/// The curves that all blocks give.
pub fn exact(requests: &[BlockRequest], policies: &[CurvePolicy]) -> (u32, Vec<PolicyCurves>) {
    let mut blocks = Blocks::new(0);
    let mut lanes: Vec<_> = policies.iter().map(|&policy| (policy, lane(policy))).collect();
    for requests in requests.chunks(TOGETHER) {
        let (mut numbers, mut pieces) = (Vec::new(), Vec::new());
        for request in requests {
            let keys: Vec<_> = (request.first..request.first + u64::from(request.blocks)).collect();
            blocks.number_all(&keys, &mut numbers).expect("few blocks");
            pieces.push(Piece { op: request.op, last: true, end: numbers.len() as u32 });
        }
        let stretch = Stretch { blocks: &numbers, pieces: &pieces };
        lanes.iter_mut().for_each(|(_, lane)| lane.process(&stretch));
    }
    let curves = lanes.iter().map(|(policy, lane)| PolicyCurves::new(*policy, lane.counted()));
    (blocks.len(), curves.collect())
}

/// A lane, whatever its model is.
trait AnyLane {
    fn process(&mut self, stretch: &Stretch<'_>);
    fn counted(&self) -> Counted;
}

impl<M: Model> AnyLane for Lane<M, Exact> {
    fn process(&mut self, stretch: &Stretch<'_>) {
        Lane::process(self, stretch);
    }

    fn counted(&self) -> Counted {
        Lane::counted(self)
    }
}

fn lane(policy: CurvePolicy) -> Box<dyn AnyLane> {
    match policy {
        CurvePolicy::WriteBack | CurvePolicy::WriteThrough => {
            Box::new(Lane::new(LruModel::new(), Exact::new()))
        }
        CurvePolicy::WriteThroughNoAllocate => Box::new(Lane::new(NoAllocateModel::default(), Exact::new())),
        CurvePolicy::ReadOnly => Box::new(Lane::new(ReadOnlyModel::default(), Exact::new())),
        CurvePolicy::Batched => Box::new(Lane::new(BatchedModel::default(), Exact::new())),
    }
}

/// An analysis of a sample.
pub fn sampled(
    requests: &[BlockRequest],
    policies: &[CurvePolicy],
    sampling: Sampling,
    seed: u64,
) -> Analyzer {
    let config = AnalyzerConfig { policies: policies.to_vec(), sampling, history_blocks: u64::MAX, seed };
    let mut analyzer = Analyzer::new(&config);
    analyzer.observe_all(requests);
    analyzer
}

/// 1 % to 100 % of the footprint.
pub fn even_sizes(footprint: u32) -> Vec<u64> {
    (1..=100).map(|percent| (u64::from(footprint) * percent / 100).max(1)).collect()
}

/// From a ten thousandth of the footprint to all of it, each larger than the one before by the same factor.
pub fn rising_sizes(footprint: u32) -> Vec<u64> {
    (0..100)
        .map(|at| (f64::from(footprint) * 10f64.powf(f64::from(at - 99) * 4.0 / 99.0)).ceil() as u64)
        .collect()
}

/// The errors of `estimate` against `exact`.
pub fn errors(exact: &PolicyCurves, estimate: &PolicyCurves, sizes: &[u64]) -> Errors {
    let mean = |of: fn(&AtSize) -> u64, whole: u64| {
        let error = |&size: &u64| of(&exact.at(size)).abs_diff(of(&estimate.at(size))) as f64;
        sizes.iter().map(error).sum::<f64>() / sizes.len() as f64 / whole.max(1) as f64
    };
    let accesses = exact.accesses();
    Errors {
        blocks: mean(|at| at.read_hits + at.write_hits, accesses),
        requests: mean(|at| at.request_hits, exact.counted().requests),
        ssd_writes: mean(AtSize::ssd_writes, accesses),
        backing_writes: mean(|at| at.backing_writes, accesses),
    }
}

/// Independent one-block requests over `blocks` blocks by Zipf's law with exponent 1, scattered over the volume.
pub fn zipf(requests: u64, blocks: u64, read_share: f64, seed: u64) -> Vec<BlockRequest> {
    let workload = larder_trace::Workload {
        pattern: larder_trace::Pattern::Zipf { theta: 1.0 },
        requests,
        first_byte: 0,
        bytes: blocks * 4096,
        request_bytes: 4096,
        read_share,
        interval_ns: 1,
    };
    let requests = larder_trace::Generator::new(&[workload], 0, seed).expect("sensible");
    requests.filter_map(|request| block_request(&request)).collect()
}

/// The blocks of a request, unless it is none that reads or writes.
pub fn block_request(request: &larder_trace::Request) -> Option<BlockRequest> {
    let op = match request.kind {
        larder_trace::RequestKind::Read => Op::Read,
        larder_trace::RequestKind::Write => Op::Write,
        larder_trace::RequestKind::Discard => Op::Discard,
        larder_trace::RequestKind::Flush => return None,
    };
    let blocks = larder_locality::blocks_of(request.offset, request.len.into(), 4096);
    let first = larder_locality::block_key(request.volume as u16, blocks.start);
    Some(BlockRequest { op, blocks: (blocks.end - blocks.start) as u32, first })
}

/// The requests of a trace file.
pub fn trace(file: &std::path::Path) -> Vec<BlockRequest> {
    let trace = larder_trace::open(file).expect("the trace can be opened");
    trace.filter_map(|request| block_request(&request.expect("the trace is good"))).collect()
}

/// With the end of a mover epoch after every `each` requests.
pub fn with_mover_epochs(requests: Vec<BlockRequest>, each: usize) -> Vec<BlockRequest> {
    let end = BlockRequest { op: Op::Populate, blocks: 0, first: 0 };
    requests.chunks(each).flat_map(|requests| requests.iter().copied().chain([end])).collect()
}
