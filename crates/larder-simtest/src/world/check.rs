//! What holds at any moment, and what is looked at when everything is at rest.

use super::World;
use larder_engine::{SECTOR_BYTES, TenantId, VolumeId};
use larder_io::sim::{Done, ask};
use std::collections::BTreeSet;

/// Seconds in which all that is dirty must have been written back, backings that fail now and then among them.
const DRAIN_MAX: usize = 2000;

impl World {
    /// Read everything, then look at the backings: both have to show the same.
    pub fn read_everything(&mut self) {
        self.settle();
        let served = (0..self.plan.disks.len()).filter(|&disk| self.is_served(disk));
        for volume in served.map(|disk| VolumeId(disk as u16)).collect::<Vec<_>>() {
            let bytes = self.host.engine().volume_bytes(volume);
            self.submit(ask::read(volume, 0, bytes));
        }
        self.settle();
        for disk in 0..self.plan.disks.len() {
            if self.is_through(disk) {
                self.observe_backing(VolumeId(disk as u16), 0, self.plan.disks[disk].bytes);
            }
        }
    }

    /// Write all that is dirty back, and look at the backings. They fail no more but by rate.
    pub fn drain(&mut self) {
        let disks = 0..self.plan.disks.len() as u16;
        disks.clone().for_each(|disk| self.host.backing(VolumeId(disk)).forgive());
        disks.clone().map(VolumeId).for_each(|volume| self.host.set_drain(volume, true));
        // What is damaged stays: nobody else has it. So does what is on a cache device that does not answer.
        let is_done = |world: &Self| {
            let engine = world.host.engine();
            let lost = |volume| engine.lost().filter(|lost| lost.0 == volume).count();
            let is_gone = |volume| world.is_lost && engine.is_failed(volume);
            let is_clean = |volume| engine.dirty_of(volume) as usize == lost(volume);
            disks
                .clone()
                .map(VolumeId)
                .all(|volume| is_gone(volume) || (!engine.is_failed(volume) && is_clean(volume)))
        };
        for _ in 0..DRAIN_MAX {
            self.settle();
            if is_done(self) {
                disks.clone().map(VolumeId).for_each(|volume| self.host.set_drain(volume, false));
                self.settle();
                return disks
                    .filter(|&disk| !self.host.engine().is_failed(VolumeId(disk)))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|disk| {
                        self.observe_backing(VolumeId(disk), 0, self.plan.disks[usize::from(disk)].bytes)
                    });
            }
            if !self.is_lost && self.host.engine().cache_failed() {
                self.back();
                // One that may be damaged is not gone on with: it is as if it stayed away.
                self.is_lost = self.host.engine().cache_failed() && self.attaching.is_none();
            }
            self.tick();
        }
        panic!("the cleaner never comes to an end");
    }

    /// A backing holds what its guests may read, but for what the cache alone had and was damaged there.
    pub fn observe_backing(&mut self, volume: VolumeId, offset: u64, len: u64) {
        let mut content = vec![0; len as usize];
        self.host.backing(volume).content().read(offset, &mut content);
        let lost = self.host.engine().lost().filter(|lost| lost.0 == volume).map(|lost| lost.1);
        let lost: BTreeSet<u64> = lost.collect();
        let sectors = self.plan.block_bytes() / SECTOR_BYTES;
        for (sector, bytes) in (offset / SECTOR_BYTES..).zip(content.chunks(SECTOR_BYTES as usize)) {
            if lost.contains(&(sector / sectors)) {
                continue;
            }
            self.oracle.observe(volume, sector, bytes);
            self.survivors.see(volume, sector, bytes);
        }
    }

    /// Hold what has ended against what may be.
    pub(super) fn take_done(&mut self) {
        // A device that answers nothing is no reason to call blocks lost.
        if !self.is_lost {
            self.out_of_order.extend(self.host.engine().lost().map(|lost| lost.0));
        }
        for Done { request, result, data } in self.host.take_done() {
            self.trace.line(|| format!("    {:?} ends: {result:?}", request.id));
            self.oracle.end(&request, result, &data);
            self.survivors.end(&request, result.is_ok(), &data);
            self.prefix.end(&request, result.is_ok());
            let disk = usize::from(request.volume.0);
            assert!(!self.serves_all(disk) || result.is_ok(), "nothing fails: {request:?}");
            self.live.remove(&request.id);
            let refused = self.refused.remove(&request.id);
            assert!(!refused || result.is_err(), "its volume has failed, and is served: {request:?}");
        }
    }

    /// The backings of ordered volumes are what those were after some of their flushes, unless what the cache alone had was damaged.
    pub(super) fn check_prefixes(&mut self) {
        let sound = !self.excuses.spoiled && !self.excuses.unreadable;
        for (number, disk) in (0..).zip(&self.plan.disks) {
            let volume = VolumeId(number);
            if disk.ordered && sound && !self.out_of_order.contains(&volume) {
                let Self { prefix, host, looks, .. } = self;
                prefix.check(volume, host.backing(volume), looks);
            }
        }
    }

    /// Where partitions lend, whoever has more than it may hold gets nothing more.
    pub(super) fn check_most(&mut self) {
        let engine = self.host.engine();
        for (at, tenant) in self.plan.tenants.iter().enumerate().take(self.held.len()) {
            let held = engine.occupied(TenantId(at as u16));
            let most = tenant.most.max(tenant.quota).max(self.held[at]);
            assert!(
                !engine.is_lending() || held <= most,
                "tenant {at} holds {held} blocks and may hold {most}"
            );
        }
        self.held = (0..self.plan.tenants.len()).map(|at| engine.occupied(TenantId(at as u16))).collect();
    }

    /// The same, and every invariant.
    pub(super) fn check(&mut self) {
        self.take_done();
        self.check_most();
        if self.looks.below(4) == 0 {
            self.check_prefixes();
        }
        let engine = self.host.engine();
        engine.self_check();
        for (number, &through) in (0..).map(TenantId).zip(&self.through) {
            let errors = engine.stats(number).checksum_errors;
            assert!(self.excuses.spoiled || errors == 0, "a block was mapped that is not in its slot");
            let dirty = engine.dirty(number);
            assert!(dirty == 0 || !through, "{number:?} holds {dirty} dirty blocks");
        }
        let failed = self.failed().into_iter().find(|volume| self.is_through(usize::from(volume.0)));
        assert!(failed.is_none(), "{failed:?} has failed, and its backing has all of it");
    }
}
