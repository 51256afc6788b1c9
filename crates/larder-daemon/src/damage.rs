//! Tells in the log, once, which dirty blocks were found to be damaged on the cache device.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_io::ReactorSnapshot;

use crate::collector::Collector;
use crate::hosted::VolumePlace;
use crate::keeper::lost_ranges;
use crate::loss::LostRange;

/// Lines for one volume at a time: a device that goes bad damages more than anybody reads.
const LINES_MAX: usize = 16;

/// What was told.
#[derive(Debug, Default)]
pub struct Damage {
    /// Blocks that reactors had found when they were looked at last, ever.
    found: u64,
    /// First bytes of the blocks that are lost and told, by volume.
    told: BTreeMap<String, BTreeSet<u64>>,
}

impl Damage {
    /// Tell what reactors have found since the last look.
    pub fn look<C>(&mut self, collector: &Collector<C>, snapshots: &[ReactorSnapshot]) {
        let tenants = snapshots.iter().flat_map(|snapshot| &snapshot.tenants);
        let found = tenants.map(|tenant| tenant.stats.lost_blocks).sum();
        if found == self.found {
            return;
        }
        let hosted = collector.hosted.get();
        let block_bytes = hosted.config.cache.block_bytes.into();
        let mut told = BTreeMap::new();
        for (config, place) in hosted.volumes().filter(|(_, place)| has_lost(snapshots, *place)) {
            // One that does not answer now is asked again.
            let Ok(ranges) = lost_ranges(&collector.reactors[place.reactor], place) else { return };
            let before = self.told.get(&config.name).cloned().unwrap_or_default();
            let now: BTreeSet<u64> = ranges.iter().flat_map(|range| blocks_of(range, block_bytes)).collect();
            tell(&config.name, &ranges_of(now.difference(&before), block_bytes));
            told.insert(config.name.clone(), now);
        }
        (self.found, self.told) = (found, told);
    }
}

fn has_lost(snapshots: &[ReactorSnapshot], place: VolumePlace) -> bool {
    let volumes = snapshots.get(place.reactor).map_or(&[][..], |snapshot| &snapshot.volumes);
    volumes.iter().any(|volume| volume.volume == place.volume && volume.lost.blocks > 0)
}

fn blocks_of(range: &LostRange, block_bytes: u64) -> impl Iterator<Item = u64> + use<> {
    (range.offset..range.offset + range.len).step_by(block_bytes as usize)
}

/// Neighbours in one.
fn ranges_of<'a>(blocks: impl Iterator<Item = &'a u64>, block_bytes: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &block in blocks {
        match ranges.last_mut() {
            Some(last) if last.end == block => last.end += block_bytes,
            _ => ranges.push(block..block + block_bytes),
        }
    }
    ranges
}

fn tell(volume: &str, ranges: &[Range<u64>]) {
    for range in ranges.iter().take(LINES_MAX) {
        tracing::warn!(
            volume,
            offset = range.start,
            bytes = range.end - range.start,
            "dirty data is damaged on the cache device, and its backing does not have it: reads there fail until the guest writes or discards it"
        );
    }
    if let Some(more) = ranges.len().checked_sub(LINES_MAX).filter(|&more| more > 0) {
        tracing::warn!(volume, "{more} more ranges are so: `larder status --lost {volume}` lists them all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_in_one_line() {
        let range = LostRange { offset: 8192, len: 9000 };
        assert_eq!(blocks_of(&range, 4096).collect::<Vec<_>>(), [8192, 12_288, 16_384]);
        let blocks = [0, 4096, 12_288];
        assert_eq!(ranges_of(blocks.iter(), 4096), [0..8192, 12_288..16_384]);
    }
}
