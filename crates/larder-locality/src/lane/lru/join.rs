//! What a stack goes through when a part of the stream is joined to it: the part's first accesses, one by one, then the part's
//! own stack laid on top.

use crate::{AccessKind, BlockId};

use super::{Known, LruModel, UNKNOWN};
use crate::lane::{NEVER, Record};

/// Marks a block in a part's stack that was not written in the part. What is beside it in [`Known::dirty`] is the largest size
/// that served the block after its first access, at least 1.
pub(in crate::lane) const UNWRITTEN: u32 = 1 << 31;

impl LruModel {
    /// Places of the stack, holes among them.
    pub(in crate::lane) fn depth(&self) -> u32 {
        self.places.timeline().live()
    }

    /// True if a place is free.
    pub(in crate::lane) fn has_holes(&self) -> bool {
        self.places.has_holes()
    }

    /// The smallest cache that holds a block, if any does, and what is known of it.
    pub(in crate::lane) fn find(&mut self, block: BlockId) -> Option<(u32, &mut Known)> {
        let known = self.blocks.get_mut(block as usize).filter(|known| known.slot != NEVER)?;
        Some((self.places.size(known.slot), known))
    }

    /// A block leaves this stack for one of a part, `above` places deep by now: its size before. There it `took_hole`, or else
    /// made that stack deeper.
    pub(in crate::lane) fn first(
        &mut self,
        block: BlockId,
        kind: AccessKind,
        above: u32,
        took_hole: bool,
        record: &mut impl Record,
    ) -> u32 {
        let known = entry(&mut self.blocks, block);
        let slot = std::mem::replace(&mut known.slot, NEVER);
        let here = if took_hole {
            let size = self.places.size(slot);
            self.places.open(slot);
            size
        } else {
            self.places.leave(slot)
        };
        let size = if here == NEVER { NEVER } else { above + here };
        match kind {
            AccessKind::Read => known.dirty = known.dirty.max(size),
            AccessKind::Write => known.clean(size, record),
        }
        size
    }

    /// A block that left this stack for a part's is written there, or leaves, after it was served from `size` on at most.
    pub(in crate::lane) fn cleaned(&mut self, block: BlockId, size: u32, record: &mut impl Record) {
        entry(&mut self.blocks, block).clean(size, record);
    }

    /// A block leaves this stack, `above` places below the top.
    pub(in crate::lane) fn discard_below(&mut self, block: BlockId, above: u32, record: &mut impl Record) {
        let known = entry(&mut self.blocks, block);
        let slot = known.slot;
        if slot != NEVER {
            known.clean(above + self.places.size(slot), record);
            known.slot = NEVER;
            self.places.open(slot);
        }
    }

    /// Put the stack of a part on top. None of its blocks is left in this one.
    pub(in crate::lane) fn lay_on_top(&mut self, part: &Self) {
        let more = part.depth();
        if self.places.timeline().room() < more {
            self.compact(more);
        }
        let base = self.places.lay_on_top(&part.places);
        if self.blocks.len() < part.blocks.len() {
            self.blocks.resize(part.blocks.len(), UNKNOWN);
        }
        let ranks = part.places.timeline().ranks();
        for (known, above) in
            self.blocks.iter_mut().zip(&part.blocks).filter(|(_, above)| above.slot != NEVER)
        {
            known.slot = base + ranks.rank(above.slot);
            known.dirty = match above.dirty & UNWRITTEN {
                0 => above.dirty,
                _ => known.dirty.max(above.dirty & !UNWRITTEN),
            };
        }
    }
}

impl Known {
    fn clean(&mut self, size: u32, record: &mut impl Record) {
        self.written_back(size, record);
        self.dirty = NEVER;
    }
}

fn entry(blocks: &mut Vec<Known>, block: BlockId) -> &mut Known {
    let block = block as usize;
    if block >= blocks.len() {
        blocks.resize(block + 1, UNKNOWN);
    }
    &mut blocks[block]
}
