//! Which SSD to buy, or none, and why.

use super::offer::{Offer, Without};
use super::rows;
use crate::number::{counted, time};
use crate::simulate::tenants::pause_told;

/// What is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Its place among the offers; none where no SSD is worth anything.
    pub at: Option<usize>,
    /// Why, in words with the numbers.
    pub reason: String,
}

/// A latency that falls by less than this share is none that anybody would notice, however little more it costs.
const GAIN_MIN: f64 = 0.01;

/// A budget of SSD writes is kept to within this: an SSD that is written just as much as it may be lives as long as it is to.
pub const KEPT: f64 = 0.98;

/// Seconds of a run below which it is told that a day is reckoned from it.
const SHORT: f64 = 3600.0;

/// The share by which the latency falls.
fn gain(from: f64, to: f64) -> f64 {
    if from > 0.0 { 1.0 - to / from } else { 0.0 }
}

/// The share by which the latency falls from one offer to another, and that by which the cost rises.
fn step(from: &Offer, to: &Offer) -> (f64, f64) {
    (gain(from.latency, to.latency), to.cost / from.cost - 1.0)
}

/// Is the dearer one worth it: does the latency fall by `worth` of the share by which the cost rises?
fn is_worth_it(from: &Offer, to: &Offer, worth: f64) -> bool {
    let (gain, more) = step(from, to);
    gain >= GAIN_MIN && gain >= worth * more
}

/// Is it written no more than lets it live for so many years?
fn lives(offer: &Offer, years: f64) -> bool {
    offer.years.is_none_or(|lives| {
        lives >= years * KEPT || offer.over(lives / years * offer.ssd_write_bytes_per_day) <= 1.0 / KEPT
    })
}

/// From none on, and then from the cheapest that lives long enough, go on to the next that is worth its price until there is none. None without offers.
pub fn advise(offers: &[Offer], without: &Without, years: f64, worth: f64) -> Option<Advice> {
    let some_live = offers.iter().any(|offer| lives(offer, years));
    let (mut order, left_out): (Vec<usize>, Vec<usize>) =
        (0..offers.len()).partition(|&at| !some_live || lives(&offers[at], years));
    // Of those that cost the same, the one that may be written least: what it lacks must show.
    order.sort_by(|&a, &b| {
        offers[a]
            .cost
            .total_cmp(&offers[b].cost)
            .then(offers[a].rated_bytes.total_cmp(&offers[b].rated_bytes))
    });
    let left_out: Vec<_> = left_out.into_iter().map(|at| &offers[at]).collect();
    let cheapest = *order.first()?;
    let helps = |&at: &usize| gain(without.latency, offers[at].latency) >= GAIN_MIN;
    let mut reason;
    let best = match order.iter().position(helps) {
        None => {
            reason = none_helps(&order.iter().map(|&at| &offers[at]).collect::<Vec<_>>(), without);
            reason += &left_out_sentence(left_out.len(), "other one", years);
            None
        }
        Some(first) => {
            let (mut at, mut rest) = (order[first], &order[first + 1..]);
            while let Some(next) =
                rest.iter().position(|&next| is_worth_it(&offers[at], &offers[next], worth))
            {
                (at, rest) = (rest[next], &rest[next + 1..]);
            }
            let chosen = &offers[at];
            let dearer: Vec<_> = rest.iter().map(|&next| &offers[next]).collect();
            let cheaper = left_out.iter().filter(|offer| offer.cost < chosen.cost).count();
            reason = chosen_sentence(chosen, without, years);
            reason += &next_sentence(chosen, &dearer, &left_out, years, worth);
            reason += &left_out_sentence(cheaper, "cheaper one", years);
            if !some_live {
                let worn_out = rows::years(chosen.years);
                reason +=
                    &format!(" None of them lives for {years} years: this one is worn out after {worn_out}.");
            }
            Some(at)
        }
    };
    // In a closed loop runs are of several lengths.
    let seconds = offers[best.unwrap_or(cheapest)].seconds;
    if seconds < SHORT {
        reason += &format!(
            " A day is reckoned from a run of {}: SSD writes and years are as uncertain as that.",
            time(seconds)
        );
    }
    if let Some(told) = pause_told(without.longest_pause, seconds) {
        reason += &format!(" {told}");
    }
    Some(Advice { at: best, reason })
}

