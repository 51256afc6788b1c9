//! Centaur's reasons, in words.

use crate::centaur::memory::{AGREES, ITERATIONS_MAX};
use crate::centaur::reservations::Verdict;
use crate::{Objective, Reservation};

/// Why the partitioning is what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Why {
    /// Nothing was predicted of some tenant.
    First,
    /// Predictions were off by this part of them.
    Deviates(f64),
    /// Another partitioning costs less, by this part.
    Gains(f64),
    /// The old one does not fit any more.
    Unfit,
    /// The old one stands.
    Stands,
}

pub(super) fn why(why: Why) -> String {
    let agreed = percent(AGREES);
    match why {
        Why::First => "planned for the first time with these tenants".to_owned(),
        Why::Deviates(part) => {
            format!("planned anew, measured latencies being up to {} off the predicted ones", percent(part))
        }
        Why::Gains(part) => format!("planned anew for a gain of {}", percent(part)),
        Why::Unfit => "planned anew, the old sizes being out of bounds".to_owned(),
        Why::Stands => format!("stands, measured latencies being within {agreed} of the predicted ones"),
    }
}

pub(super) fn objective(objective: Objective) -> &'static str {
    match objective {
        Objective::TotalMisses => "the fewest misses",
        Objective::MeanLatency => "the least mean latency",
        Objective::SumOfLatencies => "the least sum of latencies",
        Objective::Iops => "the most IOPS",
    }
}

/// Half a sentence about a reservation; none where there is nothing to say.
pub(super) fn verdict(reservation: Reservation, verdict: Verdict) -> Option<String> {
    let promise = promised(reservation);
    let words = match verdict {
        Verdict::None => return None,
        Verdict::Idle => format!("the reservation of {promise} rests while the tenant is idle"),
        Verdict::Kept { needed } => {
            format!("the reservation of {promise} needs {} blocks", crate::words::grouped(needed))
        }
        Verdict::Refused { best, came } => {
            let best = amount(reservation, best);
            let came = came.map_or_else(String::new, |came| {
                let came = amount(reservation, came);
                format!(", if it sends as many: {came} came, with less than one request outstanding")
            });
            format!("the reservation of {promise} is refused: the best that can be had is {best}{came}")
        }
        Verdict::GivenUp { best } => {
            let best = amount(reservation, best);
            format!(
                "the reservation of {promise} is declared unmet after {ITERATIONS_MAX} epochs without convergence, until tenants, reservations or the cache change: the best that was measured is {best}"
            )
        }
    };
    Some(words)
}

fn promised(reservation: Reservation) -> String {
    let (Reservation::Latency(value) | Reservation::Iops(value)) = reservation;
    amount(reservation, value)
}

/// Seconds or IOPS, as the reservation is of.
fn amount(reservation: Reservation, value: f64) -> String {
    match reservation {
        Reservation::Latency(_) => time(value),
        Reservation::Iops(_) => format!("{value:.0} IOPS"),
    }
}

/// In the unit that leaves at least one digit before the point, from microseconds to seconds.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}
