//! How far what came was from what was expected.

use larder_sim::tenants::{DecisionRow, TenantsResult};

/// Mean absolute errors over the decisions that expected anything of a tenant that then did something; each counts as often as requests came under it, so that one that was
/// followed by a single request, as when others' traces end, says next to nothing.
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
            latency: mean(&told, |row| Some(row.predicted_latency? / row.achieved.latency? - 1.0)),
            request_hit_ratio: mean(&told, |row| {
                Some(row.predicted_request_hit_ratio? - row.achieved.request_hit_ratio?)
            }),
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

fn mean(rows: &[&DecisionRow], error: impl Fn(&DecisionRow) -> Option<f64>) -> Option<f64> {
    let errors = rows.iter().filter_map(|row| Some((error(row)?.abs(), row.achieved.requests as f64)));
    let (sum, requests) = errors
        .filter(|(error, _)| error.is_finite())
        .fold((0.0, 0.0), |(sum, all), (error, requests)| (sum + error * requests, all + requests));
    (requests > 0.0).then(|| sum / requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_sim::tenants::Achieved;

    fn row(predicted: Option<[f64; 3]>, latency: Option<f64>, hits: f64, written: f64) -> DecisionRow {
        DecisionRow {
            seconds: 0.0,
            tenant: 0,
            quota_blocks: 1,
            unlimited: false,
            occupied_blocks: 1,
            caching: "lru".into(),
            write_policy: "wb".into(),
            predicted_latency: predicted.map(|[latency, ..]| latency),
            predicted_request_hit_ratio: predicted.map(|[_, hits, _]| hits),
            predicted_ssd_writes_per_second: predicted.map(|[.., written]| written),
            achieved: Achieved {
                requests: 1,
                latency,
                request_hit_ratio: latency.map(|_| hits),
                iops: 1.0,
                ssd_writes_per_second: written,
            },
            reason: String::new(),
        }
    }

    #[test]
    fn errors_are_means_over_decisions_that_expected_something() {
        let decisions = vec![
            row(Some([1.0, 0.5, 90.0]), Some(2.0), 0.6, 100.0),
            row(Some([5.0, 0.5, 20.0]), Some(4.0), 0.5, 0.0),
            row(None, Some(9.0), 0.1, 50.0),
            row(Some([1.0, 1.0, 1.0]), None, 0.0, 0.0),
        ];
        let result = TenantsResult {
            allocator: "a".into(),
            cache_bytes: 1,
            block_bytes: 1,
            epoch_seconds: 1.0,
            seconds: 1.0,
            longest_pause: None,
            ssd_writes_by_day: Vec::new(),
            ssd_write_budget: None,
            total: larder_sim::tenants::TenantResult::default(),
            tenants: Vec::new(),
            decisions,
            devices: Vec::new(),
            failed_decisions: 0,
            failure: None,
            cpu_seconds: 0.0,
            control_cpu_seconds: 0.0,
        };
        let found = Accuracy::of(&result);
        let close = |found: Option<f64>, expected: f64| (found.expect("an error") - expected).abs() < 1e-12;
        assert_eq!(found.decisions, 2);
        assert!(close(found.latency, (0.5 + 0.25) / 2.0), "{found:?}");
        assert!(close(found.request_hit_ratio, 0.05), "{found:?}");
        assert!(close(found.ssd_writes, (10.0 + 20.0) / 100.0), "{found:?}");
        // Three more requests under the first decision: it counts four times.
        let mut result = result;
        result.decisions[0].achieved.requests = 4;
        let found = Accuracy::of(&result);
        assert!(close(found.latency, (0.5 * 4.0 + 0.25) / 5.0), "{found:?}");
        assert!(close(found.request_hit_ratio, 0.1 * 4.0 / 5.0), "{found:?}");
        assert_eq!(Accuracy::of(&TenantsResult { decisions: Vec::new(), ..result }), Accuracy::default());
    }
}
