//! Discard and write-zeroes: the backing is told, and every block they touch leaves the cache.
//!
//! Blocks that are touched only in part leave as well: what the backing holds there afterwards is its own affair (a discard is advisory), and
//! a cached copy would keep saying what it held before. Dirty blocks leave when the backing has ended: before, it has something older.
//! Where it may do nothing (a discard), its older data would come to light, so zeroes are asked for. A dirty block that is touched only in part stays:
//! zeroes are put into it, a discard passes it by.

use crate::request::Part;
use crate::{Engine, Op, OpKind, RequestKind, Target};

impl Engine {
    /// A discard or write-zeroes part has its lock.
    pub(crate) fn run_range(&mut self, part_id: u32) {
        if self.parts[part_id as usize].pending > 0 {
            return self.start_outs(part_id);
        }
        if self.waits_at_order(part_id) || self.waits_for_marks(part_id) {
            return;
        }
        let part = self.parts[part_id as usize];
        if !self.cache_failed {
            self.invalidate_range(part_id, part.start, part.end);
        }
        // One step of its own keeps the part alive while its pieces start.
        self.parts[part_id as usize].pending = 1;
        let (start, end) = self.keep_edges(part_id, &part);
        if start < end {
            self.parts[part_id as usize].pending += 1;
            let (offset, len) = (start, end - start);
            let kind = match part.kind {
                RequestKind::WriteZeroes { no_hole } => {
                    OpKind::WriteZeroes { offset, len, fua: part.fua, no_hole }
                }
                _ if self.any_dirty(part.volume, start, end) => {
                    OpKind::WriteZeroes { offset, len, fua: false, no_hole: false }
                }
                _ => OpKind::Discard { offset, len },
            };
            self.device(Target::Backing(part.volume), kind, Op::PartBacking { part: part_id });
        }
        self.part_step(part_id);
    }

    /// All operations of a discard or write-zeroes have ended.
    pub(crate) fn settle_range(&mut self, part_id: u32, part: &Part) {
        match part.error {
            None => self.drop_dirty(part_id, part.volume, part.start, part.end),
            Some(_) => self.doubt_dirty(part.volume, part.start, part.end),
        }
    }
}
