//! What deserves to be written to the SSD, and a place in the cache.
//!
//! A block written to the SSD saves time, how much depends on whose it is and on the kind of request ([`Kind`]): a write of one block that the SSD takes saves nearly as much as one of a
//! hundred, and costs the SSD a hundredth; one that goes on where another ended saves little, since the backing takes it nearly as fast; a block that was accessed often will be so again. So each kind of each tenant's requests has a worth, in seconds saved for a block written ([`Ledger`]), and there is one price for all:
//! what is worth less goes past the SSD. Where writes are limited the price is such that what is offered just uses up what may be written; of the kind that is worth just the price a part enters.
//!
//! The more enters, the sooner it leaves, and the less each block is worth. So a part of what is offered may save more than all of it: of some parts ([`PARTS`]) of what would take a place the one is let in
//! that saves most, by what blocks are worth if they stay as long as they then do. A place has its price so, too, but for a cache that is not full. What enters such a one alone has nothing leave for it, and leaves first once it is full ([`Terms::leaves_first`]). Newer data of a resident block takes no place.
//!
//! What kinds are worth is true in the mean. How much more than its price, or less, goes with the shares: where one device has a line of writes to work off, doors let them go to the other ([`Terms::gains`]).

use super::{ServedBy, budget};
use crate::{Latencies, Timed, WritePolicy};
use admitted::{Limit, Offered, Order, admit};
use demand::affordable;
use held::Entering;
use larder_policy::doors::{Doors, Gains, KINDS, Kind, SHAPES, Terms};
use ledger::{Ledger, Price, Spans};
use under_way::UnderWay;

mod admitted;
mod demand;
mod held;
mod ledger;
mod under_way;

/// What requests took, by what served them and [`Kind::shape_served`].
pub type Shaped = [[Timed; SHAPES]; 4];

/// Blocks of a request that was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Blocks that were written to the SSD for it, or would have been.
    pub offered: u64,
    /// Those of a write that the SSD took.
    pub taken: u64,
    /// Those of them that were resident before.
    pub resident: u64,
}

/// What was offered to the SSD since some moment, where requests are served elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Offers {
    /// Blocks that were written to the SSD, or would have been, by [`Kind::index`].
    pub blocks: [u64; KINDS],
    /// Those of writes that the SSD took, likewise.
    pub taken: [u64; KINDS],
    /// Those of them that were resident before.
    pub resident: [u64; KINDS],
    /// What requests took.
    pub took: Shaped,
}

impl Default for Offers {
    fn default() -> Self {
        let none = [0; KINDS];
        Self { blocks: none, taken: none, resident: none, took: Default::default() }
    }
}

impl Offers {
    /// What has come since. Counters that begin anew count from nothing.
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        let Self { blocks, taken, resident, .. } = &mut since;
        for (counts, before) in
            [(blocks, &before.blocks), (taken, &before.taken), (resident, &before.resident)]
        {
            for (count, before) in counts.iter_mut().zip(before) {
                *count = count.checked_sub(*before).unwrap_or(*count);
            }
        }
        for (took, before) in since.took.iter_mut().flatten().zip(before.took.iter().flatten()) {
            if let Some(count) = took.count.checked_sub(before.count) {
                *took = Timed { count, seconds: (took.seconds - before.seconds).max(0.0) };
            }
        }
        since
    }
}

/// Parts of what is offered that takes a place in the cache. The one with which most is saved enters.
const PARTS: [f64; 8] = [1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.06];

/// What is worth less than such a part of what will find nothing left to write stays out.
///
/// It is not known what will come: load may end. And what came so far is more than what is to come: what stays out is offered again when it is read again, and a cache that fills
/// misses less.
const FORESIGHT: f64 = 1.0 / 3.0;

/// Of writes of which it is not known what they take past the SSD such a part goes there, where writes are limited.
const TRIED: f64 = 1.0 / 16.0;

/// A budget that lasts for so many times what is offered, and was, is not felt: prices are those of a cache without one, and nothing is tried past the SSD.
const AMPLE: f64 = 2.0;

/// Of a kind of reads of which less than this part of what enters would enter a full cache all does so only while there is room. Not writes: until they are written back they could not leave.
const HALF: f64 = 0.5;

