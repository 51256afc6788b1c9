//! What deserves to be written to the SSD, where its writes are limited.
//!
//! A block written to the SSD saves time, how much depends on whose it is and on the kind of request ([`Kind`]): a write of one block that the SSD takes saves nearly as much as one of a
//! hundred, and costs the SSD a hundredth; one that goes on where another ended saves little, since the backing takes it nearly as fast; a block that was accessed often will be so again. So each kind of each tenant's requests has a worth, in seconds saved for a block written ([`Ledger`]), and there is one price for all:
//! what is worth less goes past the SSD. The price is such that what is offered just uses up what may be written; of the kind that is worth just the price a part enters.

use super::ServedBy;
use crate::{Latencies, WritePolicy};
use ledger::{KINDS, Ledger};
use seen::Seen;
use streams::Streams;

mod ledger;
mod seen;
mod streams;

pub use ledger::Kind;

/// What of a tenant's requests enters, by kind.
#[derive(Clone, Copy, Debug)]
struct Door {
    /// The share that enters.
    open: [f64; KINDS],
    /// What is left of the shares of the requests so far.
    rest: [f64; KINDS],
}

impl Door {
    const OPEN: Self = Self { open: [1.0; KINDS], rest: [0.0; KINDS] };

    /// One more request: does it enter?
    fn enters(&mut self, kind: Kind) -> bool {
        let rest = &mut self.rest[kind.index()];
        *rest += self.open[kind.index()];
        let enters = *rest >= 1.0;
        *rest -= f64::from(u8::from(enters));
        enters
    }
}

/// The price of a block written to the SSD.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    ledgers: Vec<Ledger>,
    doors: Vec<Door>,
    seen: Seen,
    /// By tenant.
    streams: Vec<Streams>,
    nominal: Latencies,
    /// Seconds of the first age that is told apart.
    unit: f64,
}

impl Gate {
    pub(super) fn new(tenants: usize, cache_blocks: u32, nominal: Latencies, unit: f64) -> Self {
        Self {
            ledgers: vec![Ledger::new(unit, 0.0); tenants],
            doors: vec![Door::OPEN; tenants],
            seen: Seen::new(cache_blocks),
            streams: vec![Streams::default(); tenants],
            nominal,
            unit,
        }
    }

    /// A tenant has come, or does what it did not do before.
    pub(super) fn restart(&mut self, tenant: usize, now: f64) {
        if let (Some(ledger), Some(door)) = (self.ledgers.get_mut(tenant), self.doors.get_mut(tenant)) {
            (*ledger, *door) = (Ledger::new(self.unit, now), Door::OPEN);
        }
    }

    /// One tenant more.
    pub(super) fn add(&mut self) {
        self.ledgers.push(Ledger::new(self.unit, 0.0));
        self.doors.push(Door::OPEN);
        self.streams.push(Streams::default());
    }

    /// A request for these blocks: of which kind it is, and whether what misses of it may enter.
    pub(super) fn ask(&mut self, tenant: usize, write: bool, keys: &[u64], now: f64) -> (Kind, bool) {
        let levels: usize = keys.iter().map(|&key| self.seen.see(key)).sum();
        let level = (levels + keys.len() / 2) / keys.len().max(1);
        let sequential = self.streams.get_mut(tenant).is_some_and(|streams| streams.go_on(keys));
        let kind = Kind::of(write, keys.len(), sequential, level);
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.observe(kind, keys, now);
        }
        (kind, self.doors.get_mut(tenant).is_some_and(|door| door.enters(kind)))
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

    /// Price what is offered, so that no more than `rate` blocks per second enter. Blocks stay for `stay` seconds; a tenant that is there has a write policy; what was counted so far
    /// weighs `fade` from now on.
    pub(super) fn price(
        &mut self,
        now: f64,
        rate: f64,
        stay: f64,
        fade: f64,
        writes: &[Option<WritePolicy>],
    ) {
        let mut offers = Vec::new();
        for (at, (ledger, write)) in self.ledgers.iter_mut().zip(writes).enumerate() {
            let Some(write) = *write else { continue };
            ledger.value(now, stay, write, &self.nominal);
            offers.extend(Kind::all().map(|kind| (ledger.worth(kind), at, kind, ledger.offered(kind))));
            ledger.fade(fade);
        }
        offers.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = rate;
        for (worth, at, kind, offered) in offers {
            // What is worth less than the price stays out, though nothing of that kind was offered lately.
            let share = match worth > 0.0 && left > 0.0 {
                true if offered > left => left / offered,
                enters => f64::from(u8::from(enters)),
            };
            left = (left - offered * share).max(0.0);
            self.doors[at].open[kind.index()] = share;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.seen.memory_bytes()
            + self.ledgers.iter().map(Ledger::memory_bytes).sum::<usize>()
            + self.doors.capacity() * size_of::<Door>()
            + self.streams.capacity() * size_of::<Streams>()
    }
}

#[cfg(test)]
mod tests;
