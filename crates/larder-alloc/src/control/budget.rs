//! The budget of SSD writes: how many blocks may be written until the day ends, and whether one more may be now, and for whom.

use super::BudgetPeriod;
use super::gate::Writes;
use load::Load;
use rhythm::{PARTS, Rhythm};

mod last;
mod load;
mod rhythm;

pub(super) use rhythm::Offered;
pub use rhythm::{BudgetRhythm, CameBlocks};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// What the SSD may be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteBudget {
    /// Bytes in each period.
    pub bytes: f64,
    /// Seconds of a period: a day, unless the run is to be held to less. What is not written in a period is lost with it.
    pub period_seconds: f64,
}

impl WriteBudget {
    /// Drive writes per day: so many times the capacity of the SSD each day.
    pub fn dwpd(drive_writes: f64, capacity_bytes: u64) -> Self {
        Self { bytes: drive_writes * capacity_bytes as f64, period_seconds: DAY }
    }

    /// Terabytes written over so many years.
    pub fn tbw(terabytes: f64, years: f64) -> Self {
        Self { bytes: terabytes * 1e12 / (years * 365.25), period_seconds: DAY }
    }
}

/// The share of a period's budget that may be spent at once: a cold cache has to be filled.
const AHEAD: f64 = 0.05;

/// What is left of a period's budget may be spent so many times as fast as would use it up evenly. What is not used is lost with the period, and the hours to come may
/// bring nothing: so the budget is spent early rather than late, ever more slowly. A steady load then writes twice the mean at the begin of the period.
const EARLY: f64 = 2.0;

/// The same in the first period, but that of a budget set while guests are served. The cache is empty then, and the sooner a block is in it, the longer it serves.
const EARLY_COLD: f64 = 4.0;

/// In the first period nothing tells how long a load lasts but that it lasted until now ([`Load::age`]): it is taken to last so many times as long, and what is left may be spent by then.
const LASTS: f64 = 4.0;

/// At the begin of the first period what is left may be spent so many times as fast as evenly where that is sooner, and ever more evenly after that: a load that begins late, when little is left of the
/// period, may well last until its end.
const EARLY_FIRST: f64 = 5.0;

/// Where the end may come at any time nothing is spent early.
const EVENLY: f64 = 1.0;

/// Where it is known when in a period what is worth writing comes ([`Rhythm`]) such a share of the budget is spent then. The rest is for what comes at other times.
const BY_RHYTHM: f64 = 0.9;

/// Of a period of which such a share is not seen nothing is known: two parts of those that are told apart.
const UNSEEN: f64 = 2.0 / PARTS as f64;

/// How a budget is kept.
///
/// No more than the period's budget is written in a period, and by any time in it no more than [`EARLY`] ([`EARLY_COLD`]) times the even share, or what [`LASTS`] or the [`Rhythm`] of the periods before
/// allow if that is more (and [`AHEAD`]).
#[derive(Clone, Debug)]
pub(super) struct Pace {
    blocks: f64,
    period: f64,
    /// When the period began.
    began: f64,
    written: f64,
    /// When the run ends, where that is known.
    ends: f64,
    /// What this period is of a whole one: less than all of it where the run ends in it.
    share: f64,
    /// How many times the even share may be spent.
    early: f64,
    /// Seconds that a load is taken to have lasted at least; for ever where nothing tells what is worth its price.
    unit: f64,
    /// None there.
    load: Option<Load>,
    rhythm: Rhythm,
}

impl Pace {
    /// The first period begins at `now`. A load is taken to have lasted for `unit` seconds at least; for ever where nothing tells what is worth its price.
    pub(super) fn new(budget: WriteBudget, block_bytes: u32, unit: f64, now: f64) -> Self {
        let blocks = budget.bytes / f64::from(block_bytes);
        let (load, rhythm) = (None, Rhythm::default());
        let mut new = Self {
            blocks,
            period: budget.period_seconds,
            began: now,
            written: 0.0,
            ends: f64::INFINITY,
            share: 1.0,
            early: EARLY_COLD,
            unit,
            load,
            rhythm,
        };
        new.set_unit(unit, now);
        new
    }

