//! Volumes come and go while the reactor works.
//!
//! One that comes may be served once the cache durably knows its name. One that goes has been drained, and no frontend has it any more: everything cached of it
//! is dropped, its backing flushed, and when nothing is in flight the backing is closed. Where that does not end in time the volume stays.

use super::run::Reactor;
use super::stop::Phase;
use super::volumes::Answer;
use crate::frontend::{Frontend, VolumeInfo};
use crate::mailbox::{NewTenant, NewVolume, VolumeError};
use larder_engine::{Drain, TenantId, VolumeId};
use std::time::{Duration, Instant};

/// How long a volume may take to leave, once it is drained: a few writes to the cache device, and a flush of its backing.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Those that are on their way.
#[derive(Debug, Default)]
pub(super) struct ComeAndGo {
    coming: Vec<Coming>,
    going: Vec<Going>,
    /// Volumes that are gone, and whose backings were taken leave of a turn ago.
    parted: Vec<(VolumeId, Answer<()>)>,
}

#[derive(Debug)]
struct Coming {
    volume: VolumeId,
    answer: Answer<(VolumeId, VolumeInfo)>,
}

#[derive(Debug)]
struct Going {
    volume: VolumeId,
    until: Instant,
    answer: Answer<()>,
}

impl ComeAndGo {
    pub fn is_busy(&self) -> bool {
        !(self.coming.is_empty() && self.going.is_empty() && self.parted.is_empty())
    }

    pub fn has(&self, volume: VolumeId) -> bool {
        self.coming.iter().any(|coming| coming.volume == volume)
            || self.going.iter().any(|going| going.volume == volume)
    }
}

impl<F: Frontend> Reactor<F> {
    /// Add a tenant, without volumes.
    pub fn add_tenant(&mut self, new: &NewTenant) -> Result<TenantId, VolumeError> {
        self.tenants = self.tenants.checked_add(1).ok_or(VolumeError::Tenants)?;
        let NewTenant { quota_blocks, policy, caching, dirty } = *new;
        let engine = &mut self.cx.driver.engine;
        let tenant = engine.add_tenant(quota_blocks, policy);
        engine.set_caching(tenant, caching);
        engine.set_dirty_limits(tenant, dirty);
        Ok(tenant)
    }

    /// Add a volume.
    pub fn join_volume(&mut self, new: NewVolume, answer: Answer<(VolumeId, VolumeInfo)>) {
        let joined = match () {
            () if self.phase != Phase::Running => Err(VolumeError::Stopping),
            () if new.tenant.0 >= self.tenants => Err(VolumeError::Unknown),
            () => {
                let crate::Context { lane, driver, .. } = &mut *self.cx;
                let joined = driver.join(lane, self.inbox.waker(), new);
                driver.act(lane);
                joined
            }
        };
        match joined {
            Ok(volume) => self.volumes.comings.coming.push(Coming { volume, answer }),
            Err(error) => _ = answer.send(Err(error)),
        }
    }

    /// Let a volume leave.
    pub fn leave_volume(&mut self, volume: VolumeId, answer: Answer<()>) {
        let driver = &self.cx.driver;
        let engine = &driver.engine;
        let stuck = self.stuck_with(volume);
        let refused = match () {
            () if !driver.has(volume) => Some(VolumeError::Unknown),
            () if engine.is_failed(volume) => Some(VolumeError::Failed),
            () if stuck.is_some() => stuck.map(|blocks| VolumeError::Lost { blocks }),
            () if engine.dirty_of(volume) > 0 => Some(VolumeError::Dirty),
            () if engine.draining(volume) != Drain::Done && !engine.cache_failed() => {
                Some(VolumeError::Dirty)
            }
            () if self.volumes.has(volume) => Some(VolumeError::Busy),
            () => None,
        };
        if let Some(refused) = refused {
            _ = answer.send(Err(refused));
            return;
        }
        self.cx.driver.engine.forget_volume(volume);
        self.trim_due = true;
        self.volumes.comings.going.push(Going { volume, until: Instant::now() + GONE_WITHIN, answer });
    }

    /// Go a step further with those that are on their way.
    pub fn go_on_coming_and_going(&mut self) {
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        let comings = &mut self.volumes.comings;
        // What was sent to a server when its volume parted is on its way by now.
        for (volume, answer) in std::mem::take(&mut comings.parted) {
            driver.close_backing(lane, volume);
            _ = answer.send(Ok(()));
        }
        for Coming { volume, answer } in std::mem::take(&mut comings.coming) {
            match driver.engine.is_joined(volume) {
                true => _ = answer.send(Ok((volume, driver.volumes[usize::from(volume.0)].info))),
                false => comings.coming.push(Coming { volume, answer }),
            }
        }
        for Going { volume, until, answer } in std::mem::take(&mut comings.going) {
            let gone = driver.engine.leave_volume(volume);
            driver.act(lane);
            if gone && driver.part_from(lane, volume) {
                comings.parted.push((volume, answer));
            } else if !gone && Instant::now() >= until {
                driver.engine.stop_forgetting(volume);
                _ = answer.send(Err(VolumeError::Slow));
            } else {
                comings.going.push(Going { volume, until, answer });
            }
        }
    }
}
