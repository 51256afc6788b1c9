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

/// What is saved by the end of a life, if it ends within `stay` seconds.
///
/// Ages of which nothing is known are like the last that is known, or such that a read that saves `expected` may come at any moment of the stay, whatever is more.
pub(super) fn value_of(
    lives: &[Age; AGES],
    unit: f64,
    stay: f64,
    expected: f64,
    of: impl Fn(&Age) -> f64,
) -> f64 {
    let (mut value, mut alive, mut from) = (0.0, 1.0, 0.0);
    let mut last = Ends::default();
    for (age, life) in lives.iter().enumerate() {
        let whole = if age == 0 { unit } else { unit * (1u64 << (age - 1)) as f64 };
        let width = whole.min(stay - from);
        if width <= 0.0 {
            break;
        }
        let ends = match life.lived >= ENOUGH * whole || life.ended >= ENOUGH {
            true => {
                last = Ends::of(life, of(life));
                last
            }
            false => last.or_expected(expected, stay),
        };
        let survive = (-ends.per_second * width).exp();
        value += alive * (1.0 - survive) * ends.save;
        alive *= survive;
        from += whole;
    }
    value
}

/// How lives of an age end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    per_second: f64,
    /// Seconds that one saves in the mean.
    save: f64,
}

impl Ends {
    fn of(life: &Age, saved: f64) -> Self {
        // Lives that all end as soon as they are of this age last no time at it.
        let per_second = life.ended / life.lived.max(f64::MIN_POSITIVE);
        Self { per_second, save: if life.ended > 0.0 { saved / life.ended } else { 0.0 } }
    }

    /// The same, or a read that saves `expected` at any moment of the stay, whichever saves more.
    fn or_expected(self, expected: f64, stay: f64) -> Self {
        if self.per_second * self.save >= expected / stay {
            return self;
        }
        let per_second = self.per_second.max(1.0 / stay);
        Self { per_second, save: expected / stay / per_second }
    }
}
