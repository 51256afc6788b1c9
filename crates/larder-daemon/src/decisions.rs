//! What was decided about each tenant lately: by what, what was expected of it, and what came.

use std::collections::{BTreeMap, VecDeque};

use larder_alloc::{Decision, Findings, Latencies, Measured, Prediction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::epoch::Report;

/// Decisions of each tenant that are kept.
pub const KEPT: usize = 32;

/// A prediction is taken for right where what came differs by no more than this part of it.
pub const AGREES: f64 = 0.10;

/// A decision about a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The tenant.
    pub tenant: String,
    /// When, in seconds since 1970.
    pub unix_seconds: f64,
    /// The epoch at whose end, or in which.
    pub epoch: u64,
    /// By whom.
    pub allocator: String,
    /// By what; none where the tenant did nothing.
    pub found: Option<Found>,
    /// What.
    pub decision: Decision,
    /// What came of it until the next decision; none before that.
    pub achieved: Option<Achieved>,
    /// Before the next decision its quota or mode became another, since others came or went, or something else was wanted: nothing is held against what was predicted.
    pub overtaken: bool,
}

/// What was found about a tenant, in short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Found {
    /// Seconds in which it was found; where the method has a memory, with the part that counts of what was before.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// The size that its useful reuse distance asks for, in blocks.
    pub urd_blocks: u64,
    /// The size that its reuse distance asks for, in blocks.
    pub trd_blocks: u64,
    /// Seconds of a read that the SSD serves alone.
    pub read_hit_seconds: f64,
    /// Seconds of a read that needs the backing.
    pub read_miss_seconds: f64,
    /// Seconds of a write that the SSD takes alone.
    pub cached_write_seconds: f64,
    /// Seconds of a write that goes to the backing.
    pub backing_write_seconds: f64,
}

impl Found {
    /// Of all that was found.
    pub fn of(findings: &Findings) -> Self {
        let Latencies { read_hit, read_miss, cached_write, backing_write, .. } = findings.latencies;
        Self {
            seconds: findings.seconds,
            requests_per_second: findings.epoch.requests as f64 / findings.seconds.max(f64::MIN_POSITIVE),
            urd_blocks: findings.epoch.urd_blocks(),
            trd_blocks: findings.epoch.trd_blocks(),
            read_hit_seconds: read_hit,
            read_miss_seconds: read_miss,
            cached_write_seconds: cached_write,
            backing_write_seconds: backing_write,
        }
    }
}

/// What came of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Achieved {
    /// Until when, in seconds since 1970.
    pub until_unix_seconds: f64,
    /// Requests.
    pub requests: u64,
    /// Mean seconds of a request; none without requests.
    pub latency_seconds: Option<f64>,
    /// The share of the requests that the SSD served alone, 0 to 1; none without requests.
    pub request_hit_ratio: Option<f64>,
    /// Blocks written to the SSD.
    pub ssd_blocks_written: u64,
    /// Blocks that the tenant held at the end.
    pub occupied_blocks: u32,
}

impl Achieved {
    /// Of what was measured since the decision.
    pub fn of(measured: &Measured, report: &Report, until_unix_seconds: f64) -> Self {
        Self {
            until_unix_seconds,
            requests: measured.requests(),
            latency_seconds: measured.mean_latency(),
            request_hit_ratio: measured.request_hit_ratio(),
            ssd_blocks_written: measured.ssd_blocks_written,
            occupied_blocks: report.usage.resident_blocks,
        }
    }
}

impl Record {
    /// How much longer a request took than was predicted, as a part of that: 0.1 for a tenth.
    pub fn latency_error(&self) -> Option<f64> {
        let (predicted, came) = (self.held()?.latency, self.achieved?.latency_seconds?);
        (predicted > 0.0).then(|| came / predicted - 1.0)
    }

    /// How many more requests hit than was predicted, as a difference of ratios: 0.05 for five points.
    pub fn hit_ratio_error(&self) -> Option<f64> {
        Some(self.achieved?.request_hit_ratio? - self.held()?.request_hit_ratio)
    }

    /// What was predicted, where what came can be held against it.
    fn held(&self) -> Option<Prediction> {
        self.decision.predicted.filter(|_| !self.overtaken)
    }

    /// The prediction was right, as far as it can be told.
    pub fn agrees(&self) -> Option<bool> {
        self.latency_error().map(|error| error.abs() <= AGREES)
    }
}

/// The last decisions about a tenant, as they are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldDecisions {
    /// The tenant.
    pub tenant: String,
    /// The oldest first.
    pub decisions: Vec<ToldDecision>,
}

/// A decision, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldDecision {
    /// When, in seconds since 1970.
    pub unix_seconds: f64,
    /// The epoch at whose end, or in which.
    pub epoch: u64,
    /// By whom.
    pub allocator: String,
    /// By what; `null` where the tenant did nothing.
    pub found: Option<Found>,
    /// Blocks that it may hold.
    pub quota_blocks: u32,
    /// What its writes do.
    pub write_policy: String,
    /// Replacement and admission.
    pub caching: String,
    /// What was expected: mean seconds of a request; `null` where the allocator expects nothing.
    pub predicted_latency_seconds: Option<f64>,
    /// The share of requests (0 to 1) that the SSD serves alone; likewise.
    pub predicted_request_hit_ratio: Option<f64>,
    /// Blocks written to the SSD per second; likewise.
    pub predicted_ssd_blocks_per_second: Option<f64>,
    /// What came; `null` before the next decision.
    pub achieved: Option<Achieved>,
    /// How much longer a request took than was expected, as a part of that; `null` also where it was `overtaken`.
    pub latency_error: Option<f64>,
    /// How many more requests hit than was expected, as a difference of ratios; likewise.
    pub hit_ratio_error: Option<f64>,
    /// The tenant's quota or mode became another before the next decision: others came or went, or something else was wanted.
    #[serde(default)]
    pub overtaken: bool,
    /// Why, in a sentence.
    pub reason: String,
}

