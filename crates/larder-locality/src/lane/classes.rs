//! Accesses by request class: what was done last to each block, in a byte.

use crate::{BlockId, ClassCounts, Op, Stretch};

/// Nothing was done to the block yet.
const NOTHING: u8 = 0;
const READ: u8 = 1;
const WRITE: u8 = 2;

/// Counts the request classes of a stream of accesses. A discard leaves what was done last to its blocks as it is.
#[derive(Clone, Debug, Default)]
pub struct ClassCounter {
    last: Vec<u8>,
    /// By what was done last, and whether the access writes.
    counts: [[u64; 2]; 3],
}

impl ClassCounter {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Take what comes next.
    pub fn count(&mut self, stretch: &Stretch<'_>) {
        for (piece, range) in stretch.parts() {
            let blocks = &stretch.blocks[range];
            match piece.op {
                Op::Read => blocks.iter().for_each(|&block| self.access(block, READ)),
                Op::Write => blocks.iter().for_each(|&block| self.access(block, WRITE)),
                Op::Discard | Op::Populate => {}
            }
        }
    }

    /// All counts since the start: those of a window are the difference of two.
    pub fn counts(&self) -> ClassCounts {
        let [[cr, cw], [rar, war], [raw, waw]] = self.counts;
        ClassCounts { cr, cw, rar, raw, war, waw }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.last.capacity()
    }

    #[inline]
    fn access(&mut self, block: BlockId, kind: u8) {
        let block = block as usize;
        if block >= self.last.len() {
            self.last.resize(block + 1, NOTHING);
        }
        let last = std::mem::replace(&mut self.last[block], kind);
        self.counts[usize::from(last)][usize::from(kind == WRITE)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::naive::{Request, feed, requests};
    use crate::{AccessKind, RequestClass};
    use proptest::prelude::*;

    fn model(requests: &[Request]) -> ClassCounts {
        let (mut last, mut counts) = (std::collections::BTreeMap::new(), ClassCounts::default());
        for (op, blocks) in requests {
            let kind = match op {
                Op::Read => AccessKind::Read,
                Op::Write => AccessKind::Write,
                _ => continue,
            };
            blocks.iter().for_each(|&block| counts.count(RequestClass::of(last.insert(block, kind), kind)));
        }
        counts
    }

    proptest! {
        #[test]
        fn classes_are_those_of_the_last_access_to_each_block(
            requests in requests(&[Op::Read, Op::Write, Op::Discard, Op::Populate], 12, 80), each in 1usize..9,
        ) {
            let mut counter = ClassCounter::new();
            feed(&requests, each, |stretch| counter.count(stretch));
            prop_assert_eq!(counter.counts(), model(&requests));
        }
    }
}
