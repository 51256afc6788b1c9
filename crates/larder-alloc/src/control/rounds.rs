//! How much of what was counted of a tenant in an epoch counts in the next one.
//!
//! A tenant that goes round in more than it accesses in an epoch hits in some epochs and hardly in others, whatever it is given: what of its round is in the cache comes by in
//! some of them. By the last epochs alone its partition would grow and shrink with that, and what it had would be gone before it comes round again. So the longer its rounds
//! are, the longer its epochs count.

use larder_locality::EpochFindings;

/// Rounds that count.
const ROUNDS: f64 = 5.0;

/// Epochs that count at most: what has changed is to be noticed. Longer rounds are none: who has all but stopped accesses next to nothing in an epoch.
const EPOCHS_MAX: f64 = 16.0;

/// The part of what was counted, 0 to 1, that counts in the next epoch: the method's `memory`, or more for a tenant that goes round for longer than an epoch. A
/// method that forgets forgets this, too, and what did nothing in the epoch is forgotten as the method has it.
pub(super) fn kept(memory: f64, found: &EpochFindings) -> f64 {
    let epochs = round(found).map_or(0.0, |blocks| blocks as f64 / found.footprint_blocks as f64);
    if memory > 0.0 && (1.0..=EPOCHS_MAX).contains(&epochs) {
        memory.max(1.0 - 1.0 / (ROUNDS * epochs).min(EPOCHS_MAX))
    } else {
        memory
    }
}

/// Blocks of a round, if the tenant did something and goes round: its reads come again after much the same number of blocks.
fn round(found: &EpochFindings) -> Option<u64> {
    let (least, most) = (distance(found, 1)?, distance(found, 3)?);
    (found.footprint_blocks > 0 && least >= most / 2).then_some(most)
}

/// The distance within which so many quarters of the reads of remembered blocks come.
fn distance(found: &EpochFindings, quarters: u64) -> Option<u64> {
    let wanted = (found.useful.total() * quarters).div_ceil(4);
    let mut so_far = 0;
    found.useful.iter().find_map(|(distance, count)| {
        so_far += count;
        (so_far >= wanted).then_some(distance)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most reads come again after `distance` blocks, a few at once; so many blocks were accessed in the epoch.
    fn found(distance: u64, footprint_blocks: u64) -> EpochFindings {
        let useful = [(0, 20), (distance, 70), (100_000, 10)].into_iter().collect();
        EpochFindings { useful, footprint_blocks, ..EpochFindings::default() }
    }

    #[test]
    fn what_comes_round_within_an_epoch_counts_as_the_method_has_it() {
        assert_eq!(kept(0.5, &found(999, 1000)), 0.5);
        assert_eq!(kept(0.5, &EpochFindings { footprint_blocks: 1000, ..EpochFindings::default() }), 0.5);
        // It did nothing: what is known of it is of epochs before.
        assert_eq!(kept(0.5, &found(5000, 0)), 0.5);
    }

    #[test]
    fn what_comes_again_after_all_sorts_of_times_is_no_round() {
        let useful = [(2000, 30), (5000, 70)].into_iter().collect();
        let found = EpochFindings { useful, footprint_blocks: 1000, ..EpochFindings::default() };
        assert_eq!(kept(0.5, &found), 0.5);
        let useful = [(2500, 30), (5000, 70)].into_iter().collect();
        assert_eq!(kept(0.5, &EpochFindings { useful, ..found }), 0.9375);
    }

    #[test]
    fn five_rounds_count_and_sixteen_epochs_at_most() {
        assert_eq!(kept(0.5, &found(1000, 1000)), 0.8);
        assert_eq!(kept(0.5, &found(2000, 1000)), 0.9);
        assert_eq!(kept(0.9, &found(1000, 1000)), 0.9, "the method remembers more");
        assert_eq!(kept(0.5, &found(16_000, 1000)), 0.9375);
        // One block or two an epoch of what was a loop once.
        assert_eq!(kept(0.5, &found(17_000, 1000)), 0.5);
    }

    #[test]
    fn a_method_that_forgets_forgets() {
        assert_eq!(kept(0.0, &found(2000, 1000)), 0.0);
    }
}