/// What may be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writes {
    /// Blocks per second until prices are found again.
    pub rate: f64,
    /// Blocks per second until the period ends.
    pub lasting: f64,
    /// Blocks per second that would use up a whole period's evenly.
    pub even: f64,
    /// Seconds of a period.
    pub period: f64,
    /// What is worth less stays out: seconds for a block.
    pub worth: f64,
}

impl Writes {
    /// Whatever is offered.
    pub const ANY: Self = Self {
        rate: f64::INFINITY,
        lasting: f64::INFINITY,
        even: f64::INFINITY,
        period: f64::INFINITY,
        worth: 0.0,
    };

    /// Whatever is offered, by a budget that would be used up evenly as before: what is offered keeps its worth for when it is felt again.
    fn all_there_is(self) -> Self {
        Self { even: self.even, ..Self::ANY }
    }
}

/// What places the cache has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// All of them.
    pub cache_blocks: u32,
    /// Those that nothing takes yet.
    pub free: u64,
}

/// The price of a block written to the SSD.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    ledgers: Vec<Ledger>,
    /// On what terms each tenant's requests enter.
    terms: Vec<Terms>,
    /// None where requests are served elsewhere, with doors there.
    doors: Option<Doors>,
    under_way: UnderWay,
    block_bytes: u64,
    nominal: Latencies,
    /// What enters is worth more, since the last pricing.
    price: Option<Price>,
    /// How scarce writes were beside places when prices were found lately, from 0 to 1.
    scarce: f64,
    /// More was offered than may be written, when prices were found last.
    binds: bool,
    /// Seconds of the first age that is told apart.
    unit: f64,
    /// When prices were found last.
    priced: f64,
}

impl Gate {
    pub(super) fn new(
        tenants: usize,
        cache_blocks: u32,
        block_bytes: u32,
        nominal: Latencies,
        unit: f64,
        now: f64,
    ) -> Self {
        let mut new = Self {
            ledgers: Vec::new(),
            terms: Vec::new(),
            doors: Some(Doors::new(cache_blocks)),
            under_way: UnderWay::default(),
            block_bytes: block_bytes.into(),
            nominal,
            price: None,
            scarce: 0.0,
            binds: false,
            unit,
            priced: now,
        };
        (0..tenants).for_each(|_| new.add());
        new
    }

    /// A tenant has done nothing for long. Where what may be written is `limited`, what it offered is remembered as long as that counts, since it may come again; otherwise nothing is.
    pub(super) fn forget(&mut self, tenant: usize, limited: bool, now: f64) {
        let known = self.ledgers.get_mut(tenant).filter(|ledger| !ledger.is_blank());
        if known.is_some_and(|ledger| ledger.sleep() || !limited) {
            self.restart(tenant, now);
        }
    }

    /// Seconds since prices were found last.
    pub(super) fn since_priced(&self, now: f64) -> f64 {
        now - self.priced
    }

    /// The doors are elsewhere.
    pub(super) fn without_doors(self) -> Self {
        Self { doors: None, ..self }
    }

    /// A tenant has come, or does what it did not do before.
    pub(super) fn restart(&mut self, tenant: usize, now: f64) {
        if let (Some(ledger), Some(terms)) = (self.ledgers.get_mut(tenant), self.terms.get_mut(tenant)) {
            *ledger = Ledger::new(self.unit, now);
            *terms = Terms::default();
            if let Some(doors) = &mut self.doors {
                doors.restart(tenant);
            }
        }
    }

    /// One tenant more.
    pub(super) fn add(&mut self) {
        self.ledgers.push(Ledger::new(self.unit, 0.0));
        self.terms.push(Terms::default());
    }