fn chosen_sentence(offer: &Offer, without: &Without, wanted: f64) -> String {
    let lives = match offer.years {
        None => "for ever".into(),
        Some(years) if years < wanted * KEPT && lives(offer, wanted) => {
            "as long as it is to, as far as so short a run can tell".into()
        }
        years @ Some(_) => format!("{} years", rows::years(years).replace('>', "more than")),
    };
    format!(
        "{}: mean latency {} ({} without an SSD), lives {lives}.",
        offer.name(),
        time(offer.latency),
        time(without.latency)
    )
}

/// By how much the latency falls, if that can be seen.
fn lowers(gain: f64, to: &Offer) -> Option<String> {
    (gain >= 0.0005).then(|| format!("lowers it by {:.1} % to {}", gain * 100.0, time(to.latency)))
}

/// Why none of them.
fn none_helps(offers: &[&Offer], without: &Without) -> String {
    let best = offers.iter().min_by(|a, b| a.latency.total_cmp(&b.latency));
    let best = best.and_then(|best| {
        let lowers = lowers(gain(without.latency, best.latency), best)?;
        Some(format!("the best of them, {}, {lowers}", best.name()))
    });
    let mut reason = format!(
        "None of them is worth anything: without an SSD the mean latency is {}, and {}.",
        time(without.latency),
        best.unwrap_or_else(|| "none of them lowers it".into())
    );
    let free = offers.iter().min_by(|a, b| a.free_latency.total_cmp(&b.free_latency));
    if let Some(free) = free.filter(|free| gain(without.latency, free.free_latency) >= GAIN_MIN) {
        let (size, latency) = (free.size(), time(free.free_latency));
        reason +=
            &format!(" {size} with more endurance might: without a limit of SSD writes it is {latency}.");
    }
    reason
}

fn left_out_sentence(count: usize, what: &str, years: f64) -> String {
    if count == 0 {
        return String::new();
    }
    let (counted, live) = (counted(count as u64, what), if count == 1 { "does" } else { "do" });
    format!(" Left out: {counted}, which {live} not live for {years} years.")
}

