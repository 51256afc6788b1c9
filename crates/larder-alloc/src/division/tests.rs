//! Divisions against all combinations tried, and against the bound that the hulls give.

use super::*;
use proptest::prelude::*;

fn choices(steps: &[(u64, u64)]) -> Vec<Choice> {
    let mut list = vec![Choice::NOTHING];
    for &(blocks, gain) in steps {
        let last = list[list.len() - 1];
        list.push(Choice { blocks: last.blocks + blocks, gain: last.gain + gain });
    }
    list
}

fn gain_of(tenants: &[Vec<Choice>], division: &[u64]) -> u64 {
    let gain = |(list, &blocks): (&Vec<Choice>, &u64)| {
        list.iter().find(|choice| choice.blocks == blocks).expect("one of its choices").gain
    };
    tenants.iter().zip(division).map(gain).sum()
}

/// The most that can be gained, by trying everything.
fn brute_force(tenants: &[Vec<Choice>], budget: u64) -> u64 {
    let Some((first, others)) = tenants.split_first() else { return 0 };
    let fitting = first.iter().filter(|choice| choice.blocks <= budget);
    fitting
        .map(|choice| choice.gain + brute_force(others, budget - choice.blocks))
        .max()
        .expect("nothing fits always")
}

#[test]
fn a_cliff_that_fits_alone_beats_the_steepest_first() {
    // The first is steeper, and leaves too little for the second, which brings more.
    let tenants = [choices(&[(10, 100)]), choices(&[(95, 600)])];
    assert_eq!(divide(&tenants, 100), [0, 95]);
    assert_eq!(by_hulls(&tenants, 100).0, [tenants[0][1], Choice::NOTHING]);
}

#[test]
fn the_rest_goes_to_the_step_that_brings_the_most() {
    let tenants = [choices(&[(4, 40), (5, 1), (90, 800)]), choices(&[(6, 3)])];
    let mut chosen = vec![tenants[0][1], Choice::NOTHING];
    spend_rest(&tenants, &mut chosen, 10);
    assert_eq!(chosen, [tenants[0][1], tenants[1][1]]);
}

#[test]
fn nobody_and_nothing() {
    assert_eq!(divide(&[], 100), [0u64; 0]);
    assert_eq!(divide(&[choices(&[(1, 5)]), choices(&[])], 0), [0, 0]);
}

fn instance(blocks: u64) -> impl Strategy<Value = (Vec<Vec<Choice>>, u64)> {
    let list =
        proptest::collection::vec((1..blocks, 1u64..1_000_000), 0..7).prop_map(|steps| choices(&steps));
    (proptest::collection::vec(list, 1..5), 0..blocks * 12)
}

fn check_against_brute_force(tenants: &[Vec<Choice>], budget: u64) -> Result<(), TestCaseError> {
    let division = divide(tenants, budget);
    prop_assert!(division.iter().sum::<u64>() <= budget);
    let (gain, best) = (gain_of(tenants, &division), brute_force(tenants, budget));
    // The table is exact here, and is not used where the hulls come within one part in a thousand.
    prop_assert!(gain * 1000 >= best * 999, "{} of {}", gain, best);
    let (_, bound) = by_hulls(tenants, budget);
    prop_assert!(bound >= best, "bound {} below {}", bound, best);
    Ok(())
}

proptest! {
    #[test]
    fn small_instances_come_within_a_thousandth((tenants, budget) in instance(12)) {
        check_against_brute_force(&tenants, budget)?;
    }

    #[test]
    fn so_do_instances_of_large_steps((tenants, budget) in instance(1 << 28)) {
        check_against_brute_force(&tenants, budget)?;
    }

    #[test]
    fn the_table_alone_is_exact_where_it_need_not_merge((tenants, budget) in instance(50)) {
        let chosen = by_table(&tenants, budget, 4096);
        prop_assert_eq!(total_gain(&chosen), brute_force(&tenants, budget));
    }

    /// The promise of a merged table: no worse than the optimum of a budget smaller by the cells' widths.
    #[test]
    fn a_coarse_table_keeps_its_promise((tenants, budget) in instance(1000), limit in 2usize..6) {
        let chosen = by_table(&tenants, budget, limit);
        prop_assert!(chosen.iter().map(|choice| choice.blocks).sum::<u64>() <= budget);
        let lost = 2 * tenants.len() as u64 * (budget / limit as u64 + 1);
        if let Some(smaller) = budget.checked_sub(lost) {
            prop_assert!(total_gain(&chosen) >= brute_force(&tenants, smaller));
        }
    }
}

/// The most that can be gained, by the best gain for every number of blocks.
fn for_every_block(tenants: &[Vec<Choice>], budget: u64) -> u64 {
    let mut best = vec![0u64; budget as usize + 1];
    for list in tenants {
        for at in (0..best.len()).rev() {
            let fitting = list.iter().take_while(|choice| choice.blocks as usize <= at);
            best[at] =
                fitting.map(|choice| best[at - choice.blocks as usize] + choice.gain).max().unwrap_or(0);
        }
    }
    best[best.len() - 1]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Curves of many steps, so that combinations have to be merged, with cliffs among them.
    #[test]
    fn long_curves_come_within_a_hundredth(
        lists in proptest::collection::vec(
            proptest::collection::vec((prop_oneof![9 => 1u64..30, 1 => 200u64..900], 1u64..1000), 20..200), 2..6,
        ),
        share in 1u64..100,
    ) {
        let tenants: Vec<_> = lists.iter().map(|steps| choices(steps)).collect();
        let all: u64 = tenants.iter().map(|list| list[list.len() - 1].blocks).sum();
        let budget = all * share / 100;
        let (gain, best) = (gain_of(&tenants, &divide(&tenants, budget)), for_every_block(&tenants, budget));
        prop_assert!(gain * 100 >= best * 99, "{} of {}", gain, best);
    }
}
