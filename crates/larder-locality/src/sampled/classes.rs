//! Request classes that a sample of the blocks stands for.

use crate::lane::Totals;
use crate::{ClassCounts, RequestClass};

/// What a sample counted of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Accesses that the samples stand for.
    weight: f64,
    /// The same, each counted by how hot its block is.
    heat: f64,
}

/// Accesses by request class, scaled up: first accesses, then those after a read, then those after a write.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    reads: [Cell; 3],
    writes: [Cell; 3],
}

impl Classes {
    /// An access of this class, which stands for `weight` accesses.
    pub(super) fn count(&mut self, class: RequestClass, weight: f64, heat: f64) {
        let cell = match class {
            RequestClass::ColdRead => &mut self.reads[0],
            RequestClass::ReadAfterRead => &mut self.reads[1],
            RequestClass::ReadAfterWrite => &mut self.reads[2],
            RequestClass::ColdWrite => &mut self.writes[0],
            RequestClass::WriteAfterRead => &mut self.writes[1],
            RequestClass::WriteAfterWrite => &mut self.writes[2],
        };
        cell.weight += weight;
        cell.heat += weight * heat;
    }

    /// The classes of so many accesses in all. Their sums are those of the totals, if anything was counted.
    pub(super) fn counts(&self, totals: &Totals) -> ClassCounts {
        let [cr, rar, raw] = shared_out(&self.reads, totals.reads);
        let [cw, war, waw] = shared_out(&self.writes, totals.writes);
        ClassCounts { cr, cw, rar, raw, war, waw }
    }

    pub(super) fn decay(&mut self, factor: f64) {
        for cell in self.reads.iter_mut().chain(&mut self.writes) {
            *cell = Cell { weight: cell.weight * factor, heat: cell.heat * factor };
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let others = other.reads.iter().chain(&other.writes);
        for (cell, other) in self.reads.iter_mut().chain(&mut self.writes).zip(others) {
            *cell = Cell { weight: cell.weight + other.weight, heat: cell.heat + other.heat };
        }
    }
}

/// Whole numbers whose sum is `total`. What the sample lacks, or has too much, goes by heat, as in the curves.
fn shared_out(cells: &[Cell; 3], total: u64) -> [u64; 3] {
    let sum = |of: fn(&Cell) -> f64| cells.iter().map(of).sum::<f64>();
    let (weight, heat) = (sum(|cell| cell.weight), sum(|cell| cell.heat));
    let per_heat = if heat > 0.0 { (total as f64 - weight) / heat } else { 0.0 };
    let shares = cells.map(|cell| (cell.weight + per_heat * cell.heat).max(0.0));
    let shares_sum: f64 = shares.iter().sum();
    if shares_sum <= 0.0 {
        return [0; 3];
    }
    // Rounded where they end, so that nothing is lost between them.
    let end = |share: f64| ((share / shares_sum * total as f64).round() as u64).min(total);
    let (first, second) = (end(shares[0]), end(shares[0] + shares[1]));
    [first, second.saturating_sub(first), total - second.max(first)]
}
