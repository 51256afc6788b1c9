//! How the lives of blocks end, by age, and what that saves.

/// Ages that are told apart, each up to twice the one before.
pub(super) const AGES: usize = 18;

/// The begins of all ages, and the end of the last.
pub(in super::super) const BOUNDS: usize = AGES + 1;

/// An age is known when so many blocks have passed through it.
pub(super) const ENOUGH: f64 = 4.0;

/// What became of sampled blocks at an age.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Age {
    /// Seconds that blocks were of this age.
    pub lived: f64,
    /// Lives that ended at this age, and those that went on.
    pub ended: f64,
    pub passed: f64,
    /// Seconds saved by those that a read ended.
    pub saved: f64,
    /// Those that a write ended, or that a read ended after which one is to come.
    pub rewritten: f64,
}

/// Seconds after which each age begins, and the last ends.
pub(in super::super) fn bounds(unit: f64) -> [f64; BOUNDS] {
    let mut bounds = [0.0; BOUNDS];
    for at in 0..AGES {
        bounds[at + 1] = bounds[at] + whole(at, unit);
    }
    bounds
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
    /// At the begin of each age, and of the one after the last: up to the first of which not enough is known, and there.
    begins: [Begin; BOUNDS],
    /// Ages before the first of which not enough is known.
    known: usize,
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

/// Mean seconds until a life ends, of those that each age begins with at most, and of those that the last ends with: by how many of the lives that come to an age end at it. Those that are `alive` at it count half:
/// they are halfway through it, about. Of ages of which nothing is known as many end a second as of the last that is known; where there is none, none.
pub(super) fn lasts(lives: &[Age; AGES], alive: &[u16; AGES], unit: f64) -> [f64; BOUNDS] {
    let mut lasts = [0.0; BOUNDS];
    let (mut left, mut per_second) = (1.0, 0.0);
    for (at, (life, &alive)) in lives.iter().zip(alive).enumerate() {
        let seconds = whole(at, unit);
        let came = life.ended + life.passed + f64::from(alive) / 2.0;
        let (survive, each) = match came >= ENOUGH {
            true => {
                let survive = 1.0 - life.ended / came;
                per_second = -survive.ln() / seconds;
                // Those that end do so in the middle, about.
                (survive, seconds * (1.0 + survive) / 2.0)
            }
            false if per_second > 0.0 => {
                let survive = f64::exp(-per_second * seconds);
                (survive, (1.0 - survive) / per_second)
            }
            false => (1.0, seconds),
        };
        lasts[at + 1] = lasts[at] + left * each;
        left *= survive;
    }
    lasts
}

/// What became of lives by the begin of an age.
#[derive(Clone, Copy, Debug, Default)]
struct Begin {
    seconds: f64,
    alive: f64,
    saved: f64,
    rewritten: f64,
}

/// What is to be expected of a life.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Hope {
    /// Seconds saved by its end.
    pub saved: f64,
    /// How likely a write ends it, or a read after which one is to come.
    pub rewritten: f64,
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
        let mut begins = [Begin::default(); BOUNDS];
        let mut begin = Begin { alive: 1.0, ..Begin::default() };
        let mut known = 0;
        begins[0] = begin;
        while let Some(&Some(age)) = ages.get(known) {
            begin = begin.after(age, age.survive, whole(known, unit));
            known += 1;
            begins[known] = begin;
        }
        Self { unit, ages, begins, known }
    }

    /// What is to be expected of a life if it ends within `stay` seconds.
    ///
    /// Ages of which nothing is known are like the last that is known, or such that a read that saves `expected` may come at any moment of the stay, whatever is more.
    pub(super) fn within(&self, stay: f64, expected: f64) -> Hope {
        if stay <= 0.0 {
            return Hope::default();
        }
        let begun = (1..=self.known).take_while(|&at| self.begins[at].seconds < stay).count();
        let begin = self.begins[begun];
        // The stay ends at an age of which enough is known.
        if let Some(age) = self.ages.get(begun).copied().flatten() {
            let seconds = stay - begin.seconds;
            let Begin { saved, rewritten, .. } = begin.after(age, (-age.per_second * seconds).exp(), seconds);
            return Hope { saved, rewritten };
        }
        Hope {
            saved: self.go_on(begin.saved, stay, expected, |known| known.saved),
            rewritten: self.go_on(begin.rewritten, stay, 0.0, |known| known.rewritten),
        }
    }

    /// The `value` of the ages before the first of which not enough is known, and of those from there on, up to `stay`.
    fn go_on(&self, mut value: f64, stay: f64, expected: f64, of: impl Fn(&Known) -> f64) -> f64 {
        let mut at = self.known;
        let Begin { seconds: mut from, mut alive, .. } = self.begins[at];
        let before = at.checked_sub(1).and_then(|before| self.ages[before]);
        let ends = |known: Known| Ends { per_second: known.per_second, save: of(&known) };
        let mut last = before.map_or(Ends::default(), ends);
        while at < AGES && from < stay {
            let mut until = from + whole(at, self.unit);
            let known = self.ages[at];
            at += 1;
            let (ends, survive) = match known {
                Some(known) => {
                    last = ends(known);
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

impl Begin {
    /// So many seconds later, of an age at which as much survives.
    fn after(self, age: Known, survive: f64, seconds: f64) -> Self {
        let ended = self.alive * (1.0 - survive);
        Self {
            seconds: self.seconds + seconds,
            alive: self.alive * survive,
            saved: self.saved + ended * age.saved,
            rewritten: self.rewritten + ended * age.rewritten,
        }
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
