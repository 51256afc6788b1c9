//! What an operator does with a cache that an engine refuses: repair it, or make a new one.

use super::World;
use super::start::is_lossy;
use super::swap::dirty_in;
use larder_engine::format::{BlockId, Finding, Lost, Recovered, SUPERBLOCK_BYTES, SlotState, check, repair};

impl World {
    /// Make the cache one that can be used. One that may have what no backing has is not given up, unless some of that is lost: then volumes and cache begin
    /// anew, for nobody could say what guests may read.
    pub(super) fn mend(&mut self, found: &Recovered) {
        self.host.cache().forgive();
        if is_lossy(found) && !self.are_all_through() {
            self.check_repair(found);
            self.begin_anew();
            return self.format();
        }
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

    /// What a repair keeps and does not call outdated is as it was; what it does not keep is named, or told only by records that are named as lost.
    fn check_repair(&mut self, found: &Recovered) {
        self.tell(|| format!("the cache is repaired: {:?}", found.findings()));
        assert!(self.excuses.harmed, "dirty blocks are lost without damage: {:?}", found.findings());
        let repaired = repair(self.host.cache()).expect("what was recovered can be repaired");
        self.tell(|| format!("  {repaired:?}"));
        let kept = dirty_in(&self.recovered());
        let Some(truth) = &self.truth else { return };
        let strange = kept.difference(truth).find(|kept| !repaired.outdated.contains(kept));
        assert!(strange.is_none(), "a repair calls dirty what was not: {strange:?}, {repaired:?}");
        let is_named = |&(block, slot): &(BlockId, u32)| {
            repaired.lost.iter().any(|lost| match lost {
                Lost::Dirty { block: of, .. } => *of == block,
                Lost::Unknown { slots } => slots.contains(&slot),
            })
        };
        let untold = repaired
            .findings
            .iter()
            .any(|finding| matches!(finding, Finding::RecordLost { dirty: true, .. }));
        // Without volumes nobody can tell whether the last commit's data are there: what it called clean is so.
        let lacks_volumes =
            |finding: &Finding| matches!(finding, Finding::VolumeTable { other_is_good: false, .. });
        let lacks_volumes = repaired.findings.iter().any(lacks_volumes);
        let is_clean = |&(block, slot): &(BlockId, u32)| match found.slot(slot) {
            SlotState::Used(contents) | SlotState::Dropped(contents) => {
                lacks_volumes && contents.block == block && !contents.dirty
            }
            SlotState::Free | SlotState::Unknown => false,
        };
        let missing = truth.difference(&kept).find(|missing| !is_named(missing) && !is_clean(missing));
        assert!(untold || missing.is_none(), "a repair does not name {missing:?}: {repaired:?}");
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