    /// From `now` on a load is taken to have lasted for that long at least. One that is there has been since the period began, as far as is known. What came before, and when, is as true as it was; but where
    /// it begins to be told what is worth its price, or ends, the period under way is not seen whole.
    pub(super) fn set_unit(&mut self, unit: f64, now: f64) {
        let was_told = self.is_told();
        self.unit = unit.max(f64::MIN_POSITIVE);
        self.forget_load(now);
        if self.is_told() != was_told {
            self.rhythm.miss_a_part();
        }
    }

    /// It is told what is offered, and what that is worth.
    fn is_told(&self) -> bool {
        self.unit.is_finite()
    }

    /// Nothing is known of how long the load has been what it is.
    fn forget_load(&mut self, now: f64) {
        self.load = self.is_told().then(|| Load::new(self.unit, self.began.min(now), now));
    }

    /// Nothing is known of what came before `now`.
    fn forget(&mut self, now: f64) {
        self.forget_load(now);
        self.rhythm = if self.began < now { Rhythm::partial() } else { Rhythm::default() };
    }

    /// Another budget from `now` on; in periods of the same length what was written in this one counts.
    pub(super) fn changed(&self, budget: WriteBudget, block_bytes: u32, now: f64) -> Self {
        let new = Self::new(budget, block_bytes, self.unit, now);
        if new.period == self.period {
            let mut same = Self { blocks: new.blocks, ..self.clone() };
            same.rhythm.plan(same.blocks);
            same
        } else {
            new.of_warm_cache()
        }
    }

    /// The period that begins is not the first of a cold cache: nothing has to be filled.
    pub(super) fn of_warm_cache(self) -> Self {
        Self { early: EARLY, ..self }
    }

    /// It may be over at any time: no more is written by then than the even share.
    pub(super) fn spend_evenly(&mut self) {
        self.early = EVENLY;
    }

    /// A period began so many seconds before, and so much of it is written; it may be over since, and what was written too much in it is forgiven then: the budget may have been larger. What was written in a
    /// `first` one may be more than would be open in another by now. What came in it and before is remembered, if that was kept; but not of periods of which more than [`UNSEEN`] was not seen.
    pub(super) fn resume(
        &mut self,
        written: f64,
        since_seconds: f64,
        first: bool,
        rhythm: Option<&BudgetRhythm>,
    ) {
        let now = self.began;
        (self.began, self.written) = (now - since_seconds, written);
        self.forget(now);
        self.early = if first { EARLY_COLD } else { EARLY };
        let part = self.part(now);
        let seen = rhythm.map_or(0.0, |rhythm| rhythm.seen);
        if let Some(kept) = rhythm {
            self.rhythm = Rhythm::resumed(kept);
            // What it tells of may have ended when the period began that goes on.
            let ended = if seen > 0.0 { 1.0 } else { 0.0 };
            if part.min(ended) - seen > UNSEEN {
                self.rhythm.miss_a_part();
            }
            if seen <= 0.0 {
                self.rhythm.turn(self.blocks);
            }
            self.rhythm.plan(self.blocks);
        }
        if part >= 1.0 {
            self.written = self.written.min(self.blocks);
        }
        self.turn(now);
        if part - seen > UNSEEN || !self.is_told() {
            self.rhythm.miss_a_part();
        }
    }

    /// What came in its periods up to now. Of one in which that was not told nothing was seen.
    pub(super) fn rhythm(&self, now: f64) -> BudgetRhythm {
        let kept = self.rhythm.kept(self.part(now));
        BudgetRhythm { partial: kept.partial || !self.is_told(), ..kept }
    }

    pub(super) fn period(&self, block_bytes: f64) -> BudgetPeriod {
        let (began_seconds, written_bytes) = (self.began, self.written * block_bytes);
        BudgetPeriod { began_seconds, written_bytes, first: self.is_first() }
    }

