//! Offers, and what is had without an SSD, as rows of text, for the terminal and for the page.

use larder_daemon::units::HumanSize;

use super::offer::{Offer, Without};
use crate::number::{compact, percent, time};

/// Headings of all columns, broken where a terminal breaks them. The last one is for closed loops alone.
pub const HEADINGS: [&str; 12] = [
    "size",
    "endurance",
    "mean\nlatency",
    "request\nhits",
    "backing\nIOPS",
    "backing\nbusy",
    "SSD writes\nper day",
    "lives\nyears",
    "no limit:\nlatency",
    "lives\nyears",
    "price",
    "price of\n1000 IOPS",
];

/// Years beyond which nobody asks.
const YEARS_MAX: f64 = 100.0;

/// One offer.
pub fn row(offer: &Offer) -> [String; 12] {
    [
        offer.size(),
        offer.endurance.to_string(),
        time(offer.latency),
        percent(Some(offer.request_hit_ratio)),
        rate(offer.backing_iops),
        percent(Some(offer.backing_busy)),
        HumanSize(offer.ssd_write_bytes_per_day.round() as u64).to_string(),
        years(offer.years),
        time(offer.free_latency),
        years(offer.free_years),
        offer.price.map_or_else(|| "-".into(), money),
        offer.price_per_iops.map_or_else(|| "-".into(), |price| money(price * 1000.0)),
    ]
}

/// What is had without one.
pub fn without(without: &Without) -> [String; 12] {
    let mut row = [(); 12].map(|()| String::from("-"));
    row[0] = "none".into();
    row[2] = time(without.latency);
    row[4] = rate(without.backing_iops);
    row[5] = percent(Some(without.backing_busy));
    row
}

/// All but the last cell.
pub fn but_last<T>([most @ .., _]: [T; 12]) -> [T; 11] {
    most
}

/// Years of life.
pub fn years(years: Option<f64>) -> String {
    match years {
        Some(years) if years < 0.095 => format!("{years:.3}"),
        Some(years) if years <= YEARS_MAX => format!("{years:.1}"),
        _ => "> 100".into(),
    }
}

/// Operations per second; of few of them two digits.
fn rate(per_second: f64) -> String {
    if per_second <= 0.0 || per_second >= 9.95 {
        return compact(per_second.round() as u64);
    }
    let digits = (1.0 - per_second.log10().floor()).clamp(1.0, 12.0) as usize;
    format!("{per_second:.digits$}")
}

/// An amount in three digits, or in whole units from a hundred on.
fn money(amount: f64) -> String {
    let before = if amount > 0.0 { amount.log10().floor() } else { 0.0 };
    let digits = (2.0 - before).clamp(0.0, 12.0) as usize;
    format!("{amount:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_operations_have_two_digits() {
        assert_eq!(
            [0.0, 0.0534, 0.53, 1.0, 9.94, 9.96, 10.4, 1234.5].map(rate),
            ["0", "0.053", "0.53", "1.0", "9.9", "10", "10", "1,235"]
        );
    }

    #[test]
    fn amounts_have_three_digits() {
        assert_eq!(
            [0.0, 0.001234, 0.5, 9.994, 48.0, 123.4, 12_345.0].map(money),
            ["0.00", "0.00123", "0.500", "9.99", "48.0", "123", "12345"]
        );
        assert_eq!(
            [None, Some(0.0123), Some(4.96), Some(100.5)].map(years),
            ["> 100", "0.012", "5.0", "> 100"]
        );
    }
}
