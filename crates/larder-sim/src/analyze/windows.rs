//! Requests and their classes over time: windows of equal length, by time and by requests, of which one is told in the end.

use larder_locality::ClassCounts;
use larder_trace::RequestKind;

use super::axis::{Axis, SHORTEST_NS, Step, fold, is_told_by_time};
use crate::Window;
use crate::batch::Begun;
use crate::clock::Start;

/// Windows at most: as many as a picture can show, and 48 at least if the trace is long enough.
const MOST: usize = 96;

/// The windows.
#[derive(Debug)]
pub(crate) struct Windows {
    by_time: Series,
    by_requests: Series,
    /// All classes up to the last call of [`Windows::count`].
    classes: ClassCounts,
}

#[derive(Debug)]
struct Series {
    axis: Axis,
    windows: Vec<Window>,
}

impl Windows {
    pub(crate) fn new() -> Self {
        let series = |width| Series { axis: Axis::new(width, MOST), windows: Vec::new() };
        Self { by_time: series(SHORTEST_NS), by_requests: series(1), classes: ClassCounts::default() }
    }

    /// True if a request here begins a window: then what came before it must be counted first.
    #[inline]
    pub(crate) fn begins(&self, at: Start) -> bool {
        self.by_time.axis.leaves(at.ns) || self.by_requests.axis.leaves(at.requests)
    }

    /// Take the request that comes next.
    #[inline]
    pub(crate) fn request(&mut self, begun: &Begun) {
        let Begun { at, request, .. } = begun;
        if matches!(request.kind, RequestKind::Read | RequestKind::Write) {
            self.by_time.request(at.ns, *at, request.kind);
            self.by_requests.request(at.requests, *at, request.kind);
        }
    }

    /// All accesses so far, by class: those since the last time are of the windows under way.
    pub(crate) fn count(&mut self, classes: ClassCounts) {
        // Estimates may fall.
        let new = each(classes, self.classes, u64::saturating_sub);
        for series in [&mut self.by_time, &mut self.by_requests] {
            if let Some(window) = series.windows.last_mut() {
                window.classes = each(window.classes, new, |a, b| a + b);
            }
        }
        self.classes = classes;
    }

    /// The windows of a trace of this length.
    pub(crate) fn finish(self, elapsed_ns: u64) -> Vec<Window> {
        let by_time = is_told_by_time(elapsed_ns);
        let Series { axis, mut windows } = if by_time { self.by_time } else { self.by_requests };
        if by_time {
            (0..).zip(&mut windows).for_each(|(at, window)| window.start_ns = at * axis.width());
        }
        let ends: Vec<_> = windows.iter().skip(1).map(|window| window.start_ns).chain([elapsed_ns]).collect();
        for (window, end) in windows.iter_mut().zip(ends) {
            window.ns = end.saturating_sub(window.start_ns);
        }
        windows
    }
}

impl Series {
    #[inline]
    fn request(&mut self, place: u64, at: Start, kind: RequestKind) {
        if let Step::On { folds } = self.axis.go(place) {
            fold(&mut self.windows, folds, join);
        }
        while self.windows.len() < self.axis.bins() {
            self.windows.push(Window { first_request: at.requests, start_ns: at.ns, ..Window::default() });
        }
        if let Some(window) = self.windows.last_mut() {
            *if kind == RequestKind::Read { &mut window.reads } else { &mut window.writes } += 1;
        }
    }
}

fn join(first: &mut Window, second: Window) {
    first.reads += second.reads;
    first.writes += second.writes;
    first.classes = each(first.classes, second.classes, |a, b| a + b);
}

fn each(a: ClassCounts, b: ClassCounts, of: impl Fn(u64, u64) -> u64) -> ClassCounts {
    ClassCounts {
        cr: of(a.cr, b.cr),
        cw: of(a.cw, b.cw),
        rar: of(a.rar, b.rar),
        raw: of(a.raw, b.raw),
        war: of(a.war, b.war),
        waw: of(a.waw, b.waw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_trace::Request;
    use proptest::prelude::*;

    /// Requests at these times, every third a write, each of one access of class `cr`.
    fn windows(times: &[u64]) -> Vec<Window> {
        let mut windows = Windows::new();
        let mut classes = ClassCounts::default();
        for (number, &ns) in (0..).zip(times) {
            let kind = if number % 3 == 0 { RequestKind::Write } else { RequestKind::Read };
            let at = Start { requests: number, ns };
            if windows.begins(at) {
                windows.count(classes);
            }
            let request = Request { time_ns: ns, volume: 0, kind, offset: 0, len: 1 };
            windows.request(&Begun { piece: 0, at, request });
            classes.cr += 1;
        }
        windows.count(classes);
        windows.finish(times.last().copied().unwrap_or(0))
    }

    proptest! {
        #[test]
        fn each_request_is_in_one_window(gaps in prop::collection::vec(prop_oneof![0u64..1_000_000, 0u64..1 << 40], 0..300)) {
            let times: Vec<_> = gaps.iter().scan(0, |now, gap| { *now += gap; Some(*now) }).collect();
            let windows = windows(&times);
            prop_assert!(windows.len() <= MOST);
            let sum: u64 = windows.iter().map(|window| window.ns).sum();
            prop_assert_eq!(sum, times.last().copied().unwrap_or(0) - windows.first().map_or(0, |first| first.start_ns));
            for (at, window) in windows.iter().enumerate() {
                let end = windows.get(at + 1).map_or(times.len() as u64, |next| next.first_request);
                let within = end - window.first_request;
                prop_assert_eq!(window.reads + window.writes, within, "{:?}", windows);
                prop_assert_eq!(window.classes.total(), within);
                let writes = (window.first_request..end).filter(|number| number % 3 == 0).count();
                prop_assert_eq!(window.writes, writes as u64);
                if let (true, Some(&first)) = (within > 0, times.get(window.first_request as usize)) {
                    prop_assert!(first >= window.start_ns);
                    prop_assert!(times[end as usize - 1] <= window.start_ns + window.ns);
                }
            }
        }
    }

    #[test]
    fn a_trace_with_times_has_windows_by_time_and_empty_ones() {
        const SECOND: u64 = 1_000_000_000;
        let windows = windows(&[0, SECOND, 2 * SECOND, 50 * SECOND]);
        let told: Vec<_> =
            windows.iter().map(|window| (window.start_ns / SECOND, window.reads + window.writes)).collect();
        assert_eq!(told.len(), 51);
        assert_eq!((told[0], told[1], told[2], told[3], told[50]), ((0, 1), (1, 1), (2, 1), (3, 0), (50, 1)));
        assert!(windows[..50].iter().all(|window| window.ns == SECOND));
        assert_eq!((windows[3].first_request, windows[50].ns), (3, 0));
    }

    #[test]
    fn a_trace_without_times_has_windows_by_requests() {
        let windows = windows(&[7; 200]);
        assert_eq!(windows.len(), 50);
        assert!(windows.iter().all(|window| window.reads + window.writes == 4));
        assert_eq!((windows[49].first_request, windows[49].ns), (196, 0));
    }

    #[test]
    fn nothing_has_no_windows_and_one_request_has_one() {
        assert_eq!(windows(&[]), []);
        let one = windows(&[0]);
        assert_eq!((one.len(), one[0].writes, one[0].ns, one[0].classes.cr), (1, 1, 0, 1));
    }
}
