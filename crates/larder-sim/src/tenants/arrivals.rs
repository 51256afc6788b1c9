//! When a tenant's requests come: the trace behind the tenant, read in portions, on the run's clock.

use larder_trace::{Request, RequestKind};

use super::{Pace, TenantPlan};
use crate::Source;

/// Requests read from a source at a time.
const READ: usize = 4096;

/// A tenant's requests.
pub(super) struct Arrivals<S> {
    source: Option<S>,
    ready: Vec<Request>,
    /// How many of `ready` are taken.
    taken: usize,
    pace: Pace,
    start_ns: u64,
    stop_ns: u64,
    repeat: bool,
    /// The trace's time at which the tenant's clock begins.
    first_ns: Option<u64>,
    /// Where the trace begins anew on the tenant's clock, and the latest time so far there.
    lap_ns: u64,
    last_ns: u64,
    left: u64,
    /// Reads and writes since the trace began.
    of_lap: u64,
}

/// What comes next.
pub(super) enum Next {
    /// A request, at a time; closed loops ignore the time.
    Request(u64, Request),
    /// Nothing any more.
    End,
    /// The trace has to be opened anew.
    Again,
}

impl<S: Source> Arrivals<S> {
    pub(super) fn new(plan: &TenantPlan, source: S, first_ns: Option<u64>, limit: Option<u64>) -> Self {
        let start_ns = ns(plan.start_seconds);
        Self {
            source: Some(source),
            ready: Vec::with_capacity(READ),
            taken: 0,
            pace: plan.pace,
            start_ns,
            stop_ns: plan.stop_seconds.map_or(u64::MAX, ns),
            repeat: plan.repeat,
            first_ns,
            lap_ns: 0,
            last_ns: 0,
            left: limit.unwrap_or(u64::MAX),
            of_lap: 0,
        }
    }

    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    pub(super) fn stop_ns(&self) -> u64 {
        self.stop_ns
    }

    /// The trace was opened anew.
    pub(super) fn reopened(&mut self, source: S) {
        self.source = Some(source);
    }

    /// The next request.
    pub(super) fn next(&mut self) -> Result<Next, S::Error> {
        if self.left == 0 {
            return Ok(Next::End);
        }
        if self.taken == self.ready.len() && !self.read()? {
            // A trace that takes no time is not begun anew for ever, nor one without reads and writes, of which a limit is never reached.
            let takes_time = match self.pace {
                Pace::Open { .. } => self.last_ns > self.lap_ns,
                Pace::Closed { .. } => true,
            };
            let goes_on = takes_time && self.of_lap > 0;
            if self.repeat && goes_on {
                self.of_lap = 0;
                self.lap_ns = self.last_ns;
                self.first_ns = None;
                return Ok(Next::Again);
            }
            return Ok(Next::End);
        }
        let request = self.ready[self.taken];
        self.taken += 1;
        let is_served = u64::from(matches!(request.kind, RequestKind::Read | RequestKind::Write));
        self.of_lap += is_served;
        self.left -= is_served;
        let at = self.time_of(&request);
        Ok(if at >= self.stop_ns { Next::End } else { Next::Request(at, request) })
    }

    /// The first request's time in the trace, for traces that are to be aligned; it is not taken.
    pub(super) fn peek_first_ns(&mut self) -> Result<Option<u64>, S::Error> {
        if self.taken == self.ready.len() {
            self.read()?;
        }
        Ok(self.ready.get(self.taken).map(|request| request.time_ns))
    }

    /// The trace's times count from here.
    pub(super) fn begin_at(&mut self, first_ns: u64) {
        self.first_ns = Some(first_ns);
    }

    /// The trace's times count from 0, which is then.
    pub(super) fn clock_begins(&mut self, at_ns: u64) {
        (self.first_ns, self.lap_ns, self.last_ns) = (Some(0), at_ns, at_ns);
    }

    /// True if there are requests.
    fn read(&mut self) -> Result<bool, S::Error> {
        self.ready.clear();
        self.taken = 0;
        let Some(source) = &mut self.source else { return Ok(false) };
        source.read(&mut self.ready, READ)?;
        if self.ready.is_empty() {
            self.source = None;
        }
        Ok(!self.ready.is_empty())
    }

    /// Time never goes back: a request with an earlier time than one before it comes with that one.
    fn time_of(&mut self, request: &Request) -> u64 {
        let first = *self.first_ns.get_or_insert(request.time_ns);
        let of_trace = request.time_ns.saturating_sub(first);
        let scaled = match self.pace {
            Pace::Open { rate } => (of_trace as f64 / rate) as u64,
            Pace::Closed { .. } => 0,
        };
        self.last_ns = self.last_ns.max(self.lap_ns.saturating_add(scaled));
        self.start_ns.saturating_add(self.last_ns)
    }
}

/// Nanoseconds of so many seconds; a negative time is none.
pub(super) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requests;

    fn trace(times: &[u64]) -> Requests<std::vec::IntoIter<Request>> {
        let request =
            |&time_ns: &u64| Request { time_ns, volume: 0, kind: RequestKind::Read, offset: 0, len: 4096 };
        Requests(times.iter().map(request).collect::<Vec<_>>().into_iter())
    }

    fn times(plan: &TenantPlan, limit: Option<u64>) -> Vec<u64> {
        let times = [5_000_000_000, 7_000_000_000, 6_000_000_000, 9_000_000_000];
        let mut arrivals = Arrivals::new(plan, trace(&times), None, limit);
        let mut seen = Vec::new();
        loop {
            match arrivals.next().expect("it can be read") {
                Next::Request(at, _) => seen.push(at / 1_000_000),
                Next::Again => arrivals.reopened(trace(&times)),
                Next::End => return seen,
            }
        }
    }

    #[test]
    fn a_trace_begins_when_its_tenant_comes() {
        let plan = TenantPlan { start_seconds: 1.0, ..TenantPlan::new("t") };
        assert_eq!(times(&plan, None), [1000, 3000, 3000, 5000]);
        assert_eq!(times(&plan, Some(2)), [1000, 3000]);
        assert_eq!(times(&TenantPlan { stop_seconds: Some(4.0), ..plan.clone() }, None), [1000, 3000, 3000]);
        assert_eq!(
            times(&TenantPlan { pace: Pace::Open { rate: 2.0 }, ..plan }, None),
            [1000, 2000, 2000, 3000]
        );
    }

    #[test]
    fn a_trace_may_begin_anew() {
        let plan = TenantPlan { repeat: true, stop_seconds: Some(7.0), ..TenantPlan::new("t") };
        assert_eq!(times(&plan, None), [0, 2000, 2000, 4000, 4000, 6000, 6000]);
        let mut nothing = Arrivals::new(&plan, trace(&[]), None, None);
        assert!(matches!(nothing.next(), Ok(Next::End)));
    }

    #[test]
    fn a_trace_without_reads_and_writes_does_not_begin_anew() {
        for pace in [Pace::Open { rate: 1.0 }, Pace::Closed { outstanding: 2 }] {
            let discard =
                |time_ns| Request { time_ns, volume: 0, kind: RequestKind::Discard, offset: 0, len: 4096 };
            let plan = TenantPlan { repeat: true, pace, ..TenantPlan::new("t") };
            let source = Requests([discard(0), discard(1_000_000_000)].into_iter());
            let mut arrivals = Arrivals::new(&plan, source, None, Some(10));
            for _ in 0..2 {
                assert!(matches!(arrivals.next(), Ok(Next::Request(..))));
            }
            assert!(matches!(arrivals.next(), Ok(Next::End)));
        }
    }
}
