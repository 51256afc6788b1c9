//! Which parts of a volume the cache alone has: there a backing may tell of a hole, and be wrong.

use crate::store::BlockKey;
use crate::{Engine, VolumeId};

impl Engine {
    /// How far from `start` on, up to `end`, the bytes of a volume are alike, and whether the cache alone has their data. Looks at `blocks` blocks at most, at least one, and
    /// tells no more than it saw. Nothing is known of a volume that has failed: then it may be all.
    pub fn alone_run(&self, volume: VolumeId, start: u64, end: u64, blocks: u64) -> (u64, bool) {
        if self.is_failed(volume) {
            return (end, true);
        }
        if self.dirty_of(volume) == 0 {
            return (end, false);
        }
        let size = self.block_bytes();
        let first = start / size;
        let alone = |block| self.is_dirty(BlockKey { volume, block });
        let is_alone = alone(first);
        let seen = first + blocks.max(1);
        let other =
            (first + 1..seen).take_while(|block| block * size < end).find(|&block| alone(block) != is_alone);
        (end.min(other.unwrap_or(seen).saturating_mul(size)), is_alone)
    }
}
