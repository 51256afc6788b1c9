//! `unified`: one cache for all tenants, each of which takes what it can from the others (Rao: "Differentiated SSD Caching
//! for Container-based Hosting", IIT Bombay 2017, section 2.4.1).

use crate::shares::equal_parts;
use crate::words::grouped;
use crate::{AllocError, Allocator, Constraints, Decision, Layout, Mode, Needs, Profile, Tenant, own_policy};

/// No division: the reference for those that divide.
///
/// Quotas mean nothing in [`Layout::Unified`], nor do minima, maxima and configured quotas; each decision has an equal part
/// of the cache as its quota, so that they sum to it. Which block leaves is for the one cache to decide: all tenants keep
/// the replacement and admission that they have, write-back unless configured otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unified;

impl Unified {
    /// Its name.
    pub const NAME: &str = "unified";
}

impl Allocator for Unified {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    fn profile(&self) -> Profile {
        Profile { layout: Layout::Unified, ..Profile::default() }
    }

    fn needs(&self, _limited_writes: bool) -> Needs {
        Needs::default()
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let cache = constraints.cache_blocks;
        let own = self.profile().mode.write;
        let words = format!("one cache of {} blocks serves all tenants, without quotas", grouped(cache));
        let decide = |(tenant, part): (&Tenant<'_>, u64)| {
            let (write, policy_words) = own_policy::choose(tenant, constraints, own);
            Decision {
                // A part of the cache.
                quota_blocks: part as u32,
                mode: Mode { write, ..tenant.mode },
                predicted: None,
                reason: format!("{words}; {policy_words}"),
            }
        };
        Ok(tenants.iter().zip(equal_parts(cache.into(), tenants.len())).map(decide).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WritePolicy;
    use crate::fixtures::{quotas, tenant};

    #[test]
    fn all_have_an_equal_part_in_name_and_keep_their_replacement() {
        let caching = "s3-fifo+larc".parse().expect("a policy behind an admission policy");
        let first = Tenant { mode: Mode { caching, write: WritePolicy::ReadOnly }, ..tenant("a", None) };
        let constraints = Constraints { cache_blocks: 1001, ..Constraints::default() };
        let decisions =
            Unified.allocate(&[first, tenant("b", None)], &constraints).expect("it always decides");
        assert_eq!(quotas(&decisions), [501, 500]);
        assert_eq!(decisions[0].mode, Mode { caching, write: WritePolicy::WriteBack });
        assert_eq!(
            decisions[1].reason,
            "one cache of 1,001 blocks serves all tenants, without quotas; write policy wb, the method's own"
        );
    }
}
