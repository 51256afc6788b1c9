//! The budget of SSD writes: how many blocks may be written until the day ends, and whether one more may be now, and for whom.

use super::BudgetPeriod;
use super::gate::Writes;
use load::Load;
use rhythm::{PARTS, Rhythm};

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

/// The same in the first period. The cache is empty then, and the sooner a block is in it, the longer it serves.
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
    /// How many times the even share may be spent.
    early: f64,
    /// Seconds that a load is taken to have lasted at least.
    unit: f64,
    /// None where nothing tells what is worth its price.
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
            early: EARLY_COLD,
            unit,
            load,
            rhythm,
        };
        new.set_unit(unit, now);
        new
    }

    /// From `now` on a load is taken to have lasted for that long at least. One that is there has been since the period began, as far as is known.
    pub(super) fn set_unit(&mut self, unit: f64, now: f64) {
        self.unit = unit.max(f64::MIN_POSITIVE);
        self.forget_load(now);
    }

    /// Nothing is known of what came before `now`.
    fn forget_load(&mut self, now: f64) {
        self.load = self.unit.is_finite().then(|| Load::new(self.unit, self.began.min(now), now));
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
            Self { early: EARLY, ..new }
        }
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
        self.forget_load(now);
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
        if part - seen > UNSEEN {
            self.rhythm.miss_a_part();
        }
    }

    /// What came in its periods up to now.
    pub(super) fn rhythm(&self, now: f64) -> BudgetRhythm {
        self.rhythm.kept(self.part(now))
    }

    pub(super) fn period(&self, block_bytes: f64) -> BudgetPeriod {
        let (began_seconds, written_bytes) = (self.began, self.written * block_bytes);
        BudgetPeriod { began_seconds, written_bytes, first: self.is_first() }
    }

    pub(super) fn follow(&mut self, period: BudgetPeriod, block_bytes: f64) {
        let now = self.began;
        (self.began, self.written) = (period.began_seconds, period.written_bytes / block_bytes);
        self.forget_load(now);
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
        }
        self.rhythm.turn(self.blocks);
    }

    /// This was offered to the SSD since that was told last.
    pub(super) fn offered(&mut self, offered: &Offered, now: f64) {
        self.rhythm.offered(offered, self.part(now));
        if let Some(load) = &mut self.load {
            load.offered(offered.saves, now);
        }
    }

    /// The share of the period that is over.
    fn part(&self, now: f64) -> f64 {
        (now - self.began) / self.period
    }

    pub(super) fn period_seconds(&self) -> f64 {
        self.period
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

    /// What may be spent by some time of the period: what is left at any moment is spent `early`, or in what a load that has always been there is taken to last; or when what is worth it came before, a part
    /// of a period sooner.
    fn spent_by(&self, time: f64) -> f64 {
        let by_rhythm = match self.early > EVENLY {
            true => self.rhythm.spent(self.part(time) + 1.0 / PARTS as f64).unwrap_or(0.0) * BY_RHYTHM,
            false => 0.0,
        };
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
        if self.early <= EVENLY || now + seconds > self.period_end() {
            return 0.0;
        }
        let part = self.part(now);
        let planned = self.rhythm.spent(part).unwrap_or(0.0) * BY_RHYTHM * self.blocks;
        let slack = (AHEAD * self.blocks).max(f64::MIN_POSITIVE);
        self.rhythm.worth(part) * ((self.written + slack - planned) / slack).clamp(0.0, 1.0)
    }

    /// What may be written over the next `seconds`, and until the period ends: anything where that is sooner.
    pub(super) fn writes(&self, now: f64, seconds: f64) -> Writes {
        let (left, rest) = ((self.blocks - self.written).max(0.0), self.period_end() - now);
        let lasting = if seconds <= rest { left / rest } else { f64::INFINITY };
        let (even, worth) = (self.blocks / self.period, self.worth(now, seconds));
        Writes { rate: self.rate(now, seconds), lasting, even, period: self.period, worth }
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
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_was_predicted_and_some_slack() {
        let part = |rate| Part::new(rate, 100.0, 20.0);
        let mut some = part(Some(10.0));
        // Two seconds ahead, twice the rate.
        some.written(39);
        assert!(some.open(100.0));
        some.written(1);
        assert!(!some.open(100.0) && some.open(100.1));
        assert!(!part(Some(0.0)).open(200.0) && part(None).open(100.0));
    }

    #[test]
    fn budgets_are_told_in_two_ways() {
        let dwpd = WriteBudget::dwpd(0.5, 1 << 40);
        assert_eq!((dwpd.bytes, dwpd.period_seconds), ((1u64 << 39) as f64, 86_400.0));
        let tbw = WriteBudget::tbw(600.0, 5.0);
        assert!((tbw.bytes - 600e12 / 1826.25).abs() < 1.0);
    }

    #[test]
    fn no_period_is_overdrawn() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
        let mut written = [0u64; 3];
        for step in 0..30_000 {
            let now = f64::from(step) * 0.01;
            pace.turn(now);
            if pace.open(now) {
                pace.written(1.0);
                written[step as usize / 10_000] += 1;
            }
        }
        assert_eq!(written, [1000; 3]);
    }

    #[test]
    fn what_may_be_written_is_counted_in_blocks() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
        assert_eq!(
            (pace.room(0.0), pace.room(10.0), pace.room(70.0), pace.period_end()),
            (50, 450, 1000, 100.0)
        );
        pace.written(300.0);
        assert_eq!((pace.room(5.0), pace.open(5.0), pace.room(10.0), pace.room(70.0)), (0, false, 150, 700));
        pace.turn(100.0);
        // The cache is no longer cold.
        assert_eq!((pace.room(100.0), pace.room(110.0), pace.period_end()), (50, 250, 200.0));
    }

    #[test]
    fn evenly_nothing_is_spent_early_and_nothing_is_lost() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
        pace.spend_evenly();
        assert_eq!((pace.room(0.0), pace.room(10.0), pace.rate(10.0, 10.0).round()), (0, 100, 20.0));
        pace.written(100.0);
        assert_eq!((pace.room(10.0), pace.rate(10.0, 10.0).round()), (0, 10.0));
        pace.turn(100.0);
        assert_eq!(pace.room(110.0), 100);
    }

    #[test]
    fn a_load_that_has_just_begun_may_end_soon() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 }, 4096, 60.0, 0.0);
        // In four minutes, after ten of them in forty; after two hours eight more are longer than what is left of the day, spent nearly five times as fast as evenly.
        assert_eq!(pace.rate(0.0, 10.0).round(), (1e6_f64 / 240.0).round());
        pace.written(6e5);
        assert_eq!(pace.rate(600.0, 10.0).round(), (4e5_f64 / 2400.0).round());
        pace.written(2e5);
        let early = 1.0 + 4.0 * 22.0 / 24.0;
        assert_eq!(pace.rate(2.0 * 3600.0, 10.0).round(), (2e5_f64 / (22.0 * 3600.0 / early)).round());
        // At the most by then: a minute, an hour and a half, and the rest.
        let pace = Pace { written: 0.0, ..pace };
        let left = |time: f64| 1.0 - pace.spent_by(time) / 1e6;
        let turn = 86_400.0 / 17.0;
        assert!((left(60.0) - (-0.25_f64).exp()).abs() < 1e-9);
        assert!((left(turn) - left(60.0) * (turn / 60.0).powf(-0.25)).abs() < 1e-9);
        assert!((left(43_200.0) - left(turn) * (17.0_f64 / 32.0).powi(4)).abs() < 1e-9);
        assert_eq!(left(86_400.0), 0.0);
        // Tomorrow is known by today.
        let mut pace = pace;
        pace.turn(86_400.0);
        assert_eq!(pace.rate(86_400.0, 10.0).round(), (1e6_f64 / 43_200.0).round());
    }

    /// What would save so many seconds.
    fn saving(seconds: f64) -> Offered {
        let mut offered = Offered::default();
        offered.add(1e-3, seconds / 1e-3);
        offered
    }

    /// What is left of a first period's budget where the same load has always been there, by the shares of the period: in four times as long as it has lasted, then five times as fast as evenly, ever more evenly.
    fn left_of_a_steady_load(time: f64, period: f64, unit: f64) -> f64 {
        let of_rest = |time: f64| (period - time) / (1.0 + 4.0 * (period - time) / period);
        let steps = (0..100_000).map(|at| f64::from(at) * period / 1e5);
        let turn = steps.into_iter().find(|&at| of_rest(at) <= 4.0 * at.max(unit)).unwrap_or(period);
        let begun = time.min(turn);
        let by_age = (-begun.min(unit) / (4.0 * unit)).exp() * (begun.max(unit) / unit).powf(-0.25);
        let rest = |time: f64| (1.0 - time / period) * (4.0 * (1.0 - time / period)).exp();
        by_age * rest(time.max(turn)) / rest(turn)
    }

    /// Whoever always has something to write, and writes at the rate that is told, has written at any time what is told to be spent by then, all of it when the period ends, and never more than may be.
    #[test]
    fn what_is_spent_is_what_the_rate_comes_to() {
        for (period, unit) in [(86_400.0, 60.0), (1000.0, 61.0), (1000.0, 500.0), (100.0, f64::INFINITY)] {
            let mut pace =
                Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: period }, 4096, unit, 0.0);
            let mut least = 0.0_f64;
            for at in 0..100_000 {
                let (now, step) = (f64::from(at) * period / 1e5, period / 1e5);
                pace.offered(&saving(step), now);
                let left = pace.blocks - pace.written;
                let expected = match unit.is_finite() {
                    true if at % 100 == 0 => 1e6 * (1.0 - left_of_a_steady_load(now, period, unit)),
                    true => pace.written,
                    false => pace.spent_by(now),
                };
                assert!((pace.written - expected).abs() < 3e3, "{period} {unit} {now}");
                assert!(
                    pace.written <= pace.may(now) && pace.spent_by(now) >= least,
                    "{period} {unit} {now}"
                );
                least = pace.spent_by(now);
                pace.written(left / pace.horizon(now) * step);
            }
            assert!(pace.written > 0.999 * pace.blocks, "{period} {unit}: {}", pace.written);
        }
    }

    /// In a run of an hour little comes for forty minutes, and then a load that lasts until its end.
    #[test]
    fn a_load_that_begins_late_is_new_as_well() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 3600.0 }, 4096, 60.0, 0.0);
        for second in 1..3600 {
            let now = f64::from(second);
            let load = if second <= 2400 { 1e-3 } else { 1.0 };
            pace.offered(&saving(load), now);
            match second {
                // It is as old as the run.
                2399 => assert_eq!(
                    pace.horizon(now).round(),
                    (1201.0_f64 / (1.0 + 4.0 * 1201.0 / 3600.0)).round()
                ),
                // In four minutes, not all that was left over at once; when it is half over a fifth is left for the rest.
                2430 => assert_eq!(pace.horizon(now), 240.0),
                3000 => assert!((6e5..8.5e5).contains(&pace.written), "{}", pace.written),
                _ => (),
            }
            if second > 2400 {
                pace.written(pace.rate(now, 1.0));
            }
        }
        assert!(pace.written > 0.95e6 && pace.written <= 1e6, "{}", pace.written);
    }

    /// Of a day's load, which comes in its first three hours, what is worth a millisecond is as much as may be written, and what is worth a tenth of that comes as well.
    fn morning(pace: &mut Pace, day: u32) {
        for minute in 0..180 {
            let mut offered = Offered::default();
            [1e-3, 1e-4].iter().for_each(|&worth| offered.add(worth, 1e6 / 180.0));
            let now = f64::from(day) * 86_400.0 + f64::from(minute) * 60.0;
            pace.turn(now);
            pace.offered(&offered, now);
        }
    }

    #[test]
    fn what_came_yesterday_is_expected_today() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 }, 4096, 600.0, 0.0);
        morning(&mut pace, 0);
        assert_eq!(pace.worth(3600.0, 600.0), 0.0);
        let at = |hour: f64| 86_400.0 + hour * 3600.0;
        pace.turn(at(0.0));
        // After an hour and a half, and the half hour to come, two thirds of what is spent by rhythm; after three hours all of that.
        let share = |blocks: f64| (blocks / 1e6 * 100.0).round() / 100.0;
        assert_eq!([1.5, 3.0, 12.0].map(|hour| share(pace.spent_by(at(hour)))), [0.6, 0.9, 0.9]);
        assert!(pace.may(at(3.0)) <= 1e6 && pace.rate(at(1.0), 600.0) > 400.0);
        // After an hour three tenths were to be written. What was worth a tenth stays out while that is so, and what is known says nothing where a twentieth less is; nor once all came that is to come, nor where
        // the day ends.
        let mut worth = |written: f64, hour: f64| {
            pace.written = written;
            pace.worth(at(hour), 600.0)
        };
        let whole = worth(4e5, 1.0);
        assert!((1.01e-4..1.2e-3).contains(&whole), "{whole}");
        assert!((worth(2.75e5, 1.0) / whole - 0.5).abs() < 0.1 && worth(2.4e5, 1.0) == 0.0);
        assert_eq!([worth(9e5, 3.0), worth(9e5, 23.9)], [0.0, 0.0]);
        // With more to write it is all worth it; in periods of another length, and evenly spent ones, nothing is known.
        let budget = |bytes, period_seconds| WriteBudget { bytes, period_seconds };
        assert_eq!(pace.changed(budget(4096.0 * 4e6, 86_400.0), 4096, at(1.0)).worth(at(2.0), 600.0), 0.0);
        let other = pace.changed(budget(4096.0 * 1e6, 3600.0), 4096, at(1.0));
        assert!(other.rhythm.spent(0.5).is_none() && pace.rhythm.spent(0.5).is_some());
        pace.spend_evenly();
        assert_eq!((pace.worth(at(2.5), 600.0), share(pace.spent_by(at(12.0)))), (0.0, 0.5));
    }

    /// Another daemon goes on with what was kept of a day's budget, in a day that began so long ago.
    fn resumed(since: f64, written: f64, rhythm: Option<&BudgetRhythm>) -> Pace {
        let budget = WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 };
        let mut pace = Pace::new(budget, 4096, 600.0, 50.0);
        pace.resume(written, since, false, rhythm);
        pace
    }

    /// A day's pace on the second day, and what it was when an hour and a half of that were over.
    fn second_day() -> (Pace, f64) {
        let budget = WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 };
        let mut pace = Pace::new(budget, 4096, 600.0, 0.0);
        morning(&mut pace, 0);
        pace.turn(86_400.0);
        pace.written(4.3e5);
        (pace, 86_400.0 + 5400.0)
    }

    #[test]
    fn what_came_yesterday_is_expected_today_after_a_restart_too() {
        let (mut before, now) = second_day();
        let pace = resumed(5400.0, 4.3e5, Some(&before.rhythm(now)));
        assert_eq!((pace.period_end(), pace.written), (50.0 + 86_400.0 - 5400.0, 4.3e5));
        assert!((pace.spent_by(50.0) - before.spent_by(now)).abs() < 1.0);
        assert!((pace.worth(50.0, 600.0) - before.worth(now, 600.0)).abs() < 1e-9);
        assert!(before.worth(now, 600.0) > 0.0);
        // What came in the period under way counts in the next one.
        let mut evening = Offered::default();
        evening.add(1e-3, 1e6);
        before.offered(&evening, 86_400.0 + 20.0 * 3600.0);
        let late = 23.0 * 3600.0;
        let mut pace = resumed(late, 4.3e5, Some(&before.rhythm(86_400.0 + late)));
        pace.turn(50.0 + 3600.0);
        // As it does where the daemon was there until nearly its end, and another one begins after that; and where the budget's next period is known of, and what came in it is not yet.
        let kept = before.rhythm(2.0 * 86_400.0 - 600.0);
        let soon = resumed(86_400.0 + 600.0, 4.3e5, Some(&kept));
        let killed = resumed(600.0, 0.0, Some(&BudgetRhythm { seen: kept.seen - 1.0, ..kept }));
        before.turn(2.0 * 86_400.0);
        let known = before.rhythm(2.0 * 86_400.0);
        for it in [pace, soon, killed] {
            assert_eq!(it.rhythm(it.began), known);
            assert!((it.spent_by(it.began + 43_200.0) - before.spent_by(2.5 * 86_400.0)).abs() < 1.0);
        }
        assert!(before.spent_by(2.5 * 86_400.0) < 0.85e6);
    }

    #[test]
    fn a_day_of_which_a_part_was_not_seen_says_nothing() {
        let (mut before, now) = second_day();
        let known = BudgetRhythm { partial: true, ..before.rhythm(86_400.0) };
        before.offered(&saving(1.0), now);
        let kept = before.rhythm(now);
        assert_eq!((kept.now.len(), kept.partial), (1, false));
        let is_known = |pace: Pace| pace.rhythm(pace.began) == known;
        // Not there from half past one to five, or until the day after; nor was it seen what came before it was killed.
        assert!(is_known(resumed(5.0 * 3600.0, 4.3e5, Some(&kept))));
        assert!(is_known(resumed(86_400.0 + 5400.0, 4.3e5, Some(&kept))));
        assert!(is_known(resumed(
            5400.0,
            0.0,
            Some(&BudgetRhythm { seen: kept.seen - 1.0, ..kept.clone() })
        )));
        // An hour is not missed, and nothing was ever known.
        assert_eq!(resumed(8900.0, 4.3e5, Some(&kept)).rhythm(50.0).now, kept.now);
        let unknown = resumed(86_400.0 + 5400.0, 4.3e5, None);
        assert_eq!(unknown.rhythm(unknown.began), BudgetRhythm { partial: true, ..BudgetRhythm::default() });
    }

    #[test]
    fn a_period_that_ended_without_a_daemon_leaves_no_debt() {
        let pace = resumed(86_400.0 + 5400.0, 9e6, None);
        assert_eq!(
            (pace.written, pace.is_first(), pace.period_end()),
            (0.0, false, 50.0 + 86_400.0 - 5400.0)
        );
        // In the one that is under way what was written counts.
        assert_eq!(resumed(5400.0, 9e6, None).room(60.0), 0);
    }

    #[test]
    fn what_may_be_written_lasts_until_the_period_ends() {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
        pace.written(400.0);
        let Writes { rate, lasting, even, period, worth } = pace.writes(40.0, 10.0);
        assert_eq!((rate, lasting, even), (pace.rate(40.0, 10.0), 10.0, 10.0));
        assert_eq!((period, worth), (100.0, 0.0));
        assert_eq!((pace.writes(90.0, 10.0).lasting, pace.writes(90.5, 10.0).lasting), (60.0, f64::INFINITY));
        pace.written(700.0);
        assert_eq!(pace.writes(40.0, 10.0).lasting, 0.0);
    }

    #[test]
    fn what_is_behind_raises_the_rate_and_what_is_ahead_lowers_it() {
        let budget = WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 };
        let mut pace = Pace::new(budget, 4096, f64::INFINITY, 0.0);
        // Four times what would use it up evenly. Who has written nothing in the first half may write what was left over then.
        let caught_up = 1000.0 * (1.0 - 0.4_f64.powi(4)) / 10.0;
        assert_eq!(pace.rate(0.0, 10.0), 40.0);
        assert!((pace.rate(50.0, 10.0) - caught_up).abs() < 1e-9);
        pace.turn(100.0);
        pace.began = 0.0;
        assert_eq!((pace.rate(0.0, 10.0), pace.rate(50.0, 10.0)), (20.0, 84.0));
        pace.written(840.0);
        assert_eq!(pace.rate(50.0, 10.0), 6.4);
        pace.written -= 240.0;
        assert_eq!(pace.rate(50.0, 10.0), 24.0);
        // No more than there is, and what the next periods bring.
        assert_eq!(pace.rate(90.0, 10.0), 40.0);
        assert_eq!(pace.rate(95.0, 10.0), 50.0);
        assert_eq!(pace.rate(99.0, 151.0), (400.0 + 1000.0 + 1000.0) / 151.0);
    }
}
