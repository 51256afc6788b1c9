//! One pass over a tenant's accesses: class and exact reuse distance of each, findings for every epoch.

use std::ops::Range;

use crate::findings::{DistanceHistogram, EpochFindings};
use crate::index::{BlockIndex, Seen};
use crate::timeline::{SLOTS_PER_CHUNK, Timeline};
use crate::{AccessKind, ClassCounts, RequestClass};

/// The most blocks that a tracker can remember: 2 TiB of 4 KiB blocks.
pub const MAX_TRACKED_BLOCKS: u32 = 1 << 29;

/// Slots for each remembered block when the timeline is laid out anew: one more bit of memory each, and the fewer
/// such moments.
const SLOTS_PER_BLOCK: u32 = 8;
const SLOTS_MIN: u32 = 2 * SLOTS_PER_CHUNK;
const SLOTS_MAX: u32 = Seen::SLOT_LIMIT / SLOTS_PER_CHUNK * SLOTS_PER_CHUNK;

/// Observes the block accesses of one tenant.
///
/// The counts are those of the current epoch; the history of accesses outlives it, so that the first access of an epoch
/// to a block known from an earlier one has its true class and distance (ECI-Cache's appendix C, cases 1 and 3).
///
/// The `max_blocks` most recently used distinct blocks are remembered. An access to an older one counts as the first
/// (CR or CW, no distance); distances below `max_blocks` are exact.
///
/// An access takes constant time up to a logarithm of the footprint over 4,096. Memory is proportional to the
/// distinct blocks remembered: 16 to 32 bytes each for the index, about 1 for the timeline, and 8 for every distance up
/// to the epoch's largest useful one; the remembered blocks exceed `max_blocks` by at most a quarter and 1,024. While
/// the index grows, the old one and the new one exist together.
pub struct ReuseTracker {
    index: BlockIndex,
    timeline: Timeline,
    max_blocks: u32,
    /// Slots from here on were taken in this epoch.
    epoch_start: u32,
    epoch: Epoch,
}

/// The counts of the current epoch.
#[derive(Default)]
struct Epoch {
    requests: u64,
    classes: ClassCounts,
    trd_max: Option<u32>,
    /// Accesses by useful distance.
    useful: Vec<u64>,
    footprint_blocks: u64,
}

impl ReuseTracker {
    /// A tracker that remembers `max_blocks` blocks (from 1 to [`MAX_TRACKED_BLOCKS`]; others are brought into range).
    pub fn new(max_blocks: u32) -> Self {
        Self::with_seed(max_blocks, 0)
    }

    /// The same with a seed for its hash function. The findings do not depend on it; a guest that does not know it
    /// cannot choose blocks that slow the tracker down.
    pub fn with_seed(max_blocks: u32, seed: u64) -> Self {
        Self {
            index: BlockIndex::new(seed),
            timeline: Timeline::new(0, SLOTS_MIN),
            max_blocks: max_blocks.clamp(1, MAX_TRACKED_BLOCKS),
            epoch_start: 0,
            epoch: Epoch::default(),
        }
    }

    /// A request for one block. Volumes of one tenant are told apart by the caller, in the block number
    /// ([`crate::block_key`]).
    pub fn observe(&mut self, block: u64, kind: AccessKind) {
        self.epoch.requests += 1;
        self.access(block, kind);
    }

    /// A request for several blocks, in rising order ([`crate::blocks_of`] gives those of a range of bytes). Takes time
    /// in their number.
    pub fn observe_blocks(&mut self, blocks: Range<u64>, kind: AccessKind) {
        self.epoch.requests += 1;
        blocks.for_each(|block| self.access(block, kind));
    }

    /// The findings of the epoch that ends now. The next one starts with counts of zero and the same history.
    pub fn finish_epoch(&mut self) -> EpochFindings {
        self.epoch_start = self.timeline.next();
        let epoch = std::mem::take(&mut self.epoch);
        let useful = DistanceHistogram::from_dense(&epoch.useful);
        EpochFindings {
            requests: epoch.requests,
            accesses: epoch.classes.total(),
            classes: epoch.classes,
            history_blocks: self.max_blocks.into(),
            trd_max: epoch.trd_max.map(u64::from),
            urd_max: useful.max(),
            useful,
            footprint_blocks: epoch.footprint_blocks,
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.index.memory_bytes()
            + self.timeline.memory_bytes()
            + self.epoch.useful.capacity() * size_of::<u64>()
    }

    fn access(&mut self, block: u64, kind: AccessKind) {
        if self.timeline.is_full() || self.timeline.live() >= self.live_limit() {
            self.compact();
        }
        let last = self.index.replace(block, Seen::new(self.timeline.next(), kind));
        let last = last.and_then(|last| self.recall(last));
        self.timeline.push();
        self.epoch.count(last, kind, self.epoch_start);
    }

    /// Take the block's last access out of the timeline, and tell its distance, unless it is to count as forgotten.
    fn recall(&mut self, last: Seen) -> Option<(Seen, u32)> {
        let distance = self.timeline.live_after(last.slot());
        self.timeline.erase(last.slot());
        (distance < self.max_blocks).then_some((last, distance))
    }

    /// Remembered blocks at which the oldest are dropped: beyond `max_blocks`, so that it is done rarely.
    fn live_limit(&self) -> u32 {
        self.max_blocks + self.max_blocks / 4 + SLOTS_MIN
    }

    /// Drop the blocks beyond `max_blocks`, and number the slots of the others anew, without gaps.
    fn compact(&mut self) {
        let live = self.timeline.live().min(self.max_blocks);
        let dropped = self.timeline.live() - live;
        let ranks = self.timeline.ranks();
        self.index.remap(|seen| {
            let slot = ranks.rank(seen.slot()).checked_sub(dropped)?;
            Some(Seen::new(slot, seen.kind()))
        });
        self.epoch_start = ranks.rank(self.epoch_start).saturating_sub(dropped);
        let slots = live.saturating_mul(SLOTS_PER_BLOCK).clamp(SLOTS_MIN, SLOTS_MAX);
        self.timeline = Timeline::new(live, slots);
    }
}

impl Epoch {
    /// Count an access. `last` is the last access to its block and the distance to it, if that is remembered.
    fn count(&mut self, last: Option<(Seen, u32)>, kind: AccessKind, epoch_start: u32) {
        let class = RequestClass::of(last.map(|(seen, _)| seen.kind()), kind);
        self.classes.count(class);
        if last.is_none_or(|(seen, _)| seen.slot() < epoch_start) {
            self.footprint_blocks += 1;
        }
        if let Some((_, distance)) = last {
            self.trd_max = self.trd_max.max(Some(distance));
            if class.is_useful() {
                self.count_useful(distance as usize);
            }
        }
    }

    fn count_useful(&mut self, distance: usize) {
        if distance >= self.useful.len() {
            self.useful.resize(distance + 1, 0);
        }
        self.useful[distance] += 1;
    }
}

#[cfg(test)]
mod tests;
