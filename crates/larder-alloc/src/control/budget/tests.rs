//! How a budget is paced over its periods.

use super::*;

#[test]
fn a_part_is_what_was_predicted_and_some_slack() {
    let part = |rate| Part::new(rate, 100.0, 20.0);
    let mut some = part(Some(10.0));
    // Two seconds ahead, twice the rate.
    some.written(39);
    assert!(some.open(100.0));
    some.written(1);
    assert!(!some.open(100.0) && some.open(100.1));
    assert!(!part(Some(0.0)).open(200.0) && part(None).open(100.0));
}

#[test]
fn budgets_are_told_in_two_ways() {
    let dwpd = WriteBudget::dwpd(0.5, 1 << 40);
    assert_eq!((dwpd.bytes, dwpd.period_seconds), ((1u64 << 39) as f64, 86_400.0));
    let tbw = WriteBudget::tbw(600.0, 5.0);
    assert!((tbw.bytes - 600e12 / 1826.25).abs() < 1.0);
}

#[test]
fn no_period_is_overdrawn() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
    let mut written = [0u64; 3];
    for step in 0..30_000 {
        let now = f64::from(step) * 0.01;
        pace.turn(now);
        if pace.open(now) {
            pace.written(1.0);
            written[step as usize / 10_000] += 1;
        }
    }
    assert_eq!(written, [1000; 3]);
}

#[test]
fn what_may_be_written_is_counted_in_blocks() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
    assert_eq!((pace.room(0.0), pace.room(10.0), pace.room(70.0), pace.period_end()), (50, 450, 1000, 100.0));
    pace.written(300.0);
    assert_eq!((pace.room(5.0), pace.open(5.0), pace.room(10.0), pace.room(70.0)), (0, false, 150, 700));
    pace.turn(100.0);
    // The cache is no longer cold.
    assert_eq!((pace.room(100.0), pace.room(110.0), pace.period_end()), (50, 250, 200.0));
}

#[test]
fn evenly_nothing_is_spent_early_and_nothing_is_lost() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
    pace.spend_evenly();
    assert_eq!((pace.room(0.0), pace.room(10.0), pace.rate(10.0, 10.0).round()), (0, 100, 20.0));
    pace.written(100.0);
    assert_eq!((pace.room(10.0), pace.rate(10.0, 10.0).round()), (0, 10.0));
    pace.turn(100.0);
    assert_eq!(pace.room(110.0), 100);
}

#[test]
fn a_load_that_has_just_begun_may_end_soon() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 }, 4096, 60.0, 0.0);
    // In four minutes, after ten of them in forty; after two hours eight more are longer than what is left of the day, spent nearly five times as fast as evenly.
    assert_eq!(pace.rate(0.0, 10.0).round(), (1e6_f64 / 240.0).round());
    pace.written(6e5);
    assert_eq!(pace.rate(600.0, 10.0).round(), (4e5_f64 / 2400.0).round());
    pace.written(2e5);
    let early = 1.0 + 4.0 * 22.0 / 24.0;
    assert_eq!(pace.rate(2.0 * 3600.0, 10.0).round(), (2e5_f64 / (22.0 * 3600.0 / early)).round());
    // At the most by then: a minute, an hour and a half, and the rest.
    let pace = Pace { written: 0.0, ..pace };
    let left = |time: f64| 1.0 - pace.spent_by(time) / 1e6;
    let turn = 86_400.0 / 17.0;
    assert!((left(60.0) - (-0.25_f64).exp()).abs() < 1e-9);
    assert!((left(turn) - left(60.0) * (turn / 60.0).powf(-0.25)).abs() < 1e-9);
    assert!((left(43_200.0) - left(turn) * (17.0_f64 / 32.0).powi(4)).abs() < 1e-9);
    assert_eq!(left(86_400.0), 0.0);
    // Tomorrow is known by today.
    let mut pace = pace;
    pace.turn(86_400.0);
    assert_eq!(pace.rate(86_400.0, 10.0).round(), (1e6_f64 / 43_200.0).round());
}

