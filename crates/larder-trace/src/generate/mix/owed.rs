//! How many requests of each class are still to come, and which may be the next.

use super::timeline::Kind;
use crate::Rng;

/// A request class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Cr,
    Cw,
    Rar,
    Raw,
    War,
    Waw,
}

/// The classes in the order in which they are counted.
pub(super) const CLASSES: [Class; 6] = [Class::Cr, Class::Cw, Class::Rar, Class::Raw, Class::War, Class::Waw];

impl Class {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cr => "CR",
            Self::Cw => "CW",
            Self::Rar => "RAR",
            Self::Raw => "RAW",
            Self::War => "WAR",
            Self::Waw => "WAW",
        }
    }

    /// What an access of the class does.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Cr | Self::Rar | Self::Raw => Kind::Read,
            Self::Cw | Self::War | Self::Waw => Kind::Write,
        }
    }

    /// What the access before it to the same block did; none for first accesses.
    pub(super) fn last(self) -> Option<Kind> {
        match self {
            Self::Cr | Self::Cw => None,
            Self::Rar | Self::War => Some(Kind::Read),
            Self::Raw | Self::Waw => Some(Kind::Write),
        }
    }
}

/// A number of requests for each class, in the order of [`CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts(pub(super) [u64; 6]);

impl Counts {
    /// Whether these requests can be had in some order, from a state in which the last access was a read for
    /// `blocks[0]` blocks and a write for `blocks[1]`.
    ///
    /// RAW takes a block from the written to the read, WAR one back: at the end neither may be below zero. RAR and WAW
    /// need that there is a read and a written block at some time, and all but first accesses that there is any block.
    /// This suffices: have the first accesses, then every RAR and WAW for which there is a block, and then alternate
    /// WAR and RAW while both are owed (one of them always has a block), and the RAR and WAW at the first change.
    pub(super) fn completable(&self, blocks: [u64; 2]) -> bool {
        let [cr, cw, rar, raw, war, waw] = self.0;
        let read_ever = blocks[0] + cr + raw;
        let written_ever = blocks[1] + cw + war;
        let any = blocks[0] + blocks[1] + cr + cw > 0 || self.total() == 0;
        let ever = (rar == 0 || read_ever > 0) && (waw == 0 || written_ever > 0);
        any && ever && war <= read_ever && raw <= written_ever
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Where rounding made RAW or WAR outgrow the blocks for it by one or two, turn one into the other.
    pub(super) fn mend_rounding(&mut self) {
        let [cr, cw, _, raw, war, _] = &mut self.0;
        if (1..=2).contains(&raw.saturating_sub(*cw + *war)) {
            (*raw, *war) = (*raw - 1, *war + 1);
        } else if (1..=2).contains(&war.saturating_sub(*cr + *raw)) {
            (*raw, *war) = (*raw + 1, *war - 1);
        }
    }

    /// A class, in proportion to its number; none if all are 0.
    fn pick(&self, rng: &mut Rng) -> Option<Class> {
        let mut at = rng.below(self.total());
        for (class, &count) in CLASSES.iter().zip(&self.0) {
            match at.checked_sub(count) {
                Some(beyond) => at = beyond,
                None => return Some(*class),
            }
        }
        None
    }
}

/// The requests that are still to come, and the blocks that they find.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    counts: Counts,
    /// Blocks last read, and last written.
    blocks: [u64; 2],
}

impl Owed {
    /// Before the first request.
    pub(super) fn new(counts: Counts) -> Self {
        Self { counts, blocks: [0, 0] }
    }

    /// The class of the next request, in proportion to what is owed of it, among those that leave a rest that can be
    /// had; none when nothing is owed.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> Option<Class> {
        let mut open = self.counts;
        for _ in CLASSES {
            let class = open.pick(rng)?;
            if let Some(next) = self.after(class) {
                *self = next;
                return Some(class);
            }
            open.0[class as usize] = 0;
        }
        None
    }

    /// The state after a request of the class (of which one is owed); none if there is no block for it, or the rest
    /// could not be had.
    fn after(&self, class: Class) -> Option<Self> {
        let mut next = self.clone();
        if let Some(last) = class.last() {
            let blocks = &mut next.blocks[last as usize];
            *blocks = blocks.checked_sub(1)?;
        }
        next.blocks[class.kind() as usize] += 1;
        next.counts.0[class as usize] -= 1;
        next.counts.completable(next.blocks).then_some(next)
    }
}

