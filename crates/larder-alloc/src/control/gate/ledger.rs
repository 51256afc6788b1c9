//! What a tenant's requests are worth, by kind: seconds saved for each block written to the SSD.
//!
//! A write that the SSD takes in place of the backing saves what the one takes less than the other, at once. And whatever brings a block in saves what the reads to come take less, until the
//! block is written anew or leaves. The latter is learned from a sample of the tenant's blocks, whether they are resident or not: each access gives its block a *life* that ends with
//! the next one. Counted over age, as in the life tables of insurers, lives that have not ended yet tell as much as those that have: a cache that is cold says what its blocks
//! will be worth before most of them were read again. A block that stays out now can enter with its next read, at the price: what the reads after that save counts for no more than the price.

use std::collections::BTreeMap;

use larder_policy::doors::{KINDS, Kind, SHAPES, spread};

use counts::{Count, Counts};
use lives::{AGES, age};

use super::super::ServedBy;
use super::demand::Demand;
use super::{Offer, Offers};
use crate::{Latencies, Timed, WritePolicy};

mod counts;
mod lives;

/// Blocks of a sample, at most.
const SAMPLE: usize = 1 << 13;

/// A guess counts for as much as so many requests that were measured.
const GUESSED: f64 = 16.0;

/// What the reads after the next one save counts so much: the block may have left before.
const LATER: f64 = 0.9;

/// Before there is a price, a block that was read is expected to be read so many times after the next one.
const UNPRICED: f64 = 5.0;

/// Lives are remembered so many times as long as rates.
const LONGER: f64 = 8.0;

/// A block of the sample: of what kind its last access was, and when.
#[derive(Clone, Copy, Debug)]
struct Known {
    kind: u16,
    since: f64,
}

/// How long things are so, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    /// A block stays in the cache, from its last access on.
    pub stay: f64,
    /// A tenant is young, from its first request on.
    pub youth: f64,
}

/// What entering costs, in seconds that it has to save.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Price {
    /// Of a block written to the SSD.
    pub write: f64,
    /// Of a place in the cache, besides.
    pub place: f64,
}

/// Requests and what they took.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    requests: f64,
    seconds: f64,
}

impl Took {
    fn add(&mut self, more: Timed) {
        self.requests += more.count as f64;
        self.seconds += more.seconds;
    }
}

/// The ledger of one tenant.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Empty of a tenant that has asked for nothing yet, of which nothing else is known either.
    counts: Counts,
    /// Since what was counted faded last, requests came.
    is_active: bool,
    /// None has come for long.
    is_asleep: bool,
    /// Seconds in which that was counted.
    seconds: f64,
    /// By what served them ([`ServedBy`]) and the shape that it saw.
    took: [[Took; SHAPES]; 4],
    /// Seconds that requests waited since dirty blocks had to leave.
    waited: f64,
    /// Blocks that left for them, and were written back.
    left: f64,
    sample: BTreeMap<u64, Known>,
    /// A block is looked at if its spread key is no higher.
    limit: u64,
    /// Seconds of the first age.
    unit: f64,
    /// When the tenant's first request came.
    began: f64,
    /// Until when the lives of the sample are counted.
    counted: f64,
    /// What a block of a read saves if it is resident, by shape of the request.
    read_saves: [f64; SHAPES],
    /// What is saved by the reads to come of a block that is resident after a request, by kind.
    later: [f64; KINDS],
    /// How likely a block that is resident after a request is to be written anew before it leaves, by kind.
    rewritten: [f64; KINDS],
    worth: [f64; KINDS],
    /// What enters is worth more, once that is known.
    price: Option<Price>,
    /// All that was offered.
    demand: Demand,
}

impl Ledger {
    /// A ledger at `now` that tells ages apart from `unit` seconds on.
    pub(super) fn new(unit: f64, now: f64) -> Self {
        Self {
            counts: Counts::default(),
            is_active: false,
            is_asleep: false,
            seconds: 0.0,
            took: Default::default(),
            waited: 0.0,
            left: 0.0,
            sample: BTreeMap::new(),
            limit: u64::MAX,
            unit,
            began: now,
            counted: now,
            read_saves: [0.0; SHAPES],
            later: [0.0; KINDS],
            rewritten: [0.0; KINDS],
            worth: [0.0; KINDS],
            price: None,
            demand: Demand::default(),
        }
    }

    fn count(&mut self, kind: Kind) -> &mut Count {
        (self.is_active, self.is_asleep) = (true, false);
        self.counts.count(kind.index())
    }

    /// A request. One of which is heard late counts from the last [`Self::value`] on.
    pub(super) fn observe(&mut self, kind: Kind, keys: impl ExactSizeIterator<Item = u64>, now: f64) {
        let now = now.max(self.counted);
        if self.counts.is_empty() {
            self.began = now;
        }
        let count = self.count(kind);
        count.requests += 1.0;
        count.blocks += keys.len() as f64;
        for key in keys {
            if spread(key) <= self.limit {
                self.look(kind, key, now);
            }
        }
        while self.sample.len() > SAMPLE {
            self.limit /= 2;
            let limit = self.limit;
            self.sample.retain(|&key, _| spread(key) <= limit);
        }
    }