/// What would save so many seconds.
fn saving(seconds: f64) -> Offered {
    let mut offered = Offered::default();
    offered.add(1e-3, seconds / 1e-3);
    offered
}

/// What is left of a first period's budget where the same load has always been there, by the shares of the period: in four times as long as it has lasted, then five times as fast as evenly, ever more evenly.
fn left_of_a_steady_load(time: f64, period: f64, unit: f64) -> f64 {
    let of_rest = |time: f64| (period - time) / (1.0 + 4.0 * (period - time) / period);
    let steps = (0..100_000).map(|at| f64::from(at) * period / 1e5);
    let turn = steps.into_iter().find(|&at| of_rest(at) <= 4.0 * at.max(unit)).unwrap_or(period);
    let begun = time.min(turn);
    let by_age = (-begun.min(unit) / (4.0 * unit)).exp() * (begun.max(unit) / unit).powf(-0.25);
    let rest = |time: f64| (1.0 - time / period) * (4.0 * (1.0 - time / period)).exp();
    by_age * rest(time.max(turn)) / rest(turn)
}

/// Whoever always has something to write, and writes at the rate that is told, has written at any time what is told to be spent by then, all of it when the period ends, and never more than may be.
#[test]
fn what_is_spent_is_what_the_rate_comes_to() {
    for (period, unit) in [(86_400.0, 60.0), (1000.0, 61.0), (1000.0, 500.0), (100.0, f64::INFINITY)] {
        let mut pace =
            Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: period }, 4096, unit, 0.0);
        let mut least = 0.0_f64;
        for at in 0..100_000 {
            let (now, step) = (f64::from(at) * period / 1e5, period / 1e5);
            pace.offered(&saving(step), now);
            let left = pace.blocks - pace.written;
            let expected = match unit.is_finite() {
                true if at % 100 == 0 => 1e6 * (1.0 - left_of_a_steady_load(now, period, unit)),
                true => pace.written,
                false => pace.spent_by(now),
            };
            assert!((pace.written - expected).abs() < 3e3, "{period} {unit} {now}");
            assert!(pace.written <= pace.may(now) && pace.spent_by(now) >= least, "{period} {unit} {now}");
            least = pace.spent_by(now);
            pace.written(left / pace.horizon(now) * step);
        }
        assert!(pace.written > 0.999 * pace.blocks, "{period} {unit}: {}", pace.written);
    }
}

/// In a run of an hour little comes for forty minutes, and then a load that lasts until its end.
#[test]
fn a_load_that_begins_late_is_new_as_well() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 3600.0 }, 4096, 60.0, 0.0);
    for second in 1..3600 {
        let now = f64::from(second);
        let load = if second <= 2400 { 1e-3 } else { 1.0 };
        pace.offered(&saving(load), now);
        match second {
            // It is as old as the run.
            2399 => {
                assert_eq!(pace.horizon(now).round(), (1201.0_f64 / (1.0 + 4.0 * 1201.0 / 3600.0)).round())
            }
            // In four minutes, not all that was left over at once; when it is half over a fifth is left for the rest.
            2430 => assert_eq!(pace.horizon(now), 240.0),
            3000 => assert!((6e5..8.5e5).contains(&pace.written), "{}", pace.written),
            _ => (),
        }
        if second > 2400 {
            pace.written(pace.rate(now, 1.0));
        }
    }
    assert!(pace.written > 0.95e6 && pace.written <= 1e6, "{}", pace.written);
}

/// Of a day's load, which comes in its first three hours, what is worth a millisecond is as much as may be written, and what is worth a tenth of that comes as well.
fn morning(pace: &mut Pace, day: u32) {
    for minute in 0..180 {
        let mut offered = Offered::default();
        [1e-3, 1e-4].iter().for_each(|&worth| offered.add(worth, 1e6 / 180.0));
        let now = f64::from(day) * 86_400.0 + f64::from(minute) * 60.0;
        pace.turn(now);
        pace.offered(&offered, now);
    }
}

