//! How a life ends: power cuts, deaths, clean stops, and what changes after those.

use super::{World, stamp_all};
use crate::fault::Fault;
use crate::plan::Disk;
use crate::script::Change;
use larder_engine::format::recover;
use larder_engine::{SECTOR_BYTES, Sharing, VolumeId};

impl World {
    /// The power goes, and comes back.
    pub fn cut(&mut self) {
        self.cut_off();
        self.start();
    }

    /// The process dies, and another one takes over.
    pub fn kill(&mut self) {
        self.kill_off();
        self.start();
    }

    /// Stop cleanly, and start again. What is cached is the same.
    pub fn stop(&mut self) {
        let kept = self.stop_cleanly();
        self.start();
        self.check_kept(kept);
    }

    /// Stop cleanly; a volume has another size when the engine starts again.
    pub fn resize(&mut self, disk: usize, bytes: u64) {
        self.stop_cleanly();
        self.change(Change::Resize { disk, bytes });
        self.start();
        self.settle();
    }

    /// Stop cleanly, and start again with another order of a volume's writes.
    pub fn stop_with_order(&mut self, disk: usize, ordered: bool) {
        self.stop_cleanly();
        self.plan.disks[disk].ordered = ordered;
        // Nobody has promised anything of what the backing shows now.
        let volume = VolumeId(disk as u16);
        self.prefix.forget(volume);
        self.start();
    }

    /// The power goes.
    pub(crate) fn cut_off(&mut self) {
        self.tell(|| "the power goes".into());
        self.count(Fault::Cut);
        self.counts.crashes += 1;
        self.note_end();
        self.host.power_cut(&mut self.rng);
        self.forget();
        self.check_prefixes();
    }

    /// The process dies.
    pub(crate) fn kill_off(&mut self) {
        self.tell(|| "the process dies".into());
        self.count(Fault::Kill);
        self.counts.crashes += 1;
        self.note_end();
        self.host.kill(&mut self.rng);
        self.oracle.abandon();
        self.survivors.abandon();
        self.lose_held_back();
        self.check_prefixes();
    }

    /// What was not flushed may be lost where the backing does not have it all.
    fn lose_held_back(&mut self) {
        self.prefix.abandon();
        for disk in 0..self.plan.disks.len() {
            if self.is_through(disk) {
                continue;
            }
            let volume = VolumeId(disk as u16);
            let left = self.survivors.lose(volume);
            self.oracle.restart_volume(volume, &left);
        }
    }

    /// The process dies, and backings lose their power meanwhile; the cache device lives on.
    pub(crate) fn kill_alone(&mut self) {
        self.tell(|| "the process dies, and backings lose their power".into());
        self.count(Fault::Kill);
        self.counts.crashes += 1;
        self.note_end();
        self.host.kill_with_backings(&mut self.rng);
        self.forget();
        self.check_prefixes();
    }

    /// A clean stop; then the power goes, or not. Blocks cached by each tenant, if they must be there at the next start.
    pub(crate) fn stop_cleanly(&mut self) -> Option<Vec<u32>> {
        self.tell(|| "a clean stop".into());
        self.settle();
        self.trim();
        let cached = self.kept();
        // What is cached of those leaves while it stops.
        let settled = !self.is_anyone_leaving();
        self.host.stop();
        self.settle();
        assert!(self.host.engine().is_stopped(), "the engine comes to an end");
        self.note_end();
        // A backing that failed the last flush may not have what has overtaken a dirty block: the older one comes back.
        if !self.backings_are_sound() {
            self.lose_held_back();
        }
        self.lose_failed();
        if self.rng.chance(0.5) {
            self.tell(|| "the power goes after it".into());
            self.host.power_cut(&mut self.rng);
            let left = self.survivors.cut();
            // The stop has flushed everything, so nothing is lost: the oracle goes on as before. Not so where the cache was given up.
            if !self.backings_are_sound() || self.host.engine().cache_failed() {
                self.prefix.abandon();
                self.oracle.restart(&left);
            }
        }
        let sound = !self.plan.cache.fails() && !self.excuses.data_failed;
        let sound = sound && !self.excuses.metadata_failed && !self.excuses.spoiled;
        (sound && settled && self.backings_are_sound()).then_some(cached)
    }

    /// The stopped cache holds dirty blocks.
    pub(crate) fn holds_dirty(&mut self) -> bool {
        let recovered = recover(self.host.cache());
        recovered.is_ok_and(|recovered| recovered.blocks().any(|(_, contents)| contents.dirty))
    }

