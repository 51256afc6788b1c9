//! Equal shares in whole blocks.

/// Add `blocks` to `quotas` so that the smallest additions are as large as they can be, no quota passes its limit, and
/// nothing is left unless every limit is reached. The first ones get the blocks that cannot be divided.
pub(crate) fn share_out(mut blocks: u64, quotas: &mut [u64], limits: &[u64]) {
    let mut open: Vec<usize> = (0..quotas.len()).filter(|&tenant| quotas[tenant] < limits[tenant]).collect();
    // Those with the least room first: what they leave is divided among the others. The sort keeps the order of equals.
    open.sort_by_key(|&tenant| std::cmp::Reverse(limits[tenant] - quotas[tenant]));
    while let Some(&tenant) = open.last() {
        let room = limits[tenant] - quotas[tenant];
        if room > blocks / open.len() as u64 {
            break;
        }
        open.pop();
        quotas[tenant] += room;
        blocks -= room;
    }
    open.sort_unstable();
    equal_parts(blocks, open.len()).zip(open).for_each(|(part, tenant)| quotas[tenant] += part);
}

/// `blocks` in `count` parts that differ by one at most, the larger ones first.
pub(crate) fn equal_parts(blocks: u64, count: usize) -> impl Iterator<Item = u64> {
    let count = count as u64;
    let (part, rest) = (blocks.checked_div(count).unwrap_or(0), blocks.checked_rem(count).unwrap_or(0));
    (0..count).map(move |at| part + u64::from(at < rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_differ_by_one_at_most() {
        assert_eq!(equal_parts(10, 4).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(equal_parts(2, 3).collect::<Vec<_>>(), [1, 1, 0]);
        assert_eq!(equal_parts(5, 0).count(), 0);
    }

    #[test]
    fn what_one_cannot_take_goes_to_the_others() {
        let mut quotas = [0, 0, 0];
        share_out(30, &mut quotas, &[4, 100, 100]);
        assert_eq!(quotas, [4, 13, 13]);
        share_out(1000, &mut quotas, &[4, 50, 60]);
        assert_eq!(quotas, [4, 50, 60]);
    }

    proptest! {
        /// The model deals one block at a time to the tenant that was dealt the fewest so far.
        #[test]
        fn sharing_is_dealing_blocks_in_rounds(
            tenants in proptest::collection::vec((0u64..20, 0u64..20), 0..6), blocks in 0u64..60,
        ) {
            let start: Vec<u64> = tenants.iter().map(|tenant| tenant.0).collect();
            let limits: Vec<u64> = tenants.iter().map(|tenant| tenant.0 + tenant.1).collect();
            let mut quotas = start.clone();
            share_out(blocks, &mut quotas, &limits);
            let mut model = start.clone();
            for _ in 0..blocks {
                let open = (0..model.len()).filter(|&tenant| model[tenant] < limits[tenant]);
                if let Some(tenant) = open.min_by_key(|&tenant| model[tenant] - start[tenant]) {
                    model[tenant] += 1;
                }
            }
            prop_assert_eq!(quotas, model);
        }
    }
}
