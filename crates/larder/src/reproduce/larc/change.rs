//! A sudden change of popularity, as figure 8 of the paper shows it: hit ratio and replacement rate interval by interval.

use std::ops::Range;

use larder_policy::spec::PolicySpec;

use super::study::Tally;

/// Block accesses of an interval: "we further broke the synthetic trace ws_con into epochs of 100,000 requests", which are of one block each.
const EPOCH: u64 = 100_000;

/// Least and most intervals before the change: a short trace has shorter ones, a long one longer.
const INTERVALS: (u64, u64) = (20, 2000);

/// Intervals over which a level is taken: before the change, and at the end.
const LEVEL: usize = 5;

/// The share of a level that counts as back at it.
const BACK: f64 = 0.9;

/// The share of the footprint at which the change is looked at; the paper does not say its own.
const SHARE: f64 = 0.1;

/// The change in a cache of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The size.
    pub cache_blocks: u64,
    /// Block accesses of an interval; of the last one, at most.
    pub every: u64,
    /// The first interval of the second part.
    pub at: usize,
    /// Each policy's counts, interval by interval.
    pub series: Vec<(PolicySpec, Vec<Tally>)>,
}

/// How a policy took the change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Response {
    /// Over the last intervals before the change.
    pub before: Tally,
    /// In the interval after it.
    pub after: Tally,
    /// The highest replacement rate of the first few intervals after it.
    pub replacement_peak: f64,
    /// Over the last intervals of all.
    pub end: Tally,
    /// Block accesses from the change until an interval's hit ratio was back at nine tenths of that before, if ever.
    pub back_after: Option<u64>,
    /// Until it was at nine tenths of that at the end.
    pub settled_after: Option<u64>,
}

/// The length of intervals such that the change, after so many block accesses, is between two of them (but for a handful of accesses).
pub fn interval(accesses_before: u64) -> u64 {
    let count = ((accesses_before + EPOCH / 2) / EPOCH).clamp(INTERVALS.0, INTERVALS.1);
    accesses_before.div_ceil(count).max(1)
}

/// Which of these sizes is nearest, as a ratio, to the one at which the change is looked at.
pub fn nearest_size(sizes: &[u64], footprint: u64) -> usize {
    let wanted = (footprint as f64 * SHARE).max(1.0);
    let distance = |&blocks: &u64| (blocks as f64 / wanted).ln().abs();
    let by_distance = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    sizes.iter().map(distance).enumerate().min_by(by_distance).map_or(0, |(at, _)| at)
}

impl Change {
    /// From the series of a cache; the change came after `accesses_before` block accesses.
    pub fn new(cache_blocks: u64, accesses_before: u64, series: Vec<(PolicySpec, Vec<Tally>)>) -> Self {
        let every = interval(accesses_before);
        let at = usize::try_from(accesses_before.div_ceil(every)).unwrap_or(usize::MAX);
        Self { cache_blocks, every, at, series }
    }

    /// How a policy took it; all zero if it was not run, or if nothing comes after the change.
    pub fn response(&self, policy: PolicySpec) -> Response {
        let series = self.series.iter().find(|(of, _)| *of == policy).map_or(&[][..], |(_, series)| series);
        let (before, after) = series.split_at(self.at.min(series.len()));
        let Some(&first) = after.first() else { return Response::default() };
        let level = |part: &[Tally]| part[part.len().saturating_sub(LEVEL)..].iter().copied().sum::<Tally>();
        let (before, end) = (level(before), level(after));
        let soon = &after[..after.len().min(LEVEL)];
        Response {
            before,
            after: first,
            replacement_peak: soon.iter().map(Tally::replacement_rate).fold(0.0, f64::max),
            end,
            back_after: reaches(after, before.hit_ratio()),
            settled_after: reaches(after, end.hit_ratio()),
        }
    }

    /// The intervals around the change that a reader wants to see.
    pub fn around(&self) -> Range<usize> {
        let count = self.series.iter().map(|(_, series)| series.len()).max().unwrap_or(0);
        self.at.saturating_sub(3).min(count)..self.at.saturating_add(10).min(count)
    }
}

/// Block accesses to the end of the first interval that is back at a level.
fn reaches(intervals: &[Tally], level: f64) -> Option<u64> {
    let at = intervals.iter().position(|interval| interval.hit_ratio() >= BACK * level)?;
    Some(intervals[..=at].iter().map(|interval| interval.accesses).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(hits: u64, replacements: u64) -> Tally {
        Tally { accesses: 100, hits, write_hits: 0, replacements }
    }

    #[test]
    fn intervals_end_at_the_change() {
        for before in [1, 19, 20, 21, 1000, 999_999, 17_100_000, 3_000_000_000] {
            let every = interval(before);
            let at = before.div_ceil(every);
            assert!(at * every - before < every.max(2).min(INTERVALS.1), "{before}: {at} of {every}");
        }
        assert_eq!(interval(17_100_000), EPOCH);
        assert_eq!(interval(2000), 100);
    }

    #[test]
    fn the_nearest_size_is_a_tenth() {
        assert_eq!(nearest_size(&[10, 90, 200], 1000), 1);
        assert_eq!(nearest_size(&[10, 31], 1000), 1);
        assert_eq!(nearest_size(&[7], 0), 0);
    }

    #[test]
    fn a_response_is_told_by_its_intervals() {
        let mut larc =
            vec![tally(10, 9), tally(50, 1), tally(50, 1), tally(50, 1), tally(50, 3), tally(50, 4)];
        larc.extend([
            tally(5, 2),
            tally(20, 8),
            tally(44, 6),
            tally(45, 4),
            tally(30, 3),
            tally(30, 3),
            tally(30, 3),
        ]);
        let change = Change { at: 6, ..Change::new(7, 600, vec![(PolicySpec::Larc, larc)]) };
        let response = change.response(PolicySpec::Larc);
        assert_eq!((response.before.hit_ratio(), response.before.replacement_rate()), (0.5, 0.02));
        assert_eq!((response.after, response.replacement_peak), (tally(5, 2), 0.08));
        assert_eq!((response.back_after, response.settled_after), (Some(400), Some(300)));
        assert_eq!(response.end.hits, 44 + 45 + 3 * 30);
        assert_eq!(change.response(PolicySpec::Lru), Response::default());
        assert_eq!(change.around(), 3..13);
    }

    #[test]
    fn a_change_with_nothing_after_it_has_no_response() {
        let change = Change::new(7, 300, vec![(PolicySpec::Larc, vec![tally(1, 1); 3])]);
        assert_eq!(change.response(PolicySpec::Larc), Response::default());
        assert!(change.around().is_empty() || change.around().end <= 3);
    }
}
