//! The stack of `wt-noalloc` against simulated caches, and against a stack that is searched from the top.

use super::*;
use crate::lane::Exact;
use crate::lane::naive::requests;
use crate::lane::trials::{hold_curves, hold_order};
use crate::{CurvePolicy, Op};
use proptest::prelude::*;

const OPS: &[Op] = &[Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard, Op::Populate];
const POLICY: CurvePolicy = CurvePolicy::WriteThroughNoAllocate;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn curves_are_those_of_a_cache_of_each_size(requests in requests(&OPS[..4], 20, 150), each in 1usize..9) {
        hold_curves(NoAllocateModel::new(), POLICY, &requests, each, 22);
    }

    #[test]
    fn with_discards_too(requests in requests(OPS, 20, 150), each in 1usize..9) {
        hold_curves(NoAllocateModel::new(), POLICY, &requests, each, 22);
    }

    #[test]
    fn what_is_forgotten_leaves_no_trace(
        requests in requests(OPS, 20, 80), kept in prop::collection::vec(any::<bool>(), 20),
    ) {
        hold_order(NoAllocateModel::new(), &requests, &kept, true);
        let whole: Vec<_> = requests.into_iter().filter(|&(op, _)| op != Op::Discard).collect();
        hold_order(NoAllocateModel::new(), &whole, &kept, false);
    }
}

/// Mattson's general stack: at each place a block and the time of its last access, or a hole.
#[derive(Default)]
struct Plain {
    places: Vec<Option<(BlockId, u32)>>,
    now: u32,
}

impl Plain {
    fn take(&mut self, op: Op, block: BlockId) -> u32 {
        self.now += 1;
        let at = self.places.iter().position(|place| place.is_some_and(|(other, _)| other == block));
        match op {
            Op::Read => self.read(block, at.unwrap_or(self.places.len())),
            Op::Write => at.into_iter().for_each(|at| self.places[at] = Some((block, self.now))),
            _ => at.into_iter().for_each(|at| self.places[at] = None),
        }
        at.map_or(NEVER, |at| at as u32 + 1)
    }

    fn read(&mut self, block: BlockId, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            *place = None;
        }
        let mut down = (block, self.now);
        for place in &mut self.places {
            match place {
                Some(other) if other.1 < down.1 => std::mem::swap(other, &mut down),
                Some(_) => {}
                None => {
                    *place = Some(down);
                    return;
                }
            }
        }
        self.places.push(Some(down));
    }
}

fn hold_to_plain(accesses: impl IntoIterator<Item = (Op, BlockId)>) {
    let (mut model, mut record, mut plain) = (NoAllocateModel::new(), Exact::new(), Plain::default());
    for (at, (op, block)) in accesses.into_iter().enumerate() {
        let size = plain.take(op, block);
        match op {
            Op::Read => assert_eq!(model.read(block, &mut record), size, "read {at}"),
            Op::Write => assert_eq!(model.write(block, &mut record), size, "write {at}"),
            _ => model.discard(block, &mut record),
        }
    }
}

/// Runs over neighbouring blocks, forwards or backwards: they pin whole stairs.
fn runs(blocks: u32) -> impl Strategy<Value = Vec<(Op, BlockId)>> {
    let op = prop_oneof![6 => Just(Op::Read), 6 => Just(Op::Write), 1 => Just(Op::Discard)];
    let run = (op, 0..blocks, 1..blocks, any::<bool>()).prop_map(move |(op, first, count, forwards)| {
        let count = if op == Op::Discard { count / 8 } else { count };
        let at = move |at: u32| first + if forwards { at } else { count - 1 - at };
        (0..count).map(move |step| (op, at(step) % blocks)).collect::<Vec<_>>()
    });
    prop::collection::vec(run, 1..40).prop_map(|runs| runs.concat())
}

proptest! {
    // Long enough for slots to be numbered anew, over enough blocks for several chunks of places.
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn runs_are_served_as_by_a_plain_stack(accesses in prop_oneof![runs(30), runs(400)]) {
        hold_to_plain(accesses);
    }

    #[test]
    fn and_so_are_scattered_accesses(
        steps in prop::collection::vec((prop::sample::select(OPS), 0u32..300, 0u32..300), 0..6000), discards in any::<bool>(),
    ) {
        hold_to_plain(steps.into_iter().filter_map(|(op, one, other)| match op {
            Op::Populate => None,
            Op::Discard if !discards => None,
            // Few blocks are accessed often, and many rarely.
            op => Some((op, one * other / 300)),
        }));
    }
}
