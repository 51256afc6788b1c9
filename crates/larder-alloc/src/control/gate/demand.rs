//! What one tenant offered to the SSD so far, by kind: what is to come is taken to be like it.
//!
//! What may be written has to last until the end of a period, and bursts come when they come. Whoever lets in all that is offered while little is has nothing left when more is offered, or what is worth more.
//! So what comes now is held against all that came before, a day ago as well as lately: bursts are in it with their part of the time. What it is worth is what such blocks are worth now.

use larder_policy::doors::{KINDS, Kind};

/// Worths that are told apart, each so much higher than the one before: an eighth of an octave.
const STEPS: f64 = 8.0;

/// Worths that are told apart, from [`LEAST`] up to an hour.
const WORTHS: usize = 256;

/// What is worth less is not counted: seconds for a block.
const LEAST: f64 = 1e-6;

/// What came in such a part of a period tells little of the rest: it is taken to be followed by as much time in which nothing comes.
const UNKNOWN: f64 = 0.01;

/// What was offered.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// Blocks by [`Kind::index`]; empty as long as nothing was offered.
    blocks: Vec<f64>,
    /// Those that no time has gone by for yet, likewise.
    lately: Vec<f64>,
    /// The time in which they were.
    seconds: f64,
}

impl Demand {
    /// Blocks that are written to the SSD, or would be.
    pub(super) fn offer(&mut self, kind: Kind, blocks: u64) {
        if self.lately.is_empty() {
            self.blocks.resize(KINDS, 0.0);
            self.lately.resize(KINDS, 0.0);
        }
        self.lately[kind.index()] += blocks as f64;
    }

    /// Blocks by [`Kind::index`] that no time has gone by for yet.
    pub(super) fn lately(&self) -> impl Iterator<Item = f64> {
        self.lately.iter().copied()
    }

    /// So many seconds have gone by in which what is new was offered. All is remembered for a `period`, so that another day is told from this one.
    pub(super) fn pass(&mut self, seconds: f64, period: f64) {
        let stays = (-seconds / period).exp();
        self.seconds = (self.seconds + seconds) * stays;
        self.stay(stays);
    }

    /// The same for a long time in which nothing was offered, as many short ones would have it.
    pub(super) fn pass_over(&mut self, seconds: f64, period: f64) {
        let stays = (-seconds / period).exp();
        self.seconds = self.seconds * stays + period * (1.0 - stays);
        self.stay(stays);
    }

    fn stay(&mut self, stays: f64) {
        for (blocks, lately) in self.blocks.iter_mut().zip(&mut self.lately) {
            *blocks = (*blocks + std::mem::take(lately)) * stays;
        }
    }

    /// Less than a block is left of what was offered.
    pub(super) fn is_forgotten(&self) -> bool {
        self.blocks.iter().chain(&self.lately).sum::<f64>() < 1.0
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.blocks.capacity() + self.lately.capacity()) * size_of::<f64>()
    }
}

/// The highest worth of which, with all that is worth more, more blocks than `rate` a second are to be expected of these tenants, by what their kinds are worth, in periods of so many seconds; 0 where all
/// may be written.
pub(super) fn affordable<'d>(
    demands: impl Iterator<Item = (&'d Demand, &'d [f64; KINDS])>,
    rate: f64,
    period: f64,
) -> f64 {
    let mut rates = [0.0; WORTHS];
    for (Demand { blocks, lately, seconds }, worth) in demands {
        let seconds = seconds + UNKNOWN * period;
        let blocks = blocks.iter().zip(lately).map(|(blocks, lately)| blocks + lately);
        for (blocks, worth) in blocks.zip(worth).filter(|(_, worth)| **worth >= LEAST) {
            let at = ((worth / LEAST).log2() * STEPS) as usize;
            rates[at.min(WORTHS - 1)] += blocks / seconds;
        }
    }
    let mut above = 0.0;
    let too_many = (0..WORTHS).rev().find(|&at| {
        above += rates[at];
        above > rate
    });
    too_many.map_or(0.0, |at| LEAST * (at as f64 / STEPS).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86_400.0;

    fn kind(blocks: usize) -> Kind {
        Kind::of(true, blocks, false, 0, false)
    }

    /// With writes of one block worth ten milliseconds, those of two one, and those of four nothing.
    fn of(demands: &[&Demand], rate: f64) -> f64 {
        let mut worth = [0.0; KINDS];
        for (blocks, it) in [(1, 1e-2), (2, 1e-3), (4, 0.0), (8, f64::INFINITY), (16, f64::NAN)] {
            worth[kind(blocks).index()] = it;
        }
        affordable(demands.iter().map(|&demand| (demand, &worth)), rate, DAY)
    }

    #[test]
    fn what_is_worth_most_is_what_may_be_written() {
        let mut demand = Demand::default();
        assert_eq!(of(&[&demand], 0.0), 0.0);
        // For an hour ten blocks a second of which each is worth much, and a hundred worth less; in a hundredth of a day nothing.
        demand.pass(3600.0, f64::INFINITY);
        [(1, 10), (2, 100), (4, 1_000_000), (16, 1_000_000)]
            .iter()
            .for_each(|&(blocks, rate)| demand.offer(kind(blocks), rate * 3600));
        let part = 3600.0 / (3600.0 + 0.01 * DAY);
        for (rate, worth) in [(110.1, 0.0), (109.0, 1e-3), (10.1, 1e-3), (9.0, 1e-2), (0.0, 1e-2)] {
            let found = of(&[&demand], rate * part);
            assert!(found <= worth && found >= worth * 0.9, "{rate}: {found}");
        }
        // Two tenants like that want twice as much.
        let found = of(&[&demand, &demand], 10.1 * part);
        assert!((9e-3..=1e-2).contains(&found), "{found}");
    }

    #[test]
    fn a_burst_counts_by_its_part_of_the_time_and_is_forgotten_in_days() {
        let mut demand = Demand::default();
        demand.offer(kind(1), 60_000);
        demand.pass(60.0, DAY);
        assert!(of(&[&demand], 60.0) > 0.0);
        (0..60).for_each(|_| demand.pass(60.0, DAY));
        // A minute of 61, and a hundredth of a day.
        assert!(of(&[&demand], 14.0) == 0.0 && of(&[&demand], 12.0) > 0.0);
        (0..48).for_each(|_| demand.pass(3600.0, DAY));
        assert!(of(&[&demand], 0.11) == 0.0 && of(&[&demand], 0.05) > 0.0);
    }

    #[test]
    fn a_long_time_is_like_many_short_ones() {
        let mut demand = Demand::default();
        demand.offer(kind(1), 60_000);
        demand.pass(60.0, DAY);
        let mut at_once = demand.clone();
        (0..2 * 24 * 60).for_each(|_| demand.pass(60.0, DAY));
        at_once.pass_over(2.0 * DAY, DAY);
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.01;
        assert!(near(at_once.seconds, demand.seconds), "{at_once:?}");
        let blocks = |demand: &Demand| demand.blocks.iter().sum::<f64>();
        assert!(near(blocks(&at_once), blocks(&demand)));
    }

    #[test]
    fn what_saves_more_than_can_be_is_counted() {
        let mut demand = Demand::default();
        demand.offer(kind(8), 1);
        demand.pass(DAY, DAY);
        let most = of(&[&demand], 0.0);
        assert!((3000.0..5000.0).contains(&most), "{most}");
        assert_eq!(of(&[&demand], 2.0), 0.0);
    }
}
