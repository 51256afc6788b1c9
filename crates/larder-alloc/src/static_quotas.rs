//! `static`: every tenant gets what the operator configured.

use crate::shares::equal_parts;
use crate::words::grouped;
use crate::{AllocError, Allocator, Constraints, Decision, Mode, Profile, Tenant, write_policy};

/// Quotas as configured; tenants without one share the rest equally, to the last block.
///
/// Minimum sizes are not looked at: the operator's quotas are taken as they are. Where every tenant has a quota, what
/// they leave stays free, and so does what an equal share is above a tenant's maximum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Static;

impl Static {
    /// Its name.
    pub const NAME: &str = "static";
}

impl Allocator for Static {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    fn profile(&self) -> Profile {
        Profile { fixed_quotas: true, ..Profile::default() }
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let configured = tenants.iter().filter_map(|tenant| tenant.configured_quota_blocks);
        let wanted_blocks: u64 = configured.clone().map(u64::from).sum();
        let cache_blocks = constraints.cache_blocks;
        let Some(rest) = u64::from(cache_blocks).checked_sub(wanted_blocks) else {
            return Err(AllocError::QuotasExceedCache { wanted_blocks, cache_blocks });
        };
        let sharing = tenants.len() - configured.count();
        let mut parts = equal_parts(rest, sharing);
        let decide = |tenant| decide(tenant, constraints, &mut parts, rest, sharing);
        Ok(tenants.iter().map(decide).collect())
    }
}

fn decide(
    tenant: &Tenant<'_>,
    constraints: &Constraints,
    parts: &mut impl Iterator<Item = u64>,
    rest: u64,
    sharing: usize,
) -> Decision {
    let (write, policy_words) = write_policy::choose(tenant, constraints);
    let (quota_blocks, quota_words) = match tenant.configured_quota_blocks {
        Some(quota) => (quota, format!("{} blocks as configured", grouped(quota))),
        None => {
            // A part of the rest is no larger than the cache.
            let part = parts.next().unwrap_or(0) as u32;
            let (rest, cache) = (grouped(rest), grouped(constraints.cache_blocks));
            let tenants = grouped(sharing as u64);
            let share = format!("an equal share of the {rest} of {cache} blocks");
            let share = format!("{share} left to tenants without a quota ({tenants})");
            match tenant.goals.max_blocks.filter(|&most| most < part) {
                Some(most) => (most, format!("{} blocks: its maximum, below {share}", grouped(most))),
                None => (part, format!("{} blocks: {share}", grouped(part))),
            }
        }
    };
    let mode = Mode { write, ..tenant.mode };
    Decision { quota_blocks, mode, predicted: None, reason: format!("{quota_words}; {policy_words}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConfiguredPolicy, Goals};
    use proptest::prelude::*;

    fn tenants(quotas: &[Option<u32>]) -> Vec<Tenant<'static>> {
        let tenant = |&quota| Tenant {
            name: "t",
            quota_blocks: 5,
            mode: Profile::default().mode,
            findings: None,
            configured_policy: ConfiguredPolicy::Auto,
            configured_quota_blocks: quota,
            min_blocks: 1000,
            goals: Goals::default(),
        };
        quotas.iter().map(tenant).collect()
    }

    fn allocate(quotas: &[Option<u32>], cache_blocks: u32) -> Result<Vec<Decision>, AllocError> {
        Static.allocate(&tenants(quotas), &Constraints { cache_blocks, ..Constraints::default() })
    }

    #[test]
    fn the_rest_is_shared_to_the_last_block() {
        let decisions = allocate(&[Some(4000), None, None, None], 10_000).expect("the quotas fit");
        assert_eq!(decisions.iter().map(|d| d.quota_blocks).collect::<Vec<_>>(), [4000, 2000, 2000, 2000]);
        assert_eq!(decisions[0].reason, "4,000 blocks as configured; write policy stays wb");
        assert_eq!(
            decisions[1].reason,
            "2,000 blocks: an equal share of the 6,000 of 10,000 blocks left to tenants without a quota (3); \
             write policy stays wb"
        );
    }

    #[test]
    fn nobody_without_a_quota_has_more_than_its_maximum() {
        let mut three = tenants(&[None, None, None]);
        three[1].goals.max_blocks = Some(20);
        let constraints = Constraints { cache_blocks: 300, ..Constraints::default() };
        let decisions = Static.allocate(&three, &constraints).expect("they fit");
        assert_eq!(decisions.iter().map(|d| d.quota_blocks).collect::<Vec<_>>(), [100, 20, 100]);
        assert!(
            decisions[1].reason.starts_with("20 blocks: its maximum, below an equal share of the 300 of")
        );
    }

    #[test]
    fn promising_more_than_the_cache_is_an_error() {
        let error = allocate(&[Some(u32::MAX), Some(u32::MAX), None], 100).unwrap_err();
        assert_eq!(error, AllocError::QuotasExceedCache { wanted_blocks: 8_589_934_590, cache_blocks: 100 });
        let words = "the configured quotas want 8589934590 blocks in all, and the cache has 100 for them";
        assert_eq!(error.to_string(), words);
    }

    proptest! {
        #[test]
        fn quotas_sum_to_the_cache_where_somebody_shares_the_rest(
            quotas in proptest::collection::vec(proptest::option::of(0u32..300), 0..8), cache in 0u32..2000,
        ) {
            let configured: u32 = quotas.iter().flatten().sum();
            match allocate(&quotas, cache) {
                Err(_) => prop_assert!(configured > cache),
                Ok(decisions) => {
                    let sum: u32 = decisions.iter().map(|decision| decision.quota_blocks).sum();
                    prop_assert_eq!(sum, if quotas.contains(&None) { cache } else { configured });
                    for (decision, quota) in decisions.iter().zip(&quotas) {
                        prop_assert!(quota.is_none_or(|quota| quota == decision.quota_blocks));
                    }
                }
            }
        }
    }
}
