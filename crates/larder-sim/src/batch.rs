//! A stretch of the trace as the runs take it: split into blocks, hashed once for all of them.

use larder_policy::index::hash;
use larder_trace::{Request, RequestKind};

use crate::clock::Start;

/// Accesses in a batch: few enough that a batch and what a run reads of it stay in the processor's second-level cache.
pub(crate) const ACCESSES: usize = 1 << 15;

/// Requests, or parts of them, in a batch: bounds a batch of flushes.
pub(crate) const PIECES: usize = ACCESSES;

/// A request, or a part of one whose blocks do not fit in one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: RequestKind,
    /// The request's last part.
    pub(crate) last: bool,
    /// Where its keys end; they begin where those of the piece before it end.
    pub(crate) end: u32,
}

/// A request that begins in a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The number of its first piece.
    pub(crate) piece: u32,
    /// What came before it.
    pub(crate) at: Start,
    pub(crate) request: Request,
}

/// What happens between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The warm-up is over: counting starts.
    Measure,
    /// An interval ends, and the next one begins.
    Interval,
}

/// The batch.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Accesses of the trace before the batch.
    pub(crate) first_access: u64,
    pub(crate) pieces: Vec<Piece>,
    /// Cuts, each with the number of the piece that it comes before; in order.
    pub(crate) cuts: Vec<(usize, Cut)>,
    pub(crate) keys: Vec<u64>,
    pub(crate) hashes: Vec<u32>,
    /// The requests that begin in it, where they are wanted.
    pub(crate) begun: Vec<Begun>,
}

impl Batch {
    /// Empty it, for the accesses from `first_access` on.
    pub(crate) fn clear(&mut self, first_access: u64) {
        self.first_access = first_access;
        self.pieces.clear();
        self.cuts.clear();
        self.keys.clear();
        self.hashes.clear();
        self.begun.clear();
    }

    /// Blocks that may still be added.
    pub(crate) fn room(&self) -> usize {
        ACCESSES.saturating_sub(self.keys.len())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.room() == 0 || self.pieces.len() >= PIECES
    }

    pub(crate) fn cut(&mut self, cut: Cut) {
        self.cuts.push((self.pieces.len(), cut));
    }

    /// The keys added since the last piece are a piece.
    pub(crate) fn end_piece(&mut self, kind: RequestKind, last: bool) {
        self.hashes.extend(self.keys[self.hashes.len()..].iter().map(|&key| hash(key)));
        self.pieces.push(Piece { kind, last, end: self.keys.len() as u32 });
    }
}
