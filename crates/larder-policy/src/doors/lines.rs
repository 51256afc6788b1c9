//! How long a write would wait, for the SSD and past it: lines of those under way.
//!
//! Guests write in bursts. A thousand writes at once wait in line before one device while the other has nothing to do, whatever each of them is worth in the mean. What a line waits follows from two
//! numbers that hold for lines of any length: how much of it is under way, over the most that was seen to leave it per second. Large writes go to several disks, or chips, of a device: each
//! [`STRIPE_BYTES`] of them counts.
//!
//! A device that serves many at a time is seldom seen at its limit, and what leaves it tells nothing then. So it is also remembered behind how much nothing had to wait. A line of twice that is
//! taken not to wait either, and so tried: a disk array shows within some milliseconds what it can, and a single disk that it can do one thing at a time. Whether
//! a write waited is told by the least that one of its size took.

/// What a device takes at a time.
const STRIPE_BYTES: u64 = 64 << 10;

/// What leaves is counted over so many nanoseconds at least.
const WINDOW_NS: u64 = 10_000_000;

/// A device that gets slower is seen to be so within about as many windows in which writes had to wait.
const SLOWER: f64 = 16.0;

/// Of a device of which nothing is known: behind so many stripes nothing waits.
const UNQUEUED: f64 = 8.0;

/// Nothing waits in a line so many times as long as the longest in which that was seen: until it is seen otherwise.
const TRIED: f64 = 2.0;

/// What took less than so many times the least of its size did not wait.
const AT_ONCE: u64 = 2;

/// Nor did what took less than so many nanoseconds, as far as anybody goes another way for it.
const SOON_NS: u64 = 1_000_000;

/// Sizes of writes that are told apart, each up to twice the one before, the last up to a stripe: on a device that serves many at a time a large one takes several times as long by itself.
const SIZES: usize = 6;

/// One that did not wait where others of its line do was lucky: so many make a line longer by as much as was seen.
const LUCK: f64 = 4.0;

/// Writes under way to one device.
#[derive(Clone, Debug)]
pub(super) struct Line {
    stripes: u64,
    /// Since when what leaves is counted, and what has left since.
    since_ns: u64,
    left: u64,
    /// When the last of it did.
    last_ns: u64,
    /// Writes had to wait when the window began.
    waited: bool,
    /// Stripes per nanosecond that leave where writes wait; 0 as long as nothing has left.
    rate: f64,
    /// The least that a write of each size took.
    least_ns: [u64; SIZES],
    /// Behind so many stripes nothing had to wait.
    unqueued: f64,
    /// That was seen, or otherwise.
    learned: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            stripes: 0,
            since_ns: 0,
            left: 0,
            last_ns: 0,
            waited: false,
            rate: 0.0,
            least_ns: [u64::MAX; SIZES],
            unqueued: UNQUEUED,
            learned: false,
        }
    }
}

/// Of a write of so many bytes.
pub(super) fn stripes(bytes: u64) -> u64 {
    bytes.div_ceil(STRIPE_BYTES)
}

/// Which of the sizes a write of so many bytes has.
fn size(bytes: u64) -> usize {
    let halves = (STRIPE_BYTES / bytes.max(1)).checked_ilog2().unwrap_or(0) as usize;
    (SIZES - 1).saturating_sub(halves)
}

impl Line {
    /// One more comes now: how many stripes are ahead of it.
    #[inline]
    pub(super) fn enter(&mut self, stripes: u64, now_ns: u64) -> u64 {
        self.look(now_ns);
        let ahead = self.stripes;
        self.stripes += stripes;
        ahead
    }

    /// One of so many bytes ends now, behind so many stripes and after so long, or fails.
    #[inline]
    pub(super) fn leave(&mut self, bytes: u64, ahead: u64, took_ns: Option<u64>, now_ns: u64) {
        self.look(now_ns);
        let stripes = stripes(bytes);
        self.stripes = self.stripes.saturating_sub(stripes);
        if let Some(took_ns) = took_ns.map(|took_ns| took_ns.max(1)) {
            // One of several stripes takes longer by itself, and the first one tells nothing of how long others take.
            if let Some(least_ns) = self.least_of(size(bytes)).filter(|_| stripes == 1) {
                self.learn(ahead as f64, took_ns, least_ns);
            }
            let least_ns = &mut self.least_ns[size(bytes)];
            *least_ns = took_ns.min(*least_ns);
            self.left += stripes;
            self.last_ns = now_ns;
        }
    }

