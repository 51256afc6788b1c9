//! `combined`: one half of the cache divided among the tenants, the other half one cache for all (Rao: "Differentiated SSD
//! Caching for Container-based Hosting", IIT Bombay 2017, section 2.4.4).
//!
//! The thesis names the combination, with a partitioned part that is "static or dynamic", and no sizes. Here both parts are
//! halves. The partitioned one goes by working sets as in [`crate::Wss`]; as long as no tenant did anything, it is
//! divided equally.

use crate::bounds::bounds;
use crate::shares::share_out;
use crate::words::grouped;
use crate::wss::WorkingSets;
use crate::{AllocError, Allocator, Constraints, Decision, Layout, Mode, Profile, Tenant, Wss, own_policy};

/// The container thesis's combination of a partitioned and a unified cache.
///
/// Quotas are those of the partitioned half, and sum to no more than it; minima and maxima bind there alone. A
/// configured quota is where a tenant starts; it does not bind the decisions. Write-back, unless configured otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Combined;

impl Combined {
    /// Its name.
    pub const NAME: &str = "combined";

    /// The share of the cache that is divided among the tenants.
    pub const PARTITIONED: f64 = 0.5;
}

impl Allocator for Combined {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    fn profile(&self) -> Profile {
        let layout = Layout::Combined { partitioned: Self::PARTITIONED };
        Profile { layout, ..Wss.profile() }
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let part = (f64::from(constraints.cache_blocks) * Self::PARTITIONED) as u32;
        let sizes = match tenants.iter().any(|tenant| tenant.active().is_some()) {
            true => by_working_sets(tenants, part),
            false => equal(tenants, part),
        };
        let place = format!("in the partitioned {} blocks", grouped(part));
        let place = format!("{place} of {}", grouped(constraints.cache_blocks));
        let own = self.profile().mode.write;
        let decide = |(tenant, (quota_blocks, words)): (&Tenant<'_>, (u32, String))| {
            let (write, policy_words) = own_policy::choose(tenant, constraints, own);
            let mode = Mode { write, ..tenant.mode };
            Decision {
                quota_blocks,
                mode,
                predicted: None,
                reason: format!("{place}: {words}; {policy_words}"),
            }
        };
        Ok(tenants.iter().zip(sizes).map(decide).collect())
    }
}

/// Quotas and reasons.
type Sizes = Vec<(u32, String)>;

fn by_working_sets(tenants: &[Tenant<'_>], part: u32) -> Sizes {
    let sets = WorkingSets::of(tenants, part);
    let size = |(at, tenant)| (sets.quota(at), sets.words(at, tenant));
    tenants.iter().enumerate().map(size).collect()
}

/// Each tenant's minimum, and equal parts of the rest.
fn equal(tenants: &[Tenant<'_>], part: u32) -> Sizes {
    let bounds = bounds(tenants, part.into());
    let mut quotas: Vec<u64> = bounds.iter().map(|bounds| bounds.least).collect();
    let most: Vec<u64> = bounds.iter().map(|bounds| bounds.most).collect();
    share_out(u64::from(part) - quotas.iter().sum::<u64>(), &mut quotas, &most);
    let words = |quota| format!("{} blocks, an equal part as long as all are idle", grouped(quota));
    // Parts of `part`.
    quotas.into_iter().map(|quota| (quota as u32, words(quota))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{quotas, tenant};
    use crate::{Findings, Goals};
    use larder_locality::EpochFindings;

    fn working_set(blocks: u64) -> Findings {
        EpochFindings { accesses: 10, trd_max: Some(blocks - 1), ..EpochFindings::default() }.into()
    }

    fn allocate(tenants: &[Tenant<'_>], cache_blocks: u32) -> Vec<Decision> {
        let constraints = Constraints { cache_blocks, ..Constraints::default() };
        Combined.allocate(tenants, &constraints).expect("it always decides")
    }

    #[test]
    fn half_of_the_cache_goes_by_working_sets() {
        let (small, large) = (working_set(20), working_set(40));
        let tenants = [tenant("a", Some(&small)), tenant("b", Some(&large))];
        let decisions = allocate(&tenants, 121);
        assert_eq!(quotas(&decisions), [20, 40]);
        assert_eq!(quotas(&allocate(&tenants, 60)), [10, 20]);
        assert_eq!(
            decisions[0].reason,
            "in the partitioned 60 blocks of 121: working set of 20 blocks (TRD 19): 20 blocks, as the tenants together \
             want 60 of 60 blocks; write policy wb, the method's own"
        );
    }

    #[test]
    fn an_idle_cache_is_divided_equally() {
        let limited =
            Tenant { goals: Goals { max_blocks: Some(5), ..Goals::default() }, ..tenant("b", None) };
        let decisions = allocate(&[tenant("a", None), limited, tenant("c", None)], 100);
        assert_eq!(quotas(&decisions), [23, 5, 22]);
        assert!(
            decisions[1].reason.starts_with(
                "in the partitioned 50 blocks of 100: 5 blocks, an equal part as long as all are idle; "
            ),
            "{}",
            decisions[1].reason
        );
    }
}
