//! How much of the cache each tenant's blocks take at the price of SSD writes.
//!
//! Sizes are chosen by what tenants gain where all enters that they ask for. Of one of which next to nothing is worth its price a partition brings nothing of that, and keeps its places from those of whom
//! much is: what they write then leaves before it is read again. So it is told how much each one's blocks would take were those of all to stay for as long after their last access as the cache
//! has room (Che, Tung, Wang: Hierarchical Web caching systems, 2002).

use super::Gate;
use super::ledger::BOUNDS;

impl Gate {
    /// Blocks that each tenant would hold of a cache of so many, of those that are `there` and ask for something; the others none. `None` where all may be written, or everything fits.
    pub(in super::super) fn held(&self, cache_blocks: u32, there: &[bool]) -> Option<Vec<f64>> {
        if !self.binds {
            return None;
        }
        let tenants = self.ledgers.iter().zip(&self.terms).zip(there);
        let held: Vec<[f64; BOUNDS]> = tenants
            .map(|((ledger, terms), &there)| match there && !ledger.is_idle() {
                true => ledger.held(&terms.shares),
                false => [0.0; BOUNDS],
            })
            .collect();
        let cache = f64::from(cache_blocks);
        let all = |at: usize| held.iter().map(|held| held[at]).sum::<f64>();
        // Between two stays it is taken to grow evenly.
        let longer = (1..BOUNDS).find(|&at| all(at) >= cache)?;
        let (less, more) = (all(longer - 1), all(longer));
        let part = ((cache - less) / (more - less).max(f64::MIN_POSITIVE)).min(1.0);
        Some(held.iter().map(|held| held[longer - 1] + part * (held[longer] - held[longer - 1])).collect())
    }
}
