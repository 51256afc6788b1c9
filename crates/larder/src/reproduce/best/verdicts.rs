//! Whether `larder` is best: the three questions, computed from the runs.

use super::ALLOCATORS;
use super::rows::Row;

/// Latencies this close count as the same.
const TIE: f64 = 0.01;

/// The answers for a scenario at a size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// (a) Without a budget, no allocator's mean latency is more than 1 % lower.
    pub lowest: bool,
    /// (b) With a budget of what ECI-Cache wrote, its latency is lower than ECI-Cache's.
    pub below_eci: bool,
    /// (c) With 35 % of what Centaur wrote, its latency is no higher than Centaur's.
    pub no_worse_than_centaur: bool,
}

impl Verdicts {
    /// From what was measured.
    pub fn of(row: &Row) -> Self {
        let latency = |name: &str| row.of(name).map(|run| run.total.mean_latency);
        let compared = ALLOCATORS.iter().filter_map(|name| latency(name));
        let own = latency(larder_alloc::Larder::NAME).unwrap_or(f64::INFINITY);
        Self {
            lowest: is_lowest(own, compared),
            below_eci: latency(larder_alloc::Eci::NAME)
                .is_some_and(|eci| row.as_eci.run.total.mean_latency < eci),
            no_worse_than_centaur: latency(larder_alloc::Centaur::NAME)
                .is_some_and(|centaur| row.below_centaur.run.total.mean_latency <= centaur),
        }
    }

    /// In their order: a, b, c.
    pub fn all(self) -> [bool; 3] {
        [self.lowest, self.below_eci, self.no_worse_than_centaur]
    }
}

fn is_lowest(own: f64, mut all: impl Iterator<Item = f64>) -> bool {
    all.all(|other| own <= other * (1.0 + TIE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_per_cent_is_a_tie() {
        let lowest = |own: f64| is_lowest(own, [own, 100.0, 150.0].into_iter());
        assert_eq!([99.0, 100.9, 101.1, 200.0].map(lowest), [true, true, false, false]);
    }
}
