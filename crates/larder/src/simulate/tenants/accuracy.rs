//! How far what came was from what was expected.

use larder_sim::tenants::{DecisionRow, TenantsResult};

/// Mean absolute errors over the decisions that expected anything of a tenant that then did something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// Such decisions.
    pub decisions: usize,
    /// Of the mean latency, as a share of what came.
    pub latency: Option<f64>,
    /// Of the hit ratio by requests: a difference of ratios.
    pub request_hit_ratio: Option<f64>,
    /// Of the SSD writes: all differences, as a share of all that was written.
    pub ssd_writes: Option<f64>,
}

impl Accuracy {
    /// Over a run.
    pub fn of(result: &TenantsResult) -> Self {
        let told: Vec<_> = result
            .decisions
            .iter()
            .filter(|row| row.predicted_latency.is_some() && row.achieved.latency.is_some())
            .collect();
        Self {
            decisions: told.len(),
            latency: mean(
                told.iter()
                    .filter_map(|row| Some((row.predicted_latency? / row.achieved.latency? - 1.0).abs())),
            ),
            request_hit_ratio: mean(told.iter().filter_map(|row| {
                Some((row.predicted_request_hit_ratio? - row.achieved.request_hit_ratio?).abs())
            })),
            ssd_writes: ssd_writes(&told),
        }
    }
}

/// A tenant that writes nearly nothing must not count as much as one that writes most: all are put together.
fn ssd_writes(rows: &[&DecisionRow]) -> Option<f64> {
    let pairs = rows
        .iter()
        .filter_map(|row| Some((row.predicted_ssd_writes_per_second?, row.achieved.ssd_writes_per_second)));
    let (apart, all) = pairs.fold((0.0, 0.0), |(apart, all), (expected, came): (f64, f64)| {
        (apart + (expected - came).abs(), all + came)
    });
    (all > 0.0).then_some(apart / all)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .filter(|value| value.is_finite())
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}