    /// A clean stop keeps what was cached.
    pub(crate) fn check_kept(&self, kept: Option<Vec<u32>>) {
        let cached = self.kept();
        assert!(
            kept.as_ref().is_none_or(|kept| *kept == cached),
            "a clean stop keeps the cache of {kept:?}: {cached:?}"
        );
    }

    /// Blocks cached by each tenant, and in the partition that they share, without those above the quota: they stay only as long as they are dirty.
    fn kept(&self) -> Vec<u32> {
        let cached = self.cached();
        let quotas = self.plan.tenants.iter().map(|tenant| tenant.quota);
        let own = cached.iter().zip(quotas).map(|(&cached, quota)| cached.min(quota));
        match self.plan.sharing {
            Sharing::Off => own.collect(),
            Sharing::All { blocks, .. } => vec![cached.iter().sum::<u32>().min(blocks)],
            Sharing::Spill { blocks, .. } => {
                let own: Vec<u32> = own.collect();
                let common = cached.iter().sum::<u32>() - own.iter().sum::<u32>();
                [own, vec![common.min(blocks)]].concat()
            }
        }
    }

    /// Something changes while the engine is stopped.
    pub(crate) fn change(&mut self, change: Change) {
        self.tell(|| format!("{change:?}"));
        if let Change::Resize { disk, .. } | Change::Replace { disk, .. } = change
            && disk >= self.plan.disks.len()
        {
            // It could not come.
            return;
        }
        self.count(Fault::Volume);
        match change {
            Change::Resize { disk, bytes } => self.resized(disk, bytes),
            Change::Replace { disk, bytes } => {
                self.resized(disk, bytes);
                self.plan.disks[disk].identity += 1;
                self.rewritten(disk);
            }
            Change::Add { tenant, bytes } => {
                let disk = Disk { tenant, bytes, identity: 0, ordered: false };
                self.add_backing(&disk);
                self.plan.disks.push(disk);
            }
        }
    }

    /// A backing becomes longer by some blocks while it is in use, and its volume grows, if it can; else it does at the next start.
    pub fn grow(&mut self, disk: usize, blocks: u64) {
        let bytes = self.plan.disks[disk].bytes + blocks * self.plan.block_bytes();
        // What has a block that is not whole at its end does not grow in use, and is another volume at the next start.
        if self.plan.disks[disk].bytes.is_multiple_of(self.plan.block_bytes()) {
            let grows = self.host.grow(VolumeId(disk as u16), bytes);
            self.tell(|| format!("  volume {disk} grows to {bytes} bytes: {grows}"));
            self.know_size(disk, bytes);
            self.check();
        }
    }

    /// Somebody else has written all of a backing.
    pub(super) fn rewritten(&mut self, disk: usize) {
        let (volume, sectors) = (VolumeId(disk as u16), self.plan.disks[disk].bytes / SECTOR_BYTES);
        let generation = self.oracle.rewrite(volume, sectors);
        self.survivors.rewrite(volume, sectors, generation);
        self.prefix.rewrite(volume, sectors, generation);
        stamp_all(self.host.backing(volume), volume, generation);
    }

    fn resized(&mut self, disk: usize, bytes: u64) {
        self.host.backing(VolumeId(disk as u16)).resize(bytes);
        self.know_size(disk, bytes);
    }

    fn know_size(&mut self, disk: usize, bytes: u64) {
        let volume = VolumeId(disk as u16);
        self.plan.disks[disk].bytes = bytes;
        self.oracle.resize(volume, bytes / SECTOR_BYTES);
        self.survivors.resize(volume, bytes / SECTOR_BYTES);
        self.prefix.resize(volume, bytes / SECTOR_BYTES);
    }

    /// A cut has ended all requests.
    fn forget(&mut self) {
        self.prefix.abandon();
        let left = self.survivors.cut();
        self.oracle.restart(&left);
    }

    /// Add the images to the digest; faults that were to come do not.
    fn note_end(&mut self) {
        self.write_down();
        (self.attaching, self.is_lost, self.is_pulled) = (None, false, false);
        self.refused.clear();
        self.live.clear();
        self.host.digest_images();
        self.host.cache().forgive();
        self.host.cache().set_gone(false);
        for disk in 0..self.plan.disks.len() {
            self.host.backing(VolumeId(disk as u16)).forgive();
        }
    }
}
