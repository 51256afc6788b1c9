//! How the lives of blocks end, by age, and what that saves.

/// Ages that are told apart, each up to twice the one before.
pub(super) const AGES: usize = 18;

/// An age is known when so many blocks have passed through it.
pub(super) const ENOUGH: f64 = 4.0;

/// What became of sampled blocks at an age.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Age {
    /// Seconds that blocks were of this age.
    pub lived: f64,
    /// Lives that ended at this age.
    pub ended: f64,
    /// Seconds saved by those that a read ended.
    pub saved: f64,
    /// Those that a write ended, or that a read ended after which one is to come.
    pub rewritten: f64,
}

/// Which age a life has.
pub(super) fn age(since: f64, now: f64, unit: f64) -> usize {
    let units = ((now - since) / unit) as u64;
    (u64::BITS - units.leading_zeros()).min(AGES as u32 - 1) as usize
}

/// What is known of the lives of one kind, age by age: made once to be asked for several stays.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// Seconds of the first age.
    unit: f64,
    ages: [Option<Known>; AGES],
}

/// An age of which enough is known.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Lives that end at it, per second.
    per_second: f64,
    /// What is alive at its end of what was at its begin.
    survive: f64,
    /// Seconds saved, and lives ended by a write, for each that ends.
    saved: f64,
    rewritten: f64,
}

impl Course {
    pub(super) fn of(lives: &[Age; AGES], unit: f64) -> Self {
        let mut ages = [None; AGES];
        for (at, life) in lives.iter().enumerate() {
            let whole = whole(at, unit);
            if life.lived >= ENOUGH * whole || life.ended >= ENOUGH {
                // Lives that all end as soon as they are of this age last no time at it.
                let per_second = life.ended / life.lived.max(f64::MIN_POSITIVE);
                let each = |all: f64| if life.ended > 0.0 { all / life.ended } else { 0.0 };
                ages[at] = Some(Known {
                    per_second,
                    survive: (-per_second * whole).exp(),
                    saved: each(life.saved),
                    rewritten: each(life.rewritten),
                });
            }
        }
        Self { unit, ages }
    }

    /// What is saved by the end of a life, if it ends within `stay` seconds.
    ///
    /// Ages of which nothing is known are like the last that is known, or such that a read that saves `expected` may come at any moment of the stay, whatever is more.
    pub(super) fn saved(&self, stay: f64, expected: f64) -> f64 {
        self.value(stay, expected, |known| known.saved)
    }

    /// How likely a write ends a life within `stay` seconds, or a read after which one is to come.
    pub(super) fn rewritten(&self, stay: f64) -> f64 {
        self.value(stay, 0.0, |known| known.rewritten)
    }

    fn value(&self, stay: f64, expected: f64, of: impl Fn(&Known) -> f64) -> f64 {
        let (mut value, mut alive, mut from) = (0.0, 1.0, 0.0);
        let mut last = Ends::default();
        let mut at = 0;
        while at < AGES && from < stay {
            let mut until = from + whole(at, self.unit);
            let known = self.ages[at];
            at += 1;
            let (ends, survive) = match known {
                Some(known) => {
                    last = Ends { per_second: known.per_second, save: of(&known) };
                    (last, (until <= stay).then_some(known.survive))
                }
                None => {
                    // Ages of which nothing is known are alike.
                    while at < AGES && self.ages[at].is_none() {
                        until += whole(at, self.unit);
                        at += 1;
                    }
                    (last.or_expected(expected, stay), None)
                }
            };
            let survive = survive.unwrap_or_else(|| (-ends.per_second * (until.min(stay) - from)).exp());
            value += alive * (1.0 - survive) * ends.save;
            alive *= survive;
            from = until;
        }
        value
    }
}

/// Seconds of an age.
fn whole(age: usize, unit: f64) -> f64 {
    if age == 0 { unit } else { unit * (1u64 << (age - 1)) as f64 }
}

/// How lives of an age end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    per_second: f64,
    /// Seconds that one saves in the mean.
    save: f64,
}

impl Ends {
    /// The same, or a read that saves `expected` at any moment of the stay, whichever saves more.
    fn or_expected(self, expected: f64, stay: f64) -> Self {
        if self.per_second * self.save >= expected / stay {
            return self;
        }
        let per_second = self.per_second.max(1.0 / stay);
        Self { per_second, save: expected / stay / per_second }
    }
}
