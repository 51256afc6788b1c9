//! What each device operation in flight is for.

use crate::out::Out;
use crate::{StageId, VolumeId};

/// What a device operation in flight is for; byte ranges are of the volume.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A part reads past the cache.
    PartRead {
        part: u32,
    },
    /// A part reads cached blocks; through a staging buffer where its range is not aligned for the cache device.
    PartHit {
        part: u32,
        start: u64,
        end: u64,
        slot: u32,
        via: Option<StagedRead>,
    },
    /// A part's write, discard or write-zeroes on the backing.
    PartBacking {
        part: u32,
    },
    /// A part's write-through to the slots of `start..end`.
    PartCache {
        part: u32,
        start: u64,
        end: u64,
    },
    /// A part writes `start..end` to slots of their own, from this one on.
    PartDirty {
        part: u32,
        start: u64,
        end: u64,
        slot: u32,
    },
    /// A part's write to the backing where the cache could not take it.
    PartOut {
        part: u32,
        out: Out,
    },
    /// The cleaner reads blocks `from..to` (counted within its run); writes the run to the backing.
    CleanRead {
        run: u32,
        from: u32,
        to: u32,
    },
    CleanWrite {
        run: u32,
    },
    /// A merge reads the block from its slot; writes it back.
    MergeRead {
        merge: u32,
    },
    MergeWrite {
        merge: u32,
    },
    /// A fill reads the backing.
    FillRead {
        fill: u32,
    },
    /// A fill writes its blocks `from..to` (counted within the fill) to the cache.
    FillWrite {
        fill: u32,
        from: u32,
        to: u32,
    },
    /// A volume's backing is flushed.
    Flush {
        volume: VolumeId,
    },
    /// Metadata is written, from this staging buffer.
    MetaWrite {
        stage: StageId,
    },
    /// Whether the cache device answers a volume's cleaner: the superblock is read into this staging buffer, which nobody looks at.
    MetaRead {
        volume: VolumeId,
        stage: StageId,
    },
    /// The cache device is flushed.
    MetaFlush,
}

impl Op {
    /// True for a write of data to the cache device.
    pub fn is_cache_write(&self) -> bool {
        matches!(
            self,
            Self::PartCache { .. }
                | Self::PartDirty { .. }
                | Self::MergeWrite { .. }
                | Self::FillWrite { .. }
        )
    }
}

/// A read of the cache device widened to its alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagedRead {
    pub stage: StageId,
    /// Bytes of the staging buffer before the wanted ones.
    pub skip: u32,
}