    /// A block of the sample is accessed: the life that its last access gave it ends, and another begins.
    fn look(&mut self, kind: Kind, key: u64, now: f64) {
        let known = self.sample.insert(key, Known { kind: kind.index() as u16, since: now });
        let Some(Known { kind: before, since }) = known else { return };
        let age = age(since, now, self.unit);
        let count = self.counts.count(before.into());
        count.lived = true;
        let life = &mut count.lives[age];
        life.lived += now - since.max(self.counted);
        life.ended += 1.0;
        life.rewritten += if kind.is_write() { 1.0 } else { self.rewritten[kind.index()] };
        // A block that is not there can enter with this request, at its price.
        life.saved += match (kind.is_write(), self.price) {
            (true, price) => {
                let Price { write, place } = price.unwrap_or_default();
                (self.worth[kind.index()] - write).clamp(0.0, place)
            }
            (false, price) => {
                let then = LATER * self.later[kind.index()];
                self.read_saves[kind.shape()]
                    + price.map_or(then, |price| then.min(price.write + price.place))
            }
        };
    }

    /// A request was served: so many blocks were written to the SSD, or would have been.
    pub(super) fn served(&mut self, kind: Kind, by: ServedBy, blocks: Offer, seconds: f64) {
        let count = self.count(kind);
        count.offered += blocks.offered as f64;
        count.taken += blocks.taken as f64;
        count.resident += blocks.resident as f64;
        self.demand.offer(kind, blocks.offered);
        self.took[by as usize][kind.shape_served()].add(Timed { count: 1, seconds });
    }

    /// Requests were served elsewhere.
    pub(super) fn absorb(&mut self, offers: &Offers) {
        for kind in Kind::all().filter(|kind| offers.blocks[kind.index()] > 0) {
            let count = self.count(kind);
            count.offered += offers.blocks[kind.index()] as f64;
            count.taken += offers.taken[kind.index()] as f64;
            count.resident += offers.resident[kind.index()] as f64;
            self.demand.offer(kind, offers.blocks[kind.index()]);
        }
        for (took, more) in self.took.iter_mut().flatten().zip(offers.took.iter().flatten()) {
            took.add(*more);
        }
    }

    /// So many dirty blocks left for a request, which waited so long for them to be written back.
    pub(super) fn waited(&mut self, blocks: u64, seconds: f64) {
        self.left += blocks as f64;
        self.waited += seconds;
    }

    /// Count what is under way.
    pub(super) fn count_until(&mut self, now: f64) {
        for known in self.sample.values() {
            let age = age(known.since, now, self.unit);
            let count = self.counts.count(known.kind.into());
            count.lived = true;
            let life = &mut count.lives[age];
            life.lived += now - known.since.max(self.counted);
        }
        self.seconds += now - self.counted;
        self.counted = now;
    }

    /// Find what everything is worth for a tenant with this write policy, by what was counted.
    pub(super) fn value(&mut self, spans: Spans, write: WritePolicy, nominal: &Latencies) {
        self.value_of_kinds(spans, write, nominal, |_| true);
    }

    /// The same for what is offered alone, to try out what is worth how much.
    pub(super) fn value_offered(&mut self, spans: Spans, write: WritePolicy, nominal: &Latencies) {
        self.value_of_kinds(spans, write, nominal, |count| count.offered > 0.0);
    }

    fn value_of_kinds(
        &mut self,
        spans: Spans,
        write: WritePolicy,
        nominal: &Latencies,
        wanted: impl Fn(&Count) -> bool,
    ) {
        let at_once = write.answers_at_once();
        let none = Count::default();
        // Of longer stays nothing can be known.
        let stay = spans.stay.min(self.unit * (1u64 << (AGES - 1)) as f64);
        // No block can have been seen to stay for nothing yet: what is not known now is not rare.
        let young = self.counts.is_empty() || self.counted - self.began < spans.youth;
        // Each block that the SSD takes has to be written back some time, unless it is written anew before.
        for kind in Kind::all() {
            if let Some(count) = self.counts.get(kind).filter(|count| wanted(count)) {
                self.rewritten[kind.index()] = count.value(self.unit, stay, 0.0, |life| life.rewritten);
            }
        }
        let wait = self.waited / self.left.max(1.0);
        for kind in Kind::all() {
            let (at, shape) = (kind.index(), kind.shape());
            let count = self.counts.get(kind).unwrap_or(&none);
            if !wanted(count) {
                continue;
            }
            let Count { requests, blocks, .. } = count;
            let blocks = if *requests > 0.0 { blocks / requests } else { kind.blocks() as f64 };
            let saves = match kind.is_write() {
                true => {
                    self.takes(ServedBy::BackingWrite, shape, nominal.backing_write)
                        - self.takes(ServedBy::CachedWrite, shape, nominal.cached_write)
                }
                false => {
                    self.takes(ServedBy::ReadMiss, shape, nominal.read_miss)
                        - self.takes(ServedBy::ReadHit, shape, nominal.read_hit)
                }
            };
            let saves = saves.max(0.0) / blocks;
            // Of what is not known a read is expected, if it was read; of a young tenant, others after that, for which the block is worth its price.
            let then = if young {
                self.price.map_or(saves * UNPRICED, |price| price.write + price.place)
            } else {
                0.0
            };
            let expected = if kind.is_write() { 0.0 } else { saves + then };
            self.later[at] = count.value(self.unit, stay, expected, |life| life.saved);
            self.worth[at] = self.later[at]
                + if kind.is_write() && at_once { saves - wait * (1.0 - self.rewritten[at]) } else { 0.0 };
            if !kind.is_write() {
                self.read_saves[shape] = saves;
            }
        }
    }

