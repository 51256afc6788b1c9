//! The LRU lane in parallel: parts of the stream are analyzed each alone, and joined in their order.
//!
//! After PARDA (Niu, Dinan, Lu, Sadayappan, "PARDA: a fast parallel reuse distance analysis algorithm", IPDPS 2012). What
//! happens between two accesses to a block in the same part is known within the part. A part's *first* access to a block is
//! put off: what came before the part decides it. The part keeps a journal of those, and of what else waits on them;
//! [`Lane::join`] takes the journal through the stack as it is before the part, and lays the part's own stack on top. The
//! counts are those of one lane that took everything, to the last one.
//!
//! Only first accesses are left to be done one part after the other: the longer the parts, the fewer they are.

use std::ops::Range;

use crate::{AccessKind, BlockId, Op, Stretch};

use super::lru::UNWRITTEN;
use super::{Exact, Lane, LruModel, Model, NEVER, Record, WARM};

/// A part of the stream, analyzed alone, for [`Lane::join`].
///
/// Memory is 8 bytes for each block of the footprint so far, and some 60 for each block accessed in the part.
#[derive(Clone, Debug, Default)]
pub struct LruPart {
    stack: LruModel,
    record: Exact,
    /// What the stack before the part is to go through, in its order.
    journal: Vec<Step>,
    /// Requests that wait, in their order.
    requests: Vec<Waiting>,
    /// The request under way: the largest size that is known of its blocks.
    from: u32,
    /// The request under way has a first access.
    waits: bool,
    /// A request has ended, so that the one under way began in the part.
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    block: BlockId,
    /// Of [`What::Cleaned`] a size, else the places of the part's stack at that time.
    size: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A first access to a block, which `took_hole`: one of the part's stack. Some are requests of their own, `alone`.
    First { kind: AccessKind, took_hole: bool, alone: bool },
    /// A block is written again, or leaves, that was only read in the part so far; served from this size on at most.
    Cleaned,
    /// A block leaves that is not in the part's stack.
    Discard,
}

/// A request that waits for a first access of its own, or for its begin before the part.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    kind: AccessKind,
    /// The largest size that is known of its blocks.
    from: u32,
    /// Steps of the journal up to its end.
    steps: usize,
}

impl LruPart {
    /// An empty part.
    pub fn new() -> Self {
        Self::default()
    }

    /// Take what comes next. Blocks are numbered as in the whole stream.
    pub fn process(&mut self, stretch: &Stretch<'_>) {
        for (piece, range) in stretch.parts() {
            match piece.op {
                Op::Read => self.part(stretch, range, piece.last, AccessKind::Read),
                Op::Write => self.part(stretch, range, piece.last, AccessKind::Write),
                Op::Discard => stretch.blocks[range].iter().for_each(|&block| self.discard(block)),
                Op::Populate => {}
            }
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.stack.memory_bytes()
            + self.record.memory_bytes()
            + self.journal.capacity() * size_of::<Step>()
            + self.requests.capacity() * size_of::<Waiting>()
    }

    /// A part of a request, maybe all of it.
    #[inline]
    fn part(&mut self, stretch: &Stretch<'_>, range: Range<usize>, last: bool, kind: AccessKind) {
        let alone = last && range.len() == 1 && self.ended && self.from == 0 && !self.waits;
        for at in range {
            if at.is_multiple_of(WARM) {
                let ahead = &stretch.blocks[at..stretch.blocks.len().min(at + WARM)];
                std::hint::black_box(self.stack.warm(ahead));
            }
            match self.access(stretch.blocks[at], kind, alone) {
                NEVER => self.waits = !alone,
                from if alone => self.record.request_of_one(kind, from),
                from => {
                    self.record.block(kind, from);
                    self.from = self.from.max(from);
                }
            }
        }
        if last && !alone {
            self.end(kind);
        }
    }

    fn end(&mut self, kind: AccessKind) {
        let from = std::mem::take(&mut self.from);
        let waits = std::mem::take(&mut self.waits);
        let begun = std::mem::replace(&mut self.ended, true);
        if waits || !begun {
            self.requests.push(Waiting { kind, from, steps: self.journal.len() });
        } else {
            self.record.request(kind, from);
        }
    }

    /// The smallest cache that served a block; [`NEVER`] for a first access.
    #[inline]
    fn access(&mut self, block: BlockId, kind: AccessKind, alone: bool) -> u32 {
        let (depth, took_hole) = (self.stack.depth(), self.stack.has_holes());
        let (size, known) = self.stack.touch(block);
        let unwritten = known.dirty & UNWRITTEN;
        match kind {
            _ if size == NEVER => {
                known.dirty = if kind == AccessKind::Read { UNWRITTEN | 1 } else { 1 };
                self.journal.push(Step { block, size: depth, what: What::First { kind, took_hole, alone } });
            }
            AccessKind::Read => known.dirty = known.dirty.max(unwritten | size),
            AccessKind::Write => {
                if unwritten == 0 {
                    known.written_back(size, &mut self.record);
                } else {
                    let size = size.max(known.dirty & !UNWRITTEN);
                    self.journal.push(Step { block, size, what: What::Cleaned });
                }
                known.dirty = 1;
            }
        }
        size
    }

    fn discard(&mut self, block: BlockId) {
        let Some((size, known)) = self.stack.find(block) else {
            let size = self.stack.depth();
            return self.journal.push(Step { block, size, what: What::Discard });
        };
        if known.dirty & UNWRITTEN != 0 {
            let size = size.max(known.dirty & !UNWRITTEN);
            self.journal.push(Step { block, size, what: What::Cleaned });
            known.dirty = NEVER;
        }
        self.stack.discard(block, &mut self.record);
    }
}

impl Lane<LruModel, Exact> {
    /// Take a part that was analyzed alone, as if what it took had come here next.
    ///
    /// Takes the time of an access for each block accessed in the part, and some steps for each block of the footprint.
    pub fn join(&mut self, part: &LruPart) {
        let mut requests = part.requests.iter().peekable();
        for (at, &step) in part.journal.iter().enumerate() {
            while let Some(request) = requests.next_if(|request| request.steps == at) {
                self.end(request);
            }
            if at.is_multiple_of(WARM) {
                self.warm_steps(&part.journal[at..part.journal.len().min(at + WARM)]);
            }
            self.step(step);
        }
        requests.for_each(|request| self.end(request));
        self.from = self.from.max(part.from);
        self.record.merge(&part.record);
        self.model.lay_on_top(&part.stack);
    }

    #[inline]
    fn step(&mut self, Step { block, size, what }: Step) {
        let record = &mut self.record;
        match what {
            What::First { kind, took_hole, alone } => {
                let from = self.model.first(block, kind, size, took_hole, record);
                if alone {
                    return record.request_of_one(kind, from);
                }
                record.block(kind, from);
                self.from = self.from.max(from);
            }
            What::Cleaned => self.model.cleaned(block, size, record),
            What::Discard => self.model.discard_below(block, size, record),
        }
    }

    fn end(&mut self, request: &Waiting) {
        let from = std::mem::take(&mut self.from);
        self.record.request(request.kind, from.max(request.from));
    }

    fn warm_steps(&self, steps: &[Step]) {
        let mut blocks = [0; WARM];
        blocks.iter_mut().zip(steps).for_each(|(block, step)| *block = step.block);
        std::hint::black_box(self.model.warm(&blocks[..steps.len()]));
    }
}

#[cfg(test)]
mod tests;
