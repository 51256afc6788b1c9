//! Random histories with crashes, against the model.

use super::model::Model;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// After every crash: all that was flushed, a prefix of what was not, and no clean block that a write past the
    /// cache may have overtaken.
    #[test]
    fn what_a_crash_leaves_is_what_the_model_allows(
        records in prop::sample::select(vec![32u64, 33, 40, 64]),
        steps in prop::collection::vec((0u8..26, any::<u64>()), 1..300),
    ) {
        let mut model = Model::new(records);
        for (kind, arg) in steps {
            model.step(kind, arg);
        }
        model.step(25, 7);
    }
}

/// Long enough for the ring to turn many times, so that tails, second copies and old records all matter.
#[test]
fn the_ring_turns_many_times() {
    for seed in 0..20 {
        let mut rng = larder_policy::Rng::new(seed);
        let mut model = Model::new(32 + seed % 5);
        for _ in 0..3000 {
            model.step(rng.below(24) as u8, rng.next_u64());
            if rng.below(60) == 0 {
                model.step(24 + rng.below(2) as u8, rng.next_u64());
            }
        }
        assert!(
            model.crashes > 10 && model.drafts > 200,
            "{} crashes, {} drafts",
            model.crashes,
            model.drafts
        );
    }
}