    /// The same for the kinds that came alone.
    pub(super) fn value_known(&mut self, spans: Spans, write: WritePolicy, nominal: &Latencies) {
        self.value_of_kinds(spans, write, nominal, |count| count.requests > 0.0);
    }

    /// The tenant asks for nothing, and did not for long, if ever.
    pub(super) fn is_idle(&self) -> bool {
        self.is_asleep || self.is_blank()
    }

    /// Nothing is known of the tenant.
    pub(super) fn is_blank(&self) -> bool {
        self.counts.is_empty()
    }

    /// [`Self::value`] of a blank ledger, as was found for another blank one: of a thousand idle tenants that has to be found once.
    pub(super) fn value_like(&mut self, blank: &Self) {
        (self.read_saves, self.later, self.worth) = (blank.read_saves, blank.later, blank.worth);
        self.rewritten = blank.rewritten;
    }

    /// Mean seconds of requests.
    fn takes(&self, by: ServedBy, shape: usize, guess: f64) -> f64 {
        let Took { requests, seconds } = self.took[by as usize][shape];
        (seconds + guess * GUESSED) / (requests + GUESSED)
    }

    /// Seconds saved for each block written to the SSD.
    pub(super) fn worth(&self, kind: Kind) -> f64 {
        self.worth[kind.index()]
    }

    /// What is worth no more than this does not enter.
    pub(super) fn set_price(&mut self, price: Option<Price>) {
        self.price = price;
    }

    /// It is so late: what is new was offered since the last time that it was told.
    pub(super) fn remember_until(&mut self, now: f64, period: f64) {
        if !self.is_blank() {
            self.demand.pass(now - self.counted.max(self.began), period);
        }
    }

    /// Nothing came for long, up to now: rates have faded, and what was offered as well, by periods of a budget.
    pub(super) fn pass_over(&mut self, now: f64, period: Option<f64>) {
        if self.is_blank() {
            return;
        }
        if let Some(period) = period {
            self.demand.pass_over(now - self.counted.max(self.began), period);
        }
        self.count_until(now);
        self.fade(0.0);
    }

    /// All that was offered so far, and what each kind was found to be worth last.
    pub(super) fn demand(&self) -> (&Demand, &[f64; KINDS]) {
        (&self.demand, &self.worth)
    }

    /// Blocks per second that would be written if everything entered.
    pub(super) fn offered(&self, kind: Kind) -> f64 {
        let offered = self.counts.get(kind).map_or(0.0, |count| count.offered);
        if self.seconds > 0.0 { offered / self.seconds } else { 0.0 }
    }

    /// Of these, those that take a place in the cache: what is written is there already, for the most part, if it was accessed lately.
    pub(super) fn takes_place(&self, kind: Kind) -> f64 {
        if !kind.is_write() {
            return 1.0;
        }
        let guess = if kind.is_known() { 0.0 } else { 1.0 };
        let Count { taken, resident, .. } = self.counts.get(kind).copied().unwrap_or_default();
        (taken - resident + guess * GUESSED) / (taken + GUESSED)
    }

    /// What was counted so far weighs this much from now on. Of who is idle the rates fade, and nothing that is newer takes the place of what else is known.
    pub(super) fn fade(&mut self, factor: f64) {
        self.counts.iter_mut().for_each(|count| count.offered *= factor);
        self.seconds *= factor;
        if !std::mem::take(&mut self.is_active) {
            return;
        }
        let slowly = 1.0 - (1.0 - factor) / LONGER;
        self.counts.iter_mut().for_each(|count| count.fade(factor, slowly));
        for took in self.took.iter_mut().flatten() {
            took.requests *= factor;
            took.seconds *= factor;
        }
        self.waited *= factor;
        self.left *= factor;
    }

    /// No request has come for long: what was offered is remembered, and what such blocks are worth, as long as that counts; which blocks there were is not. Is that all forgotten?
    pub(super) fn sleep(&mut self) -> bool {
        self.is_asleep = true;
        self.sample = BTreeMap::new();
        self.limit = u64::MAX;
        self.counts.iter_mut().for_each(|count| count.offered = 0.0);
        self.seconds = 0.0;
        self.demand.is_forgotten()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.counts.memory_bytes()
            + self.sample.len() * size_of::<(u64, Known)>()
            + self.demand.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
