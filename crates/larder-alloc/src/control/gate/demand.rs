//! What one tenant offered to the SSD so far, by what it is worth: what is to come is taken to be like it.
//!
//! What may be written lasts until the end of a period, and bursts come whenever they do. Whoever lets in all that is offered while little is has nothing left when more is offered, or what is worth more. So what
//! comes now is held against all that came before, long ago as well as lately: bursts are in it with their part.

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
    /// Blocks by what they are worth; empty as long as nothing was offered.
    blocks: Vec<f64>,
    /// The time in which they were.
    seconds: f64,
}

impl Demand {
    /// Over so many seconds more blocks worth so many seconds each were offered at this rate. What was before is remembered for a `period`, so that another day is told from this one.
    pub(super) fn add(&mut self, seconds: f64, period: f64, offered: impl Iterator<Item = (f64, f64)>) {
        let stays = (-seconds / period).exp();
        self.seconds = self.seconds * stays + seconds;
        self.blocks.iter_mut().for_each(|blocks| *blocks *= stays);
        for (worth, rate) in offered.filter(|(worth, _)| *worth >= LEAST) {
            self.blocks.resize(WORTHS, 0.0);
            let at = ((worth / LEAST).log2() * STEPS) as usize;
            self.blocks[at.min(WORTHS - 1)] += rate * seconds;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<f64>()
    }
}

/// The worth above which no more blocks than `rate` a second are to be expected of all these, in periods of so many seconds; 0 where all may be written.
pub(super) fn affordable<'d>(demands: impl Iterator<Item = &'d Demand>, rate: f64, period: f64) -> f64 {
    let mut rates = [0.0; WORTHS];
    for Demand { blocks, seconds } in demands {
        let seconds = seconds + UNKNOWN * period;
        rates.iter_mut().zip(blocks).for_each(|(rate, blocks)| *rate += blocks / seconds);
    }
    let mut above = 0.0;
    let first_too_many = (0..WORTHS).rev().find(|&at| {
        above += rates[at];
        above > rate
    });
    first_too_many.map_or(0.0, |at| LEAST * (at as f64 / STEPS).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86_400.0;

    fn of(demand: &Demand, rate: f64) -> f64 {
        affordable([demand].into_iter(), rate, DAY)
    }

    #[test]
    fn what_is_worth_most_is_what_may_be_written() {
        let mut demand = Demand::default();
        assert_eq!(of(&demand, 0.0), 0.0);
        // For an hour a hundred blocks a second worth a millisecond each, and ten worth ten; in a day's hundredth nothing.
        demand.add(3600.0, DAY, [(1e-3, 100.0), (1e-2, 10.0), (0.0, 1e9)].into_iter());
        let part = 3600.0 / (3600.0 + 0.01 * DAY);
        for (rate, worth) in [(110.0, 0.0), (109.0, 1e-3), (10.0, 1e-3), (9.0, 1e-2), (0.0, 1e-2)] {
            let found = of(&demand, rate * part);
            assert!(found <= worth && found >= worth * 0.9, "{rate}: {found}");
        }
        // Two tenants like that want twice as much.
        let found = affordable([&demand, &demand].into_iter(), 10.0 * part, DAY);
        assert!((9e-3..=1e-2).contains(&found), "{found}");
    }

    #[test]
    fn a_burst_counts_by_its_part_of_the_time_and_is_forgotten_in_days() {
        let mut demand = Demand::default();
        demand.add(60.0, DAY, [(1e-3, 1000.0)].into_iter());
        assert!(of(&demand, 60.0) > 0.0);
        (0..60).for_each(|_| demand.add(60.0, DAY, std::iter::empty()));
        // A minute of 61, and a hundredth of a day.
        assert!(of(&demand, 14.0) == 0.0 && of(&demand, 12.0) > 0.0);
        (0..48).for_each(|_| demand.add(3600.0, DAY, std::iter::empty()));
        assert!(of(&demand, 0.11) == 0.0 && of(&demand, 0.05) > 0.0);
    }

    #[test]
    fn worths_of_any_size_are_counted() {
        let mut demand = Demand::default();
        demand.add(DAY, DAY, [(1e9, 1.0), (f64::INFINITY, 1.0), (1e-9, 1.0), (f64::NAN, 1.0)].into_iter());
        let most = of(&demand, 0.0);
        assert!((3000.0..5000.0).contains(&most), "{most}");
        assert_eq!(of(&demand, 2.0), 0.0);
    }
}
