//! How much of the cache each tenant's blocks take at the price of SSD writes, and how long they stay.
//!
//! What enters at the price takes the cache up where all blocks stay for some time after their last access (Che, Tung, Wang: Hierarchical Web caching systems, 2002). That is less than what cache and
//! rate of writes alone would give: blocks that are accessed again and again stay in their places, and what enters besides has the rest. So it is told what stays no longer than that is worth.
//!
//! Sizes are chosen by what tenants gain where all enters that they ask for. Of one of which next to nothing is worth its price a partition brings nothing of that, and keeps its places from those of whom
//! much is: what they write then leaves before it is read again. So it is told how much each one's blocks would take, were those of all to stay for as long.

use super::ledger::{BOUNDS, bounds};
use super::{Gate, Ledger, Terms};

/// Blocks that each tenant would hold by how long they stay: for as long as each age begins with, and as the last ends with.
struct Held(Vec<Option<[f64; BOUNDS]>>);

impl Held {
    /// The age up to which blocks stay where they take up so many places, and how far into it; none where everything fits. Between two ages it is taken to grow evenly.
    fn filling(&self, cache_blocks: u32) -> Option<(usize, f64)> {
        let cache = f64::from(cache_blocks);
        let all = |at: usize| self.0.iter().flatten().map(|held| held[at]).sum::<f64>();
        let longer = (1..BOUNDS).find(|&at| all(at) >= cache)?;
        let (less, more) = (all(longer - 1), all(longer));
        Some((longer, ((cache - less) / (more - less).max(f64::MIN_POSITIVE)).min(1.0)))
    }
}

/// So far from the bound before this one to this one.
fn between(bounds: &[f64; BOUNDS], (at, part): (usize, f64)) -> f64 {
    bounds[at - 1] + part * (bounds[at] - bounds[at - 1])
}

impl Gate {
    /// Blocks that each tenant would hold at `now` of a cache of so many; of one that is not `there`, or asks for nothing for long, nothing is told. `None` where all may be written, or everything fits.
    pub(in super::super) fn held(
        &self,
        now: f64,
        cache_blocks: u32,
        there: &[bool],
    ) -> Option<Vec<Option<f64>>> {
        let held = self.held_at_price(now, there.iter().copied())?;
        let filling = held.filling(cache_blocks)?;
        Some(held.0.into_iter().map(|held| held.map(|held| between(&held, filling))).collect())
    }

    /// Seconds that blocks stay in a cache of so many after their last access, by what enters now; for ever where all may be written, or everything fits.
    pub(super) fn longest_stay(&self, now: f64, cache_blocks: u32, there: impl Iterator<Item = bool>) -> f64 {
        let held = self.held_at_price(now, there);
        let filling = held.and_then(|held| held.filling(cache_blocks));
        filling.map_or(f64::INFINITY, |filling| between(&bounds(self.unit), filling))
    }

    /// What enters now is known where not all may be written.
    fn held_at_price(&self, now: f64, there: impl Iterator<Item = bool>) -> Option<Held> {
        let tenants = self.ledgers.iter().zip(&self.terms).zip(there);
        let held = |((ledger, terms), there): ((&Ledger, &Terms), bool)| {
            ledger.held(now, &terms.shares).filter(|_| there)
        };
        self.binds.then(|| Held(tenants.map(held).collect()))
    }
}
