//! Reservations: what a tenant was promised restricts what it may be given.
//!
//! They are granted in the order of the tenants, as far as those granted before, and everybody's least, leave room. One that
//! cannot be met is refused, with the best that could be had; the tenant then takes part as one without. So is one of requests that the tenant does not ask for ([`super::demanded`]), and one that does not come ([`super::unmet`]).

use super::memory::Known;
use super::options::{best, options};
use super::solver::least_writes;
use crate::bounds::Bounds;
use crate::choices::outstanding;
use crate::optimal::Room;
use crate::words::grouped;
use crate::{Candidates, Choice, Constraints, Reservation, Tenant};

/// What a tenant can be given.
struct Offer {
    candidates: Candidates,
    /// The latency that is demanded.
    limit: f64,
    /// What the operator is told of the reservation.
    words: Option<String>,
}

/// What can be given to all tenants.
pub(super) struct Offers {
    pub(super) lists: Vec<Candidates>,
    /// By tenant, the latency that is demanded; infinite where none is.
    pub(super) limits: Vec<f64>,
    /// By tenant, what the operator is told of its reservation.
    pub(super) words: Vec<Option<String>>,
}

/// What can be given to all tenants, thinned out where there are `many` choices.
pub(super) fn offers(
    tenants: &[Tenant<'_>],
    known: &[&Known],
    ranges: &[Bounds],
    constraints: &Constraints,
    room: Room,
    many: bool,
) -> Offers {
    let all = tenants.iter().zip(known).zip(ranges);
    let mut offers: Vec<Offer> =
        all.clone().map(|((tenant, known), &range)| free(tenant, known, range, constraints, many)).collect();
    for (at, ((tenant, known), &range)) in all.enumerate() {
        let Some(reservation) = tenant.goals.reservation else { continue };
        let range = Bounds { most: range.most.min(left_for(at, &offers, room)).max(range.least), ..range };
        let wish = Wish { tenant, known, range, constraints, many, reservation };
        wish.ask(at, &mut offers, room);
    }
    let limits = offers.iter().map(|offer| offer.limit).collect();
    let (lists, words) = offers.into_iter().map(|offer| (offer.candidates, offer.words)).unzip();
    Offers { lists, limits, words }
}

/// What the tenant can be given if nothing is promised.
fn free(tenant: &Tenant<'_>, known: &Known, range: Bounds, constraints: &Constraints, many: bool) -> Offer {
    let unknown = || Candidates { choices: vec![Choice::unknown(range.least)] };
    let candidates = options(tenant, known, range, constraints, f64::INFINITY, many).unwrap_or_else(unknown);
    Offer { candidates, limit: f64::INFINITY, words: None }
}

/// Blocks that the others leave: they get their least, or what they were promised.
fn left_for(at: usize, offers: &[Offer], room: Room) -> u64 {
    let others = offers.iter().enumerate().filter(|&(other, _)| other != at);
    room.blocks.saturating_sub(others.map(|(_, offer)| offer.candidates.choices[0].blocks).sum())
}

/// A tenant that has a reservation, and what it could get.
struct Wish<'a> {
    tenant: &'a Tenant<'a>,
    known: &'a Known,
    range: Bounds,
    constraints: &'a Constraints,
    many: bool,
    reservation: Reservation,
}

impl Wish<'_> {
    /// Put the promised offer in the place of the free one, if all fit together then; tell the operator.
    fn ask(&self, at: usize, offers: &mut [Offer], room: Room) {
        let promise = words(self.reservation);
        let Some((best, blocks)) = best(self.tenant, self.known, self.range) else {
            offers[at].words = Some(format!("{promise} cannot be judged yet"));
            return;
        };
        let Some(findings) = self.tenant.found() else {
            offers[at].words = Some(format!("{promise} rests while it is idle"));
            return;
        };
        if let Some(rate) = self.known.demanded.asks_for() {
            let again = in_epochs(self.known.demanded.expected_in_epochs());
            let words = format!(
                "{promise} refused: it asks for no more than {rate:.0} IOPS, with the latency that would bring them (tried again {again}, or once it asks for more)"
            );
            offers[at].words = Some(words);
            return;
        }
        if let Some(came) = self.known.unmet.came() {
            let again = in_epochs(self.known.unmet.tried_in_epochs());
            let came = match self.reservation {
                Reservation::Latency(_) => seconds(came.latency),
                Reservation::Iops(_) => format!("{:.0} IOPS", came.rate),
            };
            let words = format!(
                "{promise} refused: it was granted and did not come, the best that came was {came} (tried again {again})"
            );
            offers[at].words = Some(words);
            return;
        }
        let (limit, best) = match self.reservation {
            Reservation::Latency(most) => (most, seconds(best)),
            Reservation::Iops(least) => {
                (outstanding(findings) / least, format!("{:.0} IOPS", outstanding(findings) / best))
            }
        };
        let beside = if offers.iter().any(|offer| offer.limit.is_finite()) {
            "beside what is promised to others "
        } else {
            ""
        };
        let refused = format!(
            "{promise} refused: {beside}the best that can be had is {best} with {} blocks",
            grouped(blocks)
        );
        let Some(candidates) =
            options(self.tenant, self.known, self.range, self.constraints, limit, self.many)
        else {
            offers[at].words = Some(refused);
            return;
        };
        let granted = Offer { candidates, limit, words: Some(format!("{promise} granted")) };
        let free = std::mem::replace(&mut offers[at], granted);
        if !fit(offers, room) {
            let why = format!("{promise} refused: it cannot be had within the budget of SSD writes");
            offers[at] = Offer { words: Some(why), ..free };
        }
    }
}

/// Whether some plan keeps to the room, as far as the smallest choices and the most thrifty plan tell.
fn fit(offers: &[Offer], room: Room) -> bool {
    let least: u64 = offers.iter().map(|offer| offer.candidates.choices[0].blocks).sum();
    if least > room.blocks {
        return false;
    }
    let Some(most) = room.writes else { return true };
    let lists: Vec<Candidates> = offers.iter().map(|offer| offer.candidates.clone()).collect();
    let thrifty = least_writes(&lists, room.blocks);
    thrifty.is_some_and(|picks| {
        let chosen = lists.iter().zip(picks).map(|(list, pick)| list.choices[pick as usize].writes);
        chosen.sum::<f64>() <= most
    })
}

fn words(reservation: Reservation) -> String {
    match reservation {
        Reservation::Latency(most) => format!("the reserved latency of {}", seconds(most)),
        Reservation::Iops(least) => format!("the reserved {least:.0} IOPS"),
    }
}

fn in_epochs(epochs: f64) -> String {
    if epochs > 1.0 { format!("in {epochs} epochs") } else { "in an epoch".into() }
}

/// A time as people read it.
pub(super) fn seconds(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.0} µs", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}
