//! What came of a replay's requests, counted.

use larder_engine::IoError;
use larder_trace::RequestKind;

use super::latency::Times;
use super::stamps::Found;

/// Mismatches that are told one by one.
const TOLD_MAX: usize = 8;

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct OfKind {
    pub requests: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Of those that ended well.
    pub latency: Times,
}

/// A request that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
    pub error: IoError,
}

/// A sector that does not hold what it should.
#[derive(Clone, Debug)]
pub struct Mismatch {
    pub offset: u64,
    /// The writes of which it may hold one.
    pub expected: Vec<u64>,
    pub found: Found,
}

/// Sectors held against what was written.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// By reads of the trace.
    pub checked: u64,
    /// At the end.
    pub read_back: u64,
    pub wrong: u64,
    /// The first of them.
    pub told: Vec<Mismatch>,
}

impl Verified {
    pub fn add_wrong(&mut self, mismatch: Mismatch) {
        self.wrong += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(mismatch);
        }
    }
}

/// Everything that is counted.
pub struct Tally {
    kinds: [OfKind; 4],
    /// After their time.
    pub lateness: Times,
    /// Requests that were due while as many as may be were outstanding.
    pub held_up: u64,
    pub verified: Verified,
    pub first_failure: Option<Failure>,
    /// Reads of the last check that failed.
    pub unread: u64,
}

impl Tally {
    pub fn new() -> Self {
        let none = || OfKind { requests: 0, bytes: 0, errors: 0, latency: Times::new() };
        Self {
            kinds: std::array::from_fn(|_| none()),
            lateness: Times::new(),
            held_up: 0,
            verified: Verified::default(),
            first_failure: None,
            unread: 0,
        }
    }

    pub fn of(&self, kind: RequestKind) -> &OfKind {
        &self.kinds[index(kind)]
    }

    /// A request has ended.
    pub fn add(&mut self, kind: RequestKind, offset: u64, len: u64, ns: u64, result: Result<(), IoError>) {
        let of_kind = &mut self.kinds[index(kind)];
        of_kind.requests += 1;
        match result {
            Ok(()) => {
                of_kind.bytes += len;
                of_kind.latency.add(ns);
            }
            Err(error) => {
                of_kind.errors += 1;
                self.first_failure.get_or_insert(Failure { kind, offset, len, error });
            }
        }
    }

    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|of_kind| of_kind.requests).sum()
    }

    pub fn errors(&self) -> u64 {
        self.kinds.iter().map(|of_kind| of_kind.errors).sum()
    }
}

fn index(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read => 0,
        RequestKind::Write => 1,
        RequestKind::Flush => 2,
        RequestKind::Discard => 3,
    }
}
