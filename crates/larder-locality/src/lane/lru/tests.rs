//! The LRU lane against simulations of single caches, and its distances against a stack searched from the top.

use super::*;
use crate::lane::naive::{Request, check, feed, requests};
use crate::lane::{Exact, Lane};
use crate::{CurvePolicy, Op, PolicyCurves};
use larder_trace::Rng;
use proptest::prelude::*;

const BLOCKS: u32 = 12;

type Lru = Lane<LruModel, Exact>;

fn lane() -> Lru {
    Lane::new(LruModel::new(), Exact::new())
}

fn curves(lane: &Lru, policy: CurvePolicy) -> PolicyCurves {
    PolicyCurves::new(policy, lane.counted())
}

/// Hold a lane that took these requests against the simulations.
fn check_both(lane: &Lru, requests: &[Request]) {
    check(&curves(lane, CurvePolicy::WriteBack), requests, BLOCKS as usize + 2);
    check(&curves(lane, CurvePolicy::WriteThrough), requests, BLOCKS as usize + 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn curves_are_those_of_simulated_caches(
        requests in requests(&[Op::Read, Op::Write, Op::Discard, Op::Populate], BLOCKS, 120),
        each in 1usize..9, compact in 1usize..9,
    ) {
        let (mut lane, mut stretches) = (lane(), 0);
        feed(&requests, each, |stretch| {
            lane.process(stretch);
            stretches += 1;
            if stretches % compact == 0 {
                lane.model_mut().compact(0);
            }
        });
        check_both(&lane, &requests);
    }

    #[test]
    fn without_discards_too(requests in requests(&[Op::Read, Op::Write], BLOCKS, 200), each in 1usize..9) {
        let mut lane = lane();
        feed(&requests, each, |stretch| lane.process(stretch));
        check_both(&lane, &requests);
    }

    #[test]
    fn forgotten_blocks_leave_the_others_in_their_order(
        before in requests(&[Op::Read, Op::Write], BLOCKS, 60), kept in prop::collection::vec(any::<bool>(), BLOCKS as usize),
    ) {
        let mut lane = lane();
        feed(&before, 5, |stretch| lane.process(stretch));
        let known = lane.model.blocks.len();
        let mut next = 0;
        let renumbered: Vec<_> = kept[..known].iter().map(|&kept| {
            next += u32::from(kept);
            if kept { next - 1 } else { NEVER }
        }).collect();
        lane.model.retain(&renumbered);
        // The reads of a lane to which only the kept blocks were ever told.
        let keep = |blocks: &Vec<BlockId>| {
            blocks.iter().map(|&block| renumbered[block as usize]).filter(|&block| block != NEVER).collect::<Vec<_>>()
        };
        let thinned: Vec<Request> = before.iter().map(|(op, blocks)| (*op, keep(blocks))).collect();
        let mut alone = self::lane();
        feed(&thinned, 5, |stretch| alone.process(stretch));
        for block in (0..next).rev() {
            let record = &mut Exact::new();
            prop_assert_eq!(lane.model.read(block, record), alone.model.read(block, record));
        }
    }
}

/// Requests of one block, of which `reads` in a hundred read, the lower blocks more often than the others.
fn skewed(blocks: u64, count: usize, reads: u64) -> Vec<Request> {
    let mut rng = Rng::new(7);
    let mut draw = |bound| rng.below(bound);
    let request = |_| {
        let block = draw(blocks).min(draw(blocks)) as BlockId;
        (if draw(100) < reads { Op::Read } else { Op::Write }, vec![block])
    };
    (0..count).map(request).collect()
}

#[test]
fn distances_are_those_of_a_stack_through_many_compactions() {
    // Every block once at first, so that their numbers are in the order of appearance.
    let mut requests: Vec<Request> = (0..400).map(|block| (Op::Write, vec![block])).collect();
    requests.extend(skewed(400, 30_000, 60));
    let mut lane = lane();
    feed(&requests, 100, |stretch| lane.process(stretch));
    let (mut stack, mut all, mut useful) = (Vec::new(), Vec::new(), Vec::new());
    for (op, blocks) in &requests {
        if let Some(distance) = stack.iter().position(|known| *known == blocks[0]) {
            stack.remove(distance);
            all.push((distance as u64, 1));
            useful.extend((*op == Op::Read).then_some((distance as u64, 1)));
        }
        stack.insert(0, blocks[0]);
    }
    let curves = curves(&lane, CurvePolicy::WriteBack);
    assert_eq!(curves.distances(), all.into_iter().collect());
    assert_eq!(curves.useful_distances(), useful.into_iter().collect());
}

#[test]
fn figure_5_of_eci_cache() {
    let workload = [
        (Op::Write, 0),
        (Op::Write, 1),
        (Op::Read, 0),
        (Op::Write, 2),
        (Op::Write, 3),
        (Op::Write, 4),
        (Op::Write, 1),
    ];
    let requests: Vec<Request> = workload.iter().map(|&(op, block)| (op, vec![block])).collect();
    let mut lane = lane();
    feed(&requests, 7, |stretch| lane.process(stretch));
    let curves = curves(&lane, CurvePolicy::WriteBack);
    assert_eq!((curves.distances().max(), curves.full_blocks()), (Some(4), 5));
    assert_eq!(curves.useful_distances().max(), Some(1));
}
