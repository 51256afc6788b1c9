//! Where requests go, and when: the map and the hot regions.

use larder_trace::RequestKind;

use super::hot::Hot;
use super::intake::Portion;
use super::map::Map;
use crate::{AddressMap, BlockSize, Region};

/// Counts reads and writes where they go.
pub(crate) struct Places {
    block: BlockSize,
    map: Map,
    hot: Hot,
}

impl Places {
    pub(crate) fn new(block: BlockSize) -> Self {
        Self { block, map: Map::new(), hot: Hot::new() }
    }

    /// Take the next portion.
    pub(crate) fn take(&mut self, portion: &Portion) {
        for begun in &portion.batch.begun {
            if matches!(begun.request.kind, RequestKind::Read | RequestKind::Write) {
                let blocks = self.block.blocks_of(&begun.request);
                self.map.access(&begun.request, &blocks, begun.at, self.block);
                self.hot.access(&begun.request, &blocks, self.block);
            }
        }
    }

    /// What was found in a trace of this length.
    pub(crate) fn finish(self, elapsed_ns: u64) -> (AddressMap, Vec<Region>) {
        (self.map.finish(elapsed_ns), self.hot.finish())
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.map.memory_bytes() + self.hot.memory_bytes()
    }
}
