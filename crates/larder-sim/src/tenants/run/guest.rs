//! A tenant in the run: what it does next, and what was counted of it.

use larder_trace::Request;

use super::super::arrivals::Arrivals;
use super::super::latency::Latency;
use super::super::result::TenantResult;

/// One tenant in the run.
pub(super) struct Guest<S> {
    pub(super) arrivals: Arrivals<S>,
    pub(super) next: Option<Request>,
    /// Requests under way, of a closed loop.
    pub(super) outstanding: u32,
    pub(super) ended: bool,
    pub(super) gone: bool,
    pub(super) count: TenantResult,
    pub(super) reads: Latency,
    pub(super) writes: Latency,
    pub(super) hits: u64,
    pub(super) last_done: u64,
    /// Until then too many dirty blocks wait for being written back: what misses finds no room.
    pub(super) has_room_at: u64,
    /// The stream of reads under way, for the bypass: where it goes on, and its bytes so far.
    pub(super) stream: (u32, u64, u64),
    /// What a mover still has to bring: runs of blocks.
    pub(super) moves: Vec<(u64, u64)>,
    pub(super) moving: usize,
    /// Nanoseconds that it was there, and the blocks held and allotted, times these.
    pub(super) occupied_ns: f64,
    pub(super) quota_ns: f64,
    pub(super) there_ns: f64,
    pub(super) row: Row,
}

/// What was counted since the last decision.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) sum_ns: u64,
    pub(super) ssd_blocks: u64,
    pub(super) began: u64,
    pub(super) held: Held,
}

/// Blocks that a tenant holds, over time.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    blocks: u32,
    at: u64,
    /// Those held until then, times the nanoseconds of that.
    blocks_ns: f64,
}

impl Held {
    pub(super) fn new(blocks: u32, at: u64) -> Self {
        Self { blocks, at, blocks_ns: 0.0 }
    }

    /// The tenant holds so many by now: it came to that evenly since the last time.
    pub(super) fn go_on(&mut self, blocks: u32, now: u64) {
        let mean = (f64::from(self.blocks) + f64::from(blocks)) / 2.0;
        let blocks_ns = self.blocks_ns + mean * now.saturating_sub(self.at) as f64;
        *self = Self { blocks, at: now, blocks_ns };
    }

    pub(super) fn blocks_ns(&self) -> f64 {
        self.blocks_ns
    }
}

impl<S> Guest<S> {
    /// A tenant that has not come yet.
    pub(super) fn new(arrivals: Arrivals<S>) -> Self {
        Self {
            arrivals,
            next: None,
            outstanding: 0,
            ended: false,
            gone: false,
            count: TenantResult::default(),
            reads: Latency::new(),
            writes: Latency::new(),
            hits: 0,
            last_done: 0,
            has_room_at: 0,
            stream: (0, u64::MAX, 0),
            moves: Vec::new(),
            moving: 0,
            occupied_ns: 0.0,
            quota_ns: 0.0,
            there_ns: 0.0,
            row: Row::default(),
        }
    }
}
