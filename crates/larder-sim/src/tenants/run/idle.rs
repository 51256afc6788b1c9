//! Long times in which nobody asks for anything: they are passed over, or one time in a trace that is decades late would make as many decisions as there are epochs in decades.

use std::cmp::Reverse;

use super::super::arrivals::ns;
use super::super::result::Pause;
use super::{Event, Run};
use crate::Source;

/// After so many epochs in which nothing came all that fades by epochs has faded: tenants are forgotten sooner.
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
        // What was decided meanwhile may be written back before an event that was known earlier.
        if event != Event::Mover {
            self.event_ns = self.event_ns.max(now);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_back_before_a_request_does_not_undo_it() {
        let mut idle = Idle::default();
        idle.event(Event::Request(0), 1000);
        idle.event(Event::WriteBack(0, 0, 1), 10);
        idle.event(Event::Mover, 2000);
        assert_eq!(idle.event_ns, 1000);
    }

    #[test]
    fn the_longest_pause_is_between_two_requests() {
        let mut idle = Idle::default();
        [5, 5].into_iter().for_each(|now| idle.request(now * 1_000_000_000));
        assert_eq!(idle.longest, None);
        [7, 17, 20].into_iter().for_each(|now| idle.request(now * 1_000_000_000));
        assert_eq!(idle.longest, Some(Pause { from_seconds: 7.0, seconds: 10.0 }));
    }
}
