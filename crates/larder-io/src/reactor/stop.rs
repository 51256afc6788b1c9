//! How a reactor ends: the frontend finishes, requests drain, backings are flushed, sockets close, and only then memory goes.

use super::ReactorError;
use super::run::Reactor;
use crate::frontend::Frontend;
use std::time::{Duration, Instant};

/// For the backings to be flushed, also where draining took all the time that there was.
const FLUSHING_MIN: Duration = Duration::from_secs(5);
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
    Flushing { deadline: Instant },
    /// Sockets are closed; the last operations come back.
    Closing { until: Instant },
}

/// What was in flight when draining was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Late {
    /// Guest requests without an answer.
    requests: usize,
    /// By device.
    operations: Vec<u32>,
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
            self.thaw_all();
            self.cx.driver.engine.dismiss_movers();
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
            Phase::Flushing { deadline } => {
                if self.cx.driver.is_flushed() || now >= deadline {
                    self.close(now);
                }
            }
            Phase::Closing { until } => return self.closed(now >= until),
        }
        None
    }

    fn flush(&mut self, deadline: Instant, late: bool) {
        let crate::Context { lane, driver, now, .. } = &mut *self.cx;
        self.late = late.then(|| Late {
            requests: driver.unanswered(),
            operations: driver.stats.iter().map(|stats| stats.in_flight).collect(),
        });
        self.phase = Phase::Flushing { deadline: deadline.max(*now + FLUSHING_MIN) };
        driver.monitor.flush();
        if !late {
            driver.stop_cache(lane);
        }
        driver.flush_backings(lane);
    }

    fn close(&mut self, now: Instant) {
        self.phase = Phase::Closing { until: now + CLOSING_MAX };
        let crate::Context { lane, driver, .. } = &mut *self.cx;
        driver.close_backings(lane);
        // Farewells go out before the sockets are shut. Where this fails, so will the next turn, and that is reported.
        let _ = lane.enter(None);
        lane.close_all();
        self.inbox.waker().ring_bell();
    }

    fn closed(&self, timed_out: bool) -> Option<Result<(), ReactorError>> {
        let operations = self.cx.lane.in_flight();
        if operations > 0 && !timed_out {
            return None;
        }
        let late = self.late.as_ref();
        let devices = self.cx.driver.unfinished_devices(late.map_or(&[], |late| &late.operations));
        let clean = late.is_none() && operations == 0 && devices.is_empty();
        let requests = late.map_or(0, |late| late.requests);
        Some(if clean { Ok(()) } else { Err(ReactorError::Unfinished { requests, operations, devices }) })
    }
}