    /// A request for these blocks: of which kind it is, and whether what misses of it may enter.
    pub(super) fn ask(&mut self, tenant: usize, write: bool, keys: &[u64], now: f64) -> (Kind, bool) {
        let Some(doors) = &mut self.doors else { return (Kind::default(), true) };
        self.under_way.until(now, doors);
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

    /// On what terms a tenant's requests enter.
    pub(super) fn terms(&self, tenant: usize) -> Option<&Terms> {
        self.terms.get(tenant)
    }

    /// A request was served: so many blocks were written to the SSD, or would have been.
    pub(super) fn served(&mut self, tenant: usize, kind: Kind, by: ServedBy, blocks: Offer, seconds: f64) {
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.served(kind, by, blocks, seconds);
        }
        if let Some(doors) = self.doors.as_mut().filter(|_| kind.is_write()) {
            let bytes = blocks.offered * self.block_bytes;
            self.under_way.begin(doors, tenant, by == ServedBy::CachedWrite, bytes, seconds);
        }
    }

    /// So many dirty blocks left for a request of the tenant, which waited so long for them to be written back.
    pub(super) fn waited(&mut self, tenant: usize, blocks: u64, seconds: f64) {
        if let Some(ledger) = self.ledgers.get_mut(tenant) {
            ledger.waited(blocks, seconds);
        }
    }

    /// Tenants that are there and not idle: that many are looked at to find prices.
    pub(super) fn busy(&self, writes: &[Option<WritePolicy>]) -> u64 {
        let there = self.ledgers.iter().zip(writes).filter(|(_, write)| write.is_some());
        there.filter(|(ledger, _)| !ledger.is_idle()).count() as u64
    }

    /// Price what is offered to a cache that has this room, so that no more is written than may be. A tenant that is there has a write policy; what was counted so far weighs `fade` from
    /// now on.
    pub(super) fn price(
        &mut self,
        now: f64,
        may: Writes,
        room: Room,
        fade: f64,
        writes: &[Option<WritePolicy>],
    ) {
        let since = now - self.priced;
        self.count_until(now, may.period, writes);
        let there = || writes.iter().map(Option::is_some);
        let entering = self.entering(now, there());
        let may = if self.is_ample(may, entering, writes) { may.all_there_is() } else { may };
        let Writes { rate, lasting, even, period, worth: least } = may;
        let worth = least.max(FORESIGHT * self.unaffordable(lasting, period, writes));
        // By then all that the cache holds has been written over.
        let written_over = |rate: f64| f64::from(room.cache_blocks) / rate.max(f64::MIN_POSITIVE);
        let youth = written_over(rate);
        let places = entering.would_enter;
        // What is free lasts until prices are found again. Where writes are limited, and that is felt, it has its price all the same.
        let seconds = since.max(self.unit);
        let free = if rate.is_finite() { 0.0 } else { room.free as f64 / seconds };
        let within = |part: f64| Limit { writes: rate, places: places * part, worth };
        // Rates alone know nothing of hits; and what stays out, and would hit, is none of those yet. Where all may be written what replaces what is for the cache to say, and this was found to bring nothing.
        let binds = entering.offered > rate;
        let taken = binds.then(|| self.places(now, there(), entering));
        let stays = PARTS.map(|part| {
            let enter = rate.min(places * part);
            let longest = taken.as_ref().map(|taken| taken.stay(enter, room.cache_blocks));
            written_over(enter).min(longest.unwrap_or(f64::INFINITY))
        });
        let (offers, worths) = self.offers(stays, youth, writes);
        let full = PARTS.map(within);
        let limits = full.map(|limit| Limit { places: limit.places + free, ..limit });
        // What would not enter were the cache full is to leave first once it is. Where next to nothing is free the two are the same.
        let (mut saved, mut saved_full) = ([0.0; PARTS.len()], [0.0; PARTS.len()]);
        let mut order = Order::default();
        for part in 0..PARTS.len() {
            let worth = |at: usize| worths[at][part];
            if part == 0 || stays[part] != stays[part - 1] {
                order.put(&offers, worth, full[part]);
            }
            saved[part] = order.saves(&offers, worth, limits[part]);
            if free > 0.0 {
                saved_full[part] = order.saves(&offers, worth, full[part]);
            }
        }
        self.binds = binds;
        let best = most_of(&saved);
        let spans = Spans { stay: stays[best], usual: written_over(even), youth };
        let among_full = match free > 0.0 {
            true => {
                let part = most_of(&saved_full);
                let worth = |at: usize| worths[at][part];
                order.put(&offers, worth, full[part]);
                order.shares(&offers, worth, full[part])
            }
            false => Vec::new(),
        };
        let price = self.settle_on(limits[best], spans, writes);
        self.price = Some(price);
        // Half of it new: what it changes the worth of changes the next price.
        self.scarce = if rate.is_finite() { (self.scarce + price.of_writes()) / 2.0 } else { 0.0 };
        self.priced = now;
        self.terms.iter_mut().for_each(|terms| terms.leaves_first = [false; KINDS]);
        for (Offered { tenant, kind, .. }, share) in offers.iter().zip(among_full) {
            let terms = &mut self.terms[*tenant];
            terms.leaves_first[kind.index()] = !kind.is_write() && share < HALF * terms.shares[kind.index()];
        }
        for (at, _) in writes.iter().enumerate().filter(|(_, write)| write.is_some()) {
            let (Some(ledger), Some(terms)) = (self.ledgers.get_mut(at), self.terms.get(at)) else {
                continue;
            };
            ledger.fade(fade);
            if let Some(doors) = &mut self.doors {
                doors.open(at, terms);
            }
        }
    }

