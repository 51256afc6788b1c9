//! The enforcing part of the loop of an epoch: from where the tenants stand to where they shall stand, in safe steps. It also asks reactors what they alone know.

use larder_alloc::WritePolicy;
use larder_alloc::control::{Limit, Offers, Terms};
use larder_engine::{Sharing, Watermarks};
use larder_policy::spec::CachingSpec;

use crate::epoch::{Report, SsdSpending, Standing};
use crate::placement::Place;

/// One change of one tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The tenant may hold this many blocks.
    Quota {
        /// Index of the tenant.
        tenant: usize,
        /// Blocks.
        blocks: u32,
    },
    /// Where partitions lend.
    Bounds {
        /// Index of the tenant.
        tenant: usize,
        /// Blocks of which it lends nothing, however seldom it hits them.
        least: u32,
        /// Blocks that it may hold, however many are free.
        most: u32,
    },
    /// The tenant's writes are treated so.
    WritePolicy {
        /// Index of the tenant.
        tenant: usize,
        /// How.
        policy: WritePolicy,
    },
    /// The tenant's blocks are replaced and admitted so.
    Caching {
        /// Index of the tenant.
        tenant: usize,
        /// How.
        caching: CachingSpec,
    },
    /// The tenant's partition is filled so.
    Population {
        /// Index of the tenant.
        tenant: usize,
        /// By a mover; else by misses.
        batched: bool,
    },
}

impl Step {
    /// Index of the tenant.
    pub fn tenant(&self) -> usize {
        match *self {
            Self::Quota { tenant, .. }
            | Self::Bounds { tenant, .. }
            | Self::WritePolicy { tenant, .. }
            | Self::Caching { tenant, .. }
            | Self::Population { tenant, .. } => tenant,
        }
    }
}

/// What reactors have to do for an allocator's system, beside what it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrangement {
    /// Partitions lend each other what they do not use.
    pub lending: bool,
    /// A cleaner keeps blocks free.
    pub watermarks: Option<Watermarks>,
    /// Tenants share a partition: of so many blocks on the whole host, of which each reactor's tenants have a part for their number.
    pub sharing: Sharing,
    /// It is watched which blocks are hit.
    pub watches_hits: bool,
    /// From so many bytes on, sequential streams of reads stay out of the cache.
    pub stream_bypass: Option<u64>,
    /// Writes to the SSD have a price: tenants have doors, which remember accesses to so many blocks on the whole host.
    pub doors: Option<u32>,
}

/// Carries steps out.
pub trait Actuator: Send {
    /// Carry out one step. A step of a tenant that is gone is ignored.
    fn apply(&mut self, step: Step);

    /// The reactors work for another allocator.
    fn arrange(&mut self, arrangement: Arrangement);

    /// The movers come.
    fn move_in(&mut self);

    /// How the tenants use their partitions, in the order of their places; nothing of those whose reactor does not say.
    fn reports(&mut self) -> Vec<Option<Report>>;

    /// What tenants have written to the SSD, in the order of their places; `None` where a reactor does not say.
    fn spending(&mut self) -> Option<SsdSpending>;

    /// How far these tenants may go with what they write to the SSD; `None` for as far as they like.
    fn limit(&mut self, limits: Vec<(usize, Option<Limit>)>);

    /// True if it can be held how far all tenants go together ([`Actuator::limit_all`]): one reactor has all of them.
    fn limits_all(&self) -> bool;

    /// How far all tenants together may go, as [`SsdSpending::bytes`] counts; `None` for as far as they like.
    fn limit_all(&mut self, bytes: Option<u64>);

    /// What tenants have offered to the SSD since they have doors, in the order of their places; nothing of those that did not, or whose reactor does not say.
    fn offers(&mut self) -> Vec<Option<Box<Offers>>>;

    /// On what terms these tenants' requests enter.
    fn open(&mut self, terms: Vec<(usize, Box<Terms>)>);

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
    let caching = changes()
        .filter(|(_, (before, after))| after.mode.caching != before.mode.caching)
        .map(|(tenant, (_, after))| Step::Caching { tenant, caching: after.mode.caching });
    let policies = changes()
        .filter(|(_, (before, after))| after.mode.write != before.mode.write)
        .map(|(tenant, (_, after))| Step::WritePolicy { tenant, policy: after.mode.write });
    let grow = changes()
        .filter(|(_, (before, after))| after.quota_blocks > before.quota_blocks)
        .map(|(tenant, (_, after))| quota(tenant, after.quota_blocks));
    let population = before
        .iter()
        .zip(after)
        .enumerate()
        .filter(|(_, (before, after))| after.batched != before.batched)
        .map(|(tenant, (_, after))| Step::Population { tenant, batched: after.batched });
    shrink.chain(caching).chain(population).chain(policies).chain(grow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::{Decision, Mode};
    use proptest::prelude::*;

    fn standing((quota_blocks, read_only): (u32, bool)) -> Standing {
        // Of two, by chance.
        let caching = if quota_blocks % 2 == 0 { "lru" } else { "arc" }.parse().expect("known");
        let write = if read_only { WritePolicy::ReadOnly } else { WritePolicy::WriteThrough };
        let mode = Mode { caching, write };
        let decision = Decision { quota_blocks, mode, predicted: None, reason: String::new() };
        Standing { epoch: 0, decision, batched: quota_blocks % 3 == 0, urd_blocks: 0, trd_blocks: 0 }
    }

    fn apply(standings: &mut [Standing], step: Step) {
        match step {
            Step::Bounds { .. } => panic!("it is not of a standing"),
            Step::Quota { tenant, blocks } => standings[tenant].decision.quota_blocks = blocks,
            Step::WritePolicy { tenant, policy } => standings[tenant].decision.mode.write = policy,
            Step::Caching { tenant, caching } => standings[tenant].decision.mode.caching = caching,
            Step::Population { tenant, batched } => standings[tenant].batched = batched,
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
