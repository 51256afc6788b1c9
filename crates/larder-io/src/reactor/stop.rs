//! How a reactor ends: the frontend finishes, requests drain, backings are flushed, sockets close, and only then memory goes.

use super::ReactorError;
use super::run::Reactor;
use crate::frontend::Frontend;
use std::time::{Duration, Instant};

/// Beyond the deadline, for cancelled operations to come back.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// Where a reactor is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not on its way.
    Running,
    /// Frontend and requests finish.
    Draining { deadline: Instant },
    /// Backings are flushed.
    Flushing { deadline: Instant, late: bool },
    /// Sockets are closed; the last operations come back.
    Closing { until: Instant, late: bool },
}

impl Phase {
    pub fn is_closing(self) -> bool {
        matches!(self, Self::Closing { .. })
    }
}

impl<F: Frontend> Reactor<F> {
    pub fn begin_stop(&mut self, within: Duration) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining { deadline: Instant::now() + within };
            self.frontend.stop(&mut self.cx);
        }
    }

    /// Go one phase on where the present one is over. The result of the reactor once it may end.
    pub fn advance_phase(&mut self) -> Option<Result<(), ReactorError>> {
        let now = self.cx.now;
        match self.phase {
            Phase::Running => {}
            Phase::Draining { deadline } => {
                let done = self.frontend.is_idle() && self.cx.driver.is_quiet();
                if done || now >= deadline {
                    self.flush(deadline, !done);
                }
            }
            Phase::Flushing { deadline, late } => {
                let done = self.cx.driver.is_quiet();
                if done || now >= deadline {
                    self.close(now, late || !done);
                }
            }
            Phase::Closing { until, late } => return self.closed(now >= until, late),
        }
        None
    }

    fn flush(&mut self, deadline: Instant, late: bool) {
        self.phase = Phase::Flushing { deadline, late };
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        driver.monitor.flush();
        driver.flush_backings(lane);
    }

    fn close(&mut self, now: Instant, late: bool) {
        self.phase = Phase::Closing { until: now + CLOSING_MAX, late };
        self.cx.lane.close_all();
        self.inbox.waker().ring_bell();
    }

    fn closed(&self, timed_out: bool, late: bool) -> Option<Result<(), ReactorError>> {
        let operations = self.cx.lane.in_flight();
        if operations > 0 && !timed_out {
            return None;
        }
        let requests = self.cx.driver.engine.in_flight();
        let clean = !late && operations == 0;
        Some(if clean { Ok(()) } else { Err(ReactorError::Unfinished { requests, operations }) })
    }
}
