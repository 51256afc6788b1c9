//! What is done to one volume while it is in use, and takes several turns of the loop: it grows, it is kept quiet for a snapshot of its backing, everything
//! cached of it is dropped. How it comes and goes is in [`super::come_and_go`].
//!
//! A volume is quiet when its backing durably has all that its guests were told is written, and nothing changes it: it is drained, then what would change it
//! waits here, and when the last such request has ended the backing is flushed once more. It stays so for a bounded time, since its guests hang meanwhile.

use super::come_and_go::ComeAndGo;
use super::run::Reactor;
use super::stop::Phase;
use crate::frontend::{Frontend, VolumeInfo};
use crate::mailbox::{DrainCommand, VolumeError};
use larder_engine::{Drain, VolumeId};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a dropping may take: it is a few writes to the cache device.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// Something to be told of its end. Nobody may be there to hear it.
pub(super) type Answer<T> = Sender<Result<T, VolumeError>>;

/// What is under way, by volume.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    growing: Vec<Growing>,
    forgetting: Vec<Forgetting>,
    quiet: Vec<Quiet>,
    pub comings: ComeAndGo,
}

/// It ends when the engine has it, or the cache device fails: nothing else would tell the frontend of a size that comes late.
#[derive(Debug)]
struct Growing {
    volume: VolumeId,
    bytes: u64,
    answer: Answer<VolumeInfo>,
}

#[derive(Debug)]
struct Forgetting {
    volume: VolumeId,
    until: Instant,
    answer: Answer<()>,
}

#[derive(Debug)]
struct Quiet {
    volume: VolumeId,
    stage: Stage,
    /// The volume is to be drained also when it is not quiet any more: it was before, or somebody has asked for it since.
    drained: bool,
    until: Instant,
    /// How long it stays quiet.
    hold: Duration,
}

#[derive(Debug)]
enum Stage {
    /// It is drained.
    Draining(Answer<()>),
    /// What would change it waits; what came before has not all ended.
    Ending(Answer<()>),
    /// The backing is flushed.
    Flushing(Answer<()>),
    Quiet,
}

impl Volumes {
    pub fn is_busy(&self) -> bool {
        let still = self.growing.is_empty() && self.forgetting.is_empty() && self.quiet.is_empty();
        !still || self.comings.is_busy()
    }

    /// A volume is to be drained, or not. True if it is quiet, or about to be, and drained for that: then what is asked holds from its end on. It must not
    /// become dirty with that end if somebody relies on its being drained.
    pub fn note_drain(&mut self, volume: VolumeId, how: DrainCommand) -> bool {
        let Some(quiet) = self.quiet.iter_mut().find(|quiet| quiet.volume == volume) else { return false };
        match how {
            DrainCommand::Once => {}
            DrainCommand::On => quiet.drained = true,
            DrainCommand::Off => quiet.drained = false,
        }
        true
    }

    /// True if something is being done to the volume.
    pub fn has(&self, volume: VolumeId) -> bool {
        self.growing.iter().any(|growing| growing.volume == volume)
            || self.forgetting.iter().any(|forgetting| forgetting.volume == volume)
            || self.quiet.iter().any(|quiet| quiet.volume == volume)
            || self.comings.has(volume)
    }

    /// True if the volume is quiet.
    pub fn is_quiet(&self, volume: VolumeId) -> bool {
        self.quiet.iter().any(|quiet| quiet.volume == volume && matches!(quiet.stage, Stage::Quiet))
    }
}

impl<F: Frontend> Reactor<F> {
    /// Let a volume have the size that its backing has now.
    pub fn grow_volume(&mut self, volume: VolumeId, answer: Answer<VolumeInfo>) {
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        let began = driver.measure(volume).and_then(|bytes| {
            driver.engine.grow_volume(volume, bytes)?;
            Ok(bytes)
        });
        driver.act(lane);
        match began {
            Ok(bytes) => {
                self.volumes.growing.push(Growing { volume, bytes, answer });
            }
            Err(error) => _ = answer.send(Err(error)),
        }
    }

    /// Drop everything cached of a volume that has nothing dirty.
    pub fn forget_volume(&mut self, volume: VolumeId, answer: Answer<()>) {
        let driver = &mut self.cx.driver;
        let refused = match () {
            () if !driver.has(volume) => Some(VolumeError::Unknown),
            () if driver.engine.dirty_of(volume) > 0 => Some(VolumeError::Dirty),
            () => None,
        };
        if let Some(refused) = refused {
            _ = answer.send(Err(refused));
            return;
        }
        driver.engine.forget_volume(volume);
        self.trim_due = true;
        self.volumes.forgetting.push(Forgetting { volume, until: Instant::now() + DONE_WITHIN, answer });
    }

    /// Have a volume quiet, `within` some time, for at most so long.
    pub fn quiesce(&mut self, volume: VolumeId, within: Duration, hold: Duration, answer: Answer<()>) {
        let known = self.cx.driver.has(volume);
        let busy = self.volumes.quiet.iter().any(|quiet| quiet.volume == volume);
        let refused = match () {
            () if !known => Some(VolumeError::Unknown),
            () if busy => Some(VolumeError::Quiet),
            () if self.phase != Phase::Running => Some(VolumeError::Stopping),
            () if self.cx.driver.engine.is_failed(volume) => Some(VolumeError::Failed),
            () => None,
        };
        if let Some(refused) = refused {
            _ = answer.send(Err(refused));
            return;
        }
        let drained = matches!(self.cx.driver.engine.draining(volume), Drain::On | Drain::Done);
        self.drain_again(volume);
        let (stage, until) = (Stage::Draining(answer), Instant::now() + within);
        self.volumes.quiet.push(Quiet { volume, stage, drained, until, hold });
    }

