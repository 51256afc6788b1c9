//! What is counted of a tenant's requests by kind, of the kinds that came: those are a few dozen of some hundreds.

use larder_policy::doors::{KINDS, Kind};

use super::lives::{AGES, Age, age};

/// Less than this of a count is none: what fades on and on would end in numbers so small that they fade no more, and a mean of two such is anything.
const LEAST: f64 = 1e-9;

/// Counts of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    /// Blocks that were written to the SSD, or would have been.
    pub offered: f64,
    /// Blocks that were asked for, in the same time.
    pub asked: f64,
    /// Those of writes that it took, and those of them that were resident before.
    pub taken: f64,
    pub resident: f64,
    pub requests: f64,
    /// Blocks of these requests.
    pub blocks: f64,
    pub lives: [Age; AGES],
    /// Lives under way, by the age that they had when they were counted last.
    pub alive: [u16; AGES],
    /// There are, or were, such lives.
    pub lived: bool,
}

impl Count {
    /// So many seconds passed for the lives under way.
    pub(super) fn live(&mut self, seconds: f64) {
        for (life, &alive) in self.lives.iter_mut().zip(&self.alive) {
            life.lived += seconds * f64::from(alive);
        }
    }

    /// A life that began at `since` goes on from `counted`, or from then on, to `now`, past the ages that it has meanwhile. All of that time counts for the age that it has by then. Told apart by each age that it had meanwhile, which is
    /// truer, latencies were found to be no lower, and higher on loads with little to gain: what else is assumed of worth was found with this.
    pub(super) fn live_from(&mut self, since: f64, counted: f64, now: f64, unit: f64) {
        self.lived = true;
        let (from, to) = (age(since, counted.max(since), unit), age(since, now, unit));
        self.lives[to].lived += now - since.max(counted);
        self.lives[from..to].iter_mut().for_each(|life| life.passed += 1.0);
    }

    /// What became of what was offered weighs this much from now on, and lives `lives`.
    pub(super) fn fade(&mut self, factor: f64, lives: f64) {
        let Self { taken, resident, requests, blocks, .. } = self;
        [taken, resident, requests, blocks].into_iter().for_each(|one| fade(one, factor));
        for life in &mut self.lives {
            let Age { lived, ended, passed, saved, rewritten } = life;
            [lived, ended, passed, saved, rewritten].into_iter().for_each(|one| *one *= lives);
            if [life.lived, life.ended, life.passed].iter().all(|&one| one < LEAST) {
                *life = Age::default();
            }
        }
    }
}

/// A count fades, to nothing in the end.
pub(super) fn fade(count: &mut f64, factor: f64) {
    *count *= factor;
    if count.abs() < LEAST {
        *count = 0.0;
    }
}

/// The counts of a tenant.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By [`Kind::index`], where a kind's counts are, from 1 on; 0 for a kind that did not come. Empty where none did.
    places: Vec<u16>,
    counts: Vec<Count>,
}

impl Counts {
    /// No request came.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Those of a kind, if it came.
    pub(super) fn get(&self, kind: Kind) -> Option<&Count> {
        let place = *self.places.get(kind.index())?;
        self.counts.get(usize::from(place).checked_sub(1)?)
    }

    /// Those of the kind of this number, which comes.
    pub(super) fn count(&mut self, kind: usize) -> &mut Count {
        if self.places.is_empty() {
            self.places.resize(KINDS, 0);
        }
        let place = &mut self.places[kind];
        if *place == 0 {
            self.counts.push(Count::default());
            // There are no more than kinds.
            *place = self.counts.len() as u16;
        }
        let at = usize::from(*place) - 1;
        &mut self.counts[at]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Count> {
        self.counts.iter_mut()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<u16>() + self.counts.capacity() * size_of::<Count>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_that_came_has_its_counts() {
        let mut counts = Counts::default();
        assert!(counts.is_empty() && counts.memory_bytes() == 0);
        let kinds: Vec<_> = Kind::all().step_by(7).collect();
        assert!(kinds.iter().all(|&kind| counts.get(kind).is_none()));
        for (at, kind) in kinds.iter().rev().enumerate() {
            counts.count(kind.index()).offered += at as f64;
            counts.count(kind.index()).taken += 1.0;
        }
        let found = |counts: &Counts, kind| counts.get(kind).map(|count| (count.offered, count.taken));
        for (at, &kind) in kinds.iter().rev().enumerate() {
            assert_eq!(found(&counts, kind), Some((at as f64, 1.0)));
        }
        assert_eq!(Kind::all().filter(|&kind| counts.get(kind).is_some()).count(), kinds.len());
        counts.iter_mut().for_each(|count| count.fade(0.5, 1.0));
        assert_eq!(found(&counts, kinds[0]), Some(((kinds.len() - 1) as f64, 0.5)));
    }

    #[test]
    fn what_fades_for_long_is_gone() {
        let age = Age { lived: 100.0, ended: 3.0, passed: 5.0, saved: 2e-3, rewritten: 1.0 };
        let (requests, blocks, taken, resident) = (10.0, 640.0, 600.0, 300.0);
        let mut count = Count { requests, blocks, taken, resident, lives: [age; AGES], ..Count::default() };
        // As long as there is something its mean is what it was.
        for _ in 0..330 {
            count.fade(15.0 / 16.0, 127.0 / 128.0);
        }
        assert!((count.blocks / count.requests - 64.0).abs() < 1e-9 && count.taken / count.resident < 2.001);
        (0..5000).for_each(|_| count.fade(15.0 / 16.0, 127.0 / 128.0));
        let Count { requests, blocks, taken, resident, .. } = count;
        assert_eq!([requests, blocks, taken, resident], [0.0; 4]);
        for Age { lived, ended, passed, saved, rewritten } in count.lives {
            assert_eq!([lived, ended, passed, saved, rewritten], [0.0; 5]);
        }
    }
}
