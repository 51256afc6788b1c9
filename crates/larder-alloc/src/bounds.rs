//! The least and the most that each tenant may get.

use crate::Tenant;

/// The sizes that a tenant's quota lies between, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Its minimum; where the tenants' minima together exceed what is to be divided, no more than an equal part of it.
    pub least: u64,
    /// Its maximum, where it has one.
    pub most: u64,
}

impl Bounds {
    /// The nearest size within the bounds.
    pub fn clamp(&self, blocks: u64) -> u64 {
        blocks.clamp(self.least, self.most)
    }
}

/// The bounds of all tenants where `blocks` are to be divided. The least sizes sum to no more than that. A maximum below the
/// minimum counts for both.
pub(crate) fn bounds(tenants: &[Tenant<'_>], blocks: u64) -> Vec<Bounds> {
    let most = |tenant: &Tenant<'_>| tenant.goals.max_blocks.map_or(u64::MAX, u64::from);
    let minimum = |tenant: &Tenant<'_>| u64::from(tenant.min_blocks).min(most(tenant));
    let minima: u64 = tenants.iter().map(minimum).sum();
    let part = blocks / (tenants.len() as u64).max(1);
    let limit = if minima > blocks { part } else { blocks };
    tenants.iter().map(|tenant| Bounds { least: minimum(tenant).min(limit), most: most(tenant) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Goals;
    use crate::fixtures::tenant;

    fn of(limits: &[(u32, Option<u32>)], blocks: u64) -> Vec<(u64, u64)> {
        let tenants: Vec<_> = limits
            .iter()
            .map(|&(min_blocks, max_blocks)| Tenant {
                min_blocks,
                goals: Goals { max_blocks, ..Goals::default() },
                ..tenant("t", None)
            })
            .collect();
        bounds(&tenants, blocks).iter().map(|bounds| (bounds.least, bounds.most)).collect()
    }

    #[test]
    fn minima_that_do_not_fit_become_equal_parts_at_most() {
        assert_eq!(of(&[(10, None), (20, Some(40))], 30), [(10, u64::MAX), (20, 40)]);
        assert_eq!(
            of(&[(5, None), (20, Some(15)), (30, None)], 36),
            [(5, u64::MAX), (12, 15), (12, u64::MAX)]
        );
        assert_eq!(of(&[(5, None)], 0), [(0, u64::MAX)]);
        assert_eq!(of(&[], 10), []);
    }

    #[test]
    fn a_maximum_below_the_minimum_counts_for_both() {
        assert_eq!(of(&[(10, Some(4)), (10, Some(0))], 100), [(4, 4), (0, 0)]);
    }
}
