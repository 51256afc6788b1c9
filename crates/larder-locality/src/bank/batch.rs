//! The sampled part of some requests, as the small caches take it.

use larder_policy::trial::{Action, Blocks};

/// Accesses in a batch: few enough to stay in the processor's caches beside a small cache.
const ACCESSES: usize = 1 << 13;

/// What is known of the request under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    /// Its blocks so far, sampled or not.
    pub(super) blocks: u64,
    sampled: bool,
    /// The largest pull of its sampled blocks.
    pull: u32,
}

impl Request {
    /// A block of it is in the sample.
    pub(super) fn take(&mut self, pull: u32) {
        self.sampled = true;
        self.pull = self.pull.max(pull);
    }

    /// Some block of it is in the sample.
    pub(super) fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// How it is to be counted, at a rate of sampling; none if it has blocks, but none in the sample.
    pub(super) fn end(self, rate: f64) -> Option<End> {
        if self.blocks == 0 {
            return Some(End { weight: 1.0, pull: 0.0 });
        }
        if !self.sampled {
            return None;
        }
        // 1 / (1 - (1 - R)^k), also where R is so small that it would be lost.
        let weight = -1.0 / ((-rate).ln_1p() * self.blocks as f64).exp_m1();
        Some(End { weight, pull: f64::from(self.pull) * weight * (weight - 1.0) })
    }
}

/// How a request is counted that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct End {
    /// The requests that it stands for.
    pub(super) weight: f64,
    /// What it has to say about requests that the sample has too many or too few of.
    pub(super) pull: f64,
}

/// A request, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) action: Action,
    /// Where its blocks end; they begin where those of the piece before it end.
    pub(super) to: usize,
    /// Of the request's last part.
    pub(super) end: Option<End>,
}

/// The batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    keys: Vec<u64>,
    hashes: Vec<u32>,
    /// For each access, how often its block was accessed in the same way so far.
    pub(super) pulls: Vec<u32>,
    pub(super) pieces: Vec<Piece>,
}

impl Batch {
    pub(super) fn blocks(&self) -> Blocks<'_> {
        Blocks { keys: &self.keys, hashes: &self.hashes, first: 0 }
    }

    pub(super) fn push(&mut self, key: u64, hash: u32, pull: u32) {
        self.keys.push(key);
        self.hashes.push(hash);
        self.pulls.push(pull);
    }

    /// The blocks since the last piece, if any, are a part of a request that goes on.
    pub(super) fn end_piece(&mut self, action: Action) {
        let to = self.keys.len();
        if self.pieces.last().map_or(0, |piece| piece.to) < to {
            self.pieces.push(Piece { action, to, end: None });
        }
    }

    /// The blocks since the last piece are the rest of a request. One that is not to be counted has none.
    pub(super) fn end_request(&mut self, action: Action, end: Option<End>) {
        if end.is_some() {
            self.pieces.push(Piece { action, to: self.keys.len(), end });
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= ACCESSES || self.pieces.len() >= ACCESSES
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.hashes.clear();
        self.pulls.clear();
        self.pieces.clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<u64>()
            + (self.hashes.capacity() + self.pulls.capacity()) * size_of::<u32>()
            + self.pieces.capacity() * size_of::<Piece>()
    }
}
