//! What is done to one volume while the reactor works: it comes and goes, has another size, and what would change it waits.

use super::{Device, Driver, Volume};
use crate::Backing;
use crate::frontend::{GuestRequest, VolumeInfo};
use crate::lane::Lane;
use crate::mailbox::{NewVolume, VolumeError, Waker};
use crate::memory::Held;
use crate::stats::{DeviceStats, Sampler};
use larder_engine::format;
use larder_engine::{RequestKind, VolumeId};
use std::sync::Arc;

/// A request that waits until its volume is thawed.
pub(super) struct Frozen {
    pub asked: GuestRequest,
    pub memory: Option<Held>,
    pub cookie: u64,
}

/// True for requests that may change a volume.
pub(super) fn changes(kind: RequestKind) -> bool {
    !matches!(kind, RequestKind::Read | RequestKind::Flush)
}

impl Driver {
    /// True for a volume that is here.
    pub fn has(&self, volume: VolumeId) -> bool {
        usize::from(volume.0) < self.volumes.len() && !self.engine.is_gone(volume)
    }

    /// The volumes that are here, as a cache that is kept knows them, with the sizes that they have now.
    pub fn known_volumes(&self) -> Vec<format::Volume> {
        let here = self.volumes.iter().zip((0..).map(VolumeId)).filter(|(_, id)| !self.engine.is_gone(*id));
        let known = here.filter_map(|(volume, _)| Some((volume.known.clone()?, volume.info.bytes)));
        known.map(|(known, bytes)| format::Volume { bytes, ..known }).collect()
    }

    /// Take another volume, which may be served when [`larder_engine::Engine::is_joined`] says so.
    pub fn join(
        &mut self,
        lane: &mut Lane,
        waker: &Arc<Waker>,
        new: NewVolume,
    ) -> Result<VolumeId, VolumeError> {
        let NewVolume { tenant, backing, ordered, known } = new;
        let info = backing.info(self.engine.cache_block_bytes());
        let (index, name) = (self.devices.len(), backing.name());
        let is_nbd = matches!(backing, Backing::Nbd(_));
        let started = backing.into_device(index, lane, waker);
        let device = started.map_err(|error| VolumeError::Start { backing: name, why: error.to_string() })?;
        let known = format::Volume { bytes: info.bytes, ..known };
        let volume = match self.engine.join_volume(tenant, known.clone(), ordered) {
            Ok(volume) => volume,
            Err(error) => {
                close(device, lane);
                return Err(error.into());
            }
        };
        debug_assert_eq!(usize::from(volume.0) + 1, index, "identities are dense");
        self.volumes.push(Volume { known: Some(known), ..Volume::new(tenant, info) });
        self.devices.push(device);
        self.nbds.extend(is_nbd.then_some(index));
        self.stats.push(DeviceStats::default());
        self.samplers.push(Sampler::default());
        Ok(volume)
    }

    /// A volume has left the engine: take leave of its backing. False while an operation is in flight on it.
    pub fn part_from(&mut self, lane: &mut Lane, volume: VolumeId) -> bool {
        let index = usize::from(volume.0) + 1;
        if self.stats[index].in_flight > 0 {
            return false;
        }
        if let Device::Nbd(nbd) = &mut self.devices[index] {
            nbd.closing();
            nbd.farewell(lane);
        }
        true
    }

    /// Close it, a turn later.
    pub fn close_backing(&mut self, lane: &mut Lane, volume: VolumeId) {
        let index = usize::from(volume.0) + 1;
        let name = self.devices[index].name();
        self.nbds.retain(|&device| device != index);
        self.unfinished.retain(|&device| device != index);
        close(std::mem::replace(&mut self.devices[index], Device::Gone { index, name }), lane);
    }

    /// The size that a volume could have: that of its backing, in whole units of a request.
    pub fn measure(&self, volume: VolumeId) -> Result<u64, VolumeError> {
        let known = self.volumes.get(usize::from(volume.0)).filter(|_| self.has(volume));
        let info = known.ok_or(VolumeError::Unknown)?.info;
        let device = &self.devices[usize::from(volume.0) + 1];
        let failed = |why: &dyn std::fmt::Display| VolumeError::Measure {
            backing: device.name(),
            why: why.to_string(),
        };
        let bytes = match device {
            Device::File(file) => file.device.measure().map_err(|error| failed(&error))?,
            _ => return Err(failed(&"the size of an NBD server's export is fixed while it is connected")),
        };
        Ok(bytes - bytes % u64::from(info.min_block))
    }

    /// A volume has grown: let requests reach its new end. What it is like now.
    pub fn set_bytes(&mut self, volume: VolumeId, bytes: u64) -> VolumeInfo {
        let info = &mut self.volumes[usize::from(volume.0)].info;
        info.bytes = bytes;
        if let Device::File(file) = &mut self.devices[usize::from(volume.0) + 1] {
            file.device.set_bytes(bytes);
        }
        *info
    }

    /// Keep what would change a volume waiting.
    pub fn freeze(&mut self, volume: VolumeId) {
        self.volumes[usize::from(volume.0)].frozen = true;
    }

    /// Go on with what waited.
    pub fn thaw(&mut self, lane: &mut Lane, volume: VolumeId) {
        self.volumes[usize::from(volume.0)].frozen = false;
        for Frozen { asked, memory, cookie } in std::mem::take(&mut self.frozen) {
            // Those of other volumes come back here.
            self.submit(lane, asked, memory, cookie);
        }
        self.act(lane);
    }
}

/// Let go of a device on which nothing is in flight.
fn close(device: Device, lane: &mut Lane) {
    match device {
        Device::File(file) => file.close(lane),
        Device::Nbd(nbd) => nbd.close(lane),
        Device::Gone { .. } => {}
    }
}
