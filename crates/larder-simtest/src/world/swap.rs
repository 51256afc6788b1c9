//! The cache device is let go of while guests go on, and is there again.

use super::World;
use larder_engine::format::{MediumMut, Superblock, repair};
use larder_engine::{Resumed, VolumeId};

impl World {
    /// The engine is done with the cache device.
    pub fn detach(&mut self) {
        self.tell(|| "the cache device is let go of".into());
        self.host.detach_cache();
        self.check();
    }

    /// The cache device is there again, as it is now: without its clean blocks, which guests have written past, the engine goes on with it. What guests
    /// ask for `meanwhile` waits, unless their volume has failed.
    pub fn reattach(&mut self, meanwhile: impl FnOnce(&mut Self)) -> Resumed {
        self.tell(|| "the cache device is there again".into());
        self.host.cache().forgive();
        self.host.cache().set_gone(false);
        self.host.hold(true);
        while !self.host.engine().is_still() {
            assert!(self.step(), "what is under way comes to an end");
        }
        meanwhile(self);
        let failed: Vec<VolumeId> = self.failed();
        let told = self.recovered().superblock().clone();
        if !told.needs_check {
            let superblock = Superblock { needs_check: true, clean_stop: false, ..told.successor() };
            let device = self.host.cache();
            device
                .write(superblock.offset(), &superblock.encode())
                .and_then(|()| device.flush())
                .expect("it is sound");
        }
        repair(self.host.cache()).expect("it is as it was");
        self.mended();
        let recovered = self.recovered();
        let pool = self.free_slots(&recovered);
        // Failed volumes are as after a crash; the others have not noticed anything.
        for volume in failed {
            let left = self.survivors.lose(volume);
            self.oracle.restart_volume(volume, &left);
        }
        let volumes = self.volumes();
        let resumed = self.host.resume_cache(&recovered, volumes, pool).expect("it can be gone on with");
        self.before = self.metadata();
        self.check();
        resumed
    }

    /// The volumes that are not served.
    pub fn failed(&self) -> Vec<VolumeId> {
        let volumes = (0..self.plan.disks.len()).map(|disk| VolumeId(disk as u16));
        volumes.filter(|&volume| self.host.engine().is_failed(volume)).collect()
    }
}
