//! The stairs against a list of what is pinned.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Places with times and, on the stairs, slacks.
#[derive(Default)]
struct Plain {
    pinned: BTreeMap<u32, (u32, Option<i32>)>,
}

impl Plain {
    /// All blocks that are older than all above them have a slack: those that had none get that of their place.
    fn lay(&mut self) {
        let mut oldest = NEVER;
        for (&place, (time, slack)) in &mut self.pinned {
            if *time < oldest {
                oldest = *time;
                slack.get_or_insert(fresh(place, *time));
            }
        }
    }

    fn lower(&mut self, places: Range<u32>) {
        let places = self.pinned.iter_mut().filter(|(place, _)| places.contains(*place));
        places.for_each(|(_, (_, slack))| *slack = slack.map(|slack| slack - 1));
    }

    fn first_older(&self, from: u32, time: u32) -> u32 {
        self.pinned
            .iter()
            .find(|&(&place, &(other, _))| place >= from && other < time)
            .map_or(NEVER, |(&place, _)| place)
    }

    fn least(&self) -> Option<i32> {
        self.pinned.values().filter_map(|&(_, slack)| slack).min()
    }
}

fn fresh(place: u32, time: u32) -> i32 {
    (place % 50 + time % 7) as i32
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// This place.
    Pin(u32),
    /// As many places, the lowest first: all of them are stairs.
    Run(u32, u32),
    Free(prop::sample::Index),
    Lower(u32, u32),
    Renumber,
}

fn steps(places: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..places).prop_map(Step::Pin),
        1 => (0..places, 0u32..40).prop_map(|(place, count)| Step::Run(place, count)),
        2 => any::<prop::sample::Index>().prop_map(Step::Free),
        4 => (0..places, 0..places + 100).prop_map(|(from, until)| Step::Lower(from, until)),
        2 => (0..places).prop_map(|until| Step::Lower(0, until)),
        1 => Just(Step::Lower(0, NEVER)),
        1 => Just(Step::Renumber),
    ];
    prop::collection::vec(step, 0..150)
}

/// Stairs and a list that are told the same.
struct Pair {
    stairs: Stairs,
    plain: Plain,
    now: u32,
}

impl Pair {
    fn take(&mut self, step: Step) {
        match step {
            Step::Pin(place) => self.pin(place),
            Step::Run(place, count) => (place..place + count).rev().for_each(|place| self.pin(place)),
            Step::Free(which) if !self.plain.pinned.is_empty() => {
                let place = *which.get(&self.plain.pinned.keys().copied().collect::<Vec<_>>());
                self.stairs.free(place);
                self.plain.pinned.remove(&place);
                self.lay(place);
            }
            Step::Free(_) => {}
            Step::Lower(from, until) => {
                self.stairs.lower(from..until);
                self.plain.lower(from..until);
            }
            Step::Renumber => {
                self.stairs.renumber(|time| time + 3);
                self.plain.pinned.values_mut().for_each(|(time, _)| *time += 3);
                self.now += 3;
            }
        }
    }

    fn pin(&mut self, place: u32) {
        self.now += 1;
        self.stairs.pin(place, self.now);
        self.plain.pinned.insert(place, (self.now, None));
        self.lay(place);
    }

    fn lay(&mut self, from: u32) {
        self.stairs.lay(from, fresh);
        self.plain.lay();
    }
}

fn check(stairs: &Stairs, plain: &Plain, probe: u32) {
    assert!(stairs.pinned().eq(plain.pinned.iter().map(|(&place, &(time, _))| (place, time))));
    for (&place, &(time, slack)) in &plain.pinned {
        assert_eq!(stairs.is_step(place), slack.is_some(), "{place} at {time}");
        assert_eq!(stairs.first_older(probe, time), plain.first_older(probe, time));
        assert_eq!(stairs.first_older(0, time + 1), plain.first_older(0, time + 1));
    }
    let ripe = stairs.ripe().map(|place| plain.pinned[&place].1);
    assert_eq!(ripe, plain.least().filter(|&least| least <= 0).map(Some));
}

proptest! {
    #[test]
    fn stairs_are_those_of_a_list(steps in prop_oneof![steps(60), steps(300), steps(2000)], probe in 0u32..2000) {
        let mut pair = Pair { stairs: Stairs::new(), plain: Plain::default(), now: 0 };
        for step in steps {
            pair.take(step);
            check(&pair.stairs, &pair.plain, probe);
        }
    }
}
