//! Room for tenants that come: what each has until the next decision.
//!
//! The allocator is not asked: nothing is known of newcomers, and what is known of the others was asked for a moment ago. Newcomers have what an equal division gives them, and those who were there make
//! room in proportion to what they have. Everybody keeps its least, as in the decisions to come.

use crate::bounds::{Bounds, bounds};
use crate::words::grouped;
use crate::{Decision, Tenant};

/// Blocks that a tenant is to have, and the least of them that it keeps.
#[derive(Clone, Copy, Debug)]
struct Wish {
    blocks: u64,
    least: u64,
}

/// Quotas of a cache in which the newcomers have what an `equal` division gives them, and the others what is left in proportion to what they have, but none less than its least.
///
/// Who was promised something keeps what it has, but for everybody's least, until more is known of them.
pub(super) fn make(inputs: &[Tenant<'_>], equal: &[Decision], new: &[bool], cache: u32) -> Vec<u32> {
    if new.iter().all(|&new| new) {
        // Nobody has to make room: it begins as configured, below its least where that is.
        return equal.iter().map(|decision| decision.quota_blocks).collect();
    }
    let cache = u64::from(cache);
    let wish = |((at, bounds), input): ((usize, Bounds), &Tenant<'_>)| {
        let blocks = if new[at] { equal[at].quota_blocks } else { input.quota_blocks };
        Wish { blocks: u64::from(blocks).max(bounds.least), least: bounds.least }
    };
    let wishes: Vec<Wish> = bounds(inputs, cache).into_iter().enumerate().zip(inputs).map(wish).collect();
    let promised = |at: usize| !new[at] && inputs[at].goals.reservation.is_some();
    let of =
        |who: &dyn Fn(usize) -> bool| -> Vec<usize> { (0..inputs.len()).filter(|&at| who(at)).collect() };
    let newcomers = of(&|at| new[at]);
    let promised_to = of(&promised);
    let others = of(&|at| !new[at] && !promised(at));
    let wanted = |who: &[usize]| who.iter().map(|&at| wishes[at].blocks).sum::<u64>();
    let least = |who: &[usize]| who.iter().map(|&at| wishes[at].least).sum::<u64>();
    // What the others are left with at least; all that is the least together is no more than the cache.
    let rest = cache - least(&others);
    let of_new = wanted(&newcomers).min(rest.saturating_sub(wanted(&promised_to)).max(least(&newcomers)));
    let of_promised = wanted(&promised_to).min(rest - of_new);
    let of_others = cache - of_new - of_promised;
    let mut quotas = vec![0; inputs.len()];
    for (who, blocks) in [(newcomers, of_new), (promised_to, of_promised), (others, of_others)] {
        let wishes: Vec<Wish> = who.iter().map(|&at| wishes[at]).collect();
        for (at, quota) in who.into_iter().zip(in_proportion(&wishes, blocks)) {
            // No more than the cache has.
            quotas[at] = quota as u32;
        }
    }
    quotas
}

/// Why a tenant has this quota from now on: one that is given what an `equal` division would, as far as there is room, or one that had another one `before`.
pub(super) fn reason(before: u32, quota: u32, equal: Option<Decision>) -> String {
    let blocks = grouped(quota);
    match equal {
        Some(equal) if equal.quota_blocks == quota => equal.reason,
        Some(_) => format!("{blocks} blocks until more is known, by what promises and least sizes leave"),
        None if quota < before => {
            format!("{blocks} of {} blocks until the next decision: room for who has come", grouped(before))
        }
        None => format!("{blocks} blocks until the next decision, its least: it had {}", grouped(before)),
    }
}

/// What each wishes for, or a part of it where there are not so many `blocks`, in proportion but for those who would fall below their least, which is there for all of them.
fn in_proportion(wishes: &[Wish], blocks: u64) -> Vec<u64> {
    let mut quotas: Vec<Option<u64>> = vec![None; wishes.len()];
    loop {
        let open = || quotas.iter().zip(wishes).filter(|(quota, _)| quota.is_none());
        let all: u64 = open().map(|(_, wish)| wish.blocks).sum();
        let left = blocks - quotas.iter().flatten().sum::<u64>();
        // What is kept leaves the less to the rest, of whom more may fall below their least then.
        let part = |wish: &Wish| if all > left { wish.blocks * left / all } else { wish.blocks };
        let below: Vec<usize> = (0..wishes.len())
            .filter(|&at| quotas[at].is_none() && part(&wishes[at]) < wishes[at].least)
            .collect();
        if below.is_empty() {
            return quotas
                .iter()
                .zip(wishes)
                .map(|(quota, wish)| quota.unwrap_or_else(|| part(wish)))
                .collect();
        }
        below.into_iter().for_each(|at| quotas[at] = Some(wishes[at].least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenant;
    use crate::{Goals, Profile, Reservation};
    use proptest::prelude::*;

    /// Quotas of those who have some, or are new with an equal part of so many.
    fn quotas(min_blocks: u32, have: &[Option<u32>], equal: u32, cache: u32) -> Vec<u32> {
        let of =
            |have: &Option<u32>| Tenant { min_blocks, quota_blocks: have.unwrap_or(0), ..tenant("t", None) };
        let new: Vec<bool> = have.iter().map(Option::is_none).collect();
        make(&have.iter().map(of).collect::<Vec<_>>(), &decisions(&vec![equal; have.len()]), &new, cache)
    }

    fn decisions(quotas: &[u32]) -> Vec<Decision> {
        let decision = |&quota_blocks: &u32| Decision {
            quota_blocks,
            mode: Profile::default().mode,
            predicted: None,
            reason: String::new(),
        };
        quotas.iter().map(decision).collect()
    }

    #[test]
    fn others_make_room_in_proportion_and_keep_their_least() {
        assert_eq!(quotas(10, &[Some(600), Some(400), None], 333, 1000), [400, 266, 333]);
        assert_eq!(quotas(10, &[Some(990), Some(10), None], 333, 1000), [657, 10, 333]);
        // Who is kept at its least, or raised to it, costs those above it.
        assert_eq!(
            quotas(100, &[Some(880), Some(100), Some(10), Some(10), None], 200, 1000),
            [500, 100, 100, 100, 200]
        );
        // There is not as much for everybody.
        assert_eq!(quotas(500, &[Some(990), Some(10), None], 333, 1000), [334, 333, 333]);
        assert_eq!(quotas(10, &[None, None], 4, 1000), [4, 4], "all are new");
        assert_eq!(quotas(10, &[Some(0), None], 500, 0), [0, 0]);
    }

    proptest! {
        #[test]
        fn quotas_fit_and_everybody_has_its_least(
            cache in 0_u32..3000, min_blocks in 0_u32..300,
            of in prop::collection::vec((any::<bool>(), any::<bool>(), 0_u32..3000, prop::option::of(0_u32..500)), 1..12),
        ) {
            let input = |&(_, promised, quota_blocks, max_blocks): &(bool, bool, u32, Option<u32>)| {
                let reservation = promised.then_some(Reservation::Latency(1e-3));
                let goals = Goals { max_blocks, reservation, ..Goals::default() };
                Tenant { min_blocks, quota_blocks: quota_blocks.min(cache), goals, ..tenant("t", None) }
            };
            let inputs: Vec<_> = of.iter().map(input).collect();
            let new: Vec<bool> = of.iter().map(|it| it.0).collect();
            let equal = decisions(&vec![cache / of.len() as u32; of.len()]);
            let found = make(&inputs, &equal, &new, cache);
            let sum: u64 = found.iter().copied().map(u64::from).sum();
            prop_assert!(sum <= cache.into(), "{found:?}");
            if !new.iter().all(|&new| new) {
                let bounds = bounds(&inputs, cache.into());
                prop_assert!(found.iter().zip(&bounds).all(|(&quota, it)| u64::from(quota) >= it.least), "{found:?}");
            }
            // Nobody who was there gains but what it lacks of its least.
            for ((quota, input), new) in found.iter().zip(&inputs).zip(new) {
                prop_assert!(new || *quota <= input.quota_blocks.max(min_blocks), "{found:?}");
            }
        }
    }
}
