//! When in a period of the budget what is worth writing comes, by the periods before.
//!
//! Load comes by day, or by night. Where the budget is shared out over the whole day, a load of its first hours finds a third of it, and the rest is lost. So what is offered to the SSD is remembered by the
//! time of the period and by what it was worth. From the second period on the budget is spent when that came which was worth the most, of as much as may be written.

/// Parts of a period that are told apart: half hours of a day.
pub(super) const PARTS: usize = 48;

/// Worths that are told apart, each so much higher than the one before: a fourth of an octave.
const STEPS: f64 = 4.0;

/// Worths that are told apart, from [`LEAST`] up to an hour.
const WORTHS: usize = 128;

/// What is worth less is not counted: seconds for a block.
const LEAST: f64 = 1e-6;

/// What is left of the periods before when another one is over in which something was offered.
const REMEMBERED: f32 = 0.5;

/// No more blocks can have come.
const BLOCKS_MAX: f32 = 1e15;

/// Blocks offered to the SSD, by what they are worth.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Offered {
    blocks: [f32; WORTHS],
    /// Seconds that would be saved if all of it were written.
    pub saves: f64,
}

impl Default for Offered {
    fn default() -> Self {
        Self { blocks: [0.0; WORTHS], saves: 0.0 }
    }
}

impl Offered {
    /// Blocks of which each would save so many seconds.
    pub(in super::super) fn add(&mut self, worth: f64, blocks: f64) {
        if worth >= LEAST && worth.is_finite() {
            let at = ((worth / LEAST).log2() * STEPS) as usize;
            self.blocks[at.min(WORTHS - 1)] += blocks as f32;
            self.saves += worth * blocks;
        }
    }
}

/// What came in periods, by their parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Rhythm {
    /// In this one; empty before anything came.
    now: Vec<[f32; WORTHS]>,
    before: Vec<[f32; WORTHS]>,
    /// Of this period only a part is seen: it says nothing of others.
    partial: bool,
    plan: Option<Plan>,
}

/// Blocks that came, each with its part of the period and its step of worth. What is not there did not come.
pub type CameBlocks = Vec<(u8, u8, f32)>;

/// What came in the periods of a budget, and when: to be kept over restarts. It says something of the same periods alone, which begin when those did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetRhythm {
    /// In the period that is under way.
    pub now: CameBlocks,
    /// In those before.
    pub before: CameBlocks,
    /// Of the period under way only a part was seen.
    pub partial: bool,
    /// The share of that period that was over when this was told; less than 0 by so much if it ended before the period that is resumed began.
    pub seen: f64,
}

/// How a period's budget is to be spent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plan {
    /// The share of it that is spent by the begin of each part, and by the end of the last one.
    spent: [f32; PARTS + 1],
    /// What is worth less is not to be written.
    worth: f64,
}

impl Rhythm {
    /// Of a period that has begun already.
    pub(super) fn partial() -> Self {
        Self { partial: true, ..Self::default() }
    }

    /// What was kept. What it cannot have been is left out.
    pub(super) fn resumed(kept: &BudgetRhythm) -> Self {
        Self { now: dense(&kept.now), before: dense(&kept.before), partial: kept.partial, plan: None }
    }

    /// What is to be kept when such a share of the period is over.
    pub(super) fn kept(&self, seen: f64) -> BudgetRhythm {
        BudgetRhythm { now: sparse(&self.now), before: sparse(&self.before), partial: self.partial, seen }
    }

    /// Of the period under way only a part is seen, or not all of it was.
    pub(super) fn miss_a_part(&mut self) {
        (self.now, self.partial) = (Vec::new(), true);
    }

    /// This was offered when such a share of the period was over.
    pub(super) fn offered(&mut self, offered: &Offered, at: f64) {
        if offered.saves > 0.0 && !self.partial {
            if self.now.is_empty() {
                self.now.resize(PARTS, [0.0; WORTHS]);
            }
            let part = &mut self.now[((at * PARTS as f64) as usize).min(PARTS - 1)];
            part.iter_mut().zip(&offered.blocks).for_each(|(blocks, more)| *blocks += more);
        }
    }

    /// Another period begins, in which so many blocks may be written. One in which nothing came says nothing of those to come.
    pub(super) fn turn(&mut self, blocks: f64) {
        let now = std::mem::take(&mut self.now);
        self.partial = false;
        if self.before.is_empty() {
            self.before = now;
        } else {
            let both = self.before.iter_mut().flatten().zip(now.iter().flatten());
            both.for_each(|(before, now)| *before += (now - *before) * (1.0 - REMEMBERED));
        }
        self.plan(blocks);
    }

    /// So many blocks may be written in a period.
    pub(super) fn plan(&mut self, blocks: f64) {
        self.plan = Plan::of(&self.before, blocks);
    }

    /// The period under way is over after such a share of a whole one, and so many blocks may be written until then.
    pub(super) fn plan_until(&mut self, share: f64, blocks: f64) {
        let is_in = |at: usize| (share * PARTS as f64 - at as f64).clamp(0.0, 1.0) as f32;
        let parts = self.before.iter().enumerate();
        let before: Vec<_> = parts.map(|(at, part)| part.map(|blocks| blocks * is_in(at))).collect();
        self.plan = Plan::of(&before, blocks);
    }