    /// More than enough may be written: of what is offered now, and of what was offered a day ago.
    fn is_ample(&self, may: Writes, entering: Entering, writes: &[Option<WritePolicy>]) -> bool {
        let most = may.rate.min(may.lasting);
        most > 0.0
            && AMPLE * entering.offered <= most
            && self.unaffordable(may.lasting / AMPLE, may.period, writes) == 0.0
    }

    /// What is worth less, of what was offered so far, finds nothing left where so much may be written a second.
    fn unaffordable(&self, rate: f64, period: f64, writes: &[Option<WritePolicy>]) -> f64 {
        let there = self.ledgers.iter().zip(writes).filter(|(_, write)| write.is_some());
        affordable(there.map(|(ledger, _)| ledger.demand()), rate, period)
    }

    /// What was offered since prices were found last, by what it was found to be worth then, in a usual stay.
    pub(super) fn offered(&self, writes: &[Option<WritePolicy>]) -> budget::Offered {
        let mut all = budget::Offered::default();
        for (ledger, _) in self.ledgers.iter().zip(writes).filter(|(_, write)| write.is_some()) {
            ledger.lately().for_each(|(blocks, worth)| all.add(worth, blocks));
        }
        all
    }

    /// Time has gone by in which too little was asked for to find prices anew: they stay.
    pub(super) fn wait(&mut self, now: f64, period: f64, fade: f64, writes: &[Option<WritePolicy>]) {
        self.count_until(now, period, writes);
        self.there(writes).for_each(|ledger| ledger.fade(fade));
        self.priced = now;
    }

    /// The same for long at once, in periods of a budget if there is one.
    pub(super) fn pass_over(&mut self, now: f64, period: Option<f64>) {
        self.ledgers.iter_mut().for_each(|ledger| ledger.pass_over(now, period));
        self.priced = now;
    }

    fn there(&mut self, writes: &[Option<WritePolicy>]) -> impl Iterator<Item = &mut Ledger> {
        let there = self.ledgers.iter_mut().zip(writes).filter(|(_, write)| write.is_some());
        there.map(|(ledger, _)| ledger)
    }

    fn count_until(&mut self, now: f64, period: f64, writes: &[Option<WritePolicy>]) {
        let (price, scarce) = (self.price, self.scarce);
        self.there(writes).for_each(|ledger| {
            ledger.set_price(price);
            ledger.set_scarce(scarce);
            ledger.remember_until(now, period);
            ledger.count_until(now);
        });
    }

    /// What is offered, and what a block of each would be worth were blocks to stay for each of these times.
    fn offers<const N: usize>(
        &self,
        stays: [f64; N],
        youth: f64,
        writes: &[Option<WritePolicy>],
    ) -> (Vec<Offered>, Vec<[f64; N]>) {
        let (mut offers, mut worths) = (Vec::new(), Vec::new());
        for (tenant, (ledger, write)) in self.ledgers.iter().zip(writes).enumerate() {
            let Some(write) = write.filter(|_| !ledger.is_idle()) else { continue };
            for (kind, worth) in ledger.worths_offered(stays, youth, write, &self.nominal) {
                offers.push(offer(ledger, tenant, kind));
                worths.push(worth);
            }
        }
        (offers, worths)
    }