impl ToldDecisions {
    /// Those of a tenant.
    pub fn of(tenant: &str, records: &[Record]) -> Self {
        let told = |record: &Record| {
            let (decision, predicted) = (&record.decision, record.decision.predicted);
            ToldDecision {
                unix_seconds: record.unix_seconds,
                epoch: record.epoch,
                allocator: record.allocator.clone(),
                found: record.found,
                quota_blocks: decision.quota_blocks,
                write_policy: decision.mode.write.as_str().into(),
                caching: decision.mode.caching.to_string(),
                predicted_latency_seconds: predicted.map(|it| it.latency),
                predicted_request_hit_ratio: predicted.map(|it| it.request_hit_ratio),
                predicted_ssd_blocks_per_second: predicted.map(|it| it.ssd_writes_per_second),
                achieved: record.achieved,
                latency_error: record.latency_error(),
                hit_ratio_error: record.hit_ratio_error(),
                overtaken: record.overtaken,
                reason: decision.reason.clone(),
            }
        };
        Self { tenant: tenant.into(), decisions: records.iter().map(told).collect() }
    }
}

/// The last decisions of all tenants, by their names.
#[derive(Clone, Debug, Default)]
pub struct Decisions(BTreeMap<String, VecDeque<Record>>);

impl Decisions {
    /// Another decision.
    pub fn record(&mut self, record: Record) {
        let known = self.0.entry(record.tenant.clone()).or_default();
        if known.len() == KEPT {
            known.pop_front();
        }
        known.push_back(record);
    }

    /// What came of a tenant's last decision.
    pub fn achieved(&mut self, tenant: &str, achieved: &Achieved) {
        if let Some(last) = self.0.get_mut(tenant).and_then(VecDeque::back_mut) {
            last.achieved = Some(*achieved);
        }
    }

    /// A tenant does not have any more what was decided last.
    pub fn overtaken(&mut self, tenant: &str) {
        if let Some(last) = self.0.get_mut(tenant).and_then(VecDeque::back_mut) {
            last.overtaken = true;
        }
    }

    /// A tenant is gone.
    pub fn forget(&mut self, tenant: &str) {
        self.0.remove(tenant);
    }

    /// The decisions about a tenant, the oldest first.
    pub fn of(&self, tenant: &str) -> impl DoubleEndedIterator<Item = &Record> {
        self.0.get(tenant).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::{Mode, Timed, WritePolicy};
    use larder_policy::spec::CachingSpec;

    fn record(epoch: u64, predicted: Option<Prediction>) -> Record {
        let mode = Mode { caching: CachingSpec::default(), write: WritePolicy::WriteThrough };
        Record {
            tenant: "a".into(),
            unix_seconds: 0.0,
            epoch,
            allocator: "larder".into(),
            found: None,
            decision: Decision { quota_blocks: 1, mode, predicted, reason: String::new() },
            achieved: None,
            overtaken: false,
        }
    }

    #[test]
    fn the_last_are_kept_with_what_came_of_them() {
        let mut decisions = Decisions::default();
        (0..40).for_each(|epoch| decisions.record(record(epoch, None)));
        let epochs: Vec<u64> = decisions.of("a").map(|record| record.epoch).collect();
        assert_eq!(epochs, (8..40).collect::<Vec<_>>());
        let report = Report::default();
        decisions.achieved("a", &Achieved::of(&Measured::default(), &report, 1.0));
        let told: Vec<bool> = decisions.of("a").rev().take(2).map(|it| it.achieved.is_some()).collect();
        assert_eq!(told, [true, false]);
        decisions.forget("a");
        assert_eq!(decisions.of("a").count(), 0);
    }

    #[test]
    fn what_came_is_held_against_what_was_predicted() {
        let predicted = Prediction { latency: 1e-3, request_hit_ratio: 0.5, ssd_writes_per_second: 0.0 };
        let mut told = record(1, Some(predicted));
        assert_eq!((told.latency_error(), told.agrees()), (None, None));
        let timed = |count, seconds| Timed { count, seconds };
        let measured =
            Measured { read_hits: timed(6, 0.0006), read_misses: timed(4, 0.0114), ..Measured::default() };
        told.achieved = Some(Achieved::of(&measured, &Report::default(), 9.0));
        let (latency, hits) = (told.latency_error().expect("told"), told.hit_ratio_error().expect("told"));
        assert!((latency - 0.2).abs() < 1e-9 && (hits - 0.1).abs() < 1e-9, "{latency} {hits}");
        assert_eq!(told.agrees(), Some(false));
        told.overtaken = true;
        assert_eq!((told.latency_error(), told.hit_ratio_error(), told.agrees()), (None, None, None));
    }
}
