//! Letting go of a cache device that was given up, and going on with one that was opened anew.

use super::{CACHE, Device, Driver};
use crate::cache_device::HEADER_BYTES;
use crate::file::FileDevice;
use crate::lane::Lane;
use crate::slots::SharedPool;
use larder_engine::format::Recovered;
use larder_engine::{OpenError, Resumed};

/// A cache to go on with.
#[derive(Debug)]
pub(crate) struct Another {
    pub device: FileDevice,
    /// What it holds; `None` for one that is not kept.
    pub kept: Option<Box<Recovered>>,
    /// Its free slots.
    pub pool: SharedPool,
}

impl Driver {
    /// Close the cache device if the engine is done with it, and nothing is in flight on it. True if it is closed.
    pub fn release_cache(&mut self, lane: &mut Lane) -> bool {
        if !self.engine.is_detached() || self.stats[CACHE].in_flight > 0 {
            return false;
        }
        self.close_cache(lane);
        true
    }

    /// True if the cache device is closed.
    pub fn is_cache_closed(&self) -> bool {
        matches!(self.devices[CACHE], Device::Gone { .. })
    }

    fn close_cache(&mut self, lane: &mut Lane) {
        let name = self.devices[CACHE].name();
        let old = std::mem::replace(&mut self.devices[CACHE], Device::Gone { index: CACHE, name });
        if let Device::File(file) = old {
            file.close(lane);
        }
    }

    /// Go on with another cache. The engine is detached, and still.
    pub fn attach_cache(&mut self, another: Another, lane: &mut Lane) -> Result<Resumed, OpenError> {
        let Another { device, kept, pool } = another;
        let kept = kept.as_ref().map(|recovered| (&**recovered, self.known_volumes()));
        let resumed = self.engine.resume_cache(kept, Box::new(pool));
        if resumed.is_ok() {
            self.devices[CACHE] = Device::file(device, CACHE, lane);
            self.data_offset = self.engine.data_offset().unwrap_or(HEADER_BYTES);
        }
        self.act(lane);
        resumed
    }
}