    /// The share of the budget that is to be spent when such a share of the period is over. None before the second period.
    pub(super) fn spent(&self, at: f64) -> Option<f64> {
        let plan = self.plan.as_ref()?;
        let at = at.clamp(0.0, 1.0) * PARTS as f64;
        let part = (at as usize).min(PARTS - 1);
        let (from, to) = (f64::from(plan.spent[part]), f64::from(plan.spent[part + 1]));
        Some(from + (to - from) * (at - part as f64))
    }

    /// What is worth less is not to be written, as long as something is still to come: seconds for a block.
    pub(super) fn worth(&self, at: f64) -> f64 {
        let comes = |plan: &&Plan| self.spent(at).is_some_and(|spent| spent < 1.0) && plan.worth > 0.0;
        self.plan.as_ref().filter(comes).map_or(0.0, |plan| plan.worth)
    }
}

fn sparse(of: &[[f32; WORTHS]]) -> CameBlocks {
    let parts = (0u8..).zip(of);
    let came = parts
        .flat_map(|(part, worths)| (0u8..).zip(worths).map(move |(worth, &blocks)| (part, worth, blocks)));
    came.filter(|&(_, _, blocks)| blocks > 0.0).collect()
}

/// Empty where nothing came.
fn dense(of: &CameBlocks) -> Vec<[f32; WORTHS]> {
    let mut all = vec![[0.0; WORTHS]; PARTS];
    for &(part, worth, blocks) in of.iter().filter(|(_, _, blocks)| *blocks > 0.0 && *blocks < BLOCKS_MAX) {
        if let Some(known) = all.get_mut(usize::from(part)).and_then(|it| it.get_mut(usize::from(worth))) {
            *known = blocks;
        }
    }
    let came = all.iter().flatten().any(|&blocks| blocks > 0.0);
    if came { all } else { Vec::new() }
}

