//! Centaur's proportional shares (section VI-B): latencies, each times the tenant's share, are made equal.
//!
//! Over and over, the tenant with the highest scaled latency gets a unit of blocks from the one with the lowest, until the
//! largest difference is small. The paper moves units of 10 MB (1 % of a file of 1 GB) every 5 seconds; here the moves
//! are played through on the curves, and a unit is halved once it only goes back and forth. As in the paper the method
//! stops where more blocks turn out to make a tenant slower.

use crate::bounds::Bounds;
use crate::centaur::curves::Curve;

/// Latencies are equal where the largest difference is at most this part of the highest.
pub(super) const EQUAL: f64 = 0.01;
/// The first unit, as a part of what the tenants have together.
const FIRST_UNIT: u64 = 100;
/// Moves of one unit size.
const MOVES_MAX: usize = 10_000;

/// What could be had.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fair {
    /// Sizes in blocks, with the sum of those that were given.
    pub(super) sizes: Vec<u64>,
    /// The difference that is left between a tenant that could take blocks and one that could give some, as a part of
    /// the higher scaled latency.
    pub(super) spread: f64,
}

/// Move blocks between tenants until their curves, which are scaled by their shares, have about the same value.
pub(super) fn equalize(curves: &[Curve], bounds: &[Bounds], start: &[u64]) -> Fair {
    let mut unit = (start.iter().sum::<u64>() / FIRST_UNIT).max(1);
    let mut best = Fair { sizes: start.to_vec(), spread: f64::INFINITY };
    loop {
        let mut balance = Balance::new(curves, bounds, best.sizes.clone());
        let end = balance.settle(unit, &mut best);
        if end == End::Settled || unit == 1 {
            return best;
        }
        unit /= 2;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// No unit would do better.
    Settled,
    /// A smaller unit might come nearer.
    TooCoarse,
}

struct Balance<'a> {
    curves: &'a [Curve],
    bounds: &'a [Bounds],
    sizes: Vec<u64>,
    /// Of the curves at the sizes.
    values: Vec<f64>,
}

impl<'a> Balance<'a> {
    fn new(curves: &'a [Curve], bounds: &'a [Bounds], sizes: Vec<u64>) -> Self {
        let values = curves.iter().zip(&sizes).map(|(curve, &size)| curve.at(size)).collect();
        Self { curves, bounds, sizes, values }
    }

    fn settle(&mut self, unit: u64, best: &mut Fair) -> End {
        let mut last = None;
        for _ in 0..MOVES_MAX {
            let Some((highest, lowest)) = self.extremes() else {
                *best = Fair { sizes: self.sizes.clone(), spread: 0.0 };
                return End::Settled;
            };
            let spread = 1.0 - self.values[lowest] / self.values[highest];
            if spread < best.spread {
                *best = Fair { sizes: self.sizes.clone(), spread };
            }
            if spread <= EQUAL {
                return End::Settled;
            }
            if last == Some((lowest, highest)) {
                return End::TooCoarse;
            }
            last = Some((highest, lowest));
            if !self.shift(highest, lowest, unit) {
                return End::Settled;
            }
        }
        End::TooCoarse
    }

    /// Of those that may get more the one with the highest value, and of those that may get less the one with the lowest;
    /// none where the first is no higher than the second.
    fn extremes(&self) -> Option<(usize, usize)> {
        let by_value = |a: &usize, b: &usize| self.values[*a].total_cmp(&self.values[*b]);
        let all = 0..self.sizes.len();
        let highest =
            all.clone().rev().filter(|&at| self.sizes[at] < self.bounds[at].most).max_by(by_value)?;
        let lowest = all.filter(|&at| self.sizes[at] > self.bounds[at].least).min_by(by_value)?;
        (self.values[highest] > self.values[lowest]).then_some((highest, lowest))
    }

