//! The last decisions of the loop with what was measured before each, and when it began to learn tenants anew, for those who record it: they ask several times a second, and
//! epochs are longer.

use std::collections::VecDeque;

use super::{LoopTenant, Standing};
use crate::record::account::{Decided, DecidedTenant, MeasuredRequests, WrittenSsd};

/// Decisions that are kept.
const KEPT: usize = 8;

/// The last decisions, each with its number.
#[derive(Clone, Debug, Default)]
pub struct LoopLog {
    last: VecDeque<Decided>,
    /// The number of the next.
    next: u64,
}

impl LoopLog {
    /// A decision was taken at `now`, after this was measured.
    pub(super) fn decided(
        &mut self,
        now: f64,
        tenants: &[LoopTenant],
        standings: &[Standing],
        measured: &[MeasuredRequests],
        written: WrittenSsd,
    ) {
        self.push(Decided { seconds: now, tenants: stands(tenants, standings, measured), written });
    }

    /// Some tenants are learned anew from `now` on; everybody stands as before.
    pub(super) fn renewed(
        &mut self,
        now: f64,
        tenants: &[LoopTenant],
        standings: &[Standing],
        measured: &[MeasuredRequests],
        renewed: &[bool],
        written: WrittenSsd,
    ) {
        let mut tenants = stands(tenants, standings, measured);
        tenants.iter_mut().zip(renewed).for_each(|(tenant, &renewed)| tenant.renewed = renewed);
        self.push(Decided { seconds: now, tenants, written });
    }

    fn push(&mut self, decided: Decided) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(decided);
        self.next += 1;
    }

    /// The number of the next decision.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The decisions from this number on, as far as they are kept.
    pub fn since(&self, number: u64) -> impl Iterator<Item = &Decided> {
        let kept = self.last.len() as u64;
        let wanted = self.next.saturating_sub(number).min(kept);
        // No more than are kept.
        self.last.iter().skip((kept - wanted) as usize)
    }
}

/// Where tenants stand, after this was measured.
pub(super) fn stands(
    tenants: &[LoopTenant],
    standings: &[Standing],
    measured: &[MeasuredRequests],
) -> Vec<DecidedTenant> {
    let of = |(at, (tenant, standing)): (usize, (&LoopTenant, &Standing))| DecidedTenant {
        name: tenant.name.clone(),
        quota_blocks: standing.decision.quota_blocks,
        write_policy: standing.decision.mode.write.as_str().into(),
        caching: standing.decision.mode.caching.to_string(),
        reason: standing.decision.reason.clone(),
        measured: measured.get(at).cloned().unwrap_or_default(),
        renewed: false,
    };
    tenants.iter().zip(standings).enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_ask_often_miss_nothing() {
        let mut log = LoopLog::default();
        let mut seen = Vec::new();
        let mut next = 0;
        for round in 0..30 {
            log.decided(f64::from(round), &[], &[], &[], WrittenSsd::default());
            if round % 7 == 3 {
                seen.extend(log.since(next).map(|it| it.seconds));
                next = log.next();
            }
        }
        assert_eq!(seen, (0..25).map(f64::from).collect::<Vec<_>>());
        assert_eq!(log.since(0).count(), KEPT);
        assert_eq!(log.since(99).count(), 0);
    }
}
