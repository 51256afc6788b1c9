//! The cache device is given up and let go of while guests go on, and is there again: under the same guests, or at the next start.
//!
//! It does what the daemon does. What is written down when the device is given up outlives the process, and by that the device is known again: the same cache, in a
//! state that is not older. All of its clean blocks are dropped, since guests have written past them; all that is dirty on it stays.

use super::World;
use super::start::is_lossy;
use larder_engine::format::{BlockId, Lost, MediumMut, Recovered, Superblock, recover_after, repair_after};
use larder_engine::{DeviceOp, Resumed, SECTOR_BYTES, SessionMark, Target, VolumeId};
use std::collections::BTreeSet;

/// Seconds for which guests wait until nothing is under way; then it is left for another time.
const STILL_WITHIN: u32 = 5;

/// What is written down of a cache that was given up.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// What had become durable.
    pub mark: SessionMark,
    /// The volumes that have failed.
    pub failed: Vec<VolumeId>,
}

/// A cache that is there again, and waits until nothing is under way.
pub(super) struct Attaching {
    recovered: Recovered,
    seconds: u32,
}

impl World {
    /// The cache device does not answer any more; maybe it has lost its power.
    pub(crate) fn lose_cache(&mut self, power: bool) {
        self.count(crate::fault::Fault::Loss);
        self.excuse_metadata();
        self.excuse_cache();
        match power {
            true => self.host.cache().pull(true, &mut self.rng),
            false => self.host.cache().set_gone(true),
        }
        self.is_pulled |= power;
        self.is_lost = true;
    }

    /// The cache device answers again. Where the engine has let go of it, it is gone on with as soon as nothing is under way.
    pub(crate) fn back(&mut self) {
        self.write_down();
        let of_cache = |op: &DeviceOp| matches!(op.target, Target::Cache | Target::CacheMeta);
        let engine = self.host.engine();
        let closed = engine.is_detached() && !self.host.pending().iter().any(|pending| of_cache(&pending.op));
        if self.is_pulled && !closed {
            // Whoever has it open has the one that was pulled.
            return;
        }
        self.host.cache().set_gone(false);
        (self.is_lost, self.is_pulled) = (false, false);
        if closed && self.attaching.is_none() {
            let Some(loss) = self.loss.clone() else { return };
            let Some(recovered) = self.again(&loss) else { return };
            self.host.hold(true);
            self.attaching = Some(Attaching { recovered, seconds: 0 });
            self.check();
            self.go_on_attaching();
        }
    }

    /// Whoever looks after the cache device looks, now and then. True if it was gone on with.
    pub(super) fn look_after_cache(&mut self) -> bool {
        if self.host.engine().cache_failed() && self.loss.is_none() && self.looks.below(8) == 0 {
            self.write_down();
        }
        self.go_on_attaching()
    }

    /// A second has passed.
    pub(super) fn wait_to_attach(&mut self) {
        let Some(attaching) = &mut self.attaching else { return };
        attaching.seconds += 1;
        if attaching.seconds > STILL_WITHIN {
            self.tell(|| "guests wait no longer for the cache device".into());
            self.attaching = None;
            self.host.hold(false);
            self.check();
        }
    }

    fn go_on_attaching(&mut self) -> bool {
        match self.attaching.take_if(|_| self.host.engine().is_still()) {
            Some(attaching) => {
                self.resume(&attaching.recovered);
                true
            }
            None => false,
        }
    }

    /// The engine is done with the cache device.
    pub fn detach(&mut self) {
        self.tell(|| "the cache device is let go of".into());
        self.host.detach_cache();
        if self.loss.is_none() {
            let mark = self.host.engine().session().expect("the cache is kept");
            let failed = self.failed();
            self.tell(|| format!("  failed: {failed:?}"));
            failed.iter().for_each(|&volume| self.check_lost_ranges(volume));
            self.counts.given_up += 1;
            self.counts.failed += failed.len() as u64;
            self.loss = Some(Loss { mark, failed });
            self.excuse_metadata();
            self.excuse_cache();
        }
        self.check();
    }

    /// If the cache device was given up, let go of it, and write down what it alone has.
    pub(super) fn write_down(&mut self) {
        if self.host.engine().cache_failed() && self.loss.is_none() {
            self.detach();
        }
    }

    /// What is said to be on the cache device alone is all of it: elsewhere the backing shows what guests may read.
    fn check_lost_ranges(&mut self, volume: VolumeId) {
        let lost = self.host.engine().lost_ranges(volume);
        let bytes = self.host.engine().volume_bytes(volume);
        let content = self.host.backing(volume).content();
        for offset in (0..bytes).step_by(SECTOR_BYTES as usize) {
            if !lost.iter().any(|range| range.contains(&offset)) {
                let (sector, mut held) = (offset / SECTOR_BYTES, [0; SECTOR_BYTES as usize]);
                content.read(offset, &mut held);
                assert!(
                    self.oracle.may_be(volume, sector, &held),
                    "{volume:?} sector {sector} is lost with the cache device, and not named: {lost:?}"
                );
            }
        }
    }

