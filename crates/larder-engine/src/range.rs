//! Discard and write-zeroes: the backing is told, and every block they touch leaves the cache.
//!
//! Blocks that are touched only in part leave as well: what the backing holds there afterwards is its own affair (a discard is advisory), and
//! a cached copy would keep saying what it held before.

use crate::{Engine, Op, OpKind, RequestKind, Target};

impl Engine {
    /// A discard or write-zeroes part has its lock.
    pub(crate) fn run_range(&mut self, part_id: u32) {
        if self.waits_for_marks(part_id) {
            return;
        }
        let part = self.parts[part_id as usize];
        if !self.cache_failed {
            self.invalidate_range(part_id, part.start, part.end);
        }
        self.parts[part_id as usize].pending = 1;
        let (offset, len) = (part.start, part.end - part.start);
        let kind = match part.kind {
            RequestKind::WriteZeroes { no_hole } => {
                OpKind::WriteZeroes { offset, len, fua: part.fua, no_hole }
            }
            _ => OpKind::Discard { offset, len },
        };
        self.device(Target::Backing(part.volume), kind, Op::PartBacking { part: part_id });
    }
}
