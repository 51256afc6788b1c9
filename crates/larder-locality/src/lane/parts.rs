//! The LRU lane in parallel: parts of the stream are analyzed each alone, and joined in their order.
//!
//! After PARDA (Niu, Dinan, Lu, Sadayappan, "PARDA: a fast parallel reuse distance analysis algorithm", IPDPS 2012). What
//! happens between two accesses to a block in the same part is known within the part. The *first* access of a part to a block
//! is put off: what came before the part decides it. The part keeps a journal of those, and of what else waits on them;
//! [`Lane::join`] takes the journal through the stack as it is before the part, and lays the part's own stack on top. The
//! counts are those of one lane that took everything, to the last one.
//!
//! Only first accesses are left to be done one part after the other: the longer the parts, the fewer they are.

use crate::{AccessKind, BlockId, Op, Stretch};

use super::lru::LruModel;
use super::{Exact, Lane, NEVER, Record};

/// A stretch of the stream, of any length, analyzed alone; for [`Lane::join`].
///
/// Memory is 8 bytes for each block of the footprint so far, and some 50 for each block accessed.
#[derive(Clone, Debug, Default)]
pub struct LruPart {
    stack: LruModel,
    record: Exact,
    /// What the stack before the part is to go through, in its order.
    journal: Vec<Step>,
    /// Requests that wait.
    requests: Vec<Waiting>,
    /// The request under way: the largest size that is known of its blocks so far.
    from: u32,
    /// The request under way waits: for a first access, or for its begin in the part before.
    waits: bool,
    /// A request has ended.
    ended: bool,
}

/// What the stack before the part is to go through.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A first access to a block.
    First {
        block: BlockId,
        /// The part's stack above, at that time.
        above: u32,
        kind: AccessKind,
        /// It took a hole in the part's stack: none of those before the part.
        took_hole: bool,
        /// It was a request of its own.
        alone: bool,
    },
    /// A block is written, or leaves, for the first time after it was first read, and is served from this size on, or was in
    /// between: what was dirty of it before the part is no more.
    Cleaned { block: BlockId, size: u32 },
    /// A block leaves that was not accessed in the part, or not again since it left.
    Discard {
        block: BlockId,
        /// The part's stack above, at that time.
        above: u32,
    },
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    kind: AccessKind,
    /// The largest size that is known of its blocks.
    from: u32,
    /// The steps of the journal up to its end.
    steps: usize,
}

/// Marks a block that was not written in the part. What else there is in [`Known::dirty`](super::lru::Known) is then the
/// largest size that served it since its first access.
const UNWRITTEN: u32 = 1 << 31;

/// Blocks whose memory is read together.
const WARM: usize = 32;

impl LruPart {
    /// An empty part.
    pub fn new() -> Self {
        Self::default()
    }

    /// Take what comes next. Blocks are numbered as in the whole stream.
    pub fn process(&mut self, stretch: &Stretch<'_>) {
        let mut begin = 0;
        for piece in stretch.pieces {
            let range = begin..piece.end as usize;
            begin = range.end;
            match piece.op {
                Op::Read => self.part(stretch, range, piece.last, AccessKind::Read),
                Op::Write => self.part(stretch, range, piece.last, AccessKind::Write),
                Op::Discard => stretch.blocks[range].iter().for_each(|&block| self.discard(block)),
                Op::Populate => {}
            }
        }
    }
}
