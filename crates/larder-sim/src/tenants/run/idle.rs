//! Long times in which nobody asks for anything: they are passed over, or one time in a trace that is decades late would make as many decisions as there are epochs in decades.

use std::cmp::Reverse;

use super::super::arrivals::ns;
use super::super::result::Pause;
use super::{Event, Run};
use crate::Source;

/// After so many epochs in which nothing came a decision says what the one before said: tenants are forgotten sooner.
const IDLE_EPOCHS: f64 = 256.0;

/// When something came last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    /// Anything but a mover's turn.
    event_ns: u64,
    /// A request.
    request_ns: Option<u64>,
    /// The longest time between two requests.
    pub(super) longest: Option<Pause>,
}

impl Idle {
    pub(super) fn event(&mut self, event: Event, now: u64) {
        if event != Event::Mover {
            self.event_ns = now;
        }
    }

    pub(super) fn request(&mut self, now: u64) {
        if let Some(before) = self.request_ns.replace(now).filter(|&before| before < now) {
            let pause = Pause { from_seconds: before as f64 / 1e9, seconds: (now - before) as f64 / 1e9 };
            if self.longest.is_none_or(|longest| longest.seconds < pause.seconds) {
                self.longest = Some(pause);
            }
        }
    }
}

impl<S: Source> Run<'_, S> {
    /// Nothing has come for long at `now`, and decisions do not follow a daemon's.
    fn is_long_idle(&self, now: u64) -> bool {
        let idle = now.saturating_sub(self.idle.event_ns);
        self.plan.recorded.is_none() && idle > ns(self.profile.epoch_seconds * IDLE_EPOCHS)
    }

    /// A decision is due, and the next event comes at `at`. True if all decisions up to the last one before it are passed over.
    pub(super) fn passes_over(&mut self, due: u64, at: u64) -> bool {
        self.is_long_idle(due) && self.control.pass_over(at as f64 / 1e9)
    }

    /// When a mover that comes every so many nanoseconds comes next: nobody waits for its turns before the next event.
    pub(super) fn next_turn(&self, every: u64) -> u64 {
        let next = self.now + every;
        match self.events.peek() {
            Some(&Reverse((at, _))) if at > next && self.is_long_idle(self.now) => {
                next + (at - next) / every * every
            }
            _ => next,
        }
    }
}
