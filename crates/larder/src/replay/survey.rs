//! A look at a trace before it is replayed: how much room it takes, whether it changes anything, whether it has times.

use larder_sim::{Progress, Source};
use larder_trace::{Request, RequestKind, TraceError};

use crate::metered::Requests;

use super::layout::Layout;

/// Requests read at a time.
const BATCH: usize = 4096;

/// What a trace holds, of the volumes that are replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// All requests that are replayed.
    pub requests: u64,
    pub writes: u64,
    pub discards: u64,
    /// For each volume of the trace, the byte behind the last that is used.
    pub ends: Vec<u64>,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Survey {
    /// Read the trace to its end, or its first `limit` reads and writes.
    pub fn of(
        source: &mut Requests,
        layout: &Layout,
        limit: Option<u64>,
        told: impl Fn(Progress),
    ) -> Result<Self, TraceError> {
        let (mut survey, mut batch) = (Self::default(), Vec::with_capacity(BATCH));
        let (mut left, mut seen, mut chosen) = (limit.unwrap_or(u64::MAX), 0, Vec::new());
        while left > 0 && source.read(&mut batch, BATCH)? {
            let volumes = &source.volumes()[chosen.len()..];
            chosen.extend(volumes.iter().map(|volume| layout.is_chosen(volume)));
            for request in batch.drain(..) {
                let is_chosen = chosen.get(request.volume as usize).copied().unwrap_or(true);
                if left == 0 || !is_chosen || !layout.takes(request.kind) {
                    continue;
                }
                left -= u64::from(is_transfer(request.kind));
                survey.add(&request);
            }
            seen = survey.requests.max(seen);
            told(Progress { requests: seen });
        }
        Ok(survey)
    }

    fn add(&mut self, request: &Request) {
        if self.requests == 0 {
            self.first_ns = request.time_ns;
        }
        self.requests += 1;
        self.last_ns = self.last_ns.max(request.time_ns);
        self.writes += u64::from(request.kind == RequestKind::Write);
        self.discards += u64::from(request.kind == RequestKind::Discard);
        let volume = request.volume as usize;
        if volume >= self.ends.len() {
            self.ends.resize(volume + 1, 0);
        }
        if request.kind != RequestKind::Flush && request.len > 0 {
            let end = request.offset.saturating_add(request.len.into());
            self.ends[volume] = self.ends[volume].max(end);
        }
    }
}

/// True for what a limit counts.
pub fn is_transfer(kind: RequestKind) -> bool {
    matches!(kind, RequestKind::Read | RequestKind::Write)
}
