//! What deserves to be written to the SSD, where its writes are limited.
//!
//! A block written to the SSD saves time, how much depends on whose it is and on the kind of request ([`Kind`]): a write of one block that the SSD takes saves nearly as much as one of a
//! hundred, and costs the SSD a hundredth; one that goes on where another ended saves little, since the backing takes it nearly as fast; a block that was accessed often will be so again. So each kind of each tenant's requests has a worth, in seconds saved for a block written ([`Ledger`]), and there is one price for all:
//! what is worth less goes past the SSD. The price is such that what is offered just uses up what may be written; of the kind that is worth just the price a part enters.

use super::ServedBy;
use crate::{Latencies, Timed, WritePolicy};
use larder_policy::doors::{Doors, KINDS, Kind, OPEN, SHAPES, Shares};
use ledger::{Ledger, Spans};

mod ledger;

/// What requests took, by what served them and [`Kind::shape_served`].
pub type Shaped = [[Timed; SHAPES]; 4];

/// What was offered to the SSD since some moment, where requests are served elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Offers {
    /// Blocks that were written to the SSD, or would have been, by [`Kind::index`].
    pub blocks: [u64; KINDS],
    /// What requests took.
    pub took: Shaped,
}

impl Default for Offers {
    fn default() -> Self {
        Self { blocks: [0; KINDS], took: Default::default() }
    }
}

impl Offers {
    /// What has come since. Counters that begin anew count from nothing.
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        for (blocks, before) in since.blocks.iter_mut().zip(&before.blocks) {
            *blocks = blocks.checked_sub(*before).unwrap_or(*blocks);
        }
        for (took, before) in since.took.iter_mut().flatten().zip(before.took.iter().flatten()) {
            if let Some(count) = took.count.checked_sub(before.count) {
                *took = Timed { count, seconds: (took.seconds - before.seconds).max(0.0) };
            }
        }
        since
    }
}

/// The price of a block written to the SSD.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    ledgers: Vec<Ledger>,
    /// What of each tenant's requests enters.
    shares: Vec<Shares>,
    /// None where requests are served elsewhere, with doors there.
    doors: Option<Doors>,
    nominal: Latencies,
    /// What enters is worth more, since the last pricing.
    price: Option<f64>,
    /// Seconds of the first age that is told apart.
    unit: f64,
}

impl Gate {
    pub(super) fn new(tenants: usize, cache_blocks: u32, nominal: Latencies, unit: f64) -> Self {
        let doors = Some(Doors::new(cache_blocks));
        let mut new = Self { ledgers: Vec::new(), shares: Vec::new(), doors, nominal, price: None, unit };
        (0..tenants).for_each(|_| new.add());
        new
    }

    /// The doors are elsewhere.
    pub(super) fn without_doors(self) -> Self {
        Self { doors: None, ..self }
    }

    /// A tenant has come, or does what it did not do before.
    pub(super) fn restart(&mut self, tenant: usize, now: f64) {
        if let (Some(ledger), Some(shares)) = (self.ledgers.get_mut(tenant), self.shares.get_mut(tenant)) {
            *ledger = Ledger::new(self.unit, now);
            *shares = OPEN;
            if let Some(doors) = &mut self.doors {
                doors.restart(tenant);
            }
        }
    }

    /// One tenant more.
    pub(super) fn add(&mut self) {
        self.ledgers.push(Ledger::new(self.unit, 0.0));
        self.shares.push(OPEN);
    }

    /// A request for these blocks: of which kind it is, and whether what misses of it may enter.
    pub(super) fn ask(&mut self, tenant: usize, write: bool, keys: &[u64], now: f64) -> (Kind, bool) {
        let Some(doors) = &mut self.doors else { return (Kind::default(), true) };
        let (kind, enters) = doors.ask(tenant, write, keys.iter().copied());
        self.observe(tenant, kind, keys.iter().copied(), now);
        (kind, enters)
    }

