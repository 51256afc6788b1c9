//! The beginnings of traces, alone and merged by time.

use larder_trace::Request;

use super::wastage::is_access;
use crate::reproduce::bench::Held;

/// The first seconds of a trace; its times begin at zero.
#[derive(Clone, Debug)]
pub struct Window {
    /// The reads and writes.
    pub requests: Held,
}

impl Window {
    /// The first so many seconds.
    pub fn first(trace: &Held, seconds: u64) -> Self {
        let start = trace.first().map_or(0, |request| request.time_ns);
        let inside = trace.iter().take_while(|request| request.time_ns - start < seconds * 1_000_000_000);
        let shifted = inside
            .filter(|request| is_access(request))
            .map(|request| Request { time_ns: request.time_ns - start, ..*request });
        Self { requests: shifted.collect() }
    }

    /// All of them by time, each tenant's volumes its own.
    pub fn merged(windows: &[Self]) -> Held {
        let mut all = Vec::new();
        let mut first_volume = 0;
        for window in windows {
            let renumbered =
                |request: &Request| Request { volume: first_volume + request.volume, ..*request };
            all.extend(window.requests.iter().map(renumbered));
            let volumes = window.requests.iter().map(|request| request.volume + 1).max();
            first_volume += volumes.unwrap_or(0);
        }
        // Stable: requests of the same time stay in the order of the tenants.
        all.sort_by_key(|request| request.time_ns);
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_trace::RequestKind;

    fn trace(start: u64, seconds: &[u64], volume: u32) -> Held {
        let request = |&at: &u64| Request {
            time_ns: start + at * 1_000_000_000,
            volume,
            kind: RequestKind::Read,
            offset: at * 4096,
            len: 4096,
        };
        seconds.iter().map(request).collect()
    }

    #[test]
    fn windows_merge_by_time_and_keep_volumes_apart() {
        let windows =
            [Window::first(&trace(77, &[0, 1, 5], 1), 5), Window::first(&trace(0, &[0, 4, 9], 0), 5)];
        let merged = Window::merged(&windows);
        let told: Vec<_> =
            merged.iter().map(|request| (request.time_ns / 1_000_000_000, request.volume)).collect();
        assert_eq!(told, [(0, 1), (0, 2), (1, 1), (4, 2)]);
    }
}