#[test]
fn what_came_yesterday_is_expected_today() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 }, 4096, 600.0, 0.0);
    morning(&mut pace, 0);
    assert_eq!(pace.worth(3600.0, 600.0), 0.0);
    let at = |hour: f64| 86_400.0 + hour * 3600.0;
    pace.turn(at(0.0));
    // After an hour and a half, and the half hour to come, two thirds of what is spent by rhythm; after three hours all of that.
    let share = |blocks: f64| (blocks / 1e6 * 100.0).round() / 100.0;
    assert_eq!([1.5, 3.0, 12.0].map(|hour| share(pace.spent_by(at(hour)))), [0.6, 0.9, 0.9]);
    assert!(pace.may(at(3.0)) <= 1e6 && pace.rate(at(1.0), 600.0) > 400.0);
    // After an hour three tenths were to be written. What was worth a tenth stays out while that is so, and what is known says nothing where a twentieth less is; nor once all came that is to come, nor where
    // the day ends.
    let mut worth = |written: f64, hour: f64| {
        pace.written = written;
        pace.worth(at(hour), 600.0)
    };
    let whole = worth(4e5, 1.0);
    assert!((1.01e-4..1.2e-3).contains(&whole), "{whole}");
    assert!((worth(2.75e5, 1.0) / whole - 0.5).abs() < 0.1 && worth(2.4e5, 1.0) == 0.0);
    assert_eq!([worth(9e5, 3.0), worth(9e5, 23.9)], [0.0, 0.0]);
    // With more to write it is all worth it; in periods of another length, and evenly spent ones, nothing is known.
    let budget = |bytes, period_seconds| WriteBudget { bytes, period_seconds };
    assert_eq!(pace.changed(budget(4096.0 * 4e6, 86_400.0), 4096, at(1.0)).worth(at(2.0), 600.0), 0.0);
    let other = pace.changed(budget(4096.0 * 1e6, 3600.0), 4096, at(1.0));
    assert!(other.rhythm.spent(0.5).is_none() && pace.rhythm.spent(0.5).is_some());
    pace.spend_evenly();
    assert_eq!((pace.worth(at(2.5), 600.0), share(pace.spent_by(at(12.0)))), (0.0, 0.5));
}

/// Another daemon goes on with what was kept of a day's budget, in a day that began so long ago.
fn resumed(since: f64, written: f64, rhythm: Option<&BudgetRhythm>) -> Pace {
    let budget = WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 };
    let mut pace = Pace::new(budget, 4096, 600.0, 50.0);
    pace.resume(written, since, false, rhythm);
    pace
}

/// A day's pace on the second day, and what it was when an hour and a half of that were over.
fn second_day() -> (Pace, f64) {
    let budget = WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 };
    let mut pace = Pace::new(budget, 4096, 600.0, 0.0);
    morning(&mut pace, 0);
    pace.turn(86_400.0);
    pace.written(4.3e5);
    (pace, 86_400.0 + 5400.0)
}

