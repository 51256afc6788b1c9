//! Parts joined against one lane that took everything.

use super::*;
use crate::Piece;
use crate::lane::naive::{Request, feed, requests};
use larder_trace::{Rng, Zipf};
use proptest::prelude::*;

type Lru = Lane<LruModel, Exact>;

/// A stretch that owns what it holds.
type Owned = (Vec<BlockId>, Vec<Piece>);

/// Requests as stretches, `each` pieces long.
fn stretches(requests: &[Request], each: usize) -> Vec<Owned> {
    let mut all = Vec::new();
    feed(requests, each, |stretch| all.push((stretch.blocks.to_vec(), stretch.pieces.to_vec())));
    all
}

fn process(stretches: &[Owned], mut take: impl FnMut(&Stretch<'_>)) {
    stretches.iter().for_each(|(blocks, pieces)| take(&Stretch { blocks, pieces }));
}

fn lane() -> Lru {
    Lane::new(LruModel::new(), Exact::new())
}

/// What a lane counted that took the stretches of every other range of `cuts` itself, and the others as parts.
fn join(lane: &mut Lru, stretches: &[Owned], cuts: &[usize], alone: bool) {
    for (at, range) in cuts.windows(2).enumerate() {
        let stretches = &stretches[range[0]..range[1]];
        if alone && at % 3 == 2 {
            process(stretches, |stretch| lane.process(stretch));
        } else {
            let mut part = LruPart::new();
            process(stretches, |stretch| part.process(stretch));
            lane.join(&part);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn parts_count_what_one_lane_counts(
        requests in requests(&[Op::Read, Op::Write, Op::Read, Op::Write, Op::Discard, Op::Populate], 12, 150),
        each in 1usize..7, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), alone in any::<bool>(),
        compact in any::<bool>(),
    ) {
        let stretches = stretches(&requests, each);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stretches.len() + 1)).collect();
        cuts.extend([0, stretches.len()]);
        cuts.sort_unstable();
        let (mut whole, mut joined) = (lane(), lane());
        process(&stretches, |stretch| whole.process(stretch));
        join(&mut joined, &stretches, &cuts, alone);
        prop_assert_eq!(joined.counted(), whole.counted());
        if compact {
            joined.model_mut().compact(0);
        }
        // The states are alike too: what comes later counts the same.
        process(&stretches, |stretch| whole.process(stretch));
        process(&stretches, |stretch| joined.process(stretch));
        prop_assert_eq!(joined.counted(), whole.counted());
    }
}

#[test]
fn long_parts_count_what_one_lane_counts() {
    let zipf = Zipf::new(20_000, 0.9).expect("it is one");
    let (mut rng, mut blocks) = (Rng::new(3), crate::Blocks::new(1));
    let mut requests: Vec<Request> = Vec::new();
    for _ in 0..60_000 {
        let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard][rng.below(5) as usize];
        let op = if op == Op::Discard && rng.below(20) > 0 { Op::Read } else { op };
        let first = zipf.draw(&mut rng);
        let keys = first..first + 1 + rng.below(3);
        requests.push((op, keys.map(|key| blocks.number(key).expect("they are few")).collect()));
    }
    let stretches = stretches(&requests, 100);
    let (mut whole, mut joined) = (lane(), lane());
    process(&stretches, |stretch| whole.process(stretch));
    let cuts: Vec<_> = (0..=stretches.len()).step_by(97).chain([stretches.len()]).collect();
    join(&mut joined, &stretches, &cuts, false);
    assert_eq!(joined.counted(), whole.counted());
}

#[test]
fn a_request_may_end_in_a_part_that_has_none_of_its_blocks() {
    let piece = |op, last, end| Piece { op, last, end };
    let before = (vec![0, 1, 0], vec![piece(Op::Write, true, 2), piece(Op::Read, false, 3)]);
    let after = (vec![1], vec![piece(Op::Read, true, 0), piece(Op::Read, true, 1)]);
    let stretches = [before, after];
    let (mut whole, mut joined) = (lane(), lane());
    process(&stretches, |stretch| whole.process(stretch));
    join(&mut joined, &stretches, &[0, 1, 2], false);
    assert_eq!(joined.counted(), whole.counted());
}
