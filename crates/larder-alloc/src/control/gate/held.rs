//! How much of the cache blocks take, and how long they stay in it after their last access.
//!
//! All blocks are taken to stay for the same time after their last access: for as long as has those that are resident just fill the cache (Che, Tung, Wang: Hierarchical Web caching systems, 2002; it is
//! true for LRU, and near for others).
//! Where many hit that is less than what the cache and the rate at which blocks enter would give: blocks that are accessed again and again keep their places, and what else enters has the rest.
//!
//! Sizes are chosen by what tenants gain where all enters that they ask for. Of one of which next to nothing is worth its price a partition brings nothing of that, and keeps its places from those of whom
//! much is: what they write then leaves before it is read again. So it is told how much each one's blocks would take, were those of all to stay for as long.

use super::Gate;
use super::ledger::{BOUNDS, Ledger, bounds};
use larder_policy::doors::Terms;

/// Blocks that take a place were all to stay for so long: for as long as each age begins with, and as the last ends with.
type ByStay = [f64; BOUNDS];

fn add(sum: &mut ByStay, per_second: f64, lasts: &[f64; BOUNDS]) {
    sum.iter_mut().zip(lasts).for_each(|(sum, lasts)| *sum += per_second * lasts);
}

/// The first bound by which there are so many blocks, and how far it is to that point from the bound before it, 0 to 1; none where there are never so many. Between two bounds it is taken to grow evenly.
fn filling(held: impl Fn(usize) -> f64, blocks: u32) -> Option<(usize, f64)> {
    let blocks = f64::from(blocks);
    let longer = (1..BOUNDS).find(|&at| held(at) >= blocks)?;
    let (less, more) = (held(longer - 1), held(longer));
    Some((longer, ((blocks - less) / (more - less).max(f64::MIN_POSITIVE)).min(1.0)))
}

/// What there is at such a point.
fn between(of: &[f64; BOUNDS], (at, part): (usize, f64)) -> f64 {
    of[at - 1] + part * (of[at] - of[at - 1])
}

/// What takes the places of the cache.
pub(super) struct Places {
    /// Blocks that are resident when they are asked for.
    hits: ByStay,
    /// Those that would enter if everything did.
    would_enter: ByStay,
    entering: Entering,
    bounds: [f64; BOUNDS],
}

/// Blocks per second that come in if everything enters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entering {
    /// Those that are written.
    pub offered: f64,
    /// Of these those that take a place.
    pub would_enter: f64,
}

impl Places {
    /// Seconds that blocks stay in a cache of so many after their last access if so many enter a second, of all kinds alike; for ever where everything fits.
    pub(super) fn stay(&self, enter_per_second: f64, cache_blocks: u32) -> f64 {
        let part = (enter_per_second / self.entering.would_enter.max(f64::MIN_POSITIVE)).min(1.0);
        let filling = filling(|at| self.hits[at] + part * self.would_enter[at], cache_blocks);
        filling.map_or(f64::INFINITY, |filling| between(&self.bounds, filling))
    }
}

impl Gate {
    /// What comes in at `now` of the tenants that are `there`.
    pub(super) fn entering(&self, now: f64, there: impl Iterator<Item = bool>) -> Entering {
        let mut entering = Entering::default();
        let there = self.ledgers.iter().zip(there).filter(|(_, there)| *there);
        for flow in there.flat_map(|(ledger, _)| ledger.flows(now)) {
            entering.offered += flow.offered;
            entering.would_enter += flow.would_enter;
        }
        entering
    }

    /// What takes the places of the cache at `now`, by the tenants that are `there`, of which so much comes in.
    pub(super) fn places(&self, now: f64, there: impl Iterator<Item = bool>, entering: Entering) -> Places {
        let (mut hits, mut would_enter) = ([0.0; BOUNDS], [0.0; BOUNDS]);
        for (ledger, _) in self.ledgers.iter().zip(there).filter(|(_, there)| *there) {
            for flow in ledger.flows(now) {
                let lasts = ledger.lasts(flow.kind);
                add(&mut hits, flow.hits, &lasts);
                add(&mut would_enter, flow.would_enter, &lasts);
            }
        }
        Places { hits, would_enter, entering, bounds: bounds(self.unit) }
    }

    /// Blocks that each tenant would hold at `now` of a cache of so many, by what enters at the price; of one that is not `there`, or asks for nothing for long, nothing is told. `None` where all may be
    /// written, or everything fits.
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
        let held: Vec<Option<ByStay>> = tenants
            .map(|((ledger, terms), &there)| {
                (there && ledger.has_rates(now)).then(|| held_by(ledger, terms, now))
            })
            .collect();
        let all = |at: usize| held.iter().flatten().map(|held| held[at]).sum::<f64>();
        let filling = filling(all, cache_blocks)?;
        Some(held.into_iter().map(|held| held.map(|held| between(&held, filling))).collect())
    }
}

/// Blocks of a tenant that take a place where such a part of each kind of reads enters, and as much of writes as did lately.
fn held_by(ledger: &Ledger, terms: &Terms, now: f64) -> ByStay {
    let mut held = [0.0; BOUNDS];
    for flow in ledger.flows(now) {
        let enters = match flow.kind.is_write() {
            true => flow.enters,
            false => flow.would_enter * terms.shares[flow.kind.index()],
        };
        add(&mut held, flow.hits + enters, &ledger.lasts(flow.kind));
    }
    held
}
