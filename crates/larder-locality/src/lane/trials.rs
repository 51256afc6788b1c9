//! What the tests of the models have in common: curves against simulated caches, and blocks that are forgotten.

use crate::{BlockId, CurvePolicy, PolicyCurves};

use super::naive::{Request, check, feed};
use super::{Exact, Lane, Model, NEVER};

/// A model takes requests: its curves must be those of caches simulated one by one, up to a size of `most` blocks and beyond.
/// In between it is told to forget no block, which must change nothing.
pub(crate) fn hold_curves<M: Model>(
    model: M,
    policy: CurvePolicy,
    requests: &[Request],
    each: usize,
    most: usize,
) {
    let mut lane = Lane::new(model, Exact::new());
    let (before, after) = requests.split_at(requests.len() / 2 / 2 * 2);
    feed(before, each, |stretch| lane.process(stretch));
    let known = before.iter().flat_map(|(_, blocks)| blocks).max().map_or(0, |&last| last + 1);
    lane.model_mut().retain(&(0..known).collect::<Vec<_>>());
    feed(after, each, |stretch| lane.process(stretch));
    check(&PolicyCurves::new(policy, lane.counted()), requests, most);
}

/// A model takes requests and forgets some blocks: the others must lie in their order; without holes one behind the other.
pub(crate) fn hold_order<M: Model + Clone>(model: M, requests: &[Request], kept: &[bool], holes: bool) {
    let mut lane = Lane::new(model, Exact::new());
    feed(requests, 9, |stretch| lane.process(stretch));
    let mut numbers = 0;
    let number = |&kept: &bool| {
        numbers += BlockId::from(kept);
        if kept { numbers - 1 } else { NEVER }
    };
    let renumbered: Vec<_> = kept.iter().map(number).collect();
    let stayed = (0..).zip(&renumbered).filter(|&(_, &now)| now != NEVER);
    let order = in_order(lane.model_mut(), stayed.map(|(old, _)| old));
    lane.model_mut().retain(&renumbered);
    let now = in_order(lane.model_mut(), 0..numbers);
    let blocks = |order: &[(u32, BlockId)]| order.iter().map(|&(_, block)| block).collect::<Vec<_>>();
    let expected: Vec<_> = blocks(&order).iter().map(|&old| renumbered[old as usize]).collect();
    assert_eq!(blocks(&now), expected);
    let deeper = now.iter().zip(&order).find(|((now, _), (before, _))| now > before);
    assert_eq!(deeper, None, "forgetting lets nothing sink");
    if !holes {
        assert!(now.iter().map(|&(depth, _)| depth).eq(1..=now.len() as u32), "{now:?}");
    }
}

/// The blocks that some cache holds, with their sizes, in the order of them.
fn in_order<M: Model + Clone>(model: &M, blocks: impl Iterator<Item = BlockId>) -> Vec<(u32, BlockId)> {
    let depths = blocks.map(|block| (model.clone().read(block, &mut Exact::new()), block));
    let mut held: Vec<_> = depths.filter(|&(depth, _)| depth != NEVER).collect();
    held.sort_unstable();
    held
}
