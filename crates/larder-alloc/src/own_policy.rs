//! The write policy of a tenant under a method that has one of its own for all tenants.

use crate::{ConfiguredPolicy, Constraints, Tenant, WritePolicy};

/// The configured policy, or the method's own, and the half-sentence that gives the reason. Where the cache cannot hold
/// dirty data, `wt` stands in for the method's `wb`.
pub(crate) fn choose(
    tenant: &Tenant<'_>,
    constraints: &Constraints,
    own: WritePolicy,
) -> (WritePolicy, String) {
    if let ConfiguredPolicy::Fixed(policy) = tenant.configured_policy {
        return (policy, format!("write policy {policy} as configured"));
    }
    if own == WritePolicy::WriteBack && !constraints.write_back {
        let words = "write policy wt in place of wb: the cache cannot hold dirty blocks";
        return (WritePolicy::WriteThrough, words.to_owned());
    }
    (own, format!("write policy {own}, the method's own"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenant;
    use WritePolicy::{ReadOnly, WriteBack, WriteThrough, WriteThroughNoAllocate};

    #[test]
    fn what_is_configured_stands_and_write_back_needs_a_cache_that_can() {
        let can = Constraints::default();
        let cannot = Constraints { write_back: false, ..can };
        let auto = tenant("t", None);
        let fixed = Tenant { configured_policy: ConfiguredPolicy::Fixed(ReadOnly), ..auto };
        let cases = [
            (fixed, can, WriteBack, ReadOnly, "write policy ro as configured"),
            (auto, can, WriteBack, WriteBack, "write policy wb, the method's own"),
            (
                auto,
                cannot,
                WriteBack,
                WriteThrough,
                "write policy wt in place of wb: the cache cannot hold dirty blocks",
            ),
            (
                auto,
                cannot,
                WriteThroughNoAllocate,
                WriteThroughNoAllocate,
                "write policy wt-noalloc, the method's own",
            ),
        ];
        for (tenant, constraints, own, policy, words) in cases {
            assert_eq!(choose(&tenant, &constraints, own), (policy, words.to_owned()));
        }
    }
}
