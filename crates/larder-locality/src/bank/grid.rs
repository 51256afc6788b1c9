//! The sizes of a bank: two for each factor of two.

use std::f64::consts::FRAC_1_SQRT_2;

use super::MINI_BLOCKS_MIN;

/// From each capacity to the next smaller one, and from a rate of sampling to the next lower one.
pub(super) const STEP: f64 = FRAC_1_SQRT_2;

/// Capacities of the small caches from `largest` down, in blocks of the sample. None for a largest of 0, else at least
/// one.
pub(super) fn capacities(largest: u32) -> Vec<u32> {
    let smallest = MINI_BLOCKS_MIN.min(largest).max(1);
    let rounded = exact(largest).map(|blocks| blocks.round() as u32);
    let mut capacities: Vec<_> = rounded.take_while(|&blocks| blocks >= smallest).collect();
    // Half of one block is rounded to one.
    capacities.dedup();
    capacities
}

/// The sizes that these capacities stand for.
pub(super) fn sizes(capacities: &[u32], rate: f64) -> impl Iterator<Item = u64> {
    let largest = capacities.first().copied().unwrap_or(0);
    exact(largest).take(capacities.len()).map(move |blocks| (blocks / rate).round() as u64)
}

fn exact(largest: u32) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(f64::from(largest)), |blocks| Some(blocks * STEP))
}
