//! Where most of the accesses go: the stretches of the volumes with the most of them, counted exactly.

use std::ops::Range;

use larder_trace::{Request, RequestKind};

use super::stretches::{Stretches, parts};
use crate::{BlockSize, Region};

/// Stretches counted at most.
const MOST: usize = 1 << 16;

/// The shortest stretch: 1 MiB.
const SHIFT: u32 = 20;

/// Regions told.
const TOLD: usize = 10;

/// Accesses by stretch. Those to volumes from the 32,768th on are not counted.
#[derive(Debug)]
pub(crate) struct Hot {
    stretches: Stretches,
    /// Blocks read and written.
    counts: Vec<[u64; 2]>,
}

impl Hot {
    pub(crate) fn new() -> Self {
        Self::of(Stretches::new(SHIFT, MOST))
    }

    fn of(stretches: Stretches) -> Self {
        Self { stretches, counts: Vec::new() }
    }

    /// Take a read or a write of these blocks.
    #[inline]
    pub(crate) fn access(&mut self, request: &Request, blocks: &Range<u64>, block: BlockSize) {
        if request.volume >= self.stretches.volumes_max() {
            return;
        }
        let which = usize::from(request.kind == RequestKind::Write);
        for (offset, blocks) in parts(blocks.clone(), block, self.stretches.bytes()) {
            let number = self.stretches.number(request.volume, offset);
            if number == self.counts.len() {
                self.counts.push([0; 2]);
            }
            self.counts[number][which] += blocks;
        }
        while self.stretches.is_over() {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let numbers = self.stretches.fold();
        for (old, new) in numbers.into_iter().enumerate().filter(|(old, new)| old != new) {
            let [reads, writes] = std::mem::take(&mut self.counts[old]);
            self.counts[new][0] += reads;
            self.counts[new][1] += writes;
        }
        self.counts.truncate(self.stretches.len());
    }

    /// The hottest regions, the hottest first; of equal ones the first in the trace's volumes.
    pub(crate) fn finish(self) -> Vec<Region> {
        let bytes = self.stretches.bytes();
        let region = |(number, &[reads, writes]): (usize, &[u64; 2])| {
            let (volume, offset) = self.stretches.place(number);
            Region { volume, offset, bytes, reads, writes }
        };
        let mut regions: Vec<_> = self.counts.iter().enumerate().map(region).collect();
        regions.sort_unstable_by_key(|region| {
            (std::cmp::Reverse(region.reads + region.writes), region.volume, region.offset)
        });
        regions.truncate(TOLD);
        regions
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.stretches.memory_bytes() + self.counts.capacity() * size_of::<[u64; 2]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn hot(stretches: Stretches, accesses: &[(u32, RequestKind, u64, u64)]) -> Vec<Region> {
        let mut hot = Hot::of(stretches);
        for &(volume, kind, offset, len) in accesses {
            let request = Request { time_ns: 0, volume, kind, offset, len: len as u32 };
            hot.access(&request, &BlockSize::DEFAULT.blocks_of(&request), BlockSize::DEFAULT);
        }
        hot.finish()
    }

    #[test]
    fn the_hottest_come_first() {
        use RequestKind::{Read, Write};
        let accesses = [
            (3, Read, 5 * MIB, 4096),
            (0, Write, MIB - 4096, 3 * 4096),
            (0, Read, 2 * MIB, 0),
            (3, Write, 6 * MIB - 1, 1),
        ];
        let region = |volume, offset, reads, writes| Region { volume, offset, bytes: MIB, reads, writes };
        let expected = [region(0, MIB, 0, 2), region(3, 5 * MIB, 1, 1), region(0, 0, 0, 1)];
        assert_eq!(hot(Stretches::new(SHIFT, MOST), &accesses), expected);
        assert_eq!(hot(Stretches::new(SHIFT, MOST), &[]), []);
    }

    #[test]
    fn a_wide_trace_has_longer_regions_and_loses_no_access() {
        let access = |at: u64| (at as u32 % 2, RequestKind::Read, at / 2 * 2 * MIB, 4096);
        let accesses: Vec<_> = (0..400).map(access).collect();
        let regions = hot(Stretches::new(SHIFT, 8), &accesses);
        // 400 MiB of each volume.
        let told: Vec<_> =
            regions.iter().map(|region| (region.volume, region.offset / MIB, region.reads)).collect();
        let (whole, rest) = told.split_at(6);
        assert_eq!(whole, [(0, 0, 64), (0, 128, 64), (0, 256, 64), (1, 0, 64), (1, 128, 64), (1, 256, 64)]);
        assert_eq!(rest, [(0, 384, 8), (1, 384, 8)]);
        assert!(regions.iter().all(|region| region.bytes == 128 * MIB));
    }

    #[test]
    fn volumes_beyond_counting_are_left_out() {
        let accesses = [(u32::MAX, RequestKind::Read, 0, 4096), (7, RequestKind::Read, 0, 4096)];
        assert_eq!(hot(Stretches::new(SHIFT, 16), &accesses).len(), 1);
    }
}
