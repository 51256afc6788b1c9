//! The exact curves of `wb` and `wt` on several threads: the trace in parts, each analyzed alone, and joined in their order (PARDA; [`LruPart`]).
//!
//! For plans with fewer lanes than threads: a lane is one thread's work, and the others would have nothing to do.

use std::panic::resume_unwind;
use std::thread;

use larder_locality::lane::{Exact, Lane, LruModel, LruPart};
use larder_locality::{BlockId, Piece, Stretch};

use super::intake::Portion;

/// Accesses of a part: enough that most are not the first of a block in it, which are left to be done one part after the other.
pub(crate) const PART: usize = 1 << 20;

/// Parts analyzed at once: each wants memory for itself ([`LruPart`]), and what is done one part after the other soon takes longer than the rest.
const AT_ONCE_MAX: usize = 16;

/// The lane, and what it has not taken yet.
pub(crate) struct Parts {
    lane: Lane<LruModel, Exact>,
    threads: usize,
    /// Accesses of a part.
    part: usize,
    blocks: Vec<BlockId>,
    pieces: Vec<Piece>,
}

impl Parts {
    /// A lane at its start, whose parts have some `part` accesses each; as many as `threads` are analyzed at once, up to [`AT_ONCE_MAX`].
    pub(crate) fn new(threads: usize, part: usize) -> Self {
        let lane = Lane::new(LruModel::new(), Exact::new());
        Self { lane, threads: threads.min(AT_ONCE_MAX), part, blocks: Vec::new(), pieces: Vec::new() }
    }

    /// Take the next portion.
    pub(crate) fn take(&mut self, portion: &Portion) {
        let before = self.blocks.len() as u32;
        self.blocks.extend_from_slice(&portion.blocks);
        self.pieces.extend(portion.pieces.iter().map(|piece| Piece { end: piece.end + before, ..*piece }));
        if self.blocks.len().max(self.pieces.len()) >= self.threads * self.part {
            self.work();
        }
    }

    /// The lane, when it has taken everything.
    pub(crate) fn finish(mut self) -> Lane<LruModel, Exact> {
        self.work();
        self.lane
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let waiting =
            self.blocks.capacity() * size_of::<BlockId>() + self.pieces.capacity() * size_of::<Piece>();
        self.lane.memory_bytes() + waiting
    }

    /// Take what was gathered.
    fn work(&mut self) {
        let parts: Vec<_> = thread::scope(|scope| {
            let mut begin = 0;
            let each = self.pieces.len().div_ceil(self.threads).max(1);
            let spawn = |pieces: &[Piece]| {
                let end = pieces.last().map_or(begin, |last| last.end);
                let blocks = &self.blocks[begin as usize..end as usize];
                let pieces: Vec<_> =
                    pieces.iter().map(|piece| Piece { end: piece.end - begin, ..*piece }).collect();
                begin = end;
                scope.spawn(move || analyzed(&Stretch { blocks, pieces: &pieces }))
            };
            let handles: Vec<_> = self.pieces.chunks(each).map(spawn).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        parts.iter().for_each(|part| self.lane.join(part));
        self.blocks.clear();
        self.pieces.clear();
    }
}

fn analyzed(stretch: &Stretch<'_>) -> LruPart {
    let mut part = LruPart::new();
    part.process(stretch);
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_locality::Op;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn parts_make_the_whole(
            requests in prop::collection::vec(
                (prop::sample::select(&[Op::Read, Op::Write, Op::Discard]), prop::collection::vec(0u32..30, 0..5)), 0..200,
            ),
            each in 1usize..30, threads in 1usize..5, part in 1usize..40,
        ) {
            let mut lane = Lane::new(LruModel::new(), Exact::new());
            let mut parts = Parts::new(threads, part);
            for requests in requests.chunks(each) {
                let mut portion = Portion::default();
                for (op, blocks) in requests {
                    portion.blocks.extend(blocks);
                    portion.pieces.push(Piece { op: *op, last: true, end: portion.blocks.len() as u32 });
                }
                lane.process(&portion.stretch());
                parts.take(&portion);
            }
            prop_assert_eq!(parts.finish().counted(), lane.counted());
        }
    }
}
