//! Blocks that would save nothing by what is known go to somebody all the same: they may by what is not known yet.

use crate::Tenant;
use crate::optimal::Room;
use crate::shares::share_out;

/// The most that a tenant may be given.
pub(super) fn most(tenant: &Tenant<'_>, least: u64, room: Room) -> u64 {
    tenant.goals.max_blocks.map_or(room.blocks, u64::from).max(least)
}

/// Give `blocks` away: first so that nobody loses what it holds, the rest in proportion to the `misses` per second, as far as the
/// tenants' `most` allows. Blocks that nobody may take are returned.
pub(super) fn give(blocks: u64, quotas: &mut [u64], held: &[u64], most: &[u64], misses: &[f64]) -> u64 {
    let keep = |((&quota, &held), &most): ((&u64, &u64), &u64)| quota.max(held.min(most));
    let keep: Vec<u64> = quotas.iter().zip(held).zip(most).map(keep).collect();
    let left = up_to(blocks, quotas, &keep);
    let all: f64 = misses.iter().sum();
    // Rounds down: the parts never exceed the whole by more than rounding.
    let part = |miss: f64| if all > 0.0 { (left as f64 * (miss / all)) as u64 } else { 0 };
    let grown = |((&quota, &most), &miss): ((&u64, &u64), &f64)| (quota + part(miss)).min(most.max(quota));
    let grown: Vec<u64> = quotas.iter().zip(most).zip(misses).map(grown).collect();
    let left = up_to(left, quotas, &grown);
    up_to(left, quotas, most)
}

/// Raise the quotas to the limits as far as the blocks reach, in equal parts; what is left is returned.
fn up_to(blocks: u64, quotas: &mut [u64], limits: &[u64]) -> u64 {
    let missing: u64 = quotas.iter().zip(limits).map(|(&quota, &limit)| limit.saturating_sub(quota)).sum();
    let given = blocks.min(missing);
    share_out(given, quotas, limits);
    blocks - given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_what_is_held_then_by_misses_then_whoever_may() {
        let given = |blocks, most: [u64; 2]| {
            let mut quotas = [5, 5];
            let left = give(blocks, &mut quotas, &[10, 0], &most, &[2.0, 1.0]);
            (quotas, left)
        };
        assert_eq!(given(3, [100, 100]), ([8, 5], 0));
        assert_eq!(given(35, [100, 100]), ([30, 15], 0));
        assert_eq!(given(35, [12, 100]), ([12, 33], 0));
        assert_eq!(given(35, [12, 20]), ([12, 20], 13));
        assert_eq!(given(35, [8, 3]), ([8, 5], 32));
    }
}
