//! Offers as rows of text, for the terminal and for the page.

use larder_daemon::units::HumanSize;

use super::offer::Offer;
use crate::number::{compact, percent, time};

/// Headings of all columns, broken where a terminal breaks them.
pub const HEADINGS: [&str; 12] = [
    "size",
    "endurance",
    "mean\nlatency",
    "99 %\nwithin",
    "request\nhits",
    "read hits\n(blocks)",
    "backing\nIOPS",
    "backing\nbusy",
    "SSD writes\na day",
    "lives\nyears",
    "price",
    "price\nper IOPS",
];

/// Years beyond which nobody asks.
const YEARS_MAX: f64 = 100.0;

/// One offer.
pub fn row(offer: &Offer) -> [String; 12] {
    let price = |price: Option<f64>| {
        price.map_or_else(
            || "-".into(),
            |price| format!("{price:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        )
    };
    [
        HumanSize(offer.bytes).to_string(),
        offer.endurance.to_string(),
        time(offer.latency),
        time(offer.p99),
        percent(Some(offer.request_hit_ratio)),
        percent(Some(offer.read_hit_ratio)),
        compact(offer.backing_iops.round() as u64),
        percent(Some(offer.backing_busy)),
        HumanSize(offer.ssd_write_bytes_per_day.round() as u64).to_string(),
        offer
            .years
            .filter(|&years| years <= YEARS_MAX)
            .map_or_else(|| "> 100".into(), |years| format!("{years:.1}")),
        price(offer.price),
        price(offer.price_per_iops),
    ]
}
