//! What a tenant's requests are worth, by kind: seconds saved for each block written to the SSD.
//!
//! A write that the SSD takes in place of the backing saves what the one takes less than the other, at once. And whatever brings a block in saves what the reads to come take less, until the
//! block is written anew or leaves. The latter is learned from a sample of the tenant's blocks, whether they are resident or not: each access gives its block a *life* that ends with
//! the next one. Counted over age, as in the life tables of insurers, lives that have not ended yet tell as much as those that have: a cache that is cold says what its blocks
//! will be worth before most of them were read again. A block that stays out now can enter with its next read, at the price: what the reads after that save counts for no more than the price.

use larder_policy::doors::{KINDS, Kind, SHAPES};

use counts::{Count, Counts};
use lives::{AGES, Course, Hope, age};
pub(super) use lives::{BOUNDS, bounds};
use sample::Sample;
use took::Took;

use super::super::ServedBy;
use super::demand::Demand;
use super::{Offer, Offers};
use crate::{Latencies, Timed, WritePolicy};

mod counts;
mod lives;
mod sample;
mod took;

/// Of what takes a place in the cache a guess counts for as much as so many blocks that did or did not.
const GUESSED: f64 = 16.0;

/// What the reads after the next one save counts so much: the block may have left before.
const LATER: f64 = 0.9;

/// Before there is a price, a block that was read is expected to be read so many times after the next one.
const UNPRICED: f64 = 5.0;

/// Lives are remembered so many times as long as rates.
const LONGER: f64 = 8.0;

/// Where writes are scarce, rather than places, a read that does not go to the backing saves others so many times as long as it would have waited there for its turn. Where places are that was found to do harm.
///
/// One operation more in a queue costs the others what it waits itself, divided by the part of the time that is left idle (λ·W'(λ), with W by Pollaczek and Khinchine): four times that where the backing is at
/// work for three quarters of the time. Where it has more to do than it can no formula tells; this was found to do well. A write that the SSD takes comes to the backing all the same, later, unless it is written anew before: that is left out.
const OTHERS: f64 = 4.0;

/// A read that waits for nothing takes so many times what one of a block does nominally, at most...
const ALONE: f64 = 2.0;

/// ...and as many times that as it has so many blocks.
const LARGE: f64 = 16.0;

/// How long things are so, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    /// A block stays in the cache, from its last access on.
    pub stay: f64,
    /// The same where a budget is used up evenly: where nothing is left of it blocks stay for ever, and all is worth much.
    pub usual: f64,
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

impl Price {
    /// What a block pays that takes no place, by what one pays that does, from 0 to 1: where writes are limited, how scarce they are beside places.
    pub(super) fn of_writes(self) -> f64 {
        if self.write > 0.0 { self.write / (self.write + self.place) } else { 0.0 }
    }
}

/// How blocks come to be resident, or stay so, by requests of one kind, in blocks per second.
pub(super) struct Flow {
    pub kind: Kind,
    /// Those that are resident when they are asked for.
    pub hits: f64,
    /// Those of writes that were not, and entered.
    pub enters: f64,
    /// Those that would be written if everything entered, and of these those that would take a place.
    pub offered: f64,
    pub would_enter: f64,
}

/// What is to be had of a block that a request of some kind brings in.
struct Prospect {
    /// Seconds saved at once by a write that the SSD takes, or by a read that finds the block.
    saves: f64,
    /// Those saved by a read that is expected where nothing is known.
    expected: f64,
    /// Of a write that is answered at once: how long somebody waits for the block to be written back.
    wait: Option<f64>,
    longest: f64,
    /// None without lives.
    course: Option<Course>,
}

impl Prospect {
    /// What is to be expected of a block that stays so long: what the reads to come save, and how likely it is to be written anew before it leaves.
    fn hope(&self, stay: f64) -> Hope {
        match &self.course {
            Some(course) => course.within(stay.min(self.longest), self.expected),
            // The same for no lives at all.
            None => Hope { saved: self.expected * (1.0 - (-1.0_f64).exp()), rewritten: 0.0 },
        }
    }