    pub(super) fn follow(&mut self, period: BudgetPeriod, block_bytes: f64) {
        let now = self.began;
        (self.began, self.written) = (period.began_seconds, period.written_bytes / block_bytes);
        self.forget(now);
        self.early = if period.first { EARLY_COLD } else { EARLY };
    }

    pub(super) fn written_blocks(&self) -> f64 {
        self.written
    }

    pub(super) fn written_bytes(&mut self, bytes: f64, block_bytes: f64) {
        self.written += bytes / block_bytes;
    }

    pub(super) fn written(&mut self, blocks: f64) {
        self.written += blocks;
    }

    /// Begin a new period where one is over.
    pub(super) fn turn(&mut self, now: f64) {
        if now < self.period_end() {
            return;
        }
        while now >= self.period_end() {
            self.began += self.period;
            self.early = self.early.min(EARLY);
            // What was written too much weighs on the next one.
            self.written = (self.written - self.blocks).max(0.0);
            self.begin_period();
        }
        self.rhythm.turn(self.blocks);
        if self.share < 1.0 {
            self.rhythm.plan_until(self.share, self.blocks);
        }
    }

    /// This was offered to the SSD since that was told last.
    pub(super) fn offered(&mut self, offered: &Offered, now: f64) {
        self.rhythm.offered(offered, self.part_of_whole(now));
        if let Some(load) = &mut self.load {
            load.offered(offered.saves, now);
        }
    }

    /// The share of the period that is over.
    fn part(&self, now: f64) -> f64 {
        (now - self.began) / self.period
    }

    /// When the period ends.
    pub(super) fn period_end(&self) -> f64 {
        self.began + self.period
    }

    /// May a block be written?
    pub(super) fn open(&self, now: f64) -> bool {
        self.written < self.may(now)
    }

    /// Whole blocks that may be written.
    pub(super) fn room(&self, now: f64) -> u64 {
        (self.may(now) - self.written).max(0.0) as u64
    }

    /// What may be written from the begin of the period to `now`.
    fn may(&self, now: f64) -> f64 {
        let ahead = if self.early > EVENLY { AHEAD } else { 0.0 };
        let share = self.part(now) * self.early;
        ((self.blocks * share).max(self.spent_by(now)) + self.blocks * ahead).min(self.blocks)
    }

    /// It is the first one.
    pub(super) fn is_first(&self) -> bool {
        self.early == EARLY_COLD
    }

    /// The load by which a first period is paced.
    fn new_load(&self) -> Option<&Load> {
        self.load.as_ref().filter(|_| self.is_first())
    }

    /// Seconds in which what is left may be spent.
    fn horizon(&self, now: f64) -> f64 {
        let rest = (self.period_end() - now).max(0.0);
        match self.new_load() {
            Some(load) => {
                let early = EVENLY + (EARLY_FIRST - EVENLY) * rest / self.period;
                (rest / early).min(LASTS * load.age(now).max(self.unit))
            }
            None => rest / self.early,
        }
    }

    /// What is worth writing is expected when it came before, as long as it is told whether it does.
    fn keeps_rhythm(&self) -> bool {
        self.early > EVENLY && self.is_told()
    }

    /// The share that is spent when such a share of the period is over, by the periods before.
    fn by_rhythm(&self, part: f64) -> f64 {
        let spent = self.rhythm.spent(part).filter(|_| self.keeps_rhythm());
        spent.unwrap_or(0.0) * BY_RHYTHM
    }

