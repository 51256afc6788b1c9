//! How much of the cache each tenant's blocks take at the price of SSD writes.
//!
//! Sizes are chosen by what tenants gain where all enters that they ask for. Of one of which next to nothing is worth its price a partition brings nothing of that, and keeps its places from those of whom
//! much is: what they write then leaves before it is read again. So it is told how much each one's blocks would take were those of all to stay for as long after their last access as the cache
//! has room (Che, Tung, Wang: Hierarchical Web caching systems, 2002).

use super::Gate;
use super::ledger::BOUNDS;

impl Gate {
    /// Blocks that each tenant would hold at `now` of a cache of so many; of one that is not `there`, or asks for nothing for long, nothing is told. `None` where all may be written, or everything fits.
    pub(in super::super) fn held(
        &self,
        now: f64,
        cache_blocks: u32,
        there: &[bool],
    ) -> Option<Vec<Option<f64>>> {
        if !self.binds {
            return None;
        }
        let tenants = self.ledgers.iter().zip(&self.terms).zip(there);
        let held: Vec<Option<[f64; BOUNDS]>> = tenants
            .map(|((ledger, terms), &there)| ledger.held(now, &terms.shares).filter(|_| there))
            .collect();
        let cache = f64::from(cache_blocks);
        let all = |at: usize| held.iter().flatten().map(|held| held[at]).sum::<f64>();
        // Between two stays it is taken to grow evenly.
        let longer = (1..BOUNDS).find(|&at| all(at) >= cache)?;
        let (less, more) = (all(longer - 1), all(longer));
        let part = ((cache - less) / (more - less).max(f64::MIN_POSITIVE)).min(1.0);
        let of = |held: [f64; BOUNDS]| held[longer - 1] + part * (held[longer] - held[longer - 1]);
        Some(held.into_iter().map(|held| held.map(of)).collect())
    }
}
