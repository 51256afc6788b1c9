//! Batched population against simulated caches, and epochs in small steps.

use super::*;
use crate::lane::Exact;
use crate::lane::naive::requests;
use crate::lane::trials::{hold_curves, hold_order};
use crate::{CurvePolicy, Op};
use proptest::prelude::*;

const OPS: &[Op] = &[Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard, Op::Populate];

proptest! {
    #[test]
    fn curves_are_those_of_a_cache_of_each_size(requests in requests(OPS, 16, 150), each in 1usize..9) {
        hold_curves(BatchedModel::new(), CurvePolicy::Batched, &requests, each, 18);
    }

    #[test]
    fn what_is_forgotten_leaves_no_trace(
        requests in requests(&OPS[..4], 20, 60), later in requests(OPS, 20, 30), kept in prop::collection::vec(any::<bool>(), 20),
    ) {
        let populated = [requests, vec![(Op::Populate, Vec::new())]].concat();
        hold_order(BatchedModel::new(), &populated, &kept, false);
        hold_order(BatchedModel::new(), &[populated, later].concat(), &kept, true);
    }
}

proptest! {
    // Long enough for slots to be numbered anew amid an epoch, with blocks that were not accessed in it.
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn and_stay_so_in_the_long_run(start in requests(OPS, 60, 300), requests in requests(OPS, 30, 3000), rare in 2usize..700) {
        let mut requests = [start, requests].concat();
        let mut epochs = 0;
        requests.retain(|&(op, _)| {
            epochs += usize::from(op == Op::Populate);
            op != Op::Populate || epochs.is_multiple_of(rare)
        });
        hold_curves(BatchedModel::new(), CurvePolicy::Batched, &requests, 100, 62);
    }
}

#[test]
fn nothing_hits_before_the_first_epoch_ends() {
    let (mut model, mut record) = (BatchedModel::new(), Exact::new());
    assert_eq!([0, 1, 0].map(|block| model.read(block, &mut record)), [NEVER; 3]);
    model.populate(&mut record);
    assert_eq!([1, 0, 1, 2, 0].map(|block| model.read(block, &mut record)), [2, 1, 2, NEVER, 1]);
    model.populate(&mut record);
    assert_eq!([0, 2, 1].map(|block| model.write(block, &mut record)), [1, 2, 3]);
}