#[test]
fn what_came_yesterday_is_expected_today_after_a_restart_too() {
    let (mut before, now) = second_day();
    let pace = resumed(5400.0, 4.3e5, Some(&before.rhythm(now)));
    assert_eq!((pace.period_end(), pace.written), (50.0 + 86_400.0 - 5400.0, 4.3e5));
    assert!((pace.spent_by(50.0) - before.spent_by(now)).abs() < 1.0);
    assert!((pace.worth(50.0, 600.0) - before.worth(now, 600.0)).abs() < 1e-9);
    assert!(before.worth(now, 600.0) > 0.0);
    // What came in the period under way counts in the next one.
    let mut evening = Offered::default();
    evening.add(1e-3, 1e6);
    before.offered(&evening, 86_400.0 + 20.0 * 3600.0);
    let late = 23.0 * 3600.0;
    let mut pace = resumed(late, 4.3e5, Some(&before.rhythm(86_400.0 + late)));
    pace.turn(50.0 + 3600.0);
    // As it does where the daemon was there until nearly its end, and another one begins after that; and where the budget's next period is known of, and what came in it is not yet.
    let kept = before.rhythm(2.0 * 86_400.0 - 600.0);
    let soon = resumed(86_400.0 + 600.0, 4.3e5, Some(&kept));
    let killed = resumed(600.0, 0.0, Some(&BudgetRhythm { seen: kept.seen - 1.0, ..kept }));
    before.turn(2.0 * 86_400.0);
    let known = before.rhythm(2.0 * 86_400.0);
    for it in [pace, soon, killed] {
        assert_eq!(it.rhythm(it.began), known);
        assert!((it.spent_by(it.began + 43_200.0) - before.spent_by(2.5 * 86_400.0)).abs() < 1.0);
    }
    assert!(before.spent_by(2.5 * 86_400.0) < 0.85e6);
}

#[test]
fn a_day_of_which_a_part_was_not_seen_says_nothing() {
    let (mut before, now) = second_day();
    let known = BudgetRhythm { partial: true, ..before.rhythm(86_400.0) };
    before.offered(&saving(1.0), now);
    let kept = before.rhythm(now);
    assert_eq!((kept.now.len(), kept.partial), (1, false));
    let is_known = |pace: Pace| pace.rhythm(pace.began) == known;
    // Not there from half past one to five, or until the day after; nor was it seen what came before it was killed.
    assert!(is_known(resumed(5.0 * 3600.0, 4.3e5, Some(&kept))));
    assert!(is_known(resumed(86_400.0 + 5400.0, 4.3e5, Some(&kept))));
    assert!(is_known(resumed(5400.0, 0.0, Some(&BudgetRhythm { seen: kept.seen - 1.0, ..kept.clone() }))));
    // An hour is not missed, and nothing was ever known.
    assert_eq!(resumed(8900.0, 4.3e5, Some(&kept)).rhythm(50.0).now, kept.now);
    let unknown = resumed(86_400.0 + 5400.0, 4.3e5, None);
    assert_eq!(unknown.rhythm(unknown.began), BudgetRhythm { partial: true, ..BudgetRhythm::default() });
}

#[test]
fn a_period_that_ended_without_a_daemon_leaves_no_debt() {
    let pace = resumed(86_400.0 + 5400.0, 9e6, None);
    assert_eq!((pace.written, pace.is_first(), pace.period_end()), (0.0, false, 50.0 + 86_400.0 - 5400.0));
    // In the one that is under way what was written counts.
    assert_eq!(resumed(5400.0, 9e6, None).room(60.0), 0);
}

#[test]
fn what_may_be_written_lasts_until_the_period_ends() {
    let mut pace = Pace::new(WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 }, 4096, 10.0, 0.0);
    pace.written(400.0);
    let Writes { rate, lasting, even, period, worth } = pace.writes(40.0, 10.0);
    assert_eq!((rate, lasting, even), (pace.rate(40.0, 10.0), 10.0, 10.0));
    assert_eq!((period, worth), (100.0, 0.0));
    assert_eq!((pace.writes(90.0, 10.0).lasting, pace.writes(90.5, 10.0).lasting), (60.0, f64::INFINITY));
    pace.written(700.0);
    assert_eq!(pace.writes(40.0, 10.0).lasting, 0.0);
}

