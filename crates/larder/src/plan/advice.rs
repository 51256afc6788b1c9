//! Which SSD to buy, and why.

use larder_daemon::units::HumanSize;

use super::offer::Offer;
use crate::number::time;

/// What is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Its place among the offers.
    pub at: usize,
    /// Why, in words with the numbers.
    pub reason: String,
}

/// A latency that falls by less than this share is none that anybody would notice, however little more it costs.
const GAIN_MIN: f64 = 0.01;

/// A budget of SSD writes is kept to within this: an SSD that is written just as much as it may be lives as long as it is to.
const KEPT: f64 = 0.98;

/// The share by which the latency falls from one offer to another, and that by which the cost rises.
fn step(from: &Offer, to: &Offer) -> (f64, f64) {
    let gain = if from.latency > 0.0 { 1.0 - to.latency / from.latency } else { 0.0 };
    (gain, to.cost / from.cost - 1.0)
}

/// Is the dearer one worth it: does the latency fall by `worth` of the share by which the cost rises?
fn is_worth_it(from: &Offer, to: &Offer, worth: f64) -> bool {
    let (gain, more) = step(from, to);
    gain >= GAIN_MIN && gain >= worth * more
}

/// From the cheapest that lives long enough, go on to the next that is worth its price until there is none. None without offers.
pub fn advise(offers: &[Offer], years: f64, worth: f64) -> Option<Advice> {
    let lives = |offer: &Offer| offer.years.is_none_or(|lives| lives >= years * KEPT);
    let some_live = offers.iter().any(lives);
    let mut order: Vec<usize> = (0..offers.len()).filter(|&at| !some_live || lives(&offers[at])).collect();
    // Of those that cost the same, the one that may be written least: what it lacks must show.
    order.sort_by(|&a, &b| {
        offers[a]
            .cost
            .total_cmp(&offers[b].cost)
            .then(offers[a].rated_bytes.total_cmp(&offers[b].rated_bytes))
    });
    let (mut at, mut rest) = order.split_first().map(|(first, rest)| (*first, rest))?;
    while let Some(next) = rest.iter().position(|&next| is_worth_it(&offers[at], &offers[next], worth)) {
        (at, rest) = (rest[next], &rest[next + 1..]);
    }
    let mut reason = chosen(&offers[at]);
    reason += &next_sentence(&offers[at], rest.iter().map(|&next| &offers[next]), worth);
    if !some_live {
        reason += &format!(
            " None of them lives for {years} years: this one is worn out after {:.1}.",
            offers[at].years.unwrap_or(f64::INFINITY)
        );
    }
    Some(Advice { at, reason })
}

fn chosen(offer: &Offer) -> String {
    let lives = offer.years.map_or_else(|| "for ever".into(), |years| format!("{years:.1} years"));
    format!("{}: mean latency {}, lives {lives}.", offer.name(), time(offer.latency))
}

/// Why no other one: of those that are dearer, the one that comes closest to being worth it.
fn next_sentence<'a>(chosen: &Offer, dearer: impl Iterator<Item = &'a Offer>, worth: f64) -> String {
    let rate = |offer: &&Offer| {
        let (gain, more) = step(chosen, offer);
        gain / more.max(1e-9)
    };
    let Some(next) =
        dearer.filter(|offer| offer.cost > chosen.cost).max_by(|a, b| rate(a).total_cmp(&rate(b)))
    else {
        return " No dearer one was asked about.".into();
    };
    let (gain, more) = step(chosen, next);
    let falls = match gain {
        gain if gain > 0.0 => format!("lowers it by {:.1} % to {}", gain * 100.0, time(next.latency)),
        _ => "does not lower it".into(),
    };
    let least = (worth * more).max(GAIN_MIN);
    format!(
        " The best of the dearer ones, {}, costs {:.0} % more and {falls}; it would be worth that from {:.1} % on.",
        next.name(),
        more * 100.0,
        least * 100.0
    )
}

/// A size as it stands in a sentence.
pub fn size(bytes: u64) -> String {
    HumanSize(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::endurance::Endurance;

    fn offer(gib: u64, dwpd: f64, latency: f64, years: f64) -> Offer {
        let cost = gib as f64 * dwpd.sqrt();
        Offer { cost, years: Some(years), ..Offer::bare(gib << 30, Endurance::Dwpd(dwpd), latency) }
    }

    fn best(offers: &[Offer], worth: f64) -> (u64, String) {
        let advice = advise(offers, 5.0, worth).expect("offers");
        (offers[advice.at].bytes >> 30, advice.reason)
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
            "4 GiB at 1 DWPD: mean latency 7.040 ms, lives 9.0 years. The best of the dearer ones, 8 GiB at 1 DWPD, costs 100 % more and lowers it by 4.0 % to 6.760 ms; it would be worth that from 10.0 % on."
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
        assert_eq!(best(&offers, 0.1).0, 2);
        let (gib, reason) = best(&offers[..1], 0.1);
        assert!(
            gib == 1 && reason.ends_with("None of them lives for 5 years: this one is worn out after 1.0."),
            "{reason}"
        );
        let kept = [offer(1, 1.0, 10e-3, 4.95), offer(2, 1.0, 10e-3, 6.0)];
        assert_eq!(best(&kept, 0.1).0, 1);
        assert_eq!(advise(&[], 5.0, 0.1), None);
    }
}
