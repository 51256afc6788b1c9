//! What is not worse than anything seen before in both of two respects: the front of pairs, kept as a staircase.

/// Pairs of numbers, none of which is at least as large as another in both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Staircase {
    /// Rising in the first, falling in the second, both strictly.
    steps: Vec<(f64, f64)>,
}

impl Staircase {
    /// Take a pair in, unless one that was taken before is no larger in either: then false.
    pub(crate) fn admit(&mut self, first: f64, second: f64) -> bool {
        let until = self.steps.partition_point(|step| step.0 <= first);
        if until.checked_sub(1).is_some_and(|before| self.steps[before].1 <= second) {
            return false;
        }
        let from = self.steps[..until].partition_point(|step| step.0 < first);
        let beaten = self.steps[from..].partition_point(|step| step.1 >= second);
        self.steps.splice(from..from + beaten, [(first, second)]);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pair_enters_unless_another_is_no_larger(
            pairs in proptest::collection::vec((0u8..12, 0u8..12), 0..60),
        ) {
            let mut staircase = Staircase::default();
            for (at, pair) in pairs.iter().enumerate() {
                let beaten = pairs[..at].iter().any(|before| before.0 <= pair.0 && before.1 <= pair.1);
                prop_assert_eq!(staircase.admit(pair.0.into(), pair.1.into()), !beaten);
            }
        }
    }
}
