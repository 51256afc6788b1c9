//! What the tests of several allocators are made of.

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
