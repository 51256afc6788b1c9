//! One SSD that might be bought, or none, and what a simulation says it would do.

use larder_daemon::units::HumanSize;
use larder_sim::tenants::{Pause, TenantsResult};
use serde::Serialize;

use super::endurance::Endurance;
use crate::simulate::tenants::{busy, bytes};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Blocks that a run may write beyond its budget: requests that began within it end beyond it.
pub const BEYOND: u32 = 16;

/// An SSD and what it would bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// Its size.
    #[serde(rename = "size_bytes")]
    pub bytes: u64,
    /// The size as it was asked for, where that was in decimal units.
    #[serde(skip)]
    pub asked: Option<String>,
    /// Its endurance.
    #[serde(serialize_with = "as_text")]
    pub endurance: Endurance,
    /// Bytes that it may be written until it is worn out.
    pub rated_bytes: f64,
    /// Its price, or its size in GiB where there are no prices.
    #[serde(skip)]
    pub cost: f64,
    /// Its price, where there are prices.
    pub price: Option<f64>,
    /// Mean seconds of a request.
    #[serde(rename = "mean_latency_seconds")]
    pub latency: f64,
    /// 99 of 100 requests take no longer, in seconds.
    #[serde(rename = "p99_latency_seconds")]
    pub p99: f64,
    /// Requests per second.
    pub iops: f64,
    /// Requests that the SSD serves alone, 0 to 1.
    pub request_hit_ratio: f64,
    /// Blocks read that are hits, 0 to 1.
    pub read_hit_ratio: f64,
    /// Operations per second of the backing.
    pub backing_iops: f64,
    /// The share of the backing's capacity that is used, 0 to 1; of the busiest, where there are several.
    pub backing_busy: f64,
    /// Bytes written to the SSD in a day.
    pub ssd_write_bytes_per_day: f64,
    /// What it was let be written in a day; none where it needs no budget, and had none.
    #[serde(rename = "budget_bytes_per_day")]
    pub budget_per_day: Option<f64>,
    /// Years until it is worn out; none where nothing is written.
    pub years: Option<f64>,
    /// Seconds of the run, from which a day is reckoned.
    #[serde(rename = "run_seconds")]
    pub seconds: f64,
    /// Bytes in a day that are no more than what requests under way at the end of the budget may write.
    #[serde(skip)]
    pub beyond_per_day: f64,
    /// Price of one request per second, where there are prices and a closed loop.
    pub price_per_iops: Option<f64>,
    /// Mean seconds of a request if it may be written as much as brings anything.
    #[serde(rename = "unlimited_mean_latency_seconds")]
    pub free_latency: f64,
    /// Bytes written to it in a day then.
    #[serde(rename = "unlimited_ssd_write_bytes_per_day")]
    pub free_writes_per_day: f64,
    /// Years until it is worn out then.
    #[serde(rename = "unlimited_years")]
    pub free_years: Option<f64>,
}

/// The same tenants without an SSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Without {
    /// Mean seconds of a request.
    #[serde(rename = "mean_latency_seconds")]
    pub latency: f64,
    /// 99 of 100 requests take no longer, in seconds.
    #[serde(rename = "p99_latency_seconds")]
    pub p99: f64,
    /// Requests per second.
    pub iops: f64,
    /// Operations per second of the backing.
    pub backing_iops: f64,
    /// The share of the backing's capacity that is used, 0 to 1; of the busiest, where there are several.
    pub backing_busy: f64,
    /// The longest time without a request.
    pub longest_pause: Option<Pause>,
}

impl Without {
    /// From a simulation in which the SSD holds nothing.
    pub fn new(result: &TenantsResult) -> Self {
        Self {
            latency: result.total.mean_latency,
            p99: result.total.p99_latency,
            iops: result.total.iops,
            backing_iops: backing_iops(result),
            backing_busy: busy(result, false).unwrap_or(0.0),
            longest_pause: result.longest_pause,
        }
    }
}

fn backing_iops(result: &TenantsResult) -> f64 {
    let backings = result.devices.iter().filter(|device| device.name != "ssd");
    backings.map(|device| device.operations as f64 / device.seconds.max(f64::MIN_POSITIVE)).sum()
}

fn as_text<S: serde::Serializer>(endurance: &Endurance, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(endurance)
}

impl Offer {
    /// From a simulation of it. `warranty_years` are those of drive writes per day, `price` is that of a GiB.
    pub fn new(
        result: &TenantsResult,
        endurance: Endurance,
        warranty_years: f64,
        price: Option<f64>,
    ) -> Self {
        let (total, seconds) = (&result.total, result.seconds.max(f64::MIN_POSITIVE));
        let size = result.cache_bytes as f64 / f64::from(1 << 30);
        let price = price.map(|price| price * size);
        let written = bytes(result, total.ssd_writes.total) as f64 / seconds * DAY;
        Self {
            bytes: result.cache_bytes,
            asked: None,
            endurance,
            rated_bytes: endurance.rated_bytes(result.cache_bytes, warranty_years),
            cost: price.unwrap_or(size),
            price,
            latency: total.mean_latency,
            p99: total.p99_latency,
            iops: total.iops,
            request_hit_ratio: total.request_hit_ratio,
            read_hit_ratio: total.read_hit_ratio,
            backing_iops: backing_iops(result),
            backing_busy: busy(result, false).unwrap_or(0.0),
            ssd_write_bytes_per_day: written,
            budget_per_day: None,
            years: endurance.years(result.cache_bytes, warranty_years, written),
            seconds: result.seconds,
            beyond_per_day: f64::from(BEYOND) * f64::from(result.block_bytes) / seconds * DAY,
            price_per_iops: price.filter(|_| total.iops > 0.0).map(|price| price / total.iops),
            free_latency: total.mean_latency,
            free_writes_per_day: written,
            free_years: endurance.years(result.cache_bytes, warranty_years, written),
        }
    }

    /// The same, beside what another says that it would be if it were written without a limit.
    pub fn beside(self, other: &Self) -> Self {
        Self {
            free_latency: other.free_latency,
            free_writes_per_day: other.free_writes_per_day,
            free_years: other.free_years,
            ..self
        }
    }

    /// How many times so many bytes a day it is written, but for requests under way at the end of a budget.
    pub fn over(&self, bytes_per_day: f64) -> f64 {
        (self.ssd_write_bytes_per_day - self.beyond_per_day).max(0.0) / bytes_per_day
    }

    /// What to call its size.
    pub fn size(&self) -> String {
        self.asked.clone().unwrap_or_else(|| HumanSize(self.bytes).to_string())
    }

    /// What to call it in a sentence.
    pub fn name(&self) -> String {
        format!("{} at {}", self.size(), self.endurance)
    }

    /// One of which only the latency is known.
    #[cfg(test)]
    pub fn bare(bytes: u64, endurance: Endurance, latency: f64) -> Self {
        Self {
            bytes,
            asked: None,
            endurance,
            rated_bytes: endurance.rated_bytes(bytes, 5.0),
            cost: bytes as f64 / f64::from(1 << 30),
            price: None,
            latency,
            p99: latency,
            iops: 1.0,
            request_hit_ratio: 0.0,
            read_hit_ratio: 0.0,
            backing_iops: 0.0,
            backing_busy: 0.0,
            ssd_write_bytes_per_day: 0.0,
            budget_per_day: None,
            years: None,
            seconds: DAY,
            beyond_per_day: 0.0,
            price_per_iops: None,
            free_latency: latency,
            free_writes_per_day: 0.0,
            free_years: None,
        }
    }
}
