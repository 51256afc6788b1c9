//! A run that does again what a daemon did: its decisions come when they came there, and its requests take what they took there.

use larder_alloc::Timed;
use larder_alloc::control::{ControlLoop, ServedBy};

use super::super::arrivals::ns;
use super::super::plan::Recorded;

/// Where the run is in what was recorded, if anything was.
pub(super) struct Followed<'a> {
    recorded: Option<&'a Recorded>,
    /// Decisions that lie behind.
    past: usize,
}

impl<'a> Followed<'a> {
    pub(super) fn new(recorded: Option<&'a Recorded>) -> Self {
        Self { recorded, past: 0 }
    }

    /// Decisions come when the daemon's did, and at no other times.
    pub(super) fn is_followed(&self) -> bool {
        self.recorded.is_some_and(|recorded| recorded.keeps_times)
    }

    /// It is known which blocks the daemon sampled.
    pub(super) fn has_samples(&self) -> bool {
        self.recorded.is_some_and(|recorded| recorded.seed.is_some())
    }

    /// When the daemon decided next.
    pub(super) fn decision_seconds(&self) -> Option<f64> {
        let recorded = self.recorded.filter(|recorded| recorded.keeps_times)?;
        recorded.decisions.get(self.past).map(|decision| decision.seconds)
    }

    /// At `now` the time of this decision has come, if it has; and who is learned anew instead of a decision.
    pub(super) fn decision(&self, now: u64) -> Option<(f64, &'a [usize])> {
        let seconds = self.decision_seconds().filter(|&seconds| ns(seconds) <= now)?;
        Some((seconds, &self.recorded?.decisions.get(self.past)?.renewed))
    }

    /// Those up to `now` lie behind.
    pub(super) fn go_on(&mut self, now: u64) {
        let Some(recorded) = self.recorded else { return };
        while recorded.decisions.get(self.past).is_some_and(|decision| ns(decision.seconds) <= now) {
            self.past += 1;
        }
    }

    /// What the requests of a tenant took about now that were served so, in nanoseconds: those of this shape where that is known, or else all. None where the daemon had none so far.
    pub(super) fn took(&mut self, now: u64, tenant: usize, by: ServedBy, shape: usize) -> Option<u64> {
        if !self.is_followed() {
            self.go_on(now);
        }
        let decisions = &self.recorded?.decisions;
        let mean = |at: usize| {
            let decision = decisions.get(at)?;
            let shaped = decision.shaped.get(tenant).and_then(Option::as_ref);
            if let Some(mean) = shaped.and_then(|shaped| shaped[by as usize][shape].mean()) {
                return Some(mean);
            }
            let measured = decision.measured.get(tenant)?;
            let timed: Timed = match by {
                ServedBy::ReadHit => measured.read_hits,
                ServedBy::ReadMiss => measured.read_misses,
                ServedBy::CachedWrite => measured.cached_writes,
                ServedBy::BackingWrite => measured.backing_writes,
            };
            timed.mean()
        };
        // Of the last ones the daemon did not decide any more.
        let last = self.past.min(decisions.len().saturating_sub(1));
        (0..=last).rev().find_map(mean).map(ns)
    }

    /// What the daemon's own records took about now, for each byte of data.
    pub(super) fn record_share(&self) -> f64 {
        let decisions = self.recorded.map_or(&[][..], |recorded| &recorded.decisions);
        decisions.get(self.past).or(decisions.last()).map_or(0.0, |decision| decision.record_share)
    }

    /// All tenants are where they were when the recording began, and so is the budget.
    pub(super) fn take_stand(&self, control: &mut ControlLoop) {
        let Some(recorded) = self.recorded else { return };
        if let Some(period) = recorded.period {
            control.follow_budget(period);
        }
        control.set_record_share(self.record_share());
        for (tenant, &(quota, mode)) in recorded.stand.iter().enumerate() {
            let reason = control.positions()[tenant].decision.reason.clone();
            control.set_quota(tenant, quota, reason);
            control.set_mode(tenant, mode);
        }
    }
}
