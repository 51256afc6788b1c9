//! The enforcing part of the loop of an epoch: from where the tenants stand to where they shall stand, in safe steps.

use larder_alloc::WritePolicy;

use crate::epoch::Standing;
use crate::placement::Place;

/// One change of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The tenant may hold this many blocks.
    Quota {
        /// Index of the tenant.
        tenant: usize,
        /// Blocks.
        blocks: u32,
    },
    /// The tenant's writes are treated so.
    WritePolicy {
        /// Index of the tenant.
        tenant: usize,
        /// How.
        policy: WritePolicy,
    },
}

/// Carries steps out.
pub trait Actuator: Send {
    /// Carry out one step. A step of a tenant that is gone is ignored.
    fn apply(&mut self, step: Step);

    /// Tenants have come, or gone: from now on those of the steps are these, by their places.
    fn seat(&mut self, places: &[Place]);
}

/// The steps from one standing of all tenants to the next: who shrinks first, so that the quotas in sum never exceed the
/// larger of before and after; who grows last. What does not change takes no step.
pub fn steps(before: &[Standing], after: &[Standing]) -> Vec<Step> {
    let changes = || before.iter().zip(after).map(|(b, a)| (&b.decision, &a.decision)).enumerate();
    let quota = |tenant, blocks| Step::Quota { tenant, blocks };
    let shrink = changes()
        .filter(|(_, (before, after))| after.quota_blocks < before.quota_blocks)
        .map(|(tenant, (_, after))| quota(tenant, after.quota_blocks));
    let policies = changes()
        .filter(|(_, (before, after))| after.mode.write != before.mode.write)
        .map(|(tenant, (_, after))| Step::WritePolicy { tenant, policy: after.mode.write });
    let grow = changes()
        .filter(|(_, (before, after))| after.quota_blocks > before.quota_blocks)
        .map(|(tenant, (_, after))| quota(tenant, after.quota_blocks));
    shrink.chain(policies).chain(grow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::{Decision, Mode};
    use larder_policy::spec::CachingSpec;
    use proptest::prelude::*;

    fn standing((quota_blocks, read_only): (u32, bool)) -> Standing {
        let write = if read_only { WritePolicy::ReadOnly } else { WritePolicy::WriteThrough };
        let mode = Mode { caching: CachingSpec::default(), write };
        let decision = Decision { quota_blocks, mode, predicted: None, reason: String::new() };
        Standing { epoch: 0, decision, urd_blocks: 0, trd_blocks: 0 }
    }

    fn apply(standings: &mut [Standing], step: Step) {
        match step {
            Step::Quota { tenant, blocks } => standings[tenant].decision.quota_blocks = blocks,
            Step::WritePolicy { tenant, policy } => standings[tenant].decision.mode.write = policy,
        }
    }

    fn sum(standings: &[Standing]) -> u64 {
        standings.iter().map(|standing| u64::from(standing.decision.quota_blocks)).sum()
    }

    proptest! {
        #[test]
        fn steps_lead_there_without_exceeding(
            pairs in prop::collection::vec(((0_u32..100, any::<bool>()), (0_u32..100, any::<bool>())), 0..8)
        ) {
            let mut now: Vec<_> = pairs.iter().map(|pair| standing(pair.0)).collect();
            let after: Vec<_> = pairs.iter().map(|pair| standing(pair.1)).collect();
            let limit = sum(&now).max(sum(&after));
            for step in steps(&now.clone(), &after) {
                let unchanged = now.clone();
                apply(&mut now, step);
                prop_assert!(now != unchanged, "a step that changes nothing: {:?}", step);
                prop_assert!(sum(&now) <= limit);
            }
            prop_assert_eq!(now, after);
        }
    }
}
