//! The last period of a run that ends within it: as much shorter, with its part of the budget. Otherwise the last hours of a run could be written as much as a day.

use super::Pace;

impl Pace {
    /// The run is over at `ends`: a period in which it ends is as much shorter, and has its part of the budget. Not the one under way.
    pub(in super::super) fn ends_at(&mut self, ends: f64) {
        self.ends = ends;
    }

    /// A period has begun.
    pub(super) fn begin_period(&mut self) {
        let (blocks, period) = (self.blocks / self.share, self.whole_period());
        let rest = (self.ends - self.began) / period;
        self.share = if rest > 0.0 && rest < 1.0 { rest } else { 1.0 };
        (self.blocks, self.period) = (blocks * self.share, period * self.share);
    }

    /// The share of a whole period that is over: by that times of one are told from each other.
    pub(super) fn part_of_whole(&self, now: f64) -> f64 {
        (now - self.began) / self.whole_period()
    }

    /// Seconds of a period in which the run does not end.
    pub(in super::super) fn whole_period(&self) -> f64 {
        self.period / self.share
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Offered, WriteBudget};
    use super::*;

    /// A run that ends after a third of its third period.
    #[test]
    fn the_last_period_has_its_part() {
        let budget = WriteBudget { bytes: 4096.0 * 900.0, period_seconds: 100.0 };
        let mut pace = Pace::new(budget, 4096, 10.0, 0.0);
        pace.ends_at(233.0);
        let mut written = [0u64; 3];
        for step in 0..=23_300_u32 {
            let now = f64::from(step) * 0.01;
            pace.turn(now);
            if pace.open(now) && now < 233.0 {
                pace.written(1.0);
                written[step as usize / 10_000] += 1;
            }
        }
        assert_eq!(written, [900, 900, 297]);
        // As fast as a whole one; and what its load does is told by the whole one's time.
        let mut last = Pace::new(budget, 4096, 10.0, 0.0);
        last.ends_at(233.0);
        let mut offered = Offered::default();
        offered.add(1e-3, 1e3);
        last.offered(&offered, 50.0);
        last.turn(200.0);
        assert_eq!((last.period_end(), last.whole_period().round()), (233.0, 100.0));
        assert_eq!((last.room(200.0), last.rate(200.0, 1.0).round()), (14, 18.0));
        assert_eq!((last.part_of_whole(233.0), last.rhythm.spent(0.2)), (0.33, None));
        // What goes on beyond it has whole ones, and one that ends with a period is as if nobody knew.
        pace.turn(240.0);
        assert_eq!((pace.period_end(), (pace.blocks + 0.5) as u64), (333.0, 900));
        let (mut known, mut unknown) =
            (Pace::new(budget, 4096, 10.0, 0.0), Pace::new(budget, 4096, 10.0, 0.0));
        known.ends_at(200.0);
        for now in [100.0, 200.0] {
            known.turn(now);
            unknown.turn(now);
            assert_eq!((known.period_end(), known.blocks), (unknown.period_end(), unknown.blocks));
        }
    }
}