#[test]
fn what_is_behind_raises_the_rate_and_what_is_ahead_lowers_it() {
    let budget = WriteBudget { bytes: 4096.0 * 1000.0, period_seconds: 100.0 };
    let mut pace = Pace::new(budget, 4096, f64::INFINITY, 0.0);
    // Four times what would use it up evenly. Who has written nothing in the first half may write what was left over then.
    let caught_up = 1000.0 * (1.0 - 0.4_f64.powi(4)) / 10.0;
    assert_eq!(pace.rate(0.0, 10.0), 40.0);
    assert!((pace.rate(50.0, 10.0) - caught_up).abs() < 1e-9);
    pace.turn(100.0);
    pace.began = 0.0;
    assert_eq!((pace.rate(0.0, 10.0), pace.rate(50.0, 10.0)), (20.0, 84.0));
    pace.written(840.0);
    assert_eq!(pace.rate(50.0, 10.0), 6.4);
    pace.written -= 240.0;
    assert_eq!(pace.rate(50.0, 10.0), 24.0);
    // No more than there is, and what the next periods bring.
    assert_eq!(pace.rate(90.0, 10.0), 40.0);
    assert_eq!(pace.rate(95.0, 10.0), 50.0);
    assert_eq!(pace.rate(99.0, 151.0), (400.0 + 1000.0 + 1000.0) / 151.0);
}

#[test]
fn another_epoch_forgets_nothing_of_the_periods_before() {
    let (mut pace, now) = second_day();
    let mut noon = Offered::default();
    noon.add(1e-3, 1e6);
    pace.offered(&noon, now);
    let (kept, spent, worth) = (pace.rhythm(now), pace.spent_by(now), pace.worth(now, 600.0));
    assert!(!kept.now.is_empty() && !kept.before.is_empty() && worth > 0.0);
    pace.set_unit(60.0, now);
    assert_eq!((pace.rhythm(now), pace.spent_by(now), pace.worth(now, 600.0)), (kept, spent, worth));
}

#[test]
fn who_is_not_told_what_comes_is_not_paced_by_when_it_came() {
    let (mut pace, now) = second_day();
    pace.offered(&saving(1.0), now);
    let (before, spent) = (pace.rhythm(now).before, pace.spent_by(now));
    pace.set_unit(f64::INFINITY, now);
    let evenly = 1e6 * (1.0 - (1.0_f64 - 5400.0 / 86_400.0).powi(2));
    assert!((pace.spent_by(now) - evenly).abs() < 1.0 && spent > 5e5, "{}", pace.spent_by(now));
    // The day before is still known, and of this one and the next ones nothing is, whoever goes on with them.
    for day in [1.0, 2.0, 3.0] {
        let now = day * 86_400.0 + 5400.0;
        pace.turn(now);
        let kept = pace.rhythm(now);
        assert_eq!((&kept.before, kept.now.len(), kept.partial), (&before, 0, true), "{day}");
        assert!(resumed(5400.0, 4.3e5, Some(&kept)).rhythm(50.0).partial);
    }
    pace.set_unit(600.0, 3.0 * 86_400.0 + 5400.0);
    pace.offered(&saving(1.0), 3.0 * 86_400.0 + 6000.0);
    assert_eq!(pace.rhythm(3.0 * 86_400.0 + 6000.0).now.len(), 0);
    // From the next day on it is paced as before, and what comes is remembered.
    pace.turn(4.0 * 86_400.0);
    assert!((pace.spent_by(4.0 * 86_400.0 + 5400.0) - spent).abs() < 1.0);
    pace.offered(&saving(1.0), 4.0 * 86_400.0);
    assert_eq!(pace.rhythm(4.0 * 86_400.0).now.len(), 1);
}

#[test]
fn who_is_not_told_what_comes_forgets_nothing_over_a_restart() {
    let (mut before, now) = second_day();
    before.offered(&saving(1.0), now);
    let kept = before.rhythm(now);
    let budget = WriteBudget { bytes: 4096.0 * 1e6, period_seconds: 86_400.0 };
    let mut pace = Pace::new(budget, 4096, f64::INFINITY, 50.0);
    pace.resume(4.3e5, 5400.0, false, Some(&kept));
    let again = pace.rhythm(50.0);
    assert_eq!((&again.before, again.now.len(), again.partial), (&kept.before, 0, true));
}
