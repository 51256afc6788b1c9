//! Another cache device under a running reactor: the old one is closed when the engine is done with it; the new one is taken when nothing is under way.

use super::run::Reactor;
use super::stop::Phase;
use crate::driver::Another;
use crate::frontend::Frontend;
use crate::mailbox::AttachError;
use larder_engine::Resumed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long guests wait for what is under way to end, before the reactor goes on without the cache.
const STILL_WITHIN: Duration = Duration::from_secs(5);

/// What is to become of the cache device.
#[derive(Debug, Default)]
pub(super) struct Swap {
    /// It is to be closed.
    closing: bool,
    /// Another one waits for everything to be still.
    attaching: Option<Attaching>,
}

#[derive(Debug)]
struct Attaching {
    another: Box<Another>,
    answer: mpsc::Sender<Result<Resumed, AttachError>>,
    until: Instant,
}

impl Swap {
    pub fn is_under_way(&self) -> bool {
        self.closing || self.attaching.is_some()
    }
}

impl<F: Frontend> Reactor<F> {
    /// Use the cache device no more.
    pub fn detach_cache(&mut self) {
        if self.cx.driver.is_cache_closed() {
            return;
        }
        self.swap.closing = true;
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        driver.engine.detach_cache();
        driver.act(lane);
    }

    /// Go on with another one, when everything is still.
    pub fn attach_cache(
        &mut self,
        another: Box<Another>,
        answer: mpsc::Sender<Result<Resumed, AttachError>>,
    ) {
        let refused = match () {
            () if self.phase != Phase::Running => Some(AttachError::Stopping),
            () if !self.cx.driver.is_cache_closed() || self.swap.is_under_way() => Some(AttachError::InUse),
            () if another.device.align() > self.cx.driver.engine.cache_align() => Some(AttachError::Sectors),
            () => None,
        };
        if let Some(refused) = refused {
            // Nobody may be there to hear it, here and below.
            let _ = answer.send(Err(refused));
            return;
        }
        self.cx.driver.engine.hold(true);
        self.swap.attaching = Some(Attaching { another, answer, until: Instant::now() + STILL_WITHIN });
    }

    /// Go a step further, if one is due.
    pub fn swap_cache(&mut self) {
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        if self.swap.closing && driver.release_cache(lane) {
            self.swap.closing = false;
        }
        let Some(attaching) = self.swap.attaching.take() else { return };
        if driver.engine.is_still() {
            let resumed = driver.attach_cache(*attaching.another, lane);
            let _ = attaching.answer.send(resumed.map_err(AttachError::Open));
        } else if Instant::now() >= attaching.until || self.phase != Phase::Running {
            driver.engine.hold(false);
            driver.act(lane);
            let _ = attaching.answer.send(Err(AttachError::Busy));
        } else {
            self.swap.attaching = Some(attaching);
        }
    }
}