/// `total` divided in proportion to the weights, none of them negative, each within one of its exact part (largest
/// remainders). None where the weights are all 0 and the total is not.
pub(super) fn apportion<const N: usize>(total: u64, weights: [f64; N]) -> Option<[u64; N]> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return (total == 0).then_some([0; N]);
    }
    let exact = weights.map(|weight| weight / sum * total as f64);
    let mut parts = exact.map(|part| part as u64);
    let mut order: [usize; N] = std::array::from_fn(|at| at);
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = total.saturating_sub(parts.iter().sum()) as usize;
    order.iter().cycle().filter(|&&at| weights[at] > 0.0).take(missing).for_each(|&at| parts[at] += 1);
    // Only rounding in a total beyond 2^50 can have given too much.
    let excess = parts.iter().sum::<u64>().saturating_sub(total);
    let largest = parts.iter_mut().max()?;
    *largest = largest.checked_sub(excess)?;
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

    /// Whether some order has these classes, by trying all of them.
    fn completable_slowly(counts: [u64; 6], blocks: [u64; 2]) -> bool {
        if counts.iter().sum::<u64>() == 0 {
            return true;
        }
        CLASSES.into_iter().any(|class| {
            let (mut counts, mut blocks) = (counts, blocks);
            let has_block = class.last().is_none_or(|last| blocks[last as usize] > 0);
            if counts[class as usize] == 0 || !has_block {
                return false;
            }
            counts[class as usize] -= 1;
            if let Some(last) = class.last() {
                blocks[last as usize] -= 1;
            }
            blocks[class.kind() as usize] += 1;
            completable_slowly(counts, blocks)
        })
    }

    #[test]
    fn completable_agrees_with_trying_every_order() {
        // Up to one or two of each class: enough for every way to get stuck.
        for code in 0..3u64.pow(6) {
            let counts: [u64; 6] = std::array::from_fn(|at| code / 3u64.pow(at as u32) % 3);
            if counts.iter().sum::<u64>() > 6 {
                continue;
            }
            for blocks in [[0, 0], [1, 0], [0, 1], [1, 1]] {
                let slowly = completable_slowly(counts, blocks);
                assert_eq!(Counts(counts).completable(blocks), slowly, "{counts:?} {blocks:?}");
            }
        }
    }

    #[test]
    fn parts_are_within_one_of_their_share() {
        assert_eq!(apportion(10, [0.5, 0.25, 0.25]), Some([5, 3, 2]));
        assert_eq!(apportion(0, [0.0, 0.0]), Some([0, 0]));
        assert_eq!(apportion(1, [0.0, 0.0]), None);
        assert_eq!(apportion(7, [0.0, 3.0]), Some([0, 7]));
    }

    #[test]
    fn a_rounding_that_makes_a_mix_impossible_is_mended() {
        let mut counts = Counts([0, 250, 0, 501, 250, 0]);
        counts.mend_rounding();
        assert_eq!(counts, Counts([0, 250, 0, 500, 251, 0]));
        let mut counts = Counts([2, 0, 0, 5, 9, 0]);
        counts.mend_rounding();
        assert_eq!(counts, Counts([2, 0, 0, 6, 8, 0]));
        let mut counts = Counts([0, 1, 0, 9, 1, 0]);
        counts.mend_rounding();
        assert_eq!(counts, Counts([0, 1, 0, 9, 1, 0]), "this is more than rounding");
    }

    proptest! {
        #[test]
        fn every_owed_request_comes(counts in proptest::array::uniform6(0u64..40), seed: u64) {
            let counts = Counts(counts);
            prop_assume!(counts.completable([0, 0]));
            let (mut owed, mut rng) = (Owed::new(counts), Rng::new(seed));
            let mut drawn = [0; 6];
            while let Some(class) = owed.draw(&mut rng) {
                drawn[class as usize] += 1;
            }
            prop_assert_eq!(drawn, counts.0);
        }

        #[test]
        fn parts_add_up(total in 0u64..1 << 53, weights in proptest::array::uniform4(0.0f64..1.0)) {
            prop_assume!(weights.iter().sum::<f64>() > 0.0);
            let parts = apportion(total, weights).unwrap();
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
            for (part, weight) in parts.iter().zip(weights) {
                let exact = weight / weights.iter().sum::<f64>() * total as f64;
                prop_assert!((*part as f64 - exact).abs() <= 4.0, "{} of {}", part, exact);
            }
        }
    }
}
