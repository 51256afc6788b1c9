//! The model against known answers, against a device that keeps the rules, and against a slow oracle straight from the rules.

use super::*;
use proptest::prelude::*;

const ALL: Range<u64> = 0..4;

/// A write of sectors 0 to 3 from its beginning to its end: its version.
fn written(versions: &mut Versions) -> u64 {
    let (key, version) = versions.begin_write(ALL, false);
    versions.end_write(key, true);
    version
}

/// What sector 0 may hold now, by what is told of a read that finds nothing.
fn expected(versions: &mut Versions) -> Vec<u64> {
    let key = versions.begin_read(0..1);
    let mut wrong = versions.end_read(key, |_| None).wrong;
    let mut expected = wrong.pop().map_or(Vec::new(), |wrong| wrong.expected);
    expected.sort_unstable();
    expected
}

#[test]
fn what_was_written_last_is_expected() {
    let mut versions = Versions::default();
    let nothing = versions.begin_read(ALL);
    assert_eq!(versions.end_read(nothing, |_| None), Checked::default(), "nothing is known yet");
    written(&mut versions);
    let second = written(&mut versions);
    assert_eq!(expected(&mut versions), [second]);
    let read = versions.begin_read(2..6);
    let checked = versions.end_read(read, |sector| Some(if sector == 3 { 1 } else { second }));
    assert_eq!(checked, Checked { sectors: 2, wrong: vec![Wrong { sector: 3, expected: vec![second] }] });
}

#[test]
fn one_of_two_at_a_time_is_expected_until_it_is_seen() {
    let mut versions = Versions::default();
    let old = written(&mut versions);
    let ((one, first), (other, second)) =
        (versions.begin_write(ALL, false), versions.begin_write(0..1, false));
    assert_eq!(expected(&mut versions), [old, first, second], "all may be seen while they are under way");
    versions.end_write(one, true);
    versions.end_write(other, true);
    assert_eq!(expected(&mut versions), [first, second]);
    let read = versions.begin_read(0..1);
    assert!(versions.end_read(read, |_| Some(first)).wrong.is_empty());
    assert_eq!(expected(&mut versions), [first], "it stays as it was seen");
}

#[test]
fn one_that_ended_before_another_began_is_not_expected() {
    let mut versions = Versions::default();
    let (long, first) = versions.begin_write(ALL, false);
    let (short, _) = versions.begin_write(ALL, false);
    versions.end_write(short, true);
    let third = written(&mut versions);
    versions.end_write(long, true);
    assert_eq!(expected(&mut versions), [first, third]);
}

#[test]
fn a_read_may_find_what_changed_meanwhile() {
    let mut versions = Versions::default();
    let old = written(&mut versions);
    let read = versions.begin_read(ALL);
    let (new, late) = (written(&mut versions), written(&mut versions));
    let finds = [old, new, late, 9];
    let checked = versions.end_read(read, |sector| Some(finds[sector as usize]));
    assert_eq!(checked.wrong, [Wrong { sector: 3, expected: finds[..3].to_vec() }]);
}

#[test]
fn what_failed_or_was_discarded_holds_anything() {
    for (discards, is_done) in [(true, true), (true, false), (false, false)] {
        let mut versions = Versions::default();
        written(&mut versions);
        let read = versions.begin_read(0..1);
        let (key, _) = versions.begin_write(0..2, discards);
        let rival = versions.begin_write(1..2, false);
        versions.end_write(key, is_done);
        versions.end_write(rival.0, true);
        assert_eq!(versions.end_read(read, |_| None).sectors, 0);
        let read = versions.begin_read(ALL);
        assert_eq!(versions.end_read(read, |_| Some(1)).sectors, 2, "2 and 3 are known");
        assert_eq!(versions.known_in(0), vec![2..4]);
        let again = written(&mut versions);
        assert_eq!((expected(&mut versions), versions.known_in(0)), (vec![again], vec![ALL]));
    }
}

#[test]
fn known_sectors_are_found_in_every_page() {
    let mut versions = Versions::default();
    for sectors in [PAGE - 2..PAGE + 3, 10..20, 30..31] {
        let (key, _) = versions.begin_write(sectors, false);
        versions.end_write(key, true);
    }
    assert_eq!(versions.pages(), [0, 1]);
    assert_eq!(versions.known_in(0), [10..20, 30..31, PAGE - 2..PAGE]);
    assert_eq!(versions.known_in(1), vec![PAGE..PAGE + 3]);
}

/// A step of a history. Numbers choose among what is there.
#[derive(Clone, Debug)]
enum Step {
    Write(Range<u64>),
    Read(Range<u64>),
    /// The device carries out one of the requests under way.
    Apply(usize),
    End {
        which: usize,
        found: u64,
    },
}

fn range() -> impl Strategy<Value = Range<u64>> {
    (0..4_u64, 1..4_u64).prop_map(|(start, len)| start..(start + len).min(4))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => range().prop_map(Step::Write),
        2 => range().prop_map(Step::Read),
        2 => any::<usize>().prop_map(Step::Apply),
        4 => (any::<usize>(), 1..12_u64).prop_map(|(which, found)| Step::End { which, found }),
    ];
    prop::collection::vec(step, 1..60)
}

