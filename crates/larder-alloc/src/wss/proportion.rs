//! Parts of a cache in proportion to what everybody wants, with nobody below its least.

/// What is `wanted` where that fits into `blocks`; where it does not, `blocks` in proportion to what is wanted, to the
/// last block. Who would fall below its `least` gets that, and the others divide what is left.
///
/// `least` is no more than `wanted` anywhere, and sums to no more than `blocks`.
pub(super) fn in_proportion(wanted: &[u64], least: &[u64], blocks: u64) -> Vec<u64> {
    if wanted.iter().map(|&wanted| u128::from(wanted)).sum::<u128>() <= blocks.into() {
        return wanted.to_vec();
    }
    let mut open = vec![true; wanted.len()];
    loop {
        let (rest, total) = still_open(wanted, least, blocks, &open);
        let falls = |&at: &usize| open[at] && u128::from(wanted[at]) * rest < u128::from(least[at]) * total;
        let below: Vec<usize> = (0..wanted.len()).filter(falls).collect();
        if below.is_empty() {
            return parts(wanted, least, &open, rest, total);
        }
        // The others' parts shrink by this, so that nobody comes back.
        below.into_iter().for_each(|at| open[at] = false);
    }
}

/// The blocks left to the tenants that share in proportion, and what those want together.
fn still_open(wanted: &[u64], least: &[u64], blocks: u64, open: &[bool]) -> (u128, u128) {
    let (mut rest, mut total) = (u128::from(blocks), 0);
    for ((&wanted, &least), &open) in wanted.iter().zip(least).zip(open) {
        match open {
            true => total += u128::from(wanted),
            false => rest -= u128::from(least),
        }
    }
    (rest, total)
}

/// Everybody's blocks, with `rest` divided among the open ones in proportion. The parts are cut where the running sum of what
/// is wanted is rounded down, and so are the whole numbers below or above the exact ones.
fn parts(wanted: &[u64], least: &[u64], open: &[bool], rest: u128, total: u128) -> Vec<u64> {
    let (mut sum, mut given) = (0, 0);
    let part = |((&wanted, &least), &open): ((&u64, &u64), &bool)| {
        if !open {
            return least;
        }
        sum += u128::from(wanted);
        let until = (sum * rest).checked_div(total).unwrap_or(0);
        let part = until - given;
        given = until;
        // No more than is wanted, which is a u64.
        part as u64
    };
    wanted.iter().zip(least).zip(open).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn who_would_fall_below_its_least_gets_that() {
        assert_eq!(in_proportion(&[10, 20], &[1, 1], 30), [10, 20]);
        assert_eq!(in_proportion(&[100, 200, 300], &[0; 3], 60), [10, 20, 30]);
        // Of 60, the first would get 10; with its 24 the others have 36, and the second falls below its 15 only then.
        assert_eq!(in_proportion(&[100, 200, 300], &[24, 15, 0], 60), [24, 15, 21]);
        assert_eq!(in_proportion(&[u64::MAX, u64::MAX], &[0, 0], 7), [3, 4]);
        assert_eq!(in_proportion(&[5], &[0], 0), [0]);
    }

    proptest! {
        /// The model looks for the factor at which everybody's part, or its least, adds up to the blocks.
        #[test]
        fn parts_are_those_of_one_common_factor(
            tenants in proptest::collection::vec((0u64..1000, 0u64..300), 1..8), blocks in 0u64..5000,
        ) {
            let least: Vec<u64> = tenants.iter().map(|tenant| tenant.1).collect();
            let wanted: Vec<u64> = tenants.iter().map(|tenant| tenant.0.max(tenant.1)).collect();
            prop_assume!(least.iter().sum::<u64>() <= blocks);
            let parts = in_proportion(&wanted, &least, blocks);
            prop_assert_eq!(parts.iter().sum::<u64>(), blocks.min(wanted.iter().sum()));
            let at = |factor: f64| -> Vec<f64> {
                wanted.iter().zip(&least).map(|(&w, &l)| (w as f64 * factor).max(l as f64)).collect()
            };
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                match at(middle).iter().sum::<f64>() > blocks as f64 {
                    true => high = middle,
                    false => low = middle,
                }
            }
            for (part, exact) in parts.iter().zip(at(high)) {
                prop_assert!((*part as f64 - exact).abs() <= 1.0 + 1e-6, "{} beside {}", part, exact);
            }
            prop_assert!(parts.iter().zip(&least).all(|(part, least)| part >= least));
        }
    }
}
