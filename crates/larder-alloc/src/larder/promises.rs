//! Reservations: what a tenant was promised restricts what it may be given.
//!
//! They are granted in the order of the tenants, as far as those granted before, and everybody's least, leave room. One that
//! cannot be met is refused, with the best that could be had; the tenant then takes part as one without.

use super::memory::Known;
use super::options::{best, options};
use super::solver::least_writes;
use crate::bounds::Bounds;
use crate::choices::outstanding;
use crate::optimal::Room;
use crate::words::grouped;
use crate::{Candidates, Choice, Constraints, Findings, Reservation, Tenant};

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
    let promised: Vec<Option<Offer>> = all
        .zip(&mut offers)
        .map(|(((tenant, known), &range), free)| promised(tenant, known, range, constraints, many, free))
        .collect();
    grant(tenants, &mut offers, promised, room);
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

/// What the tenant can be given if its reservation is granted. None where it has none, or where it alone cannot have it: then the
/// free offer says so.
fn promised(
    tenant: &Tenant<'_>,
    known: &Known,
    range: Bounds,
    constraints: &Constraints,
    many: bool,
    free: &mut Offer,
) -> Option<Offer> {
    let reservation = tenant.goals.reservation?;
    let Some((best, blocks)) = best(tenant, known, range) else {
        free.words = Some(format!("{} cannot be judged yet", words(reservation)));
        return None;
    };
    let Some(findings) = tenant.found() else {
        free.words = Some(format!("{} rests while it is idle", words(reservation)));
        return None;
    };
    let limit = match reservation {
        Reservation::Latency(seconds) => seconds,
        Reservation::Iops(iops) => outstanding(findings) / iops,
    };
    let Some(candidates) = options(tenant, known, range, constraints, limit, many) else {
        let best = match reservation {
            Reservation::Latency(_) => seconds(best),
            Reservation::Iops(_) => format!("{:.0} IOPS", outstanding(findings) / best),
        };
        let (reservation, blocks) = (words(reservation), grouped(blocks));
        free.words =
            Some(format!("{reservation} refused: the best that can be had is {best} with {blocks} blocks"));
        return None;
    };
    Some(Offer { candidates, limit, words: Some(format!("{} granted", words(reservation))) })
}

/// Put the promised offers in the place of the free ones, as far as they fit together.
fn grant(tenants: &[Tenant<'_>], offers: &mut [Offer], promised: Vec<Option<Offer>>, room: Room) {
    for ((at, tenant), offer) in tenants.iter().enumerate().zip(promised) {
        let Some(offer) = offer else { continue };
        let free = std::mem::replace(&mut offers[at], offer);
        if !fit(offers, room) {
            let refused = tenant.goals.reservation.map_or(String::new(), words);
            let wanted = grouped(offers[at].candidates.choices[0].blocks);
            let why = format!(
                "{refused} refused: beside what is promised to others the {wanted} blocks that it needs cannot be had"
            );
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

/// A time as people read it.
pub(super) fn seconds(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.0} µs", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}
