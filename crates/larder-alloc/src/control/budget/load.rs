//! How long the load has been what it is.
//!
//! Nothing tells how long a load will last but how long it has lasted. One that begins late in a day, after hours of little, is as new as one that comes first thing.

/// Rates that are told apart, each so much higher than the one before: half an octave.
const STEPS: f64 = 2.0;

/// Rates that are told apart, from [`LEAST`] up to three hundred thousand.
const RATES: usize = 96;

/// Seconds saved per second: less is nothing.
const LEAST: f64 = 1e-9;

/// The load has been what it is since it was lower by so many of these steps: a fourth of it.
const LOWER: usize = 4;

/// What a cache could save by what is offered to its SSD.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Seconds that would have been saved lately, and in how many.
    saves: f64,
    seconds: f64,
    told: f64,
    /// Until then too little is known to say that it was lower.
    settles: f64,
    /// By rate, when the load was lower for the last time.
    lower: Box<[f64; RATES]>,
    /// What is older counts for little.
    unit: f64,
}

impl Load {
    /// Nothing is known before `now`: what there is has been since then. What is older than `unit` seconds counts for little in what the load is.
    pub(super) fn new(unit: f64, then: f64, now: f64) -> Self {
        let lower = Box::new([then; RATES]);
        Self { saves: 0.0, seconds: 0.0, told: now, settles: now + unit, lower, unit }
    }

    /// Since this was told last, so many seconds would have been saved by what was offered.
    pub(super) fn offered(&mut self, saves: f64, now: f64) {
        let seconds = now - self.told;
        let stays = (-seconds / self.unit).exp();
        // Much time at once counts as many short ones would.
        let counts = self.unit * (1.0 - stays);
        let part = if seconds > 0.0 { counts / seconds } else { 1.0 };
        self.saves = self.saves * stays + saves * part;
        self.seconds = self.seconds * stays + counts;
        self.told = now;
        if now >= self.settles {
            let rate = self.rate();
            self.lower[rate + 1..].fill(now);
        }
    }

    /// Seconds for which the load has been at least a fourth of what it is.
    pub(super) fn age(&self, now: f64) -> f64 {
        now - self.lower[self.rate().saturating_sub(LOWER)]
    }

    /// The number of the rate at which it would save.
    fn rate(&self) -> usize {
        let rate = self.saves / self.seconds.max(f64::MIN_POSITIVE);
        (((rate.max(LEAST) / LEAST).log2() * STEPS) as usize).min(RATES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the age is after each of these many seconds of a load of so much.
    fn ages(load: &mut Load, now: &mut f64, of: &[(u32, f64)]) -> Vec<f64> {
        let mut ages = Vec::new();
        for &(seconds, saves) in of {
            for _ in 0..seconds {
                *now += 1.0;
                load.offered(saves, *now);
            }
            ages.push(load.age(*now));
        }
        ages
    }

    #[test]
    fn a_load_is_as_old_as_it_has_been_what_it_is() {
        let (mut load, mut now) = (Load::new(10.0, 100.0, 100.0), 100.0);
        assert_eq!(load.age(100.0), 0.0);
        // Some is as old as the loop; ten times as much begins anew, once that is what there is; what is twice as much does not.
        let found = ages(&mut load, &mut now, &[(300, 1.0), (100, 10.0), (100, 20.0)]);
        assert_eq!(found[0], 300.0);
        assert!((95.0..=100.0).contains(&found[1]) && (195.0..=200.0).contains(&found[2]), "{found:?}");
        // A pause of a few seconds is none; after an hour it begins anew. Less is as old as all that there was, pauses apart.
        let found = ages(&mut load, &mut now, &[(5, 0.0), (100, 20.0), (3600, 0.0), (50, 20.0), (200, 0.5)]);
        assert!((295.0..=305.0).contains(&found[1]), "{found:?}");
        assert!((45.0..=50.0).contains(&found[3]) && found[4] >= 200.0, "{found:?}");
    }

    #[test]
    fn what_was_before_can_be_told() {
        let mut load = Load::new(10.0, 40.0, 100.0);
        // What is offered is worth nothing yet; then it is.
        [(0.0, 101.0), (5.0, 102.0), (5.0, 109.0)].iter().for_each(|&(saves, now)| load.offered(saves, now));
        assert_eq!(load.age(110.0), 70.0);
        load.offered(50.0, 111.0);
        assert_eq!(load.age(111.0), 71.0);
        load.offered(5000.0, 112.0);
        load.offered(5000.0, 113.0);
        assert!(load.age(113.0) < 3.0);
    }

    #[test]
    fn hours_at_once_are_like_many_seconds() {
        let mut load = Load::new(10.0, 0.0, 0.0);
        (1..=100).for_each(|second| load.offered(1.0, f64::from(second)));
        load.offered(0.0, 40_000.0);
        (40_001..=40_100).for_each(|second| load.offered(1.0, f64::from(second)));
        assert!((90.0..=100.0).contains(&load.age(40_100.0)), "{}", load.age(40_100.0));
    }

    #[test]
    fn no_load_is_too_high_or_too_low() {
        let mut load = Load::new(10.0, 0.0, 0.0);
        for saves in [0.0, f64::MIN_POSITIVE, 1e300, f64::INFINITY] {
            load.offered(saves, 1.0);
            assert!(load.age(2.0) >= 1.0);
        }
    }
}