/// A request under way.
struct Open {
    key: usize,
    sectors: Range<u64>,
    /// Of a write.
    version: Option<u64>,
    /// Of a read that was carried out: what it found.
    seen: Option<Vec<Option<u64>>>,
    is_applied: bool,
    began: usize,
}

/// A device of four sectors, each a register: requests take effect at one moment between their beginning and their end.
#[derive(Default)]
struct Device([Option<u64>; 4]);

impl Device {
    fn apply(&mut self, open: &mut Open) {
        if std::mem::replace(&mut open.is_applied, true) {
            return;
        }
        let cells = &mut self.0[open.sectors.start as usize..open.sectors.end as usize];
        match open.version {
            Some(version) => cells.fill(Some(version)),
            None => open.seen = Some(cells.to_vec()),
        }
    }
}

/// One value of one sector, as the rules see it: written, or seen by a read beside which nothing was written. The latter was there
/// from the moment on at which the last write before it ended.
#[derive(Clone, Copy)]
struct Event {
    sector: u64,
    version: u64,
    began: usize,
    ended: Option<usize>,
}

/// The versions that a read may find: each that began before it ended, but those after whose end another began and ended before the read began.
fn oracle(events: &[Event], sector: u64, began: usize) -> Vec<u64> {
    let of_sector = || events.iter().filter(move |event| event.sector == sector);
    let is_over = |event: &Event| {
        of_sector().any(|other| {
            other.version != event.version
                && event.ended.is_some_and(|ended| ended < other.began)
                && other.ended.is_some_and(|ended| ended < began)
        })
    };
    let mut may_be: Vec<u64> =
        of_sector().filter(|event| !is_over(event)).map(|event| event.version).collect();
    may_be.sort_unstable();
    may_be.dedup();
    may_be
}

proptest! {
    #[test]
    fn a_device_that_keeps_the_rules_is_never_accused(steps in steps()) {
        let (mut versions, mut device, mut open) = (Versions::default(), Device::default(), Vec::<Open>::new());
        for step in steps {
            match step {
                Step::Write(sectors) => {
                    let (key, version) = versions.begin_write(sectors.clone(), false);
                    open.push(Open { key, sectors, version: Some(version), seen: None, is_applied: false, began: 0 });
                }
                Step::Read(sectors) => {
                    let key = versions.begin_read(sectors.clone());
                    open.push(Open { key, sectors, version: None, seen: None, is_applied: false, began: 0 });
                }
                Step::Apply(_) | Step::End { .. } if open.is_empty() => {}
                Step::Apply(which) => {
                    let which = which % open.len();
                    device.apply(&mut open[which]);
                }
                Step::End { which, .. } => {
                    let mut ended = open.remove(which % open.len());
                    device.apply(&mut ended);
                    let Some(seen) = ended.seen else { versions.end_write(ended.key, true); continue };
                    let found = |sector: u64| seen[(sector - ended.sectors.start) as usize];
                    prop_assert_eq!(versions.end_read(ended.key, found).wrong, []);
                }
            }
        }
    }

    #[test]
    fn all_that_breaks_the_rules_is_found(steps in steps()) {
        let (mut versions, mut open, mut events) = (Versions::default(), Vec::<Open>::new(), Vec::<Event>::new());
        // Room between two steps for what reads tell of the time between them.
        for (now, step) in (0..).step_by(2).zip(steps) {
            match step {
                Step::Write(sectors) => {
                    let (key, version) = versions.begin_write(sectors.clone(), false);
                    events.extend(sectors.clone().map(|sector| Event { sector, version, began: now, ended: None }));
                    open.push(Open { key, sectors, version: Some(version), seen: None, is_applied: false, began: now });
                }
                Step::Read(sectors) => {
                    let key = versions.begin_read(sectors.clone());
                    open.push(Open { key, sectors, version: None, seen: None, is_applied: false, began: now });
                }
                Step::Apply(_) => {}
                Step::End { .. } if open.is_empty() => {}
                Step::End { which, found } => {
                    let Open { key, sectors, version, began, .. } = open.remove(which % open.len());
                    if version.is_some() {
                        versions.end_write(key, true);
                        events.iter_mut().filter(|event| Some(event.version) == version && event.ended.is_none()).for_each(|event| event.ended = Some(now));
                        continue;
                    }
                    let checked = versions.end_read(key, |_| Some(found));
                    for sector in sectors {
                        let may_be = oracle(&events, sector, began);
                        // What a sector held that was not written before the read began is not known.
                        let is_known = events.iter().any(|event| event.sector == sector && event.ended.is_some_and(|ended| ended < began));
                        let told = checked.wrong.iter().find(|wrong| wrong.sector == sector);
                        prop_assert_eq!(told.is_some(), is_known && !may_be.contains(&found), "{:?} {:?}", sector, may_be);
                        let is_alone = !events.iter().any(|event| event.sector == sector && event.ended.is_none_or(|ended| ended > began));
                        if is_alone && is_known && told.is_none() {
                            let last = events.iter().filter(|event| event.sector == sector).filter_map(|event| event.ended).max();
                            let settled = last.map_or(0, |ended| ended | 1);
                            events.push(Event { sector, version: found, began: settled, ended: Some(settled) });
                        }
                    }
                }
            }
        }
    }
}
