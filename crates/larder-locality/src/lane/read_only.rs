//! The stack of `ro`: reads as LRU; a write makes its block leave, and is never a hit.

use crate::BlockId;

use super::stack::Stack;
use super::{Model, NEVER, Record};

/// The [`Model`] of LRU caches under the write policy `ro`.
///
/// An access takes time in the logarithm of the stack. Memory: 4 bytes a block, 1 to 2 for the timeline, 4 for every free place.
#[derive(Clone, Debug)]
pub struct ReadOnlyModel {
    stack: Stack,
}

impl ReadOnlyModel {
    /// Empty caches.
    pub fn new() -> Self {
        Self { stack: Stack::new() }
    }
}

impl Default for ReadOnlyModel {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for ReadOnlyModel {
    #[inline]
    fn read(&mut self, block: BlockId, _record: &mut impl Record) -> u32 {
        self.stack.access(block)
    }

    #[inline]
    fn write(&mut self, block: BlockId, record: &mut impl Record) -> u32 {
        let depth = self.stack.remove(block);
        if depth != NEVER {
            record.invalidated(depth);
        }
        NEVER
    }

    fn discard(&mut self, block: BlockId, _record: &mut impl Record) {
        self.stack.remove(block);
    }

    fn retain(&mut self, renumbered: &[BlockId]) {
        self.stack.retain(renumbered);
    }

    #[inline]
    fn warm(&self, blocks: &[BlockId]) -> u32 {
        self.stack.warm(blocks)
    }

    fn memory_bytes(&self) -> usize {
        self.stack.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::naive::requests;
    use crate::lane::trials::{hold_curves, hold_order};
    use crate::{CurvePolicy, Op};
    use proptest::prelude::*;

    const OPS: &[Op] = &[Op::Read, Op::Read, Op::Read, Op::Write, Op::Discard, Op::Populate];

    proptest! {
        #[test]
        fn curves_are_those_of_a_cache_of_each_size(requests in requests(OPS, 20, 150), each in 1usize..9) {
            hold_curves(ReadOnlyModel::new(), CurvePolicy::ReadOnly, &requests, each, 22);
        }

        #[test]
        fn what_is_forgotten_leaves_no_trace(
            reads in requests(&[Op::Read], 20, 60), mixed in requests(OPS, 20, 60), kept in prop::collection::vec(any::<bool>(), 20),
        ) {
            hold_order(ReadOnlyModel::new(), &reads, &kept, false);
            hold_order(ReadOnlyModel::new(), &mixed, &kept, true);
        }
    }

    proptest! {
        // Long enough for slots to be numbered anew.
        #![proptest_config(ProptestConfig::with_cases(6))]
        #[test]
        fn and_stay_so_in_the_long_run(requests in requests(&OPS[1..5], 40, 3000)) {
            hold_curves(ReadOnlyModel::new(), CurvePolicy::ReadOnly, &requests, 100, 42);
        }
    }
}
