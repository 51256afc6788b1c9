//! Sizes of partitions that fit their cache.

use crate::bounds::Bounds;
use crate::shares::share_out;

/// The sizes brought within their bounds, and to the size of the cache in sum, unless all are at their most before:
/// where they are too large together, each gives up the same part of what it has above its least.
pub(super) fn fitted(sizes: &[u64], bounds: &[Bounds], cache_blocks: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = sizes.iter().zip(bounds).map(|(&size, bounds)| bounds.clamp(size)).collect();
    let least: u64 = bounds.iter().map(|bounds| bounds.least).sum();
    let above = sizes.iter().sum::<u64>() - least;
    let room = cache_blocks - least;
    if above > room {
        for (size, bounds) in sizes.iter_mut().zip(bounds) {
            let part = u128::from(*size - bounds.least) * u128::from(room) / u128::from(above);
            // A part of a size is no larger than a size.
            *size = bounds.least + part as u64;
        }
    }
    filled(sizes, bounds, cache_blocks)
}

/// What the sizes leave of the cache, shared out equally, as far as the bounds allow.
pub(super) fn filled(mut sizes: Vec<u64>, bounds: &[Bounds], cache_blocks: u64) -> Vec<u64> {
    let most: Vec<u64> = bounds.iter().map(|bounds| bounds.most).collect();
    let left = cache_blocks - sizes.iter().sum::<u64>();
    share_out(left, &mut sizes, &most);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fit(sizes: &[u64], bounds: &[(u64, u64)], cache_blocks: u64) -> Vec<u64> {
        let bounds: Vec<_> = bounds.iter().map(|&(least, most)| Bounds { least, most }).collect();
        fitted(sizes, &bounds, cache_blocks)
    }

    #[test]
    fn too_much_is_given_up_in_proportion_and_the_rest_is_shared() {
        // 90 and 30 above the least of 10 each, and 40 to be had.
        assert_eq!(fit(&[100, 40], &[(10, 100), (10, 100)], 60), [40, 20]);
        assert_eq!(fit(&[0, 0], &[(10, 100), (10, 100)], 60), [30, 30]);
        assert_eq!(fit(&[50, 9], &[(0, 20), (10, 15)], 60), [20, 15]);
    }

    proptest! {
        #[test]
        fn sizes_fill_the_cache_within_their_bounds(
            tenants in proptest::collection::vec((0u64..200, 0u64..20, 0u64..100), 0..6), more in 0u64..300,
        ) {
            let bounds: Vec<_> =
                tenants.iter().map(|&(_, least, room)| Bounds { least, most: least + room }).collect();
            let cache = bounds.iter().map(|bounds| bounds.least).sum::<u64>() + more;
            let sizes: Vec<_> = tenants.iter().map(|tenant| tenant.0).collect();
            let fit = fitted(&sizes, &bounds, cache);
            prop_assert!(fit.iter().zip(&bounds).all(|(size, b)| (b.least..=b.most).contains(size)));
            let most = bounds.iter().map(|bounds| bounds.most).sum::<u64>();
            prop_assert_eq!(fit.iter().sum::<u64>(), cache.min(most));
            prop_assert_eq!(fitted(&fit, &bounds, cache), fit);
        }
    }
}