    /// What a block of which so much is to be expected is worth: each one that the SSD takes has to be written back some time, unless it is written anew before.
    fn worth(&self, hope: Hope) -> f64 {
        hope.saved + self.wait.map_or(0.0, |wait| self.saves - wait * (1.0 - hope.rewritten))
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
    sample: Sample,
    /// Seconds of the first age.
    unit: f64,
    /// When the tenant's first request came.
    began: f64,
    /// What a block of a read saves if it is resident, by shape of the request.
    read_saves: [f64; SHAPES],
    /// What is saved by the reads to come of a block that is resident after a request, by kind.
    later: [f64; KINDS],
    /// How likely a block that is resident after a request is to be written anew before it leaves, by kind.
    rewritten: [f64; KINDS],
    worth: [f64; KINDS],
    /// The same in a stay that is usual, if that is shorter.
    usually: [f64; KINDS],
    /// What enters is worth more, once that is known.
    price: Option<Price>,
    /// How scarce writes are beside places, from 0 to 1.
    scarce: f64,
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
            sample: Sample::new(unit, now),
            unit,
            began: now,
            read_saves: [0.0; SHAPES],
            later: [0.0; KINDS],
            rewritten: [0.0; KINDS],
            worth: [0.0; KINDS],
            usually: [0.0; KINDS],
            price: None,
            scarce: 0.0,
            demand: Demand::default(),
        }
    }

    fn count(&mut self, kind: Kind) -> &mut Count {
        (self.is_active, self.is_asleep) = (true, false);
        self.counts.count(kind.index())
    }

    /// A request. One of which is heard late counts from the last [`Self::value`] on.
    pub(super) fn observe(&mut self, kind: Kind, keys: impl ExactSizeIterator<Item = u64>, now: f64) {
        // One for no block says nothing of what a block is worth.
        if keys.len() == 0 {
            return;
        }
        let now = now.max(self.sample.counted());
        if self.counts.is_empty() {
            self.began = now;
        }
        let count = self.count(kind);
        count.requests += 1.0;
        count.blocks += keys.len() as f64;
        count.asked += keys.len() as f64;
        for key in keys {
            if self.sample.has(key) {
                self.look(kind, key, now);
                self.sample.thin(now, &mut self.counts);
            }
        }
    }

    /// A block of the sample is accessed: the life that its last access gave it ends, and another begins.
    fn look(&mut self, kind: Kind, key: u64, now: f64) {
        let Some(before) = self.sample.begin(key, kind.index(), now, &mut self.counts) else { return };
        let age = age(before.since, now, self.unit);
        let count = self.counts.count(before.kind);
        count.live_from(before.since, self.sample.counted(), now, self.unit);
        let life = &mut count.lives[age];
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

    /// Blocks that were offered since what is new was told last ([`Self::remember_until`]), and what each was found to be worth last, in a usual stay.
    pub(super) fn lately(&self) -> impl Iterator<Item = (f64, f64)> {
        self.demand.lately().zip(self.usually.iter().copied()).filter(|(blocks, _)| *blocks > 0.0)
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
        self.seconds += now - self.sample.counted();
        self.sample.count_until(now, &mut self.counts);
    }

    /// Find what everything is worth for a tenant with this write policy, by what was counted.
    pub(super) fn value(&mut self, spans: Spans, write: WritePolicy, nominal: &Latencies) {
        self.value_reads(nominal);
        Kind::all().for_each(|kind| self.value_kind(kind, spans, write, nominal));
    }

    /// The same for the kinds that came alone.
    pub(super) fn value_known(&mut self, spans: Spans, write: WritePolicy, nominal: &Latencies) {
        self.value_reads(nominal);
        for kind in Kind::all() {
            if self.counts.get(kind).is_some_and(|count| count.requests > 0.0) {
                self.value_kind(kind, spans, write, nominal);
            }
        }
    }

    fn value_kind(&mut self, kind: Kind, spans: Spans, write: WritePolicy, nominal: &Latencies) {
        let prospect = self.prospect(kind, self.counts.get(kind), spans.youth, write, nominal);
        let (at, hope) = (kind.index(), prospect.hope(spans.stay));
        (self.worth[at], self.later[at], self.rewritten[at]) =
            (prospect.worth(hope), hope.saved, hope.rewritten);
        self.usually[at] = match spans.stay > spans.usual {
            true => prospect.worth(prospect.hope(spans.usual)),
            false => self.worth[at],
        };
    }

    /// What a block of a read saves if it is resident: a request of the shape has so many in the mean, whatever is known of its blocks.
    fn value_reads(&mut self, nominal: &Latencies) {
        let mut came = [(0.0, 0.0); SHAPES];
        let mut blocks = [1.0; SHAPES];
        for kind in Kind::all().filter(|kind| !kind.is_write()) {
            blocks[kind.shape()] = kind.blocks() as f64;
            if let Some(count) = self.counts.get(kind) {
                came[kind.shape()].0 += count.blocks;
                came[kind.shape()].1 += count.requests;
            }
        }
        for (shape, (all, requests)) in came.into_iter().enumerate() {
            let mean = if requests > 0.0 { all / requests } else { blocks[shape] };
            self.read_saves[shape] = self.read_saves(shape, blocks[shape], nominal) / mean;
        }
    }

    /// Seconds that a read of the shape, of which the largest has so many blocks, saves if it finds them: itself, and those who wait behind it ([`OTHERS`]).
    fn read_saves(&self, shape: usize, largest: f64, nominal: &Latencies) -> f64 {
        let missed = self.takes(ServedBy::ReadMiss, shape, nominal.read_miss);
        let large = (largest / LARGE).max(1.0);
        let waits = (missed - ALONE * large * nominal.read_miss).max(0.0);
        let saves = (missed - self.takes(ServedBy::ReadHit, shape, nominal.read_hit)).max(0.0);
        saves + OTHERS * self.scarce * waits
    }

    /// What a block of each kind that is offered would be worth for a tenant with this write policy, by what was counted, were blocks to stay for each of these times.
    pub(super) fn worths_offered<const N: usize>(
        &self,
        stays: [f64; N],
        youth: f64,
        write: WritePolicy,
        nominal: &Latencies,
    ) -> impl Iterator<Item = (Kind, [f64; N])> {
        Kind::all().filter_map(move |kind| {
            let count = self.counts.get(kind).filter(|count| count.offered > 0.0)?;
            let prospect = self.prospect(kind, Some(count), youth, write, nominal);
            // Under a tight budget all stays are the same.
            let mut last = None;
            let worth = |stay: f64| {
                let known = last.filter(|&(before, _)| before == stay);
                let (_, worth) = known.unwrap_or_else(|| (stay, prospect.worth(prospect.hope(stay))));
                last = Some((stay, worth));
                worth
            };
            Some((kind, stays.map(worth)))
        })
    }

    fn prospect(
        &self,
        kind: Kind,
        count: Option<&Count>,
        youth: f64,
        write: WritePolicy,
        nominal: &Latencies,
    ) -> Prospect {
        let shape = kind.shape();
        let counted = count.filter(|count| count.requests > 0.0);
        let blocks = counted.map_or(kind.blocks() as f64, |count| count.blocks / count.requests);
        let saves = match kind.is_write() {
            true => {
                let past = self.takes(ServedBy::BackingWrite, shape, nominal.backing_write);
                (past - self.takes(ServedBy::CachedWrite, shape, nominal.cached_write)).max(0.0)
            }
            false => self.read_saves(shape, kind.blocks() as f64, nominal),
        };
        let saves = saves / blocks;
        // No block can have been seen to stay for nothing yet: what is not known now is not rare.
        let young = self.counts.is_empty() || self.sample.counted() - self.began < youth;
        // Of what is not known a read is expected, if it was read; of a young tenant, others after that, for which the block is worth its price.
        let then =
            if young { self.price.map_or(saves * UNPRICED, |price| price.write + price.place) } else { 0.0 };
        let waits = kind.is_write() && write.answers_at_once();
        Prospect {
            saves,
            expected: if kind.is_write() { 0.0 } else { saves + then },
            wait: waits.then(|| self.waited / self.left.max(1.0)),
            // Of longer stays nothing can be known.
            longest: self.unit * (1u64 << (AGES - 1)) as f64,
            course: count.filter(|count| count.lived).map(|count| Course::of(&count.lives, self.unit)),
        }
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
        (self.rewritten, self.usually) = (blank.rewritten, blank.usually);
    }

    /// Mean seconds of requests.
    fn takes(&self, by: ServedBy, shape: usize, guess: f64) -> f64 {
        self.took[by as usize][shape].mean(guess)
    }

    /// It has been seen what writes of the shape take past the SSD.
    pub(super) fn knows_past(&self, shape: usize) -> bool {
        self.took[ServedBy::BackingWrite as usize][shape].is_known()
    }

    /// Seconds saved for each block written to the SSD.
    pub(super) fn worth(&self, kind: Kind) -> f64 {
        self.worth[kind.index()]
    }

    /// What is worth no more than this does not enter.
    pub(super) fn set_price(&mut self, price: Option<Price>) {
        self.price = price;
    }

    /// How scarce writes are beside places, from 0 to 1.
    pub(super) fn set_scarce(&mut self, scarce: f64) {
        self.scarce = scarce;
    }

    /// It is so late: what is new was offered since the last time that it was told.
    pub(super) fn remember_until(&mut self, now: f64, period: f64) {
        if !self.is_blank() {
            self.demand.pass(now - self.sample.counted().max(self.began), period);
        }
    }

    /// Nothing came for long, up to now: rates have faded, and what was offered as well, by periods of a budget.
    pub(super) fn pass_over(&mut self, now: f64, period: Option<f64>) {
        if self.is_blank() {
            return;
        }
        if let Some(period) = period {
            self.demand.pass_over(now - self.sample.counted().max(self.began), period);
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

    /// Seconds in which that came which has been counted by `now`.
    fn seconds_until(&self, now: f64) -> f64 {
        self.seconds + now - self.sample.counted()
    }

    /// The tenant asks for something, and how often is known.
    pub(super) fn has_rates(&self, now: f64) -> bool {
        !self.is_idle() && self.seconds_until(now) > 0.0
    }

    /// How blocks come to be resident at `now`, by the kinds that came lately. Nothing is told of a tenant without [rates](Self::has_rates).
    pub(super) fn flows(&self, now: f64) -> impl Iterator<Item = Flow> {
        let rates = self.has_rates(now).then(|| (self.seconds_until(now), self.unheard()));
        let kinds = rates.into_iter().flat_map(|rates| Kind::all().map(move |kind| (kind, rates)));
        kinds.filter_map(|(kind, (seconds, unheard))| {
            let count = self.counts.get(kind).filter(|count| count.asked > 0.0 || count.offered > 0.0)?;
            // What became of writes fades only while the tenant asks for something, what was asked for always: it counts for those that came lately.
            let (hits, enters) = match kind.is_write() {
                true => {
                    let part = |of: f64| count.asked * of / count.blocks.max(f64::MIN_POSITIVE);
                    (part(count.resident), part(count.taken - count.resident))
                }
                false => ((count.asked * unheard - count.offered).max(0.0), 0.0),
            };
            let [hits, enters, offered] = [hits, enters, count.offered].map(|blocks| blocks / seconds);
            Some(Flow { kind, hits, enters, offered, would_enter: offered * self.takes_place(kind) })
        })
    }

    /// Mean seconds until a block that a request of this kind asked for is asked for again, of those that each age begins with at most, and of those that the last ends with.
    pub(super) fn lasts(&self, kind: Kind) -> [f64; BOUNDS] {
        self.counts
            .get(kind)
            .map_or([0.0; BOUNDS], |count| lives::lasts(&count.lives, &count.alive, self.unit))
    }

    /// So many reads came for each that was heard of: where requests are served elsewhere in great number some are not told.
    fn unheard(&self) -> f64 {
        let reads = Kind::all().filter(|kind| !kind.is_write());
        let heard: f64 = reads.filter_map(|kind| self.counts.get(kind)).map(|count| count.requests).sum();
        let by = [ServedBy::ReadHit, ServedBy::ReadMiss];
        let came: f64 = by.iter().flat_map(|&by| &self.took[by as usize]).map(Took::count).sum();
        if heard > 0.0 { (came / heard).max(1.0) } else { 1.0 }
    }

    /// What was counted so far weighs this much from now on. Of who is idle the rates fade, and nothing that is newer takes the place of what else is known.
    pub(super) fn fade(&mut self, factor: f64) {
        self.counts.iter_mut().for_each(|count| {
            counts::fade(&mut count.offered, factor);
            counts::fade(&mut count.asked, factor);
        });
        self.seconds *= factor;
        if !std::mem::take(&mut self.is_active) {
            return;
        }
        let slowly = 1.0 - (1.0 - factor) / LONGER;
        self.counts.iter_mut().for_each(|count| count.fade(factor, slowly));
        self.took.iter_mut().flatten().for_each(|took| took.fade(factor));
        self.waited *= factor;
        self.left *= factor;
    }

    /// No request has come for long: what was offered is remembered, and what such blocks are worth, as long as that counts; which blocks there were is not. Is that all forgotten?
    pub(super) fn sleep(&mut self) -> bool {
        self.is_asleep = true;
        self.sample = Sample::new(self.unit, self.sample.counted());
        self.counts.iter_mut().for_each(|count| {
            (count.offered, count.asked, count.alive) = (0.0, 0.0, [0; AGES]);
        });
        self.seconds = 0.0;
        self.demand.is_forgotten()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.counts.memory_bytes() + self.sample.memory_bytes() + self.demand.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