    /// A request of a kind that was told elsewhere.
    pub(super) fn observe(
        &mut self,
        tenant: usize,
        kind: Kind,
        keys: impl ExactSizeIterator<Item = u64>,
        now: f64,
    ) {
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.observe(kind, keys, now);
        }
    }

    /// What was offered elsewhere.
    pub(super) fn absorb(&mut self, tenant: usize, offers: &Offers) {
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.absorb(offers);
        }
    }

    /// What of a tenant's requests enters.
    pub(super) fn shares(&self, tenant: usize) -> Option<&Shares> {
        self.shares.get(tenant)
    }

    /// A request was served: so many blocks were written to the SSD, or would have been.
    pub(super) fn served(&mut self, tenant: usize, kind: Kind, by: ServedBy, offered: u64, seconds: f64) {
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.served(kind, by, offered, seconds);
        }
    }

    /// A request of the tenant waited so long for dirty blocks that had to be written back.
    pub(super) fn waited(&mut self, tenant: usize, seconds: f64) {
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.waited(seconds);
        }
    }

    /// Blocks per second that would be written to the SSD if everything entered of the tenants that are there.
    fn offered(&self, writes: &[Option<WritePolicy>]) -> f64 {
        let there = self.ledgers.iter().zip(writes).filter(|(_, write)| write.is_some());
        there.flat_map(|(ledger, _)| Kind::all().map(|kind| ledger.offered(kind))).sum()
    }

    /// Price what is offered to a cache of so many blocks, so that no more than `rate` of them enter per second. A tenant that is there has a write policy; what was counted so
    /// far weighs `fade` from now on.
    pub(super) fn price(
        &mut self,
        now: f64,
        rate: f64,
        cache_blocks: u32,
        fade: f64,
        writes: &[Option<WritePolicy>],
    ) {
        // By then all that the cache holds has been written over. More than is offered does not enter, however much may.
        let written_over = |rate: f64| f64::from(cache_blocks) / rate.max(f64::MIN_POSITIVE);
        let spans = Spans { stay: written_over(rate.min(self.offered(writes))), youth: written_over(rate) };
        self.ledgers.iter_mut().for_each(|ledger| ledger.set_price(self.price));
        let mut offers = Vec::new();
        let mut blanks: Vec<(WritePolicy, Ledger)> = Vec::new();
        for (at, (ledger, write)) in self.ledgers.iter_mut().zip(writes).enumerate() {
            let Some(write) = *write else { continue };
            match blanks.iter().find(|(policy, _)| ledger.is_blank() && *policy == write) {
                Some((_, blank)) => ledger.value_like(now, blank),
                None => {
                    ledger.value(now, spans, write, &self.nominal);
                    if ledger.is_blank() {
                        blanks.push((write, ledger.clone()));
                    }
                }
            }
            offers.extend(Kind::all().map(|kind| (ledger.worth(kind), at, kind, ledger.offered(kind))));
            ledger.fade(fade);
        }
        // What differs by how sums are rounded is worth the same: here and where requests are served elsewhere the same kind of these comes first.
        offers.sort_by(|a, b| (b.0 as f32).total_cmp(&(a.0 as f32)));
        let (mut left, mut price) = (rate, 0.0_f64);
        for (worth, at, kind, offered) in offers {
            // What is worth less than the price stays out, though nothing of that kind was offered lately.
            let share = match worth > 0.0 && left > 0.0 {
                true if offered > left => left / offered,
                enters => f64::from(u8::from(enters)),
            };
            if share < 1.0 {
                price = price.max(worth);
            }
            left = (left - offered * share).max(0.0);
            self.shares[at][kind.index()] = share;
        }
        self.price = Some(price);
        for (at, _) in writes.iter().enumerate().filter(|(_, write)| write.is_some()) {
            if let (Some(doors), Some(shares)) = (&mut self.doors, self.shares.get(at)) {
                doors.open(at, shares);
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.doors.as_ref().map_or(0, Doors::memory_bytes)
            + self.ledgers.iter().map(Ledger::memory_bytes).sum::<usize>()
            + self.shares.len() * size_of::<Shares>()
    }
}

#[cfg(test)]
mod tests;
