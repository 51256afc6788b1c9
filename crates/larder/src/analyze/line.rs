//! What caches of one kind would do, at chosen sizes.

use larder_locality::{AtSize, CurvePolicy, PolicyCurves};
use larder_sim::BankCurve;

/// A cache of one kind over chosen sizes. Counts are in blocks but for requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Replacement and admission: `lru`, `arc+nth:3`.
    pub caching: String,
    /// The write policy, or `batched`.
    pub write: &'static str,
    /// Block reads of the trace.
    pub reads: u64,
    /// Block writes of the trace.
    pub writes: u64,
    /// Reads and writes of the trace.
    pub requests: u64,
    /// `(blocks, counts)` in rising order of size.
    pub points: Vec<(u64, AtSize)>,
}

impl Line {
    /// Of an LRU cache's curves, at these sizes in rising order.
    pub fn of_curves(curves: &PolicyCurves, sizes: &[u64]) -> Self {
        let counted = curves.counted();
        Self {
            caching: "lru".into(),
            write: curves.policy().as_str(),
            reads: counted.reads,
            writes: counted.writes,
            requests: counted.requests,
            points: sizes.iter().map(|&blocks| (blocks, curves.at(blocks))).collect(),
        }
    }

    /// Of scaled-down caches. `reads`, `writes` and `requests` are those of the trace.
    pub fn of_bank(curve: &BankCurve, [reads, writes, requests]: [u64; 3]) -> Self {
        Self {
            caching: curve.caching.to_string(),
            write: curve.write.as_str(),
            reads,
            writes,
            requests,
            points: curve
                .points
                .iter()
                .map(|&(blocks, counters)| (blocks, AtSize::from(&counters)))
                .collect(),
        }
    }

    /// True for the LRU cache of a policy.
    pub fn is_of(&self, policy: CurvePolicy) -> bool {
        self.is_lru() && self.write == policy.as_str()
    }

    /// True for LRU replacement that admits every block.
    pub fn is_lru(&self) -> bool {
        self.caching == "lru"
    }

    /// What the cache of a size counted, or what lies between the two sizes next to it; none beyond those that are known.
    pub fn value(&self, blocks: u64, count: impl Fn(&AtSize) -> u64) -> Option<f64> {
        let after = self.points.partition_point(|&(size, _)| size < blocks);
        let &(upper, ref at_upper) = self.points.get(after)?;
        let high = count(at_upper) as f64;
        if upper == blocks {
            return Some(high);
        }
        let &(lower, ref at_lower) = self.points.get(after.checked_sub(1)?)?;
        let low = count(at_lower) as f64;
        let share = (blocks as f64 / lower as f64).ln() / (upper as f64 / lower as f64).ln();
        Some(low + (high - low) * share)
    }

    /// Share of the block reads that a cache of this size serves; none without reads.
    pub fn read_hit_ratio(&self, blocks: u64) -> Option<f64> {
        ratio(self.value(blocks, |at| at.read_hits)?, self.reads)
    }

    /// Share of the requests that a cache of this size serves; none without requests.
    pub fn request_hit_ratio(&self, blocks: u64) -> Option<f64> {
        ratio(self.value(blocks, |at| at.request_hits)?, self.requests)
    }

    /// Share of the blocks written that reach the backing; none without writes.
    pub fn backing_write_ratio(&self, blocks: u64) -> Option<f64> {
        ratio(self.value(blocks, |at| at.backing_writes)?, self.writes)
    }

    /// Blocks written to the SSD.
    pub fn ssd_writes(&self, blocks: u64) -> Option<u64> {
        self.value(blocks, AtSize::ssd_writes).map(|writes| writes.round() as u64)
    }

    /// Blocks written to the backing.
    pub fn backing_writes(&self, blocks: u64) -> Option<u64> {
        self.value(blocks, |at| at.backing_writes).map(|writes| writes.round() as u64)
    }

    /// What tells it apart among others: `wb`, or `larc wb`.
    pub fn name(&self) -> String {
        if self.is_lru() { self.write.into() } else { format!("{} {}", self.caching, self.write) }
    }
}

/// Lines that a reader cannot tell apart by `key`, under all of their names: `wb, wt`.
pub fn merged<K: PartialEq>(lines: &[Line], key: impl Fn(&Line) -> K) -> Vec<(String, &Line)> {
    let mut groups: Vec<(String, &Line, K)> = Vec::new();
    for line in lines {
        let (name, own) = (line.name(), key(line));
        match groups.iter_mut().find(|(.., other)| *other == own) {
            Some((names, ..)) => names.extend([", ", &name]),
            None => groups.push((name, line, own)),
        }
    }
    groups.into_iter().map(|(names, line, _)| (names, line)).collect()
}

fn ratio(part: f64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(write: &'static str, points: &[(u64, u64)]) -> Line {
        let at = |&(blocks, read_hits)| (blocks, AtSize { read_hits, ..AtSize::default() });
        let points = points.iter().map(at).collect();
        Line { caching: "lru".into(), write, reads: 100, writes: 0, requests: 0, points }
    }

    #[test]
    fn between_two_sizes_is_a_value_between() {
        let line = line("wb", &[(4, 10), (16, 30), (64, 30)]);
        let ratios = [4, 8, 16, 32, 64].map(|blocks| line.read_hit_ratio(blocks));
        assert_eq!(ratios, [0.1, 0.2, 0.3, 0.3, 0.3].map(Some));
        assert_eq!([line.read_hit_ratio(3), line.read_hit_ratio(65)], [None, None]);
        assert_eq!((line.request_hit_ratio(4), line.backing_write_ratio(4)), (None, None));
    }

    #[test]
    fn lines_that_look_alike_are_one() {
        let lines = [line("wb", &[(1, 5)]), line("ro", &[(1, 4)]), line("wt", &[(1, 5)])];
        let names: Vec<_> =
            merged(&lines, |line| line.ssd_writes(1)).into_iter().map(|group| group.0).collect();
        assert_eq!(names, ["wb, ro, wt"]);
        let names: Vec<_> =
            merged(&lines, |line| line.points.clone()).into_iter().map(|group| group.0).collect();
        assert_eq!(names, ["wb, wt", "ro"]);
    }
}