    /// Move up to `unit` blocks; false where that does the opposite of what it should.
    fn shift(&mut self, to: usize, from: usize, unit: u64) -> bool {
        let can_give = self.sizes[from] - self.bounds[from].least;
        let can_take = self.bounds[to].most - self.sizes[to];
        let blocks = unit.min(can_give).min(can_take);
        let (more, less) = (self.sizes[to] + blocks, self.sizes[from] - blocks);
        let (rising, falling) = (self.curves[to].at(more), self.curves[from].at(less));
        if rising > self.values[to] || falling < self.values[from] {
            return false;
        }
        (self.sizes[to], self.values[to]) = (more, rising);
        (self.sizes[from], self.values[from]) = (less, falling);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From `high` at 0 blocks down to `low` at `blocks`, straight.
    fn slope(high: f64, low: f64, blocks: u64) -> Curve {
        let at = |size: u64| (size, high + (low - high) * size as f64 / blocks as f64);
        Curve::of((0..=blocks).map(at))
    }

    fn free(count: usize, blocks: u64) -> Vec<Bounds> {
        vec![Bounds { least: 0, most: blocks }; count]
    }

    #[test]
    fn equal_workloads_with_shares_of_one_and_two() {
        // 10 ms without a cache, 0 with 1000 blocks. Twice the second's latency equals the first's where the first gets x
        // of 1000 blocks, and 10 - x/100 = 2 (10 - (1000 - x)/100): x = 333.
        let curve = slope(10.0, 0.0, 1000);
        let fair = equalize(&[curve.clone(), curve.times(2.0)], &free(2, 1000), &[500, 500]);
        assert!(fair.sizes[0].abs_diff(333) <= 3 && fair.sizes.iter().sum::<u64>() == 1000, "{fair:?}");
        assert!(fair.spread <= EQUAL);
    }

    #[test]
    fn each_move_goes_from_the_lowest_to_the_highest() {
        // 8, 6 and 4 at the start; the unit is one hundredth of 300.
        let curves = [slope(9.0, 0.0, 900), slope(7.0, 0.0, 700), slope(5.0, 0.0, 500)];
        let bounds = free(3, 300);
        let mut balance = Balance::new(&curves, &bounds, vec![100; 3]);
        assert_eq!(balance.values, [8.0, 6.0, 4.0]);
        assert_eq!(balance.extremes(), Some((0, 2)));
        assert!(balance.shift(0, 2, 3));
        assert_eq!(balance.sizes, [103, 100, 97]);
        assert_eq!(balance.values, [7.97, 6.0, 4.03]);
    }

    #[test]
    fn a_tenant_at_its_bound_takes_no_part() {
        let bounds =
            [Bounds { least: 0, most: 110 }, Bounds { least: 0, most: 300 }, Bounds { least: 95, most: 300 }];
        let curves = [slope(9.0, 0.0, 900), slope(7.0, 0.0, 700), slope(5.0, 0.0, 500)];
        let fair = equalize(&curves, &bounds, &[100; 3]);
        assert_eq!((fair.sizes[0], fair.sizes[2]), (110, 95));
    }

    #[test]
    fn it_stops_where_more_blocks_make_a_tenant_slower() {
        let odd = Curve::of([(0, 9.0), (60, 9.5)]);
        let fair = equalize(&[odd, slope(5.0, 1.0, 100)], &free(2, 100), &[50, 50]);
        // Nine moves of one block; the tenth would raise the highest.
        assert_eq!(fair.sizes[0], 59);
        let odd = Curve::of([(0, 1.0), (40, 2.0)]);
        let fair = equalize(&[slope(5.0, 3.0, 100), odd], &free(2, 100), &[50, 50]);
        assert_eq!(fair.sizes[1], 40);
    }

    proptest! {
        #[test]
        fn values_are_equal_or_a_bound_is_reached(
            tenants in proptest::collection::vec((5.0f64..50.0, 200u64..2000, 0u64..500), 2..6),
        ) {
            let curves: Vec<_> = tenants.iter().map(|&(high, blocks, _)| slope(high, 0.1, blocks)).collect();
            let start: Vec<_> = tenants.iter().map(|tenant| tenant.2).collect();
            let cache: u64 = start.iter().sum();
            let fair = equalize(&curves, &free(tenants.len(), cache), &start);
            prop_assert_eq!(fair.sizes.iter().sum::<u64>(), cache);
            let values: Vec<_> = curves.iter().zip(&fair.sizes).map(|(curve, &size)| curve.at(size)).collect();
            let highest = values.iter().copied().fold(0.0, f64::max);
            for (value, &size) in values.iter().zip(&fair.sizes) {
                // What has no block cannot give one; what is more than a block's worth lower should.
                prop_assert!(size == 0 || *value >= highest * 0.99 - 0.25, "{:?} {:?}", values, fair);
            }
        }
    }
}
