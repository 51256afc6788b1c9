//! `larder reproduce centaur`: wastage of caches that tenants share, convex hulls against full curves, shares, reservations.
//!
//! After sections II-B, IV and VI-C of Koller, Mashtizadeh, Rangaswami: "Centaur: Host-Side SSD Caching for Storage Performance Control", ICAC 2015 (figures 2, 6, 11
//! and 12).

mod hull;
mod late;
mod reservations;
mod shares;
mod wastage;
mod window;

use serde_json::json;

use super::bench::Bench;
use super::common::Common;
use super::guests::{EIGHT, told};
use super::report::Report;
use crate::problem::Problem;

/// Run all four, and hold the paper's figures against them.
pub fn find(common: &Common) -> Result<Report, Problem> {
    let guests = EIGHT.map(|known| known.guest(common.folder.as_deref()));
    let mut bench = Bench::new(common);
    let traces = guests.iter().map(|guest| bench.trace(&guest.trace)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = guests.iter().map(|guest| guest.name).collect();
    let wastage = wastage::find(common, &traces)?;
    let hull = hull::find(&bench, common, &names, &traces)?;
    let shares = shares::find(&mut bench, common)?;
    let kept = reservations::find(&mut bench, common)?;
    let notes = told(common.folder.as_deref(), &guests)
        .into_iter()
        .chain([NOTE.to_owned()])
        .chain(common.cut_short());
    Ok(Report {
        title: "Koller, Mashtizadeh, Rangaswami: \"Centaur: Host-Side SSD Caching for Storage Performance Control\", ICAC 2015".into(),
        notes: notes.collect(),
        sheets: vec![
            wastage::sheet(&wastage),
            hull::sheet(&hull),
            shares::sheet(&shares),
            reservations::sheet(&kept),
        ],
        claims: [
            wastage::claims(&wastage),
            vec![hull::claim(&hull), shares::claim(&shares)],
            reservations::claims(&kept),
        ]
        .concat(),
        figures: json!({
            "wastage": wastage.iter().map(wastage::Row::json).collect::<Vec<_>>(),
            "convex_hull": hull.iter().map(hull::Row::json).collect::<Vec<_>>(),
            "shares": shares.iter().map(shares::Row::json).collect::<Vec<_>>(),
            "reservations": kept.iter().map(reservations::Row::json).collect::<Vec<_>>(),
        }),
        ..Report::default()
    })
}

const NOTE: &str = "Figures 11 and 12 are run on made-up requests of the published kind: places at random in a file, so many outstanding at a time. \
                    SCALED DOWN: figure 12's files and cache to an eighth, so that minutes are enough to fill them. Shares and reservations hold from the \
                    start of a run, where the paper changes them on the way. NVMe in front of one SAN.";