    /// What may be spent by some time of the period: what is left at any moment is spent `early`, or in what a load that has always been there is taken to last; or when what is worth it came before, a part
    /// of a period sooner.
    fn spent_by(&self, time: f64) -> f64 {
        let by_rhythm = self.by_rhythm(self.part_of_whole(time) + 1.0 / PARTS as f64);
        let (&Self { period, early, unit, .. }, time) = (self, time - self.began);
        // From `turn` on a part of the rest is less than what a load is taken to last, which grows from `first` on.
        let turn = match (self.is_first(), period / (1.0 + LASTS * early)) {
            (true, turn) if turn > unit => turn,
            (true, _) => (period - LASTS * early * unit).max(0.0),
            (false, _) => 0.0,
        };
        let first = unit.min(turn);
        let mut left = (-time.clamp(0.0, first) / (LASTS * unit)).exp();
        if time > first && turn > first {
            left *= (time.min(turn) / first).powf(-1.0 / LASTS);
        }
        left *= ((period - time.max(turn)) / (period - turn)).max(0.0).powf(early);
        self.blocks * (1.0 - left).max(by_rhythm)
    }

    /// Blocks per second that may be written over the next `seconds`, of this period and of those that begin before they are over.
    ///
    /// What is left is spent [`EARLY`] times as fast as would use it up evenly, which leaves less and less; and who was idle before may write what was left over then. But while nothing tells how long a load
    /// lasts what was left over is spent no sooner than anything else.
    pub(super) fn rate(&self, now: f64, seconds: f64) -> f64 {
        let left = (self.blocks - self.written).max(0.0);
        let rest = (self.period_end() - now).max(0.0);
        let seconds = seconds.max(f64::MIN_POSITIVE);
        if seconds <= rest {
            let behind = match self.new_load() {
                Some(_) => 0.0,
                None => self.spent_by(now + seconds) - self.written,
            };
            return (left / self.horizon(now)).max(behind / seconds).min(left / seconds);
        }
        let periods = (seconds - rest) / self.period;
        let of_last = (periods.fract() * EARLY).min(1.0);
        (left + self.blocks * (periods.trunc() + of_last)) / seconds
    }

    /// What is worth less is not to be written in the next `seconds`, by what came in the periods before. As soon as less is written than was to be by now that says nothing of this one; nor is there
    /// anything to wait for where the period ends before.
    fn worth(&self, now: f64, seconds: f64) -> f64 {
        if !self.keeps_rhythm() || now + seconds > self.period_end() {
            return 0.0;
        }
        let part = self.part_of_whole(now);
        let planned = self.by_rhythm(part) * self.blocks;
        let slack = (AHEAD * self.blocks).max(f64::MIN_POSITIVE);
        self.rhythm.worth(part) * ((self.written + slack - planned) / slack).clamp(0.0, 1.0)
    }

    /// What may be written over the next `seconds`, and until the period ends: anything where that is sooner.
    pub(super) fn writes(&self, now: f64, seconds: f64) -> Writes {
        let (left, rest) = ((self.blocks - self.written).max(0.0), self.period_end() - now);
        let lasting = if seconds <= rest { left / rest } else { f64::INFINITY };
        let (even, worth) = (self.blocks / self.period, self.worth(now, seconds));
        Writes { rate: self.rate(now, seconds), lasting, even, period: self.whole_period(), worth }
    }
}

/// A tenant may exceed what was predicted that it writes so many times.
const SLACK: f64 = 2.0;

/// Parts of an epoch for which may be written ahead.
const BURST: f64 = 0.1;

/// A tenant's part of the budget: what its decision predicts.
///
/// Who is given little holds and writes more than that as long as nobody wants its place in the cache back. Without a part of its own it would take the writes of those
/// for whom they do more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// Blocks per second from `from` on; none for as many as the budget allows.
    rate: Option<f64>,
    from: f64,
    written: f64,
}

impl Part {
    /// What may be written with a decision made at `now`, in epochs of so many seconds.
    pub(super) fn new(rate: Option<f64>, now: f64, epoch_seconds: f64) -> Self {
        Self { rate: rate.map(|rate| rate * SLACK), from: now - BURST * epoch_seconds, written: 0.0 }
    }

    pub(super) fn written(&mut self, blocks: u64) {
        self.written += blocks as f64;
    }

    /// May a block be written?
    #[inline]
    pub(super) fn open(&self, now: f64) -> bool {
        self.rate.is_none_or(|rate| self.written < rate * (now - self.from))
    }
}

#[cfg(test)]
mod tests;