    /// What is worth most enters from now on within this limit, and of what is not offered now what is worth as much; the price of it. What is worth how much is remembered.
    fn settle_on(&mut self, limit: Limit, spans: Spans, writes: &[Option<WritePolicy>]) -> Price {
        let tenants = self.ledgers.len();
        let mut offers = Vec::new();
        // Those who ask for nothing enter like one of whom nothing is known: one for each write policy tells for all of them.
        let mut strangers: Vec<(WritePolicy, Ledger)> = Vec::new();
        let mut idle: Vec<(usize, usize)> = Vec::new();
        for (tenant, (ledger, write)) in self.ledgers.iter_mut().zip(writes).enumerate() {
            let Some(write) = *write else { continue };
            if !ledger.is_idle() {
                ledger.value(spans, write, &self.nominal);
                offers.extend(Kind::all().map(|kind| offer(ledger, tenant, kind)));
                continue;
            }
            let known = strangers.iter().position(|(policy, _)| *policy == write);
            let at = known.unwrap_or_else(|| {
                let mut stranger = Ledger::new(self.unit, self.priced);
                stranger.set_price(self.price);
                stranger.value(spans, write, &self.nominal);
                offers.extend(Kind::all().map(|kind| offer(&stranger, tenants + strangers.len(), kind)));
                strangers.push((write, stranger));
                strangers.len() - 1
            });
            match ledger.is_blank() {
                true => ledger.value_like(&strangers[at].1),
                false => ledger.value_known(spans, write, &self.nominal),
            }
            idle.push((tenant, at));
        }
        let admitted = admit(&offers, limit);
        let mut of_strangers = vec![Terms::default(); strangers.len()];
        for (&Offered { tenant: at, kind, .. }, &share) in offers.iter().zip(&admitted.shares) {
            let terms = self.terms.get_mut(at).or_else(|| of_strangers.get_mut(at - tenants));
            if let Some(terms) = terms {
                // While all entered, writes would be taken to save what is guessed for ever.
                let known = || self.ledgers.get(at).is_some_and(|ledger| ledger.knows_past(kind.shape()));
                let is_tried = kind.is_write() && limit.writes.is_finite() && !known();
                terms.shares[kind.index()] = if is_tried { share.min(1.0 - TRIED) } else { share };
            }
        }
        for (at, write) in writes.iter().enumerate().take(tenants) {
            let ledger = &self.ledgers[at];
            self.terms[at].gains = write
                .filter(|write| write.answers_at_once() && !ledger.is_idle())
                .map(|_| Box::new(gains(ledger, admitted.price)));
        }
        for (tenant, stranger) in idle {
            self.terms[tenant].clone_from(&of_strangers[stranger]);
        }
        admitted.price
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.doors.as_ref().map_or(0, Doors::memory_bytes)
            + self.ledgers.iter().map(Ledger::memory_bytes).sum::<usize>()
            + self.terms.len() * size_of::<Terms>()
            + self.terms.iter().filter(|terms| terms.gains.is_some()).count() * size_of::<Gains>()
            + self.under_way.memory_bytes()
    }
}

/// Where the most is saved; of several where as much is, the first.
fn most_of(saved: &[f64]) -> usize {
    (1..saved.len()).fold(0, |best, at| if saved[at] > saved[best] { at } else { best })
}

/// What a tenant offers of a kind.
fn offer(ledger: &Ledger, tenant: usize, kind: Kind) -> Offered {
    let (worth, offered) = (ledger.worth(kind), ledger.offered(kind));
    Offered { worth, tenant, kind, offered, place: ledger.takes_place(kind) }
}

/// By what a block is worth more than this price.
fn gains(ledger: &Ledger, price: Price) -> Gains {
    let mut gains = [0.0; KINDS];
    for kind in Kind::all() {
        let costs = price.write + price.place * ledger.takes_place(kind);
        gains[kind.index()] = (ledger.worth(kind) - costs) as f32;
    }
    gains
}

#[cfg(test)]
mod tests;