    /// Let a volume go on. False where it was not quiet (any more).
    pub fn thaw(&mut self, volume: VolumeId) -> bool {
        let was_quiet = self.volumes.is_quiet(volume);
        let found = self.volumes.quiet.iter().position(|quiet| quiet.volume == volume);
        if let Some(at) = found {
            let quiet = self.volumes.quiet.swap_remove(at);
            self.release(quiet, &VolumeError::Thawed);
        }
        was_quiet
    }

    /// All that is quiet goes on: the reactor ends.
    pub fn thaw_all(&mut self) {
        for quiet in std::mem::take(&mut self.volumes.quiet) {
            self.release(quiet, &VolumeError::Stopping);
        }
    }

    fn release(&mut self, quiet: Quiet, why: &VolumeError) {
        let Quiet { volume, stage, drained, .. } = quiet;
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        if !drained {
            driver.engine.drain(volume, false);
        }
        driver.thaw(lane, volume);
        match stage {
            Stage::Draining(answer) | Stage::Ending(answer) | Stage::Flushing(answer) => {
                _ = answer.send(Err(why.clone()));
            }
            Stage::Quiet => {}
        }
    }

    /// Blocks of a volume that are lost, where nothing else is dirty: only its guest can change that.
    pub(super) fn stuck_with(&self, volume: VolumeId) -> Option<u32> {
        let engine = &self.cx.driver.engine;
        Some(engine.lost_of(volume)).filter(|&lost| lost > 0 && engine.dirty_of(volume) <= lost)
    }

    /// Drain, and flush the backing in any case.
    fn drain_again(&mut self, volume: VolumeId) {
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        driver.engine.drain(volume, true);
        driver.act(lane);
    }

    /// Go a step further with all that is under way.
    pub fn go_on_with_volumes(&mut self) {
        if self.volumes.is_busy() {
            self.go_on_growing();
            self.go_on_forgetting();
            self.go_on_quieting();
            self.go_on_coming_and_going();
        }
    }

    fn go_on_growing(&mut self) {
        for growing in std::mem::take(&mut self.volumes.growing) {
            let Growing { volume, bytes, answer } = growing;
            let driver = &mut self.cx.driver;
            if driver.engine.volume_bytes(volume) == bytes {
                let info = driver.set_bytes(volume, bytes);
                self.frontend.resized(&mut self.cx, volume, info);
                _ = answer.send(Ok(info));
            } else if driver.engine.cache_failed() {
                _ = answer.send(Err(VolumeError::Slow));
            } else {
                self.volumes.growing.push(Growing { volume, bytes, answer });
            }
        }
    }

    fn go_on_forgetting(&mut self) {
        let now = Instant::now();
        for forgetting in std::mem::take(&mut self.volumes.forgetting) {
            let crate::Context { lane, driver, .. } = &mut *self.cx;
            let done = driver.engine.go_on_forgetting(forgetting.volume);
            driver.act(lane);
            if done {
                _ = forgetting.answer.send(Ok(()));
            } else if now >= forgetting.until {
                driver.engine.stop_forgetting(forgetting.volume);
                _ = forgetting.answer.send(Err(VolumeError::Slow));
            } else {
                self.volumes.forgetting.push(forgetting);
            }
        }
    }

    fn go_on_quieting(&mut self) {
        for quiet in std::mem::take(&mut self.volumes.quiet) {
            let stuck = self.stuck_with(quiet.volume).filter(|_| !matches!(quiet.stage, Stage::Quiet));
            if let Some(blocks) = stuck {
                self.release(quiet, &VolumeError::Lost { blocks });
                continue;
            }
            if Instant::now() < quiet.until {
                let next = self.go_on_quieting_one(quiet);
                self.volumes.quiet.push(next);
                continue;
            }
            if matches!(quiet.stage, Stage::Quiet) {
                tracing::warn!(volume = quiet.volume.0, "nobody has thawed the volume in time: it goes on");
            }
            self.release(quiet, &VolumeError::Slow);
        }
    }

    fn go_on_quieting_one(&mut self, mut quiet: Quiet) -> Quiet {
        let volume = quiet.volume;
        let is_drained = self.cx.driver.engine.draining(volume) == Drain::Done;
        quiet.stage = match quiet.stage {
            Stage::Draining(answer) if is_drained => {
                self.cx.driver.freeze(volume);
                Stage::Ending(answer)
            }
            Stage::Ending(answer) if !self.cx.driver.engine.is_being_changed(volume) => {
                self.drain_again(volume);
                Stage::Flushing(answer)
            }
            Stage::Flushing(answer) if is_drained => {
                quiet.until = Instant::now() + quiet.hold;
                _ = answer.send(Ok(()));
                Stage::Quiet
            }
            stage => stage,
        };
        quiet
    }
}
