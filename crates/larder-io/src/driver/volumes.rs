//! What is done to one volume while it is in use: its size, and keeping what would change it waiting.

use super::{Device, Driver};
use crate::Buffer;
use crate::frontend::{GuestRequest, VolumeInfo};
use crate::lane::Lane;
use crate::mailbox::VolumeError;
use larder_engine::{RequestKind, VolumeId};

/// A request that waits until its volume is thawed.
pub(super) struct Frozen {
    pub asked: GuestRequest,
    pub buffer: Option<Buffer>,
    pub cookie: u64,
}

/// True for requests that may change a volume.
pub(super) fn changes(kind: RequestKind) -> bool {
    !matches!(kind, RequestKind::Read | RequestKind::Flush)
}

impl Driver {
    /// The size that a volume could have: that of its backing, in whole units of a request.
    pub fn measure(&self, volume: VolumeId) -> Result<u64, VolumeError> {
        let info = self.volumes.get(usize::from(volume.0)).ok_or(VolumeError::Unknown)?.info;
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
        for Frozen { asked, buffer, cookie } in std::mem::take(&mut self.frozen) {
            // Those of other volumes come back here.
            self.submit(lane, asked, buffer, cookie);
        }
        self.act(lane);
    }
}