/// Why no other one: of those that are dearer, the one that comes closest to being worth it. `dearer` are in order of their cost.
fn next_sentence(chosen: &Offer, dearer: &[&Offer], left_out: &[&Offer], years: f64, worth: f64) -> String {
    let rate = |offer: &Offer| {
        let (gain, more) = step(chosen, offer);
        gain / more.max(1e-9)
    };
    let is_dearer = |offer: &&&Offer| offer.cost > chosen.cost;
    // The last of those that are equal is the cheapest.
    let best = dearer.iter().filter(is_dearer).rev().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let Some(next) = best else {
        return match left_out.iter().find(is_dearer) {
            Some(_) => format!(" No dearer one lives for {years} years."),
            None => " No dearer one was asked about.".into(),
        };
    };
    let (gain, more) = step(chosen, next);
    let Some(lowers) = lowers(gain, next) else {
        return " None of the dearer ones lowers it.".into();
    };
    let least = (worth * more).max(GAIN_MIN);
    format!(
        " The best of the dearer ones, {}, costs {:.0} % more and {lowers}; it would be worth that from {:.1} % on.",
        next.name(),
        more * 100.0,
        least * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::endurance::Endurance;

    fn offer(gib: u64, dwpd: f64, latency: f64, years: f64) -> Offer {
        let cost = gib as f64 * dwpd.sqrt();
        Offer { cost, years: Some(years), ..Offer::bare(gib << 30, Endurance::Dwpd(dwpd), latency) }
    }

    /// Without an SSD requests take 20 ms.
    const WITHOUT: Without = Without {
        latency: 20e-3,
        p99: 20e-3,
        iops: 1.0,
        backing_iops: 1.0,
        backing_busy: 0.1,
        longest_pause: None,
    };

    fn best(offers: &[Offer], worth: f64) -> (u64, String) {
        let advice = advise(offers, &WITHOUT, 5.0, worth).expect("offers");
        (offers[advice.at.expect("one")].bytes >> 30, advice.reason)
    }

    #[test]
    fn larger_ones_are_taken_while_they_are_worth_it() {
        // Each costs twice as much: 20 %, 12 %, 4 % less latency.
        let offers = [
            offer(8, 1.0, 6.76e-3, 9.0),
            offer(1, 1.0, 10e-3, 9.0),
            offer(2, 1.0, 8e-3, 9.0),
            offer(4, 1.0, 7.04e-3, 9.0),
        ];
        let (gib, reason) = best(&offers, 0.1);
        assert_eq!(gib, 4);
        assert_eq!(
            reason,
            "4 GiB at 1 DWPD: mean latency 7.040 ms (20.00 ms without an SSD), lives 9.0 years. The best of the dearer ones, 8 GiB at 1 DWPD, costs 100 % more and lowers it by 4.0 % to 6.760 ms; it would be worth that from 10.0 % on."
        );
        assert_eq!((best(&offers, 0.03).0, best(&offers, 0.5).0), (8, 1));
        assert!(best(&offers, 0.03).1.ends_with(" No dearer one was asked about."));
    }

    #[test]
    fn a_step_over_a_bad_one_is_taken() {
        let offers = [offer(1, 1.0, 10e-3, 9.0), offer(2, 1.0, 10e-3, 9.0), offer(4, 1.0, 1e-3, 9.0)];
        assert_eq!(best(&offers, 0.1).0, 4);
    }

    #[test]
    fn what_is_worn_out_too_early_is_left_out_unless_all_are() {
        let offers = [offer(1, 1.0, 10e-3, 1.0), offer(2, 1.0, 10e-3, 6.0)];
        let (gib, reason) = best(&offers, 0.1);
        assert!(
            gib == 2 && reason.ends_with(" Left out: 1 cheaper one, which does not live for 5 years."),
            "{reason}"
        );
        let (gib, reason) = best(&offers[..1], 0.1);
        assert!(
            gib == 1 && reason.ends_with("None of them lives for 5 years: this one is worn out after 1.0."),
            "{reason}"
        );
        let kept = [offer(1, 1.0, 10e-3, 4.95), offer(2, 1.0, 10e-3, 6.0)];
        assert_eq!(best(&kept, 0.1).0, 1);
        assert_eq!(advise(&[], &WITHOUT, 5.0, 0.1), None);
        let dearer = [offer(1, 1.0, 10e-3, 6.0), offer(2, 1.0, 5e-3, 1.0)];
        assert!(best(&dearer, 0.1).1.ends_with(" No dearer one lives for 5 years."));
    }

    #[test]
    fn none_is_bought_that_does_nothing() {
        let offers = [offer(1, 1.0, 20.1e-3, 9.0), offer(2, 1.0, 19.9e-3, 9.0)];
        let advice = advise(&offers, &WITHOUT, 5.0, 0.1).expect("offers");
        assert_eq!(advice.at, None);
        assert_eq!(
            advice.reason,
            "None of them is worth anything: without an SSD the mean latency is 20.00 ms, and the best of them, 2 GiB at 1 DWPD, lowers it by 0.5 % to 19.90 ms."
        );
        let free = Offer { free_latency: 5e-3, ..offers[0].clone() };
        let advice = advise(&[free], &WITHOUT, 5.0, 0.1).expect("offers");
        assert!(
            advice.reason.ends_with(
                " 20.00 ms, and none of them lowers it. 1 GiB with more endurance might: without a limit of SSD writes it is 5.000 ms."
            ),
            "{}",
            advice.reason
        );
        // The first that helps is where the steps begin.
        assert_eq!(best(&[offers[0].clone(), offer(2, 1.0, 10e-3, 9.0)], 1e9).0, 2);
    }

    #[test]
    fn dearer_ones_that_change_nothing_are_not_named() {
        let offers = [offer(1, 1.0, 10e-3, 9.0), offer(2, 1.0, 10e-3, 9.0), offer(4, 1.0, 10e-3, 9.0)];
        let (gib, reason) = best(&offers, 0.1);
        assert!(gib == 1 && reason.ends_with(" None of the dearer ones lowers it."), "{reason}");
    }

    #[test]
    fn a_run_that_is_short_is_told_and_ends_a_little_beyond_its_budget() {
        let short = |years, beyond_per_day| Offer {
            seconds: 60.0,
            ssd_write_bytes_per_day: 10.0,
            beyond_per_day,
            ..offer(1, 1.0, 10e-3, years)
        };
        let dear = offer(2, 1.0, 10e-3, 9.0);
        // Half of what is written is that of the last requests.
        let (gib, reason) = best(&[short(2.6, 5.0), dear.clone()], 0.1);
        assert!(
            gib == 1
                && reason.ends_with(
                    " A day is reckoned from a run of 60.00 s: SSD writes and years are as uncertain as that."
                ),
            "{reason}"
        );
        assert_eq!(best(&[short(2.6, 1.0), dear], 0.1).0, 2);
        // The run is that of the recommended one.
        let quick = Offer { seconds: 30.0, ..offer(2, 1.0, 1e-3, 9.0) };
        let slow = Offer { seconds: 60.0, ..offer(1, 1.0, 10e-3, 9.0) };
        let (gib, reason) = best(&[slow, quick], 0.1);
        assert!(gib == 2 && reason.contains(" from a run of 30.00 s:"), "{reason}");
    }
}
