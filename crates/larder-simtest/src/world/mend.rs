//! What an operator does with a cache that an engine refuses: repair it, or make a new one.

use super::World;
use larder_engine::format::{Finding, Recovered, SUPERBLOCK_BYTES, check, repair};

impl World {
    /// Make the cache one that can be used. One that may have what no backing has is not given up.
    pub(super) fn mend(&mut self, found: &Recovered) {
        self.host.cache().forgive();
        let is_dirty = found.blocks().any(|(_, contents)| contents.dirty);
        if !is_dirty && self.rng.chance(0.5) {
            self.tell(|| "a new cache is made".into());
            return self.format();
        }
        self.tell(|| "the cache is repaired".into());
        let harmed = self.excuses.harmed;
        let repaired = repair(self.host.cache()).expect("what was recovered can be repaired");
        let loses = !repaired.lost.is_empty() || !repaired.outdated.is_empty();
        assert!(harmed || !loses, "a repair of what nobody has damaged loses data: {repaired:?}");
        self.mended();
        let wrong = check(self.host.cache(), true).expect("it was repaired");
        let data = |finding: &Finding| matches!(finding, Finding::Data { .. });
        assert!(wrong.iter().all(data), "a repair leaves {wrong:?}");
        assert!(wrong.is_empty() || self.excuses.spoiled, "a repair keeps {wrong:?}");
    }

    /// The metadata is as it should be, whatever happened before.
    pub(super) fn mended(&mut self) {
        (self.excuses.harmed, self.excuses.metadata_failed) = (false, false);
        let device = self.host.cache();
        device.watch(0..2 * SUPERBLOCK_BYTES as u64);
        self.superblocks = [0, 1].map(|copy| {
            let mut bytes = vec![0; SUPERBLOCK_BYTES];
            device.content().read(copy * SUPERBLOCK_BYTES as u64, &mut bytes);
            bytes
        });
    }
}
