//! Quotas to start with where the cache is warm: what tenants hold should not be given up before anything is known of them.
//!
//! After a restart nobody knows yet what a tenant would gain, and equal parts would drop half of what the last life had learned. So a
//! tenant begins with what it holds, and shares what is left as at a cold start. Nobody begins with less than a part of what a
//! cold start would give: a newcomer must be able to show what it needs.

/// The least part of its quota at a cold start that a tenant begins with is one in this many.
const LEAST_PART: u32 = 8;

/// Quotas for tenants that hold some blocks, of a cache of so many. `cold` are the quotas of a cold start, which fit the cache;
/// `min_blocks` is what a tenant gets at least, as far as a cold start would give it.
pub fn quotas(cache_blocks: u32, min_blocks: u32, cold: &[u32], held: &[u32]) -> Vec<u32> {
    let least = |&cold: &u32| cold.min(min_blocks.max(cold / LEAST_PART));
    let least: Vec<u32> = cold.iter().map(least).collect();
    let above = least.iter().zip(held).map(|(least, held)| held.saturating_sub(*least));
    let room = u64::from(cache_blocks).saturating_sub(sum(&least));
    let mut quotas = add(&least, &scaled(above.collect(), room));
    let rest = sum(cold).saturating_sub(sum(&quotas));
    let below = cold.iter().zip(&quotas).map(|(cold, quota)| cold.saturating_sub(*quota));
    quotas = add(&quotas, &scaled(below.collect(), rest));
    quotas
}

/// Parts in proportion to what is wanted that together are no more than `room`.
fn scaled(wanted: Vec<u32>, room: u64) -> Vec<u32> {
    let all = sum(&wanted);
    if all <= room {
        return wanted;
    }
    // No part is larger than what was wanted.
    wanted.into_iter().map(|part| (u128::from(part) * u128::from(room) / u128::from(all)) as u32).collect()
}

fn add(left: &[u32], right: &[u32]) -> Vec<u32> {
    left.iter().zip(right).map(|(left, right)| left + right).collect()
}

fn sum(parts: &[u32]) -> u64 {
    parts.iter().map(|part| u64::from(*part)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_held_is_kept_and_the_rest_is_shared() {
        assert_eq!(quotas(1000, 0, &[500, 500], &[0, 0]), [500, 500]);
        assert_eq!(quotas(1000, 0, &[500, 500], &[700, 200]), [700, 300]);
        // A newcomer gets an eighth of its equal part, from a cache that is full.
        assert_eq!(quotas(1000, 0, &[500, 500], &[1000, 0]), [938, 62]);
        assert_eq!(quotas(1000, 100, &[500, 500], &[1000, 0]), [900, 100]);
        assert_eq!(quotas(900, 0, &[300, 300, 300], &[600, 0, 100]), [600, 129, 170]);
    }

    proptest! {
        #[test]
        fn they_fit_and_give_up_no_more_than_they_must(
            tenants in prop::collection::vec((0_u32..1000, 0_u32..2000), 1..8), more in 0_u32..500, min_blocks in 0_u32..100,
        ) {
            let (cold, held): (Vec<_>, Vec<_>) = tenants.into_iter().unzip();
            let cache_blocks = sum(&cold) as u32 + more;
            let found = quotas(cache_blocks, min_blocks, &cold, &held);
            prop_assert!(sum(&found) <= u64::from(cache_blocks));
            let least = |cold: u32| cold.min(min_blocks.max(cold / LEAST_PART));
            prop_assert!(found.iter().zip(&cold).all(|(quota, cold)| *quota >= least(*cold)));
            let wanted: u64 = cold.iter().zip(&held).map(|(c, h)| u64::from(least(*c).max(*h))).sum();
            if wanted <= u64::from(cache_blocks) {
                prop_assert!(found.iter().zip(&held).all(|(quota, held)| quota >= held), "{found:?} for {held:?}");
            }
        }

        #[test]
        fn a_cold_cache_starts_cold(cold in prop::collection::vec(0_u32..1000, 1..8), min_blocks in 0_u32..100) {
            let held = vec![0; cold.len()];
            prop_assert_eq!(quotas(sum(&cold) as u32, min_blocks, &cold, &held), cold);
        }
    }
}