    /// The least that one of this size can be taken to take: no more than a larger one did, nor than a smaller one did as many times as it is larger. Some sizes may never come alone.
    #[inline]
    fn least_of(&self, size: usize) -> Option<u64> {
        let known = self.least_ns.iter().enumerate().filter(|(_, least_ns)| **least_ns < u64::MAX);
        known.map(|(of, &least_ns)| least_ns.saturating_mul(1 << size.saturating_sub(of))).min()
    }

    #[inline]
    fn learn(&mut self, ahead: f64, took_ns: u64, least_ns: u64) {
        self.learned = true;
        if took_ns < least_ns.saturating_mul(AT_ONCE).max(SOON_NS) {
            self.unqueued += (ahead - self.unqueued).max(0.0) / LUCK;
            return;
        }
        // What waited in a line that was taken not to wait shows that it is too long.
        let seen = if ahead < self.unqueued { ahead } else { (ahead - 1.0) / TRIED };
        self.unqueued -= (self.unqueued - seen).max(0.0) / SLOWER;
    }

    #[inline]
    fn look(&mut self, now_ns: u64) {
        // What leaves at one moment counts together.
        if now_ns > self.last_ns && now_ns.saturating_sub(self.since_ns) >= WINDOW_NS {
            self.end_window(now_ns);
        }
    }

    /// A window ends when something left, or where nothing did for as long.
    fn end_window(&mut self, now_ns: u64) {
        let counted_ns = self.last_ns.saturating_sub(self.since_ns);
        let silent_ns = now_ns.saturating_sub(self.last_ns.max(self.since_ns));
        let (counted_ns, end_ns) = match self.stripes > 0 {
            true if counted_ns >= WINDOW_NS => (counted_ns, self.last_ns),
            true if silent_ns >= WINDOW_NS => (now_ns - self.since_ns, now_ns),
            true => return,
            // Nothing was there any more that could leave.
            false => (counted_ns.max(WINDOW_NS), now_ns),
        };
        let rate = self.left as f64 / counted_ns as f64;
        let waits = self.behind_ns() > 0;
        if rate > self.rate {
            self.rate = rate;
        } else if self.waited && waits {
            self.rate -= (self.rate - rate) / SLOWER;
        }
        (self.since_ns, self.left, self.waited) = (end_ns, 0, waits);
    }

    /// So little is under way that nothing waits.
    #[inline]
    fn is_short(&self) -> bool {
        (self.stripes as f64) < TRIED * self.unqueued
    }

    /// What the device can is known, or so little is under way that it may be tried: it may be a disk that is busy for seconds with what an SSD takes in a millisecond.
    #[inline]
    pub(super) fn may_be_tried(&self) -> bool {
        self.rate > 0.0 || self.is_short()
    }

    /// How long one that comes now would wait before its turn, in nanoseconds; 0 if that is not known.
    #[inline]
    pub(super) fn wait_ns(&self) -> u64 {
        if self.learned && self.is_short() { 0 } else { self.behind_ns() }
    }

