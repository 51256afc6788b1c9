//! Volumes come and go while the engine works. Who has left is written by somebody else from then on, and comes back with the next start.

use super::{World, stamp_all};
use crate::plan::Disk;
use larder_engine::{Drain, TenantId, VolumeId};
use larder_io::sim::{FIRST, FaultModel};

/// How far a volume is with leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Nobody asks anything of it any more; it is drained.
    Draining,
    /// What is cached of it is dropped.
    Forgetting,
    /// It is gone.
    Gone,
}

impl World {
    /// A volume comes, if it can.
    pub fn join(&mut self, tenant: usize, bytes: u64, ordered: bool) {
        let number = self.plan.disks.len();
        let disk = Disk { tenant, bytes, identity: 0, ordered };
        let known = Self::known(number as u8, &disk);
        let model = FaultModel { power_cuts: true, ..self.plan.backing.clone() };
        if !self.host.join(TenantId(tenant as u16), known, ordered, model) {
            return self.tell(|| "  it cannot".into());
        }
        let volume = self.know_disk(&disk);
        self.plan.disks.push(disk);
        stamp_all(self.host.backing(volume), volume, FIRST);
        self.check();
    }

    /// A volume leaves, when it can: nobody asks anything of it from now on.
    pub fn leave(&mut self, disk: usize) {
        if self.is_served(disk) {
            self.leaving.insert(disk, Leaving::Draining);
            self.host.set_drain(VolumeId(disk as u16), true);
            self.check();
        }
    }

    /// True if guests may ask something of a volume.
    pub fn is_served(&self, disk: usize) -> bool {
        disk < self.plan.disks.len()
            && !self.leaving.contains_key(&disk)
            && self.host.engine().is_joined(VolumeId(disk as u16))
    }

    /// True if a volume has left.
    pub fn is_gone(&self, disk: usize) -> bool {
        self.leaving.get(&disk) == Some(&Leaving::Gone)
    }

    /// True if a volume is on its way.
    pub(super) fn is_anyone_leaving(&self) -> bool {
        self.leaving.values().any(|leaving| *leaving != Leaving::Gone)
    }

    /// Go a step further with those that leave.
    pub(super) fn go_on_leaving(&mut self) {
        for disk in self.leaving.keys().copied().collect::<Vec<_>>() {
            let volume = VolumeId(disk as u16);
            let engine = self.host.engine();
            match self.leaving[&disk] {
                Leaving::Draining if engine.draining(volume) == Drain::Done => {
                    self.host.forget_volume(volume);
                    self.leaving.insert(disk, Leaving::Forgetting);
                }
                Leaving::Forgetting => {
                    self.host.trim(1000);
                    if self.host.leave(volume) {
                        self.leaving.insert(disk, Leaving::Gone);
                        self.tell(|| format!("  volume {disk} is gone; somebody else writes to its backing"));
                        self.rewritten(disk);
                    }
                }
                Leaving::Draining | Leaving::Gone => {}
            }
        }
    }
}
