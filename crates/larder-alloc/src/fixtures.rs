//! What the tests of several allocators are made of.

use larder_locality::{ClassCounts, DistanceHistogram, EpochFindings};

use crate::{ConfiguredPolicy, Decision, Findings, Goals, Profile, Tenant};

/// A tenant with that name and those findings, without minimum, wishes or limits.
pub(crate) fn tenant<'a>(name: &'a str, findings: Option<&'a Findings>) -> Tenant<'a> {
    Tenant {
        name,
        quota_blocks: 0,
        mode: Profile::default().mode,
        findings,
        configured_policy: ConfiguredPolicy::Auto,
        configured_quota_blocks: None,
        min_blocks: 0,
        goals: Goals::default(),
    }
}

/// The quotas alone.
pub(crate) fn quotas(decisions: &[Decision]) -> Vec<u32> {
    decisions.iter().map(|decision| decision.quota_blocks).collect()
}

/// An epoch of `accesses`, of which those with a useful distance are reads of known blocks, and the others overwrites.
pub(crate) fn useful_epoch(accesses: u64, useful: DistanceHistogram) -> Findings {
    let classes =
        ClassCounts { rar: useful.total(), waw: accesses - useful.total(), ..ClassCounts::default() };
    EpochFindings {
        history_blocks: 65_536,
        requests: accesses,
        accesses,
        classes,
        urd_max: useful.max(),
        useful,
        ..EpochFindings::default()
    }
    .into()
}
