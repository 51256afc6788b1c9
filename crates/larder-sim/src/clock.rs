//! When counting starts, and where intervals begin: by requests, or by the trace's own time.

use larder_trace::{Request, RequestKind};

use crate::batch::Cut;

/// A length of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// So many reads and writes.
    Requests(u64),
    /// So many nanoseconds of the trace's time.
    TimeNs(u64),
}

/// Where in the trace a request stands, or an interval begins: at its first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// Reads and writes before it.
    pub(crate) requests: u64,
    /// Nanoseconds from the trace's first request to it; never fewer than to the one before.
    pub(crate) ns: u64,
}

/// Watches requests go by. Time never goes back here: a request with an earlier time than one before it counts as issued with that one.
#[derive(Debug)]
pub(crate) struct Clock {
    warmup: Span,
    every: Option<Span>,
    first_ns: Option<u64>,
    now_ns: u64,
    requests: u64,
    /// The intervals so far; with `every`, the last one is under way. Empty during the warm-up.
    intervals: Vec<Start>,
    /// Steps of time from the start of counting to the interval under way.
    steps: u64,
}

impl Clock {
    pub(crate) fn new(warmup: Span, every: Option<Span>) -> Self {
        Self { warmup, every, first_ns: None, now_ns: 0, requests: 0, intervals: Vec::new(), steps: 0 }
    }

    /// What comes before this request.
    pub(crate) fn tick(&mut self, request: &Request) -> Option<Cut> {
        self.now_ns = self.now_ns.max(request.time_ns);
        let first_ns = *self.first_ns.get_or_insert(self.now_ns);
        let here = Start { requests: self.requests, ns: self.now_ns - first_ns };
        let cut = self.cut(here);
        if cut.is_some() {
            self.intervals.push(here);
        }
        self.requests += u64::from(matches!(request.kind, RequestKind::Read | RequestKind::Write));
        cut
    }

    fn cut(&mut self, here: Start) -> Option<Cut> {
        let zero = Start { requests: 0, ns: 0 };
        let (Some(&measured), Some(&last)) = (self.intervals.first(), self.intervals.last()) else {
            return (steps(self.warmup, zero, here) > 0).then_some(Cut::Measure);
        };
        let begins = match self.every? {
            every @ Span::Requests(_) => steps(every, last, here) > 0,
            every => {
                let before = std::mem::replace(&mut self.steps, steps(every, measured, here));
                self.steps > before
            }
        };
        begins.then_some(Cut::Interval)
    }

    /// Reads and writes so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// True once the warm-up is over.
    pub(crate) fn measuring(&self) -> bool {
        !self.intervals.is_empty()
    }

    /// The intervals so far.
    pub(crate) fn intervals(&self) -> &[Start] {
        &self.intervals
    }

    /// The first request's time.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// Nanoseconds from the first request to the last.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.now_ns - self.first_ns.unwrap_or(self.now_ns)
    }
}

/// How often `span` fits between two places; a span of nothing has fitted from the start.
fn steps(span: Span, from: Start, to: Start) -> u64 {
    match span {
        Span::Requests(requests) => (to.requests - from.requests).checked_div(requests).unwrap_or(1),
        Span::TimeNs(ns) => (to.ns - from.ns).checked_div(ns).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(time_ns: u64) -> Request {
        Request { time_ns, volume: 0, kind: RequestKind::Read, offset: 0, len: 512 }
    }

    fn cuts(warmup: Span, every: Option<Span>, times: &[u64]) -> Vec<Option<Cut>> {
        let mut clock = Clock::new(warmup, every);
        times.iter().map(|&time| clock.tick(&read(time))).collect()
    }

    const M: Option<Cut> = Some(Cut::Measure);
    const I: Option<Cut> = Some(Cut::Interval);

    #[test]
    fn counting_starts_after_the_warm_up() {
        assert_eq!(cuts(Span::Requests(0), None, &[5, 6]), [M, None]);
        assert_eq!(cuts(Span::Requests(2), None, &[5, 6, 7, 8]), [None, None, M, None]);
        assert_eq!(cuts(Span::TimeNs(0), None, &[5, 6]), [M, None]);
        assert_eq!(cuts(Span::TimeNs(10), None, &[5, 14, 15, 99]), [None, None, M, None]);
        assert_eq!(cuts(Span::Requests(9), None, &[5, 6]), [None, None]);
    }

    #[test]
    fn intervals_follow_each_other() {
        let by_two = Some(Span::Requests(2));
        assert_eq!(cuts(Span::Requests(1), by_two, &[0; 6]), [None, M, None, I, None, I]);
        // Intervals are counted from the start of counting (15); those without requests are left out.
        let by_ten = Some(Span::TimeNs(10));
        assert_eq!(
            cuts(Span::TimeNs(10), by_ten, &[5, 15, 24, 26, 29, 35, 99]),
            [None, M, None, I, None, I, I]
        );
    }

    #[test]
    fn time_does_not_go_back() {
        let mut clock = Clock::new(Span::Requests(0), Some(Span::TimeNs(10)));
        let cuts: Vec<_> = [50, 61, 3, 62, 70].iter().map(|&time| clock.tick(&read(time))).collect();
        assert_eq!(cuts, [M, I, None, None, I]);
        let starts: Vec<_> = clock.intervals().iter().map(|start| (start.requests, start.ns)).collect();
        assert_eq!(starts, [(0, 0), (1, 11), (4, 20)]);
        assert_eq!((clock.requests(), clock.elapsed_ns(), clock.first_ns()), (5, 20, Some(50)));
    }

    #[test]
    fn flushes_are_no_requests() {
        let mut clock = Clock::new(Span::Requests(1), None);
        let flush = Request { kind: RequestKind::Flush, ..read(0) };
        assert_eq!([clock.tick(&flush), clock.tick(&read(0)), clock.tick(&flush)], [None, None, M]);
        assert_eq!(clock.requests(), 1);
    }
}
