//! What a tenant can choose from, and the upper concave hull of it.

/// One size that a tenant could get, above its minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Blocks beyond the minimum; below 2^32.
    pub(crate) blocks: u64,
    /// What they bring beyond what the minimum brings: a hit ratio in units of [`GAIN_UNIT`]; at most twice that, where it is corrected.
    pub(crate) gain: u64,
}

/// A hit ratio of 1. Whole numbers add up without rounding, in any order.
pub(crate) const GAIN_UNIT: u64 = 1 << 40;

impl Choice {
    /// To get the minimum.
    pub(crate) const NOTHING: Self = Self { blocks: 0, gain: 0 };
}

/// From one corner of a hull to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The tenant whose hull it is.
    pub(crate) tenant: usize,
    /// Blocks that it takes.
    pub(crate) blocks: u64,
    /// What they bring.
    pub(crate) gain: u64,
}

impl Segment {
    /// Larger for a larger gain per block.
    pub(crate) fn steeper_than(&self, other: &Self) -> bool {
        product(self.gain, other.blocks) > product(other.gain, self.blocks)
    }

    fn between(tenant: usize, from: Choice, to: Choice) -> Self {
        Self { tenant, blocks: to.blocks - from.blocks, gain: to.gain - from.gain }
    }
}

/// The segments of the upper concave hull of `choices`, each flatter than the one before it.
///
/// `choices` rise strictly in blocks and in gain, from [`Choice::NOTHING`] on.
pub(crate) fn hull(tenant: usize, choices: &[Choice]) -> Vec<Segment> {
    let mut corners: Vec<Choice> = Vec::new();
    for &choice in choices {
        while let [.., before, last] = corners[..] {
            let (to_last, onwards) =
                (Segment::between(tenant, before, last), Segment::between(tenant, last, choice));
            if to_last.steeper_than(&onwards) {
                break;
            }
            corners.pop();
        }
        corners.push(choice);
    }
    corners.windows(2).map(|pair| Segment::between(tenant, pair[0], pair[1])).collect()
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_choice_below_the_line_is_no_corner() {
        let choices =
            [(0, 0), (1, 10), (3, 12), (4, 25), (9, 30)].map(|(blocks, gain)| Choice { blocks, gain });
        let segments: Vec<_> = hull(7, &choices).iter().map(|s| (s.tenant, s.blocks, s.gain)).collect();
        assert_eq!(segments, [(7, 1, 10), (7, 3, 15), (7, 5, 5)]);
    }

    proptest! {
        #[test]
        fn a_hull_is_concave_and_covers_all_choices(steps in proptest::collection::vec((1u64..9, 1u64..9), 1..30)) {
            let mut choices = vec![Choice::NOTHING];
            for (blocks, gain) in steps {
                let last = choices[choices.len() - 1];
                choices.push(Choice { blocks: last.blocks + blocks, gain: last.gain + gain });
            }
            let segments = hull(0, &choices);
            prop_assert!(segments.windows(2).all(|pair| pair[0].steeper_than(&pair[1])));
            for choice in choices {
                let (mut left, mut height) = (choice.blocks as f64, 0.0);
                for segment in &segments {
                    let part = left.min(segment.blocks as f64);
                    height += part * segment.gain as f64 / segment.blocks as f64;
                    left -= part;
                }
                prop_assert!(left == 0.0 && height >= choice.gain as f64 - 1e-9);
            }
        }
    }
}