impl Plan {
    /// What was worth the most, of all that was `offered` in the parts of a period, up to so many blocks. None where nothing was.
    fn of(offered: &[[f32; WORTHS]], blocks: f64) -> Option<Self> {
        let at = |worth: usize| offered.iter().map(|part| f64::from(part[worth])).sum::<f64>();
        let mut above = 0.0;
        let last = (0..WORTHS).rev().find(|&worth| {
            above += at(worth);
            above > blocks
        });
        // Of what is worth just that, a share.
        let share = last.map_or(1.0, |last| 1.0 - (above - blocks) / at(last)) as f32;
        let last_or_all = last.unwrap_or(0);
        let mut spent = [0.0; PARTS + 1];
        for (at, part) in offered.iter().enumerate() {
            let (last, more) = (part[last_or_all], &part[last_or_all + 1..]);
            spent[at + 1] = spent[at] + last * share + more.iter().sum::<f32>();
        }
        let all = spent[PARTS];
        (all > 0.0).then(|| Self {
            spent: spent.map(|spent| spent / all),
            // The best that finds nothing left, or of which only a part does.
            worth: last.map_or(0.0, |last| LEAST * ((last as f64 + f64::from(1.0 - share)) / STEPS).exp2()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(of: &[(f64, f64)]) -> Offered {
        let mut all = Offered::default();
        of.iter().for_each(|&(worth, blocks)| all.add(worth, blocks));
        all
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-5
    }

    #[test]
    fn what_is_worth_nothing_is_not_counted() {
        let of = [(1e-3, 10.0), (0.0, 100.0), (-1.0, 100.0), (f64::NAN, 100.0), (f64::INFINITY, 100.0)];
        let all = offered(&of);
        assert!(near(all.saves, 1e-2) && all.blocks.iter().sum::<f32>() == 10.0);
        // An hour and more are the same.
        assert_eq!(offered(&[(1e5, 1.0)]).blocks, offered(&[(1e9, 1.0)]).blocks);
    }

    #[test]
    fn the_budget_is_spent_when_the_best_came() {
        let mut rhythm = Rhythm::default();
        assert_eq!((rhythm.spent(0.5), rhythm.worth(0.3)), (None, 0.0));
        // In the first part a hundred blocks that are worth much, and a thousand that are not; at noon three hundred that are.
        rhythm.offered(&offered(&[(1e-2, 100.0), (1e-4, 1000.0)]), 0.0);
        rhythm.offered(&offered(&[(1e-2, 300.0)]), 0.5);
        assert_eq!(rhythm.spent(0.5), None);
        let spent = |rhythm: &Rhythm| [0.0, 0.5 / 48.0, 0.3, 24.5 / 48.0, 1.0].map(|at| rhythm.spent(at));
        let is = |found: [Option<f64>; 5], expected: [f64; 5]| {
            found.iter().zip(expected).all(|(found, expected)| found.is_some_and(|it| near(it, expected)))
        };
        rhythm.turn(400.0);
        assert!(is(spent(&rhythm), [0.0, 0.125, 0.25, 0.625, 1.0]), "{:?}", spent(&rhythm));
        // The best that finds nothing left stays out, until all has come.
        assert!((1e-4..1.2e-4).contains(&rhythm.worth(0.3)), "{}", rhythm.worth(0.3));
        assert_eq!(rhythm.worth(0.6), 0.0);
        // With a budget of 900, half of what is not worth much is written; with less than what is worth much, a part of that; with all the blocks there are, everything.
        rhythm.plan(900.0);
        assert!(is(spent(&rhythm), [0.0, 1.0 / 3.0, 2.0 / 3.0, 5.0 / 6.0, 1.0]), "{:?}", spent(&rhythm));
        rhythm.plan(200.0);
        assert!(is(spent(&rhythm), [0.0, 0.125, 0.25, 0.625, 1.0]) && rhythm.worth(0.3) > 0.8e-2);
        rhythm.plan(2000.0);
        assert!(is(spent(&rhythm), [0.0, 11.0 / 28.0, 22.0 / 28.0, 25.0 / 28.0, 1.0]));
        assert_eq!(rhythm.worth(0.3), 0.0);
    }

    #[test]
    fn of_a_period_that_is_cut_short_the_rest_does_not_count() {
        let mut rhythm = Rhythm::default();
        rhythm.offered(&offered(&[(1e-2, 100.0)]), 0.0);
        rhythm.offered(&offered(&[(1e-2, 200.0)]), 0.25);
        rhythm.offered(&offered(&[(1e-2, 300.0)]), 0.5);
        rhythm.turn(600.0);
        // A quarter and half of the part after it: that all of it comes in that half is not to be known.
        rhythm.plan_until(12.5 / 48.0, 200.0);
        let spent = [1.0, 12.0, 13.0, 48.0].map(|part| rhythm.spent(part / 48.0));
        assert_eq!(spent.map(|spent| spent.map(|it| (it * 1e3).round())), [500.0, 500.0, 1e3, 1e3].map(Some));
        assert_eq!(rhythm.worth(0.1), 0.0);
        // What does not come before it ends is not waited for.
        rhythm.plan_until(0.0, 100.0);
        assert_eq!((rhythm.spent(0.1), rhythm.worth(0.1)), (None, 0.0));
    }

    #[test]
    fn what_was_kept_goes_on() {
        let mut rhythm = Rhythm::default();
        rhythm.offered(&offered(&[(1e-2, 100.0), (1e-4, 1000.0)]), 0.0);
        rhythm.turn(400.0);
        rhythm.offered(&offered(&[(1e-3, 300.0)]), 0.999);
        let kept = rhythm.kept(0.999);
        assert_eq!((kept.now.len(), kept.before.len(), kept.partial), (1, 2, false));
        let mut again = Rhythm::resumed(&kept);
        again.plan(400.0);
        assert_eq!((again.kept(0.999), again.plan), (kept, rhythm.plan));
        for it in [&mut rhythm, &mut again] {
            it.turn(400.0);
        }
        assert!(again.plan.is_some() && again.plan == rhythm.plan);
        // The same for nothing, and for a part of a period; and what nobody can have kept.
        assert_eq!(Rhythm::resumed(&Rhythm::default().kept(0.0)).kept(0.0), BudgetRhythm::default());
        assert!(Rhythm::resumed(&Rhythm::partial().kept(0.0)).partial);
        let wrong = vec![(48, 0, 1.0), (0, 128, 1.0), (0, 0, -1.0), (0, 1, f32::NAN), (0, 2, f32::MAX)];
        let mut none =
            Rhythm::resumed(&BudgetRhythm { now: wrong.clone(), before: wrong, ..BudgetRhythm::default() });
        none.turn(100.0);
        assert_eq!((none.kept(0.0), none.spent(0.5)), (BudgetRhythm::default(), None));
    }

    #[test]
    fn days_without_load_say_nothing_and_older_ones_count_for_less() {
        let mut rhythm = Rhythm::default();
        rhythm.turn(100.0);
        assert_eq!(rhythm.spent(0.5), None);
        rhythm.offered(&offered(&[(1e-3, 50.0)]), 0.1);
        (0..3).for_each(|_| rhythm.turn(100.0));
        assert_eq!([4.0, 5.0].map(|part| rhythm.spent(part / 48.0)), [Some(0.0), Some(1.0)]);
        // Nor does one that is seen in part.
        let mut partial = Rhythm::partial();
        partial.offered(&offered(&[(1e-3, 50.0)]), 0.1);
        partial.turn(100.0);
        assert_eq!(partial.spent(0.1), None);
        // Another day all of it comes late.
        rhythm.offered(&offered(&[(1e-3, 50.0)]), 0.9);
        rhythm.turn(100.0);
        assert_eq!(rhythm.spent(0.5), Some(0.5));
        rhythm.offered(&offered(&[(1e-3, 50.0)]), 0.9);
        rhythm.turn(100.0);
        assert_eq!(rhythm.spent(0.5), Some(0.25));
    }
}
