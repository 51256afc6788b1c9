//! Decisions: asked for, carried out, and held against what came.

use larder_alloc::CacheUse;

use super::super::result::{Achieved, DecisionRow};
use super::guest::{Held, Row};
use super::{Run, cpu};
use crate::Source;

impl<S: Source> Run<'_, S> {
    /// Decisions are due: ask for them, and carry them out.
    pub(super) fn decide(&mut self) {
        // What is due may be due within the nanosecond that has begun.
        let now = match self.followed.decision(self.now) {
            Some((seconds, [])) => seconds,
            Some((seconds, renewed)) => {
                self.look(seconds, renewed);
                self.followed.go_on(self.now);
                self.control.set_record_share(self.followed.record_share());
                return;
            }
            None if self.followed.is_followed() => {
                self.look(self.seconds().max(self.control.look_seconds()), &[]);
                return;
            }
            None => self.seconds().max(self.control.due_seconds()),
        };
        if !self.followed.is_followed() && !self.control.must_decide(now) {
            let changed = self.control.changed(now);
            self.look(now, &changed);
            return;
        }
        let count = self.guests.len();
        let usages: Vec<CacheUse> = (0..count).map(|tenant| self.store.usage(tenant)).collect();
        let before = cpu();
        let decided = self.control.decide(now, &usages).map(|_| ());
        self.followed.go_on(self.now);
        self.control.set_record_share(self.followed.record_share());
        self.control_cpu += (cpu() - before).as_secs_f64();
        if let Err(error) = decided {
            self.failed += 1;
            self.failure = Some(error.to_string());
        }
        self.stand();
    }

    fn look(&mut self, now: f64, changed: &[usize]) {
        let before = cpu();
        self.control.look(now, changed, Some(self.held_blocks()));
        self.control_cpu += (cpu() - before).as_secs_f64();
    }

    /// Blocks of the cache that are tenants'.
    fn held_blocks(&self) -> u64 {
        (0..self.guests.len()).map(|tenant| u64::from(self.store.resident(tenant))).sum()
    }

    /// What was decided holds from now on.
    pub(super) fn stand(&mut self) {
        self.close_rows();
        self.traffic.clear();
        self.store.apply(self.control.positions(), &self.plan.tenants, &mut self.traffic);
        self.write_back();
        self.begin_rows();
    }

    /// Begin a row for each tenant that is there. All rows begin and end together, so that what is held at their ends adds up.
    pub(super) fn begin_rows(&mut self) {
        (0..self.guests.len()).for_each(|tenant| self.begin_row(tenant));
    }

    /// What came since the rows began.
    pub(super) fn close_rows(&mut self) {
        (0..self.guests.len()).for_each(|tenant| self.close_row(tenant));
    }

    fn begin_row(&mut self, tenant: usize) {
        let position = &self.control.positions()[tenant];
        if !position.present {
            return;
        }
        let decision = &position.decision;
        let predicted = decision.predicted.filter(|_| !position.is_provisional());
        self.open_rows[tenant] = Some(self.rows.len());
        let held = Held::new(self.store.resident(tenant), self.now);
        self.guests[tenant].row = Row { began: self.now, held, ..Row::default() };
        self.rows.push(DecisionRow {
            seconds: self.now as f64 / 1e9,
            tenant,
            quota_blocks: decision.quota_blocks,
            unlimited: self.store.is_unlimited(decision.quota_blocks),
            occupied_blocks: 0,
            caching: self.plan.tenants[tenant].caching.unwrap_or(decision.mode.caching).to_string(),
            write_policy: decision.mode.write.to_string(),
            predicted_latency: predicted.map(|predicted| predicted.latency),
            predicted_request_hit_ratio: predicted.map(|predicted| predicted.request_hit_ratio),
            predicted_ssd_writes_per_second: predicted.map(|predicted| predicted.ssd_writes_per_second),
            achieved: Achieved::default(),
            reason: decision.reason.clone(),
        });
    }

    fn close_row(&mut self, tenant: usize) {
        let Some(row) = self.open_rows[tenant].take() else { return };
        let held = self.store.resident(tenant);
        let guest = &mut self.guests[tenant];
        guest.row.held.go_on(held, self.now);
        let Row { requests, hits, sum_ns, ssd_blocks, began, held: over_time } = guest.row;
        let time = (self.now - began) as f64;
        let held_ns = over_time.blocks_ns();
        guest.there_ns += time;
        guest.occupied_ns += held_ns;
        let DecisionRow { unlimited, quota_blocks, .. } = self.rows[row];
        guest.quota_ns += if unlimited { held_ns } else { f64::from(quota_blocks) * time };
        let seconds = time / 1e9;
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let some = requests > 0;
        self.rows[row].occupied_blocks = held;
        self.rows[row].achieved = Achieved {
            requests,
            latency: some.then(|| sum_ns as f64 / 1e9 / requests as f64),
            request_hit_ratio: some.then(|| hits as f64 / requests as f64),
            iops: per_second(requests),
            ssd_writes_per_second: per_second(ssd_blocks),
        };
    }
}