    /// The cache device is there again, as it is now: without its clean blocks, which guests have written past, the engine goes on with it. What guests
    /// ask for `meanwhile` waits, unless their volume has failed.
    pub fn reattach(&mut self, meanwhile: impl FnOnce(&mut Self)) -> Resumed {
        self.host.cache().forgive();
        self.host.cache().set_gone(false);
        let loss = self.loss.clone().expect("it was given up");
        let recovered = self.again(&loss).expect("it is as it was");
        self.host.hold(true);
        while !self.host.engine().is_still() {
            assert!(self.step(), "what is under way comes to an end");
        }
        meanwhile(self);
        (self.excuses.metadata_failed, self.excuses.data_failed) = (false, false);
        self.resume(&recovered)
    }

    /// The engine goes on with this.
    fn resume(&mut self, recovered: &Recovered) -> Resumed {
        self.tell(|| "the cache device is gone on with".into());
        let pool = self.free_slots(recovered);
        let failed = self.failed();
        // They are as after a crash; the others have not noticed anything.
        self.lose_failed();
        let volumes = self.volumes();
        let resumed = self.host.resume_cache(recovered, volumes, pool).expect("it can be gone on with");
        self.tell(|| format!("  {resumed:?}"));
        let strange = resumed.lost.iter().find(|(volume, _)| !failed.contains(volume));
        assert!(strange.is_none(), "a volume that was served has lost {strange:?}");
        assert!(self.failed().is_empty(), "all is there again");
        self.loss = None;
        self.counts.returned += 1;
        self.counts.back += u64::from(resumed.back);
        self.check();
        resumed
    }

    /// What was not flushed of volumes that have failed may be lost.
    pub(super) fn lose_failed(&mut self) {
        for volume in self.failed() {
            // They are not to go on with what another session finds: a part of what they have done may be lost.
            let live = self.live.iter().find(|(_, of)| **of == volume);
            assert!(live.is_none(), "the volume has failed, and nobody has told {live:?}");
            self.prefix.set_back(volume);
            let left = self.survivors.lose(volume);
            self.oracle.restart_volume(volume, &left);
        }
    }

    /// The cache that was given up, without its clean blocks. `None` where damage has made another one of it.
    pub(super) fn again(&mut self, loss: &Loss) -> Option<Recovered> {
        self.tell(|| "the cache device is there again".into());
        let excuses = self.excuses;
        let found = recover_after(self.host.cache(), loss.mark);
        let recovered = match found {
            // Nobody can tell it from what a power cut left, and so not whether something is lost.
            Ok(recovered) if self.may_be_damage(&recovered) => {
                self.tell(|| "  it may be damaged".into());
                return None;
            }
            Ok(recovered) if self.is_same(&recovered, loss) => recovered,
            found => {
                let what = found.map(|found| (found.superblock().clone(), found.findings().to_vec()));
                assert!(
                    excuses.harmed,
                    "a cache that nobody has damaged is not known again by {loss:?}: {what:?}"
                );
                return None;
            }
        };
        self.check_superblocks(&recovered);
        let dirty = dirty_in(&recovered);
        let told = recovered.superblock();
        if !told.needs_check {
            let superblock = Superblock { needs_check: true, clean_stop: false, ..told.successor() };
            let device = self.host.cache();
            device
                .write(superblock.offset(), &superblock.encode())
                .and_then(|()| device.flush())
                .expect("it is sound");
        }
        let repaired = repair_after(self.host.cache(), loss.mark).expect("it is as it was");
        self.mended();
        self.before = self.metadata();
        self.held.clear();
        // What was to fail still does.
        (self.excuses.metadata_failed, self.excuses.data_failed) =
            (excuses.metadata_failed, excuses.data_failed);
        let mended = self.recovered();
        let clean = mended.blocks().find(|(_, contents)| !contents.dirty);
        assert!(clean.is_none(), "what is clean is not trusted: {clean:?}");
        // Of slots of which nothing is known it is known that none was dirty.
        let loses = repaired.lost.iter().any(|lost| !excuses.harmed || matches!(lost, Lost::Dirty { .. }));
        assert!(!loses && repaired.outdated.is_empty(), "{repaired:?}");
        assert_eq!(dirty_in(&mended), dirty, "what is dirty stays");
        Some(mended)
    }

    /// It is the cache that was given up, in no older state, and has all its dirty blocks.
    fn is_same(&self, recovered: &Recovered, loss: &Loss) -> bool {
        let superblock = recovered.superblock();
        let is_older = match superblock.session == loss.mark.session {
            true => !recovered.reaches(&loss.mark),
            // A later one is of a repair.
            false => superblock.session < loss.mark.session,
        };
        superblock.uuid == loss.mark.uuid && !is_older && !is_lossy(recovered)
    }

    /// The volumes that are not served.
    pub fn failed(&self) -> Vec<VolumeId> {
        let volumes = (0..self.plan.disks.len()).map(|disk| VolumeId(disk as u16));
        volumes.filter(|&volume| self.host.engine().is_failed(volume)).collect()
    }
}

/// The dirty blocks, and where they are.
pub(super) fn dirty_in(recovered: &Recovered) -> BTreeSet<(BlockId, u32)> {
    let dirty = recovered.blocks().filter(|(_, contents)| contents.dirty);
    dirty.map(|(slot, contents)| (contents.block, slot)).collect()
}