    /// What is under way takes so long at the most that was seen to leave, but for what one takes itself; 0 if that is not known.
    #[inline]
    fn behind_ns(&self) -> u64 {
        if self.rate > 0.0 {
            let least_ns = self.least_ns.iter().min().copied().unwrap_or(0);
            ((self.stripes as f64 / self.rate) as u64).saturating_sub(least_ns)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A device that serves eight stripes at a time, each in this many milliseconds.
    struct Device {
        line: Line,
        now: u64,
        each: u64,
    }

    impl Device {
        /// So many writes of one stripe come at once; all end.
        fn burst(&mut self, writes: u64) {
            let began = self.now;
            let mut ahead = (0..writes).map(|_| self.line.enter(1, began)).collect::<Vec<_>>().into_iter();
            while ahead.len() > 0 {
                self.now += self.each * MS;
                for ahead in ahead.by_ref().take(8) {
                    self.line.leave(STRIPE_BYTES, ahead, Some(self.now - began), self.now);
                }
            }
            // Some time later.
            self.now += 1000 * MS;
        }

        fn wait_behind(&self, writes: u64) -> f64 {
            let mut line = self.line.clone();
            line.enter(writes, self.now);
            line.wait_ns() as f64 / MS as f64
        }
    }

    #[test]
    fn a_line_longer_than_any_seen_waits_accordingly() {
        let mut device = Device { line: Line::default(), now: 0, each: 2 };
        assert_eq!(device.wait_behind(1000), 0.0);
        device.burst(400);
        assert_eq!(device.line.stripes, 0);
        // 4 stripes leave each millisecond; the last to be served takes 2 of them itself.
        for (writes, waits) in [(0, 0.0), (8, 0.0), (80, 18.0), (8000, 1998.0)] {
            let seen = device.wait_behind(writes);
            assert!((seen - waits).abs() <= 0.1 * waits, "{writes}: {seen}, {waits}");
        }
    }

    #[test]
    fn a_device_may_get_slower_and_faster() {
        let mut device = Device { line: Line::default(), now: 0, each: 2 };
        device.burst(400);
        device.each = 4;
        // Of each burst the windows count before which, and after which, others wait.
        (0..8).for_each(|_| device.burst(400));
        let slow = device.wait_behind(800);
        assert!((350.0..=400.0).contains(&slow), "{slow}");
        device.each = 2;
        device.burst(400);
        let fast = device.wait_behind(800);
        assert!((180.0..=200.0).contains(&fast), "{fast}");
    }

    #[test]
    fn what_is_not_waited_for_makes_no_device_slow() {
        let mut device = Device { line: Line::default(), now: 0, each: 2 };
        device.burst(400);
        let before = device.line.rate;
        (0..100).for_each(|_| device.burst(1));
        assert_eq!(device.line.rate, before);
        device.line.enter(3, device.now);
        device.line.leave(3 * STRIPE_BYTES, 0, None, device.now);
        assert_eq!(device.line.stripes, 0);
        // Of a line that was there before it is not known how long it is.
        device.line.leave(5 * STRIPE_BYTES, 0, Some(MS), device.now);
        assert_eq!(device.line.stripes, 0);
    }

    /// A device that serves 128 at a time is never seen at its limit by bursts of which each is a little longer than the last, and one that serves a single one soon is.
    #[test]
    fn longer_lines_are_tried_until_one_waits() {
        let bursts = |parallel: u64| {
            let (mut line, mut now) = (Line::default(), 0);
            let mut tried = Vec::new();
            for _ in 0..60 {
                let began = now;
                let mut ahead = Vec::new();
                while line.may_be_tried() && line.wait_ns() == 0 && ahead.len() < 1000 {
                    ahead.push(line.enter(1, began));
                }
                for (at, ahead) in ahead.iter().enumerate() {
                    let took = (1 + at as u64 / parallel) * 2 * MS;
                    now = began + took;
                    line.leave(STRIPE_BYTES, *ahead, Some(took), now);
                }
                now += 1000 * MS;
                tried.push(ahead.len());
            }
            tried
        };
        assert_eq!(bursts(128)[..4], [16, 25, 43, 79]);
        // As long a line as keeps all of it busy, and the same again: half of that wait for 2 ms.
        assert!(bursts(128)[5..].iter().all(|tried| (128..=256).contains(tried)), "{:?}", bursts(128));
        let alone = bursts(1);
        assert!(alone[0] == 16 && alone[11] <= 8 && alone[59] <= 3, "{alone:?}");
    }

    /// One disk that always has so many to serve, with a cache of its own that takes one of 40 at once.
    #[test]
    fn a_line_that_never_ends_is_known_to_wait() {
        for (depth, lucky) in [(12, false), (15, false), (32, true)] {
            let mut device = Device { line: Line::default(), now: 0, each: 2 };
            let mut waiting = std::collections::VecDeque::new();
            (0..depth).for_each(|_| waiting.push_back((0, device.line.enter(1, 0))));
            for turn in 1..2000 {
                device.now += device.each * MS;
                let (began, ahead) = waiting.pop_front().expect("one");
                let took = if lucky && turn % 40 == 0 { device.each * MS } else { device.now - began };
                device.line.leave(STRIPE_BYTES, ahead, Some(took), device.now);
                waiting.push_back((device.now, device.line.enter(1, device.now)));
            }
            let waits = device.line.wait_ns() / MS;
            assert!(
                (2 * depth - 4..=2 * depth).contains(&waits),
                "{depth}: {waits} ms, {}",
                device.line.unqueued
            );
        }
    }

    #[test]
    fn a_large_write_that_takes_its_time_has_not_waited() {
        let mut line = Line::default();
        line.leave(STRIPE_BYTES, 0, Some(MS), MS);
        for took_ms in [2, 40] {
            let ahead = line.enter(16, 0);
            line.leave(16 * STRIPE_BYTES, ahead, Some(took_ms * MS), took_ms * MS);
        }
        assert_eq!(line.unqueued, UNQUEUED);
    }

    /// An SSD that takes 0.1 ms for a write of 4 KiB, and 1.4 ms for one of 64 KiB, whatever else is under way: a few of both at once wait for nothing.
    #[test]
    fn a_write_of_another_size_takes_its_own_time() {
        let mut line = Line::default();
        let mut now = 0;
        for _ in 0..50 {
            let began = now;
            let ahead = [0; 6].map(|_| line.enter(1, began));
            for (at, ahead) in ahead.into_iter().enumerate() {
                let (bytes, took) = if at < 3 { (4096, MS / 10) } else { (STRIPE_BYTES, 14 * MS / 10) };
                now = began + took;
                line.leave(bytes, ahead, Some(took), now);
            }
            now += 50 * MS;
        }
        line.enter(6, now);
        assert_eq!((line.unqueued, line.wait_ns()), (UNQUEUED, 0));
    }

    /// A burst that is over within the millisecond that makes nobody go another way.
    #[test]
    fn what_is_over_soon_has_not_waited() {
        let mut line = Line::default();
        let mut now = 0;
        for _ in 0..50 {
            let began = now;
            let ahead: Vec<_> = (0..20).map(|_| line.enter(1, began)).collect();
            for (at, ahead) in (1..).zip(ahead) {
                now = began + at * MS / 25;
                line.leave(4096, ahead, Some(at * MS / 25), now);
            }
            now += 50 * MS;
        }
        line.enter(30, now);
        assert_eq!(line.wait_ns(), 0);
    }

    /// A disk that serves one at a time, where large writes come behind many small ones alone.
    #[test]
    fn a_size_that_always_waits_is_known_to() {
        let mut device = Device { line: Line::default(), now: 0, each: 2 };
        for _ in 0..50 {
            let began = device.now;
            let ahead: Vec<_> = (0..55).map(|_| device.line.enter(1, began)).collect();
            for (at, ahead) in ahead.into_iter().enumerate() {
                device.now += 2 * MS;
                let bytes = if at < 50 { 4096 } else { STRIPE_BYTES };
                device.line.leave(bytes, ahead, Some(device.now - began), device.now);
            }
            device.now += 1000 * MS;
        }
        assert!(device.line.unqueued < 16.0, "{}", device.line.unqueued);
        assert!(device.wait_behind(100) > 150.0);
    }

    #[test]
    fn sizes_are_told_apart_by_powers_of_two() {
        assert_eq!(
            [0, 1, 512, 2048, 2049, 4096, 8192, 32_768, 32_769, 65_536, 1 << 30].map(size),
            [0, 0, 0, 0, 1, 1, 2, 4, 5, 5, 5]
        );
    }

    #[test]
    fn large_writes_count_by_their_stripes() {
        assert_eq!([0, 1, 4096, 65_536, 65_537, 1 << 20].map(stripes), [0, 1, 1, 1, 2, 16]);
    }
}
